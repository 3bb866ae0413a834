"""Every example in a docstring runs and prints what it shows, in the package as it is installed."""

import doctest
import importlib
import pkgutil

import pytest

import ldpopt

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS
MODULES = [
    "ldpopt",
    *sorted(m.name for m in pkgutil.walk_packages(ldpopt.__path__, "ldpopt.") if "__main__" not in m.name),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """The examples of the module hold."""
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)):
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
