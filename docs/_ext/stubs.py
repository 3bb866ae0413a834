"""The stubs `ldpopt/__init__.pyi` and `ldpopt/design/__init__.pyi`, which tell type checkers what is loaded by name.

    python docs/_ext/stubs.py [PACKAGE]

writes them anew, after a kind or a public name was added, or prints that of one package; `tests/test_root.py` compares.
"""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = ("ldpopt", "ldpopt.design")
ROOT = Path(__file__).resolve().parents[2]


def stub(package: str) -> str:
    """The contents of a package's stub: an import of every name that it offers from where the name is defined."""
    module = importlib.import_module(package)
    lines = [f"from {_home(module, name)} import {name} as {name}" for name in sorted(module.__all__)]
    if package == "ldpopt":
        lines += [f"from ldpopt import {name} as {name}" for name in module._SUBMODULES]
        lines += ["from ldpopt.version import __version__ as __version__"]
    listed = "".join(f'    "{name}",\n' for name in sorted(module.__all__))
    return "\n".join([*sorted(lines), "", f"__all__ = [\n{listed}]", ""])


def _home(module: Any, name: str) -> str:
    """The module that defines a class, or from which a function or a value is offered."""
    value = getattr(module, name)
    return str(value.__module__ if inspect.isclass(value) else module._MODULES[name])


if __name__ == "__main__":
    if sys.argv[1:]:
        print(stub(sys.argv[1]))
        sys.exit()
    for package in PACKAGES:
        path = ROOT.joinpath(*package.split("."), "__init__.pyi")
        path.write_text(stub(package), "utf-8")
        for command in (["check", "--quiet", "--fix"], ["format", "--quiet"]):
            subprocess.run(["ruff", *command, str(path)], check=True)
