"""What stands in the package itself follows a rule, and `mypy --strict` knows the types of all of it."""

import inspect
import re

import ldpopt
from ldpopt import design, errors
from ldpopt.design.candidate import Method
from ldpopt.design.constraints.base import Measured
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.neighbourhood import Neighbourhood
from ldpopt.design.utilities.sets import HypothesisSet

BEGIN = {"optimal_channel", "load_design", "structures", "frontier", "sweep", "audit", "compose", "k_fold", "cite"}
CLASSES = {"Channel", "Design", "Guarantee", "Ledger", "Plan", "Survey"}
CRITERIA = {"AOptimal", "COptimal", "DOptimal", "MVOptimal"}
FORMER = {"ZCDP"}
"""Former names, which go with the next release and are not added anywhere."""


def poses(value):
    """Whether a problem is posed with instances of a class: a utility, what one takes, a constraint or a method."""
    if not inspect.isclass(value) or inspect.isabstract(value) or getattr(value, "_is_protocol", False):
        return False
    kinds = (Utility, Measured, Neighbourhood, HypothesisSet)
    # A method has no base class of its own, only the shape of `Method`.
    shape = all(callable(getattr(value, name, None)) for name in ("refuses", "find"))
    return issubclass(value, kinds) or shape or value.__name__ in CRITERIA


def test_the_root_offers_all_that_a_problem_is_posed_with():
    """All utilities with what they take, all constraints, all methods, the functions that work begins with, errors."""
    posing = {name for name in design.__all__ if poses(getattr(design, name))} - FORMER
    assert len(posing) > 40
    assert set(ldpopt.__all__) == posing | BEGIN | CLASSES | set(errors.__all__)
    assert {type(method).__name__ for method in design.METHODS} <= posing
    assert hasattr(Method, "refuses")
    assert hasattr(Method, "find")


def test_every_root_name_is_the_one_of_its_module():
    """A name of the package is the object that its own module offers, and is listed for type checkers, too."""
    source = inspect.getsource(ldpopt)
    for name in ldpopt.__all__:
        value = getattr(ldpopt, name)
        assert getattr(__import__(ldpopt._HOMES[name], fromlist=[name]), name) is value
        assert f"        {name},\n" in source or re.search(rf"import (\w+, )*{name}\b", source)
