"""The Laplace mechanism, and the pair that dominates it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldpopt.distribution import Array, positive_epsilon
from ldpopt.mechanisms.additive import AdditiveNoise, Noise, guarantee, positive
from ldpopt.mechanisms.continuous_pair import ContinuousPair, Interval, expm2
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import ULP

_ERROR = 32 * ULP
"""The relative error that the closed forms below may have."""


def _log_density(x: float, shift: float = 0.0) -> float:
    return -abs(x - shift) - math.log(2)


class LaplacePair(ContinuousPair):
    """Unit Laplace noise against the same noise moved by epsilon (nats), with measures in closed form.

    >>> round(LaplacePair(1.0).total_variation().value, 6)
    0.393469
    """

    def __init__(self, epsilon: float) -> None:
        epsilon = positive_epsilon(epsilon)
        edges = (-math.inf, 0.0, epsilon, math.inf)
        super().__init__(_log_density, partial(_log_density, shift=epsilon), edges, epsilon)

    def __repr__(self) -> str:
        return f"LaplacePair(epsilon={self.epsilon!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LaplacePair) and other.epsilon == self.epsilon

    def __hash__(self) -> int:
        return hash(("LaplacePair", self.epsilon))

    def _hockey_stick(self, epsilon: float) -> Interval:
        # 1 - e^{(t - epsilon)/2} on [-epsilon, epsilon]; below, all of 1 - e^t [GI, section VI-A].
        if epsilon <= -self.epsilon:
            return _near(-math.expm1(epsilon))
        return _near(-math.expm1(min((epsilon - self.epsilon) / 2, 0.0)))

    def _mean(self, reverse: bool) -> Interval:
        return _near(expm2(-self.epsilon))

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """An interval that holds log E exp(s (Z - E Z)) of the privacy loss Z, the same in both directions.

        It is the Rényi divergence of [M, Table II], rearranged so that terms do not cancel.
        """
        e, mean = self.epsilon, expm2(-self.epsilon)
        if s < -0.5:  # E exp(s Z) = E exp(-(1 + s) Z) by symmetry
            low, high = self.cumulant(-1 - s)
            return low - (1 + 2 * s) * mean, high - (1 + 2 * s) * mean
        w = e * (1 + 2 * s)
        if s * e > 2 or s < -0.25:
            middle = -math.expm1(-w) / w if w > 0 else 1.0
            log_moment = s * e + math.log((1 + e * middle + math.exp(-w)) / 2)
            error = _ERROR * (1 + abs(s * e) + abs(s) * mean)
            return log_moment - s * mean - error, log_moment - s * mean + error
        parts = (
            (1 + s) * expm2(s * e),
            s * math.exp(-e) * expm2(-s * e),
            -s * s * math.expm1(-e) * e,
            -2 * s * s * mean,
        )
        second = math.fsum(parts) / (1 + 2 * s)
        moment = second + s * mean  # E exp(s Z) - 1
        value = second + _log1p_minus(moment)
        error = _ERROR * (sum(map(abs, parts)) / (1 + 2 * s) + abs(value) + moment * moment / (1 + max(moment, 0.0)))
        return value - error, value + error

    def _missed(self, rate: float) -> float:
        tail = math.exp(-self.epsilon) / 2
        if rate < tail:  # slopes -e^epsilon, then the curve e^{-epsilon}/(4 rate), then -e^{-epsilon}
            return max(0.0, (1 - math.exp(self.epsilon) * rate) * (1 - _ERROR))
        return (tail / (2 * rate) if rate <= 0.5 else math.exp(-self.epsilon) * (1 - rate)) * (1 - _ERROR)


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """The Laplace mechanism: noise of density proportional to exp(-epsilon |y| / sensitivity) [GI, section VI-A].

    epsilon : in nats. sensitivity : how far apart two answers can be.

    It is epsilon-DP, and its total variation eta is 1 - e^{-epsilon/2}; `pair` gives every other measure. Raises
    `InvalidInput` for values out of range.

    >>> m = Laplace(1.0)
    >>> round(m.eta, 6), round(float(m.pair.renyi(2)), 6)
    (0.393469, 0.619124)
    """

    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))
        object.__setattr__(self, "sensitivity", positive(self.sensitivity, "sensitivity"))

    @property
    def scale(self) -> float:
        """The mean absolute value of the noise."""
        return self.sensitivity / self.epsilon

    @property
    def variance(self) -> float:
        """The variance of the noise, 2 scale^2."""
        return 2 * self.scale**2

    @property
    def pair(self) -> LaplacePair:
        """The dominating pair: the releases for two answers that are `sensitivity` apart, scaled."""
        return LaplacePair(self.epsilon)

    @property
    def noise(self) -> Noise:
        """The law of the noise."""
        return laplace_noise(self.scale)

    def restricted_kl(self) -> Guarantee:
        """The KL divergence restricted to affine features of the released number, in nats [CIM, Thm 9]."""
        excess = self.epsilon**2 / (math.sqrt(1 + self.epsilon**2) + 1)  # sqrt(1 + epsilon^2) - 1
        return guarantee("restricted_kl", *_near(excess - math.log1p(excess / 2)), "[CIM, Thm 9]")

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.laplace(0.0, self.scale, shape)


laplace = Laplace


def laplace_noise(scale: float) -> Noise:
    """The law of Laplace noise of mean absolute value `scale`."""

    def density(y: Array) -> Array:
        return np.asarray(np.exp(-y / scale) / (2 * scale))

    def cuts(power: float) -> Array:
        # y^power e^-y peaks at y = power, with a width of its root.
        return scale * np.arange(60.0 + power + math.ceil(10 * math.sqrt(power)))

    return Noise(density, cuts, 2 * scale**2)


def _near(value: float) -> Interval:
    return value * (1 - _ERROR), value * (1 + _ERROR)


def _log1p_minus(x: float) -> float:
    """log(1 + x) - x without cancellation near 0."""
    if abs(x) > 0.1:
        return math.log1p(x) - x
    return math.fsum(-((-x) ** n) / n for n in range(2, 22))
