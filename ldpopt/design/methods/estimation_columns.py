"""Column generation for an estimate: columns that pay at the dual values of the program over a few join it."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.balanced import balanced_sets
from ldpopt.design.columns.base import Columns
from ldpopt.design.columns.policy import FEW, PolicyColumns
from ldpopt.design.columns.prices import EXACT_LIMIT, Prices
from ldpopt.design.columns.staircase import FULL, StaircaseColumns
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.methods.contrast import one_contrast, single_contrast
from ldpopt.design.programs.fisher import FisherSolution, fisher_program
from ldpopt.design.programs.support import fewer_columns
from ldpopt.design.programs.survey_dual import survey_dual
from ldpopt.design.programs.survey_program import survey_program
from ldpopt.design.solve import solve
from ldpopt.design.utilities.criteria import AOptimal, Criterion, DOptimal
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.distribution import Array
from ldpopt.errors import SolverError
from ldpopt.rounding import ULP, toward_privacy

ROUNDS = 40
"""Rounds of pricing; what is left unpriced shows as a gap, not as an error of the bound."""


NEGLIGIBLE = 1e-6
"""Weights below this share of the largest are taken for the solver's zero."""


DRAWN = 50
"""Sets that are drawn to begin with, for each category."""


THINNED = 16
"""Up to so many categories the reports under a cap on total variation are brought down by a linear program."""


MANY = 3000
"""So many columns stay, whatever they pay, under a cap on total variation."""


WIDE = 0.1
"""The least share of the widest total variation at which a cap is left to Newton's method."""


LAST = 1e-10
"""The accuracy of the last weights of listed columns."""


KEEP = 0.004
"""Columns stay while their price is within this share of the criterion."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Columns with logarithms `heights` (n, k), their weights and the dual values."""

    heights: Array
    solution: FisherSolution

    def used(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """(n,) whether a column is of account: by what it tells, beside others; by itself, if it tells nothing."""
        values = columns.values(self.heights)
        told = self.solution.theta * np.ptp(values, axis=1)
        silent = (told == 0) & (self.solution.theta * values.max(axis=1) > NEGLIGIBLE)
        return np.asarray((told > NEGLIGIBLE * told.max()) | silent)

    def fewer(self, utility: FisherInformation, columns: Columns, eta: float | None) -> Mixture:
        """The same information from at most k(k+1)/2 + 1 columns: a vertex of the weights that give it;
        under a cap on total variation a few more, which keep within it.

        Under a neighbourhood the information at other distributions counts too, and all columns stay.
        """
        k = self.heights.shape[1]
        used = self.used(columns)
        if utility.neighbourhood is not None or used.sum() <= k * (k + 1) // 2 + 1:
            return self
        if eta is not None and k > THINNED:
            return self
        values = columns.values(self.heights[used])
        mass = values @ utility.prior
        theta = np.zeros(len(used))
        if eta is None:
            theta[used] = fewer_columns(values / mass[:, None], self.solution.theta[used] * mass) / mass
            return Mixture(self.heights, replace(self.solution, theta=theta))
        import cvxpy as cp

        u = values / mass[:, None] - 1
        x, other = np.triu_indices(k)
        moments = np.hstack([np.ones((len(u), 1)), u, u[:, x] * u[:, other]])
        now = self.solution.theta[used] * mass
        units = np.where(np.ptp(values, axis=1) == 0, 1.0, now[np.ptp(values, axis=1) > 0].sum())
        moments, now = moments * units[:, None], now / units
        moments = moments / np.abs(moments).max(axis=0)
        w = cp.Variable(len(u), nonneg=True)
        cost = np.random.default_rng(k).random(len(u))
        above = np.maximum(u[:, x] - u[:, other], 0.0) * (units / eta)[:, None]
        kept = [moments.T @ w == moments.T @ now, above.T @ w <= np.maximum(above.T @ now, 1.0)]
        try:
            solve(cp.Problem(cp.Minimize(cost @ w), kept), "fewer reports", ("HIGHS",))
        except SolverError:
            return self
        theta[used] = np.maximum(np.asarray(w.value), 0.0) * units / mass
        return Mixture(self.heights, replace(self.solution, theta=theta))

    def matrix(self, columns: Columns, scale: float = 1.0) -> Array:
        """The channel's matrix, logarithms times `scale`. Columns of no account are left out, the rest balanced again.

        What a solver leaves on them would make a report that says something of a proportion that the others do not,
        at an error too large to compute.
        """
        theta, used = self.solution.theta, self.used(columns)
        values, theta = columns.values(self.heights[used] * scale), theta[used]
        silent = np.ptp(values, axis=1) == 0
        made = values.T * theta
        # The least relative change of weights that makes the rows' sums equal; what says nothing makes them one.
        said = made[:, ~silent]
        missing = (said.sum(axis=1).mean() if silent.any() else 1.0) - said.sum(axis=1)
        made[:, ~silent] = said * np.maximum(1 + np.linalg.lstsq(said, missing, rcond=1e-12)[0], 0.0)
        if silent.any():
            rest = max(0.0, 1 - made[:, ~silent].sum(axis=1).mean())
            made[:, silent] = rest / silent.sum()
        return stochastic(made)


def generate(criterion: Any, prior: Array, columns: Columns, eta: float | None, heights: Array, gap: float) -> Mixture:
    """The best mixture of columns, from those at `heights` on, until none pays more than about `gap`, relative."""
    if isinstance(columns, StaircaseColumns) and len(prior) > FULL:
        contrast = single_contrast(criterion, len(prior))
        if contrast is not None and (columns.line or (eta is not None and len(np.unique(contrast)) <= EXACT_LIMIT)):
            return Mixture(*one_contrast(contrast, prior, columns.epsilon, eta, gap))
    if by_newton(criterion, columns, eta):
        with suppress(SolverError, np.linalg.LinAlgError), np.errstate(all="ignore"):
            if isinstance(columns, PolicyColumns):
                return _newton_of_list(prior, criterion, columns, eta, heights, gap)
            return _newton(prior, criterion, columns, eta, heights, gap)
    for _ in range(ROUNDS):
        solution = fisher_program(criterion, [prior], columns.values(heights), columns.epsilon, eta)
        found = Mixture(heights, solution)
        if columns.complete(heights):
            return found
        prices = prices_at(prior, solution, columns)
        size = abs(float(prices.rows.sum())) + (eta or 0.0) * float(prices.pairs.sum())
        used = heights[found.used(columns)]
        new = unknown(columns.paying(prices, used, 0.9 * gap * size), heights)
        if len(new) == 0:
            return found
        # Columns far from paying leave, so that the program stays small.
        gains = prices.gains(columns.values(heights))
        heights = np.vstack([heights[gains > -KEEP * size], new])
    return found


def inward(epsilon: float) -> float:
    """What logarithms of columns are multiplied by, so that the channel of floats keeps to epsilon.

    Rows of floats sum to one but for an ulp or two, by which the rows of the law that they stand for differ.
    """
    return toward_privacy(1.0) - 4 * ULP / epsilon


def by_newton(criterion: Criterion, columns: Columns, eta: float | None) -> bool:
    """Whether it is a smooth criterion, of so many categories or listed columns that Newton's method pays."""
    if isinstance(columns, PolicyColumns):
        k = columns.heights.shape[1]
        if len(columns.heights) <= FEW or not math.isfinite(columns.epsilon):
            return False
    elif isinstance(columns, StaircaseColumns) and FULL < columns.k <= EXACT_LIMIT:
        k = columns.k
        if eta is not None and not eta >= WIDE * math.tanh(columns.epsilon / 2):
            return False  # most reports say nothing: posed in other units
    else:
        return False
    if isinstance(criterion, AOptimal):
        return criterion.diagonal(k) is not None
    return isinstance(criterion, DOptimal)


def _newton(prior: Array, criterion: Any, columns: Any, eta: float | None, heights: Array, gap: float) -> Mixture:
    """`generate` where `by_newton` holds: all patterns are priced in every round, and few rounds are enough."""
    sets, ratio = [heights > 0], math.exp(columns.epsilon)
    factor: Any = criterion.diagonal(columns.k) if isinstance(criterion, AOptimal) else np.ones(columns.k)
    with suppress(SolverError):
        if prior.min() > 0:
            dual = survey_dual(prior, ratio, factor)
            rng = np.random.default_rng(columns.k)
            sets.append(balanced_sets(prior, dual.squares, dual.target, ratio, DRAWN * columns.k, rng))
    heights = np.unique(np.vstack(sets), axis=0) * columns.epsilon
    accuracy, least = 1e-4, gap / (10 * columns.k if criterion.logarithmic else 10)
    for _ in range(ROUNDS):
        solution = survey_program(criterion, prior, columns.values(heights), accuracy, eta)
        found = Mixture(heights, solution)
        prices = prices_at(prior, solution, columns)
        size = abs(float(prices.rows.sum()) + (eta or 0.0) * float(prices.pairs.sum()))
        size = 1.0 if criterion.logarithmic else size
        many = columns.k**2 // 2 if eta is None else columns.k**2
        new = unknown(prices.best(many, 1e-9 * size)[1] * columns.epsilon, heights)
        most = prices.gains(columns.values(new)).max(initial=0.0)
        if most <= 0.5 * gap * size and accuracy <= least:
            break
        kept = found.used(columns)
        if eta is not None:  # many multipliers are as good: columns that leave come back in turns
            kept |= (np.ptp(heights, axis=1) == 0) | (len(heights) < MANY)
        heights = np.vstack([heights[kept], new])
        accuracy = max(accuracy / 10, least)
    return found


def _newton_of_list(
    prior: Array, criterion: Any, columns: PolicyColumns, eta: float | None, heights: Array, gap: float
) -> Mixture:
    """The same for a list of columns of any entries; in the end those of account once more, and nearly exactly."""
    accuracy, least = 1e-4, gap / (10 * heights.shape[1] if criterion.logarithmic else 10)
    for _ in range(ROUNDS):
        found = _of_listed(prior, criterion, columns, heights, accuracy, eta)
        prices = prices_at(prior, found.solution, columns)
        size = abs(float(prices.rows.sum()) + (eta or 0.0) * float(prices.pairs.sum()))
        size = 1.0 if criterion.logarithmic else size
        new = unknown(columns.paying(prices, heights, 1e-9 * size), heights)
        most = prices.gains(columns.values(new)).max(initial=0.0)
        if most <= 0.5 * gap * size and accuracy <= least:
            break
        kept = found.used(columns) | (np.ptp(heights, axis=1) == 0)
        if eta is not None:
            kept |= len(heights) < MANY
        heights = np.vstack([heights[kept], new])
        accuracy = max(accuracy / 10, least)
    used = found.used(columns) | (np.ptp(found.heights, axis=1) == 0)
    with suppress(SolverError):
        last = _of_listed(prior, criterion, columns, found.heights[used], LAST, eta)
        # The prices of all columns, and the weights of few.
        dual, theta = found.solution, np.zeros(len(used))
        theta[used] = last.solution.theta
        return Mixture(found.heights, replace(dual, theta=theta))
    return found


def _of_listed(
    prior: Array, criterion: Any, columns: PolicyColumns, heights: Array, accuracy: float, eta: float | None
) -> Mixture:
    """The best weights, found for columns of one mean entry."""
    values = columns.values(heights)
    mean = values.mean(axis=1)
    solution = survey_program(criterion, prior, values / mean[:, None], accuracy, eta)
    return Mixture(heights, replace(solution, theta=solution.theta / mean))


def prices_at(prior: Array, solution: FisherSolution, columns: Columns) -> Prices:
    """The prices at the dual values of a solution."""
    centred = solution.kernel - np.outer(solution.kernel.sum(axis=1), prior)
    ratio = math.exp(columns.epsilon) if columns.epsilon < 709 else math.inf
    return Prices(centred.T @ centred, prior, solution.rows, solution.pairs, ratio)


def unknown(new: Array, heights: Array) -> Array:
    """Those of `new` that are not among `heights`."""
    known = {row.tobytes() for row in heights}
    return np.array([row for row in new if row.tobytes() not in known]).reshape(-1, heights.shape[1])
