"""Survey designs in which chance decides some of the reports: forced response and the unrelated question."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.errors import invalid
from ldpopt.mechanisms.survey_design import Law, SurveyDesign, most_useful, open_unit, population


@dataclass(frozen=True)
class ForcedResponse(SurveyDesign):
    """A device tells the respondent to say yes (p_yes), to say no (p_no), or to answer truthfully [Forced].

    p_yes, p_no : probabilities in [0, 1] with a sum below 1.

    eta = 1 - p_yes - p_no; epsilon is the larger of log (1-p_no)/p_yes and log (1-p_yes)/p_no, in nats, and infinite if
    p_yes or p_no is 0. Raises `InvalidInput` for values out of range.

    >>> design = ForcedResponse(1 / 6, 1 / 6)
    >>> round(design.epsilon, 6), round(design.eta, 6)
    (1.609438, 0.666667)
    """

    p_yes: float
    p_no: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p_yes", unit_interval(self.p_yes, "p_yes"))
        object.__setattr__(self, "p_no", unit_interval(self.p_no, "p_no"))
        if not 1 - Fraction(self.p_no) > Fraction(self.p_yes):
            raise invalid("p_yes + p_no", "a sum below 1", self.p_yes + self.p_no)

    @classmethod
    def for_epsilon(cls, epsilon: float, yes_share: float = 0.5) -> Self:
        """The design with the fewest forced answers for `epsilon`, of which a share `yes_share` in (0, 1) are yes."""
        share = open_unit(yes_share, "yes_share")
        epsilon = positive_epsilon(epsilon)
        return most_useful(lambda f: cls(f * share, f * (1 - share)), fewest(epsilon, share), 1.0, epsilon)

    @property
    def laws(self) -> tuple[Law, Law]:
        """The laws of yes and no: (1 - p_no, p_no) with the attribute, (p_yes, 1 - p_yes) without it."""
        yes, no = Fraction(self.p_yes), Fraction(self.p_no)
        return (1 - no, no), (yes, 1 - yes)

    def variance(self, prevalence: float, n: int) -> float:
        """The variance s (1 - s)/(n (1 - p_yes - p_no)^2) of the estimate; s is the probability of a yes [Forced]."""
        share, n = population(prevalence, n)
        truthful = 1 - self.p_yes - self.p_no
        s = share * truthful + self.p_yes
        return s * (1 - s) / (n * truthful**2)


@dataclass(frozen=True)
class UnrelatedQuestion(SurveyDesign):
    """Ask the sensitive question with probability p, else an innocuous one whose share of yes is known [Unrelated].

    p : the probability of the sensitive question, in (0, 1]. prevalence : the share of people, in [0, 1], who answer
    yes to the innocuous question.

    The answer to the innocuous question must be independent of the sensitive one. eta = p; epsilon is that of forced
    response with p_yes = (1-p) prevalence and p_no = (1-p)(1 - prevalence). Raises `InvalidInput` for values out of
    range.

    >>> design = UnrelatedQuestion(0.7, 0.5)
    >>> round(design.epsilon, 6), round(design.eta, 6)
    (1.734601, 0.7)
    """

    p: float
    prevalence: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", unit_interval(self.p, "p"))
        object.__setattr__(self, "prevalence", unit_interval(self.prevalence, "prevalence"))
        if self.p == 0:
            raise invalid("p", "a number in (0, 1]", self.p)

    @classmethod
    def for_epsilon(cls, epsilon: float, prevalence: float) -> Self:
        """The design with the largest p for `epsilon`, with an innocuous question of this `prevalence` in (0, 1)."""
        share = open_unit(prevalence, "prevalence")
        epsilon = positive_epsilon(epsilon)
        return most_useful(lambda p: cls(p, share), 1 - fewest(epsilon, share), 0.0, epsilon)

    @property
    def laws(self) -> tuple[Law, Law]:
        """The laws of forced response with p_yes = (1 - p) prevalence and p_no = (1 - p)(1 - prevalence)."""
        rest, share = 1 - Fraction(self.p), Fraction(self.prevalence)
        yes, no = rest * share, rest * (1 - share)
        return (1 - no, no), (yes, 1 - yes)

    def variance(self, prevalence: float, n: int) -> float:
        """The variance s (1 - s)/(n p^2) of the estimate; s is the probability of a yes [Unrelated].

        prevalence : of the sensitive attribute, not of the innocuous one.
        """
        share, n = population(prevalence, n)
        s = self.p * share + (1 - self.p) * self.prevalence
        return s * (1 - s) / (n * self.p**2)


def fewest(epsilon: float, yes_share: float) -> float:
    """The smallest probability of a chance answer that keeps epsilon: 1/(1 + (e - 1) min(yes_share, 1 - yes_share)).

    yes_share : the share of yes among the chance answers; e = exp(epsilon).
    """
    return 1 / (1 + math.expm1(epsilon) * min(yes_share, 1 - yes_share))


forced_response = ForcedResponse
unrelated_question = UnrelatedQuestion
