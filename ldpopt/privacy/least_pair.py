"""The least pair that dominates several: the concave hull of their test curves (power against size)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ldpopt.distribution import Array
from ldpopt.rounding import ULP

_OUTWARD = 1 + 32 * ULP

_FLAT = 2.0**-10
"""No more than this of what has ratio one is taken to make up for what rounding may hide there."""


def least_pair(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """(p, q) whose every test is as powerful as the best test of any of `pairs`, and no more than a mixture of them.

    Each pair is (p, q) with the likelihood ratios falling. Masses are summed from the end with the larger ratios
    down to ratio one and from the other end up to it, so that rare telling outcomes keep their relative accuracy;
    `_OUTWARD` raises every power by more than rounding and hulls may lose.
    """
    above, below = [], []
    for p, q in pairs:
        split = int(np.count_nonzero(p > q))  # the ratios above one come first
        above.append(np.stack([_sums(q[:split]), _sums(p[:split])], axis=1))
        below.append(np.stack([_sums(p[split:][::-1]), _sums(q[split:][::-1])], axis=1))
    top, bottom = (_chain(np.concatenate(side)) for side in (above, below))
    excess = max(top[:, 1].sum() + bottom[:, 0].sum(), top[:, 0].sum() + bottom[:, 1].sum()) - 1
    if excess > 256 * ULP:  # so nearly equal that either end takes all that has ratio one for its own
        top = _shortened(top, float(excess))
    # What lies between has ratio one: the two ends gain the same total variation.
    middle = max(0.0, 1 - math.fsum(top[:, 1].tolist()) - math.fsum(bottom[:, 0].tolist()))
    p = np.concatenate([top[:, 1], [middle], bottom[:, 0]])
    return p, np.concatenate([top[:, 0], [middle], bottom[:, 1]])


def _shortened(chain: Array, excess: float) -> Array:
    """A chain without its flattest steps, to a height less by `excess`."""
    keep = np.clip((chain[:, 1].sum() - excess) - np.cumsum(chain[:, 1]) + chain[:, 1], 0.0, chain[:, 1])
    return np.asarray(chain * (keep / chain[:, 1])[:, None])


def _sums(masses: Array) -> Array:
    """Running sums, each to an ulp however many there are: what every addition rounds away is summed too."""
    sums = np.cumsum(masses)
    before = np.concatenate([[0.0], sums[:-1]])
    added = sums - before
    lost = (before - (sums - added)) + (masses - added)  # exact [Knuth]
    return np.asarray(sums + np.cumsum(lost))


def _chain(points: Array) -> Array:
    """The steps (dx, dy) of the concave hull of `points` from the origin to the point with the largest y - x, raised.

    The chain ends at the first point that nothing exceeds by more than the rounding of both, but for one flat step to
    what a later point may add, at most 16 ulps of its own height: beside a height of 1e-13 that is much. A corner
    within 16 ulps of its chord counts as on it, with all that it stands for.
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
    # Each corner with the steepest way to it: its own step, or one to a corner that counts as on that step.
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
    """The slope from `start` to (x, y), at least 1 in its own unit, which is so large that no slope overflows."""
    run = (x - start[0]) * 2.0**100
    return (y - start[1]) / run if run else math.inf


def pair_through(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """The symmetric (p, q) whose delta(epsilon) is the lower convex hull, in e^epsilon, of the given points.

    epsilons : (n,) increasing from 0; deltas : (n,), bounds above on a curve of hockey sticks. That curve is convex in
    e^epsilon, so it lies below the hull, and the pair dominates; what is left at the last epsilon is an infinite loss.
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
