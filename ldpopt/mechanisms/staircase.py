"""The staircase mechanism, and the pair that dominates (epsilon, delta, eta): as easy to tell apart as limits allow.

The density of the noise falls in steps, exactly as private as epsilon and eta demand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.errors import SolverError, invalid
from ldpopt.mechanisms.additive import AdditiveNoise, Noise, enlarge, guarantee
from ldpopt.numbers.rounding import up
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON, RANGE_END
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import Array, plain, positive_epsilon, unit_interval


def dominating_pair(epsilon: float, delta: float = 0.0, eta: float = 1.0) -> FinitePair:
    """The five-point pair that dominates every (epsilon, delta)-DP mechanism of total variation eta [GI, eq. 7-8].

    epsilon in nats; delta and eta in [0, 1]. With e = exp(epsilon) and 1 - alpha = (eta - delta)(e + 1)/((1 - delta)(e
    - 1)), p is (delta, (1-delta)(1-alpha) e/(1+e), alpha (1-delta), (1-delta)(1-alpha)/(1+e), 0) and q is p reversed.
    An eta above delta + (1 - delta) tanh(epsilon/2) limits nothing; a delta above eta is lowered to it. Parameters are
    enlarged by a few units in the last place, so that the rounded pair dominates, too.

    >>> dominating_pair(1.0, 0.0, 0.7 * 0.46211715726).p.round(4)
    array([0.    , 0.5117, 0.3   , 0.1883, 0.    ])
    """
    epsilon = min(enlarge(positive_epsilon(epsilon)), MAXIMUM_EPSILON)
    eta = min(enlarge(unit_interval(eta, "eta")), 1.0)
    return FinitePair.of_parameters(epsilon, delta, eta)


MAXIMUM_STEPS = 50_000
"""The most steps into which the density of the noise is cut for numerical integration."""


@dataclass(frozen=True)
class Staircase(AdditiveNoise, epsilon=positive_epsilon, gamma=unit_interval):
    """The staircase mechanism of Geng et al. [GI, section VI-C]: a number plus noise whose density falls in steps.

    The density is symmetric; it is a on [0, gamma D) and a e^{-epsilon} on [gamma D, D), and falls by e^{-epsilon} with
    every further D = `sensitivity`, the largest distance between two answers. epsilon in nats; gamma in [0, 1].

    It is epsilon-DP and eta-TV, with eta between (1 - e^{-epsilon})/2 (at gamma 0 and 1) and tanh(epsilon/2) (at 1/2).
    Its trade-off curve is the lowest that epsilon and eta allow, so that a finite `pair` describes its privacy. Raises
    `InvalidInput` for values out of range.

    >>> round(Staircase(1.0, 0.5).eta, 6), round(math.tanh(0.5), 6)
    (0.462117, 0.462117)
    """

    epsilon: float
    gamma: float
    sensitivity: float = 1.0

    @classmethod
    def for_total_variation(cls, epsilon: float, eta: float, sensitivity: float = 1.0) -> tuple[Staircase, Staircase]:
        """Two staircases, gamma <= 1/2 and >= 1/2, of total variation eta in [(1 - e^{-epsilon})/2, tanh(epsilon/2)].

        The first has less noise when epsilon is large, the second when it is small. Raises `InvalidInput` for another
        eta.

        >>> [round(m.gamma, 4) for m in Staircase.for_total_variation(1.0, 0.4)]
        [0.2105, 0.668]
        """
        epsilon, eta = positive_epsilon(epsilon), unit_interval(eta, "eta")
        drop = -math.expm1(-epsilon)
        lowest, highest = drop / 2, math.tanh(epsilon / 2)
        if not lowest * (1 - RANGE_END) <= eta <= highest * (1 + RANGE_END):
            raise invalid("eta", f"a number in [{lowest:.6g}, {highest:.6g}] for epsilon = {epsilon:g}", eta)
        q = math.exp(-epsilon)
        t = min(max(2 * eta / drop, 1.0), 2 / (1 + q))
        # Both branches of [GI, section VI-C], solved for gamma.
        below = min(q * (t - 1) / ((2 - t) * drop), 0.5)
        above = min(max((1 / t - q) / drop, 0.5), 1.0)
        return cls(epsilon, below, sensitivity), cls(epsilon, above, sensitivity)

    @property
    def eta(self) -> float:
        """The total variation, rounded up [GI, section VI-C]."""
        q, drop = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        weight = self.gamma * drop + q  # gamma + q (1 - gamma)
        return up(drop * (self.gamma * drop + weight if self.gamma < 0.5 else 1.0) / (2 * weight), 32)

    @property
    def pair(self) -> FinitePair:
        """The dominating pair of epsilon and eta; answers `sensitivity` apart are exactly as distinct [GI, App I-2]."""
        return dominating_pair(self.epsilon, 0.0, self.eta)

    @property
    def height(self) -> float:
        """The density at 0."""
        weight = self.gamma * -math.expm1(-self.epsilon) + math.exp(-self.epsilon)
        return -math.expm1(-self.epsilon) / (2 * self.sensitivity * weight)

    @property
    def variance(self) -> float:
        """The variance of the noise, in closed form."""
        q, b, g = math.exp(-self.epsilon), -math.expm1(-self.epsilon), self.gamma
        # |Y| = D (G + U): G geometric with ratio q, U on its first part with the odds g : q (1 - g).
        inner = g / (g + q * (1 - g))
        mean, square = q / b, q * (1 + q) / b**2
        first = inner * g / 2 + (1 - inner) * (g + 1) / 2
        second = inner * g**2 / 3 + (1 - inner) * (g**2 + g + 1) / 3
        return self.sensitivity**2 * (square + 2 * mean * first + second)

    def density(self, y: Any) -> Any:
        """The density of the noise at y."""
        steps = np.abs(np.asarray(y, dtype=np.float64)) / self.sensitivity
        whole = np.floor(steps)
        return plain(self.height * np.exp(-self.epsilon * (whole + (steps - whole >= self.gamma))))

    @property
    def noise(self) -> Noise:
        """The law of the noise, for integration in at most `MAXIMUM_STEPS` steps, so that epsilon must not be tiny."""

        def cuts(power: float) -> Array:
            count = math.ceil((60 + power + 10 * math.sqrt(power)) / self.epsilon) + 1
            if count > MAXIMUM_STEPS:
                limit = f"at least {(60 + power + 10 * math.sqrt(power)) / MAXIMUM_STEPS:.2g} for this order"
                raise invalid("epsilon of a staircase", limit, self.epsilon)
            whole = self.sensitivity * np.arange(count + 1.0)
            return np.unique(np.concatenate([whole, whole[:-1] + self.gamma * self.sensitivity]))

        return Noise(lambda y: np.asarray(self.density(y)), cuts, self.variance)

    def log_mgf(self, a: float) -> float:
        """log E exp(a Y) of the noise Y; inf if |a| is epsilon/sensitivity or more."""
        a = abs(a) * self.sensitivity
        return math.inf if a >= self.epsilon else math.log1p(self._grown(a))

    def _grown(self, a: float) -> float:
        """E exp(a Y) - 1, where Y is in units of the sensitivity: a sum over both halves of the density."""
        q, g = math.exp(-self.epsilon), self.gamma
        total = 0.0
        for s in (a, -a):
            if s == 0:
                return 0.0
            period = (math.expm1(s * g) + q * math.exp(s * g) * math.expm1(s * (1 - g))) / s
            total += period / -math.expm1(s - self.epsilon)
        return self.height * self.sensitivity * total - 1

    def restricted_kl(self) -> Guarantee:
        """The KL divergence restricted to affine features, in nats: sup over a of a D - log E exp(a Y) [CIM, Lemma 1].

        The function of a is concave, so its values at three neighbouring points bracket the supremum.
        """
        from scipy.optimize import minimize_scalar

        def value(a: float) -> float:
            return a - self.log_mgf(a / self.sensitivity)

        minimum = minimize_scalar(
            lambda a: -value(a), bounds=(0.0, self.epsilon), method="bounded", options={"xatol": 1e-10 * self.epsilon}
        )
        best, top = float(minimum.x), -float(minimum.fun)
        for step in (1e-5, 1e-4, 1e-3):
            width = step * min(best, self.epsilon - best)
            around = value(best - width), value(best + width)
            if max(around) <= top:
                break
        else:
            raise SolverError("restricted KL divergence: the maximum of a concave function was not bracketed")
        error = 1e-14 * (1 + best)
        # Concave: the maximum is at most as far above `top` as a neighbour at one step is below it.
        return guarantee("restricted_kl", top - error, 2 * top - min(around) + 3 * error, "[CIM, Lemma 1]")

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        q, g = math.exp(-self.epsilon), self.gamma
        whole = rng.geometric(-math.expm1(-self.epsilon), shape) - 1.0
        inside = rng.random(shape) < g / (g + q * (1 - g))
        place = np.where(inside, g * rng.random(shape), g + (1 - g) * rng.random(shape))
        sign = rng.choice(np.array([-1.0, 1.0]), shape)
        return np.asarray(sign * self.sensitivity * (whole + place))


staircase = Staircase
