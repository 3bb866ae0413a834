"""The design in the docstring of a method: a new method brings the problem that the tests of all methods need."""

import doctest
import importlib
from functools import cache

from ldpopt.design import METHODS, Design


@cache
def design_of(kind):
    """The design that the example of a class of methods makes; None where it shows none."""
    space = dict(vars(importlib.import_module(kind.__module__)))
    for example in doctest.DocTestParser().get_examples(kind.__doc__ or ""):
        exec(example.source, space)
    return next((value for value in space.values() if isinstance(value, Design)), None)


def proved_by(certificates):
    """Designs with a certificate of one of these classes, from the methods whose modules know them."""
    names = {one.__name__ for one in certificates}
    for kind in map(type, METHODS):
        if names & set(vars(importlib.import_module(kind.__module__))):
            design = design_of(kind)
            if design is not None and type(design.certificate) in certificates:
                yield design
