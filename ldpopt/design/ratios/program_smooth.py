"""The ratio-labeled program with divergences between rows, by interior-point methods.

    max  sum_i c_i . q_i   s.t.  sum_i q_i = 1  (lambda),  q_i >= 0  (z),  the terms of `row_pairs`  (nu).

As a cone program it has one slack per pair and label, and solvers stop early or fail if many pairs bind at once. Here
each pair has one slack and one price, and constant columns with their prices are a strictly feasible start.

`smooth_program` is for few labels under any terms: a Newton step is one linear system in all columns, for any number of
pairs. `moment_program` is for many labels under moments alone: a step eliminates the k numbers of each label
separately, and the remaining system is in the prices.

`best_columns` finds the largest gains of columns above given prices: one small concave program per label, all at once.

max  c_i . q - (the cost of q for the pairs)   s.t.  w.q = 1 (theta_i),  q >= 0,  the sides of `barrier`,

with fixed prices of the rows, already subtracted from c_i, and of the pairs. The tangent planes of psi at the optimum,
and the prices of the excesses, turn theta_i w into a bound for the whole program.

`try_everywhere` tries the prices of a program with few labels at all likelihood ratios. It finds the columns that gain,
and the proved bound.
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
from ldpopt.design.ratios.program import chord_gains, subdivided_knots
from ldpopt.design.ratios.program_barrier import (
    MAX_RESIDUAL_GROWTH,
    MAX_RESIDUAL_PER_GAP,
    InteriorPoint,
    Iterate,
    NewtonStep,
    PairPrices,
    Pairs,
    cholesky,
    largest_residual,
    longest_step,
)
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.divergences import FDivergence
from ldpopt.numbers.tolerances import LATE_GAP
from ldpopt.values.distribution import Array, Index

MAX_SMOOTH_STEPS, MAX_MOMENT_STEPS = 120, 150  # Newton steps of either program
INITIAL_GAP = 4.0  # In units of the optimum
CLOSE_ROWS_BOUND = 0.2  # If constraints keep rows closer than this, columns are nearly constant, and prices start small


def smooth_program(gains: Array, terms: Sequence[Term], accuracy: float = 1e-9) -> PairPrices:
    """Solve for `gains` (n, k) in units of the optimum, to a duality gap of about `accuracy`.

    Returns the best iterate, which is only nearly feasible and nearly dual feasible.
    """
    n, k = gains.shape
    pairs = Pairs(terms, k)
    q = np.full((n, k), 1 / n)
    if pairs.tv_bound < CLOSE_ROWS_BOUND:
        point, rows = InteriorPoint.middle(pairs, q, INITIAL_GAP / (n * k + len(pairs.left))), gains.mean(axis=0)
    else:
        # Prices above every label's gains; a label that is far below them begins small.
        rows = gains.max(axis=0)
        rows = rows + 0.1 * max(float(np.median((rows - gains).mean(axis=1))), 1.0)
        z = rows - gains
        q = np.tile((1 / z.mean(axis=1) / (1 / z.mean(axis=1)).sum())[:, None], k)
        point = replace(InteriorPoint.middle(pairs, q, float((q * z).mean())), z=z)
    s = np.ones(len(pairs.left))
    nu = float((point.q * point.z).mean()) / s
    best, error = _SmoothIterate(pairs, gains, point, s, nu, rows).descend(accuracy, MAX_SMOOTH_STEPS)
    return _prices_of(pairs, best.inside.q, best.inside.z, best.nu, best.rows, error)


def moment_program(gains: Array, terms: Sequence[Moment], accuracy: float = 1e-9) -> PairPrices:
    """Solve the same program for moments alone, for any number of labels."""
    n, k = gains.shape
    pairs = Pairs(terms, k)
    q, s = np.full((n, k), 1 / n), np.ones(len(pairs.left))
    rows = gains.max(axis=0) + 0.1 * max(float(np.ptp(gains, axis=0).max()), 1.0)
    z = rows - gains
    first = _MomentIterate(pairs, gains, q, z, s, float((q * z).mean()) * s, rows)
    best, error = first.descend(accuracy, MAX_MOMENT_STEPS)
    return _prices_of(pairs, best.q, best.z, best.nu, best.rows, error)


def _prices_of(pairs: Pairs, q: Array, z: Array, nu: Array, rows: Array, gap: float) -> PairPrices:
    return PairPrices(q, rows, pairs.split(nu / pairs.caps), (q * z).sum(axis=1) / q.sum(axis=1), gap)


class _SmoothIterate(Iterate):
    """An iterate of `smooth_program`."""

    def __init__(self, pairs: Pairs, gains: Array, interior: InteriorPoint, s: Array, nu: Array, rows: Array) -> None:
        self.pairs, self.gains, self.inside, self.s, self.nu, self.rows = pairs, gains, interior, s, nu, rows
        self.linear = NewtonStep.from_point(pairs, interior, nu)
        self.left = self.linear.left(gains - rows)
        self.over = 1 - self.linear.cap_use - s
        self.lack = 1 - interior.q.sum(axis=0)
        products = [*interior.sides(pairs), (s, nu)]
        self.gap = sum(float((value * price).sum()) for value, price in products)
        self.count = sum(value.size for value, _ in products)
        self.dual_residual = largest_residual(self.left, interior.by_zero + interior.by_excess - nu[pairs.count :])
        self.cap_violation = largest_residual(self.over, self.lack)
        # If rows are close, columns are nearly constant, and differences between inputs count less.
        with np.errstate(all="ignore"):
            mean = self.left.mean(axis=1, keepdims=True)
            unpaid = np.maximum(mean + pairs.tv_bound * np.abs(self.left - mean), 0.0).max(axis=0).sum()
            self.infeasibility = float(unpaid + np.abs(self.lack) @ np.abs(rows) + np.abs(self.over) @ nu)

    @cached_property
    def newton(self) -> _SmoothNewton:
        return _SmoothNewton(self)

    def step_toward(self, mu: float) -> tuple[float, Callable[[float], _SmoothIterate]]:
        direction, ds, dnu, drows = self.newton.step(mu)
        length = longest_step([*self.inside.limits(self.pairs, direction), (self.s, ds), (self.nu, dnu)])
        return float(length), lambda size: _SmoothIterate(
            self.pairs, self.gains, self.inside.moved(size, direction), self.s + size * ds, self.nu + size * dnu,
            self.rows + size * drows,
        )  # fmt: skip


_SUM = "ip,jp,px->xij"


@lru_cache(maxsize=1000)
def _einsum_order(labels: int, pairs: int, inputs: int) -> Any:
    """Return the fastest order of `_SUM`, False for all at once. The search for it takes longer than the sum."""
    operand = np.empty((labels, pairs))
    path, _ = np.einsum_path(_SUM, operand, operand, np.empty((pairs, inputs)), optimize=True)
    return path if len(path) > 2 else False


def _pair_sums(values: Array, is_on_side: Array) -> Array:
    """Sum the products of the values (n, pairs) of labels for the input (pairs, k) of each pair, (k, n, n)."""
    return np.asarray(
        np.einsum(_SUM, values, values, is_on_side, optimize=_einsum_order(*values.shape, is_on_side.shape[1]))
    )


class _SmoothNewton:
    """The system of a step in the columns, in units of them, with the prices of pairs eliminated."""

    def __init__(self, point: _SmoothIterate) -> None:
        self.point, self.linear = point, point.linear
        pairs, linear, q = point.pairs, point.linear, point.inside.q
        n, k = q.shape
        self.loose = point.s / point.nu + linear.loose
        # The contribution of two labels and a pair, (n, n, pairs), belongs to the entries of the pair's inputs.
        tight = np.sqrt(1 / self.loose)
        on_left, on_right = linear.on_left * tight, linear.on_right * tight
        system = np.zeros((n, k, n, k))
        inputs = np.arange(k)
        system[:, inputs, :, inputs] += _pair_sums(on_left, pairs.on[0])
        system[:, inputs, :, inputs] += _pair_sums(on_right, pairs.on[1])
        for part in pairs.parts:
            products = np.einsum("ip,jp->pij", on_left[:, part], on_right[:, part])
            system[:, pairs.left[part], :, pairs.right[part]] += products
            system[:, pairs.right[part], :, pairs.left[part]] += products.transpose(0, 2, 1)
        labels = np.arange(n)
        system[labels, :, labels, :] += linear.block
        system *= q[:, :, None, None] * q
        # The first unknown of a label is the growth of its whole column, along which psi has no curvature.
        growth = np.einsum("ip,jp->ij", linear.levels / self.loose, linear.levels)
        growth[labels, labels] += (linear.along * q).sum(axis=1)
        cross_growth = np.stack(
            [pairs.gather(w * linear.on_left, w * linear.on_right) for w in linear.levels / self.loose]
        )
        cross_growth[labels, labels] += linear.along
        cross_growth *= q
        system[:, 0] = cross_growth
        system[:, :, :, 0] = cross_growth.transpose(1, 2, 0)
        system[:, 0, :, 0] = growth
        self.matrix = system.reshape(n * k, n * k)
        self.lower = cholesky(self.matrix)
        rows = np.tile(np.eye(k), (n, 1, 1)) * q[:, :, None]
        rows[:, 0] = q
        self.rows = rows.reshape(n * k, k).T
        self.half = scipy.linalg.solve_triangular(self.lower, self.rows.T, lower=True)
        self.schur_factor = cholesky(self.half.T @ self.half)

    def step(self, mu: float) -> tuple[InteriorPoint, Array, Array, Array]:
        """Return the changes of columns with their slacks, of the caps' slacks, and of both types of prices."""
        point, linear, pairs = self.point, self.linear, self.point.pairs
        aims = linear.aims(mu)
        right, on_slack, on_least = linear.right(point.left, aims)
        on_cap = mu / point.nu - point.s
        over = point.over - on_cap
        over[pairs.count :] -= (on_slack / linear.rate).sum(axis=0)
        price_change = over / self.loose
        dq, drows = self.solve(
            right + pairs.gather(linear.on_left * price_change, linear.on_right * price_change), point.lack
        )
        pair_changes = (linear.on_left * dq[:, pairs.left] + linear.on_right * dq[:, pairs.right]).sum(axis=0)
        dnu = (pair_changes - over) / self.loose
        return linear.step(dq, dnu, aims, on_slack, on_least), on_cap - point.s / point.nu * dnu, dnu, drows

    def solve(self, right_side: Array, lack: Array) -> tuple[Array, Array]:
        """Solve for the columns' and the rows' changes, refined once."""
        q = self.point.inside.q
        scaled_right = right_side * q
        scaled_right[:, 0] = scaled_right.sum(axis=1)
        scaled_right, row_lack = scaled_right.ravel(), lack
        x, y = np.zeros(scaled_right.shape), np.zeros(len(lack))
        for _ in range(2):
            residual, row_residual = scaled_right - self.matrix @ x - self.rows.T @ y, row_lack - self.rows @ x
            if not np.isfinite(residual).all():
                raise np.linalg.LinAlgError("the iterate is at the edge of what floats hold")
            inner = scipy.linalg.solve_triangular(self.lower, residual, lower=True)
            row_correction = scipy.linalg.cho_solve((self.schur_factor, True), self.half.T @ inner - row_residual)
            x = x + scipy.linalg.solve_triangular(self.lower, inner - self.half @ row_correction, lower=True, trans=1)
            y = y + row_correction
        changes = x.reshape(q.shape)
        changes[:, 1:] += changes[:, :1]
        return changes * q, y


class _MomentIterate(Iterate):
    """An iterate of `moment_program`."""

    patience = MAX_MOMENT_STEPS  # near an infinite utility, gains differ so much that many steps bring no improvement

    def __init__(self, pairs: Pairs, gains: Array, q: Array, z: Array, s: Array, nu: Array, rows: Array) -> None:
        self.pairs, self.gains, self.q, self.z, self.s, self.nu, self.rows = pairs, gains, q, z, s, nu, rows
        level, self.on_left, self.on_right, self.bend, self.t = pairs.psi(q)
        with np.errstate(all="ignore"):
            self.dual = gains - rows - pairs.gather(nu * self.on_left, nu * self.on_right) + z
        self.over = 1 - level.sum(axis=0) - s
        self.gap = float((q * z).sum() + s @ nu)
        self.count = q.size + len(s)
        self.dual_residual, self.cap_violation = largest_residual(self.dual), largest_residual(self.over)
        with np.errstate(all="ignore"):
            unpaid = np.maximum(self.dual - z, 0.0).max(axis=0).sum()
            self.infeasibility = float(unpaid + np.abs(1 - q.sum(axis=0)) @ np.abs(rows) + np.abs(self.over) @ nu)

    def is_accurate(self, accuracy: float) -> bool:
        return self.gap <= accuracy and self.dual_residual <= accuracy

    def step_toward(self, mu: float) -> tuple[float, Callable[[float], _MomentIterate]]:
        q, z, s, nu = self.q, self.z, self.s, self.nu
        dq, dnu, drows = self.solve(self.dual + mu / q - z, self.over - mu / nu + s, 1 - q.sum(axis=0))
        dz, ds = mu / q - z - z / q * dq, mu / nu - s - s / nu * dnu
        length = longest_step([(q, dq), (z, dz), (s, ds), (nu, dnu)])
        return float(length), lambda size: _MomentIterate(
            self.pairs, self.gains, q + size * dq, z + size * dz, s + size * ds, nu + size * dnu,
            self.rows + size * drows,
        )  # fmt: skip

    @cached_property
    def system(self) -> tuple[Array, Array, Array]:
        """The inverse roots of the labels' blocks (n, k, k), and the remaining system, in units of the columns."""
        q, pairs, t = self.q, self.pairs, self.t
        n, k = q.shape
        diagonal = np.arange(k)
        curve, weighted_bend = np.zeros((n, k, k)), self.bend * self.nu
        for part in pairs.parts:  # the pairs of a term are distinct, so every entry is changed once
            curve[:, pairs.left[part], pairs.right[part]] -= (weighted_bend * t)[:, part]
            curve[:, pairs.right[part], pairs.left[part]] -= (weighted_bend * t)[:, part]
        curve[:, diagonal, diagonal] += pairs.gather(weighted_bend, weighted_bend * t * t)
        block = curve * q[:, :, None] * q[:, None, :]
        block[:, diagonal, diagonal] += q * self.z
        root = np.linalg.inv(cholesky(block)) * q[:, None, :]
        factor = root[:, :, pairs.left] * self.on_left[:, None, :] + root[:, :, pairs.right] * self.on_right[:, None, :]
        factor = np.concatenate([factor, root], axis=2).reshape(n * k, -1)
        schur = factor.T @ factor
        price_indices = np.arange(len(self.s))
        schur[price_indices, price_indices] += self.s / self.nu
        return root, factor, cholesky(schur)

    def solve(self, b: Array, over: Array, lack: Array) -> tuple[Array, Array, Array]:
        """Solve for the changes of q, nu and the rows."""
        root, factor, lower = self.system
        inner = np.einsum("nij,nj->ni", root, b).ravel()
        right = factor.T @ inner - np.concatenate([over, lack])
        if not np.isfinite(right).all():
            raise np.linalg.LinAlgError("the iterate is at the edge of what floats hold")
        y = scipy.linalg.cho_solve((lower, True), right)
        rest = (inner - factor @ y).reshape(b.shape)
        return np.einsum("nji,nj->ni", root, rest), y[: len(over)], y[len(over) :]


MAX_PRICING_STEPS = 80
MAX_IDLE_STEPS = 30  # A label without progress in so many steps is not changed further
MAX_HALVINGS = 30  # How often, at most, a step is halved if the residuals grow too much


@dataclass(frozen=True, eq=False)
class BestColumns:
    """The best columns (n, k), their gains theta (n,) per unit of w.q, and the prices (n, sticks) of their excesses."""

    columns: Array
    theta: Array
    excess: Array


def best_columns(
    profits: Array, terms: Sequence[Term], weights: Sequence[Array], mass: Array, accuracy: float
) -> BestColumns:
    """Find the best columns for `profits` (n, k), which are gains less row prices.

    - `weights` : for every term, the prices of its pairs.
    - `mass` : w (k,) > 0.
    - `accuracy` : the gap that ends the search.
    """
    n, k = profits.shape
    pairs = Pairs(terms, k)
    no_prices = np.zeros(0)
    nu = pairs.concatenate(weights) * pairs.caps if len(pairs.caps) else no_prices
    q = np.full((n, k), 1 / mass.sum())
    theta = (profits / mass).max(axis=1, keepdims=True)
    spread = np.maximum(theta - (profits @ np.ones(k) / mass.sum())[:, None], 1e-6 * np.abs(profits).max() + 1e-300)
    theta = theta + 0.1 * spread
    z = theta * mass - profits
    interior = replace(InteriorPoint.middle(pairs, q, (q * z).mean(axis=1, keepdims=True)), z=z)
    share = np.full(n, 0.3)
    best, best_gains = interior, np.full(n, np.inf)
    live_labels, idle_steps = np.arange(n), np.zeros(n, dtype=np.intp)
    iterate = _PricingIterate.from_point(pairs, interior, nu, profits, theta, mass)
    for _ in range(MAX_PRICING_STEPS):
        is_better = iterate.proved_theta < best_gains[live_labels]
        idle_steps[live_labels] = np.where(
            iterate.proved_theta < best_gains[live_labels] - accuracy, 0, idle_steps[live_labels] + 1
        )
        best, best_gains[live_labels[is_better]] = (
            best.put(live_labels[is_better], interior.take(is_better)),
            iterate.proved_theta[is_better],
        )
        is_open = (np.maximum(iterate.gap, iterate.dual_residual) > accuracy) & (
            idle_steps[live_labels] < MAX_IDLE_STEPS
        )
        if not is_open.any():
            break
        live_labels, interior, theta = live_labels[is_open], interior.take(is_open), theta[is_open]
        result = _next_iterate(
            pairs, iterate.take(is_open), nu, profits[live_labels], theta, share[live_labels], accuracy
        )
        if result is None:
            break
        interior, theta, iterate, size = result
        share[live_labels] = np.where(size < 0.3, 0.5, np.where(size < 0.8, 0.2, 0.08))
    excess = np.minimum(best.by_excess, nu[pairs.count :]) / pairs.caps[pairs.count :]
    return BestColumns(best.q, best_gains, excess)


def _next_iterate(
    pairs: Pairs, iterate: _PricingIterate, nu: Array, profits: Array, theta: Array, share: Array, accuracy: float
) -> tuple[InteriorPoint, Array, _PricingIterate, Array] | None:
    """Return every label's next iterate, and the length of its step; None if no step is found."""
    interior, mass = iterate.linear.point, iterate.mass
    count = sum(value.shape[1] for value, _ in iterate.linear.sides)
    is_late = (iterate.gap < LATE_GAP) & (iterate.dual_residual > MAX_RESIDUAL_PER_GAP * iterate.gap)
    mu = np.maximum(np.where(is_late, 1.0, share) * iterate.gap, 0.2 * accuracy)[:, None] / count
    try:
        direction, dtheta = iterate.step(mu)
    except np.linalg.LinAlgError:
        return None
    limits = interior.limits(pairs, direction)
    is_finite = np.all([np.isfinite(change).all(axis=1) for _, change in limits], axis=0)
    size = np.where(is_finite, longest_step(limits, 1), 0.0)[:, None]
    direction, dtheta = direction.only(is_finite), np.where(is_finite[:, None], dtheta, 0.0)
    for _ in range(MAX_HALVINGS):
        new_interior, new_theta = interior.moved(size, direction), theta + size * dtheta
        next_iterate = _PricingIterate.from_point(pairs, new_interior, nu, profits, new_theta, mass)
        is_bad = ~(next_iterate.dual_residual <= MAX_RESIDUAL_GROWTH * np.maximum(iterate.dual_residual, 0.1))
        if not is_bad.any():
            break
        size = np.where(is_bad[:, None], size / 2, size)
    return new_interior, new_theta, next_iterate, size[:, 0]


def _largest_gains(reduced_gains: Array, mass: Array, ratio: float | None) -> Array:
    """Return the largest gains per unit of mass, (n,), of columns within a ratio or without one."""
    if ratio is None:
        return np.asarray((reduced_gains / mass).max(axis=1))
    theta = reduced_gains.sum(axis=1) / mass.sum()
    for _ in range(60):
        column = np.where(reduced_gains > theta[:, None] * mass, ratio, 1.0)
        new_theta = (reduced_gains * column).sum(axis=1) / (column @ mass)
        if not (new_theta > theta).any():
            break
        theta = np.maximum(theta, new_theta)
    return np.asarray(theta)


@dataclass(frozen=True, eq=False)
class _PricingIterate:
    """An iterate: its Newton system and residuals, and (n,) the gap, the error, and the theta that it proves."""

    linear: NewtonStep
    left: Array
    gap: Array
    dual_residual: Array
    proved_theta: Array
    mass: Array

    @classmethod
    def from_point(
        cls, pairs: Pairs, interior: InteriorPoint, nu: Array, profits: Array, theta: Array, mass: Array
    ) -> _PricingIterate:
        with np.errstate(all="ignore"):
            linear = NewtonStep.from_point(pairs, interior, nu)
            left = linear.left(profits - theta * mass)
            gap = np.sum([(value * price).sum(axis=1) for value, price in linear.sides], axis=0)
            slack = np.abs(interior.by_zero + interior.by_excess - nu[pairs.count :]).sum(axis=1)
            mean = left.mean(axis=1, keepdims=True)
            error = np.maximum(mean + pairs.tv_bound * np.abs(left - mean), 0.0).max(axis=1) + slack
            # The profits less the tangent planes, in units of the mass: a bound from any columns.
            price_change = np.minimum(interior.by_excess, nu[pairs.count :]) - interior.by_excess
            proved_theta = _largest_gains(profits - linear.cost - linear.on_sticks(price_change), mass, pairs.ratio)
        return cls(linear, left, gap, error, np.where(np.isfinite(proved_theta), proved_theta, np.inf), mass)

    def take(self, is_chosen: npt.NDArray[np.bool_]) -> _PricingIterate:
        """Return the labels that are `is_chosen`, (n,)."""
        fields = (self.left, self.gap, self.dual_residual, self.proved_theta)
        left, gap, error, proved_theta = (values[is_chosen] for values in fields)
        return _PricingIterate(self.linear.take(is_chosen), left, gap, error, proved_theta, self.mass)

    def step(self, mu: Array) -> tuple[InteriorPoint, Array]:
        """Compute the Newton step of every label, and of its theta."""
        linear, mass, interior = self.linear, self.mass, self.linear.point
        aims = linear.aims(mu)
        right, on_slack, on_least = linear.right(self.left, aims)
        block = linear.block * interior.q[:, :, None] * interior.q[:, None, :]
        diagonal = np.einsum("nii->ni", block)
        diagonal *= 1 + 1e-14
        sums = (mass * interior.q)[:, :, None]
        with np.errstate(all="ignore"):
            solutions = np.linalg.solve(block, np.concatenate([(right * interior.q)[:, :, None], sums], axis=2))
            lack = 1 - interior.q @ mass
            dtheta = ((sums * solutions[:, :, :1]).sum(axis=1) - lack[:, None]) / (sums * solutions[:, :, 1:]).sum(
                axis=1
            )
            dq = interior.q * (solutions[:, :, 0] - dtheta * solutions[:, :, 1])
            return linear.step(dq, np.zeros(len(linear.nu)), aims, on_slack, on_least), dtheta


MAX_CUT_ROUNDS = 40  # Rounds of cuts for one set of prices
MAX_PARTS_OF_INTERVAL = 8  # Parts of an interval per round
MAX_INTERVALS = 2000  # With more intervals, no further ones are cut


@dataclass(frozen=True, eq=False)
class LabelPrices:
    """Multipliers of the rows, and of some pairs of each term, in units of the optimum, and their cost."""

    rows: Array
    terms: tuple[Any, ...]
    pairs: tuple[Index, ...]
    weights: tuple[Array, ...]
    cost: float

    @classmethod
    def from_solution(cls, terms: Sequence[Term], solution: PairPrices, min_cost: float) -> LabelPrices:
        """Return the prices of a solved program, without pairs of cost at most `min_cost`."""
        pairs, cost = [], float(solution.rows.sum())
        for term, term_weights in zip(terms, solution.weights, strict=True):
            costs = term_weights * term.cap
            pairs.append(np.flatnonzero(costs > min_cost))
            cost += float(costs[pairs[-1]].sum())
        reduced_terms = tuple(term.take(selected) for term, selected in zip(terms, pairs, strict=True))
        weights = tuple(term_weights[selected] for term_weights, selected in zip(solution.weights, pairs, strict=True))
        return cls(solution.rows, reduced_terms, tuple(pairs), weights, cost)


@dataclass(frozen=True, eq=False)
class PriceTrial:
    """The prices tried on all intervals: for each, the best column (n, k) and its gains beyond the prices.

    theta, true_gains : (n,) the gains by the chord and by the utility itself.
    closed : (n,) True if the utility is finite at both ends of the interval; otherwise moments pay for the remainder.
    excess : (n, pairs) prices of the excesses of hockey sticks.
    mass : (k,) the weights w; gains are per unit of w.q.
    """

    knots: Array
    columns: Array
    theta: Array
    true_gains: Array
    closed: npt.NDArray[np.bool_]
    excess: Array
    mass: Array

    def peaks(self, min_gain: float) -> npt.NDArray[np.bool_]:
        """Return True, (n,), for intervals with the largest gains beyond the prices; the next program gets their
        ratios.
        """
        padded_gains = np.concatenate([[-np.inf], self.true_gains, [-np.inf]])
        is_high = self.true_gains > max(0.1 * float(self.true_gains.max(initial=0.0)), min_gain)
        return np.asarray(
            self.closed & (self.true_gains >= padded_gains[:-2]) & (self.true_gains >= padded_gains[2:]) & is_high
        )

    def multipliers(self, prices: LabelPrices, scale: float) -> tuple[Array, tuple[TermMultiplier, ...]]:
        """Return the multipliers of the rows, raised by the largest gain, and of the terms.

        Those of moments are tangents of psi at the columns.
        """
        multipliers, start = [], 0
        for number, (term, pairs, term_weights) in enumerate(
            zip(prices.terms, prices.pairs, prices.weights, strict=True)
        ):
            if not term.conic and not term.pure:
                term_excess = self.excess[:, start : start + len(term)]
                start += len(term)
                multipliers.append(TermMultiplier(number, pairs, np.clip(term_excess, 0.0, term_weights) * scale))
            elif term.conic:
                multipliers.append(tangent_planes(number, term, pairs, term_weights * scale, self.columns))
        largest_gain = float(self.theta[self.closed].max()) if self.closed.any() else 0.0
        return (prices.rows + largest_gain * self.mass) * scale, tuple(multipliers)


def tangent_planes(number: int, term: Any, pairs: Index, weights: Array, columns: Array) -> TermMultiplier:
    """Return the multiplier of a moment's `pairs`, (p,), with `weights`: tangent planes of psi at the columns."""
    top, n = np.exp(min(200.0, 500 / term.order)), len(columns)  # the tangent plane's slopes stay finite
    t = np.clip(columns[:, term.left] / columns[:, term.right], 1e-80, top)
    pair, label = np.tile(np.arange(len(term)), n), np.repeat(np.arange(n), len(term))
    return TermMultiplier(number, pairs, np.stack([pair, label, t.ravel(), np.tile(weights, n)]))


def try_everywhere(
    f: FDivergence, pair: Pair, prices: LabelPrices, knots: Array, scale: float, value: float, min_gain: float
) -> PriceTrial:
    """Split the intervals between `knots` until the chords are close to the utility, relative to the other gaps.

    value : the utility of a channel, in units of `scale`. min_gain : an amount that counts as small in any case.
    """
    mass = (pair.p0 + pair.p1) / 2 + 1e-4 / len(pair)
    mass = mass / mass.sum()
    cells: dict[tuple[float, float], tuple[Array, float, float, Array]] = {}
    for _ in range(MAX_CUT_ROUNDS):
        ends = list(zip(knots[:-1].tolist(), knots[1:].tolist(), strict=True))
        new_intervals = np.array([position for position, span in enumerate(ends) if span not in cells], dtype=np.intp)
        if not len(new_intervals):
            break
        gains = (chord_gains(f, pair, knots) / scale).entries[new_intervals]
        best = best_columns(gains - prices.rows, prices.terms, prices.weights, mass, min_gain / 4)
        chord_excess = (gains * best.columns).sum(axis=1) - values_of(f, pair, best.columns.T) / scale
        for i, position in enumerate(new_intervals.tolist()):
            cells[ends[position]] = best.columns[i], float(best.theta[i]), float(chord_excess[i]), best.excess[i]
        columns, thetas, chords, excess = (
            np.array(values) for values in zip(*(cells[span] for span in ends), strict=True)
        )
        height = excess_at(f, knots)
        is_closed = np.isfinite(height[1:]) & np.isfinite(height[:-1])
        true_gains = np.where(is_closed, thetas - chords, -np.inf)
        largest_gain = float(true_gains.max())
        trial = PriceTrial(knots, columns, thetas, true_gains, is_closed, excess, mass)
        tolerance = max(min_gain, 0.1 * (prices.cost + largest_gain - value))
        is_too_coarse = is_closed & (thetas - largest_gain > tolerance)
        if not is_too_coarse.any() or len(knots) > MAX_INTERVALS:
            break
        # The distance of the chord from the utility falls with the square of the interval's width.
        part_counts = np.sqrt(
            np.maximum(chords, 0.0) / (0.7 * tolerance + 0.5 * np.maximum(largest_gain - true_gains, 0.0))
        )
        finer = subdivided_knots(
            knots, np.where(is_too_coarse, np.clip(np.ceil(part_counts), 2, MAX_PARTS_OF_INTERVAL), 1).astype(np.intp)
        )
        if len(finer) == len(knots):
            break
        knots = finer
    return trial
