"""An estimate of few contrasts, such as all proportions of a questionnaire -> its best channel, from thresholds [KW].

    max  2 tr(K F) - sum lambda   subject to   |K u_y|^2 <= lambda . u_y   for every column y,   u_y = S_y / (S_y . p)

is the dual of the design problem for tr(F^T C F), and K has a row for each of the few directions of F. Columns that
gain at (K, lambda) are thresholds of a score. The search climbs from one to the next (`estimation.thresholds`), and
they join. Prices in the middle of the nearly optimal ones (`estimation.program`) change little from round to round. The
first rounds are coarse, and each begins where the one before ended. For a gap without a proof, still coarser rounds
find columns near the best and their weights (`program_multiplicative`). The proof is a relaxation with pairs of inputs,
or a search over the directions. Of more than 64 inputs the numbers of the relaxation show which columns may be good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.constraints import LocalDP
from ldpopt.design.estimation.method import proofs_by_pricing
from ldpopt.design.estimation.policy import columns_for
from ldpopt.design.estimation.prices import distinct_sets
from ldpopt.design.estimation.program_mixture import (
    Mixture,
    log_scale,
    new_rows,
    refuses_thresholds,
    searched_cap,
    with_erasures,
)
from ldpopt.design.estimation.program_newton import SurveySolution
from ldpopt.design.estimation.program_thresholds import (
    CONTRAST_STARTS,
    FINE_INPUTS,
    IMPROVED_GAP,
    SOME_STARTS,
    ThresholdProgram,
)
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.design.estimation.staircase import AnyRelaxation
from ldpopt.design.estimation.thresholds import Members, Scarf
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.criteria import AOptimal, COptimal, MVOptimal
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.marginals import Marginals
from ldpopt.errors import SolverError, invalid
from ldpopt.numbers.tolerances import CERTIFIED_GAP, COARSE_GAP, NEGLIGIBLE_EXACT
from ldpopt.values.distribution import number

# Inputs, and directions of the contrasts.
MAX_INPUTS, MAX_DIRECTIONS = 256, 40
# The most rounds of pricing, and where they begin near the best columns
MAX_PRICING_ROUNDS, MAX_ROUNDS_NEAR_BOUND = 100, 8
COLUMNS_PER_INPUT = 8  # First columns, for each input, of a search that knows a bound
CAPACITY_GROWTH = 1.2  # Growth of the number of columns that stay, whenever the largest gain grows by as much
# The relative gap of the first round, by how much it is below the last round's largest gain, and its last value in
# units of the tolerance.
FIRST_GAP, ACCURACY_DIVISOR, FINAL_GAP = 0.1, 10, 0.03
UNPROVED_FINAL_GAP = 0.2  # Without a proof
MAX_VAIN_ROUNDS, NEGLIGIBLE_CHANGE = 3, 0.01  # Rounds that change the value by less, in the same units
PRICE_MARGIN = 0.3  # By how much prices are raised before no column is shown to gain, in the same units
MAX_ANSWERS_ENUMERATED = 6  # Up to this many answers of a question, the first program has all its patterns.


@dataclass(frozen=True)
class ThresholdColumns(Method, reference="[KW]", solves=FisherInformation, preference=115):
    """The channel of least error for few contrasts of many inputs, from thresholds of scores, with its proof [KW].

    It takes a sum of variances under `LocalDP` alone, `Marginals` or `AOptimal` with weights of low rank, or the
    largest of the variances of few contrasts, `MVOptimal(contrasts)`. The target is a relative gap of 1e-6 up to 64
    inputs, and of 1e-3 up to 256, at any pilot without empty cells. The proof is a relaxation with pairs of inputs if
    that is tight enough, as it is for yes/no questions up to an epsilon of about 1. Otherwise it is a search over
    directions or sets. The search ends up to about 40 inputs, and up to 64 in at most 8 directions if it may take a
    minute. One question at random is among the candidate designs. `SymmetricMarginals` is the method for uniform
    pilots.

    gap : the relative gap at which a search ends, in place of these targets. With a gap the method takes
    `TotalVariation` as well, and the largest of any number of variances. Its proof prices all patterns up to 24 inputs,
    and is a coarse relaxation beyond.

    start : a channel with good patterns, such as the best one at another epsilon.

    >>> from ldpopt.design import FisherInformation, LocalDP, Marginals, optimal_channel
    >>> marginals = Marginals((2, 2, 2, 2))
    >>> pilot = marginals.pilot([0.4, 0.6], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5])
    >>> design = optimal_channel(FisherInformation(pilot, marginals), LocalDP(1.0))
    >>> round(design.value, 4), design.certified
    (37.3014, True)
    """

    gap: float | None = None
    start: ChannelLike | None = None

    def __post_init__(self) -> None:
        if self.gap is not None and not 0 < number(self.gap, "gap") < 1:
            raise invalid("gap", "a number above 0 and below 1", self.gap)

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs a sum of variances of few contrasts, under LocalDP between all inputs; with a `gap`, also
        under TotalVariation.
        """
        if reason := refuses_thresholds(problem, takes_cap=self.gap is not None):
            return reason
        utility = problem.utility
        k, d = utility.size, int(np.linalg.matrix_rank(utility.criterion.factor(utility.size)))
        is_full_rank = isinstance(utility.criterion, AOptimal | COptimal) and not 2 <= d < k // 2
        if is_full_rank or (self.gap is None and isinstance(utility.criterion, MVOptimal) and not 2 <= d < k - 1):
            return f"it takes few contrasts of many inputs, and here are {d} of {k}"
        if k > MAX_INPUTS or d > MAX_DIRECTIONS:
            return Limit(f"it takes up to {MAX_INPUTS} inputs in {MAX_DIRECTIONS} directions, and here are {k} in {d}")
        return "" if utility.prior.min() > 0 else "it takes a pilot without empty cells"

    def _start_sets(self, k: int) -> Members:
        """List the sets (n, k) of the start, none without one."""
        if self.start is None:
            return np.zeros((0, k), dtype=bool)
        channel = as_channel(self.start, "start")
        if channel.shape[0] != k:
            raise invalid("start", f"a channel with {k} inputs", channel.shape[0])
        return _sets_of(channel)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the best mixture of columns, and its multipliers."""
        utility: Any = problem.utility
        columns, eta = columns_for(utility, problem.constraints)
        eta, reported_share = searched_cap(eta, columns.epsilon)
        k, rng = utility.size, np.random.default_rng(utility.size)
        tolerance = tolerance_for(k) if self.gap is None else self.gap
        final_accuracy = (FINAL_GAP if problem.proving else UNPROVED_FINAL_GAP) * tolerance
        factor = utility.criterion.factor(k)
        centered_factor = factor - utility.prior @ factor
        program = ThresholdProgram(
            utility.criterion, utility.prior, centered_factor, math.exp(columns.epsilon), eta, problem.deadline
        )
        start_sets = self._start_sets(k)
        first_sets = np.vstack([_starting(utility, columns.epsilon, ask), start_sets])
        sets = cold_sets = program.first(first_sets, rng)
        accuracy, start = 1.0, None
        solution: SurveySolution | None = None
        relaxation: AnyRelaxation | None = None
        is_last, previous_value, previous_gain = False, math.inf, math.inf
        is_improved, vain_rounds = False, 0
        capacity = float(k) * (np.linalg.matrix_rank(centered_factor) + 1)
        can_improve = self.gap is not None and not problem.proving
        paired_dual = None if can_improve and k <= FINE_INPUTS else program.paired(final_accuracy)
        if paired_dual is not None:
            sets_near_bound, accuracy = program.draw_near_bound(paired_dual, COLUMNS_PER_INPUT * k, rng), 0.0
            sets = distinct_sets(np.vstack([sets, sets_near_bound]))[0]
        elif can_improve:
            with suppress(SolverError, np.linalg.LinAlgError):
                # The sets of a start are near the best ones, and other first sets would only be priced out again.
                first_sets, draws = (start_sets, SOME_STARTS) if len(start_sets) else (sets, CONTRAST_STARTS)
                sets, start = program.improve(first_sets, tolerance, rng, draws)
                accuracy, is_improved = IMPROVED_GAP, True
        pace = IMPROVED_PACE if is_improved else PACE
        rounds = MAX_PRICING_ROUNDS if k <= FINE_INPUTS or paired_dual is None else MAX_ROUNDS_NEAR_BOUND
        for _ in problem.deadline.rounds(range(rounds)):
            accuracy = max(min(FIRST_GAP, accuracy), final_accuracy)
            try:
                solution = program.solve(sets, accuracy, start)
            except SolverError:
                if start is None:
                    raise
                if solution is None:  # the steps from the improved sets and weights fail
                    sets, accuracy, start, is_improved, pace = cold_sets, 1.0, None, False, PACE
                    continue
                break  # columns or weights are too far apart: the result of the round before stands
            priced_sets = sets
            if is_last := paired_dual is not None and paired_dual.bound >= (1 - tolerance / 2) * program.value(
                solution
            ):
                break
            new_sets = program.search(solution, sets, rng)
            largest_gain = program.largest_gain(solution, sets, new_sets)
            is_last = accuracy <= final_accuracy and (largest_gain <= PRICE_MARGIN * tolerance or not len(new_sets))
            value_change = math.inf
            if not problem.proving:
                # Columns that gain at one of several best kernels change nothing; only a proof needs one without any.
                value = program.value(solution)
                # From improved sets the value falls by new columns, and rises as it becomes more accurate.
                change = previous_value - value if is_improved else abs(value - previous_value)
                value_change, previous_value = change / value, value
                if accuracy <= pace.settled_accuracy * tolerance and value_change <= pace.settled_change * tolerance:
                    start, is_last = solution.central, accuracy <= final_accuracy
                    break
            if is_last:
                if eta is not None or not problem.proving:
                    break
                if isinstance(program.criterion, MVOptimal):
                    paired_dual = program.paired(final_accuracy, solution)
                raised_solution = program.raise_prices(solution, sets, PRICE_MARGIN * tolerance)
                relaxation, gaining_sets = program.check_prices(raised_solution, problem.deadline.left is None)
                if not len(new_sets := new_rows(gaining_sets, sets)):
                    break
                largest_gain = program.largest_gain(solution, new_sets)
            if largest_gain > CAPACITY_GROWTH * previous_gain:  # Columns that have left are missing.
                capacity *= CAPACITY_GROWTH
            previous_gain = largest_gain
            is_kept = program.near_best(solution, sets, round(capacity))
            # Columns that gain without changing the value may join and leave again and again.
            vain_rounds = vain_rounds + 1 if value_change <= NEGLIGIBLE_CHANGE * tolerance else 0
            is_finer = is_improved or vain_rounds >= MAX_VAIN_ROUNDS
            expected_accuracy = 0.0 if is_finer else largest_gain / ACCURACY_DIVISOR
            accuracy = max(accuracy / pace.largest_drop, min(accuracy, expected_accuracy))
            sets, start = (
                np.vstack([sets[is_kept], new_sets]),
                solution.central.with_columns(is_kept, len(new_sets)),
            )
        with suppress(SolverError):
            if not is_last:  # Out of time, or settled at a coarser accuracy.
                solution, priced_sets = program.solve(sets, final_accuracy, start), sets
        if solution is None:
            raise SolverError("design for estimation: no weights of the columns were found; pass another method")
        if relaxation is None:
            raised_solution = program.raise_prices(solution, priced_sets, PRICE_MARGIN * tolerance)
        mixture = Mixture(
            np.where(priced_sets, columns.epsilon, 0.0), program.fewer(solution, priced_sets), NEGLIGIBLE_EXACT
        )
        matrix = with_erasures(mixture.matrix(columns, log_scale(columns.epsilon)), reported_share)

        def prove(reduced_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            fields = (utility, reduced_problem.constraints, channel, utility.prior)
            if paired_dual is not None:
                yield EquivalenceDual(
                    *fields, paired_dual.kernel, paired_dual.rows, raised_solution.pairs, paired_dual.relaxed
                )
            if eta is not None:
                yield from proofs_by_pricing(reduced_problem, channel, columns, eta, utility.prior, mixture)
                return
            if relaxation is not None:
                yield EquivalenceDual(
                    *fields, raised_solution.kernel, raised_solution.rows, raised_solution.pairs, relaxation
                )
            # Scores of one second moment in all directions, and prices in proportion to the law.
            yield EquivalenceDual(*fields, program.whitened(), utility.prior, raised_solution.pairs, Scarf())

        description = f"thresholds of scores in {len(solution.kernel)} directions, {len(priced_sets)} generated"
        shortfall = "the bound is rigorous but not within the tolerance"
        if relaxation is None and eta is None:
            shortfall = (
                "no search over directions or sets ended, and the bound is that of a relaxation: rigorous but coarse"
            )
        return Candidate(matrix, description, prove, tolerance, shortfall=shortfall)


def tolerance_for(inputs: int) -> float:
    """Return the relative gap of a certified design for that many inputs."""
    return CERTIFIED_GAP if inputs <= FINE_INPUTS else COARSE_GAP


def _starting(utility: FisherInformation, epsilon: float, ask: Ask) -> Members:
    """List sets (n, k): the empty one, those of one question alone, and single cells if they are few."""
    k, criterion = utility.size, utility.criterion
    sets = [np.zeros((1, k), dtype=bool)]
    if not isinstance(criterion, Marginals):
        return np.vstack([*sets, np.eye(k, dtype=bool)])
    cells = np.stack(np.unravel_index(np.arange(k), criterion.shape), axis=1)
    for j, answers in enumerate(criterion.shape):
        if answers == k > MAX_ANSWERS_ENUMERATED:
            continue  # The question is a product of others, whose contrasts are part of the criterion.
        if answers <= MAX_ANSWERS_ENUMERATED:
            question_sets = np.array(list(product((False, True), repeat=answers)))[1:-1]
        else:
            pilot = np.bincount(cells[:, j], utility.prior)
            question_sets = _sets_of(
                ask(FisherInformation(pilot / pilot.sum()), LocalDP(epsilon), certify=False).channel
            )
        sets.append(question_sets[:, cells[:, j]])
    return distinct_sets(np.vstack(sets))[0]


def _sets_of(channel: Channel) -> Members:
    """List the sets (n, k) of the larger entries of the columns of a channel."""
    columns = channel.matrix.T
    return distinct_sets(columns > np.sqrt(columns.min(axis=1) * columns.max(axis=1))[:, None])[0]


@dataclass(frozen=True)
class _Pace:
    """The largest factor between the accuracies of two rounds, and the end of a search without a proof.

    It ends at `settled_accuracy` if the value changes by at most `settled_change`, both in units of the tolerance.
    """

    largest_drop: float
    settled_accuracy: float
    settled_change: float


PACE, IMPROVED_PACE = _Pace(10, 3, 1), _Pace(15, UNPROVED_FINAL_GAP, 2)  # From the first sets, and from improved ones
