"""An estimate of few contrasts, such as all shares of a questionnaire -> its best channel, from threshold columns [KW].

    max  2 tr(K F) - sum lambda   subject to   |K u_y|^2 <= lambda . u_y   for every column y,   u_y = S_y / (S_y . p)

is the dual of the design problem for tr(F^T C F), and K has a row for each of the few directions of F. Columns that
gain at (K, lambda) are thresholds of a score, found by climbing from one to the next (`estimation.thresholds`), and
join. Prices in the middle of the nearly optimal ones (`estimation.program`) change little from round to round;
the first rounds are coarse, and each begins where the one before ended. The proof is a relaxation with pairs of inputs,
or a search over the directions. Of more than 64 inputs the numbers of the relaxation say which columns may be good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.constraints import LocalDP
from ldpopt.design.estimation.branches import NODES, Branches
from ldpopt.design.estimation.policy import columns_for
from ldpopt.design.estimation.prices import Charges
from ldpopt.design.estimation.program import Central, SurveySolution, fewer_weights, survey_program
from ldpopt.design.estimation.program_dual import best_squares
from ldpopt.design.estimation.program_mixture import Mixture, inward, refuses_thresholds, unknown
from ldpopt.design.estimation.program_paired import PairedDual, paired_dual
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.design.estimation.staircase import AnyRelaxation
from ldpopt.design.estimation.thresholds import BOXES, Members, Scarf, Thresholds, climb
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.criteria import AOptimal, COptimal, MVOptimal
from ldpopt.design.utilities.criterion import LinearCriterion
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.marginals import Marginals
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CERTIFIED_GAP, COARSE_GAP, NEGLIGIBLE_EXACT
from ldpopt.values.deadline import Deadline
from ldpopt.values.distribution import Array

# The most inputs, and the most directions of the contrasts.
MAX_INPUTS, MAX_DIRECTIONS = 256, 40
# Scores of up to so many directions are searched for a proof by directions; of more, up to 64 inputs, by sets first,
# and beyond the second number only so. Where neither search ends, the bound by second moments is left.
BOXED_DIRECTIONS, SEARCHED_DIRECTIONS = 4, 8
FINE_INPUTS = 64  # Up to this many inputs the design is found, and proved, to `CERTIFIED_GAP`; beyond, to `COARSE_GAP`
MAX_ROUNDS, FEW_ROUNDS = 100, 8  # The most rounds of pricing, and where they begin near the best columns
COLUMNS_NEAR_BOUND = 8  # The columns, for each input, with which a search begins that knows a bound
JOINING = 150  # The most columns that join in a round
STARTS = 400  # Random directions from which a round's search for columns starts, besides those of the columns in use
DRAWN, MOST_DRAWN = 30, 1500  # Random directions, for each input and in all, from which the first columns are found
# The relative gap of the first round, by how much it is below the last round's largest gain, and its last value in
# units of the tolerance.
FIRST_GAP, FINER, LAST = 0.1, 30, 0.03
HIGHER = 0.3  # By how much prices are raised before no column is shown to gain, in the same units
LISTED_ANSWERS = 6  # All patterns of a question of up to this many answers are there from the start


@dataclass(frozen=True)
class ThresholdColumns(Method, reference="[KW]", solves=FisherInformation, preference=115):
    """The channel of least error for few contrasts of many inputs, from thresholds of scores, with its proof [KW].

    It takes a sum of variances under `LocalDP` alone, `Marginals` or `AOptimal` with weights of low rank, or the
    largest of the variances of few contrasts, `MVOptimal(contrasts)`. Up to 64 inputs are aimed at to one part in a
    million, and up to 256 to one in a thousand, at any pilot without empty cells. The proof is a relaxation with pairs
    of inputs where that is near enough, as it is for yes/no questions up to an epsilon of about 1; else a search over
    directions or sets, which ends up to about 40 inputs, and up to 64 in at most 8 directions if it may take a minute.
    One question at random is among the designs it chooses from. Even pilots have a method of their own,
    `SymmetricMarginals`.

    >>> from ldpopt.design import FisherInformation, LocalDP, Marginals, optimal_channel
    >>> marginals = Marginals((2, 2, 2, 2))
    >>> pilot = marginals.pilot([0.4, 0.6], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5])
    >>> design = optimal_channel(FisherInformation(pilot, marginals), LocalDP(1.0))
    >>> round(design.value, 4), design.certified
    (37.3014, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs a sum of variances of few contrasts, under LocalDP between all inputs alone."""
        if why := refuses_thresholds(problem):
            return why
        utility = problem.utility
        k, d = utility.size, int(np.linalg.matrix_rank(utility.criterion.factor(utility.size)))
        own = isinstance(utility.criterion, AOptimal | COptimal) and not 2 <= d < k // 2
        if own or (isinstance(utility.criterion, MVOptimal) and not 2 <= d < k - 1):
            return f"it takes few contrasts of many inputs, and here are {d} of {k}"
        if k > MAX_INPUTS or d > MAX_DIRECTIONS:
            return Limit(f"it takes up to {MAX_INPUTS} inputs in {MAX_DIRECTIONS} directions, and here are {k} in {d}")
        return "" if utility.prior.min() > 0 else "it takes a pilot without empty cells"

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best mixture of columns, and its multipliers."""
        utility: Any = problem.utility
        columns, _ = columns_for(utility, problem.constraints)
        k, rng = utility.size, np.random.default_rng(utility.size)
        tolerance = tolerance_for(k)
        factor = utility.criterion.factor(k)
        centred = factor - utility.prior @ factor
        program = _Program(utility.criterion, utility.prior, centred, math.exp(columns.epsilon), problem.deadline)
        sets, accuracy, start = program.first(_starting(utility, columns.epsilon, ask), rng), 1.0, None
        relaxed: AnyRelaxation | None = None
        last, before = False, -math.inf
        if (paired := program.paired(LAST * tolerance)) is not None:
            near, accuracy = program.near(paired, COLUMNS_NEAR_BOUND * k, rng), 0.0
            sets = np.unique(np.vstack([sets, near]), axis=0)
        rounds = MAX_ROUNDS if k <= FINE_INPUTS or paired is None else FEW_ROUNDS
        for _ in problem.deadline.rounds(range(rounds)):
            accuracy = max(min(FIRST_GAP, accuracy), LAST * tolerance)
            try:
                solution = program.solve(sets, accuracy, start)
            except SolverError:
                if start is None:
                    raise
                break  # columns or weights are too far apart: the result of the round before stands
            known = sets
            if last := paired is not None and paired.least >= (1 - tolerance / 2) * program.value(solution):
                break
            new = program.search(solution, sets, rng)
            outside = program.most(solution, sets, new)
            last = accuracy <= LAST * tolerance and (outside <= HIGHER * tolerance or not len(new))
            if not problem.proving and accuracy <= tolerance:
                # Columns that gain at one of several best kernels change nothing; only a proof needs one without any.
                value = program.value(solution)
                if abs(value - before) <= tolerance * value:
                    start = solution.central
                    break
                before = value
            if last:
                if isinstance(program.criterion, MVOptimal):
                    paired = program.paired(LAST * tolerance, solution)
                raised = program.raised(solution, sets, HIGHER * tolerance)
                relaxed, more = program.shown(raised, problem.deadline.left is None)
                if not len(new := unknown(more, sets)):
                    break
                outside = program.most(solution, new)
            accuracy = max(accuracy / 10, outside / FINER)
            sets, start = np.vstack([sets, new]), solution.central.joined(np.ones(len(sets), dtype=bool), len(new))
        with suppress(SolverError):
            if not last:  # out of time, or settled at a coarser accuracy
                solution, known = program.solve(sets, LAST * tolerance, start), sets
        if relaxed is None:
            raised = program.raised(solution, known, HIGHER * tolerance)
        mixture = Mixture(np.where(known, columns.epsilon, 0.0), program.fewer(solution, known), NEGLIGIBLE_EXACT)
        matrix = mixture.matrix(columns, inward(columns.epsilon))

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            fields = (utility, posed.constraints, channel, utility.prior)
            if paired is not None:
                yield EquivalenceDual(*fields, paired.kernel, paired.rows, raised.pairs, paired.relaxed)
            if relaxed is not None:
                yield EquivalenceDual(*fields, raised.kernel, raised.rows, raised.pairs, relaxed)
            # Scores of one second moment in all directions, and prices in proportion to the law.
            yield EquivalenceDual(*fields, program.whitened(), utility.prior, raised.pairs, Scarf())

        how = f"thresholds of scores in {len(solution.kernel)} directions, {len(known)} generated"
        shortfall = "the bound is rigorous but not within the tolerance"
        if relaxed is None:
            shortfall = (
                "no search over directions or sets ended, and the bound is that of a relaxation: rigorous but coarse"
            )
        return Candidate(matrix, how, prove, tolerance, shortfall=shortfall)


def tolerance_for(inputs: int) -> float:
    """The relative gap at which a design for that many inputs is certified."""
    return CERTIFIED_GAP if inputs <= FINE_INPUTS else COARSE_GAP


def _starting(utility: FisherInformation, epsilon: float, ask: Ask) -> Members:
    """Sets (n, k): the empty one, those that ask one question alone, and single cells where they are few."""
    k, criterion = utility.size, utility.criterion
    sets = [np.zeros((1, k), dtype=bool)]
    if not isinstance(criterion, Marginals):
        return np.vstack([*sets, np.eye(k, dtype=bool)])
    cells = np.stack(np.unravel_index(np.arange(k), criterion.shape), axis=1)
    for j, answers in enumerate(criterion.shape):
        if answers <= LISTED_ANSWERS:
            own = np.array(list(product((False, True), repeat=answers)))[1:-1]
        else:
            pilot = np.bincount(cells[:, j], utility.prior)
            own = ask(FisherInformation(pilot / pilot.sum()), LocalDP(epsilon), certify=False).channel.matrix.T
            own = np.unique(own > np.sqrt(own.min(axis=1) * own.max(axis=1))[:, None], axis=0)
        sets.append(own[:, cells[:, j]])
    return np.unique(np.vstack(sets), axis=0)


@dataclass(frozen=True, eq=False)
class _Program:
    """The program for a criterion at a pilot (k,), contrasts F (k, d) centred at it, and the ratio e^epsilon,
    to be solved by a deadline."""

    criterion: LinearCriterion | MVOptimal
    prior: Array
    factor: Array
    ratio: float
    deadline: Deadline

    def first(self, sets: Members, rng: np.random.Generator) -> Members:
        """`sets`, single cells, and thresholds of random scores, at random levels and at the best ones."""
        kernel, k = self.whitened(), len(self.prior)
        drawn = rng.normal(size=(min(DRAWN * k, MOST_DRAWN), len(kernel)))
        scores = drawn @ (kernel / self.prior)
        level = np.take_along_axis(np.sort(scores, axis=1), rng.integers(0, k - 1, size=(len(scores), 1)), axis=1)
        best, _ = climb(kernel, np.zeros(k), self.prior, self.ratio, drawn)
        return np.unique(np.vstack([sets, np.eye(k, dtype=bool), scores > level, best]), axis=0)

    def masses(self, sets: Members) -> Array:
        """(n,) the probabilities of the columns."""
        return np.asarray(np.where(sets, self.ratio, 1.0) @ self.prior)

    def units(self, sets: Members) -> Array:
        """(n, k) the columns, divided by their probabilities."""
        return np.asarray(np.where(sets, self.ratio, 1.0) / self.masses(sets)[:, None])

    def gains(self, solution: SurveySolution, sets: Members) -> Array:
        """(n,) what the columns of `sets` gain."""
        units = self.units(sets)
        return np.asarray(((units @ solution.kernel.T) ** 2).sum(axis=1) - units @ solution.rows)

    def search(self, solution: SurveySolution, known: Members, rng: np.random.Generator) -> Members:
        """The sets that gain the most, best first and none of the `known` ones."""
        directions = self.units(known) @ solution.kernel.T
        far = np.linalg.norm(directions, axis=1).max()
        drawn = rng.normal(size=(STARTS, len(solution.kernel)))
        drawn *= far / np.linalg.norm(drawn, axis=1, keepdims=True)
        sets = unknown(self.climbed(solution, np.vstack([directions, drawn])), known)
        gains = self.gains(solution, sets)
        order = np.argsort(-gains, kind="stable")[:JOINING]
        return sets[order[gains[order] > 0]]

    def most(self, solution: SurveySolution, *sets: Members) -> float:
        """The most that a column gains, or 0, relative to the criterion."""
        gains = (float(self.gains(solution, group).max(initial=0.0)) for group in sets)
        return max(0.0, *gains) / float(solution.rows.sum())

    def climbed(self, solution: SurveySolution, directions: Array) -> Members:
        """The sets at the ends of climbs from directions (n, d)."""
        sets, _ = climb(solution.kernel, solution.rows, self.prior, self.ratio, directions)
        return np.unique(sets, axis=0)

    def fewer(self, solution: SurveySolution, sets: Members) -> SurveySolution:
        """The same with at most k (d + 1) weights, with which the influences K u are without bias, too; for the largest
        of r variances with r more, and all variances are the same.
        """
        units = self.units(sets) - 1
        basis = np.linalg.svd(solution.kernel, full_matrices=False)[2][: np.linalg.matrix_rank(self.factor)]
        products = ((units @ basis.T)[:, :, None] * units[:, None, :]).reshape(len(sets), -1)
        mass = self.masses(sets)
        squares = (units @ solution.kernel.T) ** 2 if self.criterion.limited else units[:, :0]
        moments = np.hstack([np.ones((len(sets), 1)), units, products, squares])
        return replace(solution, theta=fewer_weights(moments, solution.theta * mass) / mass)

    def raised(self, solution: SurveySolution, sets: Members, more: float) -> SurveySolution:
        """The same with prices, up to a share, above what the columns of `sets` earn, and with an even kernel."""
        solution = self.evened(solution)
        level = (self.most(solution, sets) + more) * float(solution.rows.sum())
        return replace(solution, rows=solution.rows + level * self.prior)

    def shown(self, solution: SurveySolution, long: bool) -> tuple[AnyRelaxation | None, Members]:
        """What shows that no column gains, with those that do; nothing, with none, where the search is too long.

        long : whether a search may take about a minute.
        """
        charges = Charges.of(FLOAT.of(solution.kernel), self.prior, solution.rows, solution.pairs)
        epsilon, (d, k) = FLOAT.of(math.log(self.ratio)), solution.kernel.shape
        if d > BOXED_DIRECTIONS and k <= FINE_INPUTS:
            gram = solution.kernel.T @ solution.kernel
            try:
                branches = Branches(best_squares(gram, solution.rows, self.prior, self.ratio))
            except SolverError:
                branches = Branches.convex(gram, solution.rows, self.prior, self.prior)
            longer = replace(branches, nodes=NODES)
            for searched in (branches, longer)[: 1 + (long and d > SEARCHED_DIRECTIONS)]:
                walked = searched.walked(charges, epsilon, JOINING)
                if walked is not None and walked.complete:
                    return searched, walked.sets
        for boxes in (0, BOXES)[: 1 + long] if d <= SEARCHED_DIRECTIONS else ():
            thresholds = Thresholds(0.0, boxes)
            if (directions := thresholds.unpaid(charges, epsilon)) is not None:
                return thresholds, self.climbed(solution, directions)
        return None, np.zeros((0, k), dtype=bool)

    def told(self, solution: SurveySolution) -> Array:
        """(d,) K_j . F_j: the criterion is their sum, or the root of the sum of squares for the largest, squared."""
        return np.asarray((solution.kernel * self.factor.T).sum(axis=1))

    def value(self, solution: SurveySolution) -> float:
        """The criterion."""
        told = self.told(solution)
        square = told @ told if isinstance(self.criterion, MVOptimal) else told.sum() ** 2
        return float(square / solution.rows.sum())

    def paired(self, accuracy: float, solution: SurveySolution | None = None) -> PairedDual | None:
        """The best bound without pricing, for more than a few contrasts. solution : one whose value is enough, and
        whose weights of the contrasts are taken for the largest of their variances.
        """
        scale = np.ones(self.factor.shape[1])
        if isinstance(self.criterion, MVOptimal):
            told = scale if solution is None else np.abs(self.told(solution))
            scale = told / np.linalg.norm(told)
        if not BOXED_DIRECTIONS < np.linalg.matrix_rank(self.factor * scale) < len(self.prior) - 1:
            return None
        enough = math.inf if solution is None else (1 - accuracy) * self.value(solution)
        shape = getattr(self.criterion, "shape", ())
        return paired_dual(self.prior, self.ratio, self.factor * scale, accuracy, shape, enough, self.deadline)

    def near(self, paired: PairedDual, count: int, rng: np.random.Generator) -> Members:
        """Up to `count` sets whose columns are priced nearly as high as what they earn at the numbers of a bound."""
        drawn = rng.normal(size=(MOST_DRAWN, len(paired.kernel))) * math.sqrt(paired.least)
        sets, gains = climb(paired.kernel, paired.rows, self.prior, self.ratio, drawn)
        sets, index = np.unique(sets, axis=0, return_index=True)
        return sets[np.argsort(-gains[index], kind="stable")[:count]]

    def whitened(self) -> Array:
        """K (d, k) whose scores K_x / p_x have mean 0 and uncorrelated unit variances, turned towards F."""
        root = np.sqrt(self.prior)
        left, _, right = np.linalg.svd(root[:, None] * self.factor, full_matrices=False)
        return np.asarray((root[:, None] * (left @ right)).T)

    def evened(self, solution: SurveySolution) -> SurveySolution:
        """The same, with a kernel that is odd in every yes/no question whose answers the pilot does not tell apart.

        The mean of a kernel and of its mirror image is as good, and its proof needs half of the directions.
        """
        shape = getattr(self.criterion, "shape", ())
        if math.prod(shape) != len(self.prior) or len(solution.kernel) != sum(shape) - len(shape):
            return solution
        kernel, rows, row = solution.kernel.reshape(-1, *shape), solution.rows.reshape(shape), 0
        for j, answers in enumerate(shape):
            cells = self.prior.reshape(shape)
            if answers == 2 and np.array_equal(cells, np.flip(cells, j)):
                sign = np.where(np.arange(len(kernel)) == row, -1.0, 1.0).reshape(-1, *[1] * len(shape))
                kernel, rows = (kernel + sign * np.flip(kernel, j + 1)) / 2, (rows + np.flip(rows, j)) / 2
            row += answers - 1
        return replace(solution, kernel=kernel.reshape(len(solution.kernel), -1), rows=rows.ravel())

    def solve(self, sets: Members, accuracy: float, start: Central | None) -> SurveySolution:
        """The best weights of the columns of `sets`, and the centred kernel and prices at which none of them gains."""
        gain = min(self.ratio - 1, 1.0)  # columns of nearly equal entries are spread out
        units = (self.units(sets) - 1) / gain
        solution = survey_program(self.criterion, self.prior, 1 + units, accuracy, None, start)
        theta = solution.theta / self.masses(sets)
        kernel = solution.kernel - solution.kernel.sum(axis=1)[:, None] * self.prior
        even = solution.rows.sum() * self.prior
        return replace(solution, theta=theta, kernel=kernel / gain, rows=even + (solution.rows - even) / gain)
