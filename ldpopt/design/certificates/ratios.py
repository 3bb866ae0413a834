"""The certificate under a cap on total variation for any number of inputs: minimum cuts on every interval of ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.intervals import nearly_dominates
from ldpopt.design.certificates.minimum_cut import Members, Network
from ldpopt.design.constraints.base import plain_caps
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.rounding import ULP

START = 128
"""Intervals of ratios to begin with."""


FLOWS = 20_000
"""The most flows for one bound; what is unresolved then makes the bound larger, never wrong."""


ACCURACY = 2e-9
"""How near, relatively, the bound comes to the best one of its multipliers."""


@dataclass(frozen=True, eq=False, repr=False)
class RatioDual(Certificate):
    """Multipliers of epsilon-LDP and eta-TV, proved on every interval of likelihood ratios by a flow.

    rows : (n,) multipliers of the row sums. pairs : (n, n) non-negative multipliers of the TV caps, entry (x, x') for
    columns larger at x than at x'. points : (n, 2) masses that dominate the hypotheses.

    On an interval of ratios the divergence lies below its chord, which is linear in the column; a flow within `pairs`
    then bounds what any column with entries in [1, e^epsilon] gains (`minimum_cut`). The bound needs no optimality of
    the flows, which are found and checked anew by every call. Without a cap `pairs` is zero.
    """

    rows: Array
    pairs: Array
    points: Array

    argument = "weak duality of the ratio-labelled program, a minimum cut on every interval of ratios"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum rows + eta sum pairs, raised by the largest violation over all columns with entries in [1, E]."""
        return arithmetic.of(self._bound())

    def _bound(self) -> float:
        p0, p1 = self.points.T
        if not nearly_dominates(p0, p1, *self.utility.pair):
            return math.inf
        epsilon, eta = plain_caps(self.constraints)
        pairs = np.maximum(self.pairs, 0.0)
        np.fill_diagonal(pairs, 0.0)
        base = float(self.rows.sum() + eta * pairs.sum())
        f, ratio = self.utility.f, math.exp(epsilon)
        violation, _ = largest_violation(f, p0, p1, self.rows, pairs, ratio, ACCURACY * abs(base))
        size = float(np.abs(self.rows).sum() + eta * pairs.sum())
        return base + violation + (len(self.rows) ** 2 + 16) * ULP * size


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

    The gain of q is mu(q.P0, q.P1) - rows.q - sum pairs[x, x'] (q_x - q_x')_+. Also the patterns (n, found) seen to
    gain more than `accuracy`.
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
        # What rounding may hide in these sums, of which no entry is larger than E times its parts.
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
    """What one column gains at the multipliers."""
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
    """The most that a column with entries in [1, E] gains from the profits left."""
    return np.asarray(left.sum(axis=-1) + (ratio - 1) * np.maximum(left, 0.0).sum(axis=-1))
