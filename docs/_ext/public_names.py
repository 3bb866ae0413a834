"""What the package offers: its public modules and names, each with the one place where the reference documents it."""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import ldpopt

sys.path.append(str(Path(__file__).resolve().parents[2]))  # `experiments`, which is not installed

FIRST = ["ldpopt.channel", "ldpopt.divergences", "ldpopt.design", "ldpopt.privacy", "ldpopt.mechanisms"]
"""Modules whose pages come first, and which document a name that several modules offer."""

BESIDE = [
    "ldpopt.citation",
    "ldpopt.design.constraints",
    "ldpopt.exact",
    "ldpopt.frontiers",
    "ldpopt.values.references",
    "ldpopt.values.results",
    "ldpopt.words",
    "ldpopt_survey",
    "ldpopt_survey.pictures",
    "ldpopt_survey.server",
    "experiments.papers",
]
"""Public modules that the package does not name itself."""


@dataclass(frozen=True)
class Public:
    """A public name: where it is documented, under which name, and the object."""

    module: str
    name: str
    value: Any

    @property
    def full(self) -> str:
        """The dotted name."""
        return f"{self.module}.{self.name}"


def public_modules() -> list[str]:
    """Every public module but the package itself, in the order of the reference."""
    found = [f"ldpopt.{name}" for name in ldpopt._SUBMODULES] + BESIDE
    for name in list(found):
        module = importlib.import_module(name)
        for inner in getattr(module, "__all__", ()):
            value = getattr(module, inner)
            if isinstance(value, ModuleType) and value.__name__ not in found:
                found.append(value.__name__)
    return sorted(dict.fromkeys(found), key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))


def offered(module: str) -> list[str]:
    """The public names of a module: its `__all__`, or what it defines without an underscore."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return list(found.__all__)
    return sorted(
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
    )


def registry() -> dict[str, Public]:
    """Every public object by its dotted name, once: where the first module in order offers it."""
    made: dict[str, Public] = {}
    known: dict[int, str] = {}
    for module in public_modules():
        for name in offered(module):
            value = getattr(importlib.import_module(module), name)
            if isinstance(value, ModuleType):
                continue
            lasting = is_class(value) or inspect.isroutine(value)
            if lasting and id(value) in known:
                continue
            entry = Public(module, name, value)
            made[entry.full] = entry
            if lasting:
                known[id(value)] = entry.full
    return made


def is_class(value: Any) -> bool:
    """Whether `value` is a class of this package, not a type that it has a name for."""
    return inspect.isclass(value) and value.__module__.startswith(("ldpopt", "experiments."))


def home(value: Any, names: dict[str, Public]) -> str | None:
    """The dotted name under which the reference documents `value`."""
    return next((full for full, entry in names.items() if entry.value is value), None)
