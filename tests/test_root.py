"""What stands in the package itself follows a rule, and type checkers know all of it."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import ldpopt
from ldpopt import design, divergences, errors, mechanisms, privacy
from ldpopt.design import constraints, registry, utilities
from ldpopt.design.constraints.base import Measured
from ldpopt.design.constraints.terms import Term
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.utilities.base import Utility

BEGIN = {"optimal_channel", "load_design", "structures", "frontier", "sweep", "audit", "compose", "k_fold", "cite"}
EXCEPTIONS = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)} - {"Phrase"}
CLASSES = {"Channel", "Design", "Guarantee", "Ledger"}


def test_the_root_offers_all_names_that_define_a_problem():
    """Utilities with what they take, constraints, divergences, mechanisms, measures, what work begins with, errors."""
    posing = set(registry.registered_types(utilities, constraints))
    assert len(posing) > 25
    named = {name for name in divergences.__all__ if name.isupper()} - {"NAMED"}
    made = {name for name in mechanisms.__all__ if name.islower()} - {"dominating_pair"}
    measures = {
        name for name in privacy.__all__
        if name.islower() and str(getattr(privacy, name, "")).startswith("<function")
        and "Guarantee" in str(getattr(privacy, name).__annotations__.get("return", ""))
    } - {"hockey_stick", "hockey_stick_contraction", "chi_squared_contraction", "proved"}  # fmt: skip
    offered = set(ldpopt.__all__)
    assert offered >= posing | BEGIN | CLASSES | EXCEPTIONS | named | made | measures
    assert offered <= posing | BEGIN | CLASSES | EXCEPTIONS | named | made | set(privacy.__all__)
    assert not {type(method).__name__ for method in design.METHODS} & offered
    assert set(dir(ldpopt)) >= offered


def test_every_root_name_is_the_one_of_its_module():
    """A name of the package is the object that its own module offers."""
    for name in ldpopt.__all__:
        home = importlib.import_module(ldpopt._MODULES.get(name, "ldpopt.design"))
        assert getattr(home, name) is getattr(ldpopt, name)
    for package in (ldpopt, design):
        with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
            _ = package.Nothing


def test_a_kind_is_one_file():
    """Every concrete class of a room registers itself, by a name of its own, and is offered by `ldpopt.design`."""
    for room, base in ((utilities, Utility), (constraints, Measured), (registry.CERTIFICATE_MODULES, Certificate)):
        found = {name for name, kind in registry.registered_types(room).items() if issubclass(kind, base)}
        source = "".join(inspect.getsource(importlib.import_module(name)) for name in registry.modules_of(room))
        assert len(found) > 7
        assert all(re.search(rf"^class {name}\b", source, re.MULTILINE) for name in found)
        assert found <= set(design.__all__)
    places = [method.preference for method in design.METHODS]
    assert places == sorted(set(places))


def test_a_users_class_does_not_register():
    """A user's own utility is used as it is, and no file can name it."""

    class Mine(Utility):
        size = 2
        value_without_privacy = 1.0

        def value(self, channel):
            return 0.0

    assert "Mine" not in registry.registered_types(utilities)


ASKED = 105
"""How often `ldpopt.design` asks which of several kinds it has; put it lower when a question goes."""


def test_no_new_isinstance_checks_on_kinds_are_added():
    """`isinstance` on a utility, constraint, term or certificate: a new kind would have to be added there."""
    kinds = {
        name for name, kind in registry.registered_types(utilities, constraints, registry.CERTIFICATE_MODULES).items()
    }
    kinds |= {term.__name__ for term in _below(Term)} | {"Ratio"}
    found = 0
    for path in Path(design.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                found += bool(kinds & {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)})
    assert found <= ASKED, "a kind is asked for where a method of its class would do"


def _below(base):
    return {base}.union(*(_below(each) for each in base.__subclasses__()))


@pytest.mark.parametrize(
    "name",
    [
        "bounds", "channel", "composition", "datasets", "design", "design.constraints", "design.utilities",
        "divergences", "errors", "frontiers", "io", "mechanisms", "plots", "privacy",
    ],
)  # fmt: skip
def test_dir_lists_all_that_a_module_offers(name):
    """Names that load late are listed too, and each of them loads."""
    module = importlib.import_module(f"ldpopt.{name}")
    offered = set(getattr(module, "__all__", ()))
    assert offered <= set(dir(module))
    assert all(hasattr(module, each) for each in offered)
