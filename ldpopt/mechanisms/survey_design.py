"""The randomized survey design: a sensitive yes-or-no question asked through a randomizing device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.distribution import Array, finite_array, number, positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.exact import float_up, log_up
from ldpopt.privacy.local_dp import local_dp

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
