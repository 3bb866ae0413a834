"""Guarantees made from an interval that holds the true value: the ends are rounded outward."""

from __future__ import annotations

import math

from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import ULP, down, up


def guarantee(
    notion: str,
    low: float,
    high: float,
    reference: str,
    *,
    exact: bool = True,
    parameters: dict[str, float] | None = None,
) -> Guarantee:
    """The `Guarantee` that the true value lies in [low, high]; each end may be off by a few units in the last place."""
    value = up(high, 16) + 0.0
    if notion in ("hockey_stick", "total_variation"):
        value = min(value, 1.0)
    return Guarantee(notion, value, down(max(low, 0.0), 16), None, exact, reference, parameters or {})


def enlarge(value: float) -> float:
    """A slightly larger epsilon or eta, so that a rounded pair still dominates; the reverse of `toward_privacy`."""
    return value if math.isinf(value) else value + 2.0**-47 + 8 * ULP * value
