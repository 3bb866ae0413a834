"""From a criterion and kinds of columns to the best mixture of columns: those that gain at the dual values join [KW].

A program over a few columns is solved, all columns are priced at its dual values, and those that are worth more than
they cost join it, until none is.
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
from ldpopt.design.estimation.policy import MAX_START, PolicyColumns, columns_for
from ldpopt.design.estimation.prices import EXACT_LIMIT, Prices
from ldpopt.design.estimation.program import (
    FisherSolution,
    fewer_columns,
    fewer_weights,
    fisher_program,
    survey_program,
)
from ldpopt.design.estimation.program_dual import survey_dual
from ldpopt.design.estimation.staircase import FULL, Columns, StaircaseColumns
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

MAX_ROUNDS = 60  # The most rounds of pricing; columns that still gain then make the gap wider, not the bound wrong
DRAWN = 50  # The number of sets that are drawn at the start, for each category
FIRST_GAP = 0.1  # The relative gap of the first round of Newton's method
SPARE = 100  # Columns leave if they lose more than this many times the round's gap
# A round is solved to a gap this many times smaller than the largest gain of columns outside the round before.
OUTSIDE = 30
WIDE = 0.1  # The least cap, as a share of the widest total variation, for which Newton's method is used


def no_estimate(problem: Problem) -> str:
    """Why a problem is no design for estimation under LocalDP and TotalVariation; empty where it is one."""
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

    least : weights below this share of the largest do not count.
    """

    heights: Array
    solution: FisherSolution
    least: float = NEGLIGIBLE_WEIGHT

    def used(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """(n,) whether a column counts: by weight times spread, relative to others, or by weight if it is constant."""
        values = columns.values(self.heights)
        told = self.solution.theta * np.ptp(values, axis=1)
        silent = (told == 0) & (self.solution.theta * values.max(axis=1) > self.least)
        return np.asarray((told > self.least * told.max()) | silent)

    def fewer(self, utility: FisherInformation, columns: Columns, eta: float | None) -> Mixture:
        """A mixture with the same information from at most k(k+1)/2 + 1 columns, a vertex of the weights that give it.

        Under a cap on total variation a few more are needed to keep within it. Under a neighbourhood the information at
        other distributions counts, too, and all columns stay.
        """
        k = self.heights.shape[1]
        used = self.used(columns)
        if utility.neighbourhood is not None or used.sum() <= k * (k + 1) // 2 + 1:
            return self
        values = columns.values(self.heights[used])
        mass = values @ utility.prior
        theta = np.zeros(len(used))
        if eta is None:
            theta[used] = fewer_columns(values / mass[:, None], self.solution.theta[used] * mass) / mass
            return replace(self, solution=replace(self.solution, theta=theta))
        u = values / mass[:, None] - 1
        x, other = np.triu_indices(k)
        moments = np.hstack([np.ones((len(u), 1)), u, u[:, x] * u[:, other], np.maximum(u[:, x] - u[:, other], 0.0)])
        now = self.solution.theta[used] * mass
        # Where most reports say nothing, the others are weighed among themselves.
        silent = np.ptp(values, axis=1) == 0
        units = np.where(silent, 1.0, now[~silent].sum())
        theta[used] = fewer_weights(moments * units[:, None], now / units) * units / mass
        return replace(self, solution=replace(self.solution, theta=theta))

    def matrix(self, columns: Columns, scale: float = 1.0) -> Array:
        """The channel's matrix, with equal row sums. Logarithms are multiplied by `scale`.

        Columns that do not count are left out: the solver's noise on such a column could make it the only report about
        some proportion, with an error too large to compute.
        """
        theta, used = self.solution.theta, self.used(columns)
        values, theta = columns.values(self.heights[used] * scale), theta[used]
        silent = np.ptp(values, axis=1) == 0
        made = values.T * theta
        # The least relative change of weights makes the rows' sums equal; the constant columns then make them one.
        said = made[:, ~silent]
        missing = (said.sum(axis=1).mean() if silent.any() else 1.0) - said.sum(axis=1)
        made[:, ~silent] = said * np.maximum(1 + np.linalg.lstsq(said, missing, rcond=1e-12)[0], 0.0)
        if silent.any():
            rest = max(0.0, 1 - made[:, ~silent].sum(axis=1).mean())
            made[:, silent] = rest / silent.sum()
        return stochastic(made)


@dataclass(frozen=True, eq=False)
class MixtureTask:
    """What a mixture is wanted for: a criterion at a prior (k,), of columns, under a cap eta or None, to a gap."""

    criterion: Any
    prior: Array
    columns: Any
    eta: float | None
    gap: float
    deadline: Deadline = UNLIMITED

    def generate(self, heights: Array) -> Mixture:
        """The best mixture, which begins with the columns at `heights`; no column gains more than about `gap`."""
        criterion, columns, k = self.criterion, self.columns, len(self.prior)
        if isinstance(columns, StaircaseColumns) and k > FULL:
            contrast = single_contrast(criterion, k)
            few = contrast is not None and len(np.unique(contrast)) <= EXACT_LIMIT
            if contrast is not None and (columns.line or (self.eta is not None and few)):
                return self.of_contrast(contrast)
        if by_newton(criterion, columns, self.eta):
            with suppress(SolverError, np.linalg.LinAlgError), np.errstate(all="ignore"):
                return self.newton(np.vstack([heights, unknown(self.drawn(criterion.diagonal(k)), heights)]))
        return self.by_cones(heights, 0.9 * self.gap)

    def size(self, prices: Prices) -> float:
        """The criterion at these prices."""
        return abs(float(prices.rows.sum() + (self.eta or 0.0) * prices.pairs.sum()))

    def by_cones(self, heights: Array, least: float) -> Mixture:
        """By the cone program over the columns of each round, until none gains more than `least`, relatively.

        No column leaves: those with weight may tell only some proportions apart, and no matrix of information near
        theirs is then regular (what Clarabel asks for), and where prices are not unique, what left would come back.
        """
        pricing = _Cones(self, least)
        return generate(pricing, pricing, heights, MAX_ROUNDS, deadline=self.deadline).solution

    def of_contrast(self, contrast: Array) -> Mixture:
        """For the variance of one contrast, such as one share, of hundreds of categories.

        Categories of the same weight need not be told apart [KOV14, section 2.2]: they are merged. The first patterns
        cut the categories, sorted by weight, in two. In every round all of the few sets that can be best are priced
        (`estimation.prices`); under a cap, all sets, so that there must be at most 24 different weights.
        """
        weights, place = np.unique(contrast, return_inverse=True)
        place, c, columns, prior = place.reshape(-1), len(weights), self.columns, self.prior
        mass = np.asarray(np.bincount(place, prior), dtype=np.float64)
        below = np.arange(c)[None, :] < np.arange(1, c)[:, None]
        cuts = np.unique(np.vstack([np.zeros((1, c), dtype=bool), below, ~below]), axis=0)
        merged = StaircaseColumns(c, columns.epsilon, columns.line)
        task = replace(self, criterion=COptimal(weights), prior=mass, columns=merged)
        mixture = task.by_cones(cuts * columns.epsilon, 0.05 * self.gap)
        solution = mixture.solution
        kernel = solution.kernel[0] - solution.kernel.sum() * mass
        # Categories of one weight share its multipliers by their shares; rows are raised a little for the rounding.
        share = prior / mass[place]
        rows = solution.rows[place] * share
        rows = rows + 16 * ULP * float(np.abs(rows).sum()) * prior
        pairs = solution.pairs[np.ix_(place, place)] * np.outer(share, share)
        lifted = FisherSolution(solution.theta, rows, pairs, kernel[place][None] * share, np.ones(1))
        return Mixture(mixture.heights[:, place], lifted)

    def newton(self, heights: Array) -> Mixture:
        """Where `by_newton` holds: all columns are priced in every round, and few rounds are enough.

        Prices in the middle of the nearly optimal ones change little from round to round. So the first rounds are
        coarse, none is solved much finer than the gains of the columns outside it, and each begins where the one
        before ended. Columns are scaled to a mean entry of one.
        """
        criterion, prior, columns, eta, k = self.criterion, self.prior, self.columns, self.eta, len(self.prior)
        accuracy, least, start = FIRST_GAP, self.gap / (10 * k if criterion.logarithmic else 10), None
        leaving, gone, before = True, False, math.inf
        for at in self.deadline.rounds(range(MAX_ROUNDS)):
            values = columns.values(heights)
            mean = values.mean(axis=1)
            values = values / mean[:, None]
            solution = survey_program(criterion, prior, values, accuracy, eta, start)
            mixture = Mixture(heights, replace(solution, theta=solution.theta / mean), NEGLIGIBLE_EXACT)
            prices = prices_at(prior, solution, columns)
            size = float(k) if criterion.logarithmic else self.size(prices)
            new = unknown(columns.best(prices, k**2 // 2, 0.1 * least * size), heights)
            at_new = columns.values(new)
            gains = prices.gains(at_new) / size
            if gains.max(initial=0.0) <= least and accuracy <= 1.01 * least:
                break
            # Of a report that is nearly never given, a unit of probability is more than there is.
            outside = float((gains * (at_new @ prior) / at_new.max(axis=1)).max(initial=0.0))
            if at == 0 and criterion.limited:  # now that the variances have weights
                factor = criterion.factor(k)
                weights = factor**2 @ solution.central.prices[: factor.shape[1]]
                more = self.drawn(np.sqrt(np.maximum(weights, DRAWN_WEIGHT * weights.max())))
                new = np.vstack([new, unknown(more, np.vstack([heights, new]))])
            idle = solution.central.slack > SPARE * max(outside, accuracy) * size * values.max(axis=1)
            if outside > 2 * before and gone:  # many prices are as good, and what left is wanted again
                leaving = False
            kept, before = ~(idle & leaving), outside
            gone |= not kept.all()
            heights, start = np.vstack([heights[kept], new]), solution.central.joined(kept, len(new))
            accuracy = max(accuracy / 10, min(FIRST_GAP, outside / OUTSIDE), least)
        return mixture

    def drawn(self, factor: Array | None) -> Array:
        """Columns near the best for weights `factor`^2 of the variances, by default one."""
        prior, columns, k, ratio = self.prior, self.columns, len(self.prior), math.exp(self.columns.epsilon)
        with suppress(SolverError):
            if prior.min() > 0 and isinstance(columns, StaircaseColumns):
                dual = survey_dual(prior, ratio, np.ones(k) if factor is None else factor)
                rng = np.random.default_rng(k)
                sets = dual.drawn(DRAWN * k, rng, self.eta)
                if self.eta is not None:  # sets are small
                    pairs = np.eye(k, dtype=bool)[np.column_stack(np.triu_indices(k, 1))].any(axis=1)
                    sets = np.unique(np.vstack([sets, pairs]), axis=0)
                return np.asarray(sets * columns.epsilon)
        return np.zeros((0, k))


@dataclass(frozen=True, eq=False)
class _Cones(WithoutBounds):
    """Master and oracle of the cone program: columns join that gain more than `least`, relatively."""

    task: MixtureTask
    least: float

    def solve(self, pool: Array, number: int) -> Mixture:
        """The best weights of the columns with logarithms `pool` (n, k)."""
        task, columns = self.task, self.task.columns
        values = columns.values(pool)
        return Mixture(pool, fisher_program(task.criterion, [task.prior], values, columns.epsilon, task.eta))

    def price(self, solved: Mixture) -> Array:
        """The columns that pay, none of them known."""
        task, columns, heights = self.task, self.task.columns, solved.heights
        if len(heights) >= columns.count:
            return heights[:0]
        prices = prices_at(task.prior, solved.solution, columns)
        paying = columns.paying(prices, heights[solved.used(columns)], self.least * task.size(prices))
        return unknown(paying, heights)


def single_contrast(criterion: Criterion, k: int) -> Array | None:
    """(k,) the contrast whose variance is the criterion; None for any other criterion."""
    factor: Any = criterion
    return np.asarray(factor.factor(k)[:, 0]) if criterion.additive and criterion.kernel_rows(k) == 1 else None


def inward(epsilon: float) -> float:
    """The factor for the logarithms of columns with which the channel of floats keeps to epsilon.

    Rows of floats sum to one only up to an ulp or two, by which the laws that they stand for differ from them.
    """
    return toward_privacy(1.0) - 4 * ULP / epsilon


def by_newton(criterion: Criterion, columns: Columns, eta: float | None) -> bool:
    """Whether the criterion is smooth, and categories or listed columns are so many that Newton's method is faster."""
    if isinstance(columns, PolicyColumns):
        k = columns.heights.shape[1]
        if len(columns.heights) <= MAX_START or not math.isfinite(columns.epsilon):
            return False
    elif isinstance(columns, StaircaseColumns) and FULL < columns.k <= EXACT_LIMIT:
        k = columns.k
        if eta is not None and not eta >= WIDE * math.tanh(columns.epsilon / 2):
            return False  # most reports say nothing: posed in other units
    else:
        return False
    if not columns.epsilon >= (NEWTON_EPSILON if eta is None else NEWTON_EPSILON_CAPPED):
        return False  # columns are nearly constant: posed in other units
    return criterion.smooth(k)


def prices_at(prior: Array, solution: FisherSolution, columns: Columns) -> Prices:
    """The prices at the dual values of a solution."""
    centred = solution.kernel - np.outer(solution.kernel.sum(axis=1), prior)
    ratio = math.exp(columns.epsilon) if columns.epsilon < 709 else math.inf
    return Prices(centred.T @ centred, prior, solution.rows, solution.pairs, ratio)


def unknown(new: npt.NDArray[Any], known: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The rows of `new` that are not among the `known` ones."""
    rows = {row.tobytes() for row in known}
    return np.asarray(new[np.array([row.tobytes() not in rows for row in new], dtype=bool)])


def refuses_thresholds(problem: Problem) -> str:
    """Why a problem is no sum or largest of variances at one pilot under LocalDP alone; empty where it is one."""
    utility = problem.utility
    if why := no_estimate(problem):
        return why
    if not isinstance(utility.criterion, LinearCriterion | MVOptimal) or utility.neighbourhood is not None:
        return "it takes a sum of variances, or the largest of some, at one pilot"
    if not problem.symmetric:
        return "it takes LocalDP between all inputs alone"
    try:
        columns, eta = columns_for(utility, problem.constraints)
    except InvalidInput as error:
        return str(error)
    if eta is not None or not 1e-6 <= columns.epsilon <= 20:
        return "it takes LocalDP alone, with an epsilon from 1e-6 to 20"
    return ""
