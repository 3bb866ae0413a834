"""A sensitive yes-or-no question through a randomizing device, from the probabilities of the device to its privacy.

Warner's design, crosswise, forced response, the unrelated question, Kuk's cards and the triangular model. The device
makes a `SurveyDesign`: its exact channel, its privacy, and the estimate from its reports.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.errors import invalid
from ldpopt.exact import largest_loss
from ldpopt.numbers.rounding import float_up, up
from ldpopt.privacy.local_dp import local_dp
from ldpopt.values.distribution import (
    Array,
    Checked,
    finite_array,
    number_up_to,
    open_unit,
    positive_epsilon,
    positive_integer,
    unit_interval,
)

YES, NO = "yes", "no"
Law = tuple[Fraction, Fraction]
Design = TypeVar("Design", bound="SurveyDesign")
_DIGITS = Context(prec=700, Emax=MAX_EMAX, Emin=MIN_EMIN)


class SurveyDesign(Checked, ABC):
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
    def _chances(self) -> tuple[Fraction, Fraction]:
        """The probabilities of the first report (of a red card of Kuk's): with the attribute, and without it."""

    @property
    def laws(self) -> tuple[Law, Law]:
        """The probabilities of the reports (of one card of Kuk's), with the attribute, and without it."""
        with_attribute, without_attribute = self._chances
        return (with_attribute, 1 - with_attribute), (without_attribute, 1 - without_attribute)

    reports: ClassVar[tuple[str, str]] = (YES, NO)
    """The labels of the two reports."""

    draws: int = 1

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
        return float_up(abs(self._chances[0] - self._chances[1]))

    @property
    def score(self) -> Array:
        """The number that each report counts as: 1 for the first report and 0 for the second."""
        return np.array([1.0, 0.0])

    def estimate(self, counts: Any) -> float:
        """Estimate the prevalence without bias from the counts of each report."""
        # The estimate may lie outside [0, 1].
        counts, score = finite_array(counts, "counts", 1), self.score
        if len(counts) != len(score) or counts.min() < 0 or counts.sum() <= 0:
            raise invalid("counts", f"{len(score)} non-negative counts, not all zero", counts)
        a, b = map(float, self._chances)
        return float((counts @ score / counts.sum() - b) / (a - b))

    def variance(self, prevalence: float, n: int) -> float:
        """Compute the variance of the estimate from n independent respondents.

        It is (s (1 - s)/(a - b)^2/draws + (1 - 1/draws) pi (1 - pi))/n, as published for each design. Only Kuk's design
        has several draws. Here pi is `prevalence`, the proportion of people with the sensitive attribute, in [0, 1].
        The probabilities of the first report with and without it are a and b, and s = pi a + (1 - pi) b.
        """
        prevalence_share, n = Fraction(unit_interval(prevalence, "prevalence")), positive_integer(n, "n")
        a, b = self._chances
        s = prevalence_share * a + (1 - prevalence_share) * b
        spread = s * (1 - s) / (a - b) ** 2 / self.draws + (1 - Fraction(1, self.draws)) * prevalence_share * (
            1 - prevalence_share
        )
        return float(spread / n)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.channel.__array__(dtype, copy)


def most_useful(make: Callable[[float], Design], start: float, private: float, epsilon: float) -> Design:
    """Move the parameter from `start` towards `private` until the design `make(parameter)` is private."""
    # The start is wrong only by rounding.
    parameter, step = start, math.ulp(start)
    while not max((design := make(parameter)).epsilon, float(local_dp(design.channel))) <= epsilon:
        parameter = max(parameter - step, private) if private < parameter else min(parameter + step, private)
        step *= 2
    return design


@dataclass(frozen=True)
class Warner(SurveyDesign, p=open_unit):
    """Warner's design: ask the question with probability p, else its negation; report yes or no [Warner].

    p in (0, 1), not 1/2. epsilon = |log p/(1-p)| nats; eta = |2p - 1|. `Warner.for_epsilon` finds p above 1/2 for a
    given epsilon. Raises `InvalidInput` for values out of range.

    >>> design = Warner(0.75)
    >>> round(design.epsilon, 6), round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (1.098612, 0.5, 0.0084)
    """

    p: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p == 0.5:
            raise invalid("p", "a number other than 1/2, where reports say nothing", self.p)

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """Return the design with p = e/(1 + e), e = exp(epsilon), rounded down."""
        epsilon = positive_epsilon(epsilon)
        return most_useful(cls, min(1 / (1 + math.exp(-epsilon)), math.nextafter(1.0, 0.0)), 0.5, epsilon)

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.p), 1 - Fraction(self.p)


@dataclass(frozen=True)
class Crosswise(Warner):
    """Are the answers to the sensitive statement and to an unrelated one, true of a known share p, the same?

    p in (0, 1), not 1/2; the unrelated statement must be independent of the sensitive one. Reports are ``"same"`` and
    ``"different"``. The channel, and so epsilon, eta and the variance, are Warner's [Crosswise].

    >>> Crosswise(0.25).channel.outputs, round(Crosswise(0.25).epsilon, 6)
    (('same', 'different'), 1.098612)
    """

    reports = ("same", "different")


@dataclass(frozen=True)
class ForcedResponse(SurveyDesign, p_yes=unit_interval, p_no=unit_interval):
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
        super().__post_init__()
        if not 1 - Fraction(self.p_no) > Fraction(self.p_yes):
            raise invalid("p_yes + p_no", "a sum below 1", self.p_yes + self.p_no)

    @classmethod
    def for_epsilon(cls, epsilon: float, yes_share: float = 0.5) -> Self:
        """Return the design with the fewest forced answers for `epsilon`."""
        # A fraction `yes_share` in (0, 1) of the forced answers are yes.
        share, epsilon = open_unit(yes_share, "yes_share"), positive_epsilon(epsilon)
        return most_useful(lambda f: cls(f * share, f * (1 - share)), fewest(epsilon, share), 1.0, epsilon)

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        return 1 - Fraction(self.p_no), Fraction(self.p_yes)


@dataclass(frozen=True)
class UnrelatedQuestion(SurveyDesign, p=number_up_to, prevalence=unit_interval):
    """The unrelated question design: with probability p the sensitive question, else an innocuous one [Unrelated].

    - `p` : the probability of the sensitive question, in (0, 1].
    - `prevalence` : the known proportion of people, in [0, 1], who answer yes to the innocuous question.

    The answer to the innocuous question must be independent of the sensitive one. The guarantee `eta` is p; epsilon is
    that of forced response with p_yes = (1-p) prevalence and p_no = (1-p)(1 - prevalence). Raises `InvalidInput` for
    values out of range.

    >>> design = UnrelatedQuestion(0.7, 0.5)
    >>> round(design.epsilon, 6), round(design.eta, 6)
    (1.734601, 0.7)
    """

    p: float
    prevalence: float

    @classmethod
    def for_epsilon(cls, epsilon: float, prevalence: float) -> Self:
        """Return the design with the largest p for `epsilon` and `prevalence` in (0, 1)."""
        share, epsilon = open_unit(prevalence, "prevalence"), positive_epsilon(epsilon)
        return most_useful(lambda p: cls(p, share), 1 - fewest(epsilon, share), 0.0, epsilon)

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        sensitive, yes_share = Fraction(self.p), Fraction(self.prevalence)
        return sensitive + (1 - sensitive) * yes_share, (1 - sensitive) * yes_share


def fewest(epsilon: float, yes_share: float) -> float:
    """Compute the smallest probability of a chance answer that keeps epsilon."""
    # A fraction `yes_share` of the chance answers are yes.
    return 1 / (1 + math.expm1(epsilon) * min(yes_share, 1 - yes_share))


@dataclass(frozen=True)
class Kuk(SurveyDesign, theta1=open_unit, theta2=open_unit, draws=positive_integer):
    """Kuk's design: draw cards, with replacement, from the deck of the answer, and report the number of red ones [Kuk].

    - `theta1`, `theta2` : distinct, in (0, 1): the proportion of red cards in the first deck, for respondents with the
      attribute, and in the second, for those without it.
    - `draws` : the number of cards, at least 1.

    Reports are 0..draws. In nats, epsilon = draws max(|log theta1/theta2|, |log (1-theta1)/(1-theta2)|). Raises
    `InvalidInput` for values out of range.

    >>> design = Kuk(0.8, 0.2, draws=2)
    >>> round(design.epsilon, 6), round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (2.772589, 0.6, 0.003122)
    """

    theta1: float
    theta2: float
    draws: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.theta1 == self.theta2:
            raise invalid("theta1 and theta2", "distinct shares, else reports say nothing", self.theta1)

    @classmethod
    def for_epsilon(cls, epsilon: float, draws: int = 1) -> Self:
        """Return the design with theta1 = 1 - theta2 = e/(1 + e) for e = exp(epsilon/draws)."""
        epsilon, draws = positive_epsilon(epsilon), positive_integer(draws, "draws")
        start = min(1 / (1 + math.exp(-epsilon / draws)), math.nextafter(1.0, 0.0))
        return most_useful(lambda theta: cls(theta, 1 - theta, draws), start, 0.5, epsilon)

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.theta1), Fraction(self.theta2)

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
        rows = [[float(probability) for probability in row] for row in self._binomials()]
        if min(map(min, rows)) < sys.float_info.min:
            requirement = "reports that floats can hold: fewer draws, or shares nearer to 1/2"
            raise invalid("channel of Kuk's design", requirement, self)
        return Channel(np.array(rows), (YES, NO), tuple(range(self.draws + 1)))

    def _binomials(self) -> tuple[list[Decimal], list[Decimal]]:
        """The two laws of the number of red cards, with enough digits to keep those of their differences."""
        n = self.draws
        with localcontext(_DIGITS):
            ways = [Decimal(1)]
            for r in range(n):
                ways.append(ways[-1] * (n - r) / (r + 1))
            decks = [[Decimal(x.numerator) / Decimal(x.denominator) for x in law] for law in self.laws]
            with_attribute, without_attribute = (
                [ways[r] * red**r * black ** (n - r) for r in range(n + 1)] for red, black in decks
            )
            return with_attribute, without_attribute

    @property
    def score(self) -> Array:
        """The number that each report counts as: the share of red cards, shape (draws + 1,)."""
        return np.arange(self.draws + 1) / self.draws


@dataclass(frozen=True)
class Triangular(SurveyDesign, p=open_unit):
    """Is the sensitive statement, or an unrelated one that a share p of people would affirm, true of you? [Crosswise].

    p in (0, 1); the unrelated statement must be independent of the sensitive one. Respondents with the sensitive
    attribute always report ``"at least one"``, so the report ``"neither"`` rules the attribute out. Therefore epsilon
    is infinite at every p, and only eta = 1 - p protects. Raises `InvalidInput` for p out of range.

    >>> design = Triangular(0.25)
    >>> design.epsilon, round(design.eta, 6), round(design.variance(0.1, 100), 6)
    (inf, 0.75, 0.0039)
    """

    p: float

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """Raise `InvalidInput`, because no p gives a finite epsilon."""
        epsilon = positive_epsilon(epsilon)
        raise invalid("epsilon of a triangular design", "inf, at every p: use for_total_variation", epsilon)

    @classmethod
    def for_total_variation(cls, eta: float) -> Self:
        """Return the design with p = 1 - eta, for eta in (0, 1), rounded up."""
        p = 1 - open_unit(eta, "eta")
        while (design := cls(p)).eta > eta:
            p += 2.0**-52
        return design

    reports = ("at least one", "neither")

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        return Fraction(1), Fraction(self.p)


warner, crosswise, forced_response, unrelated_question = Warner, Crosswise, ForcedResponse, UnrelatedQuestion
kuk, triangular = Kuk, Triangular
