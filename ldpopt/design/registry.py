"""From the modules of a room to the kinds that they define: a kind is known everywhere once its one file is there.

A kind is a utility, a constraint, a certificate, a method, or a class that a utility takes, such as a criterion. The
codec of design files, the lists of `ldpopt.design` and `ldpopt`, and the tables of the documentation are made of these.

What commands and pages ask people for is declared by the kinds too, in `Kind.asks`. `choices(room)` lists the kinds
that ask, in the order in which they are shown, and `flags(room)` the options of commands; `chosen(room, names)` says
which kinds the given names stand for, and `kind.made(values)` makes one; `answers(constraint)` goes back, from an
object to the values.

>>> from ldpopt.design import constraints
>>> [kind.__name__ for kind in chosen(constraints, ["epsilon", "delta", "eta"])]
['ApproximateLDP', 'TotalVariation']
>>> chosen(constraints, ["eta"])[0].made({"eta": 0.3})
TotalVariation(eta=0.3)
>>> answers(constraints.RenyiLDP(2.0, 0.5))
{'renyi_order': 2.0, 'renyi': 0.5}
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, Self

from ldpopt.errors import InvalidInput
from ldpopt.values.distribution import Checked, Reader

_PACKAGE = __name__.rpartition(".")[0]
_KINDS: dict[str, type[Kind]] = {}
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Asked:
    """A parameter of a kind as people are asked for it. name : what a command or a page calls it; kinds may share one,
    as ``epsilon`` is shared. help : a sentence. unit : what stands for the value in the help of a command. field : the
    kind's own name for it, where it is another. type : float, int, list (a distribution) or str (a divergence as
    `divergences.base.spelled` reads it).
    """

    name: str
    help: str
    unit: str
    field: str = ""
    type: type = float


class Kind(Checked):
    """A class that registers itself, by its own name, if it is one of this package; a user's own class does not."""

    takes: ClassVar[tuple[type, ...]] = ()
    """Classes of other rooms that a field of the type `Any` may hold in a design file."""
    asks: ClassVar[tuple[Asked, ...]] = ()
    """What commands and pages ask for to make one; empty for a kind that they do not offer. A command may join several
    numbers that no other kind asks for by colons, under the last name: ``--renyi ORDER:NATS``."""
    preference: ClassVar[int] = 1000
    """Its place among its like where they are listed or tried, in ascending order."""

    def __init_subclass__(cls, **readers: Reader) -> None:
        super().__init_subclass__(**readers)
        if cls.__module__.startswith(f"{_PACKAGE}.") and not cls.__name__.startswith("_"):
            known = _KINDS.setdefault(cls.__name__, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise TypeError(f"{cls.__name__}: expected a name of its own, got that of {known.__module__}")
            _KINDS[cls.__name__] = cls

    @classmethod
    def made(cls, values: Mapping[str, Any]) -> Self:
        """The kind with the values of what it asks for, by name; its own `InvalidInput` for a wrong value."""
        return cls(**{asked.field or asked.name: values[asked.name] for asked in cls.asks})


def kinds(*rooms: ModuleType) -> dict[str, type[Kind]]:
    """The kinds by name, without abstract ones, that the modules of some packages define; all modules are imported."""
    places = tuple(f"{room.__name__}." for room in rooms)
    for room, place in zip(rooms, places, strict=True):
        for module in pkgutil.iter_modules(room.__path__, place):
            importlib.import_module(module.name)
    listed = (kind for kind in _KINDS.values() if kind.__module__.startswith(places) and not inspect.isabstract(kind))
    return {kind.__name__: kind for kind in sorted(listed, key=lambda kind: kind.__name__)}


def defining(name: str, *rooms: ModuleType) -> ModuleType | None:
    """The module of some rooms that defines a class, which is found in the sources, so that no other is imported."""
    return next((importlib.import_module(classes[name]) for room in rooms if name in (classes := _classes(room))), None)


@cache
def _classes(room: ModuleType) -> dict[str, str]:
    """The names of the modules of a room by the classes that they define."""
    modules: dict[str, str] = {}
    for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        spec: Any = module.module_finder.find_spec(module.name, None)
        source = spec.loader.get_source(module.name)
        names = vars(importlib.import_module(module.name)) if source is None else _CLASS.findall(source)
        modules |= dict.fromkeys(names, module.name)
    return modules


def kind(name: str, *rooms: ModuleType) -> type[Kind] | None:
    """The kind of a name that some rooms define, or None; only its own module is imported."""
    known = None if defining(name, *rooms) is None else _KINDS.get(name)
    return None if known is None or inspect.isabstract(known) else known


def choices(room: ModuleType) -> tuple[type[Kind], ...]:
    """The kinds of a room that commands and pages offer, in the order in which they are shown."""
    return tuple(sorted((kind for kind in kinds(room).values() if kind.asks), key=lambda kind: kind.preference))


def chosen(room: ModuleType, names: Collection[str]) -> tuple[type[Kind], ...]:
    """The kinds that the names of given values stand for, in order. Of two kinds of which one asks for all that the
    other asks for, and more, it is the one with more. `InvalidInput` for a name without the others that its kind asks
    for.
    """
    asked = {kind: {parameter.name for parameter in kind.asks} for kind in choices(room)}
    whole = [kind for kind, own in asked.items() if own <= set(names)]
    kept = tuple(kind for kind in whole if not any(asked[kind] < asked[other] for other in whole))
    for name in names:
        if not any(name in asked[kind] for kind in kept):
            missing: set[str] = next((own - set(names) for own in asked.values() if name in own), {"a known name"})
            raise InvalidInput(f"{name}: expected {' and '.join(sorted(missing))} beside it, got none")
    return kept


def flags(room: ModuleType) -> dict[str, tuple[Asked, ...]]:
    """What commands ask for, by name: one value, or several that one kind alone asks for, joined by colons."""
    counts = Counter(asked.name for kind in choices(room) for asked in kind.asks)
    given: dict[str, tuple[Asked, ...]] = {}
    for kind in choices(room):
        given |= {asked.name: (asked,) for asked in kind.asks if counts[asked.name] > 1}
        if own := tuple(asked for asked in kind.asks if counts[asked.name] == 1):
            given[own[-1].name] = own
    return given


def answers(given: Any) -> dict[str, Any]:
    """The values of what the kind of `given` asks for, by name."""
    return {asked.name: getattr(given, asked.field or asked.name) for asked in type(given).asks}


def summary(kind: type) -> str:
    """What a kind is, in the first sentence of its documentation."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
