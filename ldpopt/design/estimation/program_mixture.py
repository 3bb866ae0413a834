"""Find the best mixture of columns for a criterion: columns join that gain at the dual values [KW].

A program over a few columns is solved, and all columns are priced at its dual values. Those whose value exceeds their
price join it, until none does.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.candidate import only
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.estimation.policy import MAX_INITIAL_COLUMNS, PolicyColumns, columns_for
from ldpopt.design.estimation.prices import MAX_INPUTS_ALL_PRICED, Prices
from ldpopt.design.estimation.program import FisherSolution, fisher_program, reduce_columns, reduce_weights
from ldpopt.design.estimation.program_dual import survey_dual
from ldpopt.design.estimation.program_newton import survey_program
from ldpopt.design.estimation.staircase import MAX_INPUTS_ALL_STARTED, Columns, StaircaseColumns
from ldpopt.design.generate import WithoutBounds, generate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.criteria import COptimal, MVOptimal
from ldpopt.design.utilities.criterion import Criterion, LinearCriterion
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.rounding import ULP, toward_privacy
from ldpopt.numbers.tolerances import (
    DRAWN_WEIGHT,
    NEGLIGIBLE_EXACT,
    NEGLIGIBLE_WEIGHT,
    NEWTON_EPSILON,
    NEWTON_EPSILON_CAPPED,
)
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array

MAX_PRICING_ROUNDS = 60  # Columns that still gain then make the gap wider, not the bound wrong.
SETS_PER_CATEGORY = 50  # Sets that are drawn at the start, for each category.
FIRST_GAP = 0.1  # Relative, of the first round of Newton's method.
LEAVING_FACTOR = 100  # Columns leave if they lose more than this many times the round's gap
# A round is solved to a gap this many times smaller than the largest gain of columns outside the round before.
GAIN_TO_GAP = 30
MIN_RELATIVE_CAP = 0.1  # For Newton's method, relative to the widest total variation.
SMALLEST_CAP = 1e-9  # Without a proof


def no_estimate(problem: Problem) -> str:
    """Return the reason why a problem is not an estimation design.

    Such a design is under LocalDP and TotalVariation. The reason is empty for one.
    """
    if not isinstance(problem.utility, FisherInformation):
        return f"{problem.utility.name} is no error of an estimate"
    if not only(problem, LocalDP, TotalVariation):
        return "a design for estimation takes LocalDP and TotalVariation alone"
    if only(problem, TotalVariation):
        return "a design for estimation needs constraints with LocalDP among them"
    return ""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Columns with logarithms `heights` (n, k), their weights and the dual values.

    negligible_weight : smaller weights, relative to the largest, do not count.
    """

    heights: Array
    solution: FisherSolution
    negligible_weight: float = NEGLIGIBLE_WEIGHT

    def used(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Mark (n,) the columns that count.

        They count by weight times spread, relative to others, or by weight if they are constant.
        """
        values = columns.values(self.heights)
        informative_weight = self.solution.theta * np.ptp(values, axis=1)
        is_constant = (informative_weight == 0) & (self.solution.theta * values.max(axis=1) > self.negligible_weight)
        return np.asarray((informative_weight > self.negligible_weight * informative_weight.max()) | is_constant)

    def fewer(self, utility: FisherInformation, columns: Columns, eta: float | None) -> Mixture:
        """Reduce the mixture to at most k(k+1)/2 + 1 columns with the same information.

        It is a vertex of the weights that give this information. Under a cap on total variation a few more are needed.
        Under a neighborhood the information at other distributions counts, too, and all columns stay.
        """
        k = self.heights.shape[1]
        is_used = self.used(columns)
        if utility.neighbourhood is not None or is_used.sum() <= k * (k + 1) // 2 + 1:
            return self
        values = columns.values(self.heights[is_used])
        mass = values @ utility.prior
        theta = np.zeros(len(is_used))
        if eta is None:
            theta[is_used] = reduce_columns(values / mass[:, None], self.solution.theta[is_used] * mass) / mass
            return replace(self, solution=replace(self.solution, theta=theta))
        u = values / mass[:, None] - 1
        x, other = np.triu_indices(k)
        moments = np.hstack([np.ones((len(u), 1)), u, u[:, x] * u[:, other], np.maximum(u[:, x] - u[:, other], 0.0)])
        probabilities = self.solution.theta[is_used] * mass
        # Where most reports are uninformative, the others are weighted among themselves.
        is_constant = np.ptp(values, axis=1) == 0
        units = np.where(is_constant, 1.0, probabilities[~is_constant].sum())
        theta[is_used] = reduce_weights(moments * units[:, None], probabilities / units) * units / mass
        return replace(self, solution=replace(self.solution, theta=theta))

    def matrix(self, columns: Columns, scale: float = 1.0) -> Array:
        """Build the channel's matrix, with equal row sums.

        Logarithms are multiplied by `scale`. Columns that do not count are left out. The solver's noise on such a
        column could make it the only report about some proportion, with an error too large to compute.
        """
        theta, is_used = self.solution.theta, self.used(columns)
        values, theta = columns.values(self.heights[is_used] * scale), theta[is_used]
        is_constant = np.ptp(values, axis=1) == 0
        matrix = values.T * theta
        # The least relative change of weights makes the rows' sums equal; the constant columns then make them one.
        informative = matrix[:, ~is_constant]
        shortfall = (informative.sum(axis=1).mean() if is_constant.any() else 1.0) - informative.sum(axis=1)
        matrix[:, ~is_constant] = informative * np.maximum(
            1 + np.linalg.lstsq(informative, shortfall, rcond=1e-12)[0], 0.0
        )
        if is_constant.any():
            constant_weight = max(0.0, 1 - matrix[:, ~is_constant].sum(axis=1).mean())
            matrix[:, is_constant] = constant_weight / is_constant.sum()
        return stochastic(matrix)


@dataclass(frozen=True, eq=False)
class MixtureTask:
    """The task of a mixture: a criterion at a prior (k,), of columns, under a cap eta or None, to a gap."""

    criterion: Any
    prior: Array
    columns: Any
    eta: float | None
    gap: float
    deadline: Deadline = UNLIMITED

    def generate(self, heights: Array) -> Mixture:
        """Generate the best mixture from the columns at `heights`.

        No column gains more than about `gap`.
        """
        criterion, columns, k = self.criterion, self.columns, len(self.prior)
        if isinstance(columns, StaircaseColumns) and k > MAX_INPUTS_ALL_STARTED:
            contrast = single_contrast(criterion, k)
            has_few_weights = contrast is not None and len(np.unique(contrast)) <= MAX_INPUTS_ALL_PRICED
            if contrast is not None and (columns.line or (self.eta is not None and has_few_weights)):
                return self.of_contrast(contrast)
        if by_newton(criterion, columns, self.eta):
            with suppress(SolverError, np.linalg.LinAlgError, OverflowError), np.errstate(all="ignore"):
                return self.newton(np.vstack([heights, new_rows(self.draw_columns(criterion.diagonal(k)), heights)]))
        return self.by_cones(heights, 0.9 * self.gap)

    def size(self, prices: Prices) -> float:
        """Compute the criterion at these prices."""
        return abs(float(prices.rows.sum() + (self.eta or 0.0) * prices.pairs.sum()))

    def by_cones(self, heights: Array, min_gain: float) -> Mixture:
        """Solve the cone program over the columns of each round.

        It ends when no column gains more than `min_gain`, relatively. No column leaves. Those with weight may identify
        only some proportions, and no matrix of information near theirs is then regular, as Clarabel requires. Where
        prices are not unique, columns that leave would come back.
        """
        pricing = _Cones(self, min_gain)
        return generate(pricing, pricing, heights, MAX_PRICING_ROUNDS, deadline=self.deadline).solution

    def of_contrast(self, contrast: Array) -> Mixture:
        """Solve for the variance of one contrast, such as one proportion, of many categories.

        Categories of the same weight need not be distinguished [KOV14, section 2.2]: they are merged. The first
        patterns cut the categories, sorted by weight, in two. In every round all of the few sets that can be best are
        priced (`estimation.prices`). Under a cap, all sets are priced, so that there must be at most 24 different
        weights.
        """
        weights, weight_index = np.unique(contrast, return_inverse=True)
        weight_index, c, columns, prior = weight_index.reshape(-1), len(weights), self.columns, self.prior
        mass = np.asarray(np.bincount(weight_index, prior), dtype=np.float64)
        lower_sets = np.arange(c)[None, :] < np.arange(1, c)[:, None]
        cuts = np.unique(np.vstack([np.zeros((1, c), dtype=bool), lower_sets, ~lower_sets]), axis=0)
        merged_columns = StaircaseColumns(c, columns.epsilon, columns.line)
        task = replace(self, criterion=COptimal(weights), prior=mass, columns=merged_columns)
        mixture = task.by_cones(cuts * columns.epsilon, 0.05 * self.gap)
        solution = mixture.solution
        kernel = solution.kernel[0] - solution.kernel.sum() * mass
        # Categories of one weight share its multipliers by their shares; rows are raised a little for the rounding.
        fraction = prior / mass[weight_index]
        rows = solution.rows[weight_index] * fraction
        rows = rows + 16 * ULP * float(np.abs(rows).sum()) * prior
        pairs = solution.pairs[np.ix_(weight_index, weight_index)] * np.outer(fraction, fraction)
        solution_of_categories = FisherSolution(
            solution.theta, rows, pairs, kernel[weight_index][None] * fraction, np.ones(1)
        )
        return Mixture(mixture.heights[:, weight_index], solution_of_categories)

    def newton(self, heights: Array) -> Mixture:
        """Solve by Newton's method, where `by_newton` holds.

        All columns are priced in every round, and few rounds are enough. Prices in the middle of the nearly optimal
        ones change little from round to round. So the first rounds are coarse, none is solved much finer than the gains
        of the columns outside it, and each begins where the one before ended. Columns are scaled to a mean entry of
        one.
        """
        criterion, prior, columns, eta, k = self.criterion, self.prior, self.columns, self.eta, len(self.prior)
        accuracy, final_gap, start = FIRST_GAP, self.gap / (10 * k if criterion.logarithmic else 10), None
        can_leave, has_left, previous_gain = True, False, math.inf
        for round_number in self.deadline.rounds(range(MAX_PRICING_ROUNDS)):
            values = columns.values(heights)
            mean = values.mean(axis=1)
            values = values / mean[:, None]
            solution = survey_program(criterion, prior, values, accuracy, eta, start)
            mixture = Mixture(heights, replace(solution, theta=solution.theta / mean), NEGLIGIBLE_EXACT)
            prices = prices_at(prior, solution, columns)
            size = float(k) if criterion.logarithmic else self.size(prices)
            new_heights = new_rows(columns.best(prices, k**2 // 2, 0.1 * final_gap * size), heights)
            new_values = columns.values(new_heights)
            gains = prices.gains(new_values) / size
            if gains.max(initial=0.0) <= final_gap and accuracy <= 1.01 * final_gap:
                break
            # Of a report that is nearly never given, a unit of probability is more than there is.
            largest_gain = float((gains * (new_values @ prior) / new_values.max(axis=1)).max(initial=0.0))
            if round_number == 0 and criterion.limited:  # The variances have weights now.
                factor = criterion.factor(k)
                weights = factor**2 @ solution.central.prices[: factor.shape[1]]
                drawn_heights = self.draw_columns(np.sqrt(np.maximum(weights, DRAWN_WEIGHT * weights.max())))
                new_heights = np.vstack([new_heights, new_rows(drawn_heights, np.vstack([heights, new_heights]))])
            is_idle = solution.central.slack > LEAVING_FACTOR * max(largest_gain, accuracy) * size * values.max(axis=1)
            # Many prices are as good, and columns that left would join again.
            if largest_gain > 2 * previous_gain and has_left:
                can_leave = False
            is_selected, previous_gain = ~(is_idle & can_leave), largest_gain
            has_left |= not is_selected.all()
            heights, start = (
                np.vstack([heights[is_selected], new_heights]),
                solution.central.with_columns(is_selected, len(new_heights)),
            )
            accuracy = max(accuracy / 10, min(FIRST_GAP, largest_gain / GAIN_TO_GAP), final_gap)
        return mixture

    def draw_columns(self, factor: Array | None) -> Array:
        """Draw columns near the best for weights `factor`^2 of the variances, by default one."""
        prior, columns, k, ratio = self.prior, self.columns, len(self.prior), math.exp(self.columns.epsilon)
        with suppress(SolverError):
            if prior.min() > 0 and isinstance(columns, StaircaseColumns):
                bound = survey_dual(prior, ratio, np.ones(k) if factor is None else factor)
                rng = np.random.default_rng(k)
                sets = bound.draw_sets(SETS_PER_CATEGORY * k, rng, self.eta)
                if self.eta is not None:  # Sets are small.
                    pairs = np.eye(k, dtype=bool)[np.column_stack(np.triu_indices(k, 1))].any(axis=1)
                    sets = np.unique(np.vstack([sets, pairs]), axis=0)
                return np.asarray(sets * columns.epsilon)
        return np.zeros((0, k))


@dataclass(frozen=True, eq=False)
class _Cones(WithoutBounds):
    """Master and oracle of the cone program: columns join that gain more than `negligible_weight`, relatively."""

    task: MixtureTask
    negligible_weight: float

    def solve(self, pool: Array, number: int) -> Mixture:
        """Solve for the best weights of the columns with logarithms `pool` (n, k)."""
        task, columns = self.task, self.task.columns
        values = columns.values(pool)
        return Mixture(pool, fisher_program(task.criterion, [task.prior], values, columns.epsilon, task.eta))

    def price(self, mixture: Mixture) -> Array:
        """Find new columns that gain."""
        task, columns, heights = self.task, self.task.columns, mixture.heights
        if len(heights) >= columns.count:
            return heights[:0]
        prices = prices_at(task.prior, mixture.solution, columns)
        paying = columns.paying(prices, heights[mixture.used(columns)], self.negligible_weight * task.size(prices))
        return new_rows(paying, heights)


def single_contrast(criterion: Criterion, k: int) -> Array | None:
    """Return (k,) the contrast whose variance is the criterion; None for other criteria."""
    factor: Any = criterion
    return np.asarray(factor.factor(k)[:, 0]) if criterion.additive and criterion.kernel_rows(k) == 1 else None


def log_scale(epsilon: float) -> float:
    """Compute the factor for logarithms that keeps a float channel within epsilon.

    The logarithms are those of columns. Rows of floats sum to one only up to an ulp or two. Their distributions differ
    from them by this error.
    """
    return toward_privacy(1.0) - 4 * ULP / epsilon


def by_newton(criterion: Criterion, columns: Columns, eta: float | None) -> bool:
    """Return True if Newton's method is faster for this criterion and these columns.

    The criterion must be smooth, and there must be many categories or listed columns.
    """
    if isinstance(columns, PolicyColumns):
        k = columns.heights.shape[1]
        if len(columns.heights) <= MAX_INITIAL_COLUMNS or not math.isfinite(columns.epsilon):
            return False
    elif isinstance(columns, StaircaseColumns) and MAX_INPUTS_ALL_STARTED < columns.k <= MAX_INPUTS_ALL_PRICED:
        k = columns.k
        if eta is not None and not eta >= least_cap(columns.epsilon):
            return False  # Most reports are uninformative: other units are needed.
    else:
        return False
    if not columns.epsilon >= (NEWTON_EPSILON if eta is None else NEWTON_EPSILON_CAPPED):
        return False  # Columns are nearly constant: other units are needed.
    return criterion.smooth(k)


def prices_at(prior: Array, solution: FisherSolution, columns: Columns) -> Prices:
    """Compute the prices at the dual values of a solution."""
    centered_kernel = solution.kernel - np.outer(solution.kernel.sum(axis=1), prior)
    ratio = math.exp(columns.epsilon) if columns.epsilon < 709 else math.inf
    return Prices(centered_kernel.T @ centered_kernel, prior, solution.rows, solution.pairs, ratio)


def new_rows(candidates: npt.NDArray[Any], known_rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Select the rows of `candidates` that are not known."""
    rows = {row.tobytes() for row in known_rows}
    return np.asarray(candidates[np.array([row.tobytes() not in rows for row in candidates], dtype=bool)])


def refuses_thresholds(problem: Problem, takes_cap: bool = False) -> str:
    """Return the reason to refuse a problem; empty for a suitable one.

    It must be a sum or largest of variances at one pilot under LocalDP. A method may take a cap on total variation,
    too. For a proof the cap must leave more than a few informative reports.
    """
    utility = problem.utility
    if reason := no_estimate(problem):
        return reason
    if not isinstance(utility.criterion, LinearCriterion | MVOptimal) or utility.neighbourhood is not None:
        return "it takes a sum of variances, or the largest of some, at one pilot"
    if not problem.symmetric:
        return "it takes LocalDP between all inputs alone"
    try:
        columns, eta = columns_for(utility, problem.constraints)
    except InvalidInput as error:
        return str(error)
    if not 1e-6 <= columns.epsilon <= 20 or (eta is not None and not takes_cap):
        return "it takes LocalDP alone, with an epsilon from 1e-6 to 20"
    if eta is not None and not eta >= (least_cap(columns.epsilon) if problem.proving else SMALLEST_CAP):
        return "the cap on total variation leaves few informative reports"
    return ""


def least_cap(epsilon: float) -> float:
    """Return the least cap on total variation for Newton's method.

    Within a smaller cap, a public coin may leave out reports of the best channel for this one. That is as good as any
    channel, since the variances of the best channels are in proportion to 1/eta there.
    """
    return MIN_RELATIVE_CAP * math.tanh(epsilon / 2)


def searched_cap(eta: float | None, epsilon: float) -> tuple[float | None, float]:
    """Return the cap on total variation of the search, and the share of its channel's reports that `eta` lets stand.

    The search has the cap `least_cap` in place of a smaller one.
    """
    if eta is None or eta >= (searched_eta := least_cap(epsilon)):
        return eta, 1.0
    return searched_eta, eta / searched_eta


def with_erasures(matrix: Array, reported_share: float) -> Array:
    """Return the channel (k, m + 1) that reports by `matrix` (k, m) for a share of respondents, or `matrix` for all."""
    if reported_share == 1:
        return matrix
    return np.hstack([reported_share * matrix, np.full((len(matrix), 1), 1 - reported_share)])
