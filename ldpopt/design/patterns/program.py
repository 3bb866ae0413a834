"""Find the best weights of listed columns, and multipliers that price every column [KOV14, Thm 2].

A column is a constant base and the rise above it, in any scale, so that a solver sees how columns differ at any
epsilon. It has values mu_j, those of the utility's criteria less their tangents at the constant column, and excesses
v_i >= 0 of one input over another, whose sums are capped. The master program is

    max  min_j (constant_j + sum theta mu_j)   s.t.  sum theta rise = N for every input,   sum theta base + N <= 1,
                                                     sum theta v_i <= limit_i,

where erasure, an output that is equally likely under every input, takes the remaining probability. It has the form of
`kernel.listed`. Multipliers lambda of the rows and nu >= 0 of the caps prove the bound sum lambda + limit.nu if no
column gains. That is, base sum lambda + lambda.rise + nu.v >= sum_j w_j mu_j.

Units are chosen so that every number in the solver is near one, at any epsilon and at any caps. At unit weight no
column alone exceeds a cap or the mass of one. Rises are in units of the largest, and values in units of the weakest
criterion's best column. The program starts with some columns; those that gain at its dual values are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.generate import generate
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CENTRAL_GAIN, COLUMN_GAP, CRITERION_FRACTION, VERTEX_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

# The program starts with all columns if they are at most so many; at most so many are added per round.
MAX_INITIAL_COLUMNS, MAX_COLUMNS_PER_ROUND = 1100, 400
# Rounds at central dual values, and then at those of a vertex; if columns still gain, the bound is worse.
MAX_CENTRAL_ROUNDS, MAX_VERTEX_ROUNDS = 40, 12
# The relative amount added to the price of every column, so that rounding leaves no value above the price.
PRICE_PADDING = 2.0**-44
COLUMNS_PER_BLOCK = 2**14  # Columns priced at the same time


MIN_CAP = 1e-290
"""The least positive cap that programs are solved for."""


@dataclass(frozen=True, eq=False)
class ExcessCaps:
    """Caps on m sums of excesses of an input `left` over an input `right`, each at most `limits`, (m,) each.

    even : (m,) True if the excess is (c_left - c_right)_+. As rows have equal sums, its sum is the same in the other
    order of the inputs. Half of the multiplier goes to either order, which makes the multipliers of the rows small.
    """

    left: Index
    right: Index
    limits: Array
    even: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        # Excesses over a smaller cap overflow; a channel that then exceeds the cap is mixed with a constant one.
        limits = np.where(self.limits > 0, np.maximum(self.limits, MIN_CAP), self.limits)
        object.__setattr__(self, "limits", limits)

    @classmethod
    def variation(cls, k: int, eta: float) -> ExcessCaps:
        """Return the caps on the total variation of k rows, one per pair of inputs; none for eta of 1 or more."""
        left, right = np.triu_indices(k if eta < 1 else 1, 1)
        limit = eta if eta >= MIN_CAP else 0.0  # rows at a smaller distance are equal in float64
        return cls(left, right, np.full(len(left), limit), np.full(len(left), True))

    def join(self, other: ExcessCaps) -> ExcessCaps:
        """Return these caps and others."""
        names = ("left", "right", "limits", "even")
        return ExcessCaps(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def one_sided_excesses(self, rise: Array) -> Array:
        """Return the excesses (c_left - c_right)_+, (m, n), of columns with these rises (k, n)."""
        return np.maximum(rise[self.left] - rise[self.right], 0.0)

    def unit_costs(self, rise: Array, excess: Array) -> Array:
        """Return the cost per unit of each multiplier, (m, n): the excess, or half of both orders' for even caps."""
        difference = (rise[self.left] - rise[self.right]) if self.even.any() else 0.0
        return excess - (self.even / 2)[:, None] * difference

    def price_matrix(self, prices: Array, k: int, part: slice = slice(None)) -> Array:
        """Return the multipliers (m,) of some of the caps by the ordered pair of inputs, (k, k)."""
        pairs, left, right = np.zeros((k, k)), self.left[part], self.right[part]
        half = np.where(self.even, prices / 2, 0.0)[part]
        np.add.at(pairs, (left, right), prices[part] - half)
        np.add.at(pairs, (right, left), half)
        return pairs


@dataclass(frozen=True, eq=False)
class WeightedColumns:
    """Weights (n,) of columns, and multipliers: of rows (k,), of `caps` (m,), and of criteria, which sum to one."""

    weights: Array
    rows: Array
    prices: Array
    criteria: Array
    caps: ExcessCaps

    def pairs(self, part: slice = slice(None)) -> Array:
        """Return the multipliers of some of the caps, (k, k)."""
        return self.caps.price_matrix(self.prices, len(self.rows), part)


def optimize_weights(
    base: Array, rise: Array, excess: Array, caps: ExcessCaps, mu: Array, constant: Array,
    solvers: Sequence[str] = SIMPLEX,
) -> WeightedColumns:  # fmt: skip
    """Find the best weights of columns base (n,) + rise (k, n) with excesses (m, n) and values mu (criteria, n).

    constant : (criteria,) the values that every channel has. Raises `SolverError` if no solver is accurate.
    """
    import cvxpy as cp

    k, cap_fractions = len(rise), excess / caps.limits[:, None]
    unit = unit_weights(base, rise, excess, caps)
    highest = float((rise * unit).max()) or 1.0
    values = mu * unit
    scale = float(values.max(axis=1).min())
    scale = scale if scale > 0 else float(np.abs(values).max()) or 1.0
    # Each criterion is in units of its best column. A criterion with much larger values than the weakest must exceed
    # slightly more than the minimum, because a solver treats coefficients below 1e-9 as zero.
    criterion_scales = np.maximum(np.maximum(np.abs(values).max(axis=1), np.abs(constant)) / scale, 1.0)
    tau, level, worst_value = cp.Variable(len(unit), nonneg=True), cp.Variable(), cp.Variable()
    balance = (rise * (unit / highest)) @ tau == level
    criterion_rows = (values / (scale * criterion_scales)[:, None]) @ tau + constant / (
        scale * criterion_scales
    ) >= worst_value * np.maximum(1 / criterion_scales, CRITERION_FRACTION)
    constraints: list[Any] = [balance, criterion_rows]
    cap = (cap_fractions * unit) @ tau <= 1 if len(cap_fractions) else None
    if cap is not None:
        constraints.append(cap)
    size = max(float((base * unit).max()), highest)
    mass = (base * (unit / size)) @ tau + highest / size * level <= 1 / size
    # If every column uses so much of the caps that the mass stays below one, its row cannot bind, and is omitted.
    cap_use = (caps.unit_costs(rise, excess) / caps.limits[:, None]).sum(axis=0) * unit
    mass_binds = (
        not (cap_use > 0).all() or len(cap_fractions) * float(((base + rise.max(axis=0)) * unit / cap_use).max()) >= 1
    )
    if mass_binds:
        constraints.append(mass)
    solve(cp.Problem(cp.Maximize(worst_value), constraints), "program of columns", solvers)
    criteria = np.maximum(np.asarray(criterion_rows.dual_value), 0.0).reshape(-1) / criterion_scales
    dual_scale = (float(criteria.sum()) or 1.0) / scale
    prices = np.zeros(0) if cap is None else np.maximum(cap.dual_value, 0.0) / caps.limits / dual_scale
    rows = np.array(balance.dual_value).reshape(k) / highest / dual_scale
    half = np.where(caps.even, prices / 2, 0.0)
    np.add.at(rows, caps.left, half)
    np.add.at(rows, caps.right, -half)
    # The rows must sum to the multiplier of the mass: the dual constraint of the level.
    rows = zero_sum(rows)
    total = max(0.0, float(mass.dual_value)) / size / dual_scale if mass_binds else 0.0
    rows = rows + total / k
    weights = unit * np.maximum(np.asarray(tau.value), 0.0)
    return WeightedColumns(weights, rows, prices, criteria / (criteria.sum() or 1.0), caps)


def unit_weights(base: Array, rise: Array, excess: Array, caps: ExcessCaps) -> Array:
    """Return for each column, (n,), the weight that brings it alone to a cap or a mass of one."""
    larger_excess = (
        caps.unit_costs(rise, excess) * (1.0 + caps.even)[:, None]
    )  # the larger excess of either order of an even pair
    cap_fractions = (larger_excess / caps.limits[:, None]).max(axis=0, initial=0.0)
    return np.asarray(1 / np.maximum(cap_fractions, base + rise.max(axis=0)))


def zero_sum(rows: Array) -> Array:
    """Round numbers so that they sum to zero exactly, because every column pays its base times their sum."""
    rows = rows - rows.mean()
    size = float(np.abs(rows).max())
    if size == 0:
        return rows
    unit = 2.0 ** (math.ceil(math.log2(size)) - 48)
    integers = np.round(rows / unit)
    integers[np.argmax(np.abs(integers))] -= integers.sum()
    return np.asarray(integers * unit)


def append_erasure(columns: Array) -> Array:
    """Return the columns (k, n) in use, and last an erasure with the remaining probability."""
    erasure_mass = max(1.0 - float(columns.sum(axis=1).max(initial=0.0)), 0.0)
    return np.hstack([columns[:, columns.max(axis=0, initial=0.0) > 0], np.full((len(columns), 1), erasure_mass)])


@dataclass(frozen=True, eq=False)
class ColumnProgram:
    """The program over listed columns base (n,) + rise (k, n); one may be constant, with a rise of zero.

    excess : a function that returns the excesses (m, ...) of some of the columns.
    mu : (criteria, n) the values of the columns, 0 if they are within rounding of 0.
    top : (criteria, n) floats above the values.
    """

    base: Array
    rise: Array
    caps: ExcessCaps
    excess: Callable[[Any], Array]
    constant: Array
    mu: Array
    top: Array

    @classmethod
    def for_utility(
        cls, utility: ColumnUtility, base: Array, rise: Array, caps: ExcessCaps,
        excess: Callable[[Any], Array] | None = None,
    ) -> ColumnProgram:  # fmt: skip
        """Build the program of a utility, with caps on total variation if no `excess` is given.

        Raises `SolverError` if the value of a column is infinite.
        """
        # The tangent at the constant column is subtracted: it has the same value on all channels.
        tangents = gradients_of(utility, np.ones((utility.size, 1)))[:, 0]
        constant, mu, top = tangents.sum(axis=1), [], []
        for block in _blocks(len(base)):
            enclosed_values = utility.enclosed_columns(FLOAT.of(base[block]), FLOAT.of(rise[:, block]))
            linear = base[block] * constant[:, None] + tangents @ rise[:, block]
            low, high = np.asarray(enclosed_values.lower) - linear, np.asarray(enclosed_values.upper) - linear
            mu.append(np.where((low <= 0) & (high >= 0), 0.0, low / 2 + high / 2))
            top.append(
                high + PRICE_PADDING * (base[block] * np.abs(constant)[:, None] + np.abs(tangents) @ rise[:, block])
            )
        if not all(np.isfinite(high).all() for high in top):
            raise SolverError(f"program of columns: a column is worth no finite number of {utility.name}")
        excess_function = excess or (lambda chosen: caps.one_sided_excesses(rise[:, chosen]))
        return cls(base, rise, caps, excess_function, constant, np.concatenate(mu, axis=1), np.concatenate(top, axis=1))

    @cached_property
    def unit_cap_costs(self) -> Array:
        """The cost of every column, (n,), if all caps have the multiplier one."""
        return self.cap_costs(np.ones(len(self.caps.limits)))

    @cached_property
    def unit(self) -> Array:
        """The weights, (n,), that bring columns alone to a cap or a mass of one."""
        unit = np.zeros(len(self.base))
        for block in _blocks(len(unit)):
            unit[block] = unit_weights(self.base[block], self.rise[:, block], self.excess(block), self.caps)
        return unit

    def cap_costs(self, prices: Array) -> Array:
        """Return the cost of every column, (n,), for its excesses at these multipliers of the caps."""
        cost = np.zeros(len(self.base))
        for block in _blocks(len(cost) if prices.any() else 0):
            cost[block] = prices @ self.caps.unit_costs(self.rise[:, block], self.excess(block))
        return cost

    def solve(self, deadline: Deadline = UNLIMITED) -> tuple[Index, WeightedColumns]:
        """Return the columns in use with their best weights, and the multipliers with the best bound."""
        mu, limits = self.mu, self.caps.limits
        if not float(mu.max(axis=1).min()) > 0 or not limits.min(initial=1.0) > 0:
            # Nothing can be gained: one criterion is zero on every column, or all rows are equal.
            zero_prices, weakest = np.zeros(len(limits)), np.eye(len(mu))[int(mu.max(axis=1).argmin())]
            empty_solution = WeightedColumns(np.zeros(0), np.zeros(len(self.rise)), zero_prices, weakest, self.caps)
            return np.zeros(0, dtype=np.intp), self.raise_multipliers(empty_solution, np.zeros(len(self.base)))
        pool, best_gain = self.initial_pool(), float((mu * self.unit).max(axis=1).min())
        best: tuple[float, WeightedColumns] | None = None
        # Central dual values first: those of a vertex are extreme, and thousands of columns would gain.
        if len(pool) < int(self.rise.any(axis=0).sum()):
            central = _Pricing(self, INTERIOR, CENTRAL_GAIN * best_gain)
            generation = generate(central, central, pool, MAX_CENTRAL_ROUNDS, deadline=deadline)
            pool = generation.pool
            best = None if generation.multipliers is None else (generation.bound, generation.multipliers)
        vertex = _Pricing(self, SIMPLEX, VERTEX_GAIN * best_gain, best)
        generation = generate(vertex, vertex, pool, MAX_VERTEX_ROUNDS, gap=COLUMN_GAP, deadline=deadline)
        assert generation.multipliers is not None
        pool_indices, weighted_columns = generation.solution.pool, generation.solution.weighed
        return pool_indices, replace(generation.multipliers, weights=weighted_columns.weights)

    def initial_pool(self) -> Index:
        """Return all of at most `MAX_INITIAL_COLUMNS` non-constant columns, else those of extreme values and ratios."""
        non_constant_columns = np.flatnonzero(self.rise.any(axis=0))
        if len(non_constant_columns) <= MAX_INITIAL_COLUMNS:
            return non_constant_columns
        best_columns = np.argsort(-self.mu * self.unit, axis=1)[:, :MAX_COLUMNS_PER_ROUND].ravel()
        entries = self.base + self.rise
        entry_shares = entries / entries.sum(axis=0)
        extreme_columns = [np.argsort(sign * entry_shares, axis=1, kind="stable")[:, :8].ravel() for sign in (1, -1)]
        return np.intersect1d(np.concatenate([best_columns, *extreme_columns]), non_constant_columns)

    def raise_multipliers(self, weighted_columns: WeightedColumns, cap_cost: Array) -> WeightedColumns:
        """Raise the multipliers until the price of every column is at least its value.

        cap_cost : (n,) the cost of the columns for the caps.
        """
        k, rows, prices, limits = len(self.rise), weighted_columns.rows, weighted_columns.prices, self.caps.limits
        size = self.base * k + self.rise.sum(axis=0)
        # A margin for the rounding of these sums, and a little of the optimum, so that every price is positive.
        rounding_scale = self.base * abs(math.fsum(rows)) + np.abs(rows) @ self.rise + cap_cost
        optimum = max(math.fsum(rows) + float(limits @ prices), 0.0)
        shortfall = weighted_columns.criteria @ self.top - (self.base * math.fsum(rows) + rows @ self.rise + cap_cost)
        shortfall = shortfall + PRICE_PADDING * (rounding_scale + size * optimum / k)
        row_increase = max(float((shortfall / size)[self.unit_cap_costs == 0].max(initial=0.0)), 0.0)
        rows, remaining_shortfall = rows + row_increase, shortfall - row_increase * size
        with np.errstate(divide="ignore", invalid="ignore"):
            cap_increase = max(
                float(np.where(self.unit_cap_costs > 0, remaining_shortfall / self.unit_cap_costs, 0.0).max()), 0.0
            )
        uniform_increase = max(float((remaining_shortfall / size).max()), 0.0)
        if float(limits.sum()) * cap_increase <= k * uniform_increase:
            return replace(weighted_columns, rows=rows, prices=prices + (1 + PRICE_PADDING) * cap_increase)
        return replace(weighted_columns, rows=rows + uniform_increase)


@dataclass(frozen=True, eq=False)
class _PricedSolution:
    """The solution over the columns at `pool`, and the cost of every column for its excesses, (n,)."""

    pool: Index
    weighed: WeightedColumns
    cap_costs: Array


@dataclass(frozen=True, eq=False)
class _Pricing:
    """Master and oracle of a listed program: all columns are priced, and those that gain more than `short` are added.

    earlier : a bound from an earlier stage, with its multipliers.
    """

    program: ColumnProgram
    solvers: Sequence[str]
    short: float
    earlier: tuple[float, WeightedColumns] | None = None

    def solve(self, pool: Index, number: int) -> _PricedSolution:
        """Solve for the best weights of the columns at `pool`."""
        program = self.program
        weighted_columns = optimize_weights(
            program.base[pool],
            program.rise[:, pool],
            program.excess(pool),
            program.caps,
            program.mu[:, pool],
            program.constant,
            self.solvers,
        )
        return _PricedSolution(pool, weighted_columns, program.cap_costs(weighted_columns.prices))

    def value(self, solution: _PricedSolution) -> float:
        """Return the least criterion."""
        mu = self.program.mu[:, solution.pool]
        return float((mu @ solution.weighed.weights + self.program.constant).min())

    def price(self, solution: _PricedSolution) -> Index:
        """Return the columns that gain, in descending order of their gain."""
        program, weighted_columns, pool = self.program, solution.weighed, solution.pool
        cost = (
            program.base * math.fsum(weighted_columns.rows) + weighted_columns.rows @ program.rise + solution.cap_costs
        )
        gains = (weighted_columns.criteria @ program.mu - cost) * program.unit
        gains[pool] = -math.inf
        joining = np.argsort(-gains, kind="stable")[:MAX_COLUMNS_PER_ROUND]
        return np.asarray(joining[gains[joining] > self.short])

    def prove(
        self, solution: _PricedSolution, columns: Index, best_bound: float
    ) -> tuple[float, WeightedColumns, Index]:
        """Return the bound of the multipliers, raised until no column gains."""
        feasible = self.program.raise_multipliers(solution.weighed, solution.cap_costs)
        bound = math.fsum(feasible.rows) + float(self.program.caps.limits @ feasible.prices)
        bound += float(feasible.criteria @ self.program.constant)
        return (
            (*self.earlier, columns)
            if self.earlier is not None and self.earlier[0] <= bound
            else (bound, feasible, columns)
        )

    def join(self, pool: Index, columns: Index) -> Index | None:
        """Append the columns to the pool."""
        return np.concatenate([pool, columns]) if len(columns) else None


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, COLUMNS_PER_BLOCK):
        yield slice(start, min(start + COLUMNS_PER_BLOCK, n))
