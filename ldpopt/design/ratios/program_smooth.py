"""The ratio-labelled program with divergences between rows, by interior-point methods.

    max  sum_i c_i . q_i   s.t.  sum_i q_i = 1  (lambda),  q_i >= 0  (z),  the terms of `row_pairs`  (nu).

As a cone program it has a slack for each pair and label, and where many pairs bind at once solvers stop early or fail.
Here each pair has one slack and one price, and constant columns with their prices are a strictly feasible start.

`smooth_program` is for few labels under any terms: a Newton step is one linear system in all columns, whatever the
number of pairs. `moment_program` is for many labels under moments alone: a step eliminates the k numbers of each label
separately, and the system that is left is in the prices.

The largest gains of columns above given prices: one small concave program for each label, all of them at once.

    max  c_i . q - (what q pays for the pairs)   s.t.  w.q = 1 (theta_i),  q >= 0,  the sides of `barrier`,

with fixed prices of the rows, already subtracted from c_i, and of the pairs. The tangent planes of psi at the optimum,
and the prices of the excesses, turn theta_i w into a bound for the whole program.

`tried_everywhere` tries the prices of a program with few labels at all likelihood ratios: where columns gain, and what
is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import Term
from ldpopt.design.problems.reduction import Pair, excess_at, values_of
from ldpopt.design.ratios.program import chord_gains, parted_knots
from ldpopt.design.ratios.program_barrier import (
    GROWTH,
    LAG,
    Inside,
    Iterate,
    Linear,
    Pairs,
    PairsPriced,
    cholesky,
    largest,
    longest_step,
)
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.divergences import FDivergence
from ldpopt.numbers.tolerances import LATE_GAP
from ldpopt.values.distribution import Array, Index

NEWTON_STEPS, MOMENT_STEPS = 120, 150  # The most Newton steps of either program
START = 4.0  # The first gap, in units of the optimum
CLOSE_BOUND = 0.2  # Where constraints keep rows closer than this, columns are nearly constant, and prices begin small


def smooth_program(gains: Array, terms: Sequence[Term], accuracy: float = 1e-9) -> PairsPriced:
    """Solve for `gains` (n, k) in units of the optimum, to a duality gap of about `accuracy`.

    Returns the best iterate, which is only nearly feasible and nearly dual feasible.
    """
    n, k = gains.shape
    pairs = Pairs(terms, k)
    q = np.full((n, k), 1 / n)
    if pairs.tv_bound < CLOSE_BOUND:
        inside, rows = Inside.middle(pairs, q, START / (n * k + len(pairs.left))), gains.mean(axis=0)
    else:
        # Prices above every label's gains; a label that is far below them begins small.
        rows = gains.max(axis=0)
        rows = rows + 0.1 * max(float(np.median((rows - gains).mean(axis=1))), 1.0)
        z = rows - gains
        q = np.tile((1 / z.mean(axis=1) / (1 / z.mean(axis=1)).sum())[:, None], k)
        inside = replace(Inside.middle(pairs, q, float((q * z).mean())), z=z)
    s = np.ones(len(pairs.left))
    nu = float((inside.q * inside.z).mean()) / s
    best, least = _Point(pairs, gains, inside, s, nu, rows).descended(accuracy, NEWTON_STEPS)
    return _priced(pairs, best.inside.q, best.inside.z, best.nu, best.rows, least)


def moment_program(gains: Array, terms: Sequence[Moment], accuracy: float = 1e-9) -> PairsPriced:
    """The same for moments alone, whatever the number of labels."""
    n, k = gains.shape
    pairs = Pairs(terms, k)
    q, s = np.full((n, k), 1 / n), np.ones(len(pairs.left))
    rows = gains.max(axis=0) + 0.1 * max(float(np.ptp(gains, axis=0).max()), 1.0)
    z = rows - gains
    first = _Moments(pairs, gains, q, z, s, float((q * z).mean()) * s, rows)
    best, least = first.descended(accuracy, MOMENT_STEPS)
    return _priced(pairs, best.q, best.z, best.nu, best.rows, least)


def _priced(pairs: Pairs, q: Array, z: Array, nu: Array, rows: Array, gap: float) -> PairsPriced:
    return PairsPriced(q, rows, pairs.split(nu / pairs.caps), (q * z).sum(axis=1) / q.sum(axis=1), gap)


class _Point(Iterate):
    """An iterate of `smooth_program`."""

    def __init__(self, pairs: Pairs, gains: Array, inside: Inside, s: Array, nu: Array, rows: Array) -> None:
        self.pairs, self.gains, self.inside, self.s, self.nu, self.rows = pairs, gains, inside, s, nu, rows
        self.linear = Linear.of(pairs, inside, nu)
        self.left = self.linear.left(gains - rows)
        self.over = 1 - self.linear.spent - s
        self.lack = 1 - inside.q.sum(axis=0)
        products = [*inside.sides(pairs), (s, nu)]
        self.gap = sum(float((value * price).sum()) for value, price in products)
        self.count = sum(value.size for value, _ in products)
        self.off = largest(self.left, inside.by_zero + inside.by_excess - nu[pairs.count :])
        self.far = largest(self.over, self.lack)
        # Where rows are close, columns are nearly constant, and differences between inputs count for less.
        with np.errstate(all="ignore"):
            mean = self.left.mean(axis=1, keepdims=True)
            unpaid = np.maximum(mean + pairs.tv_bound * np.abs(self.left - mean), 0.0).max(axis=0).sum()
            self.missing = float(unpaid + np.abs(self.lack) @ np.abs(rows) + np.abs(self.over) @ nu)

    @cached_property
    def newton(self) -> _Newton:
        return _Newton(self)

    def toward(self, mu: float) -> tuple[float, Callable[[float], _Point]]:
        by, ds, dnu, drows = self.newton.step(mu)
        length = longest_step([*self.inside.limits(self.pairs, by), (self.s, ds), (self.nu, dnu)])
        return float(length), lambda size: _Point(
            self.pairs, self.gains, self.inside.moved(size, by), self.s + size * ds, self.nu + size * dnu,
            self.rows + size * drows,
        )  # fmt: skip


_SUM = "ip,jp,px->xij"


@lru_cache(maxsize=1000)
def _order(labels: int, pairs: int, inputs: int) -> Any:
    """The order in which `_SUM` is fastest, False for all at once: to look for it takes longer than the sum."""
    each = np.empty((labels, pairs))
    path, _ = np.einsum_path(_SUM, each, each, np.empty((pairs, inputs)), optimize=True)
    return path if len(path) > 2 else False


def _summed(each: Array, on: Array) -> Array:
    """(k, n, n) the products of what pairs do to labels (n, pairs), summed for the input (pairs, k) of each pair."""
    return np.asarray(np.einsum(_SUM, each, each, on, optimize=_order(*each.shape, on.shape[1])))


class _Newton:
    """The system of a step in the columns, in units of them, with the prices of pairs eliminated."""

    def __init__(self, point: _Point) -> None:
        self.point, self.linear = point, point.linear
        pairs, linear, q = point.pairs, point.linear, point.inside.q
        n, k = q.shape
        self.loose = point.s / point.nu + linear.loose
        # The contribution of two labels and a pair, (n, n, pairs), belongs to the entries of the pair's inputs.
        tight = np.sqrt(1 / self.loose)
        on_left, on_right = linear.on_left * tight, linear.on_right * tight
        whole = np.zeros((n, k, n, k))
        inputs = np.arange(k)
        whole[:, inputs, :, inputs] += _summed(on_left, pairs.on[0])
        whole[:, inputs, :, inputs] += _summed(on_right, pairs.on[1])
        for part in pairs.parts:
            both = np.einsum("ip,jp->pij", on_left[:, part], on_right[:, part])
            whole[:, pairs.left[part], :, pairs.right[part]] += both
            whole[:, pairs.right[part], :, pairs.left[part]] += both.transpose(0, 2, 1)
        labels = np.arange(n)
        whole[labels, :, labels, :] += linear.block
        whole *= q[:, :, None, None] * q
        # The first unknown of a label is the growth of its whole column, along which psi has no curvature.
        growth = np.einsum("ip,jp->ij", linear.levels / self.loose, linear.levels)
        growth[labels, labels] += (linear.along * q).sum(axis=1)
        tied = np.stack([pairs.gather(w * linear.on_left, w * linear.on_right) for w in linear.levels / self.loose])
        tied[labels, labels] += linear.along
        tied *= q
        whole[:, 0] = tied
        whole[:, :, :, 0] = tied.transpose(1, 2, 0)
        whole[:, 0, :, 0] = growth
        self.matrix = whole.reshape(n * k, n * k)
        self.lower = cholesky(self.matrix)
        rows = np.tile(np.eye(k), (n, 1, 1)) * q[:, :, None]
        rows[:, 0] = q
        self.rows = rows.reshape(n * k, k).T
        self.half = scipy.linalg.solve_triangular(self.lower, self.rows.T, lower=True)
        self.whole = cholesky(self.half.T @ self.half)

    def step(self, mu: float) -> tuple[Inside, Array, Array, Array]:
        """The changes of columns with their slacks, of the caps' slacks, and of both kinds of prices."""
        point, linear, pairs = self.point, self.linear, self.point.pairs
        aims = linear.aims(mu)
        right, on_slack, on_least = linear.right(point.left, aims)
        on_cap = mu / point.nu - point.s
        over = point.over - on_cap
        over[pairs.count :] -= (on_slack / linear.rate).sum(axis=0)
        eased = over / self.loose
        dq, drows = self.solve(right + pairs.gather(linear.on_left * eased, linear.on_right * eased), point.lack)
        along = (linear.on_left * dq[:, pairs.left] + linear.on_right * dq[:, pairs.right]).sum(axis=0)
        dnu = (along - over) / self.loose
        return linear.step(dq, dnu, aims, on_slack, on_least), on_cap - point.s / point.nu * dnu, dnu, drows

    def solve(self, wanted: Array, lack: Array) -> tuple[Array, Array]:
        """The columns' and the rows' changes, refined once."""
        q = self.point.inside.q
        first = wanted * q
        first[:, 0] = first.sum(axis=1)
        first, short = first.ravel(), lack
        x, y = np.zeros(first.shape), np.zeros(len(lack))
        for _ in range(2):
            off, missing = first - self.matrix @ x - self.rows.T @ y, short - self.rows @ x
            if not np.isfinite(off).all():
                raise np.linalg.LinAlgError("the iterate is at the edge of what floats hold")
            inner = scipy.linalg.solve_triangular(self.lower, off, lower=True)
            more = scipy.linalg.cho_solve((self.whole, True), self.half.T @ inner - missing)
            x = x + scipy.linalg.solve_triangular(self.lower, inner - self.half @ more, lower=True, trans=1)
            y = y + more
        changes = x.reshape(q.shape)
        changes[:, 1:] += changes[:, :1]
        return changes * q, y


class _Moments(Iterate):
    """An iterate of `moment_program`."""

    patience = MOMENT_STEPS  # where the utility is infinite, gains are so uneven that nothing improves for many steps

    def __init__(self, pairs: Pairs, gains: Array, q: Array, z: Array, s: Array, nu: Array, rows: Array) -> None:
        self.pairs, self.gains, self.q, self.z, self.s, self.nu, self.rows = pairs, gains, q, z, s, nu, rows
        level, self.on_left, self.on_right, self.bend, self.t = pairs.psi(q)
        with np.errstate(all="ignore"):
            self.dual = gains - rows - pairs.gather(nu * self.on_left, nu * self.on_right) + z
        self.over = 1 - level.sum(axis=0) - s
        self.gap = float((q * z).sum() + s @ nu)
        self.count = q.size + len(s)
        self.off, self.far = largest(self.dual), largest(self.over)
        with np.errstate(all="ignore"):
            unpaid = np.maximum(self.dual - z, 0.0).max(axis=0).sum()
            self.missing = float(unpaid + np.abs(1 - q.sum(axis=0)) @ np.abs(rows) + np.abs(self.over) @ nu)

    def settled(self, accuracy: float) -> bool:
        return self.gap <= accuracy and self.off <= accuracy

    def toward(self, mu: float) -> tuple[float, Callable[[float], _Moments]]:
        q, z, s, nu = self.q, self.z, self.s, self.nu
        dq, dnu, drows = self.solved(self.dual + mu / q - z, self.over - mu / nu + s, 1 - q.sum(axis=0))
        dz, ds = mu / q - z - z / q * dq, mu / nu - s - s / nu * dnu
        length = longest_step([(q, dq), (z, dz), (s, ds), (nu, dnu)])
        return float(length), lambda size: _Moments(
            self.pairs, self.gains, q + size * dq, z + size * dz, s + size * ds, nu + size * dnu,
            self.rows + size * drows,
        )  # fmt: skip

    @cached_property
    def system(self) -> tuple[Array, Array, Array]:
        """The inverse roots of the labels' blocks (n, k, k), and the system that is left, in units of the columns."""
        q, pairs, t = self.q, self.pairs, self.t
        n, k = q.shape
        diagonal = np.arange(k)
        curve, weighted = np.zeros((n, k, k)), self.bend * self.nu
        for part in pairs.parts:  # the pairs of a term are distinct, so that no entry is met twice
            curve[:, pairs.left[part], pairs.right[part]] -= (weighted * t)[:, part]
            curve[:, pairs.right[part], pairs.left[part]] -= (weighted * t)[:, part]
        curve[:, diagonal, diagonal] += pairs.gather(weighted, weighted * t * t)
        block = curve * q[:, :, None] * q[:, None, :]
        block[:, diagonal, diagonal] += q * self.z
        root = np.linalg.inv(cholesky(block)) * q[:, None, :]
        wide = root[:, :, pairs.left] * self.on_left[:, None, :] + root[:, :, pairs.right] * self.on_right[:, None, :]
        wide = np.concatenate([wide, root], axis=2).reshape(n * k, -1)
        whole = wide.T @ wide
        own = np.arange(len(self.s))
        whole[own, own] += self.s / self.nu
        return root, wide, cholesky(whole)

    def solved(self, b: Array, over: Array, lack: Array) -> tuple[Array, Array, Array]:
        """The changes of q, nu and the rows."""
        root, wide, lower = self.system
        inner = np.einsum("nij,nj->ni", root, b).ravel()
        right = wide.T @ inner - np.concatenate([over, lack])
        if not np.isfinite(right).all():
            raise np.linalg.LinAlgError("the iterate is at the edge of what floats hold")
        y = scipy.linalg.cho_solve((lower, True), right)
        rest = (inner - wide @ y).reshape(b.shape)
        return np.einsum("nji,nj->ni", root, rest), y[: len(over)], y[len(over) :]


PRICE_STEPS = 80
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
    for _ in range(PRICE_STEPS):
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
