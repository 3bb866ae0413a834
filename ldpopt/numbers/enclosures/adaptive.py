"""One real number to nearly all digits of a float64: a formula over balls, with more bits until its ball is narrow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ldpopt.numbers.enclosures.exact import float_above, float_below, precision

if TYPE_CHECKING:
    from flint import arb

__all__ = ["enclosed"]

START_BITS, MAX_BITS = 64, 4096
"""The precision of the first attempt, doubled up to the last one."""

GUARD_BITS = 64
"""Bits beyond the accuracy that a formula aims at: they cover exponents of up to 2**40 and the sums of its terms."""

NARROW_RTOL = 2.0**-46
"""Relative width of a narrow enclosure."""


def enclosed(formula: Callable[[int], arb], narrow: float = NARROW_RTOL) -> tuple[float, float]:
    """Return floats (low, high) around the number that a formula gives at every precision.

    Parameters
    ----------
    formula : Maps the bits of accuracy to aim at to a ball around the number.
    narrow : The relative width that ends the attempts; they also end at `MAX_BITS`.

    >>> from flint import arb
    >>> low, high = enclosed(lambda bits: (1 + arb(1e-30)).log())
    >>> low <= 1e-30 <= high, high / low - 1 < 1e-13
    (True, True)
    """
    low, high, bits = -math.inf, math.inf, START_BITS
    while bits <= MAX_BITS:
        with precision(bits + GUARD_BITS):
            ball = formula(bits)
            if ball.is_finite():
                low, high = max(low, float_below(ball)), min(high, float_above(ball))
        if math.isfinite(high - low) and high - low <= narrow * max(abs(low), abs(high)):
            break
        bits *= 2
    return low, high
