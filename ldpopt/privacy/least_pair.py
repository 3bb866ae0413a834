"""The least pair that dominates several pairs: the concave hull of their test curves (power against size)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ldpopt.distribution import Array
from ldpopt.rounding import ULP

_OUTWARD = 1 + 32 * ULP

_FLAT = 2.0**-10
"""At most this share of the mass with likelihood ratio one is used to cover what rounding may hide there."""


def least_pair(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """(p, q) whose best test of every size is as powerful as the best mixture of tests of `pairs`.

    Each pair is (p, q) with falling likelihood ratios. Masses are summed from the largest ratio down to one, and from
    the smallest up to one, so that rare outcomes with extreme ratios keep their relative accuracy. `_OUTWARD` raises
    every power by more than rounding may lose.
    """
    above, below = [], []
    for p, q in pairs:
        split = int(np.count_nonzero(p > q))  # the ratios above one come first
        above.append(np.stack([_sums(q[:split]), _sums(p[:split])], axis=1))
        below.append(np.stack([_sums(p[split:][::-1]), _sums(q[split:][::-1])], axis=1))
    top, bottom = (_chain(np.concatenate(side)) for side in (above, below))
    excess = max(top[:, 1].sum() + bottom[:, 0].sum(), top[:, 0].sum() + bottom[:, 1].sum()) - 1
    if excess > 256 * ULP:  # nearly equal laws: both ends have taken the mass with ratio one
        top = _shortened(top, float(excess))
    # The mass in the middle has ratio one: the two ends have the same total variation.
    middle = max(0.0, 1 - math.fsum(top[:, 1].tolist()) - math.fsum(bottom[:, 0].tolist()))
    p = np.concatenate([top[:, 1], [middle], bottom[:, 0]])
    return p, np.concatenate([top[:, 0], [middle], bottom[:, 1]])


def _shortened(chain: Array, excess: float) -> Array:
    """A chain whose height is lower by `excess`: its last steps, the flattest ones, are removed."""
    keep = np.clip((chain[:, 1].sum() - excess) - np.cumsum(chain[:, 1]) + chain[:, 1], 0.0, chain[:, 1])
    return np.asarray(chain * (keep / chain[:, 1])[:, None])


def _sums(masses: Array) -> Array:
    """Running sums, accurate to an ulp however many there are, because rounding errors are summed, too."""
    sums = np.cumsum(masses)
    before = np.concatenate([[0.0], sums[:-1]])
    added = sums - before
    lost = (before - (sums - added)) + (masses - added)  # exact [Knuth]
    return np.asarray(sums + np.cumsum(lost))


def _chain(points: Array) -> Array:
    """The steps (dx, dy) of the concave hull of `points` from the origin to the point with the largest y - x, raised.

    The chain ends at the first point whose y - x no other point exceeds by more than rounding. If a later point might
    exceed it within rounding, one flat step is added to cover that. Corners within 16 ulps of a chord are merged into
    it.
    """
    if not len(points):
        return np.empty((0, 2))
    gain, error = points[:, 1] - points[:, 0], 8 * ULP * points[:, 1]
    end = float(points[gain + error >= (gain - error).max(), 0].min())
    kept = points[:, 0] <= end
    most = float((gain + error).max())
    later = ~kept & (gain + error > gain[kept].max())
    if later.any() and points[kept, 1].max() < 1 - 64 * ULP:
        room = max(0.0, 1 - float(points[kept, 1].max()))
        start = end + min(float(points[later, 0].min()) - end, _FLAT * room)
        points = np.append(points[kept], [[start, start + most]], axis=0)
    else:
        points = points[kept]
    points = points * (1.0, _OUTWARD)
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    # Each corner is kept with the steepest slope that leads to it, from its own step or from a corner merged into it.
    chain: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)]
    for x, y in points.tolist():
        if y <= chain[-1][1]:
            continue
        steepest = 0.0
        while len(chain) > 1 and chain[-1][2] <= _slope(chain[-2], x, y) * (1 + 16 * ULP) >= steepest:
            steepest = max(steepest, chain.pop()[2])
        chain.append((x, y, max(steepest, _slope(chain[-1], x, y))))
    return np.diff(np.array(chain)[:, :2], axis=0)


def _slope(start: tuple[float, float, float], x: float, y: float) -> float:
    """The slope from `start` to (x, y), divided by 2**100 so that it cannot overflow."""
    run = (x - start[0]) * 2.0**100
    return (y - start[1]) / run if run else math.inf


def pair_through(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """The symmetric (p, q) whose delta, as a function of e^epsilon, is the lower convex hull of the given points.

    epsilons : (n,) increasing from 0; deltas : (n,), upper bounds on a hockey-stick curve. That curve is convex in
    e^epsilon, so it lies below the hull, and the pair dominates. The delta at the last epsilon becomes the probability
    of an infinite loss.
    """
    t = np.exp(epsilons)
    hull = [0]
    for i in range(1, len(t)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (deltas[a] - deltas[b]) * (t[i] - t[b]) > (deltas[b] - deltas[i]) * (t[b] - t[a]):
                break
            hull.pop()
        hull.append(i)
    t, d = t[hull], np.minimum.accumulate(deltas[hull])
    # The slope of delta at ratio t is minus the probability, under q, of larger ratios.
    beyond = np.append((d[:-1] - d[1:]) / np.diff(t), 0.0)
    q = np.maximum(beyond[:-1] - beyond[1:], 0.0)
    p, q = (t[1:] * q)[::-1], q[::-1]
    infinite = float(d[-1])
    middle = max(0.0, 1 - infinite - math.fsum(p.tolist()) - math.fsum(q.tolist()))
    forward = np.concatenate([[infinite], p, [middle], q[::-1], [0.0]])
    return forward, forward[::-1]
