"""One direction of a composed pair: the law of its privacy loss, with upper and lower bounds on delta.

Several Gaussian mechanisms lose as much together as one with mu = sqrt(sum mu_i^2) [DRS].
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ldpopt.composition.lattice import EXACT, WINDOW_CELLS, Rounding, atom_law, exact_lattice, finite_part, grid
from ldpopt.composition.laws import UNDERFLOW_ERROR, AtomLaw, LatticeLaw
from ldpopt.composition.parametric import ParametricPair, rare_error, union_up
from ldpopt.mechanisms.noise import GaussianPair
from ldpopt.numbers.rounding import ULP, bisected, down, exact_sum, float_down, float_up, up
from ldpopt.numbers.tolerances import GAUSSIAN_INFINITE
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

_CURVE_POINTS = 2049


@dataclass(frozen=True)
class GaussianLaw:
    """The normal law N(mu^2/2, mu^2) of the privacy loss of Gaussian noise, with mu between the floats low and high."""

    low: float
    high: float
    slack: float = 0.0
    relative: float = 0.0

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[GaussianPair, int]]) -> GaussianLaw:
        """Build the distribution of the total loss of Gaussian pairs with counts [DRS]."""
        # No adaptive choice exceeds it.
        counted_pairs = list(pairs)
        scale = math.ldexp(1.0, math.frexp(max(pair.mu for pair, _ in counted_pairs))[1])
        squares = sum(((Fraction(pair.mu) / Fraction(scale)) ** 2 * n for pair, n in counted_pairs), Fraction(0))
        mu = scale * math.sqrt(float(squares))
        return cls(down(mu, 4), up(mu, 4))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Compute delta and a bound on its error as `AtomLaw.delta`."""
        if math.isinf(epsilon):
            return 0.0, UNDERFLOW_ERROR
        low = GaussianPair(self.low).hockey_stick(epsilon).lower
        high = GaussianPair(self.high).hockey_stick(epsilon).value
        return high, high - low + UNDERFLOW_ERROR

    def bulk(self, epsilon: float) -> tuple[float, float]:
        """Compute delta and a bound on its error as `AtomLaw.bulk`."""
        return self.delta(epsilon)

    def atoms(self) -> tuple[Array, Array]:
        """Return losses and masses of a finite pair that dominates the distribution."""
        pair = self.finite_pair()
        in_both = (pair.p > 0) & (pair.q > 0)
        return pair.losses[in_both], pair.p[in_both]

    def epsilon(self, delta: float) -> float:
        """Find an epsilon as `AtomLaw.epsilon`, by bisection of the closed form."""
        if delta <= 0:
            return math.inf
        pair, low, high = GaussianPair(self.high), 0.0, 1.0
        while not pair.hockey_stick(high).value <= delta:
            low, high = high, 2 * high
            if high > 1e300:
                return math.inf
        return bisected(lambda epsilon: not pair.hockey_stick(epsilon).value <= delta, low, high, 4 * ULP)[1]

    def finite_pair(self) -> FinitePair:
        """Build a finite pair that dominates the distribution, with losses on a grid."""
        # For composition with other pairs.
        pair = GaussianPair(self.high)
        top = max(1e-9, min(1.0, self.high))
        while top < 600 and not pair.hockey_stick(top).value <= GAUSSIAN_INFINITE:
            top *= 1.1
        epsilons = np.linspace(0.0, min(top, 700.0), _CURVE_POINTS)
        return FinitePair.through(epsilons, np.array([min(pair.hockey_stick(float(e)).value, 1.0) for e in epsilons]))


Parts = tuple[tuple[FinitePair, int], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Direction(ByValue):
    """One direction of a composed pair: the distribution of its finite losses, the mass of infinite ones, and error
    bounds.

    - `infinite`, `infinite_upper` : the probability of infinite losses, and a float not below it.
    - `top` : a bound on the finite losses.
    - `drift`, `spread` : the noise that a grid adds to losses, as of `lattice.grid`.
    - `rare_slack` : a bound on the increase of the losses of rare outcomes.
    """

    law: AtomLaw | LatticeLaw | GaussianLaw
    infinite: float
    infinite_upper: float
    top: float
    drift: float = 0.0
    spread: float = 0.0
    rare_slack: float = 0.0

    @classmethod
    def from_pairs(cls, pairs: Parts, extra_rounding: Rounding = EXACT, cells: int = WINDOW_CELLS) -> Direction:
        """Compose pairs with counts in one direction.

        extra_rounding : additional rounding errors, of computed pairs.
        cells : approximate number of cells of a window, if losses are split on a grid.
        """
        log_finite = math.fsum(count * math.log1p(-min(pair.infinite, 1.0)) if pair.infinite < 1 else -math.inf
                               for pair, count in pairs)  # fmt: skip
        infinite = -math.expm1(log_finite)
        if infinite == 1.0:
            return cls(AtomLaw(np.zeros(1), np.zeros(1), 0.0), 1.0, 1.0, 0.0)
        infinite_upper, top = union_up([(infinite_mass(pair), count) for pair, count in pairs]), largest_loss(pairs)[1]
        parts, rounding = (
            [(*finite_part(pair), count) for pair, count in pairs],
            Rounding.from_pairs(pairs, extra_rounding),
        )
        law = atom_law(parts, rounding) or exact_lattice(parts, rounding)
        rare_slack = 2 * math.fsum(count * rare_error(pair) for pair, count in pairs)
        if law is not None:
            return cls(law, infinite, infinite_upper, top, rare_slack=rare_slack)
        law, drift, spread = grid(parts, cells, rounding=rounding)
        return cls(law, infinite, infinite_upper, top, drift, spread, rare_slack)

    def up_to(self, top: float) -> Direction:
        """Return the same direction with a bound on the losses of at least `top`."""
        return replace(self, top=max(self.top, top))

    @property
    def slack(self) -> float:
        """The increase of losses that covers rounding."""
        return self.law.slack

    @property
    def relative(self) -> float:
        """The relative increase of delta that covers rounding."""
        return self.law.relative

    def upper(self, epsilon: float) -> float:
        """Bound delta at epsilon from above."""
        return self._total_upper(epsilon, *self.law.delta(epsilon - self.slack))

    def bulk(self, epsilon: float) -> float:
        """Bound delta as `upper`, faster, but with an absolute error of about 1e-14."""
        return self._total_upper(epsilon, *self.law.bulk(epsilon - self.slack))

    def _total_upper(self, epsilon: float, value: float, error: float) -> float:
        if epsilon >= self.top:
            return self.infinite_upper
        return min(1.0, up(self.infinite_upper + UNDERFLOW_ERROR + (value + error) * (1 + self.relative), 64))

    def lower(self, epsilon: float) -> float:
        """Bound delta at epsilon from below; on a grid, by the better of two bounds."""
        if self.spread == 0:
            value, error = self.law.delta(epsilon + self.slack + self.rare_slack)
            return down(max(0.0, self.infinite - UNDERFLOW_ERROR + (value - error) * (1 - self.relative)), 64)
        finite = max(0.0, self._shifted(epsilon), self._at_kink(epsilon))
        return down(max(0.0, self.infinite - UNDERFLOW_ERROR + finite * (1 - self.relative)), 64)

    def _shifted(self, epsilon: float) -> float:
        """delta of the finite losses less a small chance, beyond the grid's noise except with that chance."""
        bound = 0.0
        for share in (1e-2, 1e-6):
            chance = share * self.law.delta(epsilon)[0]
            if chance > 0:
                value, error = self.law.delta(epsilon + self.shift(chance))
                bound = max(bound, value - error - chance)
        return bound

    def _at_kink(self, epsilon: float) -> float:
        """delta of the finite losses less the largest gain from splitting, which affects only losses near epsilon.

        Under p, e^-loss is a martingale of the splits, and (1 - e^epsilon e^-loss)_+ is linear but for its kink. So
        each loss within the sum w of all spacings from the kink gains at most 1 - e^-w, and others gain nothing.
        """
        start = epsilon + self.slack + self.rare_slack
        if not isinstance(self.law, LatticeLaw) or start >= self.law.ends[1] * self.law.spacing:
            return 0.0
        reach = self.law.spacing * sum(count for _, _, count in self.law.parts)
        value, error = self.law.delta(start)
        return value - error + math.expm1(-reach) * self.law.chance(start - 2 * reach, start + 2 * reach)

    def shift(self, chance: float) -> float:
        """Bound the increase of losses that occurs with probability 1 - `chance` (Hoeffding)."""
        return self.slack + self.rare_slack + self.drift + math.sqrt(self.spread * math.log(1 / chance) / 2)

    def epsilon(self, delta: float) -> float:
        """Find an epsilon, close to the smallest, with a delta of at most `delta`; inf for none."""
        if delta < self.infinite_upper:
            return math.inf
        # The remaining delta for finite losses is a difference of floats, accurate to an ulp of delta.
        finite_delta = (delta - self.infinite_upper) / (1 + self.relative + 128 * ULP) - (
            2 * ULP * delta if self.infinite_upper > 0 else 0.0
        )
        if finite_delta <= UNDERFLOW_ERROR:  # products of masses that are so small may have underflowed
            return self.top
        epsilon_of_law = self.law.epsilon(finite_delta - UNDERFLOW_ERROR) + self.slack
        return min(up(max(0.0, epsilon_of_law), 16), self.top)


def infinite_mass(pair: FinitePair) -> Fraction:
    """Compute the probability of an infinite loss: exact for a parametric pair, else rounded up.

    Masses divided by a sum near 1 before are accurate to 4 units in the last place, but subnormal ones have few digits.
    """
    if isinstance(pair, ParametricPair):
        return Fraction(pair.delta)
    masses = pair.p[(pair.q == 0) & (pair.p > 0)]
    mass = exact_sum(masses) * (1 + Fraction(8 * ULP))
    return mass + Fraction(UNDERFLOW_ERROR) if (masses < 2.0**-1000).any() else mass


def variation(pair: FinitePair) -> float:
    """Bound the total variation of a pair from above."""
    # The margin exceeds the rounding of the masses, 4 units in the last place.
    if isinstance(pair, ParametricPair):
        return min(1.0, up(pair.delta + (1 - pair.delta) * pair.not_erased * math.tanh(pair.epsilon / 2), 8))
    return min(1.0, up(pair.total_variation().value, 128) + 8 * ULP) if pair.losses.any() else 0.0


def largest_loss(parts: Parts) -> tuple[float, float]:
    """Bound the largest finite total loss; parametric pairs give bounds one rounding apart."""
    exact_sum, low, high = Fraction(0), 0.0, 0.0
    for pair, count in parts:
        finite = pair.losses[np.isfinite(pair.losses)]
        largest = float(finite.max(initial=-math.inf))
        if math.isinf(largest):
            continue
        if isinstance(pair, ParametricPair):
            exact_sum += Fraction(largest) * count
            continue
        slack = count * ULP * (16 + 16 * abs(largest)) + count * rare_error(pair) if finite.any() else 0.0
        low, high = low + count * largest - slack, high + count * largest + slack
    if not (low or high):
        return float_down(exact_sum), float_up(exact_sum)
    return down(max(0.0, float(exact_sum) + low), 64), up(max(0.0, float(exact_sum) + high), 64)
