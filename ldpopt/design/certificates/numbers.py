"""Checks of the parts of a certificate: objects of the right class, and finite numbers of the right shape.

Anything else raises `Unproved`, and no other error, with a sentence on what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.distribution import Array, Index
from ldpopt.errors import LdpoptError


class Unproved(LdpoptError, RuntimeError):
    """The numbers of a certificate do not prove a bound; the message says why."""


def expect(value: Any, kind: Any, what: str) -> Any:
    """The value, if it is an instance of the class `kind`; raises `Unproved` for any other."""
    if not isinstance(value, kind):
        raise Unproved(f"{what}: expected {kind.__name__}, got {type(value).__name__}")
    return value


def expect_each(values: Any, kind: Any, what: str) -> tuple[Any, ...]:
    """The values, if they are a tuple of instances of `kind`; raises `Unproved` for any other."""
    return tuple(expect(value, kind, what) for value in expect(values, tuple, what))


def count(values: Any) -> int:
    """The number of `values`, for a printed text; 0 for anything but a list, a tuple or an array."""
    listed = isinstance(values, tuple | list) or (isinstance(values, np.ndarray) and values.ndim > 0)
    return len(values) if listed else 0


def real_numbers(values: Any, what: str) -> Array:
    """Finite float64 of any shape, or `Unproved`."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{what} are not numbers") from None
    if given.dtype.kind not in "fiu":
        raise Unproved(f"{what} are not numbers")
    with np.errstate(over="ignore"):
        made = np.array(given, dtype=np.float64)
    if not np.isfinite(made).all():
        raise Unproved(f"{what} are not all finite")
    return made


def real_array(values: Any, shape: tuple[int, ...], what: str) -> Array:
    """Finite float64 of exactly this shape, in which -1 stands for any length, or `Unproved`."""
    made = real_numbers(values, what)
    if made.ndim != len(shape) or not all(
        own == asked or asked < 0 for own, asked in zip(made.shape, shape, strict=True)
    ):
        raise Unproved(f"{what} have shape {made.shape}, not {shape}")
    return made


def nonnegative_array(values: Any, shape: tuple[int, ...], what: str) -> Array:
    """The same, with no entry below zero."""
    made = real_array(values, shape, what)
    if not (made >= 0).all():
        raise Unproved(f"{what} are not all non-negative")
    return made


def nonnegative(value: Any, what: str) -> float:
    """One finite number, not below zero."""
    return float(nonnegative_array(value, (), what))


def increasing(values: Any, what: str) -> Array:
    """Finite numbers in strictly increasing order, at least one."""
    made = real_array(values, (-1,), what)
    if not len(made) or not (np.diff(made) > 0).all():
        raise Unproved(f"{what} do not increase")
    return made


def nonnegative_list(values: Any, what: str) -> Array:
    """A list of at least one finite float64, none below zero, or `Unproved`."""
    made = nonnegative_array(values, (-1,), what)
    if not len(made):
        raise Unproved(f"{what} are none")
    return made


def position(value: Any, limit: int, what: str) -> int:
    """One of the whole numbers 0 to `limit` - 1, or `Unproved`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value < limit:
        raise Unproved(f"{what} is not one of {limit}")
    return int(value)


def positions(values: Any, length: int, limit: int, what: str) -> Index:
    """(length,) whole numbers from 0 to `limit` - 1, any number of them where `length` is -1, or `Unproved`."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{what} are not whole numbers") from None
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise Unproved(f"{what} are not whole numbers in a row")
    if length not in (-1, len(given)):
        raise Unproved(f"{what} are {len(given)}, not {length}")
    if given.size and not (given.min() >= 0 and given.max() < limit):
        raise Unproved(f"{what} are not all below {limit}, and none below 0")
    return given.astype(np.intp) if given.size else np.zeros(0, dtype=np.intp)
