"""The prices of a program with few labels, tried at all likelihood ratios: where columns gain, and what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.design.certificates.intervals import TermMultiplier
from ldpopt.design.constraints.hockey_stick import HockeyStick
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.methods.knots import parted_knots
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.programs.gains import chord_gains, heights, kept
from ldpopt.design.programs.prices import best_columns
from ldpopt.design.programs.smooth import PairsPriced
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence

CUTS = 40
"""How often the intervals are cut for one set of prices."""

PARTS = 8
"""The most parts of an interval at a time."""

MANY = 2000
"""No further intervals are cut beyond this many."""


@dataclass(frozen=True, eq=False)
class LabelPrices:
    """Multipliers of the rows, and of some pairs of each term, in units of the optimum, and their cost."""

    rows: Array
    terms: tuple[Term | Ratio, ...]
    pairs: tuple[Index, ...]
    weights: tuple[Array, ...]
    cost: float

    @classmethod
    def of(cls, terms: Sequence[Term | Ratio], solved: PairsPriced, least: float) -> LabelPrices:
        """The prices of a solved program, without pairs that cost no more than `least`."""
        pairs, cost = [], float(solved.rows.sum())
        for term, each in zip(terms, solved.weights, strict=True):
            paid = np.zeros(0) if isinstance(term, Ratio) else each * term.cap
            pairs.append(np.flatnonzero(paid > least))
            cost += float(paid[pairs[-1]].sum())
        some = tuple(t if isinstance(t, Ratio) else t.take(at) for t, at in zip(terms, pairs, strict=True))
        weights = tuple(each[at] for each, at in zip(solved.weights, pairs, strict=True))
        return cls(solved.rows, some, tuple(pairs), weights, cost)


@dataclass(frozen=True, eq=False)
class Tried:
    """The prices tried on all intervals: for each, the best column (n, k) and its gains beyond the prices.

    theta, true : (n,) the gains by the chord and by the utility itself. closed : (n,) whether the utility is finite at
    both ends of the interval; elsewhere moments pay for the rest. excess : (n, pairs) prices of the excesses of hockey
    sticks. mass : (k,) the weights w; gains are per unit of w.q.
    """

    knots: Array
    columns: Array
    theta: Array
    true: Array
    closed: npt.NDArray[np.bool_]
    excess: Array
    mass: Array

    def peaks(self, least: float) -> npt.NDArray[np.bool_]:
        """(n,) the intervals in which columns gain most beyond the prices; the next program gets their ratios."""
        beside = np.concatenate([[-np.inf], self.true, [-np.inf]])
        high = self.true > max(0.1 * float(self.true.max(initial=0.0)), least)
        return np.asarray(self.closed & (self.true >= beside[:-2]) & (self.true >= beside[2:]) & high)

    def multipliers(self, prices: LabelPrices, scale: float) -> tuple[Array, tuple[TermMultiplier, ...]]:
        """The multipliers of the rows, raised by the largest gain, and of the terms: tangents of psi at the columns."""
        made, n, start = [], len(self.columns), 0
        for number, (term, pairs, each) in enumerate(zip(prices.terms, prices.pairs, prices.weights, strict=True)):
            if isinstance(term, HockeyStick):
                own = self.excess[:, start : start + len(term)]
                start += len(term)
                made.append(TermMultiplier(number, pairs, np.clip(own, 0.0, each) * scale))
            elif isinstance(term, Moment):
                top = np.exp(min(200.0, 500 / term.order))  # the tangent plane's slopes stay finite
                t = np.clip(self.columns[:, term.left] / self.columns[:, term.right], 1e-80, top)
                pair, label = np.tile(np.arange(len(term)), n), np.repeat(np.arange(n), len(term))
                made.append(TermMultiplier(number, pairs, np.stack([pair, label, t.ravel(), np.tile(each * scale, n)])))
        unpaid = float(self.theta[self.closed].max()) if self.closed.any() else 0.0
        return (prices.rows + unpaid * self.mass) * scale, tuple(made)


def tried_everywhere(
    f: FDivergence, pair: Pair, prices: LabelPrices, knots: Array, scale: float, value: float, least: float
) -> Tried:
    """Cut the intervals between `knots` until the chords are little above the utility, compared with the other gaps.

    value : the utility of a channel, in units of `scale`. least : an amount that counts as little in any case.
    """
    mass = (pair.p0 + pair.p1) / 2 + 1e-4 / len(pair)
    mass = mass / mass.sum()
    cells: dict[tuple[float, float], tuple[Array, float, float, Array]] = {}
    for _ in range(CUTS):
        ends = list(zip(knots[:-1].tolist(), knots[1:].tolist(), strict=True))
        new = np.array([at for at, one in enumerate(ends) if one not in cells], dtype=np.intp)
        gains = (chord_gains(f, pair, knots) / scale).each[new]
        found = best_columns(gains - prices.rows, prices.terms, prices.weights, mass, least / 4)
        above = (gains * found.columns).sum(axis=1) - kept(f, pair, found.columns.T) / scale
        for i, at in enumerate(new.tolist()):
            cells[ends[at]] = found.columns[i], float(found.theta[i]), float(above[i]), found.excess[i]
        columns, thetas, chords, excess = (np.array(each) for each in zip(*(cells[one] for one in ends), strict=True))
        height = heights(f, knots)
        closed = np.isfinite(height[1:]) & np.isfinite(height[:-1])
        true = np.where(closed, thetas - chords, -np.inf)
        low = float(true.max())
        tried = Tried(knots, columns, thetas, true, closed, excess, mass)
        tolerance = max(least, 0.1 * (prices.cost + low - value))
        over = closed & (thetas - low > tolerance)
        if not over.any() or len(knots) > MANY:
            break
        # The distance of the chord from the utility falls with the square of the interval's width.
        wanted = np.sqrt(np.maximum(chords, 0.0) / (0.7 * tolerance + 0.5 * np.maximum(low - true, 0.0)))
        finer = parted_knots(knots, np.where(over, np.clip(np.ceil(wanted), 2, PARTS), 1).astype(np.intp))
        if len(finer) == len(knots):
            break
        knots = finer
    return tried
