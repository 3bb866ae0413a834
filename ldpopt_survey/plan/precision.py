"""Targets of precision that a survey must reach: a narrow enough interval, or a test with enough power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    Constraint,
    COptimal,
    Criterion,
    FisherInformation,
    LocalDP,
    MVOptimal,
    TotalVariation,
)
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.rounding import up
from ldpopt.values.distribution import Array, distribution, number
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.intervals import check_level, two_sided
from ldpopt_survey.estimate.linear import asymptotic_covariance
from ldpopt_survey.hypothesis_tests import goodness_of_fit_power, respondents_for_power

MAX_MINIMAX_CATEGORIES = 14
"""Up to this many categories the largest variance is minimised. Beyond, this takes minutes and gains one per cent."""


def limits(epsilon: float, eta: float | None) -> list[Constraint]:
    """Return the constraints of one report: epsilon (nats), and eta if it is capped."""
    return [LocalDP(epsilon)] + ([] if eta is None else [TotalVariation(eta)])


MAX_CAPPED_ANSWERS = 20
"""The most answers with uneven shares for which a channel within a cap on eta is searched for at those shares."""


def prior_for_search(pilot: Array, eta: float | None) -> Array:
    """Return the shares (k,) for the search for the channel of a question.

    They are the pilot, or equal shares for many answers with a cap on eta.

    With a cap on eta and more than `MAX_CAPPED_ANSWERS` answers a search at uneven shares takes minutes. The channel
    for uniform shares is known by symmetry. At 12 to 20 answers, epsilon 1 and eta 0.2, it was compared with the
    channel searched for at the pilot. It needed at most 0.3 % more respondents for the sum of variances, and 4 to 11 %
    more for the widest interval.

    >>> prior_for_search(np.array([0.1, 0.9]), 0.2)
    array([0.1, 0.9])
    """
    is_large = eta is not None and eta < 1 and len(pilot) > MAX_CAPPED_ANSWERS
    return np.full(len(pilot), 1 / len(pilot)) if is_large else pilot


SMOOTHING_WEIGHTS = (1e-4, 1e-2, 0.1, 1.0)
"""Weights of equal shares in the pilots at which a channel is searched for if the search fails at the pilot itself."""


LARGER_SHARES = "larger shares (or join rare answers)"
"""What is expected in place of a pilot with shares near 0."""


def smoothed(pilot: Array) -> tuple[Array, ...]:
    """Return pilots (k,) near this one without tiny shares, nearest first.

    Where a share is about 1e-12, the best column for it is hardly ever sent, and the programs have no accurate
    solution. A channel that is best for a nearby pilot is within the limits, too; its variances count at the pilot.

    >>> [float(near.min()) for near in smoothed(np.array([1.0, 0.0]))]
    [5e-05, 0.005, 0.05, 0.5]
    """
    return tuple((1 - weight) * pilot + weight / len(pilot) for weight in SMOOTHING_WEIGHTS)


def no_channel_found(name: str, pilot: Array, epsilon: float) -> InvalidInput:
    """Return the error of a question for which no search found a channel, with the remedy."""
    problem = f"{float(pilot.min()):.3g}, for which no channel was found at epsilon {epsilon:.4g}"
    return invalid(f"{name}: pilot", LARGER_SHARES, Phrase(problem))


@runtime_checkable
class Precision(Protocol):
    """Target that more respondents, or a more informative channel, approach."""

    def criterion(self, k: int) -> Criterion:
        """Return the criterion that the optimal channel minimizes."""
        ...

    def respondents(self, channel: Channel, pilot: Array) -> int:
        """Return the fewest respondents that reach the target."""
        ...


@dataclass(frozen=True)
class HalfWidth:
    """Half-width z sqrt(V/n) of the interval for a share, at most `width`, in (0, 1).

    level : confidence, in (0, 1).
    category : position of the category whose interval counts; None for the widest one.

    >>> from ldpopt_survey import QuestionPlanner
    >>> QuestionPlanner([0.3, 0.7]).respondents(HalfWidth(0.05), epsilon=1.0)
    1738
    """

    width: float
    level: float = 0.95
    category: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", check_level(self.width, "half-width"))
        check_level(self.level)
        if self.category is not None and (not isinstance(self.category, int) or self.category < 0):
            raise invalid("category", "a position from 0", self.category)

    def criterion(self, k: int) -> Criterion:
        """Return the criterion of the category, or of the largest variance.

        Beyond `MAX_MINIMAX_CATEGORIES` categories it is the sum of all variances.
        """
        if self.category is None:
            return MVOptimal() if k <= MAX_MINIMAX_CATEGORIES else AOptimal()
        if self.category >= k:
            raise invalid("category", f"a position from 0 to {k - 1}", self.category)
        return COptimal(np.eye(k)[self.category])

    def variance(self, variances: Array) -> float:
        """Select the variance of the category, or the largest, from variances (k,) per respondent."""
        return float(variances.max() if self.category is None else variances[self.category])

    def variance_of(self, channel: Channel, pilot: Array) -> float:
        """Compute the selected variance of the efficient estimate from one report.

        It is inf if the channel does not determine the share.
        """
        if self.category is not None:  # a channel may identify this category only
            return FisherInformation(pilot, self.criterion(len(pilot))).value(channel)
        return self.variance(np.diag(asymptotic_covariance(channel, pilot)))

    def unrounded_respondents(self, variance: float) -> float:
        """Bound z^2 V / width^2 from above: the respondents, not rounded to an integer."""
        return up((two_sided(self.level) / self.width) ** 2 * variance, 16)

    def respondents_for(self, variance: float) -> int:
        """Compute ceil(z^2 V / width^2), rounded up."""
        return max(1, math.ceil(self.unrounded_respondents(variance)))

    def width_for(self, variance: float, n: float) -> float:
        """Compute the half-width z sqrt(V/n) of n respondents, rounded up."""
        return up(two_sided(self.level) * math.sqrt(variance / n), 16)

    def respondents(self, channel: Channel, pilot: Array) -> int:
        """Compute the fewest respondents, from the efficient estimate's covariance at the pilot."""
        return self.respondents_for(self.variance_of(channel, pilot))

    def reached(self, channel: Channel, pilot: Array, n: int) -> float:
        """Compute the half-width that n respondents reach, rounded up."""
        return self.width_for(self.variance(np.diag(asymptotic_covariance(channel, pilot))), n)


@dataclass(frozen=True)
class RelativeError:
    """Coefficient of variation of every share, its standard error divided by it, at most `limit`, above 0.

    The pilot needs shares above 0; the smallest one usually decides.

    >>> from ldpopt_survey import QuestionPlanner
    >>> QuestionPlanner([0.3, 0.7]).respondents(RelativeError(0.1), epsilon=1.0)
    1257
    """

    limit: float

    def __post_init__(self) -> None:
        limit = number(self.limit, "coefficient of variation", "a number above 0")
        if not 0 < limit < math.inf:
            raise invalid("coefficient of variation", "a number above 0", self.limit)
        object.__setattr__(self, "limit", limit)

    def criterion(self, k: int) -> Criterion:
        """Return the sum of all variances; `plan_survey` searches for the channel that is best for this target."""
        return AOptimal()

    def squared(self, channel: Channel, pilot: Array) -> float:
        """Return the largest squared coefficient of variation of a share, by one report; inf for a share 0."""
        variances = np.diag(asymptotic_covariance(channel, pilot))
        return float(np.max(variances / pilot**2)) if pilot.min() > 0 else math.inf

    def respondents(self, channel: Channel, pilot: Array) -> int:
        """Return the fewest respondents; raise `InvalidInput` for a pilot with a share 0."""
        squared = self.squared(channel, pilot)
        if not squared < math.inf:
            expected = "shares above 0 for a coefficient of variation (or a half-width)"
            raise invalid("pilot", expected, Phrase("a share 0"))
        return max(1, math.ceil(up(squared / self.limit**2, 16)))

    def reached(self, channel: Channel, pilot: Array, n: int) -> float:
        """Return the coefficient of variation with n respondents, rounded up."""
        return up(math.sqrt(self.squared(channel, pilot) / n), 16)


@dataclass(frozen=True, eq=False)
class TestPower(ByValue):
    """Goodness-of-fit test of the pilot at significance `level`, with probability `power` against `alternative`.

    >>> from ldpopt_survey import QuestionPlanner
    >>> QuestionPlanner([0.3, 0.7]).respondents(TestPower([0.5, 0.5]), epsilon=1.0)
    222
    """

    __test__ = False

    alternative: Any
    power: float = 0.8
    level: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "alternative", distribution(self.alternative, "alternative"))
        for name in ("power", "level"):
            check_level(getattr(self, name), name)
        if self.power <= self.level:
            raise invalid("power", f"a number above the level {self.level:g}", self.power)

    def criterion(self, k: int) -> Criterion:
        """Return the sum of all variances, since the test detects differences in every direction."""
        if len(self.alternative) != k:
            raise invalid("alternative", f"{k} entries, as many as the pilot", len(self.alternative))
        return AOptimal()

    def respondents(self, channel: Channel, pilot: Array) -> int:
        """Compute the fewest respondents, by the noncentral chi-squared distribution."""
        return respondents_for_power(channel, pilot, self.alternative, self.power, self.level)

    def reached(self, channel: Channel, pilot: Array, n: int) -> float:
        """Compute the power that n respondents reach."""
        return float(goodness_of_fit_power(channel, pilot, self.alternative, n, self.level))


@dataclass(frozen=True, eq=False)
class Together(ByValue):
    """Several targets that the respondents must all meet.

    >>> from ldpopt_survey import QuestionPlanner
    >>> both = Together((HalfWidth(0.05), TestPower([0.5, 0.5])))
    >>> QuestionPlanner([0.3, 0.7]).respondents(both, epsilon=1.0)
    1738
    """

    precisions: tuple[Precision, ...]

    def criterion(self, k: int) -> Criterion:
        """Return the criterion of the first target."""
        return self.precisions[0].criterion(k)

    def respondents(self, channel: Channel, pilot: Array) -> int:
        """Compute the fewest respondents that reach every target."""
        return max(target.respondents(channel, pilot) for target in self.precisions)


def require_precision(value: Any) -> Precision:
    """Return `value` if it is a precision target; raise `InvalidInput` otherwise."""
    if not isinstance(value, Precision):
        expected = "HalfWidth(width), RelativeError(limit) or TestPower(alternative, power)"
        raise invalid("precision", expected, Phrase(type(value).__name__))
    return value
