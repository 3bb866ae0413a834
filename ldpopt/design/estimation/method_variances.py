"""The expected proportions of many categories -> the channel with the least sum of variances under one epsilon [KW].

The 2^k staircase patterns of k categories are too many to list.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.estimation.branches import Branches, Members
from ldpopt.design.estimation.policy import columns_for
from ldpopt.design.estimation.prices import MAX_INPUTS_ALL_PRICED
from ldpopt.design.estimation.program import reduce_columns
from ldpopt.design.estimation.program_dual import SurveyDual, mirror_descent, survey_dual
from ldpopt.design.estimation.program_mixture import MixtureTask, log_scale, no_estimate, prices_at
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.design.estimation.relaxation import Relaxation
from ldpopt.design.estimation.staircase import SmallSetColumns
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.errors import SolverError
from ldpopt.numbers.tolerances import BRACKET_GAP, COARSE_GAP, NEGLIGIBLE_WEIGHT, SETTLED_PRICE, SMALL_SETS_GAP
from ldpopt.values.distribution import Array, Rng, generator, optional, positive, positive_integer, random


class VarianceMethod(Method, solves=FisherInformation):
    """A method for weighted sums of the variances of all proportions, under one epsilon between all categories."""

    max_epsilon: ClassVar[float]

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs a weighted sum of variances, under LocalDP and caps on total variation that do not bind.
        """
        if reason := no_estimate(problem):
            return reason
        utility = problem.utility
        if utility.neighbourhood is not None:
            return "it designs for one distribution, not for its neighbourhood"
        if utility.criterion.diagonal(utility.size) is None:
            return "it takes a sum of variances with a positive weight for each"
        if not problem.symmetric:  # before the extreme columns of a policy graph are listed
            return "it takes one epsilon between all categories, not a policy graph"
        columns, eta = columns_for(utility, problem.constraints)
        if eta is not None:
            return "it takes no cap on total variation that binds"
        if reason := self.refuses_size(utility, columns.epsilon):
            return reason
        return "" if columns.epsilon <= self.max_epsilon else f"epsilon is above {self.max_epsilon:g}"

    @abstractmethod
    def refuses_size(self, utility: Any, epsilon: float) -> str:
        """Return the reason to refuse the number of categories or their proportions."""


def _epsilon_and_dual(problem: Problem) -> tuple[float, SurveyDual]:
    """Return epsilon, and the bound on all columns."""
    utility: Any = problem.utility
    epsilon = columns_for(utility, problem.constraints)[0].epsilon
    return epsilon, survey_dual(utility.prior, math.exp(epsilon), utility.criterion.diagonal(utility.size))


def _initial_sets(dual: SurveyDual, count: int, rng: np.random.Generator) -> Members:
    """List (n, k) singletons, pairs if they are not too many, and `count` sets drawn near the best ones."""
    k = len(dual.prior)
    sets = [np.eye(k, dtype=bool)]
    if math.comb(k, 2) <= MAX_PAIRS_ADDED:
        sets.append(np.array([np.isin(np.arange(k), pair) for pair in combinations(range(k), 2)]))
    return np.unique(np.vstack([*sets, dual.draw_sets(count, rng)]), axis=0)


def equivalence_dual(problem: Problem, channel: Channel, dual: SurveyDual) -> EquivalenceDual:
    """Build the certificate of a bound without pricing.

    K = (F M F)^(1/2) F^-1, and the multipliers are for K centered at p.
    """
    prior = problem.utility.prior
    kernel = dual.root / dual.factor * (1 - 2.0**-44)  # Smaller than rounding, so that no column gains.
    row_sums = kernel.sum(axis=1)
    rows = 2 * dual.shifts - 2 * kernel.T @ row_sums + row_sums @ row_sums * prior
    relaxation = Relaxation(dual.squares[None], np.zeros(1))
    pairs = np.zeros((len(prior), len(prior)))
    return EquivalenceDual(problem.utility, problem.constraints, channel, prior, kernel, rows, pairs, relaxation)


def set_channel(sets: Members, weights: Array, epsilon: float) -> Array:
    """Build the matrix (k, n) whose reports favor the sets (n, k) by e^epsilon.

    weights : (n,) of these patterns.
    """
    ratio = math.exp(epsilon * log_scale(epsilon))
    return stochastic(np.where(sets, ratio, 1.0).T * weights)


MAX_SAMPLED_CATEGORIES = 256  # The bound takes the memory of k^3 numbers, and its time grows with k^4.
MAX_DESCENT_STEPS = 300
MAX_PAIRS_ADDED = 5000  # Up to so many sets of two categories join the drawn ones.
DESCENT_GAP = COARSE_GAP / 8  # The relative distance of the value from the bound.
MAX_CATEGORIES_REDUCED = 40  # Reports are reduced to k (k + 1) / 2, which takes k^6 operations.


@dataclass(frozen=True)
class SampledColumns(
    VarianceMethod,
    columns=optional(positive_integer),
    rng=random,
    reference="[KOV14, Thm 2; KW]",
    preference=140,
    by_cvxpy=True,
):
    """A design for estimation with many categories: columns drawn near the best ones, and a bound without pricing.

    It minimizes a sum of variances, under `LocalDP` alone. There are 2^k staircase patterns, too many to list. But all
    columns of the best channel have nearly the same weighted sum, and one semidefinite form bounds all columns at once
    (`estimation.program_dual`). The form shows where good columns are, and bounds any channel's information. Sets are
    drawn there, and mirror descent computes their weights. The relative gap is a few times 1e-4 up to epsilon = 2, and
    grows to a few percent at epsilon = 3, where sets are small. It takes 25 to 256 categories, each with positive
    probability, and epsilon up to 12.

    - `columns` : the number of sets to draw; by default 2,000 plus 100 for each category.
    - `rng` : a numpy Generator or a seed; by default 0, so that designs can be repeated.

    >>> from ldpopt.design import FisherInformation, LocalDP, optimal_channel
    >>> prior = np.arange(1.0, 31.0) / 465
    >>> design = optimal_channel(FisherInformation(prior), LocalDP(1.0))
    >>> design.certified, design.relative_gap < 1e-3
    (True, True)
    """

    columns: int | None = None
    rng: Rng = field(default=None, compare=False)

    max_epsilon: ClassVar[float] = 12.0

    def refuses_size(self, utility: Any, epsilon: float) -> str:
        """Return the reason to refuse; the method takes 25 to 256 possible categories."""
        if not utility.prior.min() > 0:
            return "a category that never occurs has no column near the others"
        if utility.size <= MAX_INPUTS_ALL_PRICED:
            return f"all patterns of at most {MAX_INPUTS_ALL_PRICED} categories are priced"
        message = f"it takes at most {MAX_SAMPLED_CATEGORIES} categories, and here are {utility.size}"
        return Limit(message) if utility.size > MAX_SAMPLED_CATEGORIES else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best mixture of the drawn sets, and the form that bounds all channels."""
        (epsilon, dual), k = _epsilon_and_dual(problem), problem.utility.size
        sets = _initial_sets(dual, self.columns or 2000 + 100 * k, generator(self.rng, 0))
        columns, mass = dual.columns(sets)
        enough_value = dual.bound * (1 + DESCENT_GAP)
        weights = mirror_descent(
            columns, dual.factor, MAX_DESCENT_STEPS, COARSE_GAP / 100, enough_value, deadline=problem.deadline
        )
        if weights is None:
            raise SolverError("sampled columns: the sets that were drawn make no channel; pass columns= or another rng")
        if k <= MAX_CATEGORIES_REDUCED:
            weights = reduce_columns(columns, weights)
        is_used = weights > 0
        matrix = set_channel(sets[is_used], (weights / mass)[is_used], epsilon)
        return Candidate(
            matrix, f"mirror descent over {len(sets)} staircase patterns, drawn near the best",
            lambda stated, channel: (equivalence_dual(stated, channel, dual),),
            COARSE_GAP, shortfall="the bound of so many patterns is rigorous but coarse",
        )  # fmt: skip


MAX_SMALL_SET_CATEGORIES = 64  # The program's time grows with the sixth power.


@dataclass(frozen=True)
class SmallSets(VarianceMethod, sets=positive, reference="[KOV14, Thm 2; KW]", preference=130):
    """A design for estimation whose reports favour few of many categories each, priced by branch and bound.

    It minimizes a sum of variances, under `LocalDP` alone. The best reports favor sets of about k / (exp(epsilon) + 1)
    of the k categories. If such a set is small, for instance 4 of 64, a search through some million sets finds all that
    could improve the design. Columns are generated as for few categories, and the last search is the proof
    (`estimation.branches`). It takes 25 to 64 categories, each with positive probability, and an epsilon of at most 4
    that makes the best sets small. That is from 2 on for 32 categories, from 3 for 48, and from 4 for 64.

    - `sets` : about how many sets a search may look at. With 2e7 it takes 56 categories at epsilon = 3, and 40 at 2, in
      two minutes. If a search would need more, sets are drawn at random instead, as by `SampledColumns`.

    >>> from ldpopt.design import FisherInformation, LocalDP, optimal_channel
    >>> design = optimal_channel(FisherInformation(np.arange(1.0, 27.0) / 351), LocalDP(3.0))
    >>> design.certified, design.relative_gap < 1e-4
    (True, True)
    """

    sets: float = 2.0e6

    max_epsilon: ClassVar[float] = 4.0  # Beyond, Newton's method cannot compute the prices.

    def refuses_size(self, utility: Any, epsilon: float) -> str:
        """Return the reason to refuse.

        The method takes 25 to 64 possible categories, where reports favor few.
        """
        if reason := SampledColumns().refuses_size(utility, epsilon):
            return reason
        k = utility.size
        if k > MAX_SMALL_SET_CATEGORIES:
            return Limit(f"it takes at most {MAX_SMALL_SET_CATEGORIES} categories, and here are {k}")
        if not math.comb(k, min(round(k / (math.exp(epsilon) + 1) + 2), k // 2)) <= self.sets:
            return Limit("its reports favour too many sets of categories to look at all of them; `sets` allows more")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best mixture of all sets that gain, and their prices.

        If these sets are too many, only some are used.
        """
        try:
            return self._generated(problem)
        except SolverError:
            return SampledColumns().find(problem, ask)

    def _generated(self, problem: Problem) -> Candidate:
        utility: Any = problem.utility
        (epsilon, dual), k, prior = _epsilon_and_dual(problem), utility.size, utility.prior
        columns = SmallSetColumns(k, epsilon, dual.squares, int(self.sets))
        sets = _initial_sets(dual, 100 * k, np.random.default_rng(k))
        weights = mirror_descent(dual.columns(sets)[0], dual.factor, MAX_DESCENT_STEPS, SMALL_SETS_GAP)
        if weights is None:
            raise SolverError("small sets: the sets to begin with make no channel; pass another method")
        heavy_sets = sets[np.argsort(-weights, kind="stable")[: k * k // 2]]
        first = np.unique(np.vstack([heavy_sets, np.eye(k, dtype=bool)]), axis=0)
        task = MixtureTask(utility.criterion, prior, columns, None, 10 * SMALL_SETS_GAP, problem.deadline)
        mixture = replace(task.newton(np.where(first, epsilon, 0.0)), negligible_weight=NEGLIGIBLE_WEIGHT)
        reduced_columns, solution = (
            mixture.fewer(utility, columns, None) if k <= MAX_CATEGORIES_REDUCED else mixture,
            mixture.solution,
        )
        margin = 1.01 * columns.reached + SETTLED_PRICE * float(solution.rows.sum())
        raised_solution = replace(solution, rows=solution.rows + margin * prior)

        def prove(reduced_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            fields = (
                reduced_problem.utility,
                reduced_problem.constraints,
                channel,
                prior,
                raised_solution.kernel,
                raised_solution.rows,
                raised_solution.pairs,
            )
            gram = prices_at(prior, raised_solution, columns).gram
            yield EquivalenceDual(*fields, Branches.convex(gram, raised_solution.rows, prior, dual.squares))
            yield equivalence_dual(reduced_problem, channel, dual)

        description = f"column generation over staircase patterns of small sets, {len(mixture.heights)} kept"
        matrix = reduced_columns.matrix(columns, log_scale(epsilon))
        return Candidate(matrix, description, prove, BRACKET_GAP, shortfall="more sets could pay than were looked at")
