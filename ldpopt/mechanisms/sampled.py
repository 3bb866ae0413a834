"""Poisson sampling before Gaussian or Laplace noise: r p + (1 - r) q against q, with every measure enclosed.

p is the release with a person's answer, q the release without it, and r the probability that the person takes part.
Reflection exchanges p and q, so the divergence from the mixture to q is never below the one from q to the mixture, at
every order [MTZ, Thm 5].
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

from ldpopt.errors import invalid
from ldpopt.mechanisms.continuous_pair import ContinuousPair, Interval, positive_rate, sampled_epsilon, sampled_log
from ldpopt.numbers.enclosures.adaptive import enclosed
from ldpopt.numbers.rounding import SUBNORMAL, ULP, float_up, up

if TYPE_CHECKING:
    from flint import arb

FAR_ORDER = 4096.0
"""Beyond this order, a sampled Gaussian's divergence counts as that of the noise alone."""

MAX_SLOPES, SLOPE_GAP = 100, 1e-9
"""The most orders at which a supremum over orders is refined, and the relative gap at which it is found."""


CLOSED_FORM_RTOL = 1e-13
"""Bounds in closed form at most this relative distance apart need no sum."""


class SymmetricPair(ContinuousPair):
    """A pair that one number determines, and that a reflection exchanges: both directions are alike."""

    enclosed: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True

    _parameter: ClassVar[str] = "epsilon"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._parameter}={getattr(self, self._parameter)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def subsampled(self, rate: float) -> Self | SampledPair:
        """Return the pair after Poisson sampling, r p + (1 - r) q against q, where r = `rate` lies in (0, 1] [ZDW].

        >>> from ldpopt.mechanisms.noise import GaussianPair
        >>> round(GaussianPair(1 / 5).subsampled(0.01).renyi(256).value, 6)
        0.500531
        """
        share = positive_rate(rate)
        return self if share == 1 else SampledPair(self, share)

    def moment(self, rate: float, power: arb, logs: int, bits: int) -> arb | None:
        """Return a ball around E M^power (log M)^logs, as of `loss_moments`; None if the sum would be too long."""
        raise NotImplementedError


class SampledPair(ContinuousPair):
    """A Gaussian or Laplace pair after Poisson sampling: p' = r p + (1 - r) q against q' = q.

    Parameters
    ----------
    base : The pair of the noise, a `GaussianPair` or `LaplacePair`.
    rate : R in (0, 1), the probability that a person takes part.

    >>> from ldpopt.mechanisms.noise import LaplacePair
    >>> sampled = LaplacePair(1.0).subsampled(0.1)
    >>> round(sampled.epsilon, 9), round(float(sampled.total_variation()), 9)  # log(1 + (e - 1)/10), eta/10
    (0.158565079, 0.039346934)
    """

    enclosed: ClassVar[bool] = True

    base: SymmetricPair
    rate: float

    def __init__(self, base: SymmetricPair, rate: float) -> None:
        share = positive_rate(rate)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "rate", share)
        if share == 1:
            raise invalid("rate", "a number in (0, 1); the base itself is the pair at 1", share)
        sampled_log_p, largest = sampled_log(base.log_p, base.log_q, share), sampled_epsilon(base.epsilon, share)
        super().__init__(sampled_log_p, base.log_q, base.edges, largest)

    def __repr__(self) -> str:
        return f"SampledPair({self.base!r}, rate={self.rate!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampledPair) and (other.base, other.rate) == (self.base, self.rate)

    def __hash__(self) -> int:
        return hash((self.base, self.rate))

    def subsampled(self, rate: float) -> SampledPair:
        """Return the pair after sampling once more: a person takes part with the product of the rates, rounded up."""
        return SampledPair(self.base, min(float_up(Fraction(self.rate) * Fraction(positive_rate(rate))), self.rate))

    def _one_way(self, epsilon: float, reverse: bool) -> Interval:
        # With E = e^epsilon: r p + (1 - r) q - E q = r (p - (1 + (E - 1)/r) q), and
        # q - E (r p + (1 - r) q) = c (q - (E r/c) p) with c = 1 - E (1 - r) [ZDW].
        r = self.rate
        low, high = _inner(-epsilon if reverse else epsilon, r)
        if reverse:
            low, high = -high, -low
            if low == math.inf:
                return 0.0, 0.0
            growth = math.exp(min(epsilon, 700.0))
            factor = r * growth - math.expm1(min(epsilon, 700.0))
            error = 8 * ULP * (r * growth + abs(math.expm1(min(epsilon, 700.0))))
        else:
            factor, error = r, 0.0
            if high == -math.inf:  # the density of the mixture exceeds e^epsilon q everywhere
                return -math.expm1(epsilon) * (1 - 8 * ULP), -math.expm1(epsilon) * (1 + 8 * ULP)
        base_lower = self.base._one_way(high, False)[0] if high < math.inf else 0.0
        base_upper = self.base._one_way(low, False)[1] if low > -math.inf else 1.0
        upper = (factor + error) * base_upper * (1 + 4 * ULP)
        return max(factor - error, 0.0) * base_lower * (1 - 4 * ULP), max(upper, SUBNORMAL) if base_upper > 0 else 0.0

    def _tails(self, epsilon: float, reverse: bool) -> Interval | None:
        # The mixture's loss log(1 + r (e^l - 1)) grows with l = log p/q, and reflection turns l into -l.
        inner = sum(_inner(-epsilon if reverse else epsilon, self.rate)) / 2
        tails = self.base._tails(-inner if reverse else inner, False)
        if tails is None:
            return None
        first, second = tails
        r = self.rate
        return (first, r * second + (1 - r) * first) if reverse else (r * first + (1 - r) * second, second)

    def _largest(self, reverse: bool) -> float:
        """The largest loss in one direction: -log(1 - r + r e^-epsilon) from q to the mixture."""
        if not reverse:
            return self.epsilon
        return up(-math.log1p(self.rate * math.expm1(-self.base.epsilon)), 16)

    def _log_moment(self, power: float) -> Interval:
        """An interval that holds log E M^power."""
        if power in (0.0, 1.0):
            return 0.0, 0.0
        low, high = self._closed_form_bounds(power)
        if high - low <= CLOSED_FORM_RTOL * abs(high):
            return low, high
        inner = enclosed(lambda bits: self._moment(exactly(power), 0, bits).log())
        return max(low, inner[0]), min(high, inner[1])

    def _moment(self, power: arb, logs: int, bits: int) -> arb:
        """A ball around E M^power (log M)^logs; of every number if the sum would be too long."""
        ball = self.base.moment(self.rate, power, logs, bits)
        return exactly(math.nan) if ball is None else ball

    @cached_property
    def _means(self) -> dict[tuple[bool, int], arb]:
        return {}

    def _mean_ball(self, reverse: bool, bits: int) -> arb:
        if (reverse, bits) not in self._means:
            mean = -self._moment(exactly(0), 1, bits) if reverse else self._moment(exactly(1), 1, bits)
            self._means[reverse, bits] = mean
        return self._means[reverse, bits]

    def _closed_form_bounds(self, power: float) -> Interval:
        """Bounds on log E M^power in closed form: E M = 1 and convexity; for a power above 1, the norm of the mixture.

        (E M^a)^(1/a) is at most 1 - r + r (E e^(a l))^(1/a), and M is at least r e^l.
        """
        if power < 0:
            return 0.0, -power * _log_rest(self.rate)
        if power < 1:
            return -math.inf, 0.0
        low, high = (end * (power - 1) for end in self.base._renyi(power))
        floor = low + power * math.log(self.rate) - 8 * ULP * (low + power * abs(math.log(self.rate)))
        high_per_power = high / power
        norm = (
            high_per_power + math.log(self.rate + (1 - self.rate) * math.exp(-high_per_power))
            if high_per_power > 1
            else math.log1p(self.rate * math.expm1(high_per_power))
        )
        ceiling = norm * power * (1 + 64 * ULP) + 64 * ULP * high
        return max(floor, 0.0), min(ceiling, high)

    def _renyi(self, order: float) -> Interval:
        if order == 1:
            return self._mean(False)
        low, high = self._log_moment(order)
        top = self.base._renyi(order)[1]
        return max(low / (order - 1) * (1 - 8 * ULP), 0.0), min(high / (order - 1) * (1 + 8 * ULP), top)

    def _mean(self, reverse: bool) -> Interval:
        low, high = enclosed(lambda bits: self._mean_ball(reverse, bits))
        return max(low, 0.0), min(high, self.base._renyi(1.0)[1])

    def _variance(self, reverse: bool) -> Interval:
        power = 0 if reverse else 1
        low, high = enclosed(lambda bits: self._moment(exactly(power), 2, bits) - self._mean_ball(reverse, bits) ** 2)
        return max(low, 0.0), high

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """Return an interval that holds log E exp(s (Z - E Z)), for the privacy loss Z = log p'/q' under p'.

        With `reverse`, Z is log q'/p' under q'.
        """
        if s == 0:
            return 0.0, 0.0

        def formula(bits: int) -> arb:
            power = exactly(-s) if reverse else 1 + exactly(s)  # in floats, 1 + s would lose digits of a small s
            return self._moment(power, 0, bits).log() - s * self._mean_ball(reverse, bits)

        low, high = enclosed(formula)
        if not math.isfinite(high):
            (moment_low, moment_high), means = (
                self._log_moment(-s if reverse else 1 + s),
                [s * end for end in self._mean(reverse)],
            )
            low, high = moment_low - max(means), moment_high - min(means)
        return max(low, 0.0), high

    def _zcdp(self, xi: float, max_order: float) -> Interval:
        if math.isfinite(self.epsilon):
            return super()._zcdp(xi, max_order)
        # D never exceeds that of the noise alone, and comes near it, relatively, at large orders.
        low, high = self.base._zcdp(xi, max_order)
        if math.isinf(max_order) and xi >= 0:
            return low, high
        return self._largest_slope(xi, max_order, high)

    def _largest_slope(self, xi: float, max_order: float, ceiling: float) -> Interval:
        """Bounds on the supremum of (D - xi)/order below `max_order`, or below an order beyond which the noise decides.

        L(u) = u D at the order 1 + u is convex, and 0 at 0, so it lies below its chords. Beyond the last order,
        D/order is at most that of the noise alone, which it comes near.
        """
        is_unbounded = math.isinf(max_order)
        last = FAR_ORDER if is_unbounded else max_order - 1
        best = max(self._mean(False)[0] - xi, self.base._zcdp(0.0, math.inf)[0] if is_unbounded else 0.0, 0.0)
        slope_beyond = self.base._zcdp(0.0, math.inf)[1] - min(xi / last, 0.0) if is_unbounded else 0.0
        tops = {0.0: 0.0}  # the upper ends of L
        for u in [last * 2.0**-k for k in (48, 24, 12, 6, 3, 1, 0)]:
            low, high = self._renyi(1 + u) if 1 + u > 1 else (0.0, self._renyi(1 + last * 2.0**-24)[1])
            tops[u] = u * high * (1 + 8 * ULP)
            best = max(best, (low - xi) / (1 + u))
        intervals = [(-_slope_above(a, b, tops, xi), a, b) for a, b in pairwise(sorted(tops))]
        heapify(intervals)
        for _ in range(MAX_SLOPES):
            bound, a, b = intervals[0]
            if -bound <= max(best, slope_beyond) * (1 + SLOPE_GAP):
                break
            heappop(intervals)
            middle = math.sqrt(a * b) if a > 0 else b / 2
            low, high = self._renyi(1 + middle)
            tops[middle] = middle * high * (1 + 8 * ULP)
            best = max(best, (low - xi) / (1 + middle))
            for ends in ((a, middle), (middle, b)):
                heappush(intervals, (-_slope_above(*ends, tops, xi), *ends))
        return best, max(min(max(-intervals[0][0], slope_beyond), ceiling), best)

    def _subgaussian(self) -> Interval:
        if math.isfinite(self.epsilon):
            return super()._subgaussian()
        # The upper tail of the loss is that of the noise alone.
        variance = max(self._variance(False)[0], self._variance(True)[0], 0.0)
        return max(math.sqrt(variance), self.base._subgaussian()[0]), math.inf


def exactly(value: float) -> arb:
    """Return a float as a ball without width."""
    from flint import arb

    return arb(value)


def _slope_above(a: float, b: float, tops: dict[float, float], xi: float) -> float:
    """A bound on (L(u)/u - xi)/(1 + u) over a <= u <= b, by the chord of L between the two."""
    rise = (tops[b] - tops[a]) / (b - a)
    start = min(tops[a] - rise * a, 0.0)
    slack = 1 + 64 * ULP * (1 + b / (b - a))
    level = rise * slack - xi if rise > 0 else -xi
    if a == 0:
        return max(level, level / (1 + b))

    def slope_at(u: float) -> float:
        return (level + start / u) / (1 + u)

    inner = start * start - level * start  # where the derivative vanishes: level u^2 + 2 start u + start = 0
    roots = [(-start + sign * math.sqrt(inner)) / level for sign in (-1, 1)] if inner >= 0 and level != 0 else []
    return max(map(slope_at, (a, b, *(root for root in roots if a < root < b))))


def _log_rest(rate: float) -> float:
    """-log(1 - rate), rounded up."""
    return up(-math.log1p(-rate), 8) if rate < 1 else math.inf


def _inner(epsilon: float, rate: float) -> Interval:
    """An interval that holds log(1 + (e^epsilon - 1)/rate); -inf where that is not positive."""
    if epsilon > 1:
        value = epsilon + math.log1p(-(1 - rate) * math.exp(-epsilon)) - math.log(rate)
        error = 16 * ULP * (epsilon + abs(math.log(rate)) + 1)
        return value - error, value + error
    part = math.expm1(epsilon) / rate
    unsure = 8 * ULP * abs(part)
    if part + unsure <= -1:
        return -math.inf, -math.inf
    ends = (part - unsure, part + unsure)
    low = math.log1p(ends[0]) if ends[0] > -1 else -math.inf
    high = math.log1p(ends[1])
    error = 4 * ULP * abs(high)
    return low - 4 * ULP * abs(low) if low > -math.inf else low, high + error
