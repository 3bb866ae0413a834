"""Certificates: what proves that no channel does better, and how anyone can check it.

Nothing here is shared with the solvers. A certificate holds the problem, the channel and a few numbers found by a
solver, and recomputes the rest: the channel's guarantees and utility, and an upper bound from weak duality that is
right whatever the numbers are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.cells import Cells
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.tolerances import VERIFY


@dataclass(frozen=True)
class Verification:
    """What `Certificate.verify` recomputed. True in a condition exactly when nothing failed."""

    value: float
    upper_bound: float
    epsilon: float
    total_variation: float
    failures: tuple[str, ...]
    guarantees: tuple[Guarantee, ...] = ()

    def __bool__(self) -> bool:
        return not self.failures

    def __repr__(self) -> str:
        verdict = "verified" if self else "FAILED: " + "; ".join(self.failures)
        return (
            f"Verification({verdict}: value {self.value:.9g}, upper bound {self.upper_bound:.9g}, "
            f"epsilon {self.epsilon:.9g}, total variation {self.total_variation:.9g})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(ABC):
    """A proof that no epsilon-LDP, eta-TV channel has a utility above `upper_bound`.

    utility : a finite `Divergence`, or another utility for certificates that say so.
    channel : a channel that meets the constraints.
    epsilon, eta : the caps; inf and 1 where there is none.
    """

    utility: Any
    channel: Channel
    epsilon: float
    eta: float

    @property
    @abstractmethod
    def upper_bound(self) -> float:
        """The bound, recomputed from the numbers of the certificate."""

    @property
    @abstractmethod
    def argument(self) -> str:
        """Why the bound holds, in a sentence."""

    def verify(self) -> Verification:
        """Recompute the channel's guarantees, its utility and the bound from scratch."""
        epsilon, eta = float(local_dp(self.channel)), float(total_variation(self.channel))
        p0, p1, q = self.utility.p0, self.utility.p1, self.channel.matrix
        value = math.fsum(np.atleast_1d(self.utility.f.excess(p0 @ q, p1 @ q)).tolist())
        bound = self.upper_bound
        failures = []
        if epsilon > self.epsilon:
            failures.append(f"the channel is {epsilon!r}-LDP, not {self.epsilon!r}")
        if eta > self.eta:
            failures.append(f"the channel is {eta!r}-TV, not {self.eta!r}")
        if not value <= bound * (1 + VERIFY) + 1e-15:
            failures.append(f"the value {value!r} is above the bound {bound!r}")
        return Verification(value, bound, epsilon, eta, tuple(failures))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(upper_bound={self.upper_bound:.9g})"


@dataclass(frozen=True, eq=False, repr=False)
class _Dual(Certificate):
    """Multipliers for a pair that dominates the inputs: the inputs with equal ratios merged, or a coarser pair.

    points : (n, 2) masses (P0, P1) that dominate the utility's in Blackwell's order, so that their optimum is not
    smaller [Blackwell]; rows : (n,) multipliers of the row sums. cells : where the hypotheses are continuous, the
    intervals that the points were made from.
    """

    points: Array
    rows: Array
    cells: Cells | None

    def _dominated(self) -> tuple[Array, Array]:
        return (self.utility.p0, self.utility.p1) if self.cells is None else self.cells.endpoints()

    @property
    def upper_bound(self) -> float:
        """The bound for the points; inf if they do not dominate the inputs."""
        p0, p1 = self.points.T
        return self._bound(p0, p1) if dominates(p0, p1, *self._dominated()) else math.inf

    @abstractmethod
    def _bound(self, p0: Array, p1: Array) -> float:
        """The bound on the optimum of the pair (p0, p1)."""

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        coarser = len(self.points) < len(self.utility.p0) or self.cells is not None
        return self._duality + (f", for {len(self.points)} points that dominate the hypotheses" if coarser else "")

    _duality = ""


@dataclass(frozen=True, eq=False, repr=False)
class PatternDual(_Dual):
    """Multipliers of the staircase-pattern program, checked against every one of its 2^n columns [KOV14, Thm 4].

    pairs : (n, n) non-negative multipliers of the TV caps, entry (x, x') for patterns with x and without x'.
    """

    pairs: Array

    _duality = "linear-programming duality over all staircase patterns"

    def _bound(self, p0: Array, p1: Array) -> float:
        """sum rows + eta sum pairs, raised by the largest violation of a dual constraint."""
        n = len(self.rows)
        gain = math.exp(self.epsilon) - 1
        pairs = np.maximum(self.pairs, 0.0)
        np.fill_diagonal(pairs, 0.0)
        # Masses, prices and cuts of all subsets by doubling: subset A + {x} from subset A.
        mass0, mass1, price, cut = (np.zeros(1) for _ in range(4))
        member = np.zeros((1, n))
        for x in range(n):
            cut = np.append(cut, cut + pairs[x].sum() - member @ (pairs[x] + pairs[:, x]))
            mass0, mass1 = np.append(mass0, mass0 + p0[x]), np.append(mass1, mass1 + p1[x])
            price = np.append(price, price + self.rows[x])
            member = np.vstack([member, member + np.eye(n)[x]])
        a, b = p0.sum() + gain * mass0, p1.sum() + gain * mass1
        worth = self.utility.f.excess(a, b)
        charge = self.rows.sum() + gain * (price + cut)
        base = float(self.rows.sum() + self.eta * pairs.sum())
        # Two ways to mend a violated constraint: raising the rows by t P1 raises the charge of a pattern by t b and the
        # bound by t; scaling all multipliers scales both.
        raised = base + max(0.0, float(((worth - charge) / b).max()))
        scales = np.divide(worth, charge, out=np.full_like(worth, math.inf), where=charge > 0)[worth > 0]
        scaled = base * max(1.0, float(scales.max(initial=1.0)))
        return min(raised, scaled) if base > 0 else raised


@dataclass(frozen=True, eq=False, repr=False)
class LabelDual(_Dual):
    """Multipliers of the ratio-labelled program for pure LDP, proved on every interval of ratios."""

    _duality = "weak duality of the ratio-labelled program, on every interval of ratios"

    def _bound(self, p0: Array, p1: Array) -> float:
        """sum rows, raised by the largest violation over all columns with entries in [1, E]."""
        base = float(self.rows.sum())
        return base + _largest_violation(self.utility.f, p0, p1, self.rows, math.exp(self.epsilon), 1e-10 * abs(base))


@dataclass(frozen=True, eq=False, repr=False)
class Contraction(Certificate):
    """D_f(M0 || M1) <= eta D_f(P0 || P1): every f-divergence contracts by the Dobrushin coefficient [Dobrushin]."""

    argument = "every f-divergence contracts by the Dobrushin coefficient of the channel"

    @property
    def upper_bound(self) -> float:
        """eta D_f(P0 || P1), with eta capped by (e^epsilon - 1)/(e^epsilon + 1) [GI, Prop 2]."""
        eta = min(self.eta, math.tanh(self.epsilon / 2))
        return eta * self.utility.unprivate if eta else 0.0


def _largest_violation(f: FDivergence, p0: Array, p1: Array, rows: Array, ratio: float, accuracy: float) -> float:
    """An upper bound, within `accuracy`, on the largest of 0 and mu(q.P0, q.P1) - rows.q over q in [1, E]^n.

    On an interval of ratios f lies below its chord, so mu lies below a linear c.q, and the largest (c - rows).q is
    reached entry by entry, at a column that also attains a true value. Intervals are halved until the bound of
    each is within `accuracy` of the best value attained.
    """
    with np.errstate(divide="ignore"):
        ratios = p0 / p1
    low, high = max(float(ratios.min()), 1 / ratio) * (1 - 1e-9), min(float(ratios.max()), ratio) * (1 + 1e-9)
    ends = np.geomspace(low, high, 1025)
    left, right = ends[:-1], ends[1:]
    attained, closed = 0.0, 0.0
    for _ in range(28):
        bound, reached = _interval_bounds(f, left, right, p0, p1, rows, ratio)
        attained = max(attained, float(reached.max()))
        # Shorter intervals than 2^-34 would measure the rounding of their own ends.
        wide = (bound > attained + accuracy) & (right - left > 2.0**-34 * right)
        closed = max(closed, float(bound[~wide].max(initial=0.0)))
        if not wide.any() or wide.sum() > 20000:
            break
        left, right = left[wide], right[wide]
        middle = np.sqrt(left * right)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return max(closed, float(bound.max()))


def _interval_bounds(
    f: FDivergence, left: Array, right: Array, p0: Array, p1: Array, rows: Array, ratio: float
) -> tuple[Array, Array]:
    """For each interval of ratios: the bound from the chord of f, and what the bounding column attains."""
    one = np.ones_like(left)
    f_left, f_right = f.excess(left, one), f.excess(right, one)
    slope = np.divide(f_right - f_left, right - left, out=np.zeros_like(left), where=right > left)
    level = f_left - slope * left
    bounds, reached = [], []
    for part in np.array_split(np.arange(len(left)), 1 + len(left) * len(p0) // 2**22):
        gain = slope[part, None] * p0 + level[part, None] * p1 - rows
        bounds.append(gain.sum(axis=1) + (ratio - 1) * np.maximum(gain, 0.0).sum(axis=1))
        column = np.where(gain > 0, ratio, 1.0)
        reached.append(f.excess(column @ p0, column @ p1) - column @ rows)
    return np.concatenate(bounds), np.concatenate(reached)


def dominates(a0: Array, a1: Array, b0: Array, b1: Array) -> bool:
    """Whether the pair (a0, a1) is at least as informative as (b0, b1), up to rounding [Blackwell].

    Compares sum ((1-s) p0 - s p1)_+, convex and piecewise linear in s, at every kink s = p0/(p0+p1) of either.
    """
    kinks = np.concatenate([_posterior(a0, a1), _posterior(b0, b1)])
    return bool(np.all(_support(a0, a1, kinks) >= _support(b0, b1, kinks) - 1e-12))


def _posterior(p0: Array, p1: Array) -> Array:
    return np.asarray(p0[p0 + p1 > 0] / (p0 + p1)[p0 + p1 > 0])


def _support(p0: Array, p1: Array, s: Array) -> Array:
    """sum ((1-s) p0 - s p1)_+ for every s."""
    used = p0 + p1 > 0
    own = _posterior(p0, p1)
    order = np.argsort(-own, kind="stable")
    above = np.searchsorted(-own[order], -s)
    x, y = (np.append(0.0, np.cumsum(p[used][order]))[above] for p in (p1, p0))
    return np.asarray((1 - s) * y - s * x)
