"""Kuk's design: report the colours of cards drawn from one of two decks."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Self

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import Array, finite_array, positive_epsilon, positive_integer
from ldpopt.errors import invalid
from ldpopt.mechanisms.survey_design import (
    NO,
    YES,
    Law,
    SurveyDesign,
    largest_loss,
    most_useful,
    open_unit,
    population,
)
from ldpopt.mechanisms.warner import LARGEST
from ldpopt.rounding import up

_DIGITS = Context(prec=700, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class Kuk(SurveyDesign):
    """Draw cards, with replacement, from one of two decks, chosen by one's answer, and report how many are red [Kuk].

    theta1, theta2 in (0, 1), distinct: the share of red cards in the first deck, for respondents with the attribute,
    and in the second, for those without it; draws >= 1. Reports are 0..draws. In nats,
    epsilon = draws max(|log theta1/theta2|, |log (1-theta1)/(1-theta2)|).
    Raises `InvalidInput` for values out of range.

    >>> design = Kuk(0.8, 0.2, draws=2)
    >>> round(design.epsilon, 6), round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (2.772589, 0.6, 0.003122)
    """

    theta1: float
    theta2: float
    draws: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta1", open_unit(self.theta1, "theta1"))
        object.__setattr__(self, "theta2", open_unit(self.theta2, "theta2"))
        object.__setattr__(self, "draws", positive_integer(self.draws, "draws"))
        if self.theta1 == self.theta2:
            raise invalid("theta1 and theta2", "distinct shares, else reports say nothing", self.theta1)

    @classmethod
    def for_epsilon(cls, epsilon: float, draws: int = 1) -> Self:
        """The design with theta1 = 1 - theta2 = e/(1 + e) for e = exp(epsilon/draws), rounded within `epsilon`."""
        epsilon, draws = positive_epsilon(epsilon), positive_integer(draws, "draws")
        start = min(1 / (1 + math.exp(-epsilon / draws)), LARGEST)
        return most_useful(lambda theta: cls(theta, 1 - theta, draws), start, 0.5, epsilon)

    @property
    def laws(self) -> tuple[Law, Law]:
        """The laws of one card, red or not, from either deck: (theta1, 1 - theta1) and (theta2, 1 - theta2)."""
        first, second = Fraction(self.theta1), Fraction(self.theta2)
        return (first, 1 - first), (second, 1 - second)

    @property
    def epsilon(self) -> float:
        """`draws` times the largest privacy loss of one card, in nats, rounded up."""
        loss = largest_loss(*self.laws)
        return loss if self.draws == 1 else up(self.draws * loss)

    @property
    def eta(self) -> float:
        """The total variation distance between the two laws of the number of red cards, rounded up."""
        with localcontext(_DIGITS):
            over = sum((max(a - b, Decimal(0)) for a, b in zip(*self._binomials(), strict=True)), Decimal(0))
        return min(1.0, up(float(over)))

    @property
    def channel(self) -> Channel:
        """The channel whose reports 0..draws are the number of red cards.

        Raises `InvalidInput` if a report is rarer than the smallest normal float.
        """
        rows = [[float(x) for x in row] for row in self._binomials()]
        if min(map(min, rows)) < sys.float_info.min:
            least = "reports that floats can hold: fewer draws, or shares nearer to 1/2"
            raise invalid("channel of Kuk's design", least, self)
        return Channel(np.array(rows), (YES, NO), tuple(range(self.draws + 1)))

    def _binomials(self) -> tuple[list[Decimal], list[Decimal]]:
        """The two laws of the number of red cards, with enough digits to keep those of their differences."""
        n = self.draws
        with localcontext(_DIGITS):
            ways = [Decimal(1)]
            for r in range(n):
                ways.append(ways[-1] * (n - r) / (r + 1))
            made = []
            for red, black in (tuple(Decimal(x.numerator) / Decimal(x.denominator) for x in law) for law in self.laws):
                made.append([ways[r] * red**r * black ** (n - r) for r in range(n + 1)])
        return made[0], made[1]

    def estimate(self, counts: Any) -> float:
        """The unbiased estimate of the prevalence.

        counts : how often each number of red cards was reported, shape (draws + 1,).
        """
        given = finite_array(counts, "counts", 1)
        if len(given) != self.draws + 1 or given.min() < 0 or given.sum() <= 0:
            raise invalid("counts", f"{self.draws + 1} non-negative counts, not all zero", counts)
        return float((given @ self.score / given.sum() - self.theta2) / (self.theta1 - self.theta2))

    @property
    def score(self) -> Array:
        """The number that each report counts as: the share of red cards, shape (draws + 1,)."""
        return np.arange(self.draws + 1) / self.draws

    def variance(self, prevalence: float, n: int) -> float:
        """The variance of the estimate from n independent respondents [Kuk].

        It is [s (1 - s)/draws + (1 - 1/draws)(theta1 - theta2)^2 pi (1 - pi)] / (n (theta1 - theta2)^2), where s is
        the probability that a card is red and pi the prevalence.
        """
        share, n = population(prevalence, n)
        s, square = share * self.theta1 + (1 - share) * self.theta2, (self.theta1 - self.theta2) ** 2
        spread = s * (1 - s) / self.draws + (1 - 1 / self.draws) * square * share * (1 - share)
        return spread / (n * square)


kuk = Kuk
