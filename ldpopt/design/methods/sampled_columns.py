"""The channel with the least sum of variances for many categories, from sets that are drawn near the best ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.columns.policy import columns_for
from ldpopt.design.columns.prices import EXACT_LIMIT
from ldpopt.design.columns.relaxation import Relaxation
from ldpopt.design.columns.sets import balanced_sets
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.methods.estimation_columns import inward
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.mixture import mixture
from ldpopt.design.programs.support import fewer_columns
from ldpopt.design.programs.survey_dual import SurveyDual, survey_dual
from ldpopt.design.utilities.criteria import AOptimal
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.distribution import Array, positive_integer
from ldpopt.errors import SolverError, invalid
from ldpopt.tolerances import COARSE_GAP

MOST = 256
"""The most categories: the bound takes the memory of k^3 numbers, and its time grows with k^4."""

WIDEST = 12.0
"""The largest epsilon; beyond it, reports that favour one answer each are best, which other methods find."""

STEPS = 300
"""The most steps of the descent over the weights."""

PAIRS = 5000
"""All sets of two categories join the drawn ones where there are at most this many."""

NEAR = COARSE_GAP / 8
"""How near to the bound weights are brought."""

THINNED = 40
"""Up to this many categories, reports are reduced to k (k + 1) / 2, which takes k^6 operations."""


@dataclass(frozen=True)
class SampledColumns:
    """A design for estimation with many categories: columns drawn near the best ones, and a bound without pricing.

    It makes a sum of variances small, under `LocalDP` alone. There are 2^k staircase patterns, too many to list. But
    all columns of the best channel have nearly the same weighted sum, and one semidefinite form bounds all columns at
    once (`programs.survey_dual`): it tells where good columns are, and bounds the information of any channel. Sets are
    drawn there, and their weights are found by mirror descent. The gap is a few parts in ten thousand up to epsilon =
    2, and grows to a few percent at epsilon = 3, where sets are small. It takes 25 to 256 categories, each with
    positive probability, and epsilon up to 12.

    columns : how many sets are drawn; by default 2,000 plus 100 for each category. rng : a numpy Generator; by default
    one with seed 0, so that designs can be repeated.

    >>> from ldpopt.design import FisherInformation, LocalDP, optimal_channel
    >>> prior = np.arange(1.0, 31.0) / 465
    >>> design = optimal_channel(FisherInformation(prior), LocalDP(1.0))
    >>> design.certified, design.relative_gap < 1e-3
    (True, True)
    """

    columns: int | None = None
    rng: np.random.Generator | None = field(default=None, compare=False)

    reference: ClassVar[str] = "[KW]"

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", positive_integer(self.columns, "columns"))
        if self.rng is not None and not isinstance(self.rng, np.random.Generator):
            raise invalid("rng", "a numpy.random.Generator", type(self.rng).__name__)

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
        if utility.size > MOST:
            return f"it takes at most {MOST} categories, and here are {utility.size}"
        if not all(isinstance(c, LocalDP | TotalVariation) for c in problem.constraints):
            return "it takes LocalDP, and caps on total variation that do not bind"
        if not any(isinstance(c, LocalDP) for c in problem.constraints):
            return "a design for estimation needs constraints with LocalDP among them"
        if not problem.symmetric:  # before the extreme columns of a policy graph are listed
            return "it takes one epsilon between all categories, not a policy graph"
        columns, eta = columns_for(utility, problem.constraints)
        if eta is not None:
            return "it takes no cap on total variation that binds"
        if not columns.epsilon <= WIDEST:
            return f"epsilon is above {WIDEST:g}, where its columns are not near one another"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best mixture of the drawn sets, and the form that bounds all channels."""
        utility: Any = problem.utility
        prior, k = utility.prior, utility.size
        factor = utility.criterion.diagonal(k)
        columns, _ = columns_for(utility, problem.constraints)
        ratio, rng = math.exp(columns.epsilon), self.rng or np.random.default_rng(0)
        dual = survey_dual(prior, ratio, factor)
        sets = [np.eye(k, dtype=bool)]
        if k * (k - 1) // 2 <= PAIRS:
            sets.append(np.array([np.isin(np.arange(k), two) for two in combinations(range(k), 2)]))
        sets.append(balanced_sets(prior, dual.squares, dual.target, ratio, self.columns or 2000 + 100 * k, rng))
        each = np.unique(np.vstack(sets), axis=0)
        values = np.where(each, ratio, 1.0)
        mass = values @ prior
        found = mixture(
            values / mass[:, None], factor, STEPS, COARSE_GAP / 100, dual.least * (1 + NEAR), deadline=problem.deadline
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
