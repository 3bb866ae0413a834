"""A denominator D -> the best channel of multiples of 1/D: by a mixed-integer program [KOV14, Thm 2], or by rounding.

For few inputs the program chooses how often each column of integers is used:

    max s   s.t.  s <= sum_c z_c g_j(c) for every criterion j,  sum_c z_c c = D 1,
                  sum_c z_c (c_x - c_x')_+ <= cap for x != x',  z integer and >= 0

Columns that lose much in the linear program are left out before the search. A sum over outputs is linear in z. A sum of
variances is not. But by the equivalence theorem [KW] its reciprocal is the least of sum_y w_y |K u_y|^2 / N(K)^2 over
all K. Each of these is a sum over outputs, called a cut. The program gets one cut after another, at its own solutions,
until such a channel is as good as the program's bound. For more inputs, the optimum without a denominator is rounded,
repaired and improved by moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_columns
from ldpopt.design.design import Design
from ldpopt.design.integers.levels import level_starts
from ldpopt.design.integers.search import MAX_FEW_INPUTS, Moves
from ldpopt.design.integers.task import Task, refusal, unrestricted
from ldpopt.design.integers.worth import VarianceWorth, is_sum_of_variances, worth_of
from ldpopt.design.patterns.proof_levels import Integers, as_matrix, integer_columns, merge_proportional
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import solve_integer, solve_linear
from ldpopt.design.utilities.base import columns_of
from ldpopt.design.utilities.criterion import scores
from ldpopt.errors import SolverError, invalid
from ldpopt.exact import integers_near
from ldpopt.numbers.tolerances import INTEGER_GAP
from ldpopt.values.distribution import Array

MAX_COLUMNS = 300  # The search uses the best ones by their reduced costs.
MAX_TREE_NODES = 500


@dataclass(frozen=True, eq=False)
class IntegerColumnsProgram:
    """The integer program over columns.

    - `columns` : (k, n) integers.
    - `total` : D.
    - `cap` : on the total variation of two rows, in units of 1/D, or None.
    """

    columns: Integers
    total: int
    cap: int | None

    def best(self, gains: Array) -> tuple[Integers, float, bool]:
        """Find integers (k, m) that sum to D.

        Also returns the solver's bound on the least criterion, and whether its search was complete. gains : (criteria,
        n). Raises `SolverError` if no channel has columns among these.
        """
        selected_columns = np.arange(self.columns.shape[1])
        if len(selected_columns) > MAX_COLUMNS:  # Those of the least reduced costs.
            selected_columns = np.sort(np.argsort(self._linear(gains)[1], kind="stable")[:MAX_COLUMNS])
        values, bound, is_finished = solve_integer(
            *self._pose(selected_columns, gains), "integer columns", MAX_TREE_NODES
        )
        counts = values[:-1].astype(np.int64)
        used_columns = selected_columns[counts > 0]
        weights = merge_proportional(np.repeat(self.columns[:, used_columns], counts[counts > 0], axis=1))
        if not (weights.sum(axis=1) == self.total).all():
            raise SolverError("integer columns: the solver's numbers do not add up; pass another method")
        return weights, bound, is_finished

    def relaxed(self, gains: Array) -> Array:
        """Return (k, m) the columns of the linear program's solution, each times its real weight."""
        z, _ = self._linear(gains)
        used_columns = np.flatnonzero(z > 1e-12)
        return np.asarray(self.columns[:, used_columns] * z[used_columns])

    def _pose(self, selected_columns: npt.NDArray[np.intp], gains: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Build the program; its last unknown is the smallest criterion."""
        columns = self.columns[:, selected_columns].astype(np.float64)
        k, n = columns.shape
        objective = np.append(np.zeros(n), 1.0)
        equal = np.hstack([columns, np.zeros((k, 1))])
        rows, limits = [np.hstack([-gains[:, selected_columns], np.ones((len(gains), 1))])], [np.zeros(len(gains))]
        if self.cap is not None:
            distances = np.array([np.maximum(columns[x] - columns[y], 0) for x, y in permutations(range(k), 2)])
            rows.append(np.hstack([distances, np.zeros((len(distances), 1))]))
            limits.append(np.full(len(distances), float(self.cap)))
        right = np.full(k, float(self.total))
        return objective, equal, right, np.vstack(rows), np.concatenate(limits)

    def _linear(self, gains: Array) -> tuple[Array, Array]:
        """Solve the linear program for weights and the nonnegative reduced cost of every column."""
        program = self._pose(np.arange(self.columns.shape[1]), gains)
        values, costs, *_ = solve_linear(*program, "integer columns")
        return values[:-1], costs[:-1]


MAX_IMPROVED_CHANNELS = 2  # With few inputs, further climbs improve so many of the best ends.
MAX_START_ERROR = 12  # With more inputs, climbs begin at channels of up to so many times the least error.
FIRST_CLIMB_MOVES, MAX_BEHIND = 8, 0.25  # After so many moves a climb ends if it is behind the best by that share.
MAX_REPAIRED = 3  # If floats exceed a cap, the search within tighter ones begins at so many of the best ends.
MAX_MOVES_PER_STEP = 5_000  # Single-unit moves that are tried for each move that is made.


@dataclass(frozen=True)
class Rounded(Method, preference=20, integral=True):
    """The best of several channels after rounding to the denominator; a better channel may exist.

    start : a channel near which the search begins, besides others; the optimum without the denominator if None.

    >>> from ldpopt import Denominator, Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.7, 0.3], [0.4, 0.6])
    >>> made = optimal_channel(u, [LocalDP(1.0), Denominator(6)], method=Rounded())
    >>> (6 * made.channel.matrix).round(9).tolist()
    [[4.0, 2.0], [2.0, 4.0]]
    """

    start: ChannelLike | None = None

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs a denominator, with LocalDP and TotalVariation.
        """
        return refusal(problem)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best rounded channel.

        It starts from the optimum without a denominator and from randomized responses.
        """
        free = unrestricted(problem, ask) if self.start is None else None
        start = free if self.start is None else self.start
        channel = None if start is None else as_channel(start, "start")
        if channel is not None and channel.shape[0] != (inputs := len(problem.labels)):
            raise invalid("start", f"a channel with {inputs} inputs", channel.shape[0])
        task, weights = roundings(Task.from_problem(problem), channel)
        note = "rounded, not searched exhaustively: a better channel may exist"
        return task.candidate(free, weights, "repaired rounding, and units moved between outputs", note)


def roundings(task: Task, start: Channel | None) -> tuple[Task, Integers]:
    """Find the best weights by rounding and moving units.

    It starts from a channel, usually the optimum without a denominator, and from others. Returns the task as well. Its
    caps are a little tighter if the floats of the weights exceeded the constraints.
    """
    channels, worth = [], worth_of(task)
    if start is not None:
        has_merged_inputs = task.utility.pair is not None
        rows = np.unique(task.problem.reduction.classes, return_index=True)[1] if has_merged_inputs else slice(None)
        channels.append(start.matrix[rows])
    starts = list(level_starts(task, worth, channels[0])) if channels and worth is not None else []
    decisions = task.utility.decisions
    if decisions is None:
        k, ratio = task.inputs, float(task.ratio) if task.ratio is not None else 1e9
        # Randomized response among blocks of inputs.
        for blocks in sorted({*range(2, min(k, MAX_FEW_INPUTS) + 1), k} - {1}):
            entries = np.where((np.arange(k) * blocks // k)[:, None] == np.arange(blocks), ratio, 1.0)
            channels.append(entries / entries.sum(axis=1, keepdims=True))
        channels.append(np.ones((k, 1)))  # It is uninformative, and always available.
    else:  # outputs have a meaning: the other channels always take one decision
        channels += [np.tile(decision_row, (task.inputs, 1)) for decision_row in np.eye(len(decisions))]
    starts += [weights for channel in channels if (weights := _rounded(task, channel)) is not None]
    uninformative = task.total * channels[-1].astype(np.int64)
    ends = _improved(task, starts) or [uninformative]
    if not task.measured(ends[0]):
        task = Task.from_problem(task.problem, tighter=True)
        repaired = [_rounded(task, as_matrix(weights, task.total)) for weights in ends[:MAX_REPAIRED]]
        ends = _improved(task, [weights for weights in repaired if weights is not None]) or [uninformative]
    if not task.measured(ends[0]):
        raise SolverError("rounding to a denominator: the floats of what was found exceed the constraints")
    return task, ends[0]


def _improved(task: Task, starts: list[Integers]) -> list[Integers]:
    """Move units from each start, and list the ends, the best one first."""

    def rank(weights: Integers) -> tuple[float, int]:
        return task.value(weights), -weights.shape[1]

    if (worth := worth_of(task)) is None:
        rounds = task.problem.deadline.rounds(starts)
        return sorted((_polished_if_small(task, weights) for weights in rounds), key=rank, reverse=True)
    moves = Moves(task, worth)
    has_few_inputs = task.inputs <= MAX_FEW_INPUTS
    # From channels that determine some quantities badly or not, the first moves are many; others usually lead further.
    worths, least_worth = [moves.worth_of_weights(weights) for weights in starts], -math.inf
    if isinstance(worth, VarianceWorth) and not has_few_inputs:
        least_worth = MAX_START_ERROR * max(worths, default=-math.inf)
    determining = [w for w, value in zip(starts, worths, strict=True) if value > -math.inf and value >= least_worth]
    ends = sorted(_climbed(moves, determining or starts), key=rank, reverse=True)
    is_any_determining = bool(ends) and moves.worth_of_weights(ends[0]) > -math.inf
    if is_any_determining and not task.measured(ends[0]):
        return ends  # Others are sought within tighter caps.
    count = MAX_IMPROVED_CHANNELS if has_few_inputs else 1
    near_best = ends[:count] if is_any_determining else ends
    improved = [moves.best(weights) for weights in task.problem.deadline.inner.rounds(near_best)]
    return sorted([*improved, *ends], key=rank, reverse=True)


def _climbed(moves: Moves, starts: list[Integers]) -> Iterator[Integers]:
    """Make a few moves from each start, and go on from those whose error is not far above the least."""
    deadline = moves.task.problem.deadline
    channels = [moves.climb(weights, FIRST_CLIMB_MOVES) for weights in deadline.rounds(starts)]
    best = max(map(moves.worth_of_weights, channels), default=-math.inf)
    least_worth = best - MAX_BEHIND * abs(best) if math.isfinite(best) else best
    for weights in channels:
        goes_on = moves.worth_of_weights(weights) >= least_worth and not deadline.over()
        yield moves.climb(weights) if goes_on else weights


def _rounded(task: Task, start: Array) -> Integers | None:
    """Round a channel (k, m) to the denominator; None if it has more outputs than there are units."""
    has_fixed_outputs = task.utility.decisions is not None
    if start.shape[1] > task.total and not has_fixed_outputs:
        return None
    eta = Fraction(1) if task.cap is None else Fraction(task.cap, task.total)
    weights = integers_near(start, task.total, task.ratio, eta)
    return weights if has_fixed_outputs else merge_proportional(weights)


MAX_POLISHING_MOVES = 400  # The most units that are moved


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


def _polished_if_small(task: Task, weights: Integers) -> Integers:
    k, m = weights.shape
    is_small = k * m * (m - 1) <= MAX_MOVES_PER_STEP
    return polished(task, weights) if is_small and math.isfinite(task.value(weights)) else weights


MAX_PROGRAM_INPUTS = 4  # With more, the columns are too many for a search, and `Rounded` does better.
MAX_RELAXED_CUTS = 8  # At weights that need not be integers; each costs one linear program.
MAX_INTEGER_SEARCHES = 4  # For integer weights, each with all cuts so far.


@dataclass(frozen=True)
class IntegerProgram(Method, reference="[KOV14]", preference=10, integral=True):
    """A mixed-integer program over columns of integers [KOV14, Thm 2], for up to 4 inputs.

    >>> from ldpopt import Denominator, Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.7, 0.3], [0.4, 0.6])
    >>> made = optimal_channel(u, [LocalDP(1.0), Denominator(6)], method=IntegerProgram())
    >>> (6 * made.channel.matrix).round(9).tolist()
    [[4.0, 2.0], [2.0, 4.0]]
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs a denominator, few inputs, and a sum over outputs or a sum of variances.
        """
        if reason := refusal(problem):
            return reason
        if len(problem.inputs) > MAX_PROGRAM_INPUTS:
            return Limit(
                f"{len(problem.inputs)} inputs have too many columns of integers (at most {MAX_PROGRAM_INPUTS})"
            )
        if needs_columns(problem) and not is_sum_of_variances(problem.utility):
            return f"{problem.utility.name} is neither a sum over outputs nor a sum of variances at a pilot"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the program, improved by moving units between outputs."""
        free = unrestricted(problem, ask)
        for tighter in (False, True):
            task = Task.from_problem(problem, tighter)
            columns, complete = integer_columns(task.inputs, task.ratio, task.total)
            program = IntegerColumnsProgram(columns, task.total, task.cap)
            weights, is_finished = _search_with_cuts(task, program, free)
            if task.measured(weights):
                break
        else:
            raise SolverError("integer columns: the floats of what was found exceed the constraints")
        listed_columns = "all" if complete else "some of the"
        note = "" if complete and is_finished else "the search was not exhaustive: a better channel may exist"
        description = f"mixed-integer program over {listed_columns} {columns.shape[1]} columns of integers"
        return task.candidate(free, weights, description, note)


def _search_with_cuts(task: Task, program: IntegerColumnsProgram, free: Design | None) -> tuple[Integers, bool]:
    """Find the best weights, and whether the solver proves that its columns allow no better ones."""
    _, rounded_weights = roundings(task, None if free is None else free.channel)
    column_worth, deadline = worth_of(task), task.problem.deadline
    assert column_worth is not None
    moves = Moves(task, column_worth)
    if deadline.over():
        return rounded_weights, False
    if not needs_columns(task.problem):
        weights, _, is_finished = program.best(columns_of(task.on_rows, program.columns.astype(np.float64)))
        return max((rounded_weights, moves.best(weights, 0)), key=lambda w: (task.value(w), -w.shape[1])), is_finished
    best, is_finished = rounded_weights, False
    free_matrix = None if free is None else free.channel.matrix
    cuts = [_cut(task.utility, _mix_for_full_rank(task, best, free_matrix), program.columns)]
    if free_matrix is not None:
        cuts.append(_cut(task.utility, free_matrix, program.columns))
    for _ in deadline.inner.rounds(range(MAX_RELAXED_CUTS)):  # Cheap ones, at weights that need not be integers.
        cuts.append(
            _cut(task.utility, _mix_for_full_rank(task, program.relaxed(np.array(cuts)), free_matrix), program.columns)
        )
    for _ in deadline.rounds(range(MAX_INTEGER_SEARCHES)):
        weights, bound, is_finished = program.best(np.array(cuts))
        if task.value(local_optimum := moves.climb(weights)) > task.value(best):
            best = local_optimum
        # The solver's bound is on D divided by the error.
        is_finished = is_finished and -task.value(best) * bound <= (1 + INTEGER_GAP) * task.total
        if is_finished:
            break
        cuts.append(_cut(task.utility, _mix_for_full_rank(task, weights, free_matrix), program.columns))
    return best, is_finished


def _mix_for_full_rank(task: Task, weights: Array | Integers, other: Array | None) -> Array:
    """Mix the channel of the weights with a little of another if it does not distinguish all answers."""
    rows = np.asarray(weights / float(task.total))
    report_scores = scores(rows, np.asarray(task.utility.prior))
    values = np.linalg.svd(report_scores, compute_uv=False)
    if other is None or values[-1] > 0.05 * values[0]:
        return rows
    return np.hstack([0.8 * rows, 0.2 * other])


def _cut(utility: Any, matrix: Array, columns: Integers) -> Array:
    """Compute (n,) the terms |K u|^2 of integer columns for a channel's best kernel K, over the square of N(K)."""
    prior = np.asarray(utility.prior)
    report_scores = scores(matrix, prior)
    loadings = utility.criterion.influence(report_scores).loadings
    kernel = loadings @ np.linalg.pinv(report_scores, rcond=1e-10)
    values = columns.astype(np.float64)
    squares = ((kernel @ (values[:-1] - values[-1])) ** 2).sum(axis=0) / (prior @ values)
    return np.asarray(squares / float((loadings**2).sum()) ** 2)
