"""The largest gain of any column at given multipliers, and patterns that attain it: a search, which proves nothing.

A column q with entries in [1, E] gains mu(q.P0, q.P1) - rows.q - sum pairs[x, x'] (q_x - q_x')_+. On an interval of
likelihood ratios mu lies below its chord, which is linear in q, so that a minimum cut bounds the gain there
(`certificates.minimum_cut`); intervals are halved where the bound is too far above what patterns attain.
"""

from __future__ import annotations

import numpy as np

from ldpopt.design.certificates.minimum_cut import Members, Network
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.rounding import ULP

START = 128
"""The number of intervals of ratios to begin with."""

FLOWS = 20_000
"""The most flows for one search."""


def largest_violation(
    f: FDivergence,
    p0: Array,
    p1: Array,
    rows: Array,
    pairs: Array,
    ratio: float,
    accuracy: float,
    most: int = FLOWS,
) -> tuple[float, Members]:
    """An upper bound, within `accuracy`, on the largest of 0 and the gain of any column q in [1, E]^n.

    The gain of q is mu(q.P0, q.P1) - rows.q - sum pairs[x, x'] (q_x - q_x')_+. The second result holds the patterns
    (n, found) that were seen to gain more than `accuracy`.
    """
    with np.errstate(divide="ignore"):
        ratios = p0 / p1
    low, high = max(float(ratios.min()), 1 / ratio) * (1 - 1e-9), min(float(ratios.max()), ratio) * (1 + 1e-9)
    ends = np.geomspace(low, high, START + 1)
    network = Network(pairs)
    left, right = ends[:-1], ends[1:]
    moved = np.zeros((START, len(rows)))
    attained, closed, flows = 0.0, 0.0, 0
    found = [np.zeros(len(rows), dtype=bool)]
    while True:
        chords, sizes = _chords(f, left, right, p0, p1)
        profits = chords - rows
        # The rounding error of these sums, at most; no entry is larger than E times its parts.
        hidden = (np.log2(len(rows)) + 24) * ULP * ratio * (sizes + 2 * np.abs(rows).sum() + 2 * pairs.sum())
        level = attained + np.maximum(accuracy, hidden)
        bound = _gain(profits - moved, ratio)
        tried = np.flatnonzero(bound > level)[: most - flows]
        flows += len(tried)
        out, sides = network.route(profits[tried])
        better = _gain(profits[tried] - out, ratio)
        nearer = better < bound[tried]
        bound[tried[nearer]], moved[tried[nearer]] = better[nearer], out[nearer]
        for side in sides:
            gain = column_gain(f, p0, p1, rows, pairs, np.where(side, ratio, 1.0))
            attained = max(attained, gain)
            if gain > accuracy:
                found.append(side)
        # Shorter intervals than 2^-34 would measure the rounding of their own ends.
        wide = (bound > np.maximum(level, attained + accuracy)) & (right - left > 2.0**-34 * right)
        closed = max(closed, float((bound + hidden)[~wide].max(initial=0.0)))
        if not wide.any() or flows == most:
            return max(closed, float((bound + hidden).max())), np.array(found).T
        left, right, moved = left[wide], right[wide], moved[wide]
        middle = np.sqrt(left * right)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        moved = np.concatenate([moved, moved])


def column_gain(f: FDivergence, p0: Array, p1: Array, rows: Array, pairs: Array, column: Array) -> float:
    """The gain of one column at the multipliers."""
    cut = np.maximum(column[:, None] - column, 0.0)
    return float(f.excess(column @ p0, column @ p1) - column @ rows - (pairs * cut).sum())


def _chords(f: FDivergence, left: Array, right: Array, p0: Array, p1: Array) -> tuple[Array, Array]:
    """(n, k) linear utilities above mu at columns whose ratio is in [left, right], the chords of f; and their sizes."""
    one = np.ones_like(left)
    f_left, f_right = f.excess(left, one), f.excess(right, one)
    slope = (f_right - f_left) / (right - left)
    level = f_left - slope * left
    size = np.abs(slope) * p0.sum() + (np.abs(f_left) + np.abs(slope) * left) * p1.sum()
    return np.asarray(slope[:, None] * p0 + level[:, None] * p1), np.asarray(size)


def _gain(left: Array, ratio: float) -> Array:
    """The most that a column with entries in [1, E] gains from profits `left` (..., k), E = `ratio`."""
    return np.asarray(left.sum(axis=-1) + (ratio - 1) * np.maximum(left, 0.0).sum(axis=-1))
