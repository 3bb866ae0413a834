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
from ldpopt.design.problems.cells import Cells
from ldpopt.distribution import Array
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
