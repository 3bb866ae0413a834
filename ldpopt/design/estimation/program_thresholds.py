"""Columns for few contrasts, which are thresholds of scores: search, prices, and the program of their weights [KW].

Columns that gain at (K, lambda) are thresholds of a score (`estimation.thresholds`). The search climbs from directions
of scores. The first rounds improve weights by multiplicative steps (`program_multiplicative`); `program_newton` is
exact. Where inputs have equal probabilities the best mixture has columns for every exchange of them, so the search
exchanges them at random.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.design.estimation.branches import MAX_SEARCH_NODES, Branches
from ldpopt.design.estimation.exchanges import Exchanges
from ldpopt.design.estimation.prices import Charges, Prices, distinct_sets
from ldpopt.design.estimation.program import FisherSolution, reduce_weights
from ldpopt.design.estimation.program_dual import best_squares
from ldpopt.design.estimation.program_mixture import new_rows
from ldpopt.design.estimation.program_multiplicative import Improved, balance, improve
from ldpopt.design.estimation.program_newton import Central, SurveySolution, survey_program
from ldpopt.design.estimation.program_paired import PairedDual, paired_dual
from ldpopt.design.estimation.staircase import AnyRelaxation
from ldpopt.design.estimation.thresholds import MAX_SEARCH_BOXES, Members, Thresholds, climb
from ldpopt.design.utilities.criteria import MVOptimal
from ldpopt.design.utilities.criterion import LinearCriterion
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.values.deadline import Deadline
from ldpopt.values.distribution import Array

# Scores of up to so many directions are searched for a proof by directions; of more, up to 64 inputs, by sets first,
# and beyond the second number only so. Where neither search ends, the bound by second moments is left.
BOXED_DIRECTIONS, SEARCHED_DIRECTIONS = 4, 8
FINE_INPUTS = 64  # Up to this many inputs the gap is `CERTIFIED_GAP`; beyond, `COARSE_GAP`.
MAX_COLUMNS_PER_ROUND = 150
MAX_RELABELED, RELABELED_COPIES = 200, 10  # Sets whose inputs of equal probability are exchanged, and how often
MAX_SETS_MOVED = 300  # Sets that are improved by moves of single inputs, in each round
RANDOM_STARTS = 400  # Random directions that start a round's search for columns, besides those of the columns in use
# Random directions, for each input and in all, that start the search for the first columns
RANDOM_SETS_PER_INPUT, MAX_RANDOM_SETS = 30, 1500
# Coarse rounds: the most of them, the steps of each, its least gain, and after how many rounds without it they end
MAX_IMPROVING_ROUNDS, IMPROVING_STEPS, IMPROVING_GAIN, MAX_IDLE_ROUNDS = 40, 12, 2e-3, 2
CONTRAST_STARTS, SOME_STARTS = 1000, 200  # Random thresholds of contrasts at first, without and with a good start
MAX_NEW_COLUMNS = 600  # Of a coarse round
NEW_WEIGHT = 0.4  # Of all new columns of a round together, before the rows sum to one again
LEAST_WEIGHT, LEAST_EXTREME_WEIGHT = 0.01, 1e-3  # Of columns that stay, relative to their mean
# Steps for the last columns; they stay above this weight relative to their mean, and at least so many of k (k + 1).
LAST_STEPS, LEAST_LAST_WEIGHT, LEAST_LAST_FRACTION = 40, 0.2, 0.3
IMPROVED_GAP = 0.03  # The relative gap of the program after the coarse rounds


@dataclass(frozen=True, eq=False)
class ThresholdProgram:
    """The program for a criterion at a pilot (k,), contrasts F (k, d) centered at it, and the ratio e^epsilon.

    deadline : when the solution must be complete.
    """

    criterion: LinearCriterion | MVOptimal
    prior: Array
    factor: Array
    ratio: float
    eta: float | None
    deadline: Deadline

    def first(self, sets: Members, rng: np.random.Generator) -> Members:
        """List `sets`, single cells, and thresholds of random scores.

        The thresholds are at random levels and at the best ones.
        """
        kernel, k = self.whitened(), len(self.prior)
        directions = rng.normal(size=(min(RANDOM_SETS_PER_INPUT * k, MAX_RANDOM_SETS), len(kernel)))
        scores = directions @ (kernel / self.prior)
        level = np.take_along_axis(np.sort(scores, axis=1), rng.integers(0, k - 1, size=(len(scores), 1)), axis=1)
        best, _ = climb(kernel, np.zeros(k), self.prior, self.ratio, directions)
        if self.eta is not None:  # Sets are small.
            pairs = np.eye(k, dtype=bool)[np.column_stack(np.triu_indices(k, 1))].any(axis=1)
            sets = np.vstack([sets, pairs])
        return distinct_sets(np.vstack([sets, np.eye(k, dtype=bool), scores > level, best]))[0]

    @property
    def supports(self) -> Members:
        """List the inputs that each contrast is about, such as those who are asked a question, and the others."""
        is_concerned = np.abs(self.factor.T) > 1e-9 * np.abs(self.factor).max(initial=0.0)
        return np.vstack([is_concerned, ~is_concerned])

    def masses(self, sets: Members) -> Array:
        """Compute (n,) the probabilities of the columns."""
        return np.asarray(np.where(sets, self.ratio, 1.0) @ self.prior)

    def units(self, sets: Members) -> Array:
        """Compute (n, k) the columns, divided by their probabilities."""
        return np.asarray(np.where(sets, self.ratio, 1.0) / self.masses(sets)[:, None])

    def gains(self, solution: FisherSolution, sets: Members) -> Array:
        """Compute (n,) the gains of the columns of `sets`."""
        units = self.units(sets)
        gains = ((units @ solution.kernel.T) ** 2).sum(axis=1) - units @ solution.rows
        if self.eta is not None:
            rises = (self.ratio - 1) / self.masses(sets)
            gains = gains - rises * ((sets @ solution.pairs) * ~sets).sum(axis=1)
        return np.asarray(gains)

    def size(self, solution: FisherSolution) -> float:
        """Compute the criterion that the prices add up to."""
        return float(solution.rows.sum() + (self.eta or 0.0) * solution.pairs.sum())

    def search(self, solution: SurveySolution, known_sets: Members, rng: np.random.Generator) -> Members:
        """Find the new sets that gain the most, best first."""
        sets = self.add_moved_sets(solution, self.climb_near(solution, known_sets, rng))
        return self.best_gaining(solution, new_rows(sets, known_sets), MAX_COLUMNS_PER_ROUND)

    def climb_near(self, solution: FisherSolution, sets: Members, rng: np.random.Generator) -> Members:
        """Find the end sets of climbs from the directions of `sets` and from random ones."""
        directions = self.units(sets) @ solution.kernel.T
        largest_norm = np.linalg.norm(directions, axis=1).max()
        random_directions = rng.normal(size=(RANDOM_STARTS, len(solution.kernel)))
        random_directions *= largest_norm / np.linalg.norm(random_directions, axis=1, keepdims=True)
        end_sets = self.climbed(solution, np.vstack([directions, random_directions]))
        best = np.argsort(-self.gains(solution, end_sets), kind="stable")[:MAX_RELABELED]
        return distinct_sets(np.vstack([end_sets, *self.relabel(end_sets[best], rng)]))[0]

    @cached_property
    def exchanges(self) -> Exchanges:
        """The exchanges of inputs that leave the problem as it is."""
        return Exchanges(self.prior, self.factor)

    def relabel(self, sets: Members, rng: np.random.Generator) -> list[Members]:
        """Copy sets with inputs exchanged at random that have equal roles, so that their gains are equal.

        The best mixture then has all of these columns, of which a search finds a few. Where no contrasts may be
        exchanged, inputs of equal probability are.
        """
        if self.exchanges.classes:
            return [sets[:, self.exchanges.draw(rng)] for _ in range(RELABELED_COPIES)]
        groups = np.unique(np.round(np.log(self.prior), 9), return_inverse=True)[1]
        if groups.max() == len(groups) - 1:
            return []
        by_group, copies = np.argsort(groups, kind="stable"), []
        for _ in range(RELABELED_COPIES):
            order = np.argsort(groups + rng.random(sets.shape), axis=1)
            copy = np.empty_like(sets)
            np.put_along_axis(copy, order, sets[:, by_group], axis=1)
            copies.append(copy)
        return copies

    def add_moved_sets(self, solution: FisherSolution, sets: Members) -> Members:
        """Return `sets` and, of the best of them, the end sets of moves of single inputs."""
        order = np.argsort(-self.gains(solution, sets), kind="stable")[:MAX_SETS_MOVED]
        prices = Prices(solution.kernel.T @ solution.kernel, self.prior, solution.rows, solution.pairs, self.ratio)
        return distinct_sets(np.vstack([sets, prices.climb(sets[order], MAX_SETS_MOVED, 0.0)]))[0]

    def best_gaining(self, solution: FisherSolution, sets: Members, count: int) -> Members:
        """Select up to `count` of `sets` that gain the most, best first."""
        gains = self.gains(solution, sets)
        order = np.argsort(-gains, kind="stable")[:count]
        return sets[order[gains[order] > 0]]

    def near_best(self, solution: SurveySolution, sets: Members, count: int) -> npt.NDArray[np.bool_]:
        """Select the `count` columns of `sets` that lose the least, and those of at most one input or all but one.

        Without the latter the prices of single inputs may have no bound.
        """
        if len(sets) <= count:
            return np.ones(len(sets), dtype=bool)
        losses = solution.central.slack / self.units(sets).max(axis=1)
        sizes = sets.sum(axis=1)
        is_extreme = (sizes <= 1) | (sizes >= len(self.prior) - 1)
        return np.asarray(is_extreme | (losses <= np.partition(losses, count)[count]))

    def largest_gain(self, solution: SurveySolution, *sets: Members) -> float:
        """Compute the largest gain of a column, or 0, relative to the criterion."""
        gains = (float(self.gains(solution, group).max(initial=0.0)) for group in sets)
        return max(0.0, *gains) / self.size(solution)

    def climbed(self, solution: FisherSolution, directions: Array) -> Members:
        """Find the end sets of climbs from directions (n, d)."""
        rows = solution.rows
        if self.eta is not None:
            # Prices of pairs are linear where each input is in as many sets as at the best size of all sets.
            fraction = 1 / (1 + self.ratio)
            changes = (1 - fraction) * solution.pairs.sum(axis=1) - fraction * solution.pairs.sum(axis=0)
            rows = rows + changes - changes.sum() * self.prior
        sets, _ = climb(solution.kernel, rows, self.prior, self.ratio, directions)
        return distinct_sets(sets)[0]

    def fewer(self, solution: SurveySolution, sets: Members) -> SurveySolution:
        """Reduce the solution to at most k (d + 1) weights.

        The influences K u remain without bias. For the largest of r variances there are r more weights, and all
        variances remain the same. A solution of fewer columns than numbers that remain is left as it is.
        """
        units = self.units(sets) - 1
        # The products of the influences with all entries, each once, in orthogonal coordinates that begin with them.
        d = int(np.linalg.matrix_rank(self.factor))
        coordinates = units @ np.linalg.svd(solution.kernel)[2].T
        first, second = np.triu_indices(len(self.prior))
        products = coordinates[:, first[first < d]] * coordinates[:, second[first < d]]
        mass = self.masses(sets)
        squares = (units @ solution.kernel.T) ** 2 if self.criterion.limited else units[:, :0]
        excess = units[:, :0]
        if self.eta is not None:
            first_inputs, second_inputs = np.triu_indices(len(self.prior), 1)
            excess = np.maximum(units[:, first_inputs] - units[:, second_inputs], 0.0)
        moments = np.hstack([np.ones((len(sets), 1)), units, products, squares, excess])
        if len(sets) <= moments.shape[1]:  # Hardly any weight can go, and the search for it is slow.
            return solution
        return replace(solution, theta=reduce_weights(moments, solution.theta * mass) / mass)

    def raise_prices(self, solution: SurveySolution, sets: Members, margin: float) -> SurveySolution:
        """Raise the prices above the value of the columns of `sets`, with an even kernel.

        margin : the relative margin of the prices.
        """
        solution = self.evened(solution)
        level = (self.largest_gain(solution, sets) + margin) * self.size(solution)
        return replace(solution, rows=solution.rows + level * self.prior)

    def check_prices(self, solution: SurveySolution, is_long_allowed: bool) -> tuple[AnyRelaxation | None, Members]:
        """Prove that no column gains, or find columns that do.

        If the search is too long, it returns no proof and no column.

        - `is_long_allowed` : True if a search may take about a minute.
        """
        charges = Charges.from_kernel(FLOAT.of(solution.kernel), self.prior, solution.rows, solution.pairs)
        epsilon, (d, k) = FLOAT.of(math.log(self.ratio)), solution.kernel.shape
        if d > BOXED_DIRECTIONS and k <= FINE_INPUTS:
            gram = solution.kernel.T @ solution.kernel
            try:
                branches = Branches(best_squares(gram, solution.rows, self.prior, self.ratio))
            except SolverError:
                branches = Branches.convex(gram, solution.rows, self.prior, self.prior)
            long_search = replace(branches, nodes=MAX_SEARCH_NODES)
            for search_bound in (branches, long_search)[: 1 + (is_long_allowed and d > SEARCHED_DIRECTIONS)]:
                search = search_bound.walked(charges, epsilon, MAX_COLUMNS_PER_ROUND)
                if search is not None and search.complete:
                    return search_bound, search.sets
        for boxes in (0, MAX_SEARCH_BOXES)[: 1 + is_long_allowed] if d <= SEARCHED_DIRECTIONS else ():
            thresholds = Thresholds(0.0, boxes)
            if (directions := thresholds.unpaid(charges, epsilon)) is not None:
                return thresholds, self.climbed(solution, directions)
        return None, np.zeros((0, k), dtype=bool)

    def kernel_products(self, solution: SurveySolution) -> Array:
        """Compute (d,) K_j . F_j.

        The criterion is their sum, or the root of the sum of squares for the largest, squared.
        """
        return np.asarray((solution.kernel * self.factor.T).sum(axis=1))

    def value(self, solution: SurveySolution) -> float:
        """Compute the criterion."""
        products = self.kernel_products(solution)
        square = products @ products if isinstance(self.criterion, MVOptimal) else products.sum() ** 2
        return float(square / self.size(solution))

    def paired(self, accuracy: float, solution: SurveySolution | None = None) -> PairedDual | None:
        """Find the best bound without pricing, for more than a few contrasts.

        solution : one whose value is enough. Its weights of the contrasts are used for the largest of their variances.
        """
        scale = np.ones(self.factor.shape[1])
        if isinstance(self.criterion, MVOptimal):
            products = scale if solution is None else np.abs(self.kernel_products(solution))
            scale = products / np.linalg.norm(products)
        if (
            self.eta is not None
            or not BOXED_DIRECTIONS < np.linalg.matrix_rank(self.factor * scale) < len(self.prior) - 1
        ):
            return None
        enough_bound = math.inf if solution is None else (1 - accuracy) * self.value(solution)
        shape = getattr(self.criterion, "shape", ())
        return paired_dual(self.prior, self.ratio, self.factor * scale, accuracy, shape, enough_bound, self.deadline)

    def draw_near_bound(self, paired_dual: PairedDual, count: int, rng: np.random.Generator) -> Members:
        """Find up to `count` sets whose value nearly reaches their price in a bound."""
        directions = rng.normal(size=(MAX_RANDOM_SETS, len(paired_dual.kernel))) * math.sqrt(paired_dual.bound)
        sets, gains = climb(paired_dual.kernel, paired_dual.rows, self.prior, self.ratio, directions)
        sets, index = distinct_sets(sets)
        return sets[np.argsort(-gains[index], kind="stable")[:count]]

    def whitened(self) -> Array:
        """Build K (d, k) whose scores K_x / p_x are uncorrelated, rotated toward F.

        The scores have mean 0 and unit variances.
        """
        root = np.sqrt(self.prior)
        left, _, right = np.linalg.svd(root[:, None] * self.factor, full_matrices=False)
        return np.asarray((root[:, None] * (left @ right)).T)

    def evened(self, solution: SurveySolution) -> SurveySolution:
        """Average the kernel with its mirror image in every yes/no question with a symmetric pilot.

        The mean of a kernel and of its mirror image is as good. Its proof needs half of the directions.
        """
        shape = getattr(self.criterion, "shape", ())
        if math.prod(shape) != len(self.prior) or len(solution.kernel) != sum(shape) - len(shape):
            return solution
        kernel, rows, row_number = solution.kernel.reshape(-1, *shape), solution.rows.reshape(shape), 0
        for j, answers in enumerate(shape):
            pilot = self.prior.reshape(shape)
            if answers == 2 and np.array_equal(pilot, np.flip(pilot, j)):
                sign = np.where(np.arange(len(kernel)) == row_number, -1.0, 1.0).reshape(-1, *[1] * len(shape))
                kernel, rows = (kernel + sign * np.flip(kernel, j + 1)) / 2, (rows + np.flip(rows, j)) / 2
            row_number += answers - 1
        return replace(solution, kernel=kernel.reshape(len(solution.kernel), -1), rows=rows.ravel())

    def solve(self, sets: Members, accuracy: float, start: Central | None) -> SurveySolution:
        """Solve for the best weights of the columns of `sets`.

        Also returns the centered kernel and prices that leave none of them a gain.
        """
        eta = None if self.eta is None else self.eta / self.spread
        solution = survey_program(self.criterion, self.prior, self.spread_columns(sets), accuracy, eta, start)
        kernel, rows, pairs = self.multipliers(solution.kernel, solution.rows, solution.pairs)
        return replace(solution, theta=solution.theta / self.masses(sets), kernel=kernel, rows=rows, pairs=pairs)

    @property
    def spread(self) -> float:
        """The factor that spreads out columns of nearly equal entries."""
        return min(self.ratio - 1, 1.0)

    def spread_columns(self, sets: Members) -> Array:
        """Compute (n, k) the columns divided by their probabilities, and spread out."""
        return np.asarray(1 + (self.units(sets) - 1) / self.spread)

    def multipliers(self, kernel: Array, rows: Array, pairs: Array) -> tuple[Array, Array, Array]:
        """Compute the centered kernel and the prices of columns from those of columns that are spread out."""
        kernel, uniform = kernel - kernel.sum(axis=1)[:, None] * self.prior, rows.sum() * self.prior
        return kernel / self.spread, uniform + (rows - uniform) / self.spread, pairs / self.spread

    def improve(self, sets: Members, gap: float, rng: np.random.Generator, draws: int) -> tuple[Members, Central]:
        """Find columns near the best ones from `sets`, and a point near the central path, by multiplicative steps.

        Each round adds columns that gain.

        - `gap` : the relative gap of the whole search, which other steps end.
        - `draws` : so many random thresholds of the contrasts themselves are among the first sets.
        """
        k = len(self.prior)
        scores = rng.normal(size=(draws, self.factor.shape[1])) @ self.factor.T
        levels = np.take_along_axis(np.sort(scores, axis=1), rng.integers(0, k - 1, size=(len(scores), 1)), axis=1)
        extreme_sets = np.vstack([np.zeros((1, k), dtype=bool), np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)])
        sets = np.vstack([sets, scores > levels, self.supports])
        sets = np.vstack([extreme_sets, new_rows(distinct_sets(sets)[0], extreme_sets)])
        columns = self.spread_columns(sets)
        weights, improved = balance(columns, np.full(len(sets), 1 / len(sets))), None
        least_value, least_gain, idle_rounds = math.inf, max(IMPROVING_GAIN, gap / 2), 0
        for _ in self.deadline.rounds(range(MAX_IMPROVING_ROUNDS)):
            try:
                improved = self.improve_weights(columns, weights, IMPROVING_STEPS, improved)
            except SolverError:
                if improved is None:
                    raise
                break
            weights = improved.weights
            idle_rounds = idle_rounds + 1 if improved.value > least_value * (1 - least_gain) else 0
            least_value = min(improved.value, least_value)
            if idle_rounds == MAX_IDLE_ROUNDS:
                break
            kernel, rows, pairs = self.multipliers(improved.kernel, improved.rows, improved.pairs)
            solution = FisherSolution(weights, rows, pairs, kernel, np.ones(1))
            is_kept = weights > LEAST_WEIGHT * weights.mean()
            new_sets = self.climb_near(solution, sets[is_kept], rng)
            new_sets = self.add_moved_sets(solution, new_sets) if self.eta is not None else new_sets
            new_sets = self.best_gaining(solution, new_rows(new_sets, sets), MAX_NEW_COLUMNS)
            is_kept[: len(extreme_sets)] = True
            sets = np.vstack([sets[is_kept], new_sets])
            columns = self.spread_columns(sets)
            weights = np.maximum(weights[is_kept], LEAST_EXTREME_WEIGHT * weights.mean())
            weights = np.append(weights, np.full(len(new_sets), NEW_WEIGHT / max(1, len(new_sets))))
            weights = balance(columns, weights)
        with suppress(SolverError):
            improved = self.improve_weights(columns, weights, LAST_STEPS, improved)
            weights = improved.weights
        assert improved is not None
        count = int(np.count_nonzero(weights > LEAST_LAST_WEIGHT * weights.mean()))
        count = min(max(count, round(LEAST_LAST_FRACTION * k * (k + 1))), k * (k + 1), len(weights))
        is_kept = weights >= np.sort(weights)[-count]
        is_kept[: len(extreme_sets)] = True
        return sets[is_kept], self.central(columns[is_kept], weights[is_kept], improved)

    def improve_weights(self, columns: Array, weights: Array, steps: int, start: Improved | None) -> Improved:
        """Compute better weights (n,) of `columns` (n, k), which are spread out."""
        eta = None if self.eta is None else self.eta / self.spread
        return improve(columns, self.prior, self.factor, self.criterion.limited, eta, weights, steps, start)

    def central(self, columns: Array, weights: Array, improved: Improved) -> Central:
        """Build a point near the central path from weights (n,) of `columns` (n, k), which are spread out."""
        eta = 0.0 if self.eta is None else self.eta / self.spread
        x, other = np.triu_indices(len(self.prior), 1) if eta else np.zeros((2, 0), dtype=np.intp)
        excess, pairs = np.maximum(columns[:, x] - columns[:, other], 0.0), improved.pairs[x, other]
        losses = columns @ improved.rows + excess @ pairs - ((columns @ improved.kernel.T) ** 2).sum(axis=1)
        product = IMPROVED_GAP * improved.value / (len(columns) + len(x))
        weights = np.maximum(weights, product / (np.maximum(losses, 0.0) + improved.value))
        weights = balance(columns, weights)
        limit_slack = np.maximum(eta - excess.T @ weights, IMPROVED_GAP * eta)
        # Prices of F that is not centered, as in the program.
        shift = self.prior @ (self.criterion.factor(len(self.prior)) * np.sqrt(improved.limits))
        rows = improved.rows + 2 * improved.kernel.T @ shift + shift @ shift * self.prior
        prices, level = np.maximum(pairs, product / limit_slack), 0.0
        if self.criterion.limited:
            level = float(improved.variances.max()) + IMPROVED_GAP * improved.value
            variance_slack = level - improved.variances
            limit_slack = np.append(variance_slack, limit_slack)
            prices = np.append(np.maximum(improved.limits, product / variance_slack), prices)
        return Central(weights, product / weights, rows, limit_slack, prices, level)
