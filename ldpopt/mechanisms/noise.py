"""The Laplace, Gaussian and staircase mechanisms: the distribution of the noise and its guarantees, in closed form.

The density of staircase noise falls in steps, and attains epsilon and eta exactly.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldpopt.errors import SolverError, invalid
from ldpopt.mechanisms.additive import BRACKET_STEPS, AdditiveNoise, Noise, guarantee, interval_around
from ldpopt.mechanisms.continuous_pair import Interval, dominating_pair, expm2
from ldpopt.mechanisms.loss_moments import gaussian_moment, laplace_moment
from ldpopt.mechanisms.sampled import SymmetricPair
from ldpopt.numbers.enclosures.adaptive import GUARD_BITS, START_BITS, enclosed
from ldpopt.numbers.enclosures.exact import precision
from ldpopt.numbers.rounding import SUBNORMAL, ULP, bisected, up
from ldpopt.numbers.tolerances import RANGE_END
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import (
    Array,
    nonnegative,
    open_unit,
    positive,
    positive_epsilon,
    unit_interval,
    unwrap_scalar,
)

if TYPE_CHECKING:
    from flint import arb

_LAPLACE, _NORMAL = 32 * ULP, 64 * ULP
"""The relative errors that the closed forms below may have."""


_LOG_2 = math.log(2)


def _log_laplace(x: float, shift: float = 0.0) -> float:
    return -abs(x - shift) - _LOG_2


class LaplacePair(SymmetricPair):
    """Unit Laplace noise against the same noise moved by epsilon (nats), with measures in closed form.

    >>> round(LaplacePair(1.0).total_variation().value, 6)
    0.393469
    """

    def __init__(self, epsilon: float) -> None:
        epsilon = positive_epsilon(epsilon)
        edges = (-math.inf, 0.0, epsilon, math.inf)
        super().__init__(_log_laplace, partial(_log_laplace, shift=epsilon), edges, epsilon)

    def _one_way(self, epsilon: float, reverse: bool) -> Interval:
        # 1 - e^{(t - epsilon)/2} on [-epsilon, epsilon]; below, all of 1 - e^t [GI, section VI-A].
        if epsilon <= -self.epsilon:
            return interval_around(-math.expm1(epsilon), _LAPLACE)
        return interval_around(-math.expm1(min((epsilon - self.epsilon) / 2, 0.0)), _LAPLACE)

    def _tails(self, epsilon: float, reverse: bool) -> Interval:
        e = self.epsilon
        if epsilon >= e:
            return 0.0, 0.0
        if epsilon < -e:
            return 1.0, 1.0
        return 1 - math.exp((epsilon - e) / 2) / 2, math.exp(-(epsilon + e) / 2) / 2

    def _mean(self, reverse: bool) -> Interval:
        return interval_around(expm2(-self.epsilon), _LAPLACE)

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """Enclose log E exp(s (Z - E Z)) of the privacy loss Z, the same in both directions.

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

    def moment(self, rate: float, power: arb, logs: int, bits: int) -> arb:
        """Return a ball around E M^power (log M)^logs, as of `loss_moments`."""
        return laplace_moment(self.epsilon, rate, power, logs, bits)

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
        """The distribution of the noise."""
        return laplace_noise(self.scale)

    def restricted_kl(self) -> Guarantee:
        """Compute the KL divergence restricted to affine features, in nats [CIM, Thm 9]."""
        excess = self.epsilon**2 / (math.sqrt(1 + self.epsilon**2) + 1)  # sqrt(1 + epsilon^2) - 1
        return guarantee("restricted_kl", *interval_around(excess - math.log1p(excess / 2), _LAPLACE), "[CIM, Thm 9]")

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.laplace(0.0, self.scale, shape)


laplace = Laplace


def laplace_noise(scale: float) -> Noise:
    """Return the law of Laplace noise of mean absolute value `scale`."""
    return Noise(laplace_power, 2.0, scale)


def laplace_power(c: arb, power: arb) -> arb:
    """Return a ball around E|Y + c|^power for unit Laplace noise and c > 0: incomplete gamma functions."""
    exponent, decay = power + 1, (-c).exp()
    lower_integral = (
        c**exponent / exponent * c.hypgeom_1f1(exponent, exponent + 1)
    )  # the integral of u^power e^u up to c
    return (c.exp() * c.gamma_upper(exponent) + decay * (lower_integral + exponent.gamma())) / 2


def _log1p_minus(x: float) -> float:
    """log(1 + x) - x without cancellation near 0."""
    if abs(x) > 0.1:
        return math.log1p(x) - x
    return math.fsum(-((-x) ** n) / n for n in range(2, 22))


def half_square(x: float) -> Interval:
    """Return an interval that holds x^2/2, also where the square leaves the range of floats."""
    value = x * x / 2
    return min(value, sys.float_info.max) * (1 - _NORMAL), max(value * (1 + _NORMAL), SUBNORMAL)


def _log_normal(x: float, shift: float = 0.0) -> float:
    return -((x - shift) ** 2) / 2 - math.log(2 * math.pi) / 2


class GaussianPair(SymmetricPair):
    """A standard normal law against one moved by mu, with measures in closed form.

    A mechanism that this pair dominates is mu-GDP, Gaussian differentially private [DRS].

    >>> round(GaussianPair(1.0).renyi(2.0).value, 6)
    1.0
    """

    mu: float
    _parameter: ClassVar[str] = "mu"

    def __init__(self, mu: float) -> None:
        mu = positive(mu, "mu")
        object.__setattr__(self, "mu", mu)
        middle = sorted({0.0, mu / 2, mu})
        super().__init__(_log_normal, partial(_log_normal, shift=mu), (-math.inf, *middle, math.inf))

    def _one_way(self, epsilon: float, reverse: bool) -> Interval:
        from scipy.special import erf, erfcx, log_ndtr

        if epsilon == 0:
            return interval_around(float(erf(self.mu / math.sqrt(8))), _NORMAL)  # 2 Phi(mu/2) - 1 [GI, eq. 17]
        if epsilon < 0:
            low, high = (-math.expm1(epsilon) + math.exp(epsilon) * end for end in self._one_way(-epsilon, reverse))
            return interval_around(low, _NORMAL)[0], interval_around(high, _NORMAL)[1]
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

    def _tails(self, epsilon: float, reverse: bool) -> Interval:
        from scipy.special import ndtr

        return float(ndtr(self.mu / 2 - epsilon / self.mu)), float(ndtr(-self.mu / 2 - epsilon / self.mu))

    def _mean(self, reverse: bool) -> Interval:
        return half_square(self.mu)

    def _renyi(self, order: float) -> Interval:
        low, high = half_square(self.mu)
        return min(order * low, sys.float_info.max) * (1 - 4 * ULP), order * high * (1 + 4 * ULP)

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """Compute log E exp(s (Z - E Z)) = s^2 mu^2 / 2 for the normal privacy loss Z."""
        return half_square(s * self.mu) if s else (0.0, 0.0)

    def _zcdp(self, xi: float, max_order: float) -> Interval:
        # (alpha mu^2/2 - xi)/alpha is monotone in the order: its supremum is at one of the two ends [BS, Prop 1.6].
        ends = [(rho if math.isinf(max_order) else rho - xi / max_order, rho - xi, 0.0) for rho in half_square(self.mu)]
        slack = _NORMAL * abs(xi)
        return max(ends[0]) - slack, max(ends[1]) + slack

    def _subgaussian(self) -> Interval:
        return interval_around(self.mu, _NORMAL)  # [DR, Cor 3.3]

    def moment(self, rate: float, power: arb, logs: int, bits: int) -> arb | None:
        """Return a ball around E M^power (log M)^logs, as of `loss_moments`; None if the sum would be too long."""
        return gaussian_moment(self.mu, rate, power, logs, bits)

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
        """Return the smallest noise that is (epsilon, delta)-DP [BW, Alg 1].

        This is the analytic Gaussian mechanism. epsilon >= 0 in nats, delta in (0, 1), `sensitivity` as above. sigma is
        within twelve digits of the smallest value, and rounded up. The delta of `pair` at epsilon, rounded up, is at
        most `delta`. Raises `InvalidInput` for values out of range.

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
        """The distribution of the noise."""
        return gaussian_noise(self.sigma)

    def restricted_kl(self) -> Guarantee:
        """Return the KL divergence restricted to affine features: the full one, mu^2/2 [CIM, Thm 10]."""
        return guarantee("restricted_kl", *half_square(self.mu), "[CIM, Thm 10]")

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.normal(0.0, self.sigma, shape)


gaussian = Gaussian


def gaussian_noise(sigma: float) -> Noise:
    """Return the law of normal noise of standard deviation `sigma`."""
    return Noise(normal_power, 1.0, sigma)


def normal_power(c: arb, power: arb) -> arb:
    """Return a ball around E|Y + c|^power for standard normal Y: Kummer's function."""
    from flint import arb

    half = power / 2
    return arb(2) ** half * (half + arb(0.5)).gamma() / arb.pi().sqrt() * (-c * c / 2).hypgeom_1f1(-half, arb(0.5))


MAXIMUM_STEPS = 50_000
"""The most steps of the density over which a moment of the noise is summed."""


@dataclass(frozen=True)
class Staircase(AdditiveNoise, epsilon=positive_epsilon, gamma=unit_interval):
    """The staircase mechanism of Geng et al. [GI, section VI-C]: a number plus noise whose density falls in steps.

    The density is symmetric. It is a on [0, gamma D) and a e^{-epsilon} on [gamma D, D), and falls by e^{-epsilon} with
    every further D. Here D is `sensitivity`, the largest distance between two answers; epsilon is in nats, and gamma in
    [0, 1].

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
        """Return two staircases, gamma <= 1/2 and >= 1/2, of total variation eta.

        eta lies in [(1 - e^{-epsilon})/2, tanh(epsilon/2)]; other values raise `InvalidInput`. The first staircase has
        less noise when epsilon is large, the second when it is small.

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
        low_gamma = min(q * (t - 1) / ((2 - t) * drop), 0.5)
        high_gamma = min(max((1 / t - q) / drop, 0.5), 1.0)
        return cls(epsilon, low_gamma, sensitivity), cls(epsilon, high_gamma, sensitivity)

    @property
    def eta(self) -> float:
        """The total variation, rounded up [GI, section VI-C]."""
        q, drop = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        weight = self.gamma * drop + q  # gamma + q (1 - gamma)
        return min(1.0, up(drop * (self.gamma * drop + weight if self.gamma < 0.5 else 1.0) / (2 * weight), 32))

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
        q, one_minus_q, g = math.exp(-self.epsilon), -math.expm1(-self.epsilon), self.gamma
        # |Y| = D (G + U): G geometric with ratio q, U on its first part with the odds g : q (1 - g).
        inner_probability = g / (g + q * (1 - g))
        geometric_mean, geometric_second_moment = q / one_minus_q, q * (1 + q) / one_minus_q**2
        uniform_mean = inner_probability * g / 2 + (1 - inner_probability) * (g + 1) / 2
        uniform_second_moment = inner_probability * g**2 / 3 + (1 - inner_probability) * (g**2 + g + 1) / 3
        return self.sensitivity**2 * (
            geometric_second_moment + 2 * geometric_mean * uniform_mean + uniform_second_moment
        )

    def density(self, y: Any) -> Any:
        """Compute the density of the noise at y."""
        steps = np.abs(np.asarray(y, dtype=np.float64)) / self.sensitivity
        step_number = np.floor(steps)
        return unwrap_scalar(self.height * np.exp(-self.epsilon * (step_number + (steps - step_number >= self.gamma))))

    @property
    def noise(self) -> Noise:
        """The distribution of the noise."""
        # Its moments are sums of at most `MAXIMUM_STEPS` terms, so epsilon must not be tiny.
        return Noise(self._power, self.variance / self.sensitivity**2, self.sensitivity)

    def _power(self, c: arb, power: arb) -> arb:
        """A ball around E|Y + c|^power in units of the sensitivity.

        The density falls at n + gamma only, n = 0, 1, ..., each time by the factor q = e^-epsilon. So the moment is
        the sum of these falls times the integral of |y + c|^power + |y - c|^power up to them.
        """
        from flint import arb, ctx

        e, g, exponent = arb(self.epsilon), arb(self.gamma), power + 1
        q = (-e).exp()
        aim = ctx.prec * math.log(2) + 8
        growth = float(exponent.mid()) + 1
        count = math.ceil((aim + growth * math.log(growth + aim)) / self.epsilon) + 2
        if count > MAXIMUM_STEPS:
            limit = f"at least {self.epsilon * count / MAXIMUM_STEPS:.2g} for this order"
            raise invalid("epsilon of a staircase", limit, self.epsilon)
        total, weight = arb(0), arb(1)
        for n in range(count):
            edge = g + n
            distance = edge - c
            power_of_distance = arb(0) if distance.contains(0) and distance.is_exact() else abs(distance) ** exponent
            total += weight * ((edge + c) ** exponent + (power_of_distance if distance > 0 else -power_of_distance))
            weight *= q
        edge = g + count
        last = 2 * weight * (edge + c) ** exponent
        ratio = q * ((edge + 1 + c) / (edge + c)) ** exponent
        rest = last / (1 - ratio) if ratio < 1 else arb("nan")
        height = (1 - q) / (2 * (g * (1 - q) + q))
        return (total + arb(0, rest.upper())) * height * (1 - q) / exponent

    def log_mgf(self, a: float) -> float:
        """Compute log E exp(a Y) of the noise Y; inf if |a| is epsilon/sensitivity or more."""
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
        """Compute the KL divergence restricted to affine features, in nats [CIM, Lemma 1].

        It is the supremum over a of a D - log E exp(a Y). The function of a is concave, so its values at three
        neighboring points, as balls, enclose the supremum.
        """
        from flint import arb
        from scipy.optimize import minimize_scalar

        def value(a: float) -> arb:
            return arb(a) - self._log_mgf(arb(a))

        def fall(best: float, a: float, _: int) -> arb:
            return value(best) - value(a)

        def rough(a: float) -> float:
            with precision(2 * START_BITS + GUARD_BITS):
                return -float(value(a).mid())

        options = {"xatol": 1e-10 * self.epsilon}
        minimum = minimize_scalar(rough, bounds=(0.0, self.epsilon), method="bounded", options=options)
        best = float(minimum.x)
        for step in BRACKET_STEPS:
            width = step * min(best, self.epsilon - best)
            falls = [enclosed(partial(fall, best, a)) for a in (best - width, best + width)]
            if min(low for low, _ in falls) >= 0:
                break
        else:
            raise SolverError("restricted KL divergence: the maximum of a concave function was not bracketed")
        low, high = enclosed(lambda _: value(best))
        # Concave: the maximum is at most as far above the middle value as a neighbor at one step is below it.
        return guarantee("restricted_kl", low, high + max(rise for _, rise in falls), "[CIM, Lemma 1]")

    def _log_mgf(self, a: arb) -> arb:
        """A ball around log E exp(a Y) in units of the sensitivity, for 0 < a < epsilon."""
        from flint import arb

        e, g = arb(self.epsilon), arb(self.gamma)
        q = (-e).exp()
        total = arb(0)
        for s in (a, -a):
            period = ((s * g).exp() - 1 + q * (s * g).exp() * ((s * (1 - g)).exp() - 1)) / s
            total += period / (1 - (s - e).exp())
        return (total * (1 - q) / (2 * (g * (1 - q) + q))).log()

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        q, g = math.exp(-self.epsilon), self.gamma
        step_number = rng.geometric(-math.expm1(-self.epsilon), shape) - 1.0
        in_first_part = rng.random(shape) < g / (g + q * (1 - g))
        place = np.where(in_first_part, g * rng.random(shape), g + (1 - g) * rng.random(shape))
        sign = rng.choice(np.array([-1.0, 1.0]), shape)
        return np.asarray(sign * self.sensitivity * (step_number + place))


staircase = Staircase
