"""From the modules of a room to the kinds that they define: a kind is known everywhere once its one file is there.

A room is a package, such as `ldpopt.design.constraints`, or the modules of one name in the folders of all classes of
problems: `CERTIFICATE_MODULES` are found in their `proof*` and in the kernel, `METHOD_MODULES` in their `method*`.

A kind is a utility, a constraint, a certificate, a method, or a class that a utility takes, such as a criterion. The
codec of design files, the lists of `ldpopt.design` and `ldpopt`, and the tables of the documentation are made of these.

What commands and pages ask people for is declared by the kinds too, in `Kind.asks`. `offered_types(room)` lists the
kinds that ask, in the order in which they are shown, and `command_options(room)` the options of commands;
`types_with_parameters(room, names)` says which kinds the given names stand for, and `kind.made(values)` makes one;
`parameter_values(constraint)` goes back, from an object to the values.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self

from ldpopt.errors import InvalidInput
from ldpopt.values.distribution import Checked, Reader

_PACKAGE = __name__.rpartition(".")[0]
_KINDS: dict[str, type[Kind]] = {}
_CLASS = re.compile(r"^class (\w+)(?:\((.*?)\))?:$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """A parameter of a kind as people are asked for it. name : what a command or a page calls it; kinds may share one,
    as ``epsilon`` is shared. help : a sentence. unit : what stands for the value in the help of a command. field : the
    kind's own name for it, where it is another. type : float, int, list (a distribution) or str (a divergence as
    `divergences.parse_divergence` reads it).
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


@dataclass(frozen=True)
class Room:
    """The modules of the folders of `ldpopt.design` whose names, ``folder.module``, match one of some patterns."""

    patterns: tuple[str, ...]


CERTIFICATE_MODULES = Room(("kernel.*", "*.proof*"))
METHOD_MODULES = Room(("*.method*",))


def modules_of(room: ModuleType | Room) -> tuple[str, ...]:
    """The names of the modules of a room; none is imported."""
    return tuple(_specs(room))


@cache
def _specs(room: ModuleType | Room) -> dict[str, Any]:
    """Where the modules of a room are found, by their names."""
    if not isinstance(room, Room):
        return _specs_in(room.__path__, f"{room.__name__}.")
    found: dict[str, Any] = {}
    for path in importlib.import_module(_PACKAGE).__path__:
        for folder in (module.name for module in pkgutil.iter_modules([path]) if module.ispkg):
            found |= _specs_in([f"{path}/{folder}"], f"{_PACKAGE}.{folder}.")
    inner = len(_PACKAGE) + 1
    return {name: spec for name, spec in found.items() if any(fnmatchcase(name[inner:], p) for p in room.patterns)}


def _specs_in(path: Iterable[str], prefix: str) -> dict[str, Any]:
    found: Iterable[Any] = pkgutil.iter_modules(path, prefix)
    return {module.name: module.module_finder.find_spec(module.name, None) for module in found}


def kinds(*rooms: ModuleType | Room) -> dict[str, type[Kind]]:
    """The kinds by name, without abstract ones, that the modules of some rooms define; all modules are imported."""
    modules = {name for room in rooms for name in modules_of(room)}
    for module in sorted(modules):
        importlib.import_module(module)
    listed = (kind for kind in _KINDS.values() if kind.__module__ in modules and not inspect.isabstract(kind))
    return {kind.__name__: kind for kind in sorted(listed, key=lambda kind: kind.__name__)}


def defining(name: str, *rooms: ModuleType | Room) -> ModuleType | None:
    """The module of some rooms that defines a class, which is found in the sources, so that no other is imported."""
    heads = (classes[name] for room in rooms if name in (classes := heads_of(room)))
    return next((importlib.import_module(head.module) for head in heads), None)


class Head(NamedTuple):
    """The module that defines a class, and what stands in its parentheses, as source text; None without a source."""

    module: str
    arguments: str | None


@cache
def heads_of(room: ModuleType | Room) -> dict[str, Head]:
    """The heads of all classes of a room by their names, read from the sources, so that no module is imported."""
    heads: dict[str, Head] = {}
    for module, spec in _specs(room).items():
        source = spec.loader.get_source(module)
        found = _compiled(module) if source is None else _CLASS.findall(source)
        heads |= {name: Head(module, arguments) for name, arguments in found}
    return heads


def _compiled(module: str) -> list[tuple[str, None]]:
    """The classes that a module without a source defines."""
    values = vars(importlib.import_module(module)).items()
    return [(name, None) for name, value in values if isinstance(value, type) and value.__module__ == module]


def inherits(value: Any, name: str) -> bool:
    """Return True if `value` is of the kind of this name, or of one derived from it; its module is not imported."""
    return any(kind.__name__ == name and kind.__module__.startswith(f"{_PACKAGE}.") for kind in type(value).__mro__)


def kind(name: str, *rooms: ModuleType | Room) -> type[Kind] | None:
    """The kind of a name that some rooms define, or None; only its own module is imported."""
    known = None if defining(name, *rooms) is None else _KINDS.get(name)
    return None if known is None or inspect.isabstract(known) else known


def offered_types(room: ModuleType) -> tuple[type[Kind], ...]:
    """List the types of a package that commands and pages offer, in the order in which they are shown.

    room : `ldpopt.design.constraints`, or another package of types.

    >>> from ldpopt.design import constraints
    >>> offered_types(constraints)[0].__name__
    'LocalDP'
    """
    return tuple(sorted((kind for kind in kinds(room).values() if kind.asks), key=lambda kind: kind.preference))


def types_with_parameters(room: ModuleType, names: Collection[str]) -> tuple[type[Kind], ...]:
    """List the types that the names of given values stand for, in order.

    Of two types of which one asks for all that the other asks for, and more, it is the one with more.

    room : as for `offered_types`. names : the names of parameters, such as epsilon and delta. Raises `InvalidInput` for
    a name without the others that its type asks for.

    >>> from ldpopt.design import constraints
    >>> [found.__name__ for found in types_with_parameters(constraints, ["epsilon", "delta", "eta"])]
    ['ApproximateLDP', 'TotalVariation']
    >>> types_with_parameters(constraints, ["eta"])[0].made({"eta": 0.3})
    TotalVariation(eta=0.3)
    """
    asked = {kind: {parameter.name for parameter in kind.asks} for kind in offered_types(room)}
    whole = [kind for kind, own in asked.items() if own <= set(names)]
    kept = tuple(kind for kind in whole if not any(asked[kind] < asked[other] for other in whole))
    for name in names:
        if not any(name in asked[kind] for kind in kept):
            missing: set[str] = next((own - set(names) for own in asked.values() if name in own), {"a known name"})
            raise InvalidInput(f"{name}: expected {' and '.join(sorted(missing))} beside it, got none")
    return kept


def command_options(room: ModuleType) -> dict[str, tuple[Asked, ...]]:
    """List the options of commands by name: one value, or several that one type alone asks for, joined by colons.

    room : as for `offered_types`.

    >>> from ldpopt.design import constraints
    >>> [part.name for part in command_options(constraints)["renyi"]]
    ['renyi_order', 'renyi']
    """
    counts = Counter(asked.name for kind in offered_types(room) for asked in kind.asks)
    given: dict[str, tuple[Asked, ...]] = {}
    for kind in offered_types(room):
        given |= {asked.name: (asked,) for asked in kind.asks if counts[asked.name] > 1}
        if own := tuple(asked for asked in kind.asks if counts[asked.name] == 1):
            given[own[-1].name] = own
    return given


def parameter_values(given: Any) -> dict[str, Any]:
    """Return the values of the parameters that the type of `given` asks for, by name; none for a type of your own.

    >>> from ldpopt.design import RenyiLDP
    >>> parameter_values(RenyiLDP(2.0, 0.5))
    {'renyi_order': 2.0, 'renyi': 0.5}
    """
    return {asked.name: getattr(given, asked.field or asked.name) for asked in getattr(type(given), "asks", ())}


def summary(kind: type) -> str:
    """What a kind is, in the first sentence of its documentation."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
