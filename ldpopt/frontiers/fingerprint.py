"""A checksum of a problem: the same for equal problems in every process, and different for different problems."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from ldpopt.design.utilities.divergence import is_frozen
from ldpopt.divergences import FDivergence

_PROBES = np.concatenate([np.geomspace(1e-6, 1e6, 49), [1.0]])


def fingerprint(*asked: Any) -> str:
    """The SHA-256 of values of any kind, as 64 hexadecimal digits.

    It depends on the bits of numbers and arrays, on the type and the fields of dataclasses and other objects, on the
    nodes and edges of graphs, on the values of divergences, and on the code and the enclosed variables of functions.
    Global variables that a function uses are not included.

    >>> fingerprint(1.0, [2, 3]) == fingerprint(1.0, [2, 3]) != fingerprint(1.0, (2, 3))
    True
    """
    digest = sha256()
    for piece in _pieces(asked, ()):
        digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.hexdigest()


def _pieces(value: Any, above: tuple[int, ...]) -> Iterator[bytes]:
    """The parts of a value, depth first. `above` holds the ids of the values that contain it, so that cycles end."""
    parts = [] if id(value) in above else list(_parts(value))
    yield f"{type(value).__qualname__} of {len(parts)}".encode()
    inner = (*above, id(value))
    for part in parts:
        if isinstance(part, bytes):
            yield part
        else:
            yield from _pieces(part, inner)


def _parts(value: Any) -> Iterator[Any]:
    """The parts of a value: bytes, or values that have parts themselves."""
    if value is None or isinstance(value, (bool, int, str, bytes, complex)):
        yield repr(value).encode()
    elif isinstance(value, float):
        yield value.hex().encode()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield from (value.dtype.str.encode(), repr(value.shape).encode(), value.tobytes())
    elif isinstance(value, (np.generic, np.ndarray)):
        yield from (value.tolist(),) if isinstance(value, np.ndarray) else (value.item(),)
    elif isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, (set, frozenset)):
        yield from (entry.encode() for entry in sorted(fingerprint(entry) for entry in value))
    elif isinstance(value, Mapping):
        yield from ((key, value[key]) for key in sorted(value, key=repr))
    elif isinstance(value, FDivergence):
        yield from (value.name, value.at_zero, value.slope_at_infinity, np.asarray(value.generator(_PROBES)))
    elif isinstance(value, type):
        yield from (value.__module__, value.__qualname__)
        if not value.__module__.startswith("ldpopt."):
            yield from (own for _, own in sorted(vars(value).items()) if isinstance(own, types.FunctionType))
    elif isinstance(value, types.CodeType):
        yield from (value.co_code, value.co_names, value.co_consts)
    elif isinstance(value, types.FunctionType):
        yield from (value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__)
        yield from (cell.cell_contents for cell in value.__closure__ or ())
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif hasattr(value, "nodes") and hasattr(value, "edges"):
        yield from (list(value.nodes(data=True)), list(value.edges(data=True)))
    elif is_frozen(value):
        yield from (value.dist.name, value.args, value.kwds)
    else:
        yield type(value)
        yield from _state(value)


def _state(value: Any) -> Iterator[Any]:
    if is_dataclass(value):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))
    elif hasattr(value, "__dict__"):
        yield from sorted(vars(value).items())
    else:
        names = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
        held = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
        yield from held
        yield getattr(value, "__qualname__", None)
