"""The worth of a channel of integers as a function of a sum over its columns, and after every move between two columns.

For a column utility the worth is the sum itself. For a sum of variances it is a function of the information J:

    J = sum_y q_y q_y^T / (q_y . p)

A move adds a step to a column and subtracts it from another. To first order its gain is a term of the one and a term
of the other. So the best of all moves are found without forming them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.candidate import needs_columns
from ldpopt.design.integers.task import Task
from ldpopt.design.patterns.proof_levels import Integers
from ldpopt.design.utilities.base import columns_of
from ldpopt.values.distribution import Array

SMALLEST_EIGENVALUE = 1e-10  # Of the information of a channel that determines all quantities, in units of the mean one
SMALLEST_FALL = 1e-6  # The smallest ratio of the determinant of the information after a move to that before.
MOVES_PER_BATCH = 64  # Of so many moves the worth is computed first.
MAX_COMPUTED_MOVES = 4096  # The most moves whose worth is computed, those of the largest first-order gain
MAX_SINGULAR_ENTRIES = 3_000_000  # The most numbers that are formed where no channel determines all quantities yet
TOP_COLUMNS = 4  # First moves are between so many best columns that take, and so many that give, for each step.

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The moves from columns (k, m). The last one is a zero column for a new output.

    - `steps` : (n, k) the units that a column takes from another.
    - `takes`, `gives` : (m, n) True if a column keeps the ratio with the step added, and subtracted.

    A move from the column b to the column a by the step s has the number (a m + b) n + s.
    """

    columns: Integers
    steps: Integers
    takes: npt.NDArray[np.bool_]
    gives: npt.NDArray[np.bool_]

    @cached_property
    def moves(self) -> Index:
        """The numbers (N,) of the allowed moves."""
        allowed = self.takes[:, None] & self.gives[None]
        allowed[np.diag_indices(len(self.takes))] = False
        return np.flatnonzero(allowed)

    def places(self, moves: Index) -> tuple[Index, Index, Index]:
        """Return (n,) the column that takes, the one that gives and the step of each move."""
        pairs, step = np.divmod(moves, len(self.steps))
        first, second = np.divmod(pairs, self.columns.shape[1])
        return first, second, step

    def changed(self, moves: Index) -> tuple[Integers, Integers, Integers]:
        """Compute the columns after each move: (k, n) that took, (k, n) that gave, and (n, 2) their places."""
        first, second, step = self.places(moves)
        steps = self.steps[step].T
        return self.columns[:, first] + steps, self.columns[:, second] - steps, np.stack([first, second], axis=1)

    def pair(self, move: int) -> tuple[int, int]:
        """Return the two columns that a move changes."""
        first, second = divmod(move // len(self.steps), self.columns.shape[1])
        return first, second

    def moved(self, columns: Integers, move: int) -> Integers:
        """Compute the columns (k, m) after a move."""
        (first, second), step = self.pair(move), self.steps[move % len(self.steps)]
        changed_columns = columns.copy()
        changed_columns[:, first] += step
        changed_columns[:, second] -= step
        return changed_columns

    def top(self, takes: Array, gives: Array) -> tuple[Index, Array]:
        """List moves with large sums of a term (m, n) of the column that takes and one of the column that gives.

        The terms are -inf where a column cannot. Returns the numbers (N,) and the sums, also some of -inf.
        """
        count = min(TOP_COLUMNS, len(takes))
        takers, givers = (np.argpartition(-terms, count - 1, axis=0)[:count] for terms in (takes, gives))
        sums = np.take_along_axis(takes, takers, 0)[:, None] + np.take_along_axis(gives, givers, 0)[None]
        sums[takers[:, None] == givers[None]] = -np.inf
        n = len(self.steps)
        return ((takers[:, None] * len(takes) + givers[None]) * n + np.arange(n)).ravel(), sums.ravel()

    def exceeding(self, takes: Array, gives: Array, threshold: float) -> tuple[Index, Array]:
        """List (N,) all moves whose sums of terms exceed `threshold`, as for `top`."""
        used = np.flatnonzero(takes.max(axis=0) + gives.max(axis=0) > threshold)
        sums = takes[:, None, used] + gives[None, :, used]
        sums[np.diag_indices(len(takes))] = -np.inf
        first, second, step = np.nonzero(sums > threshold)
        return (first * len(takes) + second) * len(self.steps) + used[step], sums[first, second, step]


@dataclass(frozen=True, eq=False)
class ColumnWorth:
    """The value of a channel for a column utility, as a function of a sum over its columns: the smallest criterion."""

    utility: Any

    def parts(self, columns: Integers) -> Array:
        """Compute (n, criteria) the terms mu_j of columns (k, n); zero for a zero column."""
        used_columns = np.flatnonzero(columns.any(axis=0))
        values = columns_of(self.utility, columns[:, used_columns].astype(np.float64)).T
        terms = np.zeros((columns.shape[1], values.shape[1]))
        terms[used_columns] = values
        return terms

    def total(self, columns: Integers) -> Array:
        """Compute (criteria,) the sum of `parts`."""
        return np.asarray(self.parts(columns).sum(axis=0))

    def value(self, sums: Array) -> Array:
        """Compute (N,) the values of sums (N, ...) over all outputs; -inf if nothing is preserved."""
        return np.asarray(sums.min(axis=1))

    def after(self, neighbors: Neighbours, _: float) -> Iterator[tuple[Index, Array]]:
        """Yield (n,) all moves and the values after them."""
        columns, steps = neighbors.columns, neighbors.steps
        k, (m, n) = len(columns), neighbors.takes.shape
        terms = self.parts(columns)
        first, second, step = neighbors.places(neighbors.moves)
        change = np.zeros((len(first), terms.shape[1]))
        for sign, is_possible, chosen in ((1, neighbors.takes, first), (-1, neighbors.gives, second)):
            changed_columns = (columns[:, :, None] + sign * steps.T[:, None]).reshape(k, m * n)
            changed_columns[:, ~is_possible.ravel()] = 0
            differences = self.parts(changed_columns).reshape(m, n, -1) - terms[:, None]
            change += differences[chosen, step]
        yield neighbors.moves, self.value(terms.sum(axis=0)[None] + change)


@dataclass(frozen=True, eq=False)
class VarianceWorth:
    """The worth for a sum of variances of the contrasts F (k, r) at a pilot p (k,): minus that sum, divided by D."""

    prior: Array
    factor: Array

    def parts(self, columns: Integers) -> Array:
        """Compute (n, k, k) c c^T / (p . c) of every column c."""
        entries = columns.astype(np.float64)
        mass = self.prior @ entries
        return np.asarray(np.einsum("xn,yn->nxy", entries, entries) / np.where(mass > 0, mass, 1.0)[:, None, None])

    def total(self, columns: Integers) -> Array:
        """Compute J (k, k), the sum of `parts`."""
        entries = columns.astype(np.float64)
        mass = self.prior @ entries
        return np.asarray((entries / np.where(mass > 0, mass, 1.0)) @ entries.T)

    def value(self, sums: Array) -> Array:
        """Compute (N,) minus the trace of F^T J^-1 F."""
        worths = np.full(len(sums), -np.inf)
        scale = np.trace(sums, axis1=1, axis2=2) / sums.shape[1]
        definite = np.linalg.eigvalsh(sums)[:, 0] > SMALLEST_EIGENVALUE * scale
        inverse = np.linalg.inv(sums[definite])
        worths[definite] = -np.einsum("xr,nxy,yr->n", self.factor, inverse, self.factor)
        return worths

    def after(self, neighbors: Neighbours, value: float) -> Iterator[tuple[Index, Array]]:
        """Yield (n,) moves and the values after them: first a few with large gains to first order, then the others.

        value : before the moves.

        The trace is convex in J, so its linear part bounds the gain of a move: without it a move is left out. Of more
        than `MAX_COMPUTED_MOVES` only those with the largest bounds are computed.
        """
        sums = self.total(neighbors.columns)
        if not np.isfinite(value):
            # A move changes two columns, so that it adds at most 2 to the rank, and J must have all of it.
            k = len(neighbors.columns)
            has_full_rank = np.linalg.matrix_rank(neighbors.columns) + 2 >= k
            moves = neighbors.moves[: MAX_SINGULAR_ENTRIES // k**2 if has_full_rank else 0]
            takers, givers, places = neighbors.changed(moves)
            terms = self.parts(neighbors.columns)
            change = self.parts(takers) + self.parts(givers) - terms[places].sum(axis=1)
            yield moves, self.value(sums[None] + change)
            return
        update = _VarianceUpdate.build(self.prior, self.factor, sums, neighbors)
        first_order = update.first_order()
        moves, bounds = neighbors.top(*first_order)
        batch = _largest(bounds, MOVES_PER_BATCH)
        first = moves[batch[bounds[batch] > 0]]
        yield first, value + update.gains(first)
        moves, bounds = neighbors.exceeding(*first_order, 0.0)
        others = np.setdiff1d(moves[_largest(bounds, MAX_COMPUTED_MOVES)], first)
        yield others, value + update.gains(others)


def _largest(numbers: Array, count: int) -> Index:
    """Return the places of the `count` largest numbers, or of all if there are fewer."""
    return np.arange(len(numbers)) if len(numbers) <= count else np.argpartition(-numbers, count - 1)[:count]


@dataclass(frozen=True, eq=False)
class _Forms:
    """A quadratic form of columns a (m of them) and steps d: a Q a', a Q d and d Q d.

    - `columns` : (m, m). `mixed` : (m, steps). `steps` : (steps,).
    """

    columns: Array
    mixed: Array
    steps: Array

    @classmethod
    def build(cls, square: Array, columns: Array, steps: Array) -> _Forms:
        """Compute the form of a symmetric matrix (k, k) for columns (k, m) and steps (k, n)."""
        left = columns.T @ square
        return cls(left @ columns, left @ steps, np.asarray(((square @ steps) * steps).sum(axis=0)))

    def on_basis(self, first: Index, second: Index, step: Index) -> Array:
        """Compute the form (n, 3, 3) on the two columns and the step of each move."""
        form = np.empty((len(first), 3, 3))
        form[:, 0, 0], form[:, 1, 1], form[:, 2, 2] = (
            self.columns[first, first], self.columns[second, second], self.steps[step]
        )  # fmt: skip
        form[:, 0, 1] = form[:, 1, 0] = self.columns[first, second]
        form[:, 0, 2] = form[:, 2, 0] = self.mixed[first, step]
        form[:, 1, 2] = form[:, 2, 1] = self.mixed[second, step]
        return form


@dataclass(frozen=True, eq=False)
class _VarianceUpdate:
    """The change of -tr F^T J^-1 F by moves, where J = sum c c^T / (p . c): of rank three, in the columns a, b and d.

    A move replaces the columns a and b by a + d and b - d. So J changes by B W B^T, with B = (a, b, d) and a small W.
    The trace falls by tr(W (I + M W)^-1 G) [Woodbury]. Here M is B^T J^-1 B, and G is B^T J^-1 F F^T J^-1 B.

    - `inverse`, `slope` : the forms of J^-1 and of J^-1 F F^T J^-1.
    - `mass`, `step_mass` : (m,) and (steps,) the probabilities of columns and steps.
    """

    neighbors: Neighbours
    inverse: _Forms
    slope: _Forms
    mass: Array
    step_mass: Array

    @classmethod
    def build(cls, prior: Array, factor: Array, information: Array, neighbors: Neighbours) -> _VarianceUpdate:
        """Build the forms for the moves from columns whose information J (k, k) is regular."""
        columns, steps = neighbors.columns.astype(np.float64), neighbors.steps.T.astype(np.float64)
        inverse = np.linalg.inv(information)
        root = factor.T @ inverse
        inverse_forms, slope_forms = (
            _Forms.build(square, columns, steps) for square in ((inverse + inverse.T) / 2, root.T @ root)
        )
        return cls(neighbors, inverse_forms, slope_forms, prior @ columns, prior @ steps)

    def first_order(self) -> tuple[Array, Array]:
        """Compute (m, steps) the terms of the column that takes and of the one that gives; -inf where it cannot.

        Their sum is the gain to first order, which bounds that of the move: the trace is convex.
        """
        form, before = self.slope, _per_mass(np.diag(self.slope.columns), self.mass)
        terms = []
        for sign, is_possible in ((1, self.neighbors.takes), (-1, self.neighbors.gives)):
            after = np.diag(form.columns)[:, None] + 2 * sign * form.mixed + form.steps
            change = _per_mass(after, self.mass[:, None] + sign * self.step_mass) - before[:, None]
            terms.append(np.where(is_possible, change, -np.inf))
        return terms[0], terms[1]

    def gains(self, moves: Index) -> Array:
        """Compute (n,) the gains of moves, -inf for one that leaves J nearly singular."""
        basis = first, second, step = self.neighbors.places(moves)
        taken_mass, given_mass = self.mass[first] + self.step_mass[step], self.mass[second] - self.step_mass[step]
        weights = np.zeros((len(moves), 3, 3))
        for sign, vector, mass in (
            (1.0, (1, 0, 1), taken_mass), (1.0, (0, 1, -1), given_mass), (-1.0, (1, 0, 0), self.mass[first]),
            (-1.0, (0, 1, 0), self.mass[second]),
        ):  # fmt: skip
            weights += np.outer(vector, vector) * _per_mass(np.full(len(mass), sign), mass)[:, None, None]
        change = np.eye(3) + self.inverse.on_basis(*basis) @ weights
        gains = np.full(len(moves), -np.inf)
        used = np.flatnonzero(np.linalg.det(change) > SMALLEST_FALL)
        slope = self.slope.on_basis(first[used], second[used], step[used])
        gains[used] = np.einsum("nij,nji->n", weights[used], np.linalg.solve(change[used], slope))
        return gains


def _per_mass(numbers: Array, mass: Array) -> Array:
    """Divide by masses; 0 for a column that is zero."""
    return np.where(mass > 0, numbers / np.where(mass > 0, mass, 1.0), 0.0)


def worth_of(task: Task) -> ColumnWorth | VarianceWorth | None:
    """Return the worth for a task's utility, a column utility or a sum of variances; else None."""
    utility = task.utility
    if not needs_columns(task.problem):
        return ColumnWorth(task.on_rows)
    if is_sum_of_variances(utility):
        return VarianceWorth(np.asarray(utility.prior), np.asarray(utility.criterion.factor(utility.size)))
    return None


def worth_of_weights(worth: ColumnWorth | VarianceWorth, weights: Integers) -> float:
    """Compute the worth of weights (k, m)."""
    return float(worth.value(worth.total(weights)[None])[0])


def is_sum_of_variances(utility: Any) -> bool:
    """Return True if a utility is a sum of variances at a pilot, without a neighborhood."""
    criterion = getattr(utility, "criterion", None)
    return bool(getattr(criterion, "additive", False)) and getattr(utility, "neighbourhood", None) is None
