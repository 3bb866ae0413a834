"""The linear program over the extreme columns of (epsilon, delta)-LDP, of any column utility.

It has the form that `certificates.levels` checks. A column of full support is split into a constant base and the rise
above it, so that the solver sees how columns differ at any epsilon:

    sum theta rise = N for every input,   sum theta base + N <= 1,   sum theta (c_x - e^epsilon c_x')_+ <= delta

and, where total variation is capped too, sum theta (c_x - c_x')_+ <= eta.

Where row sums are below one, erasure, an output that is equally likely under every input, takes the rest. Weights are
in units in which no column alone exceeds a cap, differences of rows in units of the largest total variation that the
constraint allows, and utilities in units of the best column's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.design.columns.levels import Levels, level_columns
from ldpopt.design.programs.patterns import balanced
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import FLOAT
from ldpopt.errors import SolverError

PADDING = 2.0**-44
"""The relative amount that every column pays in addition, so that rounding leaves none worth more than it pays."""


@dataclass(frozen=True, eq=False)
class LevelSolution:
    """A channel's columns (k, n), of which the last is erasure, and dual values as `LevelVariationDual` takes them."""

    columns: Array
    rows: Array
    pairs: Array
    weights: Array
    spreads: Array


@dataclass(frozen=True, eq=False)
class LevelColumns:
    """Columns in floats: `base` (n,), 0 for a column without full support, and `rise` (k, n); the largest entry is one.

    excess : (pairs, n) the amount in each column that is capped between the inputs `left` and `right`, such as
    (c_left - e^epsilon c_right)_+. caps : (pairs,) the positive caps.
    """

    base: Array
    rise: Array
    excess: Array
    left: Index
    right: Index
    caps: Array

    @classmethod
    def of(cls, levels: Levels, epsilon: float, delta: float, pairs: tuple[Index, Index] | None = None) -> LevelColumns:
        """The columns of these levels, with the excesses of some pairs of inputs, or of all ordered pairs."""
        k, height, inside = levels.shape[1], levels.max(axis=1)[:, None], np.asarray(levels >= 0)
        full = np.all(inside, axis=1)
        entry = np.where(inside, np.exp(-(height - levels) * epsilon), 0.0)
        base = np.where(full, np.exp(-height[:, 0] * epsilon), 0.0)
        rise = np.where(full[:, None], entry * -np.expm1(-levels * epsilon), entry).T
        left, right = pairs or every_pair(k)
        apart = np.maximum(levels[:, left] - levels[:, right] - 1, 0)
        share = np.where(inside[:, right], -np.expm1(-apart * epsilon), 1.0)
        excess = np.where(inside[:, left], entry[:, left] * share, 0.0).T
        return cls(base, rise, excess, left, right, np.full(len(left), delta))

    def capped(self, eta: float) -> LevelColumns:
        """The same with a cap on total variation, for one order of every two inputs: rows have equal sums."""
        left, right = (at.astype(np.intp) for at in np.triu_indices(len(self.rise), 1))
        both = np.concatenate([self.excess, np.maximum(self.rise[left] - self.rise[right], 0.0)])
        ends = np.concatenate([self.left, left]), np.concatenate([self.right, right])
        return replace(
            self, excess=both, left=ends[0], right=ends[1], caps=np.concatenate([self.caps, np.full(len(left), eta)])
        )

    def take(self, at: Index) -> LevelColumns:
        """Some of the columns."""
        return replace(self, base=self.base[at], rise=self.rise[:, at], excess=self.excess[:, at])

    def paid(self, rows: Array, prices: Array) -> Array:
        """(n,) the prices of the columns at the multipliers `rows` (k,) and `prices` (pairs,)."""
        return np.asarray(self.base * math.fsum(rows) + rows @ self.rise + prices @ self.excess)


def every_pair(k: int) -> tuple[Index, Index]:
    """The ordered pairs of k inputs, (k (k-1),) each."""
    left, right = np.nonzero(~np.eye(k, dtype=bool))
    return left.astype(np.intp), right.astype(np.intp)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights (n,) of columns, and dual values: of rows (k,), of pairs, and of the criteria, which sum to one."""

    weights: Array
    rows: Array
    prices: Array
    criteria: Array


def reach_of(epsilon: float, delta: float, eta: float = 1.0) -> float:
    """About how far apart rows may be under (epsilon, delta)-LDP and a cap eta on total variation."""
    return min(1.0, math.expm1(min(epsilon, 1.0)) + delta, eta)


def weigh(made: LevelColumns, mu: Array, constant: Array, reach: float) -> Weighed:
    """The best weights of columns worth `mu` (criteria, n) above `constant` (criteria,), which any channel keeps.

    reach : about how far apart rows may be.
    """
    import cvxpy as cp

    # The units: no column alone exceeds a cap, and rows differ by at most `reach`.
    used = made.excess / made.caps[:, None]
    unit = 1 / np.maximum(used.max(axis=0), 1.0)
    scale = float((mu * unit).max(axis=1).min())
    if not scale > 0:
        scale = 1.0
    tau, level, least = cp.Variable(len(unit), nonneg=True), cp.Variable(), cp.Variable()
    balance = (made.rise * (unit / reach)) @ tau == level
    mass = (made.base * unit) @ tau + reach * level <= 1
    worst = (mu * (unit / scale)) @ tau + constant / scale >= least
    cap = (used * unit) @ tau <= 1
    solve(cp.Problem(cp.Maximize(least), [balance, mass, worst, cap]), "program of levels", SIMPLEX)
    criteria = np.maximum(np.asarray(worst.dual_value), 0.0).reshape(-1)
    whole = (float(criteria.sum()) or 1.0) / scale
    total = max(0.0, float(mass.dual_value)) / whole
    rows = balanced(np.asarray(balance.dual_value) / reach / whole) + total / len(made.rise)
    prices = np.maximum(np.asarray(cap.dual_value), 0.0) / made.caps / whole
    return Weighed(unit * np.maximum(np.asarray(tau.value), 0.0), rows, prices, criteria / (criteria.sum() or 1.0))


def level_program(utility: ColumnUtility, epsilon: float, delta: float, eta: float = 1.0) -> LevelSolution:
    """Solve the program for ApproximateLDP(epsilon, delta), delta > 0, of up to six inputs.

    eta : a cap on total variation, above 0. Raises `SolverError` when no solver is accurate, or a column is worth no
    finite number.
    """
    made = LevelColumns.of(level_columns(utility.size, eta < 1), epsilon, delta)
    count = len(made.left)
    found = column_program(utility, made.capped(eta) if eta < 1 else made, reach_of(epsilon, delta, eta))
    return LevelSolution(
        found.columns, found.rows, found.matrix(slice(count)), found.weights, found.matrix(slice(count, None))
    )


@dataclass(frozen=True, eq=False)
class ColumnSolution:
    """A channel's columns (k, n), of which the last is erasure, and dual values: of rows, caps and criteria."""

    columns: Array
    rows: Array
    prices: Array
    weights: Array
    left: Index
    right: Index

    def matrix(self, part: slice = slice(None)) -> Array:
        """(k, k) the prices of some of the caps."""
        made = np.zeros((len(self.rows), len(self.rows)))
        made[self.left[part], self.right[part]] = self.prices[part]
        return made


def column_program(utility: ColumnUtility, made: LevelColumns, reach: float) -> ColumnSolution:
    """Solve the program over some columns, whose weighted `excess` is at most the cap for each of its pairs.

    reach : about how far apart rows may be. Raises `SolverError` as `level_program`.
    """
    k = utility.size
    tangents = gradients_of(utility, np.ones((k, 1)))[:, 0]
    constant = tangents.sum(axis=1)
    found = utility.enclosed_columns(FLOAT.of(made.base), FLOAT.of(made.rise))
    linear = made.base * constant[:, None] + tangents @ made.rise
    low, top = np.asarray(found.lower) - linear, np.asarray(found.upper) - linear
    mu = np.where((low <= 0) & (top >= 0), 0.0, top)
    if not np.isfinite(mu).all():
        raise SolverError(f"program of columns: a column is worth no finite number of {utility.name}")
    best = weigh(made, mu, constant, reach)
    charged, over = best.prices @ made.excess, made.excess.sum(axis=0)
    rows, prices = raised(made, best.criteria @ top, charged, over, best.rows, best.prices)
    columns = with_erasure((made.base + made.rise) * best.weights)
    return ColumnSolution(columns, rows, prices, best.criteria, made.left, made.right)


def with_erasure(columns: Array) -> Array:
    """The columns (k, n) in use, and last an erasure with the probability that is missing to one."""
    erased = max(1.0 - float(columns.sum(axis=1).max()), 0.0)
    return np.hstack([columns[:, columns.max(axis=0) > 0], np.full((len(columns), 1), erased)])


def raised(
    made: LevelColumns, worth: Array, charged: Array, over: Array, rows: Array, prices: Array
) -> tuple[Array, Array]:
    """The multipliers, raised until no column is worth more than it pays; columns with an excess may pay by `prices`.

    charged : (n,) what the columns pay for their excesses at the prices. over : (n,) the sums of their excesses.
    """
    k = len(rows)
    size = made.base * k + made.rise.sum(axis=0)
    # Room for the rounding of these sums, and a little of the optimum, so that no column pays exactly nothing.
    rounded = made.base * abs(math.fsum(rows)) + np.abs(rows) @ made.rise + charged
    optimum = max(math.fsum(rows) + float(made.caps @ prices), 0.0)
    missing = worth - (made.base * math.fsum(rows) + rows @ made.rise + charged)
    missing = missing + PADDING * (rounded + size * optimum / k)
    least = max(float((missing / size)[over == 0].max(initial=0.0)), 0.0)
    rows = rows + least
    left_over = missing - least * size
    with np.errstate(divide="ignore", invalid="ignore"):
        by_pairs = max(float(np.where(over > 0, left_over / over, 0.0).max()), 0.0)
    by_rows = max(float((left_over / size).max()), 0.0)
    if float(made.caps.sum()) * by_pairs <= k * by_rows:
        return rows, prices + (1 + PADDING) * by_pairs
    return rows + by_rows, prices
