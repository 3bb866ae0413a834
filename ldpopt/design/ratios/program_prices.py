"""The largest gains of columns above given prices: one small concave program for each label, all of them at once.

    max  c_i . q - (what q pays for the pairs)   s.t.  w.q = 1 (theta_i),  q >= 0,  the sides of `barrier`,

with fixed prices of the rows, already subtracted from c_i, and of the pairs. The tangent planes of psi at the optimum,
and the prices of the excesses, turn theta_i w into a bound for the whole program.

`tried_everywhere` tries the prices of a program with few labels at all likelihood ratios: where columns gain, and what
is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.terms import Term
from ldpopt.design.problems.pair_values import excess_at, values_of
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.ratios.knots import parted_knots
from ldpopt.design.ratios.program import chord_gains
from ldpopt.design.ratios.program_barrier import GROWTH, LAG, Inside, Linear, PairsPriced, longest_step
from ldpopt.design.ratios.program_pairs import Pairs
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.divergences import FDivergence
from ldpopt.numbers.tolerances import LATE_GAP
from ldpopt.values.distribution import Array, Index

STEPS = 80
MAX_IDLE = 30  # The number of steps without progress after which a label is left as it is
MAX_HALVES = 30  # How often, at most, a step is halved where the residuals grow too much


@dataclass(frozen=True, eq=False)
class Best:
    """The best columns (n, k), their gains theta (n,) per unit of w.q, and the prices (n, sticks) of their excesses."""

    columns: Array
    theta: Array
    excess: Array


def best_columns(profits: Array, terms: Sequence[Term], weights: Sequence[Array], mass: Array, accuracy: float) -> Best:
    """The best columns for `profits` (n, k), which are gains less row prices.

    weights : for every term, the prices of its pairs. mass : w (k,) > 0. accuracy : the gap at which to stop.
    """
    n, k = profits.shape
    pairs = Pairs(terms, k)
    none = np.zeros(0)
    nu = pairs.joined(weights) * pairs.caps if len(pairs.caps) else none
    q = np.full((n, k), 1 / mass.sum())
    theta = (profits / mass).max(axis=1, keepdims=True)
    spread = np.maximum(theta - (profits @ np.ones(k) / mass.sum())[:, None], 1e-6 * np.abs(profits).max() + 1e-300)
    theta = theta + 0.1 * spread
    z = theta * mass - profits
    inside = replace(Inside.middle(pairs, q, (q * z).mean(axis=1, keepdims=True)), z=z)
    share = np.full(n, 0.3)
    best, gained = inside, np.full(n, np.inf)
    live, idle = np.arange(n), np.zeros(n, dtype=np.intp)
    tried = _Tried.of(pairs, inside, nu, profits, theta, mass)
    for _ in range(STEPS):
        better = tried.worth < gained[live]
        idle[live] = np.where(tried.worth < gained[live] - accuracy, 0, idle[live] + 1)
        best, gained[live[better]] = best.put(live[better], inside.take(better)), tried.worth[better]
        open_ = (np.maximum(tried.gap, tried.off) > accuracy) & (idle[live] < MAX_IDLE)
        if not open_.any():
            break
        live, inside, theta = live[open_], inside.take(open_), theta[open_]
        stepped = _stepped(pairs, tried.take(open_), nu, profits[live], theta, share[live], accuracy)
        if stepped is None:
            break
        inside, theta, tried, size = stepped
        share[live] = np.where(size < 0.3, 0.5, np.where(size < 0.8, 0.2, 0.08))
    excess = np.minimum(best.by_excess, nu[pairs.count :]) / pairs.caps[pairs.count :]
    return Best(best.q, gained, excess)


def _stepped(
    pairs: Pairs, tried: _Tried, nu: Array, profits: Array, theta: Array, share: Array, accuracy: float
) -> tuple[Inside, Array, _Tried, Array] | None:
    """Every label's next iterate, and the length of its step; None where no step is found."""
    inside, mass = tried.linear.point, tried.mass
    count = sum(value.shape[1] for value, _ in tried.linear.sides)
    late = (tried.gap < LATE_GAP) & (tried.off > LAG * tried.gap)
    mu = np.maximum(np.where(late, 1.0, share) * tried.gap, 0.2 * accuracy)[:, None] / count
    try:
        by, dtheta = tried.step(mu)
    except np.linalg.LinAlgError:
        return None
    limits = inside.limits(pairs, by)
    sound = np.all([np.isfinite(change).all(axis=1) for _, change in limits], axis=0)
    size = np.where(sound, longest_step(limits, 1), 0.0)[:, None]
    by, dtheta = by.only(sound), np.where(sound[:, None], dtheta, 0.0)
    for _ in range(MAX_HALVES):
        new, moved = inside.moved(size, by), theta + size * dtheta
        ahead = _Tried.of(pairs, new, nu, profits, moved, mass)
        bad = ~(ahead.off <= GROWTH * np.maximum(tried.off, 0.1))
        if not bad.any():
            break
        size = np.where(bad[:, None], size / 2, size)
    return new, moved, ahead, size[:, 0]


def _shares(reduced: Array, mass: Array, ratio: float | None) -> Array:
    """(n,) the most that columns gain per unit of mass, for linear gains (n, k), within a ratio or without one."""
    if ratio is None:
        return np.asarray((reduced / mass).max(axis=1))
    theta = reduced.sum(axis=1) / mass.sum()
    for _ in range(60):
        column = np.where(reduced > theta[:, None] * mass, ratio, 1.0)
        more = (reduced * column).sum(axis=1) / (column @ mass)
        if not (more > theta).any():
            break
        theta = np.maximum(theta, more)
    return np.asarray(theta)


@dataclass(frozen=True, eq=False)
class _Tried:
    """An iterate: its Newton system and residuals, and (n,) the gap, the error, and the theta that it proves."""

    linear: Linear
    left: Array
    gap: Array
    off: Array
    worth: Array
    mass: Array

    @classmethod
    def of(cls, pairs: Pairs, inside: Inside, nu: Array, profits: Array, theta: Array, mass: Array) -> _Tried:
        with np.errstate(all="ignore"):
            linear = Linear.of(pairs, inside, nu)
            left = linear.left(profits - theta * mass)
            gap = np.sum([(value * price).sum(axis=1) for value, price in linear.sides], axis=0)
            slack = np.abs(inside.by_zero + inside.by_excess - nu[pairs.count :]).sum(axis=1)
            mean = left.mean(axis=1, keepdims=True)
            off = np.maximum(mean + pairs.tv_bound * np.abs(left - mean), 0.0).max(axis=1) + slack
            # The profits less the tangent planes, in units of the mass: a bound from any columns.
            within = np.minimum(inside.by_excess, nu[pairs.count :]) - inside.by_excess
            worth = _shares(profits - linear.paid - linear.on_sticks(within), mass, pairs.ratio)
        return cls(linear, left, gap, off, np.where(np.isfinite(worth), worth, np.inf), mass)

    def take(self, chosen: npt.NDArray[np.bool_]) -> _Tried:
        """The labels that are `chosen`, (n,)."""
        each = (self.left, self.gap, self.off, self.worth)
        left, gap, off, worth = (values[chosen] for values in each)
        return _Tried(self.linear.take(chosen), left, gap, off, worth, self.mass)

    def step(self, mu: Array) -> tuple[Inside, Array]:
        """The Newton step of every label, and of its theta."""
        linear, mass, inside = self.linear, self.mass, self.linear.point
        aims = linear.aims(mu)
        right, on_slack, on_least = linear.right(self.left, aims)
        block = linear.block * inside.q[:, :, None] * inside.q[:, None, :]
        diagonal = np.einsum("nii->ni", block)
        diagonal *= 1 + 1e-14
        sums = (mass * inside.q)[:, :, None]
        with np.errstate(all="ignore"):
            solved = np.linalg.solve(block, np.concatenate([(right * inside.q)[:, :, None], sums], axis=2))
            lack = 1 - inside.q @ mass
            dtheta = ((sums * solved[:, :, :1]).sum(axis=1) - lack[:, None]) / (sums * solved[:, :, 1:]).sum(axis=1)
            dq = inside.q * (solved[:, :, 0] - dtheta * solved[:, :, 1])
            return linear.step(dq, np.zeros(len(linear.nu)), aims, on_slack, on_least), dtheta


MAX_CUTS = 40  # How often the intervals are cut for one set of prices
MAX_PARTS = 8  # The most parts of an interval at a time
MAX_INTERVALS = 2000  # No further intervals are cut beyond this many


@dataclass(frozen=True, eq=False)
class LabelPrices:
    """Multipliers of the rows, and of some pairs of each term, in units of the optimum, and their cost."""

    rows: Array
    terms: tuple[Any, ...]
    pairs: tuple[Index, ...]
    weights: tuple[Array, ...]
    cost: float

    @classmethod
    def of(cls, terms: Sequence[Term], solved: PairsPriced, least: float) -> LabelPrices:
        """The prices of a solved program, without pairs that cost no more than `least`."""
        pairs, cost = [], float(solved.rows.sum())
        for term, each in zip(terms, solved.weights, strict=True):
            paid = each * term.cap
            pairs.append(np.flatnonzero(paid > least))
            cost += float(paid[pairs[-1]].sum())
        some = tuple(term.take(kept) for term, kept in zip(terms, pairs, strict=True))
        weights = tuple(each[kept] for each, kept in zip(solved.weights, pairs, strict=True))
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
        multipliers, start = [], 0
        for number, (term, pairs, each) in enumerate(zip(prices.terms, prices.pairs, prices.weights, strict=True)):
            if not term.conic and not term.pure:
                own = self.excess[:, start : start + len(term)]
                start += len(term)
                multipliers.append(TermMultiplier(number, pairs, np.clip(own, 0.0, each) * scale))
            elif term.conic:
                multipliers.append(tangent_planes(number, term, pairs, each * scale, self.columns))
        unpaid = float(self.theta[self.closed].max()) if self.closed.any() else 0.0
        return (prices.rows + unpaid * self.mass) * scale, tuple(multipliers)


def tangent_planes(number: int, term: Any, pairs: Index, weights: Array, columns: Array) -> TermMultiplier:
    """The multiplier of a moment's `pairs`, (p,), which have `weights`: tangent planes of psi at the columns (n, k)."""
    top, n = np.exp(min(200.0, 500 / term.order)), len(columns)  # the tangent plane's slopes stay finite
    t = np.clip(columns[:, term.left] / columns[:, term.right], 1e-80, top)
    pair, label = np.tile(np.arange(len(term)), n), np.repeat(np.arange(n), len(term))
    return TermMultiplier(number, pairs, np.stack([pair, label, t.ravel(), np.tile(weights, n)]))


def tried_everywhere(
    f: FDivergence, pair: Pair, prices: LabelPrices, knots: Array, scale: float, value: float, least: float
) -> Tried:
    """Cut the intervals between `knots` until the chords are little above the utility, compared with the other gaps.

    value : the utility of a channel, in units of `scale`. least : an amount that counts as little in any case.
    """
    mass = (pair.p0 + pair.p1) / 2 + 1e-4 / len(pair)
    mass = mass / mass.sum()
    cells: dict[tuple[float, float], tuple[Array, float, float, Array]] = {}
    for _ in range(MAX_CUTS):
        ends = list(zip(knots[:-1].tolist(), knots[1:].tolist(), strict=True))
        new = np.array([place for place, span in enumerate(ends) if span not in cells], dtype=np.intp)
        if not len(new):
            break
        gains = (chord_gains(f, pair, knots) / scale).each[new]
        best = best_columns(gains - prices.rows, prices.terms, prices.weights, mass, least / 4)
        above = (gains * best.columns).sum(axis=1) - values_of(f, pair, best.columns.T) / scale
        for i, place in enumerate(new.tolist()):
            cells[ends[place]] = best.columns[i], float(best.theta[i]), float(above[i]), best.excess[i]
        columns, thetas, chords, excess = (np.array(each) for each in zip(*(cells[span] for span in ends), strict=True))
        height = excess_at(f, knots)
        closed = np.isfinite(height[1:]) & np.isfinite(height[:-1])
        true = np.where(closed, thetas - chords, -np.inf)
        low = float(true.max())
        tried = Tried(knots, columns, thetas, true, closed, excess, mass)
        tolerance = max(least, 0.1 * (prices.cost + low - value))
        over = closed & (thetas - low > tolerance)
        if not over.any() or len(knots) > MAX_INTERVALS:
            break
        # The distance of the chord from the utility falls with the square of the interval's width.
        wanted = np.sqrt(np.maximum(chords, 0.0) / (0.7 * tolerance + 0.5 * np.maximum(low - true, 0.0)))
        finer = parted_knots(knots, np.where(over, np.clip(np.ceil(wanted), 2, MAX_PARTS), 1).astype(np.intp))
        if len(finer) == len(knots):
            break
        knots = finer
    return tried
