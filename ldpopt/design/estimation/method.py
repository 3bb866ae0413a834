"""The optimal channel for estimation: column generation over staircase patterns, and its certificates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.estimation.policy import columns_for
from ldpopt.design.estimation.program import fisher_program, kernel_at, least_multipliers, relax
from ldpopt.design.estimation.program_mixture import (
    MAX_PRICING_ROUNDS,
    Mixture,
    MixtureTask,
    by_newton,
    log_scale,
    new_rows,
    no_estimate,
    prices_at,
    searched_cap,
    single_contrast,
    with_erasures,
)
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.design.estimation.staircase import Columns, StaircaseColumns
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.patterns.program import zero_sum
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.criterion import criterion_at
from ldpopt.design.utilities.fisher_information import FisherInformation, worst_case
from ldpopt.errors import SolverError
from ldpopt.numbers.rounding import ULP, ceil_digits, floor_digits
from ldpopt.numbers.tolerances import BRACKET_GAP, CERTIFIED_GAP, COARSE_GAP
from ldpopt.values.distribution import Array

IDLE_ROW_FRACTION = (
    2.0**-20
)  # If row multipliers sum to a smaller fraction of the bound, the constant report has weight.
MAX_SHARPENING_ROUNDS = 8
# The memory of the program grows with the fourth power of the categories, and 40 take minutes already.
MAX_CATEGORIES = 40
# Categories for one contrast, whose patterns can all be priced, and its different weights.
MAX_CONTRAST_CATEGORIES, MAX_CONTRAST_WEIGHTS = 2000, 100
MAX_CERTIFIED_CATEGORIES = 14  # Up to this many categories, the design reaches `CERTIFIED_GAP`.


@dataclass(frozen=True)
class EstimationColumns(
    Method, reference="[KOV14, Thm 2; KW]", solves=FisherInformation, preference=150, by_cvxpy=True
):
    """The channel of least error of an estimate, from columns that are generated [KW].

    min over channels Q of criterion(J(Q)^-1 - p p^T)  subject to  Q epsilon-LDP, Q eta-TV

    Here J = sum_y q_y q_y^T / (q_y . p) for the columns q_y of Q. Every term of J is a convex, homogeneous function of
    its column, so that staircase patterns are enough [KOV14, Thm 2], or the extreme columns of a policy graph. They are
    generated: a program over a few columns is solved, and all columns are priced at its dual values. Those whose
    information exceeds their price join, until none does.

    It takes up to 40 categories. Beyond 24, and under graphs with too many extreme columns to list, a local search
    generates columns. The limit is 262,144 columns, or 65,536 if the weights are not multiples of one. The bound is
    then that of a semidefinite relaxation, which is coarse under such graphs if total variation is capped, too. One
    contrast under LocalDP alone has few patterns that can be best. Up to 2,000 categories with up to 100 different
    weights are certified, such as one proportion of 2,000.

    >>> from ldpopt.design import FisherInformation, LocalDP, optimal_channel
    >>> design = optimal_channel(FisherInformation([0.9, 0.025, 0.025, 0.025, 0.025]), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (10.150574, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs a Fisher information, under LocalDP and possibly TotalVariation.
        """
        if reason := no_estimate(problem):
            return reason
        if problem.eta <= 0:
            return "a channel of eta 0 says nothing"
        if (k := problem.utility.size) > MAX_CATEGORIES and not _is_single_contrast(problem):
            return Limit(f"a design for estimation takes at most {MAX_CATEGORIES} categories, and here are {k}")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the best mixture of columns, and its multipliers."""
        utility: FisherInformation = problem.utility
        columns, eta = columns_for(utility, problem.constraints)
        reported_share = 1.0
        if not problem.proving and isinstance(columns, StaircaseColumns):
            eta, reported_share = searched_cap(eta, columns.epsilon)
        is_fine = utility.size <= MAX_CERTIFIED_CATEGORIES or columns.line or by_newton(utility.criterion, columns, eta)
        gap = CERTIFIED_GAP if is_fine else BRACKET_GAP if columns.exact else COARSE_GAP
        gap = gap if problem.proving else max(gap, BRACKET_GAP)
        task, tolerance = MixtureTask(utility.criterion, utility.prior, columns, eta, gap, problem.deadline), gap
        if utility.neighbourhood is None:
            mixture, prior = task.generate(columns.start()), utility.prior
        else:
            (mixture, prior), tolerance = _minimax(utility, task), BRACKET_GAP
        matrix = mixture.fewer(utility, columns, eta).matrix(columns, log_scale(columns.epsilon))
        matrix = with_erasures(matrix, reported_share)

        def prove(reduced_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            best = mixture
            if utility.neighbourhood is not None:  # Multipliers for the least favourable distribution.
                best = replace(task, prior=prior, deadline=reduced_problem.deadline.inner).generate(mixture.heights)
            yield from proofs_by_pricing(reduced_problem, channel, columns, eta, prior, best)

        description = f"column generation over {columns.kind}, {len(mixture.heights)} generated"
        note, shortfall = "", "the bound is rigorous but not within the tolerance"
        if eta is None and math.isinf(problem.epsilon) and problem.eta < 1:  # else `finish` says it
            smallest_eta = math.tanh(columns.epsilon / 2)
            least_eta = floor_digits(smallest_eta)
            note = f"eta = {ceil_digits(problem.eta)} does not bind: it is at least {least_eta} [GI, Prop 2]"
        if not columns.exact:
            shortfall = f"with so many {columns.kind} the bound is a semidefinite relaxation, rigorous but coarse"
        return Candidate(matrix, description, prove, tolerance, note=note, shortfall=shortfall)


def _is_single_contrast(problem: Problem) -> bool:
    """Return True if one contrast is estimated under LocalDP between all categories.

    Then few patterns can be the best.
    """
    k = problem.utility.size
    contrast = single_contrast(problem.utility.criterion, k)
    if (
        contrast is None
        or not problem.symmetric
        or k > MAX_CONTRAST_CATEGORIES
        or len(np.unique(contrast)) > MAX_CONTRAST_WEIGHTS
    ):
        return False
    return columns_for(problem.utility, problem.constraints)[0].line


def _minimax(utility: FisherInformation, task: MixtureTask) -> tuple[Mixture, Array]:
    """Find the saddle point: a channel for the worst case, and the least favourable distribution.

    The criterion is convex in the weights and concave in the distribution. For the current columns, distributions join
    until the worst case of the channel is among them. Their mixture by dual values is then least favourable. The best
    channel for it gives further columns, or proves that none is needed.
    """
    accuracy, columns, deadline = 1e-5, task.columns, task.deadline
    task = replace(task, deadline=deadline.inner)
    mixture = task.generate(columns.start())
    heights, priors, best_saddle = mixture.heights, [utility.prior], (math.inf, mixture, utility.prior)
    for _ in deadline.rounds(range(MAX_PRICING_ROUNDS)):
        columns_in_use = columns.values(heights)
        mixture = Mixture(heights, fisher_program(utility.criterion, priors, columns_in_use, columns.epsilon, task.eta))
        worst_prior_case = worst_case(utility, mixture.matrix(columns), accuracy / 10)
        prior_mixture = mixture.solution.shares @ np.array(priors)
        prior_mixture = prior_mixture / prior_mixture.sum()
        if worst_prior_case.upper <= best_saddle[0] + accuracy / 100 * abs(
            best_saddle[0]
        ):  # Of equally good channels, the later prior is worse.
            best_saddle = (worst_prior_case.upper, mixture, prior_mixture)
        value_so_far = max(criterion_at(utility.criterion, mixture.matrix(columns), p) for p in priors)
        if worst_prior_case.value - value_so_far > accuracy * max(abs(value_so_far), 1e-12):
            has_weight = mixture.solution.shares > 1e-7
            priors = [
                *(p for p, is_weighted in zip(priors, has_weight, strict=True) if is_weighted or p is utility.prior),
                worst_prior_case.prior,
            ]
            continue
        mixture_for_prior = replace(task, prior=prior_mixture).generate(heights)
        value_for_prior = criterion_at(utility.criterion, mixture_for_prior.matrix(columns), prior_mixture)
        if worst_prior_case.upper - value_for_prior <= 10 * accuracy * max(abs(value_for_prior), 1e-12):
            break
        new_heights = new_rows(mixture_for_prior.heights, heights)
        if len(new_heights) == 0:
            break
        heights = np.vstack([heights, new_heights])
    return best_saddle[1], _in_neighborhood(utility, best_saddle[2])


def _in_neighborhood(utility: FisherInformation, prior: Array) -> Array:
    """Return the distribution, or one a little closer to the pilot that is exactly in the neighborhood."""
    for share in (0.0, 2.0**-45, 2.0**-38, 2.0**-30, 2.0**-20, 1.0):
        if utility.stands_for(candidate := (1 - share) * prior + share * utility.prior):
            break
    return np.asarray(candidate)


def proofs_by_pricing(
    problem: Problem, channel: Channel, columns: Columns, eta: float | None, prior: Array, mixture: Mixture
) -> Iterator[EquivalenceDual]:
    """Generate certificates: from the dual values of the solver, then from sharper and sharper multipliers."""
    utility, solution = problem.utility, mixture.solution
    fields, pairs = (utility, problem.constraints, channel, prior), solution.pairs
    if not columns.exact:
        rows, pairs, relaxation = relax(columns, prices_at(prior, solution, columns).gram, prior, eta)
        yield EquivalenceDual(*fields, solution.kernel, rows, pairs, relaxation)
        return
    yield EquivalenceDual(*fields, solution.kernel, solution.rows, pairs)
    rounding = 4 * ULP * float(np.abs(solution.rows).sum())
    if eta is not None and abs(math.fsum(solution.rows)) <= IDLE_ROW_FRACTION * eta * float(pairs.sum()) + rounding:
        # Under a small cap most reports are uninformative. Any price of theirs, if only by rounding, costs 1/eta times
        # as much as prices of pairs. So the pairs pay for the rounding of all the others.
        # Half of each price is moved to the other order of its pair, as (a)_+ = a + (-a)_+: every column has a price.
        rows = zero_sum(solution.rows + (pairs.sum(axis=1) - pairs.sum(axis=0)) / 2)
        for margin in (2.0**-44, 2.0**-36, 2.0**-30, 2.0**-25):
            yield EquivalenceDual(*fields, solution.kernel, rows, (pairs + pairs.T) / 2 * (1 + margin))
    criterion, heights = utility.criterion, mixture.heights
    kernel = kernel_at(criterion, channel.matrix, prior)
    kernel_values = criterion.row_values(kernel, prior)
    for _ in problem.deadline.inner.rounds(range(MAX_SHARPENING_ROUNDS)):
        try:
            rows, pairs, refined_kernel = least_multipliers(kernel, prior, columns.values(heights), eta, kernel_values)
        except SolverError:
            return
        yield EquivalenceDual(*fields, refined_kernel, rows, pairs)
        prices = prices_at(prior, replace(solution, kernel=refined_kernel, rows=rows, pairs=pairs), columns)
        new_heights = new_rows(columns.paying(prices, heights, 1e-8 * abs(float(rows.sum()))), heights)
        if len(new_heights) == 0:
            return
        heights = np.vstack([heights, new_heights])
