"""A problem over a denominator -> the task in integers, and channels of integers improved by moves of single units.

The value of a channel is a function of a sum over its columns: for a column utility the sum itself, for a sum of
variances the information J = sum_y q_y q_y^T / (q_y . p). A move changes two terms of the sum, so that all moves
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
from ldpopt.design.constraints.base import within
from ldpopt.design.design import Design
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.patterns.proof_levels import IntegerColumns, Integers, as_matrix, merge_proportional
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import columns_of
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.exact import exp_lower, largest_distance, reach
from ldpopt.numbers.tolerances import NOTHING
from ldpopt.values.distribution import Array

MAX_POLISHING_MOVES = 400  # The most units that are moved


@dataclass(frozen=True, eq=False)
class Task:
    """A problem over a denominator, in integers.

    total : D. ratio : the largest ratio of two entries of a column, a rational not above e^epsilon; None without a cap.
    cap : the largest total variation of two rows, in units of 1/D; None where it cannot bind.
    """

    problem: Problem
    total: int
    ratio: Fraction | None
    cap: int | None

    @classmethod
    def of(cls, problem: Problem, tighter: bool = False) -> Task:
        """The task of a problem.

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
        """Whether integers (k, m) are within the ratio and the cap."""
        low, high = weights.min(axis=0), weights.max(axis=0)
        if self.ratio is not None and not all(
            b * self.ratio.denominator <= a * self.ratio.numerator
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ):
            return False
        return self.cap is None or int(largest_distance(weights)[0]) <= self.cap

    def rows(self, weights: Integers) -> Array:
        """The channel of floats, with a row for each of all inputs."""
        rows = as_matrix(weights, self.total)
        return rows if self.utility.pair is None else rows[self.problem.reduction.classes]

    def value(self, weights: Integers) -> float:
        """The channel's utility, or minus its error, so that larger is better."""
        value = float(self.utility.value(Channel(self.rows(weights))))
        return -math.inf if math.isnan(value) else -value if self.utility.error else value

    def measured(self, weights: Integers) -> bool:
        """Whether the channel of floats meets every constraint of the problem by measurement."""
        return within(Channel(self.rows(weights), self.problem.labels), self.problem.constraints)

    def candidate(self, free: Design | None, weights: Integers, how: str, note: str) -> Candidate:
        """The candidate of weights, beside the optimum without a denominator, whose bound holds for it."""
        value, cost = self.value(weights), ""
        if free is not None and abs(free.value) > NOTHING and math.isfinite(value):
            more = self.utility.error or free.value < 0
            share = f"{abs(value / free.value) - 1:.2%} more error" if more else f"{1 - value / free.value:.2%} less"
            cost = f"{share} than without a denominator"

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            if free is not None and free.certificate is not None:
                yield Relaxed(posed.original_utility, posed.constraints, channel, free.certificate)
            if IntegerColumns.applies(posed.original_utility, posed.constraints):
                yield IntegerColumns(posed.original_utility, posed.constraints, channel)

        return Candidate(
            as_matrix(weights, self.total), how, prove, note="; ".join(filter(None, (cost, note))),
            shortfall="the bound is that of channels without a denominator",
        )  # fmt: skip


def polished(task: Task, weights: Integers) -> Integers:
    """The weights after moving one unit of a row from one output to another, as long as that helps."""
    best, value = weights, task.value(weights)
    for _ in task.problem.deadline.inner.rounds(range(MAX_POLISHING_MOVES)):
        step = max(
            ((task.value(moved), index, moved) for index, moved in enumerate(_single_unit_moves(task, best))),
            key=lambda item: (item[0], -item[1]),
            default=None,
        )
        if step is None or not step[0] > value + 1e-12 * abs(value):
            return best
        value, _, best = step
    return best


def _single_unit_moves(task: Task, weights: Integers) -> Iterator[Integers]:
    k, m = weights.shape
    for x, (gives, takes) in product(range(k), permutations(range(m), 2)):
        if weights[x, gives] > 0:
            moved = weights.copy()
            moved[x, gives] -= 1
            moved[x, takes] += 1
            if task.allows(moved):
                yield moved


def refusal(problem: Problem) -> str:
    """Why no method for a denominator applies; empty where one may."""
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
    """The optimum of the same problem without a denominator; None where there is none, or it is not found."""
    if (rest := problem.without_denominator) is not None:
        with suppress(SolverError, InvalidInput):
            design: Design = ask(problem.original_utility, rest.constraints, certify=problem.proving)
            return design
    return None


MAX_CLIMB_MOVES = 300  # The largest number of successive moves.
RESTARTS, RESTARTS_FEW_INPUTS = 12, 36  # Restarts of the search from a channel near its best one.
MAX_FEW_INPUTS = 4  # Up to this number of inputs the search restarts more often.
TRIED = 20  # The number of best moves that are tried if a cap on total variation may forbid some.
# The most integers that are formed for the moves of one step; with more moves, only those of few rows are tried.
MAX_MOVE_ENTRIES = 3_000_000
CHUNK = 64  # Of so many moves the worth is computed first; it rules out most others


@dataclass(frozen=True, eq=False)
class Neighbours:
    """What one move reaches from columns (k, m), the last of which is not there yet.

    first, second : (pairs,) the column that takes, and the one that gives.
    more, less : (k, m, steps) every column with every step added, and taken away.
    allowed : (pairs, steps) the moves that stay within the ratio; a move's number is its place in the flat array.
    """

    columns: Integers
    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    more: Integers
    less: Integers
    allowed: npt.NDArray[np.bool_]

    @cached_property
    def moves(self) -> npt.NDArray[np.intp]:
        """(N,) the numbers of the moves that are allowed."""
        return np.flatnonzero(self.allowed)

    def changed(self, moves: npt.NDArray[np.intp]) -> tuple[Integers, Integers, npt.NDArray[np.intp]]:
        """(k, n) the column that took, and the one that gave, after each of these moves, and (n, 2) their places."""
        pair, step = np.divmod(moves, self.allowed.shape[1])
        first, second = self.first[pair], self.second[pair]
        return self.more[:, first, step], self.less[:, second, step], np.stack([first, second], axis=1)

    def weights(self, move: int) -> Integers:
        """The weights after a move."""
        pair, step = divmod(move, self.allowed.shape[1])
        first, second = self.first[pair], self.second[pair]
        moved = self.columns.copy()
        moved[:, first], moved[:, second] = self.more[:, first, step], self.less[:, second, step]
        return np.asarray(moved[:, moved.any(axis=0)])


@dataclass(frozen=True, eq=False)
class ColumnWorth:
    """The value of a channel for a column utility, as a function of a sum over its columns: the least criterion."""

    utility: Any

    def parts(self, columns: Integers) -> Array:
        """(n, criteria) the terms mu_j of columns (k, n), zero for a zero column."""
        used = np.flatnonzero(columns.any(axis=0))
        values = columns_of(self.utility, columns[:, used].astype(np.float64)).T
        terms = np.zeros((columns.shape[1], values.shape[1]))
        terms[used] = values
        return terms

    def value(self, sums: Array) -> Array:
        """(N,) the values of sums (N, ...) over all outputs; more is better, and -inf means that nothing is kept."""
        return np.asarray(sums.min(axis=1))

    def after(self, near: Neighbours, best: int) -> tuple[npt.NDArray[np.intp], Array]:
        """(n,) moves, and the values after them; all moves, although only the best ones are asked for."""
        taking, giving, before = near.changed(near.moves)
        terms = self.parts(near.columns)
        change = self.parts(taking) + self.parts(giving) - terms[before[:, 0]] - terms[before[:, 1]]
        return near.moves, self.value(terms.sum(axis=0)[None] + change)


@dataclass(frozen=True, eq=False)
class VarianceWorth:
    """The worth for a sum of variances of the contrasts F (k, r) at a pilot p (k,): minus that sum, divided by D."""

    prior: Array
    factor: Array

    def parts(self, columns: Integers) -> Array:
        """(n, k, k) c c^T / (p . c) of every column c."""
        given = columns.astype(np.float64)
        mass = self.prior @ given
        return np.asarray(np.einsum("xn,yn->nxy", given, given) / np.where(mass > 0, mass, 1.0)[:, None, None])

    def value(self, sums: Array) -> Array:
        """(N,) minus the trace of F^T J^-1 F."""
        worths = np.full(len(sums), -np.inf)
        scale = np.trace(sums, axis1=1, axis2=2) / sums.shape[1]
        definite = np.linalg.det(sums / scale[:, None, None]) > 1e-10
        inverse = np.linalg.inv(sums[definite])
        worths[definite] = -np.einsum("xr,nxy,yr->n", self.factor, inverse, self.factor)
        return worths

    def after(self, near: Neighbours, best: int) -> tuple[npt.NDArray[np.intp], Array]:
        """(n,) moves in order, the `best` best ones among them, and the values after them.

        The trace is convex in J, so that its linear part bounds what a move gains. A move whose bound is below the gain
        of enough others is none of the best.
        """
        terms = self.parts(near.columns)
        whole = terms.sum(axis=0)
        value = float(self.value(whole[None])[0])

        def worths(moves: npt.NDArray[np.intp]) -> Array:
            taking, giving, before = near.changed(moves)
            change = self.parts(taking) + self.parts(giving) - terms[before].sum(axis=1)
            return self.value(whole[None] + change)

        if not np.isfinite(value):
            # A move changes two columns, so that it adds at most 2 to the rank, and J must have all of it.
            few = near.moves if np.linalg.matrix_rank(near.columns) + 2 >= len(near.columns) else near.moves[:0]
            return few, worths(few)
        root = self.factor.T @ np.linalg.inv(whole)  # of the slope G = J^-1 F F^T J^-1
        alone = self._gains(root, near.columns)
        more, less = (
            self._gains(root, each.reshape(len(each), -1)).reshape(each.shape[1:]) - alone[:, None]
            for each in (near.more, near.less)
        )
        gains = more[near.first] + less[near.second]
        gains[~near.allowed] = 0.0
        gains = gains.ravel()
        chosen = np.flatnonzero(gains > 0)
        if len(chosen) <= (some := max(CHUNK, best)):
            return chosen, worths(chosen)
        order = np.argpartition(-gains[chosen], some - 1)
        first, rest = chosen[order[:some]], chosen[order[some:]]
        known = worths(first)
        least = np.sort(known)[-best] - value
        more_of = rest[gains[rest] * (1 + 1e-6) >= least]
        moves = np.concatenate([first, more_of])
        order = np.argsort(moves)
        return moves[order], np.concatenate([known, worths(more_of)])[order]

    def _gains(self, root: Array, columns: Integers) -> Array:
        """(n,) c^T G c / (p . c) of every column c, with G = root^T root."""
        given = columns.astype(np.float64)
        mass = self.prior @ given
        return np.asarray(((root @ given) ** 2).sum(axis=0) / np.where(mass > 0, mass, 1.0))


def worth_of(task: Task) -> ColumnWorth | VarianceWorth | None:
    """The worth for a task's utility; None unless it is a column utility or a sum of variances."""
    utility = task.utility
    if not needs_columns(task.problem):
        return ColumnWorth(task.on_rows)
    if is_sum_of_variances(utility):
        return VarianceWorth(np.asarray(utility.prior), np.asarray(utility.criterion.factor(utility.size)))
    return None


def is_sum_of_variances(utility: Any) -> bool:
    """Whether a utility is a sum of variances at a pilot, without a neighbourhood."""
    criterion = getattr(utility, "criterion", None)
    return bool(getattr(criterion, "additive", False)) and getattr(utility, "neighbourhood", None) is None


@dataclass(frozen=True, eq=False)
class Moves:
    """The search for a task whose worth is a function of a sum over columns."""

    task: Task
    worth: ColumnWorth | VarianceWorth

    @cached_property
    def _reach(self) -> Integers:
        """(D + 1,) the largest entry that a column may have, by its least entry."""
        task = self.task
        return np.array([reach(low, task.ratio, task.total) for low in range(task.total + 1)], dtype=np.int64)

    @cached_property
    def _directions(self) -> Integers:
        """(n, k) units that one column takes from another: moves of one or two rows first, then those of more rows."""
        k = self.task.inputs
        few = [dict(zip(rows, signs, strict=True)) for size in (1, 2) for rows in combinations(range(k), size)
               for signs in product((1, -1), repeat=size)]  # fmt: skip
        directions = [tuple(move.get(x, 0) for x in range(k)) for move in few]
        if 3**k <= 729:
            directions += [d for d in product((1, 0, -1), repeat=k) if sum(map(abs, d)) > 2]
        return np.array(directions, dtype=np.int64)

    def best(self, weights: Integers, kicks: int | None = None) -> Integers:
        """The best weights found from `weights`, which are at least as good."""
        if kicks is None:
            kicks = RESTARTS_FEW_INPUTS if self.task.inputs <= MAX_FEW_INPUTS else RESTARTS
        rng = np.random.default_rng(0)
        best = self.climb(weights)
        value = self.of(best)
        for _ in self.task.problem.deadline.inner.rounds(range(kicks)):
            near = best
            for _ in range(int(rng.integers(1, 4))):
                near = self._random(near, rng)
            climbed = self.climb(near)
            if (other := self.of(climbed)) > value * (1 - 1e-12 * np.sign(value)):
                best, value = climbed, other
        return best

    def of(self, weights: Integers) -> float:
        """The worth of weights (k, m)."""
        return float(self.worth.value(self.worth.parts(weights).sum(axis=0)[None])[0])

    def climb(self, weights: Integers) -> Integers:
        """The weights after making the best move again and again, until none helps."""
        weights = merge_proportional(weights)
        value = self.of(weights)
        for _ in self.task.problem.deadline.inner.rounds(range(MAX_CLIMB_MOVES)):
            near = self._neighbours(weights)
            moves, worths = self.worth.after(near, 1 if self.task.cap is None else TRIED)
            better = value + 1e-12 * abs(value) if np.isfinite(value) else value
            for number in np.argsort(-worths, kind="stable")[:TRIED].tolist():
                if not worths[number] > better:
                    return weights
                moved = merge_proportional(near.weights(int(moves[number])))
                if self.task.cap is None or self.task.allows(moved):
                    weights, value = moved, float(worths[number])
                    break
            else:
                return weights
        return weights

    def _neighbours(self, weights: Integers) -> Neighbours:
        """Every move between two columns that stays within the ratio."""
        wide = np.hstack([weights, np.zeros((len(weights), 1), np.int64)])  # an output that is not there yet
        first, second = np.triu_indices(wide.shape[1], 1)
        steps = self._directions[: max(2 * self.task.inputs, MAX_MOVE_ENTRIES // (len(first) * self.task.inputs))]
        more, less = wide[:, :, None] + steps.T[:, None], wide[:, :, None] - steps.T[:, None]
        return Neighbours(wide, first, second, more, less, self._within(more)[first] & self._within(less)[second])

    def _within(self, columns: Integers) -> npt.NDArray[np.bool_]:
        """Whether columns (k, ...) have no negative entry and a ratio within the cap."""
        low, high = columns.min(axis=0), columns.max(axis=0)
        return np.asarray((low >= 0) & (high <= self._reach[np.clip(low, 0, self.task.total)]))

    def _random(self, weights: Integers, rng: np.random.Generator) -> Integers:
        near = self._neighbours(weights)
        if not len(near.moves):
            return weights
        moved: Integers = merge_proportional(near.weights(int(near.moves[rng.integers(len(near.moves))])))
        return moved if self.task.cap is None or self.task.allows(moved) else weights
