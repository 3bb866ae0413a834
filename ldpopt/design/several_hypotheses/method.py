"""Several hypotheses: the pattern program of utilities that compare marginals of a few distributions [KOV14, Thm 4].

Patterns are not enumerated: they join while they gain at the dual values of the program. The utility lies above its
tangents, which are linear in the column. The pattern that gains most by a tangent follows from the signs of its
coefficients, or from a minimum cut where total variation is capped. Taking the tangent at that pattern again climbs to
a pattern that no tangent improves. Where no such pattern gains, the search over simplices of masses
(`several_hypotheses.proof`) decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ldpopt.design.candidate import (
    Ask,
    Candidate,
    Limit,
    Method,
    needs_compared_distributions,
    needs_patterns,
    proof_by,
)
from ldpopt.design.generate import generate
from ldpopt.design.kernel.sets import level_of
from ldpopt.design.patterns.method import add_erasure_weight, pattern_matrix
from ldpopt.design.patterns.program import PRICE_PADDING, ExcessCaps, WeightedColumns, optimize_weights, zero_sum
from ldpopt.design.problems.problem import Problem
from ldpopt.design.several_hypotheses.minimum_cut import Members, Network
from ldpopt.design.several_hypotheses.proof import MAX_LAWS, LawShares, MarginalDual, Search
from ldpopt.design.solve import INTERIOR, SIMPLEX
from ldpopt.design.utilities.base import ColumnUtility, columns_of, gradients_of
from ldpopt.design.utilities.laws import MarginalComparisons
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import MARGINALS_GAP, MARGINALS_GAP_CAPPED
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array

# Without a cap on total variation, and with one, where every pair has a row in the program.
MAX_UNCAPPED_INPUTS, MAX_CAPPED_INPUTS = 100, 40
# Directions along which inputs are sorted for the first patterns, in addition to those of every two distributions.
RANDOM_DIRECTIONS = 40
MAX_CLIMB_STEPS = 4  # Tangents that a climb takes.
MAX_PATTERNS_PER_ROUND = 400
MAX_PRICING_ROUNDS = 80
# Number of patterns with tangents under a cap: those with weight in the program, or nearly so.
MAX_TANGENT_SETS = 300


@dataclass(frozen=True)
class MarginalPatterns(
    Method, reference="[KOV14]", needs=(needs_compared_distributions, needs_patterns), preference=170, by_cvxpy=True
):
    """The pattern program for several hypotheses, whose patterns are searched by marginals, not listed [KOV14, Thm 4].

    For utilities that compare the marginals of two to five distributions: `WorstOf`, and `WeightedSum` of divergences.
    The limit is 100 inputs, or 40 under a cap on total variation that can bind.

    >>> from ldpopt.design import LocalDP, WorstOf, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> p0, p1, p2 = [0.2, 0.3, 0.5], [0.3, 0.5, 0.2], [0.5, 0.2, 0.3]
    >>> design = optimal_channel(WorstOf(KL, p0, [p1, p2]), LocalDP(1.0), method=MarginalPatterns())
    >>> round(design.value, 6), design.certified
    (0.027163, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs few distributions and not too many inputs.
        """
        utility = problem.utility
        laws = utility.compared.laws
        if len(laws) > MAX_LAWS:
            return Limit(f"{len(laws)} laws are too many to search through their marginals (at most {MAX_LAWS})")
        if problem.eta == 0:
            return "a total variation of 0 leaves nothing to search for"
        k, max_inputs = utility.size, MAX_UNCAPPED_INPUTS if problem.cap is None else MAX_CAPPED_INPUTS
        return Limit(f"{k} inputs make programs too large (at most {max_inputs})") if k > max_inputs else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the optimal pattern weights."""
        level = level_of(problem.epsilon)
        program = MarginalProgram(problem.utility, problem.utility.compared, level, min(problem.eta, 1.0))
        weighted_sets, sets, weights, rounds = program.solve_by_generation(problem.deadline)
        matrix = pattern_matrix(problem, sets.T, add_erasure_weight(level, sets.T, weights))
        description = f"{len(sets)} staircase patterns in {rounds} rounds, priced by the marginals"
        return Candidate(
            matrix,
            description,
            proof_by(MarginalDual, weighted_sets.rows, weighted_sets.pairs(), weighted_sets.criteria),
        )


class _Gaining(NamedTuple):
    """Sets (n, k), and the gains of their patterns per unit of the mean mass."""

    sets: Members
    gains: Array


class _Weights(NamedTuple):
    """The sets of a pool, (criteria, n) the values of their patterns, and the solution of the program over them."""

    pool: Members
    mu: Array
    weighed: WeightedColumns


@dataclass(frozen=True, eq=False)
class MarginalProgram:
    """The program over the sets generated so far; t = `level`, and `eta` is 1 where no cap can bind."""

    utility: ColumnUtility
    compared: MarginalComparisons
    level: float
    eta: float

    @property
    def capped(self) -> bool:
        """True if the cap can bind [GI, Prop 2]."""
        return self.eta * (2 * self.level + 1) < 1

    def solve_by_generation(self, deadline: Deadline = UNLIMITED) -> tuple[WeightedColumns, Members, Array, int]:
        """Solve the program by column generation.

        Returns the multipliers of the best bound, the sets (n, k), their weights at a vertex, and the number of rounds.
        """
        generation = generate(self, self, self.first(), MAX_PRICING_ROUNDS, gap=self.gap, deadline=deadline)
        weights = self.weighed(generation.pool, SIMPLEX)[1].weights
        return generation.multipliers or generation.solution.weighed, generation.pool, weights, generation.rounds

    @property
    def gap(self) -> float:
        """The relative gap that ends the search."""
        return MARGINALS_GAP_CAPPED if self.capped else MARGINALS_GAP

    def solve(self, pool: Members, number: int) -> _Weights:
        """Solve for the best weights of the sets of the pool."""
        return _Weights(pool, *self.weighed(pool, INTERIOR))

    def value(self, solution: _Weights) -> float:
        """Return the smallest criterion."""
        return float((solution.mu @ solution.weighed.weights).min())

    def price(self, solution: _Weights) -> _Gaining:
        """Find sets that gain by tangents, and their gains."""
        return _Gaining(*self.climbed(solution.weighed, solution.pool, solution.mu))

    def prove(
        self, solution: _Weights, columns: _Gaining, smallest_bound: float
    ) -> tuple[float, WeightedColumns | None, _Gaining]:
        """Prove the bound by simplices, once the gains show that it may be near.

        Also returns the sets that were seen to gain.
        """
        value, largest_gain = self.value(solution), float(columns.gains.max(initial=0.0))
        bound = math.fsum(solution.weighed.rows) + self.eta * float(solution.weighed.prices.sum()) + largest_gain
        if min(bound, smallest_bound) > value * (1 + self.gap) and largest_gain > self.gap * value / 8:
            return math.inf, None, columns
        raised_solution, bound, new_sets = self.checked(solution.weighed, self.gap * value)
        gains = np.concatenate([columns.gains, np.full(len(new_sets), math.inf)])
        return bound, raised_solution, _Gaining(np.concatenate([columns.sets, new_sets]), gains)

    def join(self, pool: Members, columns: _Gaining) -> Members | None:
        """Join the sets that gain the most to the pool, each once."""
        order = np.argsort(-columns.gains, kind="stable")[:MAX_PATTERNS_PER_ROUND]
        larger_pool = _distinct_sets(np.concatenate([pool, columns.sets[order[columns.gains[order] > 0]]]))
        return larger_pool if len(larger_pool) > len(pool) else None

    def first(self) -> Members:
        """List the first sets.

        They are single inputs, their complements, and both ends of inputs sorted by ratios of distributions.
        """
        k = self.utility.size
        rng = np.random.default_rng(k)
        logs = np.log(np.maximum(np.stack(self.compared.laws), 1e-300))
        n = len(logs)
        directions = [np.eye(n)[i] - np.eye(n)[j] for i in range(n) for j in range(i)]
        directions += [
            direction - direction.mean() for direction in rng.normal(size=(RANDOM_DIRECTIONS if n > 2 else 0, n))
        ]
        families = [np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
        for direction in directions:
            order = np.argsort(direction @ logs, kind="stable")
            lower = np.zeros((k - 1, k), dtype=bool)
            for size in range(1, k):
                lower[size - 1, order[:size]] = True
            families += [lower, ~lower]
        return _distinct_sets(np.concatenate(families))

    @property
    def caps(self) -> ExcessCaps:
        """The caps on total variation; no caps where they cannot bind."""
        return ExcessCaps.variation(self.utility.size, self.eta if self.capped else 1.0)

    def weighed(self, sets: Members, solvers: Sequence[str]) -> tuple[Array, WeightedColumns]:
        """Solve the program over the sets.

        Returns (criteria, n) the values of their patterns, and the solution.
        """
        rise, caps = sets.T.astype(np.float64), self.caps
        mu = columns_of(self.utility, self.level + rise)
        if not 0 < float(mu.max(axis=1).min()) < math.inf:
            raise SolverError(f"pattern program: no pattern is worth a finite positive number of {self.utility.name}")
        base = np.full(len(sets), self.level)
        return mu, optimize_weights(base, rise, caps.one_sided_excesses(rise), caps, mu, np.zeros(len(mu)), solvers)

    def prices_of(self, solution: WeightedColumns, sets: Members) -> Array:
        """Compute (n,) the prices of the sets' patterns."""
        prices = self.level * math.fsum(solution.rows) + sets @ solution.rows
        return np.asarray(prices + ((sets @ solution.pairs()) * ~sets).sum(axis=1) if self.capped else prices)

    def climbed(self, solution: WeightedColumns, sets: Members, mu: Array) -> tuple[Members, Array]:
        """Find sets by climbing along tangents, and their gains per unit of the mean mass.

        solved, mu : the solution and the values of the given sets.
        """
        network = Network(solution.pairs(), passes=1)
        current_sets = sets
        if self.capped and len(current_sets) > MAX_TANGENT_SETS:
            # Sets with weight come first, then those that nearly gain.
            order = np.lexsort((self.prices_of(solution, sets) - solution.criteria @ mu, -solution.weights))
            current_sets = current_sets[order[:MAX_TANGENT_SETS]]
        mean = np.mean(self.compared.laws, axis=0)
        visited_sets: list[Members] = []
        for _ in range(MAX_CLIMB_STEPS):
            columns = self.level + current_sets.T.astype(np.float64)
            tangents = np.tensordot(solution.criteria, gradients_of(self.utility, columns), axes=1)
            profits = tangents - solution.rows
            current_sets = _distinct_sets(network.route(profits)[1] if self.capped else profits > 0)
            visited_sets.append(current_sets)
        candidates = _distinct_sets(np.concatenate(visited_sets))
        candidates = candidates[candidates.any(axis=1) & ~candidates.all(axis=1)]
        values = solution.criteria @ columns_of(self.utility, self.level + candidates.T.astype(np.float64))
        return candidates, np.asarray(
            (values - self.prices_of(solution, candidates)) / (self.level + candidates @ mean)
        )

    def checked(self, solution: WeightedColumns, accuracy: float) -> tuple[WeightedColumns, float, Members]:
        """Prove a bound on simplices of masses.

        Returns the multipliers, the bound, and the sets that were seen to gain.
        """
        marginals = LawShares.from_comparisons(self.compared, FLOAT.of(solution.criteria), FLOAT.of(self.level))
        rows, prices, eta = solution.rows, solution.prices, FLOAT.of(self.eta if self.capped else 0.0)
        if prices.any():
            # All multipliers are a little larger, so that the cost of a raise does not depend on eta.
            factor = 1 + accuracy / 4 / (self.eta * float(prices.sum()))
            rows, prices = rows * factor, prices * factor
            if not math.fsum(rows) >= 0 or math.fsum(rows) < PRICE_PADDING * float(np.abs(rows).max()):
                rows = zero_sum(rows)
        solution = replace(solution, rows=rows, prices=prices)
        search_result = Search(marginals, rows, Network(solution.pairs()), eta).run(accuracy / 8)
        bound = (
            math.fsum(rows)
            + self.eta * float(prices.sum())
            + float(search_result.cost_of_raising(marginals, rows, eta).upper)
        )
        return solution, bound, search_result.columns


def _distinct_sets(sets: Members) -> Members:
    """Return each set once, the smallest first."""
    distinct = np.unique(sets, axis=0)
    return np.asarray(distinct[np.argsort(distinct.sum(axis=1), kind="stable")])
