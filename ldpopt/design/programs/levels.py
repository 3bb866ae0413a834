"""The linear program over the extreme columns of (epsilon, delta)-LDP, of any column utility.

In the form that `certificates.levels` checks. A column of full support is a constant and what is above it, so that the
solver sees how columns differ at any epsilon:

    sum theta rise = N for every input,   sum theta base + N <= 1,   sum theta (c_x - e^epsilon c_x')_+ <= delta

What is missing to one is erasure. Weights are in units in which no column alone exceeds delta, the differences of rows
in units of the largest total variation that the constraint allows, and one unit of utility is that of the best column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.columns.levels import Levels, level_columns
from ldpopt.design.programs.patterns import balanced
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import FLOAT
from ldpopt.errors import SolverError

PADDING = 2.0**-44
"""What every column pays besides, relatively: rounding leaves none that pays less than it is worth."""


@dataclass(frozen=True, eq=False)
class LevelSolution:
    """A channel's columns (k, n), of which the last is erasure, and dual values as `LevelDual` takes them."""

    columns: Array
    rows: Array
    pairs: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class LevelColumns:
    """Columns of full support or of a part of it, in floats: (n,) `base` and (k, n) `rise`, the largest entry one."""

    base: Array
    rise: Array
    excess: Array

    @classmethod
    def of(cls, levels: Levels, epsilon: float) -> LevelColumns:
        """The columns of these levels, and (pairs, n) what each exceeds the cap of a pair by, pairs in row order."""
        k, height, inside = levels.shape[1], levels.max(axis=1)[:, None], np.asarray(levels >= 0)
        full = np.all(inside, axis=1)
        entry = np.where(inside, np.exp(-(height - levels) * epsilon), 0.0)
        base = np.where(full, np.exp(-height[:, 0] * epsilon), 0.0)
        rise = np.where(full[:, None], entry * -np.expm1(-levels * epsilon), entry).T
        left, right = every_pair(k)
        apart = np.maximum(levels[:, left] - levels[:, right] - 1, 0)
        share = np.where(inside[:, right], -np.expm1(-apart * epsilon), 1.0)
        return cls(base, rise, np.where(inside[:, left], entry[:, left] * share, 0.0).T)


def every_pair(k: int) -> tuple[Index, Index]:
    """The ordered pairs of k inputs, (k (k-1),) each."""
    left, right = np.nonzero(~np.eye(k, dtype=bool))
    return left.astype(np.intp), right.astype(np.intp)


def level_program(utility: ColumnUtility, epsilon: float, delta: float) -> LevelSolution:
    """Solve the program for ApproximateLDP(epsilon, delta), delta > 0, of up to six inputs.

    Raises `SolverError` when no solver is accurate, or a column is worth no finite number.
    """
    import cvxpy as cp

    k = utility.size
    made = LevelColumns.of(level_columns(k), epsilon)
    tangents = gradients_of(utility, np.ones((k, 1)))[:, 0]
    constant = tangents.sum(axis=1)
    found = utility.enclosed_columns(FLOAT.of(made.base), FLOAT.of(made.rise))
    linear = made.base * constant[:, None] + tangents @ made.rise
    low, top = np.asarray(found.lower) - linear, np.asarray(found.upper) - linear
    mu = np.where((low <= 0) & (top >= 0), 0.0, top)
    if not np.isfinite(mu).all():
        raise SolverError(f"program of levels: a column is worth no finite number of {utility.name}")
    left, right = every_pair(k)
    # The units: no column alone exceeds delta, and rows differ by at most `reach`.
    unit = delta / np.maximum(made.excess.max(axis=0), delta)
    reach = min(1.0, math.expm1(min(epsilon, 1.0)) + delta)
    scale = float((mu * unit).max(axis=1).min())
    if not scale > 0:
        scale = 1.0
    tau, level, least = cp.Variable(len(unit), nonneg=True), cp.Variable(), cp.Variable()
    balance = (made.rise * (unit / reach)) @ tau == level
    mass = (made.base * unit) @ tau + reach * level <= 1
    worst = (mu * (unit / scale)) @ tau + constant / scale >= least
    cap = (made.excess * (unit / delta)) @ tau <= 1
    solve(cp.Problem(cp.Maximize(least), [balance, mass, worst, cap]), "program of levels", SIMPLEX)
    weights = np.maximum(np.asarray(worst.dual_value), 0.0).reshape(-1)
    whole = float(weights.sum()) or 1.0
    total = max(0.0, float(mass.dual_value)) / whole
    rows = balanced(np.asarray(balance.dual_value) / reach / whole) + total / k
    pairs = np.zeros((k, k))
    pairs[left, right] = np.maximum(np.asarray(cap.dual_value), 0.0) / delta / whole
    weights = weights / whole
    rows, pairs = _raised(made, weights @ top / scale, rows, pairs, delta)
    columns = (made.base + made.rise) * (unit * np.maximum(np.asarray(tau.value), 0.0))
    erased = max(1.0 - float(columns.sum(axis=1).max()), 0.0)
    columns = np.hstack([columns[:, columns.max(axis=0) > 0], np.full((k, 1), erased)])
    return LevelSolution(columns, rows * scale, pairs * scale, weights)


def _raised(made: LevelColumns, worth: Array, rows: Array, pairs: Array, delta: float) -> tuple[Array, Array]:
    """The multipliers raised until no column is worth more than it pays: those that exceed caps may pay for that."""
    k = len(rows)
    left, right = every_pair(k)
    paid = made.base * math.fsum(rows) + rows @ made.rise + pairs[left, right] @ made.excess
    size, over = made.base * k + made.rise.sum(axis=0), made.excess.sum(axis=0)
    # What sums of these round by, and a little of the optimum: no column pays exactly nothing.
    rounded = made.base * abs(math.fsum(rows)) + np.abs(rows) @ made.rise + pairs[left, right] @ made.excess
    missing = worth - paid + PADDING * (rounded + size / k)
    least = max(float((missing / size)[over == 0].max(initial=0.0)), 0.0)
    rows = rows + least
    left_over = missing - least * size
    with np.errstate(divide="ignore", invalid="ignore"):
        by_pairs = max(float(np.where(over > 0, left_over / over, 0.0).max()), 0.0)
    by_rows = max(float((left_over / size).max()), 0.0)
    if delta * k * (k - 1) * by_pairs <= k * by_rows:
        return rows, pairs + (1 + PADDING) * by_pairs * ~np.eye(k, dtype=bool)
    return rows + by_rows, pairs
