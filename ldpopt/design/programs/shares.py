"""The pattern program for mutual information: a few inputs are taken whole, the rest as if it could be divided.

Over patterns (I, rho), a set I of the inputs taken whole and a share rho of the rest, with weights phi >= 0 of the
columns S = t + 1_A, t = 1/(e^epsilon - 1):

    max  sum phi h(P(I) + R rho)   s.t.  sum phi z_x = N for every input and for the rest,  t sum phi + N <= 1,
         sum phi z_x (1 - z_x') <= eta,  and on average over pairs of the rest  sum phi rho (1 - rho) <= eta spread,

where z is 1 on I, 0 on other inputs taken whole, and rho on the rest. Every channel gives a solution, by averaging over
the rest in proportion to the prior, so that the optimum is an upper bound; `certificates.information` checks its dual
values. For a rest of many small inputs the bound is nearly reached, because sets of them have nearly any probability.
Patterns that gain at the dual values join, for each I with the best rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.columns.sets import members
from ldpopt.design.columns.shares import best_share, information_of
from ldpopt.design.programs.patterns import balanced
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.distribution import Array, Index
from ldpopt.errors import SolverError

JOIN = 300
"""The most patterns that join in one round."""

ROUNDS = 40
"""The most rounds of pricing."""

PAID = 1e-11
"""Gains below this, in units of the best pattern, are within the solver's accuracy."""

CLOSE = 1e-10
"""The relative gap at which pricing ends."""

STILL = 5
"""The number of rounds without progress after which pricing ends."""

PADDING = 2.0**-46
"""What patterns pay in addition, relative to the optimum, to cover rounding."""

ROUNDED = 2.0**-48
"""The same, relative to the largest row multiplier."""

BEYOND = 1e9
"""A limit this far above what the solver's rows reach is left out."""


@dataclass(frozen=True, eq=False)
class WeighedSets:
    """Weights phi of the given columns, the multipliers of the program over them, and its value."""

    phi: Array
    rows: Array
    pairs: Array
    value: float


@dataclass(frozen=True, eq=False)
class CutCaps:
    """The pairs for which a cap on total variation is posed: sum phi z_x (1 - z_x') <= limit, one order of each."""

    first: Index
    second: Index
    limits: Array

    @classmethod
    def of(cls, size: int, eta: float, spread: float | None) -> CutCaps:
        """All pairs of `size` inputs, and the last input, the rest, with itself where it has a `spread`."""
        first, second = np.triu_indices(size, 1)
        limits = np.full(len(first), eta)
        if spread is not None:
            first, second, limits = (
                np.append(first, size - 1),
                np.append(second, size - 1),
                np.append(limits, eta * spread),
            )
        return cls(first, second, limits)


def weigh(
    inside: Array, worth: Array, level: float, unit: float, caps: CutCaps | None, solvers: Sequence[str]
) -> WeighedSets:
    """The best weights of columns with shares `inside` (inputs, n), besides erasure, and their multipliers.

    worth : (n,). level : t. unit : the solver's unit of weight.
    """
    import cvxpy as cp

    k, n = inside.shape
    scale = float(np.abs(worth).max()) or 1.0
    tau, mass = cp.Variable(n, nonneg=True), cp.Variable()
    balance = inside @ tau == mass
    share = level / (level + 1)
    most = 1 / (unit * (level + 1))
    constraints: list[Any] = [balance]
    whole = share * cp.sum(tau) + (1 - share) * mass <= most
    if most < BEYOND:
        constraints.append(whole)
    if caps is not None:
        cap = (inside[caps.first] * (1 - inside[caps.second])) @ tau <= caps.limits / unit
        constraints.append(cap)
    solve(cp.Problem(cp.Maximize((worth / scale) @ tau), constraints), "information", solvers)
    pairs = np.zeros((k, k))
    if caps is not None:
        np.add.at(pairs, (caps.first, caps.second), np.maximum(cap.dual_value, 0.0) / 2)
    # Half of each cap's multiplier goes to either order of its pair: inputs lie in patterns of one total weight.
    rows = np.asarray(balance.dual_value) + pairs.sum(axis=1) - pairs.sum(axis=0)
    rows = balanced(rows)
    if most < BEYOND:
        rows = rows + max(0.0, float(whole.dual_value)) / (level + 1) / k
    both = pairs + pairs.T  # for the last with itself this is twice the half, as there is one order only
    phi = np.maximum(np.asarray(tau.value), 0.0) * unit
    return WeighedSets(phi, rows * scale, both * scale, float(worth @ phi))


@dataclass(frozen=True, eq=False)
class Shares:
    """The solution: patterns of `sets` (m, n) with `shares` (m,) of the rest, their weights, multipliers and bound."""

    sets: Array
    shares: Array
    phi: Array
    rows: Array
    pairs: Array
    bound: float


@dataclass(frozen=True, eq=False)
class SharesProgram:
    """own : probabilities of the inputs taken whole. rest : that of the others together. spread : 1 - sum (P_x/rest)^2.

    level : t. cap : eta where it can bind, else None.
    """

    own: Array
    rest: float
    spread: float
    level: float
    cap: float | None

    @property
    def unit(self) -> float:
        """The solver's unit of weight: what the binary mechanism, or the cap, allows a pattern."""
        return min(math.inf if self.cap is None else self.cap, 1 / (2 * self.level + 1))

    def worth(self, sets: Array, shares: Array) -> Array:
        """The information h of patterns of `sets` (m, n) with `shares` (m,) of the rest."""
        away = (1 - sets) @ self.own + self.rest * (1 - shares)
        return information_of(sets @ self.own + self.rest * shares, away, self.level)

    @property
    def every(self) -> Array:
        """(2^n, n) all sets of the inputs taken whole."""
        n = len(self.own)
        return members(np.arange(2**n, dtype=np.int64), n).astype(np.float64)

    def price(self, sets: Array, found: WeighedSets | Shares) -> tuple[Array, Array]:
        """For each set the best share of the rest, and the pattern's gain above its price there, (m,) each."""
        rows, pairs, n = found.rows, found.pairs, len(self.own)
        proper = pairs[:n, :n] * ~np.eye(n, dtype=bool)
        cut = ((sets @ proper) * (1 - sets)).sum(axis=1)
        none = self.level * math.fsum(rows) + sets @ rows[:n] + cut + sets @ pairs[:n, n]
        slope = rows[n] + (1 - sets) @ pairs[n, :n] - sets @ pairs[:n, n]
        within, own = float(pairs[n, n]), sets @ self.own

        def gain(rho: Array) -> Array:
            return np.asarray(self.worth(sets, rho) - none - slope * rho - within * rho * (1 - rho))

        rho = best_share(own, self.rest, self.level, within, slope)
        best = gain(rho)
        for end in (0.0, 1.0):
            there = gain(np.full(len(sets), end))
            rho, best = np.where(there > best, end, rho), np.maximum(best, there)
        return rho, best

    def raised(self, sets: Array, found: WeighedSets) -> WeighedSets:
        """The multipliers, with rows raised in proportion to the prior until no pattern gains."""
        rows = found.rows
        weights = np.append(self.own, self.rest)
        for _ in range(6):
            made = WeighedSets(found.phi, rows, found.pairs, found.value)
            rho, gain = self.price(sets, made)
            short = float((gain / (self.level + sets @ self.own + self.rest * rho)).max())
            if not short > 0:
                break
            rows = rows + 1.01 * short * weights
        # Rows may be far larger than the bound, so that the rounding of their sums counts, too.
        more = PADDING * found.value + ROUNDED * float(np.abs(rows).max())
        return WeighedSets(found.phi, rows + more * weights, found.pairs, found.value)

    def bound(self, found: WeighedSets) -> float:
        """The bound that the multipliers prove, in floats."""
        n = len(self.own)
        proper = found.pairs * ~np.eye(n + 1, dtype=bool)
        return math.fsum(found.rows) + (self.cap or 0.0) * (
            float(proper.sum()) + self.spread * float(found.pairs[n, n])
        )

    def solve(self, deadline: Deadline = UNLIMITED) -> Shares:
        """Column generation, which begins with the patterns that are worth most for their mass."""
        n = len(self.own)
        every = self.every
        divided = self.rest > 0
        caps = None if self.cap is None else CutCaps.of(n + divided, self.cap, self.spread if divided else None)
        shares = np.linspace(0.0, 1.0, 9) if self.rest > 0 else np.zeros(1)
        worth = np.stack([self.worth(every, np.full(len(every), rho)) for rho in shares])
        mean = self.level + every @ self.own + self.rest * shares[:, None]
        best = np.argsort(-(worth / mean).max(axis=0))[:JOIN]
        chosen = np.unique(np.concatenate([best, [0, 2**n - 1], 2 ** np.arange(n), 2**n - 1 - 2 ** np.arange(n)]))
        index, share = np.repeat(chosen, len(shares)), np.tile(shares, len(chosen))
        proved: WeighedSets | None = None
        last: tuple[Array, Array, WeighedSets] | None = None
        least, reached, still = math.inf, 0.0, 0
        for number in deadline.rounds(range(ROUNDS)):
            sets = every[index]
            inside = np.vstack([sets.T, share]) if divided else sets.T
            try:
                found = weigh(
                    inside, self.worth(sets, share), self.level, self.unit, caps, INTERIOR if number < 25 else SIMPLEX
                )
            except SolverError:
                if last is None:
                    raise
                break
            if not divided:
                found = WeighedSets(found.phi, np.append(found.rows, 0.0), np.pad(found.pairs, (0, 1)), found.value)
            last = sets, share, found
            made = self.raised(every, found)
            if proved is None or self.bound(made) < self.bound(proved):
                proved = made
            rho, gain = self.price(every, found)
            if self.bound(made) < least * (1 - CLOSE) or found.value > reached * (1 + CLOSE):
                still = 0
            least, reached, still = min(least, self.bound(made)), max(reached, found.value), still + 1
            if (
                still > STILL
                or self.bound(proved) <= found.value * (1 + CLOSE)
                or not gain.max() > PAID * np.abs(worth).max()
            ):
                break
            new = np.argsort(-gain)[:JOIN]
            new = new[gain[new] > 0.0]
            index, share = np.append(index, new), np.append(share, rho[new])
        assert last is not None
        assert proved is not None
        sets, share, found = last
        # A vertex has few patterns, which cover all inputs alike.
        inside = np.vstack([sets.T, share]) if divided else sets.T
        with suppress(SolverError):
            found = weigh(inside, self.worth(sets, share), self.level, self.unit, caps, SIMPLEX)
        return Shares(sets, share, found.phi, proved.rows, proved.pairs, self.bound(proved))
