"""Equality, hashing and pickling by what an object holds: arrays, laws of `scipy.stats`, graphs and tables too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["ByValue", "is_graph", "key"]


class ByValue:
    """Equality, hashing and pickling by what an object holds, including arrays, `scipy.stats` laws and graphs.

    Two objects are equal if they are of one class and hold equal values. Arrays are compared entry by entry, and NaN
    equals NaN. A function equals only itself. Cached values that can be computed again are neither compared nor
    pickled. A read-only array is read-only again after unpickling.

    >>> from ldpopt import LocalDP, MutualInformation
    >>> MutualInformation([0.5, 0.5]) == MutualInformation([0.5, 0.5]), LocalDP(1.0) == LocalDP(2.0)
    (True, False)
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or _held(self) == _held(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, _held(self)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: _packed(value) for name, value in _state(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update((name, _unpacked(value)) for name, value in state.items())


def is_graph(value: Any) -> bool:
    """Whether a value is a networkx graph."""
    return hasattr(value, "nodes") and hasattr(value, "edges") and hasattr(value, "is_directed")


def _state(value: Any) -> dict[str, Any]:
    """The attributes of an object, without cached properties."""
    held = vars(value).items()
    return {name: field for name, field in held if not isinstance(getattr(type(value), name, None), cached_property)}


def _held(value: Any) -> tuple[Any, ...]:
    aside = {f.name for f in fields(value) if not f.compare} if is_dataclass(value) else set()
    return tuple((name, key(content)) for name, content in sorted(_state(value).items()) if name not in aside)


_PLAIN = frozenset({str, int, bool, bytes, type(None)})
"""The types whose values are keys themselves, of which labels are many."""


def key(value: Any) -> Any:
    """A hashable key of any value: the keys of two values are equal exactly if the values hold the same."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if value == value else "nan"
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, Mapping):
        return ("mapping", frozenset((content, key(held)) for content, held in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(key, value))
    if hasattr(value, "dist") and hasattr(value, "args") and hasattr(value, "kwds"):
        return _of_law(value)
    if is_graph(value):
        return _of_graph(value)
    try:
        hash(value)
    except TypeError:
        return _Compared(value)
    return value


def _of_array(array: Any) -> Any:
    if array.dtype.kind in "biu" and (not array.size or max(abs(int(array.max())), abs(int(array.min()))) < 2**53):
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        return ("array", array.shape, tuple(map(key, array.ravel().tolist())))
    plain = array.astype(np.float64) + 0.0  # a negative zero becomes zero
    plain[np.isnan(plain)] = np.nan
    return ("array", plain.shape, plain.tobytes())


def _of_law(law: Any) -> Any:
    """The key of a frozen `scipy.stats` distribution. Its family is compared by value, since each has its own copy."""
    family = law.dist
    if not type(family).__module__.startswith("scipy.stats._"):
        return law  # a family that a user defined: nothing is known about what it holds
    inside = {name: content for name, content in vars(family).items() if name in ("name", "a", "b", "_histogram")}
    return ("law", type(family), key(inside), key(law.args), key(law.kwds))


def _of_graph(graph: Any) -> Any:
    edges = [(frozenset((a, b)) if not graph.is_directed() else (a, b), key(held)) for a, b, held in graph.edges.data()]
    return ("graph", graph.is_directed(), frozenset(graph.nodes), frozenset(edges), len(edges))


class _Compared:
    """The key of a value that cannot be hashed, such as an Arrow table or a data frame: it uses their own equality."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Compared) or type(self.value) is not type(other.value):
            return False
        if self.value is other.value:
            return True
        equals = getattr(self.value, "equals", None)
        same = equals(other.value) if callable(equals) else self.value == other.value
        return isinstance(same, bool | np.bool) and bool(same)


class _ReadOnly:
    """Marks an array or a mapping in a pickle that was read-only."""

    def __init__(self, held: Any) -> None:
        self.held = held


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return _ReadOnly(value)
    if isinstance(value, MappingProxyType):
        return _ReadOnly({name: _packed(content) for name, content in value.items()})
    return tuple(map(_packed, value)) if type(value) is tuple else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, _ReadOnly) and isinstance(value.held, dict):
        return MappingProxyType({name: _unpacked(content) for name, content in value.held.items()})
    if isinstance(value, _ReadOnly):
        value.held.setflags(write=False)
        return value.held
    return tuple(map(_unpacked, value)) if type(value) is tuple else value
