"""The Laplace and the Gaussian mechanism: the law of the noise, and the pair that dominates it, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from ldpopt.errors import invalid
from ldpopt.mechanisms.additive import AdditiveNoise, Noise, guarantee, near
from ldpopt.mechanisms.continuous_pair import ContinuousPair, Interval, expm2
from ldpopt.numbers.rounding import SUBNORMAL, ULP, bisected
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import Array, nonnegative, open_unit, positive, positive_epsilon

_LAPLACE, _NORMAL = 32 * ULP, 64 * ULP
"""The relative errors that the closed forms below may have."""


class _Known(ContinuousPair):
    """A pair that is determined by one number, `_parameter`."""

    _parameter: ClassVar[str] = "epsilon"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._parameter}={getattr(self, self._parameter)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))


_LOG_2 = math.log(2)


def _log_laplace(x: float, shift: float = 0.0) -> float:
    return -abs(x - shift) - _LOG_2


class LaplacePair(_Known):
    """Unit Laplace noise against the same noise moved by epsilon (nats), with measures in closed form.

    >>> round(LaplacePair(1.0).total_variation().value, 6)
    0.393469
    """

    def __init__(self, epsilon: float) -> None:
        epsilon = positive_epsilon(epsilon)
        edges = (-math.inf, 0.0, epsilon, math.inf)
        super().__init__(_log_laplace, partial(_log_laplace, shift=epsilon), edges, epsilon)

    def _hockey_stick(self, epsilon: float) -> Interval:
        # 1 - e^{(t - epsilon)/2} on [-epsilon, epsilon]; below, all of 1 - e^t [GI, section VI-A].
        if epsilon <= -self.epsilon:
            return near(-math.expm1(epsilon), _LAPLACE)
        return near(-math.expm1(min((epsilon - self.epsilon) / 2, 0.0)), _LAPLACE)

    def _mean(self, reverse: bool) -> Interval:
        return near(expm2(-self.epsilon), _LAPLACE)

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """An interval that holds log E exp(s (Z - E Z)) of the privacy loss Z, the same in both directions.

        It is the Rényi divergence of [M, Table II], rearranged so that terms do not cancel.
        """
        e, mean = self.epsilon, expm2(-self.epsilon)
        if s < -0.5:  # E exp(s Z) = E exp(-(1 + s) Z) by symmetry
            low, high = self.cumulant(-1 - s)
            return low - (1 + 2 * s) * mean, high - (1 + 2 * s) * mean
        w = e * (1 + 2 * s)
        if abs(s * e) > 2 or s < -0.25:
            middle = -math.expm1(-w) / w if w > 0 else 1.0
            log_moment = s * e + math.log((1 + e * middle + math.exp(-w)) / 2)
            error = _LAPLACE * (1 + abs(s * e) + abs(s) * mean)
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
        error = _LAPLACE * (sum(map(abs, parts)) / (1 + 2 * s) + abs(value) + moment * moment / (1 + max(moment, 0.0)))
        return value - error, value + error

    def _missed(self, rate: float) -> float:
        tail = math.exp(-self.epsilon) / 2
        if rate < tail:  # slopes -e^epsilon, then the curve e^{-epsilon}/(4 rate), then -e^{-epsilon}
            return max(0.0, (1 - math.exp(self.epsilon) * rate) * (1 - _LAPLACE))
        return (tail / (2 * rate) if rate <= 0.5 else math.exp(-self.epsilon) * (1 - rate)) * (1 - _LAPLACE)


@dataclass(frozen=True)
class Laplace(AdditiveNoise, epsilon=positive_epsilon):
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
        return guarantee("restricted_kl", *near(excess - math.log1p(excess / 2), _LAPLACE), "[CIM, Thm 9]")

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


def _log1p_minus(x: float) -> float:
    """log(1 + x) - x without cancellation near 0."""
    if abs(x) > 0.1:
        return math.log1p(x) - x
    return math.fsum(-((-x) ** n) / n for n in range(2, 22))


def _log_normal(x: float, shift: float = 0.0) -> float:
    return -((x - shift) ** 2) / 2 - math.log(2 * math.pi) / 2


class GaussianPair(_Known):
    """A standard normal law against one moved by mu, with measures in closed form.

    A mechanism that this pair dominates is mu-GDP, Gaussian differentially private [DRS].

    >>> round(GaussianPair(1.0).renyi(2.0).value, 6)
    1.0
    """

    mu: float
    _parameter = "mu"

    def __init__(self, mu: float) -> None:
        mu = positive(mu, "mu")
        object.__setattr__(self, "mu", mu)
        middle = sorted({0.0, mu / 2, mu})
        super().__init__(_log_normal, partial(_log_normal, shift=mu), (-math.inf, *middle, math.inf))

    def _hockey_stick(self, epsilon: float) -> Interval:
        from scipy.special import erf, erfcx, log_ndtr

        if epsilon == 0:
            return near(float(erf(self.mu / math.sqrt(8))), _NORMAL)  # 2 Phi(mu/2) - 1 [GI, eq. 17]
        if epsilon < 0:
            low, high = (-math.expm1(epsilon) + math.exp(epsilon) * end for end in self._hockey_stick(-epsilon))
            return near(low, _NORMAL)[0], near(high, _NORMAL)[1]
        # Phi(-a) - e^epsilon Phi(-b), a = epsilon/mu - mu/2, b = a + mu, and phi(a) = e^epsilon phi(b).
        a, b = epsilon / self.mu - self.mu / 2, epsilon / self.mu + self.mu / 2
        if a > 40:  # below e^-800
            return 0.0, SUBNORMAL
        if self.mu < 1e-3:
            # With h(x) = erfcx(x/sqrt 2), h' = x h - sqrt(2/pi): h(a) - h(b) around the middle, to a relative mu^4.
            middle = epsilon / self.mu
            h = float(erfcx(middle / math.sqrt(2)))
            fall = math.sqrt(2 / math.pi) - middle * h
            third = 2 * fall - middle * (h - middle * fall)
            value = math.exp(-a * a / 2) / 2 * self.mu * (fall + self.mu**2 / 24 * third)
            error = value * (_NORMAL * (4 + 2 * middle * middle + a * a + epsilon) + self.mu**4)
            return max(value - error, 0.0), max(value + error, SUBNORMAL)
        if a > 0:
            density = math.exp(-a * a / 2) / 2
            first, second = float(erfcx(a / math.sqrt(2))), float(erfcx(b / math.sqrt(2)))
            value = density * (first - second)
            error = _NORMAL * density * (first + second + (a * a + epsilon + a * b) * abs(first - second))
        else:
            first, second = math.exp(float(log_ndtr(-a))), math.exp(epsilon + float(log_ndtr(-b)))
            value, error = (first - second, _NORMAL * (first + (second * (1 + epsilon + b * b) if second > 0 else 0.0)))
        return max(value - error, 0.0), max(value + error, SUBNORMAL)  # never zero, though too small for a float

    def _mean(self, reverse: bool) -> Interval:
        return near(self.mu**2 / 2, _NORMAL)

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """log E exp(s (Z - E Z)) = s^2 mu^2 / 2: the privacy loss is normal of variance mu^2."""
        return near((s * self.mu) ** 2 / 2, _NORMAL)

    def _zcdp(self, xi: float, max_order: float) -> Interval:
        # (alpha mu^2/2 - xi)/alpha is monotone in the order: its supremum is at one of the two ends [BS, Prop 1.6].
        rho = self.mu**2 / 2
        at_end = rho if math.isinf(max_order) else rho - xi / max_order
        return near(max(at_end, rho - xi, 0.0), _NORMAL)

    def _subgaussian(self) -> Interval:
        return near(self.mu, _NORMAL)  # [DR, Cor 3.3]

    def _missed(self, rate: float) -> float:
        from scipy.special import ndtr, ndtri

        # G_mu(rate) = Phi(Phi^{-1}(1 - rate) - mu) [DRS]; the margin covers the rounding of both.
        value = float(ndtr(-float(ndtri(rate)) - self.mu))
        return max(0.0, value * (1 - 1e-12) - 1e-300)


@dataclass(frozen=True)
class Gaussian(AdditiveNoise, sigma=positive):
    """The Gaussian mechanism: normal noise of standard deviation `sigma` [GI, section VI-B].

    sensitivity : how far apart two answers can be (in the 2-norm, for vectors).

    With mu = sensitivity/sigma and the normal distribution function Phi, its zCDP parameter is rho = mu^2/2, and its
    total variation is eta = 2 Phi(mu/2) - 1. It has no finite epsilon. Raises `InvalidInput` for values out of range.

    >>> m = Gaussian(2.0)
    >>> round(m.eta, 6), round(float(m.pair.zcdp()), 6)
    (0.197413, 0.125)
    """

    sigma: float
    sensitivity: float = 1.0

    @classmethod
    def for_approximate_dp(cls, epsilon: float, delta: float, sensitivity: float = 1.0) -> Self:
        """The least noise that is (epsilon, delta)-DP: the analytic Gaussian mechanism [BW, Alg 1].

        epsilon >= 0 in nats, delta in (0, 1), `sensitivity` as above. sigma is within twelve digits of the least value,
        and rounded up: the delta that `pair` has at epsilon, rounded up, is at most the given one. Raises
        `InvalidInput` for values out of range.

        >>> round(Gaussian.for_approximate_dp(1.0, 1e-6).sigma, 6)
        4.224679
        """
        epsilon, delta = nonnegative(epsilon, "epsilon"), open_unit(delta, "delta")
        sensitivity = positive(sensitivity, "sensitivity")

        def holds(mu: float) -> bool:
            return GaussianPair(mu).hockey_stick(epsilon).value <= delta

        low = high = 1.0
        while not holds(low):
            low /= 4
            if low < 1e-290:
                raise invalid("delta", "one that some noise meets in floats", delta)
        while holds(high):
            low, high = high, 4 * high
        sigma = sensitivity / bisected(holds, low, high, 1e-13)[0]
        while not holds(sensitivity / sigma):
            sigma = math.nextafter(sigma * (1 + ULP), math.inf)
        if not 0 < sigma < math.inf:
            raise invalid("sensitivity", "one that some finite noise hides", sensitivity)
        return cls(sigma, sensitivity)

    @property
    def epsilon(self) -> float:
        """The largest privacy loss: infinite."""
        return math.inf

    @property
    def mu(self) -> float:
        """sensitivity/sigma: the mechanism is mu-GDP, Gaussian differentially private [DRS]."""
        return self.sensitivity / self.sigma

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        return self.sigma**2

    @property
    def pair(self) -> GaussianPair:
        """The dominating pair: the releases for two answers that are `sensitivity` apart, scaled."""
        return GaussianPair(self.mu)

    @property
    def noise(self) -> Noise:
        """The law of the noise."""
        return gaussian_noise(self.sigma)

    def restricted_kl(self) -> Guarantee:
        """The KL divergence restricted to affine features, in nats: it equals the full one, mu^2/2 [CIM, Thm 10]."""
        return guarantee("restricted_kl", *near(self.mu**2 / 2, _NORMAL), "[CIM, Thm 10]")

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.normal(0.0, self.sigma, shape)


gaussian = Gaussian


def gaussian_noise(sigma: float) -> Noise:
    """The law of normal noise of standard deviation `sigma`."""

    def density(y: Array) -> Array:
        return np.asarray(np.exp(-((y / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)))

    def cuts(power: float) -> Array:
        return sigma * np.arange(0.0, 15.0 + math.sqrt(power), 0.5)  # y^power e^(-y^2/2) peaks at the root of power

    return Noise(density, cuts, sigma**2)
