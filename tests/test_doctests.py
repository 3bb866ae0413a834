"""Every example in a docstring runs and prints what it shows, in the package as it is installed."""

import doctest
import importlib
import sys
from pathlib import Path

import pytest
from packages import APPLICATIONS, PACKAGES, modules

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))
from api_pages import documented_in
from example_imports import import_lines, names_in

sys.path.pop(0)

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS
MODULES = sorted(name for name, path in modules(*PACKAGES).items() if ">>> " in path.read_text("utf-8"))
"""The modules that show an example."""


@pytest.mark.full(but=40)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full] if name.startswith(APPLICATIONS) else []) for name in MODULES],
)
def test_examples_of_the_module_hold(name):
    """The examples of the module hold, with nothing but the imports that the reference shows before them."""
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)):
        used, stored = names_in(test.examples)
        space: dict[str, object] = {}
        exec("\n".join(import_lines(sorted(used - stored), [test.globs], documented_in())), space)
        test.globs = space
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
