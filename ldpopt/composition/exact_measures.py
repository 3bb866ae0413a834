"""Exact privacy measures of one mechanism in ball arithmetic, and sums of them that are compared with a budget.

A float is taken as exact: a row of a channel is the distribution of its entries, divided by their exact sum. Every
measure is a ball that holds the exact number [ARB]. A comparison that a ball leaves open is repeated with more bits.
A budget that is met by equality is a float, hence rational, while a logarithm of a rational number other than 1 is
irrational. So a sum of losses is finally distinguished from every budget.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np

from ldpopt.numbers.enclosures.exact import precision
from ldpopt.numbers.rounding import exact_sum, float_down, float_up
from ldpopt.values.distribution import Array

Ball: TypeAlias = Any
"""An `arb` of python-flint; or a `Fraction`, where a rational number may tie with a budget."""

PRECISION_BITS = (128, 512, 2048)
"""Successive precisions of a comparison, in bits."""
MAX_TERMS = 4096
"""A measure that needs more terms (pairs of inputs times outputs) is not computed in balls."""
CANDIDATE_GAP = 1e-9
"""Log-ratios this far below the largest one, relative to it, are not candidates for the largest loss."""


def ball(value: Fraction | float | int) -> Ball:
    """Convert the number to a ball, without a radius where the precision suffices."""
    from flint import arb, fmpq

    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def interval(low: float, high: float) -> Ball:
    """Build a ball that holds the numbers from `low` to `high`."""
    return ball(low) if low == high else ball(low).union(ball(high))


def total_of(numbers: Iterable[tuple[Ball, int]]) -> Ball:
    """Sum numbers with counts; the sum is a `Fraction` if all numbers are."""
    rational, other = Fraction(0), None
    for number, n in numbers:
        if isinstance(number, Fraction):
            rational += number * n
        else:
            other = n * number if other is None else other + n * number
    return rational if other is None else other + ball(rational)


def float_ends(number: Ball) -> tuple[float, float]:
    """Return the largest float not above a ball, and the smallest not below it."""
    if isinstance(number, Fraction):
        return float_down(number), float_up(number)
    return _exact_end(number.lower(), -math.inf, float_down), _exact_end(number.upper(), math.inf, float_up)


def _exact_end(end: Ball, unknown: float, round_outward: Callable[[Fraction], float]) -> float:
    if not end.is_finite():
        return math.inf if end > 0 else unknown
    mantissa, exponent = (int(part) for part in end.man_exp())
    if mantissa == 0:
        return 0.0
    size = abs(mantissa).bit_length() + exponent
    if abs(size) > 2000:  # beyond the range of floats, on either side
        exponent = int(math.copysign(2000, size)) - abs(mantissa).bit_length()
    return round_outward(Fraction(mantissa) * Fraction(2) ** exponent)


def certainly_at_most(value: Callable[[], Ball], budget: Fraction | float) -> bool:
    """Return True if the exact number is proved to be at most the budget; `value` computes it at the set precision."""
    if budget == math.inf:
        return True
    for bits in PRECISION_BITS:
        with precision(bits):
            number, limit = value(), ball(budget)
            if isinstance(number, Fraction):
                return number <= Fraction(budget)
            if number <= limit:
                return True
            if number > limit:
                return False
    return False


class ExactMeasures(ABC):
    """The measures of one mechanism as balls at the set precision, each over the worst pair of inputs.

    A measure is None where it has too many terms.
    """

    @property
    @abstractmethod
    def largest_loss(self) -> Loss:
        """The pure epsilon."""

    @abstractmethod
    def total_variation(self) -> Ball | None:
        """Compute the total variation distance eta."""

    @abstractmethod
    def renyi(self, order: float) -> Ball | None:
        """Compute the Rényi divergence of an order in [1, inf), in nats."""

    @abstractmethod
    def hockey_stick(self, epsilon: float) -> Ball | None:
        """Compute the delta at `epsilon` >= 0."""

    def rho(self) -> Ball | None:
        """Compute the smallest rho with rho-zCDP, if a closed form is known."""
        return None


@dataclass(frozen=True)
class Loss:
    """A pure epsilon in nats: `rational` plus the logarithm of `ratio`; infinite if `ratio` is None."""

    rational: Fraction = Fraction(0)
    ratio: Fraction | None = Fraction(1)


INFINITE = Loss(ratio=None)


def loss_total(losses: Sequence[tuple[Loss, int]]) -> Callable[[], Ball] | None:
    """Sum losses with counts, as a function for `certainly_at_most`; None if infinite."""
    if any(loss.ratio is None for loss, _ in losses):
        return None
    rationals = [(loss.rational, n) for loss, n in losses]
    ratios = [(loss.ratio, n) for loss, n in losses if loss.ratio is not None and loss.ratio != 1]
    return lambda: total_of([*rationals, *((ball(ratio).log(), n) for ratio, n in ratios)])


def loss_ends(losses: Sequence[tuple[Loss, int]]) -> tuple[float, float]:
    """Return floats around the sum of losses with counts."""
    total = loss_total(losses)
    if total is None:
        return math.inf, math.inf
    with precision(PRECISION_BITS[0]):
        return float_ends(total())


@dataclass(frozen=True, eq=False)
class MatrixMeasures(ExactMeasures):
    """The measures of a channel: a float matrix (k, m), or one of fractions."""

    matrix: Any

    @cached_property
    def _key(self) -> Hashable:
        """A key that is equal for equal matrices."""
        exact = self.matrix.dtype == object
        return self.matrix.shape, tuple(self.matrix.ravel().tolist()) if exact else self.matrix.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixMeasures) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _sums(self) -> list[Fraction]:
        if self.matrix.dtype == object:
            return [sum(row, Fraction(0)) for row in self.matrix.tolist()]
        return [exact_sum(row) for row in self.matrix]

    @cached_property
    def _pairs(self) -> list[tuple[list[tuple[Fraction, Fraction]], bool]] | None:
        """The positive masses of each different ordered pair of rows, and whether a loss is infinite."""
        k, m = self.matrix.shape
        if k * (k - 1) * m > MAX_TERMS:
            return None
        rows = [
            [Fraction(entry) / total for entry in row]
            for row, total in zip(self.matrix.tolist(), self._sums, strict=True)
        ]
        different: dict[tuple[tuple[Fraction, Fraction], ...], bool] = {}
        for p, q in permutations(rows, 2):
            masses = tuple(sorted((a, b) for a, b in zip(p, q, strict=True) if a or b))
            different[masses] = any(a and not b for a, b in masses)
        return [(list(masses), infinite) for masses, infinite in different.items()]

    @cached_property
    def largest_loss(self) -> Loss:
        """The pure epsilon: the largest ratio of two entries of a column."""
        values = self.matrix.astype(np.float64)
        used_outputs = np.flatnonzero((self.matrix > 0).any(axis=0))
        if (self.matrix[:, used_outputs] == 0).any():
            return INFINITE
        logs = np.log(values[:, used_outputs]) - np.log([float(total) for total in self._sums])[:, None]
        if not np.isfinite(logs).all():  # fractions below the range of floats
            logs, gap = np.zeros_like(logs), math.inf
        else:
            gap = CANDIDATE_GAP * (1 + float(np.abs(logs).max()))
        spread = np.ptp(logs, axis=0)
        largest, compared_pairs = Fraction(1), set()
        for column in np.flatnonzero(spread >= spread.max(initial=0.0) - gap):
            high, low = logs[:, column] >= logs[:, column].max() - gap, logs[:, column] <= logs[:, column].min() + gap
            entries = self.matrix[:, used_outputs[column]].tolist()
            top, bottom = (
                frozenset((entries[x], self._sums[x]) for x in np.flatnonzero(extreme)) for extreme in (high, low)
            )
            if (top, bottom) not in compared_pairs:
                compared_pairs.add((top, bottom))
                largest = max(largest, max(_quotients(top)) / min(_quotients(bottom)))
        return Loss(ratio=largest)

    def total_variation(self) -> Ball | None:
        """Compute the largest half of a sum of absolute differences, a rational number."""
        if self._pairs is None:
            return None
        return max((self._distance(masses) for masses, _ in self._pairs), default=Fraction(0))

    @staticmethod
    def _distance(masses: list[tuple[Fraction, Fraction]]) -> Fraction:
        return sum((a - b for a, b in masses if a > b), Fraction(0))

    def renyi(self, order: float) -> Ball | None:
        """Compute log sum p^order q^(1 - order) / (order - 1), the largest over pairs."""
        # At order 1 it is sum p log p/q.
        if self._pairs is None:
            return None
        if any(infinite for _, infinite in self._pairs):
            return ball(math.inf)
        return _largest([_divergence(masses, order) for masses, _ in self._pairs])

    def hockey_stick(self, epsilon: float) -> Ball | None:
        """Compute the largest sum of (p - e^epsilon q)_+."""
        if self._pairs is None:
            return None
        ratio = ball(epsilon).exp()
        return _largest(
            [
                sum(((ball(a) - ratio * ball(b)).nonnegative_part() for a, b in masses), ball(0))
                for masses, _ in self._pairs
            ]
        )


def _quotients(entries: frozenset[tuple[Any, Fraction]]) -> list[Fraction]:
    return [Fraction(entry) / total for entry, total in entries]


def _largest(values: list[Ball]) -> Ball:
    largest = ball(0)
    for value in values:
        largest = largest.max(value)
    return largest


def _divergence(masses: list[tuple[Fraction, Fraction]], order: float) -> Ball:
    terms = [(ball(a), ball(b)) for a, b in masses if a]
    if order == 1:
        return sum((a * (a / b).log() for a, b in terms), ball(0))
    alpha = ball(order)
    return sum((a**alpha * b ** (1 - alpha) for a, b in terms), ball(0)).log() / (alpha - 1)


@dataclass(frozen=True)
class ClaimMeasures(ExactMeasures):
    """The measures of the pair that dominates every (epsilon, delta)-DP and eta-TV mechanism [GI, Thm 2]."""

    epsilon: float
    delta: float
    eta: float | None = None

    @property
    def _infinite_mass(self) -> Fraction:
        return Fraction(self.delta if self.eta is None else min(self.delta, self.eta))

    @property
    def _erases_all(self) -> bool:
        return (
            self.epsilon == 0
            or self._infinite_mass == 1
            or (self.eta is not None and Fraction(self.eta) == self._infinite_mass)
        )

    def _kept_mass(self) -> Ball:
        """The probability that the pair is not erased, given that no loss is infinite."""
        if self._erases_all:
            return ball(0)
        if self.eta is None:
            return ball(1)
        implied_eta = (1 - ball(self._infinite_mass)) * (ball(self.epsilon) / 2).tanh()
        return ((ball(self.eta) - ball(self._infinite_mass)) / implied_eta).min(ball(1))

    @property
    def largest_loss(self) -> Loss:
        """epsilon itself, unless no report tells anything."""
        if self._infinite_mass > 0:
            return INFINITE
        return Loss(rational=Fraction(0 if self._erases_all else self.epsilon))

    def total_variation(self) -> Ball:
        """Compute the smaller of eta and delta + (1 - delta) tanh(epsilon/2)."""
        delta = ball(self._infinite_mass)
        implied_eta = delta + (1 - delta) * (ball(self.epsilon) / 2).tanh()
        return implied_eta if self.eta is None else implied_eta.min(ball(self.eta))

    def renyi(self, order: float) -> Ball:
        """Compute the divergence of erased randomized response; infinite with a delta."""
        if self._infinite_mass > 0:
            return ball(math.inf)
        epsilon, kept_mass, alpha = ball(self.epsilon), self._kept_mass(), ball(order)
        if order == 1:
            return kept_mass * epsilon * (epsilon / 2).tanh()
        moment = ((alpha * epsilon).exp() + ((1 - alpha) * epsilon).exp()) / (1 + epsilon.exp())
        return ((1 + kept_mass * (moment - 1)).log() / (alpha - 1)).min(epsilon)

    def hockey_stick(self, epsilon: float) -> Ball:
        """Compute delta plus the contribution of the finite losses."""
        delta, ratio = ball(self._infinite_mass), ball(self.epsilon).exp()
        over = (ratio - ball(epsilon).exp()).nonnegative_part() / (1 + ratio)
        return delta + (1 - delta) * self._kept_mass() * over

    def rho(self) -> Ball | None:
        """Compute epsilon tanh(epsilon/2), if nothing is erased [BS, Prop 1.4; KOV15]."""
        if self._erases_all and not self._infinite_mass:
            return Fraction(0)
        return None if self._infinite_mass > 0 or self.eta is not None else self.renyi(1.0)


@dataclass(frozen=True)
class LaplaceMeasures(ExactMeasures):
    """The measures of Laplace noise with a parameter epsilon [GI, section VI-A; M, Table II]."""

    epsilon: float

    @property
    def largest_loss(self) -> Loss:
        """epsilon."""
        return Loss(rational=Fraction(self.epsilon))

    def total_variation(self) -> Ball:
        """Compute 1 - e^(-epsilon/2)."""
        return -(-ball(self.epsilon) / 2).expm1()

    def renyi(self, order: float) -> Ball:
        """Compute the closed form of [M, Table II]."""
        epsilon, alpha = ball(self.epsilon), ball(order)
        if order == 1:
            return epsilon + (-epsilon).expm1()
        up, down = ((alpha - 1) * epsilon).exp(), (-alpha * epsilon).exp()
        return ((alpha * up + (alpha - 1) * down) / (2 * alpha - 1)).log() / (alpha - 1)

    def hockey_stick(self, epsilon: float) -> Ball:
        """Compute 1 - e^((t - epsilon)/2) at t = `epsilon`, or 0 if it is negative."""
        return (-((ball(epsilon) - ball(self.epsilon)) / 2).expm1()).nonnegative_part()


@dataclass(frozen=True)
class GaussianMeasures(ExactMeasures):
    """The measures of Gaussian noise; `square` is the exact mu^2, the squared sensitivity over the variance."""

    square: Fraction

    @property
    def largest_loss(self) -> Loss:
        """Infinite."""
        return INFINITE

    def total_variation(self) -> Ball:
        """Compute 2 Phi(mu/2) - 1 = erf(mu/sqrt 8) [GI, eq. 17]."""
        return (ball(self.square) / 8).sqrt().erf()

    def renyi(self, order: float) -> Ball:
        """Compute the order times mu^2/2 [BS, Prop 1.6]."""
        return Fraction(order) * self.square / 2

    def hockey_stick(self, epsilon: float) -> Ball:
        """Compute Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) [BW]."""
        mu, level, root = ball(self.square).sqrt(), ball(epsilon), ball(2).sqrt()
        low, high = level / mu - mu / 2, level / mu + mu / 2
        return ((low / root).erfc() - level.exp() * (high / root).erfc()) / 2

    def rho(self) -> Ball:
        """Compute mu^2/2, exactly."""
        return self.square / 2


@lru_cache(maxsize=4096)
def divergence_ends(measures: ExactMeasures, order: float) -> tuple[float, float] | None:
    """Return floats around the Rényi divergence of an order; None where too long to compute."""
    # Correctly rounded in nearly all cases.
    with precision(PRECISION_BITS[0]):
        value = measures.renyi(order)
        return None if value is None else float_ends(value)


def as_fractions(p: Sequence[Fraction], q: Sequence[Fraction]) -> Array:
    """Convert two distributions of fractions to a matrix for `MatrixMeasures`."""
    rows = np.empty((2, len(p)), dtype=object)
    rows[0], rows[1] = p, q
    return rows
