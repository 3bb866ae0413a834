"""The gap between a value and a bound, and whether a design is certified: decided here and nowhere else."""

from __future__ import annotations

import math

import numpy as np


def gap_between(value: float, bound: float) -> float:
    """|bound - value|; inf where one of them is not finite."""
    return abs(bound - value) if math.isfinite(bound) and math.isfinite(value) else math.inf


def relative_gap(value: float, bound: float, logarithmic: bool = False) -> float:
    """The gap over |value|; 0 where value and bound agree, and inf where only the value is 0.

    logarithmic : the utility is a logarithm, of which the gap itself is the relative gap.
    """
    gap = gap_between(value, bound)
    if logarithmic or gap in (0.0, math.inf):
        return gap
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.divide(gap, abs(value))) if value else math.inf


def is_certified(value: float, bound: float, tolerance: float, error: bool, logarithmic: bool) -> bool:
    """Whether a proved bound is finite, on its side of the value, and within the relative tolerance of it.

    error : less is better, so that the bound belongs below the value, not above it.
    """
    if not (math.isfinite(value) and math.isfinite(bound)):
        return False
    if not (bound <= value if error else value <= bound):
        return False
    return relative_gap(value, bound, logarithmic) <= tolerance
