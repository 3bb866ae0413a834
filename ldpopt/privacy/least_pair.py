"""Pairs of laws made of other things: of several pairs, of points of a curve, of log-ratios; and their parameters.

The least pair that dominates several pairs is the concave hull of their test curves (power against size).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON
from ldpopt.values.distribution import Array, between, distribution, unit_interval
from ldpopt.values.labels import aligned


def nonnegative_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """Return `epsilon` in nats as a float between 0 and `tolerances.MAXIMUM_EPSILON`."""
    expected = f"a number of nats between 0 and {MAXIMUM_EPSILON:g}"
    return between(epsilon, name, expected, 0.0, MAXIMUM_EPSILON)


def largest_eta(epsilon: float, delta: float) -> float:
    """Compute the total variation delta + (1 - delta) tanh(epsilon/2) of (epsilon, delta)-DP."""
    return min(1.0, delta + (1 - delta) * math.tanh(epsilon / 2))


def kept_mass(epsilon: float, delta: float, eta: float | None) -> tuple[float, float]:
    """Compute (delta, 1 - a) of the pair that dominates (epsilon, delta)-DP, eta-TV mechanisms.

    The pair erases with probability a [GI, Thm 2]. 1 - a = (eta - delta)(1 + e^eps) / ((1 - delta)(e^eps - 1)), rounded
    up. An `eta` below `delta` lowers `delta` to `eta`.
    """
    if eta is None:
        return delta, 1.0 if epsilon > 0 else 0.0
    delta = min(delta, eta)
    if eta == delta or epsilon == 0 or delta == 1:
        return delta, 0.0
    implied_eta = (1 - delta) * math.tanh(epsilon / 2)
    kept_share = (eta - delta) / implied_eta if implied_eta > 0 else math.inf  # half of the smallest epsilon underflows
    return delta, min(1.0, max(kept_share * (1 + 8 * ULP), sys.float_info.min))


def checked(epsilon: Any, delta: Any, eta: Any) -> tuple[float, float, float | None]:
    """Check the three parameters and return them as floats; `eta` stays None if it is None."""
    return (
        nonnegative_epsilon(epsilon),
        unit_interval(delta, "delta"),
        None if eta is None else unit_interval(eta, "eta"),
    )


def antipodal_pair(p: Any, q: Any) -> tuple[Array, Array]:
    """Split every outcome in two, so that every log ratio is -epsilon, 0 or epsilon.

    See [DR, Lemma 3.9]. epsilon is the largest |log p/q|, in nats. Outcome x with ratio r = p/q is split into x and k +
    x. Outcome x has the masses q w e^(+-epsilon) and q w for w = (r - 1)/(e^(+-epsilon) - 1). Outcome k + x has q (1 -
    w) in both. Merging x and k + x gives the pair back, so no divergence falls.

    Parameters
    ----------
    p, q : Arrays (k,), two distributions.

    Returns
    -------
    tuple[Array, Array]
        The split distributions, shape (2k,) each.

    Raises
    ------
    InvalidInput
        If a ratio is infinite.

    Examples
    --------
    >>> split_p, split_q = antipodal_pair([0.2, 0.5, 0.3], [0.3, 0.4, 0.3])
    >>> used = split_q > 0
    >>> np.unique(np.log(split_p[used] / split_q[used]).round(6))
    array([-0.405465,  0.      ,  0.405465])
    """
    (p, q), _ = aligned([("p", p), ("q", q)])
    p = distribution(p, "p")
    q = distribution(q, "q", size=len(p))
    if ((p > 0) != (q > 0)).any():
        y = int(np.argmax((p > 0) != (q > 0)))
        raise invalid("pair", "distributions with the same support", f"p = {p[y]}, q = {q[y]}", f"outcome {y}")
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(p > 0, np.log1p((p - q) / q), 0.0)
    epsilon = float(np.abs(loss).max())
    if epsilon == 0:
        return np.append(p, np.zeros(len(p))), np.append(q, np.zeros(len(q)))
    gap = math.expm1(epsilon)
    # p - q = q w (e^(+-epsilon) - 1); for the lower sign 1 - e^-epsilon = gap e^-epsilon.
    telling_q = np.where(p >= q, (p - q) / gap, (q - p) / -math.expm1(-epsilon))
    telling_q = np.minimum(telling_q, q)
    telling_p = telling_q * np.exp(np.where(p >= q, epsilon, -epsilon))
    rest = np.maximum(q - telling_q, 0.0)
    return np.append(telling_p, rest), np.append(telling_q, rest)


_OUTWARD = 1 + 32 * ULP

_MAX_FLAT_FRACTION = 2.0**-10
"""Largest fraction of the mass with likelihood ratio one that covers rounding errors there."""


def least_pair(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Build the pair (p, q) whose tests are as powerful as the best mixtures of tests of `pairs`.

    Every pair is sorted by falling ratio. Masses are summed from both ends to ratio one, so that rare outcomes keep
    their accuracy. `_OUTWARD` covers rounding.
    """
    top_points, bottom_points = [], []
    for p, q in pairs:
        split = int(np.count_nonzero(p > q))  # the ratios above one come first
        top_points.append(np.stack([_sums(q[:split]), _sums(p[:split])], axis=1))
        bottom_points.append(np.stack([_sums(p[split:][::-1]), _sums(q[split:][::-1])], axis=1))
    top, bottom = (_chain(np.concatenate(side)) for side in (top_points, bottom_points))
    excess = max(top[:, 1].sum() + bottom[:, 0].sum(), top[:, 0].sum() + bottom[:, 1].sum()) - 1
    if excess > 256 * ULP:  # nearly equal laws: both ends have taken the mass with ratio one
        top = _shortened(top, float(excess))
    # The mass in the middle has ratio one: the two ends have the same total variation.
    middle = max(0.0, 1 - math.fsum(top[:, 1].tolist()) - math.fsum(bottom[:, 0].tolist()))
    p = np.concatenate([top[:, 1], [middle], bottom[:, 0]])
    return p, np.concatenate([top[:, 0], [middle], bottom[:, 1]])


def _shortened(chain: Array, excess: float) -> Array:
    """A chain whose height is lower by `excess`: its last steps, the flattest ones, are removed."""
    kept_heights = np.clip((chain[:, 1].sum() - excess) - np.cumsum(chain[:, 1]) + chain[:, 1], 0.0, chain[:, 1])
    return np.asarray(chain * (kept_heights / chain[:, 1])[:, None])


def _sums(masses: Array) -> Array:
    """Running sums, accurate to an ulp however many there are, because rounding errors are summed, too."""
    sums = np.cumsum(masses)
    sums_before = np.concatenate([[0.0], sums[:-1]])
    increments = sums - sums_before
    rounding_errors = (sums_before - (sums - increments)) + (masses - increments)  # exact [Knuth]
    return np.asarray(sums + np.cumsum(rounding_errors))


def _chain(points: Array) -> Array:
    """The steps (dx, dy) of the concave hull of `points` from 0 to the first point of the largest y - x, raised.

    If a later point might exceed it within rounding, one flat step covers that. Corners within 16 ulps of a chord are
    removed.
    """
    if not len(points):
        return np.empty((0, 2))
    gain, error = points[:, 1] - points[:, 0], 8 * ULP * points[:, 1]
    end = float(points[gain + error >= (gain - error).max(), 0].min())
    is_kept = points[:, 0] <= end
    largest_gain = float((gain + error).max())
    is_later = ~is_kept & (gain + error > gain[is_kept].max())
    if is_later.any() and points[is_kept, 1].max() < 1 - 64 * ULP:
        remaining_mass = max(0.0, 1 - float(points[is_kept, 1].max()))
        flat_start = end + min(float(points[is_later, 0].min()) - end, _MAX_FLAT_FRACTION * remaining_mass)
        points = np.append(points[is_kept], [[flat_start, flat_start + largest_gain]], axis=0)
    else:
        points = points[is_kept]
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


def _slope(corner: tuple[float, float, float], x: float, y: float) -> float:
    """The slope from `corner` to (x, y), divided by 2**100 so that it cannot overflow."""
    scaled_run = (x - corner[0]) * 2.0**100
    return (y - corner[1]) / scaled_run if scaled_run else math.inf


def pair_through(epsilons: Array, deltas: Array, back: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Build the pair (p, q) whose delta is the lower convex hull of points, (n,) each.

    delta is a function of e^epsilon.

    back : points of the delta of q from p; None for those of p from q.

    The first deltas of both, the total variation, are equal. A hockey stick is convex in e^epsilon, so one below the
    points lies below the hull. The last delta becomes infinite loss.
    """
    hulls = [_hull(epsilons, deltas), _hull(*back) if back else _hull(epsilons, deltas)]
    variation = max(float(d[0]) for _, d in hulls)
    for _, d in hulls:
        d[0] = variation
    hull_masses = [_steps(*hull) for hull in hulls]
    excess = math.fsum(float(total) for p, q, infinite_mass in hull_masses[:1] for total in (infinite_mass, *p)) - 1
    excess += math.fsum(float(q) for q in hull_masses[1][1])
    if excess > 0 and all(len(t) > 1 for t, _ in hulls):
        # The delta at 0 lies above the chord between its neighbors, which bounds a convex curve there, too.
        (t, _), (s, _) = hulls
        for _, d in hulls:
            d[0] = variation - excess / (t[1] / (t[1] - 1) + 1 / (s[1] - 1))
        hull_masses = [_steps(*hull) for hull in hulls]
    (p, q, infinite_mass), (back_p, back_q, back_infinite_mass) = hull_masses
    middle = max(0.0, 1 - infinite_mass - math.fsum(p.tolist()) - math.fsum(back_q.tolist()))
    return (
        np.concatenate([[infinite_mass], p, [middle], back_q[::-1], [0.0]]),
        np.concatenate([[0.0], q, [middle], back_p[::-1], [back_infinite_mass]]),
    )


def _hull(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """The corners (e^epsilon, delta) of the lower convex hull of points."""
    t = np.exp(epsilons)
    corner_indices = [0]
    for i in range(1, len(t)):
        while len(corner_indices) > 1:
            a, b = corner_indices[-2], corner_indices[-1]
            if (deltas[a] - deltas[b]) * (t[i] - t[b]) > (deltas[b] - deltas[i]) * (t[b] - t[a]):
                break
            corner_indices.pop()
        corner_indices.append(i)
    return t[corner_indices], np.minimum.accumulate(deltas[corner_indices])


def _steps(t: Array, d: Array) -> tuple[Array, Array, float]:
    """The masses of p and q with ratios above one, the largest first, and the mass that only p has."""
    # The slope of delta at ratio t is minus the probability, under q, of larger ratios.
    next_slopes = np.append((d[:-1] - d[1:]) / np.diff(t), 0.0)
    q = np.maximum(next_slopes[:-1] - next_slopes[1:], 0.0)
    return (t[1:] * q)[::-1], q[::-1], float(d[-1])
