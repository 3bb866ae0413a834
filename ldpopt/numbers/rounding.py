"""Directed rounding: a privacy claim is rounded up, and a mechanism is rounded so that it becomes more private."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.numbers.tolerances import TIE_RTOL

__all__ = [
    "SUBNORMAL", "ULP", "bisected", "ceil_digits", "down", "exact_sum", "first_largest", "float_down", "float_up",
    "floor_digits", "sum_up", "toward_privacy", "up",
]  # fmt: skip

ULP = 2.0**-52

SUBNORMAL = 2.0**-1074
"""The smallest positive float. An operation that underflows has at most this absolute error."""


_MAX_DIRECT = 64
"""So many numbers are summed one by one."""


def up(value: float, ulps: float = 4.0) -> float:
    """Return a float not below `value * (1 + ulps * 2**-52)`, for a non-negative `value`.

    Zero and infinity stay. ulps : a bound on the relative rounding error of the computation of `value`, in units of
    2**-52.

    >>> up(0.5) > 0.5, up(0.0), up(float("inf"))
    (True, 0.0, inf)
    """
    if value == 0 or math.isinf(value):
        return value
    # With a whole number of units the factor is exact, so that one step makes up for the rounding of the product.
    return math.nextafter(value * (1.0 + math.ceil(ulps) * ULP), math.inf)


def down(value: float, ulps: float = 4.0) -> float:
    """Return a float not above `value * (1 - ulps * 2**-52)`, for a non-negative `value`."""
    if value == 0 or math.isinf(value):
        return value
    return max(0.0, math.nextafter(value * (1.0 - math.ceil(ulps) * ULP), -math.inf))


def sum_up(*parts: float) -> float:
    """Sum computed parts, each a few ulps off, and round up, even where the parts cancel.

    >>> sum_up(1.0, -1.0) > 0
    True
    """
    return math.fsum((*parts, 16 * ULP * max(map(abs, parts))))


def first_largest(values: npt.NDArray[np.float64], scale: float | None = None) -> int:
    """Return the first position of a largest value; values within `tolerances.TIE_RTOL` are equal.

    The tolerance is relative to `scale`. Results choose the objects that they name (a pair, an output, a set) by this
    function, so that another processor names the same one.
    """
    top = values.max()
    threshold = top if np.isinf(top) else top - TIE_RTOL * (abs(top) if scale is None else scale)
    return int(np.argmax(values >= threshold))


def float_up(exact: Fraction) -> float:
    """Return the smallest float that is not below a fraction."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def float_down(exact: Fraction) -> float:
    """Return the largest float that is not above a fraction."""
    return -float_up(-exact) + 0.0


def exact_sum(values: npt.NDArray[np.float64]) -> Fraction:
    """Sum finite floats without rounding."""
    mantissa, exponent = np.frexp(values)
    parts, powers = (mantissa * 2.0**53).astype(np.int64), exponent.astype(np.int64) - 53
    if parts.size > _MAX_DIRECT:
        parts, powers = _by_power(parts.ravel(), powers.ravel())
    integers, shift = parts.tolist(), powers.tolist()
    lowest_power = min(shift, default=0)
    integer_sum = sum(m << (e - lowest_power) for m, e in zip(integers, shift, strict=True))
    return Fraction(integer_sum << lowest_power) if lowest_power >= 0 else Fraction(integer_sum, 1 << -lowest_power)


def _by_power(
    parts: npt.NDArray[np.int64], powers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The same sum of integers below 2^53 times powers of two, from two integers for each power: two halves."""
    order = np.argsort(powers)
    powers, parts = powers[order], parts[order]
    starts = np.flatnonzero(np.diff(powers, prepend=powers[0] - 1))
    # The halves have 26 and 27 bits and a sign: no sum of fewer than 2^36 of them overflows.
    high, low = parts >> 27, parts & (2**27 - 1)
    power_sums = np.concatenate([np.add.reduceat(low, starts), np.add.reduceat(high, starts)])
    return power_sums, np.concatenate([powers[starts], powers[starts] + 27])


def bisected(holds: Callable[[float], bool], low: float, high: float, gap: float) -> tuple[float, float]:
    """Move (low, high) together to a relative `gap`, or to neighboring floats.

    `holds` remains true at low, as before, and false at high.

    >>> bisected(lambda x: x * x <= 2, 1.0, 2.0, 1e-3)
    (1.4140625, 1.4150390625)
    """
    while high - low > gap * high and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def toward_privacy(epsilon: float) -> float:
    """Return a slightly smaller epsilon, so that a rounded matrix stays within `epsilon`.

    The log of a ratio of entries is off by less than 16 ulps; 2**-47 also covers the outward rounding of the measures.
    """
    return epsilon - min(epsilon / 2, 2.0**-47 + 8 * ULP * epsilon)


def ceil_digits(value: float, digits: int = 6) -> str:
    """Format `value` in `digits` significant digits, rounded up.

    Read back, a printed guarantee is not below the stored one. A number just above a short one, such as 0.5 rounded
    outward, is printed with four more digits, which show the difference.
    """
    if not math.isfinite(value):
        return str(value)
    nearest = f"{value:.{digits}g}"
    if float(nearest) >= value:
        return nearest
    if digits >= 6 and value - float(nearest) <= 1e-9 * abs(value):
        digits += 4
    rounded_value = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value))
    text = f"{float(rounded_value):.{digits}g}"
    return text if float(text) >= value else str(rounded_value)  # subnormal numbers have few digits


def floor_digits(value: float, digits: int = 6) -> str:
    """Format `value` in `digits` significant digits, rounded down."""
    # Read back, a printed budget is not above the stored one.
    text = ceil_digits(-value, digits)
    return text.removeprefix("-") if text.startswith("-") or value == 0 else f"-{text}"
