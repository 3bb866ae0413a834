"""The numbers of a certificate, as they must be: finite, of the right shape, and none that proves by being no number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.design.certificates.unproved import Unproved
from ldpopt.distribution import Array, Index


def real_array(values: Any, shape: tuple[int, ...], what: str) -> Array:
    """Finite float64 of exactly this shape, in which -1 stands for any length, or `Unproved`."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{what} are not numbers") from None
    if given.dtype.kind not in "fiu":
        raise Unproved(f"{what} are not numbers")
    made = np.array(given, dtype=np.float64)
    if made.ndim != len(shape) or not all(
        own == asked or asked < 0 for own, asked in zip(made.shape, shape, strict=True)
    ):
        raise Unproved(f"{what} have shape {made.shape}, not {shape}")
    if not np.isfinite(made).all():
        raise Unproved(f"{what} are not all finite")
    return made


def nonnegative_array(values: Any, shape: tuple[int, ...], what: str) -> Array:
    """The same, none below zero."""
    made = real_array(values, shape, what)
    if not (made >= 0).all():
        raise Unproved(f"{what} are not all non-negative")
    return made


def positions(values: Any, what: str) -> Index:
    """A row of whole numbers, of any length and sign, or `Unproved`."""
    try:
        made = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{what} are not whole numbers") from None
    if made.ndim != 1 or (made.size and made.dtype.kind not in "iu"):
        raise Unproved(f"{what} are not whole numbers")
    return made.astype(np.intp)


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
    """Finite float64 in a row of any length but zero, none below zero, or `Unproved`."""
    made = nonnegative_array(values, (-1,), what)
    if not len(made):
        raise Unproved(f"{what} are not a list of numbers")
    return made
