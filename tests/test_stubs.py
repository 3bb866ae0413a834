"""Stubs tell type checkers every name that loads when it is used; `python docs/_ext/stubs.py` writes them anew."""

import importlib
import re
import runpy
from pathlib import Path

import pytest

import ldpopt

STUBS = Path(ldpopt.__file__).parent.parent / "docs" / "_ext" / "stubs.py"


@pytest.mark.parametrize(
    "package",
    ["ldpopt", "ldpopt.bounds", "ldpopt.cli", "ldpopt.design", "ldpopt.mechanisms", "ldpopt.privacy"],
)
def test_type_checkers_know_every_name(package):
    """The committed stub is the one that `docs/_ext/stubs.py` writes."""
    if not STUBS.exists():
        pytest.skip("the stubs are compared in the source tree")
    written = runpy.run_path(str(STUBS))["stub"](package)
    committed = Path(importlib.import_module(package).__file__).with_suffix(".pyi").read_text("utf-8")
    assert set(re.findall(r"[\w.]+", written)) == set(re.findall(r"[\w.]+", committed))


@pytest.mark.parametrize("package", ["ldpopt.bounds", "ldpopt.mechanisms", "ldpopt.privacy"])
def test_no_name_is_hidden_by_a_module(package):
    """A module that is imported stands in its package under its own name: no name that loads later may be the same."""
    offered = importlib.import_module(package)
    hidden = {name for name, home in offered._MODULES.items() if home != package}
    assert not hidden & {path.stem for path in Path(offered.__file__).parent.glob("*.py")}
