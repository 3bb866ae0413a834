"""The staircase-pattern linear program of any column utility, under epsilon-LDP and a cap on total variation or none.

It has the form that `certificates.patterns` checks: columns are divided by e^epsilon - 1, so that they are
S_A = t + 1_A with t = 1/(e^epsilon - 1) and weights phi_A:

    max  min_j sum_A phi_A mu_j(S_A)   s.t.  sum_A phi_A S_A = 1,  sum_{A with x, without x'} phi_A <= eta

The rows say that all inputs lie in patterns of the same total weight N, and that t sum phi + N <= 1; what is missing to
one is erasure. The solver's unit of weight is what the binary mechanism, with erasure down to the cap, puts on a
pattern, and its unit of utility is that of the best pattern. So every number that the solver sees is near one, at any
epsilon and eta. Where eta is far below tanh(epsilon/2), the caps keep t sum phi + N below 1 by themselves: that row
cannot bind, and is left out.

Where there are many patterns, patterns that gain at the dual values join in rounds; all 2^k are priced in milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.columns.sets import Masks, members
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT
from ldpopt.errors import SolverError, invalid

LIMIT = 16
"""The most inputs: 2^16 patterns are priced in milliseconds."""

ALL = 1100
"""Up to this many patterns, all are in the program from the start."""

JOIN = 400
"""The most patterns that join in one round."""

ROUNDS = 40
"""The most rounds of pricing at central dual values."""

LAST = 12
"""The most rounds at dual values of a vertex. If patterns still gain then, the bound is a little worse."""

ASKED = 1e-8
"""Of every criterion at least this share of its best pattern's worth is asked; a mixture spends about that on it."""

PAID = 1e-9
"""Gains below this, in units of the best pattern, are within the interior-point solver's accuracy."""

SHARP = 1e-11
"""The same for vertex solutions."""

ERASED = 1e-12
"""An erasure of smaller probability is rounding."""

TINY = 1e-306
"""t where exp(-epsilon) underflows."""

PADDING = 2.0**-46
"""What every pattern pays in addition, in units of the best one, so that rounding leaves none that pays below zero."""


@dataclass(frozen=True, eq=False)
class PatternSolution:
    """Weights `theta` of the patterns with bit masks `masks`, erasure (mask 0) first, and dual values of the program.

    theta : of the columns that are 1 on the pattern and e^-epsilon elsewhere. weights : (criteria,), which sum to one.
    rows : (k,) and pairs : (k, k), for the utility less its tangent at the constant column.
    """

    masks: Masks
    theta: Array
    rows: Array
    pairs: Array
    weights: Array


def pattern_program(
    utility: ColumnUtility, epsilon: float, eta: float = 1.0, deadline: Deadline = UNLIMITED
) -> PatternSolution:
    """Solve the program for LocalDP(epsilon) and TotalVariation(eta).

    Raises `InvalidInput` above `LIMIT` inputs and `SolverError` when no solver is accurate.
    """
    k = utility.size
    if k > LIMIT:
        raise invalid("pattern LP", f"at most {LIMIT} inputs, all of whose patterns are priced", k)
    level = max(math.exp(-epsilon) / -math.expm1(-epsilon), TINY)
    inside = members(np.arange(2**k - 1, dtype=np.int64), k).astype(np.float64)  # the full set is that of a constant
    # Subtract the tangent at the constant column, which is worth the same on all channels: erasure is then worth 0.
    tangents = gradients_of(utility, np.ones((k, 1)))[:, 0]
    constant = tangents.sum(axis=1)
    mu, top = _worth(utility, np.full(len(inside), level), inside.T)
    mu, top = (worth - (level * constant[:, None] + tangents @ inside.T) for worth in (mu, top))
    top = top + 8 * PADDING * (level * np.abs(constant[:, None]) + np.abs(tangents) @ inside.T)  # what this rounds
    scale = float(mu.max(axis=1).min())
    if not math.isfinite(scale):
        raise SolverError(f"pattern LP: a pattern of {utility.name} is worth no finite number at this epsilon")
    if scale <= 0 or eta == 0:
        # Nothing can be kept: one criterion is zero on every pattern, or all rows are equal.
        least = int(mu.max(axis=1).argmin())
        paid = level * k + inside.sum(axis=1)
        hidden = float((top[least] / paid)[: 1 if eta == 0 else None].max())  # what rounding may leave of zero
        rows, pairs = np.full(k, 1.01 * max(hidden, 0.0)), np.full((k, k), 2 * max(scale, 0.0)) * ~np.eye(k, dtype=bool)
        erased = np.full(1, (level + 1) / level)
        return PatternSolution(np.zeros(1, dtype=np.int64), erased, rows, pairs, np.eye(len(mu))[least])
    scale = 2.0 ** math.ceil(math.log2(scale))  # so that rows which sum to zero still do so in units of the utility
    program = PatternPool(inside, mu / scale, top / scale, constant / scale, level, min(eta, 1.0))
    chosen, found, best = program.generate(deadline)
    theta = program.weights(found.tau, chosen) * (level + 1)
    return PatternSolution(chosen.astype(np.int64), theta, best.rows * scale, best.pairs * scale, best.weights)


def _worth(utility: ColumnUtility, base: Array, rise: Array) -> tuple[Array, Array]:
    """(criteria, n) values of the columns base + rise, zero where the sign is not sure, and their upper bounds."""
    found = utility.enclosed_columns(FLOAT.of(base), FLOAT.of(rise))
    top = np.asarray(found.upper)
    unsure = (np.asarray(found.lower) <= 0) & (top >= 0)
    return np.where(unsure, 0.0, found.midpoint), top


@dataclass(frozen=True, eq=False)
class PoolSolution:
    """Weights `tau` of the patterns in the solver's unit, and multipliers in units of the best pattern.

    rows : (k,). pairs : (k, k). weights : (criteria,), which sum to one.
    """

    tau: Array
    rows: Array
    pairs: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class PatternPool:
    """The pool: all patterns that the program may use, and their worth.

    inside : (n, k). mu : (criteria, n) their worth, and `top` an upper bound on it. constant : (criteria,) the worth
    that every channel keeps. level : t. eta : the cap.
    """

    inside: Array
    mu: Array
    top: Array
    constant: Array
    level: float
    eta: float

    @property
    def capped(self) -> bool:
        """Whether the cap on total variation can bind [GI, Prop 2]."""
        return self.eta * (2 * self.level + 1) < 1

    @property
    def unit(self) -> float:
        """The solver's unit of weight."""
        return min(self.eta, 1 / (2 * self.level + 1))

    @property
    def full(self) -> bool:
        """Whether the patterns' total mass can reach one, although each separates a pair, and every pair is capped."""
        k = self.inside.shape[1]
        return bool(self.unit * (self.level + 1) * k * (k - 1) >= 1)

    def generate(self, deadline: Deadline = UNLIMITED) -> tuple[npt.NDArray[np.intp], PoolSolution, PoolSolution]:
        """The patterns of the last program, its solution at a vertex, and the multipliers with the best bound."""
        n, k = self.inside.shape
        chosen = np.arange(n)
        if n > ALL:
            best = np.argsort(-self.mu, axis=1)[:, :JOIN].ravel()
            chosen = np.unique(np.concatenate([[0], 2 ** np.arange(k), n - 2 ** np.arange(k), best]))
        proved: PoolSolution | None = None
        least = math.inf
        # Central dual values first: those of a vertex are extreme, and would let thousands of patterns join.
        for solvers, short, most in ((INTERIOR, PAID, ROUNDS if n > ALL else 0), (SIMPLEX, SHARP, LAST)):
            for _ in deadline.rounds(range(most)):
                found, there = self.solve(chosen, solvers), chosen
                gain = self.gains(found)
                made = self.raised(found, gain + found.weights @ (self.top - self.mu))
                if proved is None or self.bound(made) < least:
                    proved, least = made, self.bound(made)
                new = np.setdiff1d(np.flatnonzero(gain > short), chosen)
                if len(new) == 0:
                    break
                chosen = np.concatenate([chosen, new[np.argsort(-gain[new])[:JOIN]]])
        assert proved is not None
        return there, found, proved

    def solve(self, chosen: npt.NDArray[np.intp], solvers: Sequence[str]) -> PoolSolution:
        """Solve the program over the `chosen` patterns, of which the first is erasure."""
        import cvxpy as cp

        k = self.inside.shape[1]
        proper = chosen[1:]
        member = self.inside[proper].T
        tau, level, least = cp.Variable(len(proper), nonneg=True), cp.Variable(), cp.Variable()
        balance = member @ tau == level
        # Each criterion is in units of its own best pattern. Of one that is worth far more than the weakest, a little
        # more is asked than is needed, because a solver takes coefficients below 1e-9 for zero.
        most = np.maximum(np.abs(self.mu).max(axis=1), np.abs(self.constant) / self.unit)
        asked = np.maximum(1 / most, ASKED)
        worst = (self.mu[:, proper] / most[:, None]) @ tau + self.constant / self.unit / most >= least * asked
        # Divided by t + 1, so that the coefficients are e^-epsilon and 1 - e^-epsilon, both at most one.
        share = self.level / (self.level + 1)
        mass = share * cp.sum(tau) + (1 - share) * level <= 1 / (self.unit * (self.level + 1))
        # All inputs lie in patterns of the same total weight, so that one order of each pair is enough.
        above, below = np.triu_indices(k, 1)
        cap = (member[above] * (1 - member[below])) @ tau <= self.eta / self.unit
        constraints = [balance, worst, *([mass] if self.full else []), *([cap] if self.capped else [])]
        solve(cp.Problem(cp.Maximize(least), constraints), "pattern LP", solvers)
        weights = np.maximum(np.asarray(worst.dual_value), 0.0).reshape(-1) / most
        pairs = np.zeros((k, k))
        if self.capped:
            pairs[above, below] = np.maximum(cap.dual_value, 0.0)
        whole = weights.sum() or 1.0
        total = max(0.0, float(mass.dual_value)) / (self.level + 1) / whole if self.full else 0.0
        # Half of each cap's multiplier goes to either order of its pair, which leaves small rows where t is large.
        pairs = pairs / whole / 2
        rows = np.asarray(balance.dual_value) / whole + pairs.sum(axis=1) - pairs.sum(axis=0)
        # The rows must sum to the multiplier of the mass: the dual constraint of the level.
        rows = balanced(rows)
        if total > SHARP * self.unit:
            rows = rows + total / k
        return PoolSolution(np.append(0.0, np.maximum(tau.value, 0.0)), rows, pairs + pairs.T, weights / whole)

    def gains(self, found: PoolSolution) -> Array:
        """(n,) the worth of every pattern above its price."""
        cut = ((self.inside @ found.pairs) * (1 - self.inside)).sum(axis=1)
        paid = self.level * math.fsum(found.rows) + self.inside @ found.rows + cut
        return np.asarray(found.weights @ self.mu - paid)

    def raised(self, found: PoolSolution, gain: Array) -> PoolSolution:
        """The multipliers, raised until no pattern gains, and every one pays a little more than it must."""
        k = self.inside.shape[1]
        # Erasure pays t k times a raise of all rows, every other pattern more; the sum of rows rounds.
        erased = max(float(gain[0]), 0.0) / (self.level * k)
        erased += (0.01 * erased + PADDING / 16 * float(np.abs(found.rows).max())) * (erased > 0)
        rows, pairs = found.rows + erased, found.pairs
        missing = max(float((gain - erased * (self.level * k + self.inside.sum(axis=1)))[1:].max()), 0.0) + PADDING
        # Every other pattern pays t k + 1 times a raise of all rows, and k - 1 times one of all pairs.
        each = missing / (self.level * k + 1)
        if self.capped and self.eta * missing < each:
            pairs = pairs + missing / (k - 1) * ~np.eye(k, dtype=bool)
            if not math.fsum(rows) >= 0:
                rows = balanced(rows)
        else:
            rows = rows + each
        return PoolSolution(found.tau, rows, pairs, found.weights)

    def bound(self, found: PoolSolution) -> float:
        """The bound that the multipliers prove, in floats."""
        return math.fsum(found.rows) + self.eta * float(found.pairs.sum()) + float(found.weights @ self.constant)

    def weights(self, tau: Array, chosen: npt.NDArray[np.intp]) -> Array:
        """The weights phi of the patterns; erasure gets what is missing to one."""
        phi = tau * self.unit
        mass = self.level * phi.sum() + float((phi @ self.inside[chosen]).max())
        if mass > 1 - ERASED:
            phi, mass = phi / mass, 1.0
        phi[0] = (1 - mass) / self.level
        return phi


def balanced(rows: Array) -> Array:
    """Numbers close to the given ones that sum to zero exactly, because every column pays t times their sum."""
    rows = rows - rows.mean()
    size = float(np.abs(rows).max())
    if size == 0:
        return rows
    unit = 2.0 ** (math.ceil(math.log2(size)) - 48)
    whole = np.round(rows / unit)
    whole[np.argmax(np.abs(whole))] -= whole.sum()
    return np.asarray(whole * unit)
