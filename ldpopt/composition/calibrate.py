"""Calibration with exact composition: the largest epsilon or count that still meets a target, rounded down."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.composition.compose import ComposedPair
from ldpopt.composition.mechanism import as_pair
from ldpopt.composition.parametric import ParametricPair
from ldpopt.composition.totals import MOST, largest_integer
from ldpopt.distribution import positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.privacy.claims import ApproximateDP, PureDP, need
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.rounding import toward_privacy
from ldpopt.tolerances import MAXIMUM_EPSILON, MINIMUM_EPSILON


def largest_epsilon(target: ApproximateDP, count: int, erasure: float = 0.0) -> PureDP:
    """The largest epsilon, in nats, such that `count` epsilon-DP mechanisms together meet `target`.

    erasure : in [0, 1]; the total variation of each mechanism is (1 - erasure) tanh(epsilon/2), so 0 adds no limit.
    The result is the largest up to a relative 1e-9; its composition was computed and meets the target.
    Raises `InvalidInput` if no epsilon does.

    >>> round(largest_epsilon(ApproximateDP(1.0, 1e-6), 100).epsilon, 6)
    0.024011
    """
    target, count = need(ApproximateDP, target, "target"), positive_integer(count, "count", maximum=MOST)
    erasure = unit_interval(erasure, "erasure")

    def meets(epsilon: float) -> bool:
        return _meets(_erased(epsilon, erasure), count, target)

    low, high = MINIMUM_EPSILON, MAXIMUM_EPSILON
    if not meets(low):
        raise invalid("target", f"one that {count} mechanisms of epsilon {low:g} meet", target)
    if meets(high):
        return PureDP(high, tight=False, reference="[GI, Thm 2]", budget=True)
    while high - low > 1e-9 * high:
        middle = math.sqrt(low * high) if high > 4 * low else (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return PureDP(toward_privacy(low), tight=True, reference="[GI, Thm 2]", budget=True)


def largest_count(mechanism: Any, target: ApproximateDP, limit: int = 10**6) -> int:
    """The largest number of uses of a mechanism, up to `limit`, that together meet `target`; 0 if one use does not.

    >>> largest_count((0.1,), ApproximateDP(1.0, 1e-6))
    10
    """
    target, limit = need(ApproximateDP, target, "target"), positive_integer(limit, "limit")
    pair = as_pair(mechanism)
    return largest_integer(lambda count: _meets(pair, count, target), limit)


def _meets(pair: FinitePair, count: int, target: ApproximateDP) -> bool:
    return ComposedPair.of([(pair, count)]).delta_at(target.epsilon) <= target.delta


def _erased(epsilon: float, erasure: float) -> FinitePair:
    return ParametricPair.of(epsilon, 0.0, (1 - erasure) * math.tanh(epsilon / 2) if erasure > 0 else None)
