"""A problem over a denominator -> the task in integers, and channels of integers improved by moves of single units.

The value of a channel is a function of a sum over its columns. For a column utility it is the sum itself, and for a
sum of variances the information J = sum_y q_y q_y^T / (q_y . p). A move changes two terms of the sum, so that all moves
between all pairs of outputs are valued together. Where no move helps, a few random moves are made, and the search goes
on from there; the random numbers are the same every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, needs_columns
from ldpopt.design.constraints.base import meets_constraints
from ldpopt.design.design import Design
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.patterns.proof_levels import IntegerColumns, Integers, as_matrix, merge_proportional
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import columns_of
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.exact import exp_lower, largest_distance, reach
from ldpopt.numbers.tolerances import ZERO_VALUE
from ldpopt.values.distribution import Array

MAX_POLISHING_MOVES = 400  # The most units that are moved


@dataclass(frozen=True, eq=False)
class Task:
    """A problem over a denominator, in integers.

    - `total` : D.
    - `ratio` : the largest ratio of two entries of a column, a rational not above e^epsilon; None without a cap.
    - `cap` : the largest total variation of two rows, in units of 1/D; None where it cannot bind.
    """

    problem: Problem
    total: int
    ratio: Fraction | None
    cap: int | None

    @classmethod
    def from_problem(cls, problem: Problem, tighter: bool = False) -> Task:
        """Build the task of a problem.

        tighter : make both caps a little tighter, where a channel of floats measures an ulp more than its integers.
        """
        assert problem.denominator is not None
        D, epsilon, eta = problem.denominator, problem.epsilon, problem.eta
        ratio = None if math.isinf(epsilon) else exp_lower(epsilon) * (1 - Fraction(tighter, 1 << 48))
        cap = math.floor(Fraction(eta) * D) - tighter if eta < 1 else None
        return cls(problem, D, None if ratio is None else max(ratio, Fraction(1)), None if cap is None else max(cap, 0))

    @property
    def inputs(self) -> int:
        """The number of rows; inputs of a pair of hypotheses with equal likelihood ratios share a row."""
        return len(self.problem.inputs)

    @property
    def utility(self) -> Any:
        """The problem's utility, of all inputs."""
        return self.problem.utility

    @property
    def on_rows(self) -> Any:
        """The utility of the merged rows of a pair of hypotheses; else the utility itself."""
        if self.utility.pair is None:
            return self.utility
        pair = self.problem.reduction.pair
        return type(self.utility)(self.utility.f, pair.p0, pair.p1)

    def allows(self, weights: Integers) -> bool:
        """Return True if integers (k, m) meet the ratio and the cap."""
        low, high = weights.min(axis=0), weights.max(axis=0)
        if self.ratio is not None and not all(
            b * self.ratio.denominator <= a * self.ratio.numerator
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ):
            return False
        return self.cap is None or int(largest_distance(weights)[0]) <= self.cap

    def rows(self, weights: Integers) -> Array:
        """Build the channel of floats, with one row per input of the problem."""
        rows = as_matrix(weights, self.total)
        return rows if self.utility.pair is None else rows[self.problem.reduction.classes]

    def value(self, weights: Integers) -> float:
        """Compute the channel's utility, or minus its error, so that larger is better."""
        value = float(self.utility.value(Channel(self.rows(weights))))
        return -math.inf if math.isnan(value) else -value if self.utility.error else value

    def measured(self, weights: Integers) -> bool:
        """Return True if the channel of floats, measured, meets every constraint of the problem."""
        return meets_constraints(Channel(self.rows(weights), self.problem.labels), self.problem.constraints)

    def candidate(self, free: Design | None, weights: Integers, description: str, note: str) -> Candidate:
        """Build the candidate of the weights, with the bound of the optimum without a denominator."""
        value, cost = self.value(weights), ""
        if free is not None and abs(free.value) > ZERO_VALUE and math.isfinite(value):
            has_larger_error = self.utility.error or free.value < 0
            share = (
                f"{abs(value / free.value) - 1:.2%} more error"
                if has_larger_error
                else f"{1 - value / free.value:.2%} less"
            )
            cost = f"{share} than without a denominator"

        def prove(problem: Problem, channel: Channel) -> Iterator[Certificate]:
            if free is not None and free.certificate is not None:
                yield Relaxed(problem.original_utility, problem.constraints, channel, free.certificate)
            if IntegerColumns.applies(problem.original_utility, problem.constraints):
                yield IntegerColumns(problem.original_utility, problem.constraints, channel)

        return Candidate(
            as_matrix(weights, self.total), description, prove, note="; ".join(filter(None, (cost, note))),
            shortfall="the bound is that of channels without a denominator",
        )  # fmt: skip


def polished(task: Task, weights: Integers) -> Integers:
    """Move single units of a row between outputs, as long as that improves the weights."""
    best, value = weights, task.value(weights)
    for _ in task.problem.deadline.inner.rounds(range(MAX_POLISHING_MOVES)):
        step = max(
            (
                (task.value(changed_weights), index, changed_weights)
                for index, changed_weights in enumerate(_single_unit_moves(task, best))
            ),
            key=lambda item: (item[0], -item[1]),
            default=None,
        )
        if step is None or not step[0] > value + 1e-12 * abs(value):
            return best
        value, _, best = step
    return best


def _single_unit_moves(task: Task, weights: Integers) -> Iterator[Integers]:
    k, m = weights.shape
    for x, (giver, taker) in product(range(k), permutations(range(m), 2)):
        if weights[x, giver] > 0:
            changed_weights = weights.copy()
            changed_weights[x, giver] -= 1
            changed_weights[x, taker] += 1
            if task.allows(changed_weights):
                yield changed_weights


def refusal(problem: Problem) -> str:
    """Return the reason why no method for a denominator applies; empty if one may."""
    if problem.denominator is None:
        return "no constraint gives a denominator"
    if problem.cells is not None or problem.utility.continuous:
        return "the answers are real numbers"
    if problem.output_constraints:
        return "it knows no constraints on the outputs beside a denominator"
    rest = problem.without_denominator
    if rest is None or not rest.has_only_ldp_and_tv:
        return "it knows LocalDP and TotalVariation between all inputs, and no other constraint beside a denominator"
    return ""


def unrestricted(problem: Problem, ask: Ask) -> Design | None:
    """Design the optimum without a denominator; None if there is none, or the search fails."""
    if (rest := problem.without_denominator) is not None:
        with suppress(SolverError, InvalidInput):
            design: Design = ask(problem.original_utility, rest.constraints, certify=problem.proving)
            return design
    return None


MAX_CLIMB_MOVES = 300  # The largest number of successive moves.
MAX_RESTARTS, MAX_RESTARTS_FEW_INPUTS = 12, 36  # Restarts of the search from a channel near its best one.
MAX_FEW_INPUTS = 4  # Up to this number of inputs the search restarts more often.
MAX_MOVES_TRIED = 20  # The number of best moves that are tried if a cap on total variation may forbid some.
# The most integers that are formed for the moves of one step; with more moves, only those of few rows are tried.
MAX_MOVE_ENTRIES = 3_000_000
SMALLEST_EIGENVALUE = 1e-10  # Of the information of a channel that determines all quantities, in units of the mean one
SMALLEST_FALL = 1e-6  # The smallest ratio of the determinant of the information after a move to that before.
MAX_KNOWN_NEIGHBOURS = 8  # Neighbors of so many weights are remembered.
MOVES_PER_BATCH = 64  # Of so many moves the worth is computed first; it rules out most others


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The moves from columns (k, m), the last of which is a zero column for a new output.

    - `first`, `second` : (pairs,) the column that takes, and the one that gives.
    - `enlarged`, `reduced` : (k, m, steps) every column with every step added, and subtracted.
    - `allowed` : (pairs, steps) the moves that keep the ratio. A move's number is its position in the flat array.
    """

    columns: Integers
    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    enlarged: Integers
    reduced: Integers
    allowed: npt.NDArray[np.bool_]

    @cached_property
    def moves(self) -> npt.NDArray[np.intp]:
        """The numbers (N,) of the allowed moves."""
        return np.flatnonzero(self.allowed)

    def changed(self, moves: npt.NDArray[np.intp]) -> tuple[Integers, Integers, npt.NDArray[np.intp]]:
        """Compute the columns after each move: (k, n) that took, (k, n) that gave, and (n, 2) their places."""
        pair, step = np.divmod(moves, self.allowed.shape[1])
        first, second = self.first[pair], self.second[pair]
        return self.enlarged[:, first, step], self.reduced[:, second, step], np.stack([first, second], axis=1)

    def weights(self, move: int) -> Integers:
        """Compute the weights after a move."""
        pair, step = divmod(move, self.allowed.shape[1])
        first, second = self.first[pair], self.second[pair]
        changed_weights = self.columns.copy()
        changed_weights[:, first], changed_weights[:, second] = (
            self.enlarged[:, first, step],
            self.reduced[:, second, step],
        )
        return np.asarray(changed_weights[:, changed_weights.any(axis=0)])


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

    def value(self, sums: Array) -> Array:
        """Compute (N,) the values of sums (N, ...) over all outputs; -inf if nothing is preserved."""
        return np.asarray(sums.min(axis=1))

    def after(self, neighbors: Neighbours, best: int) -> tuple[npt.NDArray[np.intp], Array]:
        """List (n,) all moves and the values after them; `best` is ignored."""
        takers, givers, places = neighbors.changed(neighbors.moves)
        terms = self.parts(neighbors.columns)
        change = self.parts(takers) + self.parts(givers) - terms[places[:, 0]] - terms[places[:, 1]]
        return neighbors.moves, self.value(terms.sum(axis=0)[None] + change)


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

    def value(self, sums: Array) -> Array:
        """Compute (N,) minus the trace of F^T J^-1 F."""
        worths = np.full(len(sums), -np.inf)
        scale = np.trace(sums, axis1=1, axis2=2) / sums.shape[1]
        definite = np.linalg.eigvalsh(sums)[:, 0] > SMALLEST_EIGENVALUE * scale
        inverse = np.linalg.inv(sums[definite])
        worths[definite] = -np.einsum("xr,nxy,yr->n", self.factor, inverse, self.factor)
        return worths

    def after(self, neighbors: Neighbours, best: int) -> tuple[npt.NDArray[np.intp], Array]:
        """List (n,) moves in order, with the `best` best ones among them, and the values after them.

        The trace is convex in J, so its linear part bounds the gain of a move. A move is not among the best if its
        bound is below the gain of enough others.
        """
        terms = self.parts(neighbors.columns)
        sums = terms.sum(axis=0)
        value = float(self.value(sums[None])[0])
        if not np.isfinite(value):
            # A move changes two columns, so that it adds at most 2 to the rank, and J must have all of it.
            small_rank_moves = (
                neighbors.moves
                if np.linalg.matrix_rank(neighbors.columns) + 2 >= len(neighbors.columns)
                else neighbors.moves[:0]
            )
            takers, givers, places = neighbors.changed(small_rank_moves)
            change = self.parts(takers) + self.parts(givers) - terms[places].sum(axis=1)
            return small_rank_moves, self.value(sums[None] + change)
        update = _VarianceUpdate.build(self.prior, self.factor, sums, neighbors)
        gains = update.gain_bounds()
        gains[~neighbors.allowed] = 0.0
        gains = gains.ravel()
        gaining_moves = np.flatnonzero(gains > 0)
        if len(gaining_moves) <= (batch_size := max(MOVES_PER_BATCH, best)):
            return gaining_moves, value + update.gains(gaining_moves)
        order = np.argpartition(-gains[gaining_moves], batch_size - 1)
        first, rest = gaining_moves[order[:batch_size]], gaining_moves[order[batch_size:]]
        first_gains = update.gains(first)
        candidates = rest[gains[rest] * (1 + 1e-6) >= np.sort(first_gains)[-best]]
        moves = np.concatenate([first, candidates])
        order = np.argsort(moves)
        return moves[order], value + np.concatenate([first_gains, update.gains(candidates)])[order]


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

    def on_basis(self, first: npt.NDArray[np.intp], second: npt.NDArray[np.intp], step: npt.NDArray[np.intp]) -> Array:
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
        columns = neighbors.columns.astype(np.float64)
        steps = (neighbors.enlarged[:, 0] - neighbors.columns[:, :1]).astype(np.float64)
        inverse = np.linalg.inv(information)
        root = factor.T @ inverse
        inverse_forms, slope_forms = (
            _Forms.build(square, columns, steps) for square in ((inverse + inverse.T) / 2, root.T @ root)
        )
        return cls(neighbors, inverse_forms, slope_forms, prior @ columns, prior @ steps)

    def gain_bounds(self) -> Array:
        """Compute (pairs, steps) the gains to first order, which bound those of the moves: the trace is convex."""
        form, before = self.slope, _per_mass(np.diag(self.slope.columns), self.mass)
        diagonal = np.diag(form.columns)[:, None]
        takes = _per_mass(diagonal + 2 * form.mixed + form.steps, self.mass[:, None] + self.step_mass)
        gives = _per_mass(diagonal - 2 * form.mixed + form.steps, self.mass[:, None] - self.step_mass)
        first, second = self.neighbors.first, self.neighbors.second
        return np.asarray((takes - before[:, None])[first] + (gives - before[:, None])[second])

    def gains(self, moves: npt.NDArray[np.intp]) -> Array:
        """Compute (n,) the gains of moves, -inf for one that leaves J nearly singular."""
        pair, step = np.divmod(moves, self.neighbors.allowed.shape[1])
        basis = first, second, step = self.neighbors.first[pair], self.neighbors.second[pair], step
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


def is_sum_of_variances(utility: Any) -> bool:
    """Return True if a utility is a sum of variances at a pilot, without a neighborhood."""
    criterion = getattr(utility, "criterion", None)
    return bool(getattr(criterion, "additive", False)) and getattr(utility, "neighbourhood", None) is None


@dataclass(frozen=True, eq=False)
class Moves:
    """The search for a task whose worth is a function of a sum over columns."""

    task: Task
    worth: ColumnWorth | VarianceWorth

    @cached_property
    def _ends(self) -> dict[bytes, Integers]:
        """The ends of the climbs so far, from each of the weights that they came to: restarts come to many again."""
        return {}

    @cached_property
    def _known_neighbours(self) -> dict[bytes, Neighbours]:
        """The neighbors of a few of the last weights."""
        return {}

    @cached_property
    def _reach(self) -> Integers:
        """The largest entry (D + 1,) that a column may have, by its smallest entry."""
        task = self.task
        return np.array([reach(low, task.ratio, task.total) for low in range(task.total + 1)], dtype=np.int64)

    @cached_property
    def _directions(self) -> Integers:
        """The units (n, k) that one column takes from another: first moves of one or two rows, then of more rows."""
        k = self.task.inputs
        small_moves = [dict(zip(rows, signs, strict=True)) for size in (1, 2) for rows in combinations(range(k), size)
               for signs in product((1, -1), repeat=size)]  # fmt: skip
        directions = [tuple(move.get(x, 0) for x in range(k)) for move in small_moves]
        if 3**k <= 729:
            directions += [d for d in product((1, 0, -1), repeat=k) if sum(map(abs, d)) > 2]
        return np.array(directions, dtype=np.int64)

    def best(self, weights: Integers, restarts: int | None = None) -> Integers:
        """Improve the weights by climbs from random moves; the result is at least as good."""
        if restarts is None:
            restarts = MAX_RESTARTS_FEW_INPUTS if self.task.inputs <= MAX_FEW_INPUTS else MAX_RESTARTS
        rng = np.random.default_rng(0)
        best = self.climb(weights)
        value = self.worth_of_weights(best)
        for _ in self.task.problem.deadline.inner.rounds(range(restarts)):
            start = best
            for _ in range(int(rng.integers(1, 4))):
                start = self._random(start, rng)
            local_optimum = self.climb(start)
            if (new_value := self.worth_of_weights(local_optimum)) > value * (1 - 1e-12 * np.sign(value)):
                best, value = local_optimum, new_value
        return best

    def worth_of_weights(self, weights: Integers) -> float:
        """Compute the worth of weights (k, m)."""
        return float(self.worth.value(self.worth.parts(weights).sum(axis=0)[None])[0])

    def climb(self, weights: Integers) -> Integers:
        """Make the best move repeatedly, until none helps."""
        weights = merge_proportional(weights)
        value = self.worth_of_weights(weights)
        visited: list[bytes] = []
        for _ in self.task.problem.deadline.inner.rounds(range(MAX_CLIMB_MOVES)):
            if (end := self._ends.get(weights.tobytes())) is not None:
                weights = end
                break
            visited.append(weights.tobytes())
            if (improved := self._improved(weights, value)) is None:
                break
            weights, value = improved
        else:
            return weights
        self._ends.update(dict.fromkeys(visited, weights))
        return weights

    def _improved(self, weights: Integers, value: float) -> tuple[Integers, float] | None:
        """Return the weights after the best move, with their worth; None if no move helps."""
        neighbors = self._neighbours(weights)
        moves, worths = self.worth.after(neighbors, 1 if self.task.cap is None else MAX_MOVES_TRIED)
        min_worth = value + 1e-12 * abs(value) if np.isfinite(value) else value
        for number in np.argsort(-worths, kind="stable")[:MAX_MOVES_TRIED].tolist():
            if not worths[number] > min_worth:
                return None
            changed_weights = merge_proportional(neighbors.weights(int(moves[number])))
            new_value = self.worth_of_weights(changed_weights)  # not that of the move, which has rounding errors
            if new_value > min_worth and (self.task.cap is None or self.task.allows(changed_weights)):
                return changed_weights, new_value
        return None

    def _neighbours(self, weights: Integers) -> Neighbours:
        """Every move between two columns that stays within the ratio."""
        if (key := weights.tobytes()) in self._known_neighbours:
            return self._known_neighbours[key]
        if len(self._known_neighbours) >= MAX_KNOWN_NEIGHBOURS:
            self._known_neighbours.clear()
        self._known_neighbours[key] = neighbors = self._computed_neighbours(weights)
        return neighbors

    def _computed_neighbours(self, weights: Integers) -> Neighbours:
        extended_weights = np.hstack(
            [weights, np.zeros((len(weights), 1), np.int64)]
        )  # an output that is not there yet
        first, second = np.triu_indices(extended_weights.shape[1], 1)
        steps = self._directions[: max(2 * self.task.inputs, MAX_MOVE_ENTRIES // (len(first) * self.task.inputs))]
        columns_plus_step, columns_less_step = (
            extended_weights[:, :, None] + steps.T[:, None],
            extended_weights[:, :, None] - steps.T[:, None],
        )
        return Neighbours(
            extended_weights,
            first,
            second,
            columns_plus_step,
            columns_less_step,
            self._is_feasible(columns_plus_step)[first] & self._is_feasible(columns_less_step)[second],
        )

    def _is_feasible(self, columns: Integers) -> npt.NDArray[np.bool_]:
        """True for the columns (k, ...) without a negative entry and with a ratio within the cap."""
        low, high = columns.min(axis=0), columns.max(axis=0)
        return np.asarray((low >= 0) & (high <= self._reach[np.clip(low, 0, self.task.total)]))

    def _random(self, weights: Integers, rng: np.random.Generator) -> Integers:
        neighbors = self._neighbours(weights)
        if not len(neighbors.moves):
            return weights
        changed_weights: Integers = merge_proportional(
            neighbors.weights(int(neighbors.moves[rng.integers(len(neighbors.moves))]))
        )
        return changed_weights if self.task.cap is None or self.task.allows(changed_weights) else weights
