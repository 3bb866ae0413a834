"""Every example in a docstring runs and prints what it shows, in the package as it is installed."""

import doctest
import importlib
from pathlib import Path

import pytest

import ldpopt

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS
PACKAGE = Path(ldpopt.__file__).parent
MODULES = sorted(
    ".".join(["ldpopt", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text("utf-8")
)
"""The modules that show an example."""


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """The examples of the module hold."""
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)):
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
