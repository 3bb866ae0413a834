"""The linear program over the extreme columns of a policy graph, by column generation.

The program of `levels` is solved over some of the columns. All columns are priced at its dual values, and the columns
that gain most join, until none gains. In the end the multipliers are raised until no column is worth more than it pays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.programs.levels import ColumnSolution, LevelColumns, Weighed, raised, reach_of, weigh, with_erasure
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import FLOAT
from ldpopt.errors import SolverError

FIRST, JOIN = 1500, 300
"""Up to how many columns are all in the program from the start, and the most columns that join in a round."""

BLOCK = 2**14
"""Columns that are looked at together."""

ROUNDS = 60
"""The most rounds."""

CLOSE = 1e-10
"""The share of the optimum by which a column's worth may exceed its price, for each unit of its mean entry."""


@dataclass(frozen=True, eq=False)
class PolicyProgram:
    """Columns base (n,) + rise (k, n), and their worth: the utility less its tangent at the constant column.

    left, right, eta : the pairs of inputs and the cap on their total variation; no pairs without a cap. constant :
    (criteria,) the tangent's value at the column of ones. low, top : (criteria, n) floats below and above the worth.
    """

    utility: ColumnUtility
    base: Array
    rise: Array
    left: Index
    right: Index
    eta: float
    constant: Array
    low: Array
    top: Array

    @classmethod
    def of(cls, utility: ColumnUtility, base: Array, rise: Array, eta: float) -> PolicyProgram:
        """The program; `SolverError` where a column is worth no finite number."""
        k = utility.size
        left, right = (at.astype(np.intp) for at in np.triu_indices(k, 1)) if eta < 1 else (np.zeros(0, np.intp),) * 2
        tangents = gradients_of(utility, np.ones((k, 1)))[:, 0]
        constant, parts = tangents.sum(axis=1), []
        for some in _blocks(len(base)):
            found = utility.enclosed_columns(FLOAT.of(base[some]), FLOAT.of(rise[:, some]))
            linear = base[some] * constant[:, None] + tangents @ rise[:, some]
            parts.append((np.asarray(found.lower) - linear, np.asarray(found.upper) - linear))
        low, top = (np.concatenate([part[end] for part in parts], axis=1) for end in (0, 1))
        if not np.isfinite(top).all():
            raise SolverError(f"program of columns: a column is worth no finite number of {utility.name}")
        return cls(utility, base, rise, left, right, eta, constant, low, top)

    @property
    def worth(self) -> Array:
        """(criteria, n) the worth of the columns; 0 where that is within rounding."""
        return np.where((self.low <= 0) & (self.top >= 0), 0.0, self.top)

    def columns(self, at: Index | slice) -> LevelColumns:
        """Some of the columns, with their excesses; without a cap, one excess that is always 0."""
        base, rise = self.base[at], self.rise[:, at]
        if not len(self.left):
            none = np.zeros(1, dtype=np.intp)
            return LevelColumns(base, rise, np.zeros((1, len(base))), none, none, np.ones(1))
        excess = np.maximum(rise[self.left] - rise[self.right], 0.0)
        return LevelColumns(base, rise, excess, self.left, self.right, np.full(len(self.left), self.eta))

    def charged(self, prices: Array) -> tuple[Array, Array]:
        """(n,) what the columns pay for their excesses at these prices, and (n,) the sums of their excesses."""
        if not len(self.left):
            return np.zeros(len(self.base)), np.zeros(len(self.base))
        paid, over = np.zeros(len(self.base)), np.zeros(len(self.base))
        for some in _blocks(len(self.base)):
            excess = self.columns(some).excess
            paid[some], over[some] = prices @ excess, excess.sum(axis=0)
        return paid, over

    def solve(self, epsilon: float, deadline: Deadline = UNLIMITED) -> ColumnSolution:
        """The best weights, and multipliers at which no column gains. epsilon : the largest log-ratio of entries."""
        mu, used = self.worth, self.first()
        mean = self.base + self.rise.mean(axis=0)
        for number in range(ROUNDS):
            deadline.tell(number / ROUNDS)
            best = weigh(self.columns(used), mu[:, used], self.constant, reach_of(epsilon, 0.0, self.eta))
            gains = (best.criteria @ mu - self.paid(best)) / mean
            gains[used] = -math.inf
            optimum = math.fsum(best.rows) + self.eta * float(best.prices.sum()) * bool(len(self.left))
            joining = np.argsort(-gains, kind="stable")[:JOIN]
            joining = joining[gains[joining] > CLOSE * abs(optimum)]
            if not len(joining) or number == ROUNDS - 1 or deadline.over():
                break
            used = np.union1d(used, joining)
        charged, over = self.charged(best.prices)
        every = replace(self.columns(slice(0, 1)), base=self.base, rise=self.rise)
        rows, prices = raised(every, best.criteria @ self.top, charged, over, best.rows, best.prices)
        columns = with_erasure((self.base + self.rise)[:, used] * best.weights)
        return ColumnSolution(columns, rows, prices, best.criteria, every.left, every.right)

    def paid(self, best: Weighed) -> Array:
        """(n,) the prices of the columns at the multipliers of `best`."""
        return np.asarray(self.base * math.fsum(best.rows) + best.rows @ self.rise + self.charged(best.prices)[0])

    def first(self) -> Index:
        """All of at most `FIRST` columns; else some at random, and the columns in which an input stands out most."""
        n = len(self.base)
        if n <= FIRST:
            return np.arange(n)
        spread = np.random.default_rng(n).choice(n, FIRST // 3, replace=False)
        share = (self.base + self.rise) / (self.base + self.rise).sum(axis=0)
        outstanding = np.concatenate(
            [np.argsort(-share, axis=1)[:, :8].ravel(), np.argsort(share, axis=1)[:, :8].ravel()]
        )
        return np.unique(np.concatenate([spread, outstanding]))


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))
