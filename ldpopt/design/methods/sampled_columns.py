"""The channel with the least sum of variances for many categories [KW].

Its columns are sets that are drawn near the best ones; where reports favour few answers each, all sets that count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.columns.branches import Branches, Form, Members, walk
from ldpopt.design.columns.policy import columns_for
from ldpopt.design.columns.prices import EXACT_LIMIT, Charges
from ldpopt.design.columns.relaxation import Relaxation
from ldpopt.design.columns.sets import balanced_sets
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.methods.estimation_columns import Mixture, inward, prices_at, unknown
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.fisher import FisherSolution
from ldpopt.design.programs.support import fewer_columns
from ldpopt.design.programs.survey_dual import SurveyDual, mixture, survey_dual
from ldpopt.design.programs.survey_program import survey_program
from ldpopt.design.utilities.criteria import AOptimal
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.distribution import Array, number, positive_integer
from ldpopt.enclosures import FLOAT
from ldpopt.errors import SolverError, invalid
from ldpopt.simulation import Rng, generator
from ldpopt.tolerances import BRACKET_GAP, COARSE_GAP

MAX_CATEGORIES = 256
"""The most categories: the bound takes the memory of k^3 numbers, and its time grows with k^4."""

MAX_EPSILON = 12.0
"""The largest epsilon; beyond it, reports that favour one answer each are best, which other methods find."""

MAX_STEPS = 300
"""The most steps of the descent over the weights."""

PAIRS = 5000
"""All sets of two categories join the drawn ones where there are at most this many."""

NEAR = COARSE_GAP / 8
"""How near to the bound weights are brought."""

THINNED = 40
"""Up to this many categories, reports are reduced to k (k + 1) / 2, which takes k^6 operations."""


@dataclass(frozen=True)
class SampledColumns(Method):
    """A design for estimation with many categories: columns drawn near the best ones, and a bound without pricing.

    It makes a sum of variances small, under `LocalDP` alone. There are 2^k staircase patterns, too many to list. But
    all columns of the best channel have nearly the same weighted sum, and one semidefinite form bounds all columns at
    once (`programs.survey_dual`): it tells where good columns are, and bounds the information of any channel. Sets are
    drawn there, and their weights are found by mirror descent. The gap is a few parts in ten thousand up to epsilon =
    2, and grows to a few percent at epsilon = 3, where sets are small. It takes 25 to 256 categories, each with
    positive probability, and epsilon up to 12.

    columns : how many sets are drawn; by default 2,000 plus 100 for each category. rng : a numpy Generator or a
    seed; by default 0, so that designs can be repeated.

    >>> from ldpopt.design import FisherInformation, LocalDP, optimal_channel
    >>> prior = np.arange(1.0, 31.0) / 465
    >>> design = optimal_channel(FisherInformation(prior), LocalDP(1.0))
    >>> design.certified, design.relative_gap < 1e-3
    (True, True)
    """

    columns: int | None = None
    rng: Rng = field(default=None, compare=False)

    reference: ClassVar[str] = "[KOV14, Thm 2; KW]"
    preference: ClassVar[int] = 140

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", positive_integer(self.columns, "columns"))
        generator(self.rng)  # refuses what is none

    def refuses(self, problem: Problem) -> str:
        """It needs a sum of variances of possible categories, under LocalDP alone."""
        utility = problem.utility
        if not isinstance(utility, FisherInformation):
            return f"{utility.name} is no error of an estimate"
        if utility.neighbourhood is not None:
            return "it designs for one distribution, not for its neighbourhood"
        if not isinstance(utility.criterion, AOptimal) or utility.criterion.diagonal(utility.size) is None:
            return "it takes a sum of variances with a positive weight for each"
        if not utility.prior.min() > 0:
            return "a category that never occurs has no column near the others"
        if utility.size <= EXACT_LIMIT:
            return f"all patterns of at most {EXACT_LIMIT} categories are priced"
        if utility.size > MAX_CATEGORIES:
            return Limit(f"it takes at most {MAX_CATEGORIES} categories, and here are {utility.size}")
        if not all(isinstance(c, LocalDP | TotalVariation) for c in problem.constraints):
            return "it takes LocalDP, and caps on total variation that do not bind"
        if not any(isinstance(c, LocalDP) for c in problem.constraints):
            return "a design for estimation needs constraints with LocalDP among them"
        if not problem.symmetric:  # before the extreme columns of a policy graph are listed
            return "it takes one epsilon between all categories, not a policy graph"
        columns, eta = columns_for(utility, problem.constraints)
        if eta is not None:
            return "it takes no cap on total variation that binds"
        if not columns.epsilon <= MAX_EPSILON:
            return f"epsilon is above {MAX_EPSILON:g}, where its columns are not near one another"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best mixture of the drawn sets, and the form that bounds all channels."""
        utility: Any = problem.utility
        prior, k = utility.prior, utility.size
        factor = utility.criterion.diagonal(k)
        columns, _ = columns_for(utility, problem.constraints)
        ratio, rng = math.exp(columns.epsilon), generator(self.rng, 0)
        dual = survey_dual(prior, ratio, factor)
        sets = [np.eye(k, dtype=bool)]
        if k * (k - 1) // 2 <= PAIRS:
            sets.append(np.array([np.isin(np.arange(k), two) for two in combinations(range(k), 2)]))
        sets.append(balanced_sets(prior, dual.squares, dual.target, ratio, self.columns or 2000 + 100 * k, rng))
        each = np.unique(np.vstack(sets), axis=0)
        values = np.where(each, ratio, 1.0)
        mass = values @ prior
        found = mixture(
            values / mass[:, None],
            factor,
            MAX_STEPS,
            COARSE_GAP / 100,
            dual.least * (1 + NEAR),
            deadline=problem.deadline,
        )
        if found is None:
            raise SolverError("sampled columns: the sets that were drawn make no channel; pass columns= or another rng")
        if k <= THINNED:
            found = fewer_columns(values / mass[:, None], found)
        used = found > 0
        kept = math.exp(columns.epsilon * inward(columns.epsilon))
        matrix = stochastic(np.where(each[used], kept, 1.0).T * (found / mass)[used])

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            yield equivalence_dual(posed, channel, dual, factor)

        how = f"mirror descent over {len(each)} staircase patterns, drawn near the best"
        return Candidate(
            matrix, how, prove, COARSE_GAP, shortfall="the bound of so many patterns is rigorous but coarse"
        )


def equivalence_dual(problem: Problem, channel: Channel, dual: SurveyDual, factor: Array) -> EquivalenceDual:
    """The certificate of a bound without pricing: K = (F M F)^(1/2) F^-1, and multipliers for K centred at p."""
    prior = problem.utility.prior
    kernel = dual.root / factor * (1 - 2.0**-44)  # smaller than rounding, so that no column gains
    even = kernel.sum(axis=1)
    rows = 2 * dual.shifts - 2 * kernel.T @ even + even @ even * prior
    relaxed = Relaxation(dual.squares[None], np.zeros(1))
    pairs = np.zeros((len(prior), len(prior)))
    return EquivalenceDual(problem.utility, problem.constraints, channel, prior, kernel, rows, pairs, relaxed)


MAX_SMALL_CATEGORIES = 64
"""The most categories: the program's time grows with their sixth power."""

MAX_SMALL_EPSILON = 4.0
"""The largest epsilon: beyond, the best weights are too few for Newton's method to tell their prices."""

SIFTED = 8
"""Rounds in which columns that are far from paying leave."""

ACCURACY = 2e-5
"""The relative accuracy of the weights."""

RISE = 10
"""The accuracy rises once no column pays more than so many times what it is."""

SETTLED = 1e-7
"""A relative price that is not looked into."""

MAX_ROUNDS = 40
"""The most rounds."""


@dataclass(frozen=True)
class SmallSets(Method):
    """A design for estimation whose reports favour few of many categories each, priced by branch and bound.

    It makes a sum of variances small, under `LocalDP` alone. The best reports favour sets of about
    k / (exp(epsilon) + 1) of the k categories. If such a set is small, for instance 4 of 64, a search through some
    million sets finds all that could improve the design. Columns are generated as for few categories, and the last
    search is the proof (`columns.branches`). It takes 25 to 64 categories, each with positive probability, and an
    epsilon of at most 4 at which the best sets are small: from 2 on for 32 categories, from 3 for 48, from 4 for 64.

    sets : about how many sets a search may look at. With 2e7 it takes 56 categories at epsilon = 3, and 40 at 2, in two
    minutes. If a search would need more, sets are drawn at random instead, as by `SampledColumns`.

    >>> from ldpopt.design import FisherInformation, LocalDP, optimal_channel
    >>> design = optimal_channel(FisherInformation(np.arange(1.0, 27.0) / 351), LocalDP(3.0))
    >>> design.certified, design.relative_gap < 1e-4
    (True, True)
    """

    sets: float = 2.0e6

    reference: ClassVar[str] = "[KOV14, Thm 2; KW]"
    preference: ClassVar[int] = 130

    def __post_init__(self) -> None:
        if not number(self.sets, "sets", "a number of sets above 0") > 0:
            raise invalid("sets", "a number of sets above 0", self.sets)

    def refuses(self, problem: Problem) -> str:
        """It needs a sum of variances of possible categories, under LocalDP alone, whose reports favour few."""
        why = SampledColumns().refuses(problem)
        if why:
            return why
        k = problem.utility.size
        if k > MAX_SMALL_CATEGORIES:
            return Limit(f"it takes at most {MAX_SMALL_CATEGORIES} categories, and here are {k}")
        epsilon = columns_for(problem.utility, problem.constraints)[0].epsilon
        if not epsilon <= MAX_SMALL_EPSILON:
            return f"epsilon is above {MAX_SMALL_EPSILON:g}, where single answers are the sets"
        if not math.comb(k, min(round(k / (math.exp(epsilon) + 1) + 2), k // 2)) <= self.sets:
            return Limit("its reports favour too many sets of categories to look at all of them; `sets` allows more")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best mixture of all sets that pay, and their prices; if they are too many, of some."""
        try:
            found = self._generated(problem)
        except SolverError:
            found = None
        return found or SampledColumns().find(problem, ask)

    def _generated(self, problem: Problem) -> Candidate | None:
        utility: Any = problem.utility
        prior, k = utility.prior, utility.size
        factor = utility.criterion.diagonal(k)
        columns, _ = columns_for(utility, problem.constraints)
        ratio = math.exp(columns.epsilon)
        dual = survey_dual(prior, ratio, factor)
        pairs = np.array([np.isin(np.arange(k), two) for two in combinations(range(k), 2)])
        drawn = balanced_sets(prior, dual.squares, dual.target, ratio, 100 * k, np.random.default_rng(k))
        sets = np.unique(np.vstack([np.eye(k, dtype=bool), pairs, drawn]), axis=0)
        sets = _heaviest(sets, prior, factor, ratio)
        values = np.where(sets, ratio, 1.0)
        accuracy, start = 1e-2, None
        for turn in problem.deadline.rounds(range(MAX_ROUNDS)):
            found, solution = values, survey_program(utility.criterion, prior, values, accuracy, start=start)
            size, mass = float(solution.rows.sum()), values @ prior
            prices = prices_at(prior, solution, columns)
            leading = np.argsort(-solution.theta * mass)[:k]
            climbed = prices.climb(values[leading] > 1, k * k // 2, 0.0)
            above = prices.gains(np.where(climbed, ratio, 1.0)).max(initial=0.0)
            form = _form(solution, prior, columns.epsilon, dual.squares, max(0.05 * above, SETTLED * size))
            search = walk(form, int(self.sets), k * k // 2)
            if not search.complete:
                return None
            met = np.where(np.vstack([climbed, search.sets]), ratio, 1.0)
            most = float(prices.gains(met).max(initial=0.0))
            new = unknown(np.unique(met, axis=0), values)
            if accuracy <= ACCURACY and (most <= 2 * ACCURACY * size or not len(new)):
                break
            # At last all stay: many prices are as good as each other, and columns that leave come back in turns.
            kept = solution.central.slack <= max(50 * accuracy, 1e-3) * size * mass
            kept |= (accuracy <= ACCURACY) | (turn >= SIFTED)
            values, start = np.vstack([values[kept], new]), solution.central.joined(kept, len(new))
            if most <= RISE * accuracy * size or not len(new):
                accuracy = max(accuracy / 5, ACCURACY)
        mixed = Mixture(np.where(found > 1, columns.epsilon, 0.0), solution)
        mixed = mixed.fewer(utility, columns, None) if k <= THINNED else mixed
        raised = replace(solution, rows=solution.rows + (1.01 * most + SETTLED * size) * prior)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            fields = (posed.utility, posed.constraints, channel, prior, raised.kernel, raised.rows, raised.pairs)
            yield EquivalenceDual(*fields, _branches(raised, prior, dual.squares))
            yield equivalence_dual(posed, channel, dual, factor)

        how = f"column generation over staircase patterns of small sets, {len(found)} kept"
        matrix = mixed.matrix(columns, inward(columns.epsilon))
        return Candidate(matrix, how, prove, BRACKET_GAP, shortfall="more sets could pay than were looked at")


def _heaviest(sets: Members, prior: Array, factor: Array, ratio: float) -> Members:
    """About k^2 / 2 of the sets (n, k) that have most weight, and the singletons."""
    k = len(prior)
    columns = np.where(sets, ratio, 1.0)
    weights = mixture(columns / (columns @ prior)[:, None], factor, MAX_STEPS, ACCURACY)
    if weights is None:
        raise SolverError("small sets: the sets to begin with make no channel; pass another method")
    first = np.argsort(-weights, kind="stable")[: k * k // 2]
    return np.unique(np.vstack([sets[first], np.eye(k, dtype=bool)]), axis=0)


def _branches(solution: FisherSolution, prior: Array, squares: Array) -> Branches:
    """d in the proportions of `squares`, just enough to make what sets pay convex."""
    centred = solution.kernel - np.outer(solution.kernel.sum(axis=1), prior)
    paid = np.outer(prior, solution.rows)
    unit = 1 / np.sqrt(squares)
    least = float(np.linalg.eigvalsh(((paid + paid.T) / 2 - centred.T @ centred) * unit[:, None] * unit)[0])
    return Branches(squares * max(-least, 0.0) * (1 + 1e-4))


def _form(solution: FisherSolution, prior: Array, epsilon: float, squares: Array, above: float) -> Form:
    """The form that is below zero at sets priced above `above`."""
    raised = replace(solution, rows=solution.rows + above * prior)
    charges = Charges.of(FLOAT.of(raised.kernel), prior, raised.rows, raised.pairs)
    form = Form.of(charges, 1 / FLOAT.of(epsilon).expm1(), _branches(raised, prior, squares).squares)
    if form is None:
        raise SolverError("small sets: the prices are beyond floats; pass another method")
    return form
