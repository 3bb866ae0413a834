"""The Gaussian mechanism, and the pair that dominates it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from ldpopt.distribution import Array, unit_interval
from ldpopt.errors import invalid
from ldpopt.mechanisms.additive import AdditiveNoise, Noise, guarantee, positive
from ldpopt.mechanisms.continuous_pair import ContinuousPair, Interval
from ldpopt.privacy.approximate_dp import nonnegative
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import SUBNORMAL, ULP

_ERROR = 64 * ULP


def _log_density(x: float, shift: float = 0.0) -> float:
    return -((x - shift) ** 2) / 2 - math.log(2 * math.pi) / 2


class GaussianPair(ContinuousPair):
    """A standard normal law against one moved by mu, with measures in closed form.

    A mechanism that this pair dominates is mu-GDP, Gaussian differentially private [DRS].

    >>> round(GaussianPair(1.0).renyi(2.0).value, 6)
    1.0
    """

    mu: float

    def __init__(self, mu: float) -> None:
        mu = positive(mu, "mu")
        object.__setattr__(self, "mu", mu)
        middle = sorted({0.0, mu / 2, mu})
        super().__init__(_log_density, partial(_log_density, shift=mu), (-math.inf, *middle, math.inf))

    def __repr__(self) -> str:
        return f"GaussianPair(mu={self.mu!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaussianPair) and other.mu == self.mu

    def __hash__(self) -> int:
        return hash(("GaussianPair", self.mu))

    def _hockey_stick(self, epsilon: float) -> Interval:
        from scipy.special import erf, erfcx, log_ndtr

        if epsilon == 0:
            return _near(float(erf(self.mu / math.sqrt(8))))  # 2 Phi(mu/2) - 1 [GI, eq. 17]
        if epsilon < 0:
            low, high = self._hockey_stick(-epsilon)
            return _near(-math.expm1(epsilon) + math.exp(epsilon) * low)[0], _near(
                -math.expm1(epsilon) + math.exp(epsilon) * high
            )[1]
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
            error = value * (_ERROR * (4 + 2 * middle * middle + a * a + epsilon) + self.mu**4)
            return max(value - error, 0.0), max(value + error, SUBNORMAL)
        if a > 0:
            density = math.exp(-a * a / 2) / 2
            first, second = float(erfcx(a / math.sqrt(2))), float(erfcx(b / math.sqrt(2)))
            value = density * (first - second)
            error = _ERROR * density * (first + second + (a * a + epsilon + a * b) * abs(first - second))
        else:
            first, second = math.exp(float(log_ndtr(-a))), math.exp(epsilon + float(log_ndtr(-b)))
            value, error = first - second, _ERROR * (first + (second * (1 + epsilon + b * b) if second > 0 else 0.0))
        return max(value - error, 0.0), max(value + error, SUBNORMAL)  # never zero, though too small for a float

    def _mean(self, reverse: bool) -> Interval:
        return _near(self.mu**2 / 2)

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """log E exp(s (Z - E Z)) = s^2 mu^2 / 2: the privacy loss is normal of variance mu^2."""
        return _near((s * self.mu) ** 2 / 2)

    def _zcdp(self, xi: float, max_order: float) -> Interval:
        # (alpha mu^2/2 - xi)/alpha is monotone in the order: its supremum is at one of the two ends [BS, Prop 1.6].
        rho = self.mu**2 / 2
        at_end = rho if math.isinf(max_order) else rho - xi / max_order
        return _near(max(at_end, rho - xi, 0.0))

    def _subgaussian(self) -> Interval:
        return _near(self.mu)  # [DR, Cor 3.3]

    def _missed(self, rate: float) -> float:
        from scipy.special import ndtr, ndtri

        # G_mu(rate) = Phi(Phi^{-1}(1 - rate) - mu) [DRS]; the margin covers the rounding of both.
        value = float(ndtr(-float(ndtri(rate)) - self.mu))
        return max(0.0, value * (1 - 1e-12) - 1e-300)


@dataclass(frozen=True)
class Gaussian(AdditiveNoise):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        object.__setattr__(self, "sensitivity", positive(self.sensitivity, "sensitivity"))

    @classmethod
    def for_approximate_dp(cls, epsilon: float, delta: float, sensitivity: float = 1.0) -> Self:
        """The least noise that is (epsilon, delta)-DP: the analytic Gaussian mechanism [BW, Alg 1].

        epsilon >= 0 in nats, delta in (0, 1), `sensitivity` as above. sigma is within twelve digits of the least value,
        and rounded up: the delta that `pair` has at epsilon, rounded up, is at most the given one. Raises
        `InvalidInput` for values out of range.

        >>> round(Gaussian.for_approximate_dp(1.0, 1e-6).sigma, 6)
        4.224679
        """
        epsilon, delta = nonnegative(epsilon, "epsilon"), unit_interval(delta, "delta")
        sensitivity = positive(sensitivity, "sensitivity")
        if not 0 < delta < 1:
            raise invalid("delta", "a number strictly between 0 and 1", delta)

        def holds(mu: float) -> bool:
            return GaussianPair(mu).hockey_stick(epsilon).value <= delta

        low = high = 1.0
        while not holds(low):
            low /= 4
            if low < 1e-290:
                raise invalid("delta", "one that some noise meets in floats", delta)
        while holds(high):
            low, high = high, 4 * high
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        sigma = sensitivity / low
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
        return guarantee("restricted_kl", *_near(self.mu**2 / 2), "[CIM, Thm 10]")

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


def _near(value: float) -> Interval:
    return value * (1 - _ERROR), value * (1 + _ERROR)
