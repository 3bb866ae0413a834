"""Bounds on suprema over all orders, from evaluations of the privacy loss's cumulant K(s) = log E exp(s (Z - E Z)).

K is convex, so between two evaluations it lies below the chord, and finitely many bound the supremum on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import pairwise

from ldpopt.tolerances import CONCENTRATION_GAP

Interval = tuple[float, float]
Cumulant = Callable[[float], Interval]

_MAXIMUM_SPLITS = 4000


def zero_concentration(cumulant: Cumulant, mean: Interval, largest: float, xi: float, max_order: float) -> Interval:
    """Bounds on sup over orders 1 < 1 + s < max_order of (D_{1+s} - xi)/(1+s) [BS, Def 1.1], D_{1+s} = mean + K(s)/s.

    cumulant, mean : intervals that hold K and the mean loss; largest : the largest loss.
    """

    def value(s: float, k: float, mu: float) -> float:
        return (mu + k / s - xi) / (1 + s)

    def ceiling(a: float, ka: float, b: float, kb: float) -> float:
        slope = (kb - ka) / (b - a)
        rise, intercept = mean[1] + slope - xi, max(slope * a - ka, 0.0)
        s = (intercept + math.sqrt(intercept**2 + intercept * rise)) / rise if rise > 0 else a
        s = min(max(s, a), b)
        return max(value(t, slope * t - intercept, mean[1]) for t in (a, s, b))

    lowest = max(mean[0] - xi, 0.0)
    if math.isinf(largest):
        return lowest, math.inf
    span = max_order - 1
    start = min(1e-12 / (1 + largest), span / 4)
    head = max(mean[1] + cumulant(start)[1] / start - xi, 0.0)  # D is non-decreasing in the order

    def tail(s: float) -> float:
        return max(largest - xi, 0.0) / (1 + s)

    return _bracket(cumulant, lambda s, k: value(s, k, mean[0]), ceiling, start, span, tail, lowest, head)


def subgaussian(cumulant: Cumulant, variance: Interval, loss_range: float) -> Interval:
    """Bounds on tau = sup over s != 0 of sqrt(2 K(s))/|s|, for a centred loss up to `loss_range` [DR, Def 3.3]."""
    lowest = max(variance[0], 0.0)
    if math.isinf(loss_range):
        return math.sqrt(lowest), math.inf

    def ceiling(a: float, ka: float, b: float, kb: float) -> float:
        slope = (kb - ka) / (b - a)
        intercept = max(slope * a - ka, 0.0)
        s = min(max(2 * intercept / slope, a), b) if slope > 0 else a
        return max(2 * (slope * t - intercept) / t**2 for t in (a, s, b))

    low, high = lowest, variance[1]
    start = 1e-11 / loss_range
    # K'' is the variance of the tilted loss, at most exp(2 loss_range |s|) times the one at 0.
    head = variance[1] * math.exp(2 * loss_range * start)
    for side in (cumulant, lambda s: cumulant(-s)):
        part = _bracket(
            side, lambda s, k: 2 * k / s**2, ceiling, start, math.inf, lambda s: 2 * loss_range / s, lowest, head
        )
        low, high = max(low, part[0]), max(high, part[1])
    return math.sqrt(low), math.sqrt(high)


def _bracket(
    cumulant: Cumulant,
    value: Callable[[float, float], float],
    ceiling: Callable[[float, float, float, float], float],
    start: float,
    stop: float,
    tail: Callable[[float], float],
    lowest: float,
    head: float,
) -> Interval:
    """Bounds on the supremum of `value` over [start, stop), by splitting the interval with the highest ceiling."""
    best = lowest
    points = [start]
    while (
        points[-1] < stop
        and (len(points) < 2 or tail(points[-1]) > best * (1 + CONCENTRATION_GAP))
        and points[-1] < 1e200
    ):
        low, _ = cumulant(points[-1])
        best = max(best, value(points[-1], low))
        points.append(min(points[-1] * 4, stop))
    known = {s: cumulant(s) for s in points}
    best = max([best, *(value(s, known[s][0]) for s in points)])
    after = tail(points[-1]) if points[-1] < stop else 0.0
    heap = [(-ceiling(a, known[a][1], b, known[b][1]), a, b) for a, b in pairwise(points)]
    heapify(heap)
    for _ in range(_MAXIMUM_SPLITS):
        if not heap or -heap[0][0] <= best * (1 + CONCENTRATION_GAP):
            break
        bound, a, b = heappop(heap)
        middle = math.sqrt(a * b)
        if not b - a > 1e-7 * a:  # narrower intervals would only resolve rounding
            after = max(after, -bound)
            continue
        known[middle] = cumulant(middle)
        best = max(best, value(middle, known[middle][0]))
        for c, d in ((a, middle), (middle, b)):
            heappush(heap, (-ceiling(c, known[c][1], d, known[d][1]), c, d))
    above = -heap[0][0] if heap else 0.0
    return best, max(best, above, head, after)
