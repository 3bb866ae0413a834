"""A sensitive yes-or-no question through a randomizing device: Warner, crosswise, forced response, unrelated question.

The probabilities of a device make a `SurveyDesign`: its exact channel, its privacy, and the estimate from its reports.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.distribution import Array, finite_array, number, positive_epsilon, positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.exact import log_up
from ldpopt.privacy.local_dp import local_dp
from ldpopt.rounding import float_up

YES, NO = "yes", "no"
Law = tuple[Fraction, ...]
Design = TypeVar("Design", bound="SurveyDesign")


class SurveyDesign(ABC):
    """A classical design for one sensitive attribute. Numpy and every privacy measure take it as its channel.

    Inputs are ``"yes"`` (the respondent has the sensitive attribute) and ``"no"``. `score` turns every report into a
    number. The mean of the scores is linear in the prevalence, the share of people with the attribute, and `estimate`
    solves this equation.

    >>> from ldpopt.mechanisms import warner
    >>> round(warner(0.75).epsilon, 6)
    1.098612
    """

    @property
    @abstractmethod
    def laws(self) -> tuple[Law, Law]:
        """The probabilities of the reports, as fractions: with the attribute, and without it."""

    reports: ClassVar[tuple[str, str]] = (YES, NO)
    """The labels of the two reports."""

    @property
    def channel(self) -> Channel:
        """The channel from the true answer to the report, its entries rounded to floats."""
        return Channel(np.array([[float(x) for x in law] for law in self.laws]), (YES, NO), self.reports)

    @property
    def epsilon(self) -> float:
        """The local differential privacy of `laws`, in nats, rounded up; inf if some report rules an answer out."""
        return largest_loss(*self.laws)

    @property
    def eta(self) -> float:
        """The total variation distance between the two `laws`, rounded up."""
        return float_up(sum((max(a - b, Fraction(0)) for a, b in zip(*self.laws, strict=True)), Fraction(0)))

    @property
    def score(self) -> Array:
        """The number that each report counts as: 1 for the first report and 0 for the second."""
        return np.array([1.0, 0.0])

    def estimate(self, counts: Any) -> float:
        """The unbiased estimate of the prevalence from how often each report was given; it may lie outside [0, 1]."""
        counts = finite_array(counts, "counts", 1)
        if len(counts) != self.channel.shape[1] or counts.min() < 0 or counts.sum() <= 0:
            raise invalid("counts", f"{self.channel.shape[1]} non-negative counts, not all zero", counts)
        own, other = self.channel.matrix @ self.score
        return float((counts @ self.score / counts.sum() - other) / (own - other))

    @abstractmethod
    def variance(self, prevalence: float, n: int) -> float:
        """The variance of the estimate from n independent respondents, by the published formula.

        prevalence : the share of people with the sensitive attribute, in [0, 1].
        """

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.channel.__array__(dtype, copy)


def largest_loss(own: Law, other: Law) -> float:
    """The largest log-ratio of the probabilities of two laws, in either direction, in nats, rounded up."""
    ratios = [Fraction(1)]
    for a, b in zip(own, other, strict=True):
        if (a == 0) != (b == 0):
            return math.inf
        if a > 0:
            ratios.append(max(a / b, b / a))
    return log_up(max(ratios))


def population(prevalence: Any, n: Any) -> tuple[float, int]:
    """A checked prevalence and sample size."""
    return unit_interval(prevalence, "prevalence"), positive_integer(n, "n")


def open_unit(value: Any, what: str) -> float:
    """`value` as a float strictly between 0 and 1."""
    made = number(value, what, "a number strictly between 0 and 1")
    if not 0 < made < 1:
        raise invalid(what, "a number strictly between 0 and 1", made)
    return made


def most_useful(make: Callable[[float], Design], start: float, private: float, epsilon: float) -> Design:
    """The design `make(parameter)`, with the parameter moved from `start` towards `private` until it keeps epsilon.

    Both the exact laws and the channel of floats keep epsilon then. `start` is a closed form that is wrong only by
    rounding, so the parameter moves by a few units in the last place.
    """
    parameter, step = start, math.ulp(start)
    while not max((design := make(parameter)).epsilon, float(local_dp(design.channel))) <= epsilon:
        parameter = max(parameter - step, private) if private < parameter else min(parameter + step, private)
        step *= 2
    return design


BELOW_ONE = 1 - 2.0**-53
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
        return most_useful(cls, min(1 / (1 + math.exp(-epsilon)), BELOW_ONE), 0.5, epsilon)

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
