"""Golden-section search in mpmath, for references in high precision."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
from mpmath import mpf


def least_value(value: Callable[[mpf], mpf], low: mpf, high: mpf, steps: int) -> mpf:
    """The least value found of a function with one valley between `low` and `high`, in the digits at hand."""
    short = (3 - mpmath.sqrt(5)) / 2
    a, b = low + (high - low) * short, high - (high - low) * short
    at_a, at_b = value(a), value(b)
    for _ in range(steps):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = low + high - b
            at_a = value(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + high - a
            at_b = value(b)
    return min(at_a, at_b)
