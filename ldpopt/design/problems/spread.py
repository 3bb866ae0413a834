"""Two-sided bracket for large and continuous alphabets.

Merging inputs restricts the channel, which gives a lower bound. Spreading every input between two points of extremer
likelihood ratio, while its masses under both hypotheses are kept, gives a pair that dominates the hypotheses in
Blackwell's order: whatever a channel can do with the answers, it can do with the points. That gives an upper bound.
On the scale s = P0/(P0+P1), the posterior, it is a mean-preserving spread of the total mass.
"""

from __future__ import annotations

import numpy as np

from ldpopt.design.problems.reduction import Pair
from ldpopt.distribution import Array


def spread(p0: Array, p1: Array, knots: Array) -> Pair:
    """The pair on the posteriors `knots` that dominates (p0, p1).

    p0, p1 : masses (k,). knots : increasing, from the least posterior of the inputs or below to the largest or above.

    >>> pair = spread(np.array([0.2, 0.8]), np.array([0.6, 0.4]), np.array([0.0, 0.5, 1.0]))
    >>> pair.p0.round(3), pair.p1.round(3)
    (array([0. , 0.6, 0.4]), array([0.4, 0.6, 0. ]))
    """
    total = p0 + p1
    used = total > 0
    total, s = total[used], np.clip(p0[used] / total[used], knots[0], knots[-1])
    right = np.clip(np.searchsorted(knots, s), 1, len(knots) - 1)
    up = (s - knots[right - 1]) / (knots[right] - knots[right - 1])
    n = len(knots)
    mass = np.bincount(right, total * up, n) + np.bincount(right - 1, total * (1 - up), n)
    kept = mass > 0
    q0, q1 = knots[kept] * mass[kept], (1 - knots[kept]) * mass[kept]
    return Pair.plain(q0 / q0.sum(), q1 / q1.sum())


WIDER = 1e-6
"""How far the outermost points stand beyond the hypotheses' own posteriors, as a share of their range."""

ROUNDING = 1e-12
"""More than rounding can change a posterior."""

SHARE = 1e-8
"""The share of the mass that goes to the outermost points, so that the pair dominates in spite of rounding."""


def dominating(p0: Array, p1: Array, knots: Array) -> tuple[Array, Array]:
    """The two masses of points near `knots` that dominate the pair (p0, p1), with room for rounding."""
    low, high = float(knots[0]), float(knots[-1])
    # Where the hypotheses are near each other, rounding is a larger share of all that tells them apart.
    share, room = (max(least, ROUNDING / (high - low)) for least in (SHARE, WIDER))
    room *= high - low
    low, high = max(0.0, low - room), min(1.0, high + room)
    inner = spread(p0, p1, np.unique(np.concatenate([[low], knots[1:-1], [high]])))
    # The two outermost points alone, with both hypotheses' masses, are a pair that dominates all others between them.
    up = 2 * (0.5 - low) / (high - low)
    outer0, outer1 = np.array([low * (2 - up), high * up]), np.array([(1 - low) * (2 - up), (1 - high) * up])
    return (
        np.concatenate([(1 - share) * inner.p0, share * outer0]),
        np.concatenate([(1 - share) * inner.p1, share * outer1]),
    )


def knots(p0: Array, p1: Array, cuts: Array, base: int, steps: int, shrink: float = 1.5) -> Array:
    """Posteriors to spread onto, dense where the bound depends on them.

    Spreading an input costs nothing where the channel treats both ends alike, only where the channel changes between
    them. cuts : (c, 2), pairs of posteriors between which the channel changes. The knots approach both ends of each cut
    from either side in `steps` steps, each of which divides the distance by `shrink`. base : the number of further
    knots, half of them even in the range and half in the mass.
    """
    total = p0 + p1
    used = total > 0
    s, total = p0[used] / total[used], total[used]
    order = np.argsort(s, kind="stable")
    s, mass = s[order], np.cumsum(total[order])
    first, last = s[0], s[-1]
    even = np.linspace(first, last, max(2, base - base // 2))
    quantiles = s[np.searchsorted(mass, np.linspace(0, mass[-1], base // 2 + 2)[1:-1])]
    distance = (last - first) * shrink ** -np.arange(1.0, steps + 1)
    near = [np.concatenate([[low, high], low - distance, high + distance]) for low, high in cuts]
    made = np.unique(np.concatenate([even, quantiles, *near]))
    made = made[(made >= first) & (made <= last)]
    # Of points that are closer than rounding, one is kept.
    kept = made[np.concatenate([[True], np.diff(made) > 1e-13])]
    kept[-1] = last
    return np.asarray(kept)
