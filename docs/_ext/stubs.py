"""The stubs `__init__.pyi` of the packages below, which tell type checkers what is loaded by name.

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

PACKAGES = (
    "ldpopt", "ldpopt.bounds", "ldpopt.cli", "ldpopt.design", "ldpopt.mechanisms", "ldpopt.privacy", "ldpopt_survey",
    "ldpopt_survey.server",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]


def stub(package: str) -> str:
    """The contents of a package's stub: an import of every name that it offers from where the name is defined."""
    module = importlib.import_module(package)
    lines = [_line(module, name) for name in sorted(module.__all__)]
    if package == "ldpopt":
        lines += [f"from ldpopt import {name} as {name}" for name in module._SUBMODULES]
        lines += ["from ldpopt.version import __version__ as __version__"]
    listed = "".join(f'    "{name}",\n' for name in sorted(module.__all__))
    lines.sort(key=lambda line: (line.startswith("def "), line))
    return "\n".join([*lines, "", f"__all__ = [\n{listed}]", ""])


def _line(module: Any, name: str) -> str:
    """The import of a name from the module that defines or offers it, or the head of a function of the package."""
    value = getattr(module, name)
    if inspect.isfunction(value) and value.__module__ == module.__name__:
        return f"def {name}{inspect.signature(value)}: ...".replace("'", "")
    ours = inspect.isclass(value) and value.__module__.startswith(("ldpopt.", "ldpopt_survey."))
    homes = {defined: home for home, names in module._HOMES.items() for defined in names}
    home = value.__module__ if ours else homes.get(name) or value.__module__
    return f"from {home} import {name} as {name}"


if __name__ == "__main__":
    if sys.argv[1:]:
        print(stub(sys.argv[1]))
        sys.exit()
    for package in PACKAGES:
        path = ROOT.joinpath(*package.split("."), "__init__.pyi")
        path.write_text(stub(package), "utf-8")
        for command in (["check", "--quiet", "--fix"], ["format", "--quiet"]):
            subprocess.run(["ruff", *command, str(path)], check=True)
