"""Survey designs with two decks or two statements: Kuk's coloured cards, and the triangular model."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Self

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import Array, finite_array, positive_epsilon, positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.mechanisms.yes_no import (
    BELOW_ONE,
    NO,
    YES,
    Law,
    SurveyDesign,
    largest_loss,
    most_useful,
    open_unit,
    population,
)
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
        start = min(1 / (1 + math.exp(-epsilon / draws)), BELOW_ONE)
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


@dataclass(frozen=True)
class Triangular(SurveyDesign):
    """Is the sensitive statement, or an unrelated one that a share p of people would affirm, true of you? [Crosswise].

    p in (0, 1); the unrelated statement must be independent of the sensitive one. Respondents with the sensitive
    attribute always report ``"at least one"``, so the report ``"neither"`` rules the attribute out. Therefore epsilon
    is infinite at every p, and only eta = 1 - p protects. Raises `InvalidInput` for p out of range.

    >>> design = Triangular(0.25)
    >>> design.epsilon, round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (inf, 0.75, 0.0039)
    """

    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", open_unit(self.p, "p"))

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """Always raises `InvalidInput`, because no p gives a finite epsilon."""
        epsilon = positive_epsilon(epsilon)
        raise invalid("epsilon of a triangular design", "inf, at every p: use for_total_variation", epsilon)

    @classmethod
    def for_total_variation(cls, eta: float) -> Self:
        """The design with p = 1 - eta, for eta in (0, 1); p is rounded up, so that eta is not exceeded."""
        eta = unit_interval(eta, "eta")
        p = 1 - open_unit(eta, "eta")
        while (design := cls(p)).eta > eta:
            p += 2.0**-52
        return design

    reports = ("at least one", "neither")

    @property
    def laws(self) -> tuple[Law, Law]:
        """The laws of the two reports: (1, 0) with the attribute, (p, 1 - p) without it."""
        p = Fraction(self.p)
        return (Fraction(1), Fraction(0)), (p, 1 - p)

    def variance(self, prevalence: float, n: int) -> float:
        """The variance pi (1 - pi)/n + p (1 - pi)/(n (1 - p)) of the estimate; pi is the prevalence [Crosswise]."""
        share, n = population(prevalence, n)
        return (1 - share) * (share + self.p / (1 - self.p)) / n


triangular = Triangular
