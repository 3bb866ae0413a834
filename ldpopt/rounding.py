"""Directed rounding: a privacy claim is rounded up, and a mechanism is rounded so that it becomes more private."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.tolerances import TIE

ULP = 2.0**-52

SUBNORMAL = 2.0**-1074
"""The smallest positive float. An operation that underflows has at most this absolute error."""


_MAX_DIRECT = 64
"""So many numbers are summed one by one."""


def up(value: float, ulps: float = 4.0) -> float:
    """A float not below `value * (1 + ulps * 2**-52)`, for a non-negative `value`; zero and infinity stay.

    ulps : a bound on the relative rounding error of the computation that gave `value`, in units of 2**-52.

    >>> up(0.5) > 0.5, up(0.0), up(float("inf"))
    (True, 0.0, inf)
    """
    if value == 0 or math.isinf(value):
        return value
    # With a whole number of units the factor is exact, so that one step makes up for the rounding of the product.
    return math.nextafter(value * (1.0 + math.ceil(ulps) * ULP), math.inf)


def down(value: float, ulps: float = 4.0) -> float:
    """A float not above `value * (1 - ulps * 2**-52)`, for a non-negative `value`; zero and infinity stay."""
    if value == 0 or math.isinf(value):
        return value
    return max(0.0, math.nextafter(value * (1.0 - math.ceil(ulps) * ULP), -math.inf))


def sum_up(*parts: float) -> float:
    """A sum of computed parts, rounded up, even where the parts cancel; each part may be off by a few ulps.

    >>> sum_up(1.0, -1.0) > 0
    True
    """
    return math.fsum((*parts, 16 * ULP * max(map(abs, parts))))


def first_largest(values: npt.NDArray[np.float64], scale: float | None = None) -> int:
    """The first position of a largest value, where values within `tolerances.TIE` of it, relatively, count as equal.

    What a result names (a pair, an output, a set) is chosen by it: the first in the order of the indices, so that the
    rounding of another processor names the same one. What a result claims is the largest value itself.
    scale : what the tolerance is relative to; the largest value unless given.

    >>> first_largest(np.array([0.0, 0.3, 0.1 + 0.2])), int(np.argmax([0.0, 0.3, 0.1 + 0.2]))
    (1, 2)
    """
    top = values.max()
    least = top if np.isinf(top) else top - TIE * (abs(top) if scale is None else scale)
    return int(np.argmax(values >= least))


def float_up(exact: Fraction) -> float:
    """The least float that is not below a fraction.

    >>> float_up(Fraction(1, 3)) > Fraction(1, 3) > float_down(Fraction(1, 3))
    True
    """
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def float_down(exact: Fraction) -> float:
    """The largest float that is not above a non-negative number."""
    above = float_up(exact)
    return above if above < math.inf and Fraction(above) == exact else math.nextafter(above, 0.0)


def exact_sum(values: npt.NDArray[np.float64]) -> Fraction:
    """The sum of finite floats, free of rounding.

    >>> exact_sum(np.array([1e300, 1e-300, -1e300])) == Fraction(1e-300)
    True
    """
    mantissa, exponent = np.frexp(values)
    parts, powers = (mantissa * 2.0**53).astype(np.int64), exponent.astype(np.int64) - 53
    if parts.size > _MAX_DIRECT:
        parts, powers = _by_power(parts.ravel(), powers.ravel())
    whole, shift = parts.tolist(), powers.tolist()
    least = min(shift, default=0)
    summed = sum(m << (e - least) for m, e in zip(whole, shift, strict=True))
    return Fraction(summed << least) if least >= 0 else Fraction(summed, 1 << -least)


def _by_power(
    parts: npt.NDArray[np.int64], powers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The same sum of integers below 2^53 times powers of two, from two integers for each power: two halves."""
    order = np.argsort(powers)
    powers, parts = powers[order], parts[order]
    starts = np.flatnonzero(np.diff(powers, prepend=powers[0] - 1))
    # The halves have 26 and 27 bits and a sign: no sum of fewer than 2^36 of them overflows.
    high, low = parts >> 27, parts & (2**27 - 1)
    summed = np.concatenate([np.add.reduceat(low, starts), np.add.reduceat(high, starts)])
    return summed, np.concatenate([powers[starts], powers[starts] + 27])


def toward_privacy(epsilon: float) -> float:
    """A slightly smaller epsilon, so that a float64 matrix built from it stays within `epsilon`.

    The entries of a closed-form channel carry a few units of relative rounding error each, so the log of
    a ratio is off by less than 16 ulps; 2**-47 also covers the outward rounding of the measures.

    >>> 0.999999 < toward_privacy(1.0) < 1.0
    True
    """
    return epsilon - min(epsilon / 2, 2.0**-47 + 8 * ULP * epsilon)


def ceil_digits(value: float, digits: int = 6) -> str:
    """`value` in `digits` significant digits, rounded up: read back, a printed guarantee is not below the stored one.

    Outward rounding can put a number just above a short one, such as 0.5. With six digits or more, such a number is
    printed with four digits more, which show the difference.

    >>> ceil_digits(0.40346601), ceil_digits(0.1), ceil_digits(float("inf"))
    ('0.403467', '0.1', 'inf')
    >>> ceil_digits(up(0.5))
    '0.5000000001'
    """
    if not math.isfinite(value):
        return str(value)
    nearest = f"{value:.{digits}g}"
    if float(nearest) >= value:
        return nearest
    if digits >= 6 and value - float(nearest) <= 1e-9 * abs(value):
        digits += 4
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value))
    text = f"{float(rounded):.{digits}g}"
    return text if float(text) >= value else str(rounded)  # subnormal numbers have few digits


def floor_digits(value: float, digits: int = 6) -> str:
    """`value` in `digits` significant digits, rounded down: read back, a printed budget is not above the stored one.

    >>> floor_digits(0.0243569), floor_digits(-0.1234567), floor_digits(0.0)
    ('0.0243569', '-0.123457', '0')
    """
    text = ceil_digits(-value, digits)
    return text.removeprefix("-") if text.startswith("-") or value == 0 else f"-{text}"
