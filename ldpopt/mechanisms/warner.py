"""Warner's design, and the crosswise model, whose channel is the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from ldpopt.distribution import positive_epsilon
from ldpopt.errors import invalid
from ldpopt.mechanisms.survey_design import Law, SurveyDesign, most_useful, open_unit, population

LARGEST = 1 - 2.0**-53
"""The largest float64 probability below 1."""


@dataclass(frozen=True)
class Warner(SurveyDesign):
    """With probability p the question is asked as it is, else in its negation; report yes or no [Warner].

    p in (0, 1), not 1/2. epsilon = |log p/(1-p)| nats; eta = |2p - 1|. `Warner.for_epsilon` finds p above 1/2 for a
    given epsilon. Raises `InvalidInput` for values out of range.

    >>> design = Warner(0.75)
    >>> round(design.epsilon, 6), round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (1.098612, 0.5, 0.0084)
    """

    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", open_unit(self.p, "p"))
        if self.p == 0.5:
            raise invalid("p", "a number other than 1/2, where reports say nothing", self.p)

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """The design with p = e/(1 + e), e = exp(epsilon); p is rounded down, so that `epsilon` is not exceeded."""
        epsilon = positive_epsilon(epsilon)
        return most_useful(cls, min(1 / (1 + math.exp(-epsilon)), LARGEST), 0.5, epsilon)

    @property
    def laws(self) -> tuple[Law, Law]:
        """The laws of the two reports: (p, 1 - p) with the attribute, (1 - p, p) without it."""
        p = Fraction(self.p)
        return (p, 1 - p), (1 - p, p)

    def variance(self, prevalence: float, n: int) -> float:
        """The variance pi (1 - pi)/n + p (1 - p)/(n (2p - 1)^2) of the estimate; pi is the prevalence [Warner]."""
        share, n = population(prevalence, n)
        return (share * (1 - share) + self.p * (1 - self.p) / (2 * self.p - 1) ** 2) / n


@dataclass(frozen=True)
class Crosswise(Warner):
    """Are the answers to the sensitive statement and to an unrelated one, true of a known share p, the same?

    p in (0, 1), not 1/2; the unrelated statement must be independent of the sensitive one. Reports are ``"same"`` and
    ``"different"``. The channel, and so epsilon, eta and the variance, are Warner's [Crosswise].

    >>> Crosswise(0.25).channel.outputs, round(Crosswise(0.25).epsilon, 6)
    (('same', 'different'), 1.098612)
    """

    reports = ("same", "different")


warner = Warner
crosswise = Crosswise
