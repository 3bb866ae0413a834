"""Stubs tell type checkers every name that loads when it is used; `python docs/_ext/stubs.py` writes them anew."""

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import ldpopt

STUBS = Path(ldpopt.__file__).parent.parent / "docs" / "_ext" / "stubs.py"
LAZY = ["ldpopt.bounds", "ldpopt.mechanisms", "ldpopt.privacy", "ldpopt_survey", "ldpopt_survey.server"]


@pytest.mark.parametrize("package", [*LAZY, "ldpopt", "ldpopt.cli", "ldpopt.design"])
def test_type_checkers_know_every_name(package):
    """The committed stub is the one that `docs/_ext/stubs.py` writes."""
    if not STUBS.exists():
        pytest.skip("the stubs are compared in the source tree")
    written = runpy.run_path(str(STUBS))["stub"](package)
    committed = Path(importlib.import_module(package).__file__).with_suffix(".pyi").read_text("utf-8")
    assert set(re.findall(r"[\w.]+", written)) == set(re.findall(r"[\w.]+", committed))


@pytest.mark.parametrize("package", LAZY)
def test_no_name_is_hidden_by_a_module(package):
    """A module that is imported stands in its package under its own name: no name that loads later may be the same."""
    offered = importlib.import_module(package)
    hidden = {name for home, names in offered._HOMES.items() if home != package for name in names}
    assert not hidden & {path.stem for path in Path(offered.__file__).parent.glob("*.py")}


def test_a_function_keeps_the_name_of_a_folder():
    """`ldpopt_survey.estimate` is the function, before and after modules of the folder of that name are loaded."""
    code = """
import ldpopt_survey
before = ldpopt_survey.estimate
import ldpopt_survey.estimate.intervals, ldpopt_survey.plan.survey, ldpopt_survey.collect.aggregate
from ldpopt_survey import estimate
print(before is estimate is ldpopt_survey.estimate, estimate.__module__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "ldpopt_survey.estimate.estimate"]
