"""Stubs tell type checkers all names of packages that load by name; `python docs/_ext/stubs.py` writes them anew."""

import importlib
import re
import runpy
from pathlib import Path

import pytest

import ldpopt

STUBS = Path(ldpopt.__file__).parent.parent / "docs" / "_ext" / "stubs.py"


@pytest.mark.parametrize("package", ["ldpopt", "ldpopt.design", "ldpopt.cli"])
def test_type_checkers_know_every_name(package):
    """The committed stub is the one that `docs/_ext/stubs.py` writes."""
    if not STUBS.exists():
        pytest.skip("the stubs are compared in the source tree")
    written = runpy.run_path(str(STUBS))["stub"](package)
    committed = Path(importlib.import_module(package).__file__).with_suffix(".pyi").read_text("utf-8")
    assert set(re.findall(r"[\w.]+", written)) == set(re.findall(r"[\w.]+", committed))
