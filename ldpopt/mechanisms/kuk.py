"""Kuk's design: report the colours of cards drawn from one of two decks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import Array, positive_epsilon, positive_integer
from ldpopt.errors import invalid
from ldpopt.mechanisms.survey_design import NO, YES, SurveyDesign, most_useful, open_unit, population
from ldpopt.mechanisms.warner import LARGEST


@dataclass(frozen=True)
class Kuk(SurveyDesign):
    """Draw cards, with replacement, from the deck of one's own answer, and report how many are red [Kuk].

    theta1, theta2 in (0, 1), distinct: the share of red in the deck of those who have the attribute and of those who
    have not; draws >= 1. epsilon = draws max(|log theta1/theta2|, |log (1-theta1)/(1-theta2)|). Reports are 0..draws.
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
        """The design with theta1 = 1 - theta2 = e/(1 + e) for e = exp(epsilon/draws), to the private side."""
        epsilon, draws = positive_epsilon(epsilon), positive_integer(draws, "draws")
        start = min(1 / (1 + math.exp(-epsilon / draws)), LARGEST)
        return most_useful(lambda theta: cls(theta, 1 - theta, draws), start, 0.5, epsilon)

    @property
    def channel(self) -> Channel:
        """Reports 0..draws: the number of red cards."""
        red = np.arange(self.draws + 1)
        ways = np.array([float(math.comb(self.draws, r)) for r in red])
        rows = [ways * theta**red * (1 - theta) ** (self.draws - red) for theta in (self.theta1, self.theta2)]
        return Channel(np.stack(rows), (YES, NO), tuple(red.tolist()))

    @property
    def score(self) -> Array:
        """The share of red cards."""
        return np.arange(self.draws + 1) / self.draws

    def variance(self, prevalence: float, n: int) -> float:
        """[s (1 - s)/draws + (1 - 1/draws)(theta1 - theta2)^2 pi (1 - pi)] / (n (theta1 - theta2)^2) [Kuk].

        s is the probability that a card is red.
        """
        share, n = population(prevalence, n)
        s, square = share * self.theta1 + (1 - share) * self.theta2, (self.theta1 - self.theta2) ** 2
        spread = s * (1 - s) / self.draws + (1 - 1 / self.draws) * square * share * (1 - share)
        return spread / (n * square)


kuk = Kuk
