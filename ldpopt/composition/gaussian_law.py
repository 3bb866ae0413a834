"""The privacy loss of several Gaussian mechanisms together: that of one with mu = sqrt(sum mu_i^2) [DRS]."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ldpopt.composition.laws import UNDERFLOW
from ldpopt.distribution import Array
from ldpopt.mechanisms.gaussian import GaussianPair
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.rounding import ULP, down, up

_DEEP = 1e-290
"""In a finite pair for a Gaussian, infinite losses have at most this probability, if epsilons up to 600 suffice."""

_POINTS = 2049


@dataclass(frozen=True)
class GaussianLaw:
    """The normal law N(mu^2/2, mu^2) of the privacy loss of Gaussian noise, with mu between the floats low and high."""

    low: float
    high: float
    slack: float = 0.0
    relative: float = 0.0

    @classmethod
    def of(cls, pairs: Iterable[tuple[GaussianPair, int]]) -> GaussianLaw:
        """The law of the total loss of Gaussian pairs with counts, which no adaptive choice exceeds [DRS]."""
        counted = list(pairs)
        scale = math.ldexp(1.0, math.frexp(max(pair.mu for pair, _ in counted))[1])
        squares = sum(((Fraction(pair.mu) / Fraction(scale)) ** 2 * n for pair, n in counted), Fraction(0))
        mu = scale * math.sqrt(float(squares))
        return cls(down(mu, 4), up(mu, 4))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """As in `LossLaw`."""
        if math.isinf(epsilon):
            return 0.0, UNDERFLOW
        low = GaussianPair(self.low).hockey_stick(epsilon).lower
        high = GaussianPair(self.high).hockey_stick(epsilon).value
        return high, high - low + UNDERFLOW

    def bulk(self, epsilon: float) -> tuple[float, float]:
        """As in `LossLaw`."""
        return self.delta(epsilon)

    def atoms(self) -> tuple[Array, Array]:
        """As in `LossLaw`, for a finite pair that dominates the law."""
        pair = self.finite_pair()
        inside = (pair.p > 0) & (pair.q > 0)
        return pair.losses[inside], pair.p[inside]

    def epsilon(self, delta: float) -> float:
        """As in `LossLaw`, by bisection of the closed form."""
        if delta <= 0:
            return math.inf
        pair = GaussianPair(self.high)
        low, high = 0.0, 1.0
        while not pair.hockey_stick(high).value <= delta:
            low, high = high, 2 * high
            if high > 1e300:
                return math.inf
        while high - low > 4 * ULP * high:
            middle = (low + high) / 2
            low, high = (low, middle) if pair.hockey_stick(middle).value <= delta else (middle, high)
        return high

    def finite_pair(self) -> FinitePair:
        """A finite pair that dominates the law, with losses on a grid, for composition with other pairs."""
        pair = GaussianPair(self.high)
        top = max(1e-9, min(1.0, self.high))
        while top < 600 and not pair.hockey_stick(top).value <= _DEEP:
            top *= 1.1
        at = np.linspace(0.0, min(top, 700.0), _POINTS)
        return FinitePair.through(at, np.array([min(pair.hockey_stick(float(e)).value, 1.0) for e in at]))
