"""Estimate the mean of a number among the respondents who are asked for it: a ratio of two estimates [SSW; Fieller]."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldpopt.channel import Label
from ldpopt.errors import invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt_survey.estimate.anytime import SEQUENCE_NAME
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.intervals import Binomial, IntervalMethod, Moments
from ldpopt_survey.estimate.linear import contrast_name
from ldpopt_survey.estimate.results import Intervals
from ldpopt_survey.sample.design import SamplingVariance

__all__ = ["ConditionalMean", "conditional_mean"]

MIN_SHARE_ERRORS = 4.0
"""The share of those who are asked is estimably above zero from so many of its standard errors on.

With fewer, nothing is printed of their mean but the range of the answers."""

PLANNED_SHARE_ERRORS = 6.0
"""So many standard errors are planned, so that 98 of 100 surveys have `MIN_SHARE_ERRORS`."""

MAX_BISECTIONS = 30
"""Halvings in the search for an end of an interval."""

MAX_SPANS = 16.0
"""An interval whose end is further than so many ranges from the estimate is the whole range of the answers."""


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalMean(Estimate):
    """A mean among those who are asked, or a multiple of it.

    sums : two estimates. The first is the mean among all respondents, where people who are not asked count as 0. The
        second is the share of the asked.
    ends : the range of the answers.
    factors : (r,) the multiples of the mean; its own is 1.

    The value is nan where the share of the asked is not estimably above zero (`estimable`). The interval consists of
    every r with 0 in the interval of sum - r share, as Fieller's does. An unbounded interval becomes the range of the
    answers, and so does the interval of a mean that is not estimable. Neither loses coverage.

    >>> from ldpopt_survey import estimate
    >>> channel = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> shares = estimate([4000, 3000, 3000], channel)  # not asked, the lowest and the highest number
    >>> conditional_mean(shares, np.array([0.0, 0.0, 80.0]), np.array([0.0, 1.0, 1.0]), (0.0, 80.0))
    mean  40.000000 (1.549193), 95 % [36.955366, 43.044634]
    """

    sums: Estimate | None = None
    ends: tuple[float, float] = (0.0, 1.0)
    factors: tuple[float, ...] = (1.0,)

    @property
    def estimable(self) -> bool:
        """True if the share of those who are asked is estimably above zero."""
        return bool(np.isfinite(self.values).all())

    @property
    def share_asked(self) -> tuple[float, float]:
        """The estimated share of those who are asked, and its standard error."""
        assert self.sums is not None
        return float(self.sums.values[1]), float(self.sums.standard_errors[1])

    def intervals(self, method: IntervalMethod | None = None) -> Intervals:
        """Compute confidence intervals, by `Binomial()` at 95 % unless another method is given."""
        # One interval is simultaneous with itself.
        method = Binomial() if method is None else getattr(method, "base", method)
        lower, upper = self._limits(method) if self.estimable else self.ends
        ends, name = np.outer(self.factors, [lower, upper]), method.name if self.bets is None else SEQUENCE_NAME
        return Intervals(self.labels, ends.min(axis=1), ends.max(axis=1), method.level, name)

    def _limits(self, method: IntervalMethod) -> tuple[float, float]:
        """The smallest and the largest r with 0 in the interval of sum - r share."""
        assert self.sums is not None
        value = float(self.sums.values[0] / self.sums.values[1])
        reach = MAX_SPANS * (self.ends[1] - self.ends[0])
        excluded, included = np.array([value - reach, value + reach]), np.array([value, value])
        if not self._excludes(excluded, method).all():
            return self.ends
        for _ in range(MAX_BISECTIONS):
            middle = (included + excluded) / 2
            is_excluded = self._excludes(middle, method)
            included, excluded = np.where(is_excluded, included, middle), np.where(is_excluded, middle, excluded)
        return float(excluded[0]), float(excluded[1])

    def _excludes(self, means: Array, method: IntervalMethod) -> Any:
        """Return True for each r if the interval of sum - r share excludes 0."""
        if self.bets is not None:
            rows = np.stack([np.ones(len(means)), -means], axis=1) / (self.ends[1] - self.ends[0])
            bets, zero = self.bets.contrast(rows), np.zeros(len(means))
            wealth = np.maximum(bets.log_wealth(zero, 1), bets.log_wealth(zero, -1))
            return wealth >= math.log(2 / (1 - method.level))
        lower, upper = method.limits(self._differences(means))
        return (lower > 0) | (upper < 0)

    def _differences(self, means: Array) -> Moments:
        """The moments of sum - r share for each r."""
        sums = self.sums
        assert sums is not None
        rows = np.stack([np.ones(len(means)), -means], axis=1)
        # Each difference has its own noise, below which its variance does not fall.
        return sums.contrast(rows, tuple(range(len(rows)))).moments

    def total(self, size: float) -> Estimate:
        """Estimate the sum of the numbers in a population of `size`, which counts those who are not asked, too.

        No ratio is needed, so it is estimable however few are asked.
        """
        assert self.sums is not None
        return self.sums.contrast(np.array([[size * self.factors[0], 0.0]]), self.labels)

    def contrast(self, contrasts: ArrayLike, labels: tuple[Label, ...] | None = None) -> Estimate:
        """Estimate multiples of the mean: weights (s, 1) or (1,)."""
        weights = np.atleast_2d(finite_array(contrasts, "contrasts", np.ndim(contrasts)))
        if weights.shape[1] != 1 or len(self.values) != 1:
            raise invalid("contrasts", "multiples of one mean, shape (s, 1)", f"shape {weights.shape}")
        factors = tuple((weights[:, 0] * self.factors[0]).tolist())
        names = labels or tuple(contrast_name(row, self.labels) for row in weights)
        return replace(
            self, values=weights @ self.values, labels=names, loadings=weights @ self.loadings, factors=factors
        )

    @cached_property
    def sampling(self) -> SamplingVariance:
        """The covariance of the estimates, with its degrees of freedom; nan where they are not estimable."""
        if self.estimable:
            return Estimate.sampling.func(self)  # type: ignore[attr-defined, no-any-return]
        assert self.sums is not None
        return SamplingVariance(np.full((len(self.values),) * 2, np.nan), self.sums.sampling.degrees)

    @property
    def few_report_labels(self) -> tuple[Label, ...]:
        """The labels whose intervals rest on few reports; none where the mean is not estimable."""
        return super().few_report_labels if self.estimable else ()

    def _cells(self) -> list[tuple[str, list[str]]]:
        cells = super()._cells()
        if self.estimable:
            return cells
        return [(head, [NOT_ESTIMABLE] * len(column) if head in ("estimate", "se") else column)
                for head, column in cells]  # fmt: skip

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return JSON-ready values, with binomial intervals; null for a mean that is not estimable."""
        values, (share, error) = super().to_dict(level), self.share_asked
        if not self.estimable:
            values |= {name: [None] * len(self.values) for name in ("values", "standard_errors")}
        return {**values, "estimable": self.estimable, "share_asked": share, "share_asked_standard_error": error}

    def summary(self, level: float = 0.95) -> str:
        """Format the mean with its standard error and interval, as text."""
        if self.estimable:
            return super().summary(level)
        return f"{self.labels[0]}  {NOT_ESTIMABLE}, {100 * level:g} % {self.intervals(Binomial(level)).as_text()[0]}"

    @property
    def caveat(self) -> str:
        """Whom the mean is about, in words, or why it is not estimable."""
        share, error = self.share_asked
        if self.estimable:
            return (
                f"The mean is among those who are asked: {100 * share:.2f} % of the respondents, with a standard error "
                f"of {100 * error:.2f} points."
            )
        return (
            f"Nothing is known of this mean but the range of the answers: the share of those who are asked is "
            f"{100 * share:.2f} % with a standard error of {100 * error:.2f} points, and {MIN_SHARE_ERRORS:g} standard "
            "errors are needed. More respondents or a larger epsilon would tell."
        )


NOT_ESTIMABLE = "not estimable"


def conditional_mean(shares: Estimate, numbers: Array, is_asked: Array, ends: tuple[float, float]) -> ConditionalMean:
    """Estimate the mean among those who are asked from the shares of r answers [Fieller].

    numbers : (r,) the number of each answer, 0 where nobody is asked for one.
    is_asked : (r,) 1 for each answer of those who are asked, else 0.
    ends : the smallest and the largest number.

    The intervals of an anytime estimate are confidence sequences, too: a value of the mean is excluded once the bets
    against a sum of 0 have won.
    """
    sums = shares.contrast(np.stack([numbers, is_asked]), ("sum", "share of the asked"))
    share, error = float(sums.values[1]), float(sums.standard_errors[1])
    if share > 0 and share >= MIN_SHARE_ERRORS * error and math.isfinite(error):
        ratio = replace(sums, bets=None).ratio(
            np.array([[1.0, 0.0]]), np.array([0.0, 1.0]), ("mean",), "among those who are asked"
        )
    else:
        unknown = np.full(1, np.nan)
        ratio = replace(sums, values=unknown, labels=("mean",), loadings=np.full((1, sums.loadings.shape[1]), np.nan))
    fields = {name: getattr(ratio, name) for name in ratio.__dataclass_fields__}
    return ConditionalMean(**{**fields, "bets": sums.bets}, sums=sums, ends=ends)
