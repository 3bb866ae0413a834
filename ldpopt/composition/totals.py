"""Sums, unions and counts in rational arithmetic, rounded once, so that n equal items and a count of n always agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from ldpopt.rounding import up

MOST = 2**53
"""The largest number of uses of one mechanism; floats count exactly up to it."""

_EXACT = 64
"""Up to this many items, a product of rational numbers is computed exactly."""


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


def total(parts: Iterable[tuple[float, int]]) -> float:
    """The sum of value * count, computed exactly and then rounded up."""
    exact = Fraction(0)
    for value, n in parts:
        if math.isinf(value):
            return math.inf
        exact += Fraction(value) * n
    return float_up(exact)


def union(deltas: Iterable[tuple[float, int]]) -> float:
    """1 - prod (1 - delta)^count, rounded up: to the next float for few items, by a few units for many."""
    return union_up((Fraction(delta), n) for delta, n in deltas)


def union_up(deltas: Iterable[tuple[Fraction, int]]) -> float:
    """`union` of exact fractions."""
    positive = [(delta, n) for delta, n in deltas if delta > 0]
    if sum(n for _, n in positive) <= _EXACT:
        return min(1.0, float_up(1 - math.prod(((1 - delta) ** n for delta, n in positive), start=Fraction(1))))
    logs = [n * math.log1p(-float(delta)) if delta < 1 else -math.inf for delta, n in positive]
    return min(1.0, up(abs(math.expm1(math.fsum(logs))), 16))


def largest_integer(holds: Callable[[int], bool], limit: int) -> int:
    """The largest count up to `limit` for which a condition holds, 0 for none; beyond it, the condition never holds."""
    low, high = 0, 1
    while high <= limit and holds(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
