"""The packages of the project, and their modules by dotted name."""

import importlib
from pathlib import Path

LIBRARY = "ldpopt"
CLONE = Path(__file__).resolve().parents[2]
APPLICATIONS = ("ldpopt_survey", "ldpopt_studio", *(["experiments.papers"] if (CLONE / "experiments").is_dir() else []))
"""The tests may run away from the repository, without the experiments, which are not installed."""

PACKAGES = (LIBRARY, *APPLICATIONS)


def folder(package: str) -> Path:
    """The folder of a package, as it is installed."""
    return Path(str(importlib.import_module(package).__file__)).parent


def modules(*packages: str) -> dict[str, Path]:
    """The files of the modules of some packages, by dotted name; the records of the papers are data."""
    found = {}
    for package in packages:
        root = folder(package)
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if parts[:1] != ("records",):
                found[".".join([package, *parts]).removesuffix(".__init__")] = path
    return found
