"""The mixed-integer program of channels over a denominator: how often each column of integers is used.

    max s   s.t.  s <= sum_c z_c g_j(c) for every criterion j,  sum_c z_c c = D 1,
                  sum_c z_c (c_x - c_x')_+ <= cap for x != x',  z whole and >= 0

Nothing here is trusted. Columns that lose much in the linear program are left out before the search.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.integer import Integers
from ldpopt.design.solve import solve_real, solve_whole
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

KEPT = 300
"""The most columns that the search may use: the best ones by their reduced costs."""

NODES = 500
"""The most nodes of the search tree."""


@dataclass(frozen=True, eq=False)
class IntegerColumnsProgram:
    """columns : (k, n) integers. total : D. cap : on the total variation of two rows, in units of 1/D, or None."""

    columns: Integers
    total: int
    cap: int | None

    def best(self, gains: Array) -> tuple[Integers, float, bool]:
        """Integers (k, m) that sum to D, the solver's bound on the least criterion, and whether its search was done.

        gains : (criteria, n). Raises `SolverError` where no channel has columns among these.
        """
        kept = self._promising(gains)
        found = solve_whole(*self._pose(kept, gains), "integer columns", NODES)
        counts = found.values[:-1].astype(np.int64)
        used = kept[counts > 0]
        weights = merged(np.repeat(self.columns[:, used], counts[counts > 0], axis=1))
        if not (weights.sum(axis=1) == self.total).all():
            raise SolverError("integer columns: the solver's numbers do not add up; pass another method")
        return weights, found.bound, found.finished

    def relaxed(self, gains: Array) -> Array:
        """(k, m) the columns of the linear program's solution, each times its real weight."""
        z, _ = self._linear(gains)
        used = np.flatnonzero(z > 1e-12)
        return np.asarray(self.columns[:, used] * z[used])

    def _pose(self, kept: npt.NDArray[np.intp], gains: Array) -> tuple[Array, Array, Array, Array, Array, list[bool]]:
        columns = self.columns[:, kept].astype(np.float64)
        k, n = columns.shape
        objective = np.append(np.zeros(n), 1.0)
        equal = np.hstack([columns, np.zeros((k, 1))])
        rows, most = [np.hstack([-gains[:, kept], np.ones((len(gains), 1))])], [np.zeros(len(gains))]
        if self.cap is not None:
            apart = np.array([np.maximum(columns[x] - columns[y], 0) for x, y in permutations(range(k), 2)])
            rows.append(np.hstack([apart, np.zeros((len(apart), 1))]))
            most.append(np.full(len(apart), float(self.cap)))
        right = np.full(k, float(self.total))
        return objective, equal, right, np.vstack(rows), np.concatenate(most), [True] * n + [False]

    def _linear(self, gains: Array) -> tuple[Array, Array]:
        """The weights of the linear program, and the reduced cost of every column, none above zero."""
        objective, equal, right, above, most, _ = self._pose(np.arange(self.columns.shape[1]), gains)
        found, costs = solve_real(objective, equal, right, above, most, "integer columns")
        return found[:-1], -costs[:-1]

    def _promising(self, gains: Array) -> npt.NDArray[np.intp]:
        count = self.columns.shape[1]
        if count <= KEPT:
            return np.arange(count)
        return np.sort(np.argsort(-self._linear(gains)[1], kind="stable")[:KEPT])


def merged(weights: Integers) -> Integers:
    """The columns with proportional ones merged: guarantees and utility stay the same, with fewer reports."""
    parts: dict[tuple[int, ...], Integers] = {}
    for column in weights.T:
        if column.any():
            key = tuple((column // np.gcd.reduce(column)).tolist())
            parts[key] = parts[key] + column if key in parts else column
    return np.stack(list(parts.values()), axis=1)


def as_matrix(weights: Integers, total: int) -> Array:
    """The floats nearest to weights / total."""
    return np.asarray(weights / np.float64(total))
