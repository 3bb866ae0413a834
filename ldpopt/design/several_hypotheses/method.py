"""Several hypotheses: the pattern program of utilities that compare the marginals of a few laws [KOV14, Thm 4].

Patterns are not listed: they join while they gain at the dual values of the program. The utility lies above its
tangents, which are linear in the column. The pattern that gains most by a tangent follows from the signs of its
coefficients, or from a minimum cut where total variation is capped. Taking the tangent at that pattern again climbs to
a pattern that no tangent improves. Where no pattern found in this way gains, the search over simplices of masses
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

# The most inputs: without a cap on total variation, and with one, where every pair has a row in the program.
MAX_INPUTS, MAX_CAPPED = 100, 40
# The number of directions along which inputs are sorted for the first patterns, besides those of every two laws.
DIRECTIONS = 40
STEPS = 4  # The number of tangents that a climb takes
JOIN = 400  # The most patterns that join in one round
ROUNDS = 80  # The most rounds
# The most patterns at which tangents are taken under a cap: those with weight in the program, or nearly so.
TANGENTS = 300


@dataclass(frozen=True)
class MarginalPatterns(
    Method, reference="[KOV14]", needs=(needs_compared_distributions, needs_patterns), preference=170, by_cvxpy=True
):
    """The pattern program for several hypotheses, whose patterns are searched by marginals, not listed [KOV14, Thm 4].

    For utilities that compare the marginals of two to five laws: `WorstOf`, and `WeightedSum` of divergences, of up to
    100 inputs, or 40 under a cap on total variation that can bind.

    >>> from ldpopt.design import LocalDP, WorstOf, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> p0, p1, p2 = [0.2, 0.3, 0.5], [0.3, 0.5, 0.2], [0.5, 0.2, 0.3]
    >>> design = optimal_channel(WorstOf(KL, p0, [p1, p2]), LocalDP(1.0), method=MarginalPatterns())
    >>> round(design.value, 6), design.certified
    (0.027163, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs few laws and not too many inputs."""
        utility = problem.utility
        laws = utility.compared.laws
        if len(laws) > MAX_LAWS:
            return Limit(f"{len(laws)} laws are too many to search through their marginals (at most {MAX_LAWS})")
        if problem.eta == 0:
            return "a total variation of 0 leaves nothing to search for"
        k, most = utility.size, MAX_INPUTS if problem.cap is None else MAX_CAPPED
        return Limit(f"{k} inputs make programs too large (at most {most})") if k > most else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal pattern weights."""
        level = level_of(problem.epsilon)
        program = MarginalProgram(problem.utility, problem.utility.compared, level, min(problem.eta, 1.0))
        solved, inside, weights, rounds = program.solved(problem.deadline)
        matrix = pattern_matrix(problem, inside.T, add_erasure_weight(level, inside.T, weights))
        how = f"{len(inside)} staircase patterns in {rounds} rounds, priced by the marginals"
        return Candidate(matrix, how, proof_by(MarginalDual, solved.rows, solved.pairs(), solved.criteria))


class _Gaining(NamedTuple):
    """Sets (n, k), and what their patterns gain per unit of the mean mass."""

    sets: Members
    gains: Array


class _Weights(NamedTuple):
    """The sets of a pool, (criteria, n) the values of their patterns, and the solution of the program over them."""

    pool: Members
    mu: Array
    weighed: WeightedColumns


@dataclass(frozen=True, eq=False)
class MarginalProgram:
    """The program over the sets found so far; t = `level`, and `eta` 1 where no cap can bind."""

    utility: ColumnUtility
    compared: MarginalComparisons
    level: float
    eta: float

    @property
    def capped(self) -> bool:
        """Whether the cap can bind [GI, Prop 2]."""
        return self.eta * (2 * self.level + 1) < 1

    def solved(self, deadline: Deadline = UNLIMITED) -> tuple[WeightedColumns, Members, Array, int]:
        """The multipliers of the best bound, sets (n, k), their weights at a vertex, and the number of rounds."""
        found = generate(self, self, self.first(), ROUNDS, gap=self.gap, deadline=deadline)
        weights = self.weighed(found.pool, SIMPLEX)[1].weights
        return found.multipliers or found.solution.weighed, found.pool, weights, found.rounds

    @property
    def gap(self) -> float:
        """The relative gap at which the search ends."""
        return MARGINALS_GAP_CAPPED if self.capped else MARGINALS_GAP

    def solve(self, pool: Members, number: int) -> _Weights:
        """The best weights of the sets of the pool."""
        return _Weights(pool, *self.weighed(pool, INTERIOR))

    def value(self, solved: _Weights) -> float:
        """The least criterion."""
        return float((solved.mu @ solved.weighed.weights).min())

    def price(self, solved: _Weights) -> _Gaining:
        """Sets that tangents lead to, and what they gain."""
        return _Gaining(*self.climbed(solved.weighed, solved.pool, solved.mu))

    def prove(
        self, solved: _Weights, columns: _Gaining, least: float
    ) -> tuple[float, WeightedColumns | None, _Gaining]:
        """The bound by simplices, once the gains say that it may be near, with the sets that are seen to gain."""
        value, top = self.value(solved), float(columns.gains.max(initial=0.0))
        bound = math.fsum(solved.weighed.rows) + self.eta * float(solved.weighed.prices.sum()) + top
        if min(bound, least) > value * (1 + self.gap) and top > self.gap * value / 8:
            return math.inf, None, columns
        raised, bound, more = self.checked(solved.weighed, self.gap * value)
        gains = np.concatenate([columns.gains, np.full(len(more), math.inf)])
        return bound, raised, _Gaining(np.concatenate([columns.sets, more]), gains)

    def join(self, pool: Members, columns: _Gaining) -> Members | None:
        """The pool with the sets that gain the most, each once."""
        order = np.argsort(-columns.gains, kind="stable")[:JOIN]
        joined = _unique(np.concatenate([pool, columns.sets[order[columns.gains[order] > 0]]]))
        return joined if len(joined) > len(pool) else None

    def first(self) -> Members:
        """The first sets: single inputs, their complements, and both ends of inputs sorted by ratios of laws."""
        k = self.utility.size
        rng = np.random.default_rng(k)
        logs = np.log(np.maximum(np.stack(self.compared.laws), 1e-300))
        n = len(logs)
        mixes = [np.eye(n)[i] - np.eye(n)[j] for i in range(n) for j in range(i)]
        mixes += [mix - mix.mean() for mix in rng.normal(size=(DIRECTIONS if n > 2 else 0, n))]
        parts = [np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
        for mix in mixes:
            order = np.argsort(mix @ logs, kind="stable")
            lower = np.zeros((k - 1, k), dtype=bool)
            for size in range(1, k):
                lower[size - 1, order[:size]] = True
            parts += [lower, ~lower]
        return _unique(np.concatenate(parts))

    @property
    def caps(self) -> ExcessCaps:
        """The caps on total variation, none where they cannot bind."""
        return ExcessCaps.variation(self.utility.size, self.eta if self.capped else 1.0)

    def weighed(self, inside: Members, solvers: Sequence[str]) -> tuple[Array, WeightedColumns]:
        """(criteria, n) the values of the sets' patterns, and the solution of the program over them."""
        rise, caps = inside.T.astype(np.float64), self.caps
        mu = columns_of(self.utility, self.level + rise)
        if not 0 < float(mu.max(axis=1).min()) < math.inf:
            raise SolverError(f"pattern program: no pattern is worth a finite positive number of {self.utility.name}")
        base = np.full(len(inside), self.level)
        return mu, optimize_weights(base, rise, caps.one_sided_excesses(rise), caps, mu, np.zeros(len(mu)), solvers)

    def paid(self, solved: WeightedColumns, inside: Members) -> Array:
        """(n,) the prices of the sets' patterns."""
        paid = self.level * math.fsum(solved.rows) + inside @ solved.rows
        return np.asarray(paid + ((inside @ solved.pairs()) * ~inside).sum(axis=1) if self.capped else paid)

    def climbed(self, solved: WeightedColumns, inside: Members, mu: Array) -> tuple[Members, Array]:
        """Sets that tangents lead to, and their gains per unit of the mean mass; solved, mu : of the sets `inside`."""
        network = Network(solved.pairs(), passes=1)
        taken = inside
        if self.capped and len(taken) > TANGENTS:
            # Sets with weight come first, then those that nearly gain.
            order = np.lexsort((self.paid(solved, inside) - solved.criteria @ mu, -solved.weights))
            taken = taken[order[:TANGENTS]]
        mean = np.mean(self.compared.laws, axis=0)
        seen: list[Members] = []
        for _ in range(STEPS):
            columns = self.level + taken.T.astype(np.float64)
            tangents = np.tensordot(solved.criteria, gradients_of(self.utility, columns), axes=1)
            profits = tangents - solved.rows
            taken = _unique(network.route(profits)[1] if self.capped else profits > 0)
            seen.append(taken)
        new = _unique(np.concatenate(seen))
        new = new[new.any(axis=1) & ~new.all(axis=1)]
        gained = solved.criteria @ columns_of(self.utility, self.level + new.T.astype(np.float64))
        return new, np.asarray((gained - self.paid(solved, new)) / (self.level + new @ mean))

    def checked(self, solved: WeightedColumns, accuracy: float) -> tuple[WeightedColumns, float, Members]:
        """The multipliers, the bound that they prove on simplices of masses, and the sets seen to gain."""
        marginals = LawShares.of(self.compared, FLOAT.of(solved.criteria), FLOAT.of(self.level))
        rows, prices, eta = solved.rows, solved.prices, FLOAT.of(self.eta if self.capped else 0.0)
        if prices.any():
            # Everything pays a little more, so that the cost of a raise does not depend on eta.
            factor = 1 + accuracy / 4 / (self.eta * float(prices.sum()))
            rows, prices = rows * factor, prices * factor
            if not math.fsum(rows) >= 0 or math.fsum(rows) < PRICE_PADDING * float(np.abs(rows).max()):
                rows = zero_sum(rows)
        solved = replace(solved, rows=rows, prices=prices)
        searched = Search(marginals, rows, Network(solved.pairs()), eta).run(accuracy / 8)
        proved = math.fsum(rows) + self.eta * float(prices.sum()) + float(searched.raised(marginals, rows, eta).upper)
        return solved, proved, searched.columns


def _unique(sets: Members) -> Members:
    """Each set once, the smallest first."""
    every = np.unique(sets, axis=0)
    return np.asarray(every[np.argsort(every.sum(axis=1), kind="stable")])
