"""The staircase-pattern program of utilities that compare the marginals of a few laws, without listing all patterns.

Patterns join while they gain at the dual values of the program. The utility lies above its tangents, which are linear
in the column. The pattern that gains most by a tangent follows from the signs of its coefficients, or from a minimum
cut where total variation is capped. Taking the tangent at that pattern again climbs to a pattern that no tangent
improves. Where no pattern found in this way gains, the search over simplices of masses (`certificates.marginals`)
decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.certificates.marginals import Search
from ldpopt.design.certificates.minimum_cut import Members, Network
from ldpopt.design.certificates.simplices import Marginals
from ldpopt.design.programs.patterns import PADDING, PatternPool, PoolSolution, balanced
from ldpopt.design.solve import INTERIOR, SIMPLEX
from ldpopt.design.utilities.base import ColumnUtility, columns_of, gradients_of
from ldpopt.design.utilities.laws import Compared
from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT
from ldpopt.errors import SolverError

DIRECTIONS = 40
"""The number of directions along which inputs are sorted for the first patterns, besides those of every two laws."""

STEPS = 4
"""The number of tangents that a climb takes."""

JOIN = 400
"""The most patterns that join in one round."""

ROUNDS = 80
"""The most rounds."""

CLOSE = 1e-7
"""The relative gap at which to stop."""

CAPPED_CLOSE = 1e-6
"""The same under a cap on total variation, where every tangent takes a minimum cut."""

TANGENTS = 300
"""The most patterns at which tangents are taken under a cap: those with weight in the program, or nearly so."""


@dataclass(frozen=True, eq=False)
class MarginalSolution:
    """Sets `inside` (n, k), the first one empty (erasure), their weights phi, and the multipliers of the best bound."""

    inside: Members
    phi: Array
    rows: Array
    pairs: Array
    weights: Array
    rounds: int


@dataclass(eq=False)
class MarginalProgram:
    """The program over the sets found so far; t = `level`, and `eta` 1 where no cap can bind."""

    utility: ColumnUtility
    compared: Compared
    level: float
    eta: float

    @property
    def capped(self) -> bool:
        """Whether the cap can bind [GI, Prop 2]."""
        return self.eta * (2 * self.level + 1) < 1

    def solve(self, deadline: Deadline = UNLIMITED) -> MarginalSolution:
        """Rounds of programs until the bound and the value meet, and then a vertex of the last one."""
        inside = self.first()
        least, proved, closed = math.inf, None, CAPPED_CLOSE if self.capped else CLOSE
        rounds = 0
        for _ in deadline.rounds(range(ROUNDS)):
            rounds += 1
            scale, pool = self.pool(inside)
            try:
                found = pool.solve(np.arange(len(inside)), INTERIOR)
            except SolverError:
                if proved is None:
                    raise
                break
            value = float((pool.mu @ pool.weights(found.tau, np.arange(len(inside)))).min())
            new, gain = self.climbed(found, scale, inside, pool)
            top = float(gain.max(initial=0.0))
            bound = pool.bound(found) + top
            if min(bound, least) <= value * (1 + closed) or top <= closed * value / 8:
                made, bound, more = self.checked(found, scale, closed * value)
                if bound < least:
                    least, proved = bound, _scaled(made, scale)
                if least <= value * (1 + closed):
                    break
                new = np.concatenate([new, more])
                gain = np.concatenate([gain, np.full(len(more), math.inf)])
            order = np.argsort(-gain, kind="stable")[:JOIN]
            joined = _unique(np.concatenate([inside, new[order[gain[order] > 0]]]))
            if len(joined) == len(inside):
                break
            inside = joined
        if proved is None:
            proved = _scaled(found, scale)
        _, pool = self.pool(inside)
        tau = pool.solve(np.arange(len(inside)), SIMPLEX).tau
        phi = pool.weights(tau, np.arange(len(inside)))
        return MarginalSolution(inside, phi, proved.rows, proved.pairs, proved.weights, rounds)

    def first(self) -> Members:
        """The first sets: none, single inputs, their complements, and both ends of inputs sorted by ratios of laws."""
        k = self.utility.size
        rng = np.random.default_rng(k)
        logs = np.log(np.maximum(np.stack(self.compared.laws), 1e-300))
        n = len(logs)
        mixes = [np.eye(n)[i] - np.eye(n)[j] for i in range(n) for j in range(i)]
        mixes += [mix - mix.mean() for mix in rng.normal(size=(DIRECTIONS if n > 2 else 0, n))]
        parts = [np.zeros((1, k), dtype=bool), np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
        for mix in mixes:
            order = np.argsort(mix @ logs, kind="stable")
            lower = np.zeros((k - 1, k), dtype=bool)
            for size in range(1, k):
                lower[size - 1, order[:size]] = True
            parts += [lower, ~lower]
        return _unique(np.concatenate(parts))

    def pool(self, inside: Members) -> tuple[float, PatternPool]:
        """The program over sets, the first of them empty, and the unit of utility."""
        mu = columns_of(self.utility, self.level + inside.T.astype(np.float64))
        mu[:, 0] = 0.0
        scale = float(mu.max(axis=1).min())
        if not 0 < scale < math.inf:
            raise SolverError(f"pattern program: no pattern is worth a finite positive number of {self.utility.name}")
        none = np.zeros(len(mu))
        return scale, PatternPool(inside.astype(np.float64), mu / scale, mu / scale, none, self.level, self.eta)

    def climbed(self, found: PoolSolution, scale: float, inside: Members, pool: PatternPool) -> tuple[Members, Array]:
        """Sets that tangents lead to, and their gains per unit of the mean mass."""
        network = Network(found.pairs, passes=1)
        taken = inside[1:]
        if self.capped and len(taken) > TANGENTS:
            # Sets with weight come first, then those that nearly gain.
            order = np.lexsort((-pool.gains(found)[1:], -found.tau[1:]))
            taken = taken[order[:TANGENTS]]
        mean = np.mean(self.compared.laws, axis=0)
        seen: list[Members] = []
        for _ in range(STEPS):
            columns = self.level + taken.T.astype(np.float64)
            tangents = np.tensordot(found.weights, gradients_of(self.utility, columns), axes=1) / scale
            profits = tangents - found.rows
            taken = _unique(network.route(profits)[1] if self.capped else profits > 0)
            seen.append(taken)
        new = _unique(np.concatenate(seen))
        new = new[new.any(axis=1) & ~new.all(axis=1)]
        worth = found.weights @ columns_of(self.utility, self.level + new.T.astype(np.float64)) / scale
        paid = self.level * math.fsum(found.rows) + new @ found.rows
        if self.capped:
            paid = paid + ((new @ found.pairs) * ~new).sum(axis=1)
        return new, np.asarray((worth - paid) / (self.level + new @ mean))

    def checked(self, found: PoolSolution, scale: float, accuracy: float) -> tuple[PoolSolution, float, Members]:
        """The multipliers, the bound that they prove on simplices of masses, and the sets seen to gain."""
        marginals = Marginals.of(self.compared, FLOAT.of(found.weights / scale), FLOAT.of(self.level))
        rows, pairs, eta = found.rows, found.pairs, FLOAT.of(self.eta if self.capped else 0.0)
        if self.capped and pairs.any():
            # Everything pays a little more, so that the cost of a raise does not depend on eta.
            factor = 1 + accuracy / 4 / (self.eta * float(pairs.sum()))
            rows, pairs = rows * factor, pairs * factor
            if not math.fsum(rows) >= 0 or math.fsum(rows) < PADDING * float(np.abs(rows).max()):
                rows = balanced(rows)
        made = Search(marginals, rows, Network(pairs), eta).run(accuracy / 8)
        proved = math.fsum(rows) + self.eta * float(pairs.sum()) + float(made.raised(marginals, rows, eta).upper)
        return PoolSolution(found.tau, rows, pairs, found.weights), proved, made.columns


def _scaled(found: PoolSolution, scale: float) -> PoolSolution:
    return PoolSolution(found.tau, found.rows * scale, found.pairs * scale, found.weights)


def _unique(sets: Members) -> Members:
    """Each set once, the smallest first."""
    every = np.unique(sets, axis=0)
    return np.asarray(every[np.argsort(every.sum(axis=1), kind="stable")])
