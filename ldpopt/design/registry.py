"""From the modules of a room to the kinds that they define: a kind is known everywhere once its one file is there.

A kind is a utility, a constraint, a certificate, a method, or a class that a utility takes, such as a criterion. The
codec of design files, the lists of `ldpopt.design` and `ldpopt`, and the tables of the documentation are made of these.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import ClassVar

_PACKAGE = __name__.rpartition(".")[0]
_KINDS: dict[str, type[Kind]] = {}


class Kind:
    """A class that registers itself, by its own name, if it is one of this package; a user's own class does not."""

    takes: ClassVar[tuple[type, ...]] = ()
    """Classes of other rooms that a field of the type `Any` may hold in a design file."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__.startswith(f"{_PACKAGE}.") and not cls.__name__.startswith("_"):
            _KINDS[cls.__name__] = cls


def kinds(*rooms: ModuleType) -> dict[str, type[Kind]]:
    """The kinds by name, without abstract ones, that the modules of some packages define; all modules are imported."""
    places = tuple(f"{room.__name__}." for room in rooms)
    for room, place in zip(rooms, places, strict=True):
        for module in pkgutil.iter_modules(room.__path__, place):
            importlib.import_module(module.name)
    found = (kind for kind in _KINDS.values() if kind.__module__.startswith(places) and not inspect.isabstract(kind))
    return {kind.__name__: kind for kind in sorted(found, key=lambda kind: kind.__name__)}


def summary(kind: type) -> str:
    """What a kind is, in the first sentence of its documentation."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
