"""Privatized reports -> the proportions of the true answers, contrasts and ratios of them, with their errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.results import jsonable
from ldpopt_survey.estimate.anytime import SEQUENCE_NAME as SEQUENCE
from ldpopt_survey.estimate.anytime import Bets, bets_of
from ldpopt_survey.estimate.intervals import Binomial, IntervalMethod, Moments, moments, rests_on_few_reports
from ldpopt_survey.estimate.likelihood import BOUNDARY_PROPORTION, MaximumLikelihood
from ldpopt_survey.estimate.linear import (
    Estimator,
    GeneralizedLeastSquares,
    contrast_loadings,
    contrast_name,
    efficient_loadings,
    report_covariance,
)
from ldpopt_survey.estimate.results import Estimated, Intervals, Projection, quotient, simplex_projection, text_table
from ldpopt_survey.estimate.sampled import SampledReports, Table, as_table, sampling_variance
from ldpopt_survey.sample.design import SamplingVariance

__all__ = ["Estimate", "estimate", "estimate_contrasts", "fixed_loadings"]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Estimated):
    """Estimated proportions, or contrasts of them, from privatized reports.

    values : (r,) the estimates of the quantities named by `labels`. A proportion may be negative, unless the estimator
        returns a distribution.
    loadings : (r, m) weights of the outputs. With fixed loadings, loadings @ frequencies is unbiased. In large samples
        its sampling variance is the variance of the estimates.
    table, channel : the counted reports, and their channel.
    estimator : the estimator's name.
    boundary : the categories whose proportion maximum likelihood sets to zero.
    fitted : (m,) the distribution of the reports under the estimate, which gives the errors for a simple random sample.
        None where the frequencies give them: if the estimate fits them exactly, and for other samples.
    positive_distribution : (m,) the same distribution for an estimate moved inside the simplex, where outputs that did
        not occur have positive probability. None if the frequencies are such a distribution.
    projected_distribution : (m,) the distribution of the reports under the estimate projected on the simplex. None for
        a simple random sample, and if the frequencies are such a distribution.
    base : the proportion of the reports that a ratio is about.
    bets : the bets behind confidence sequences, if the intervals are to be anytime-valid.

    >>> from ldpopt_survey import estimate
    >>> made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> made.standard_errors.round(4), made.contrast([1, -1]).values.round(4)
    (array([0.0816, 0.0816]), array([-0.3333]))
    """

    values: Array
    labels: tuple[Label, ...]
    loadings: Array
    table: Table
    channel: Channel
    estimator: str
    boundary: tuple[Label, ...] = ()
    fitted: Array | None = None
    positive_distribution: Array | None = None
    projected_distribution: Array | None = None
    base: float = 1.0
    bets: Bets | None = None

    @property
    def proportions(self) -> Array:
        """The estimates: `values`."""
        return self.values

    @property
    def n(self) -> int:
        """Number of respondents."""
        return self.table.n

    @cached_property
    def sampling(self) -> SamplingVariance:
        """The covariance of the estimates, with its degrees of freedom.

        It includes proportions that maximum likelihood sets to zero.
        """
        distribution = self.fitted
        if distribution is None and self.table.simple and np.count_nonzero(self.table.frequencies) == 1:
            # Even if all reports are equal, the estimate has an error: the channel's randomness.
            distribution = self.positive_distribution
        if distribution is None:
            return sampling_variance([(self.table, self.loadings)])
        return SamplingVariance(report_covariance(self.loadings, distribution) / self.n, math.inf)

    @property
    def covariance(self) -> Array:
        """Covariance (r, r) of the estimates: the sampling variance of the loadings.

        For maximum likelihood it is (J^-1 - p p^T) / n, where J is the Fisher information of one report [Rao, chapter
        5]. It does not exist, and is `InvalidInput`, if maximum likelihood sets a proportion to zero; `intervals`
        remain valid.
        """
        if self.boundary:
            raise invalid(
                "covariance", "an estimate inside the simplex (use Binomial intervals, or a linear estimator)",
                "proportions held at zero", ", ".join(str(label) for label in self.boundary[:8]),
            )  # fmt: skip
        return self.sampling.covariance

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the variance: inf for a simple random sample, units minus strata for others."""
        return self.moments.degrees

    @cached_property
    def moments(self) -> Moments:
        """The moments (mean, variance and others) that interval methods use. `InvalidInput` for anytime estimates."""
        if self.bets is not None:
            raise invalid("anytime estimate", "shares or contrasts, by `intervals`", Phrase("another analysis"))
        return self._moments(self.loadings, None if self.table.simple else self.sampling)

    def _moments(self, loadings: Array, sampling: SamplingVariance | None) -> Moments:
        """The moments of other loadings (s, m) of the same reports, with their sampling variance; None if simple."""
        n = self.table.equal_n if isinstance(self.table, SampledReports) else self.n
        return moments(
            self.table.frequencies, loadings, sampling, n, self.fitted, self.base, self.positive_distribution,
            self.projected_distribution,
        )  # fmt: skip

    @property
    def few_report_labels(self) -> tuple[Label, ...]:
        """The labels whose binomial intervals rest on few reports, so that they cover somewhat more or less than their
        level.
        """
        if self.bets is not None:
            return ()
        return tuple(
            label
            for label, rests_on_few in zip(self.labels, rests_on_few_reports(self.moments), strict=True)
            if rests_on_few
        )

    def intervals(self, method: IntervalMethod | None = None) -> Intervals:
        """Compute confidence intervals, by `Binomial()` at 95 % unless another method is given.

        They are built around the unbiased estimate loadings @ frequencies, so they keep their coverage where maximum
        likelihood sets a proportion to zero. `Intervals.clip` cuts them to [0, 1]. The intervals of an anytime estimate
        are confidence sequences at the level of the method.
        """
        method = Binomial() if method is None else method
        if self.bets is not None:
            return Intervals(self.labels, *self.bets.limits(method.level), method.level, SEQUENCE)
        lower, upper = method.limits(self.moments)
        return Intervals(self.labels, lower, upper, method.level, method.name)

    def contrast(self, contrasts: ArrayLike, labels: tuple[Label, ...] | None = None) -> Estimate:
        """Estimate linear combinations of the values: (s, r) or (r,) weights.

        >>> e = estimate({0: 60, 1: 40}, [[0.8, 0.2], [0.2, 0.8]])
        >>> e.contrast([1, -1])
        p(0) - p(1)  0.333333 (0.163299), 95 % [-0.000894, 0.647926]
        """
        a = _weights(contrasts, len(self.values))
        names = labels or tuple(contrast_name(row, self.labels) for row in a)
        bets = None if self.bets is None else self.bets.contrast(a)
        return replace(self, values=a @ self.values, labels=names, loadings=a @ self.loadings, bets=bets)

    def ratio(self, numerators: Array, denominator: Array, labels: tuple[Label, ...], name: str = "") -> Estimate:
        """Estimate ratios of contrasts, by linearization [SSW, section 5.6].

        numerators : (s, r) contrasts.
        denominator : (r,) one contrast; `InvalidInput` unless its estimate is positive.
        name : the group among which the ratios are proportions, in words.
        """
        if self.bets is not None:
            raise InvalidInput(
                f"{name or 'ratio'}: ratios cannot be combined with anytime (no confidence sequence is known)"
            )
        scale = float(denominator @ self.values)
        if not scale > 0:
            raise invalid(name or "ratio", "an estimated share below that is positive", scale)
        values = numerators @ self.values / scale
        # These loadings are the gradient of the ratio plus the ratio itself. Frequencies sum to one, so loadings @
        # frequencies gives the ratios, and its variance is the variance of the linearized ratios.
        loadings = (numerators - np.outer(values, denominator)) @ self.loadings / scale + values[:, None]
        zero_labels = tuple(label for label in self.boundary if label in labels)
        return replace(self, values=values, labels=labels, loadings=loadings, boundary=zero_labels,
                       base=self.base * scale,
                       estimator=f"{self.estimator}, {name}" if name else self.estimator)  # fmt: skip

    def project(self, step: Callable[[Array], Array]) -> Projection:
        """Project the estimate on distributions by `simplex_projection` or `norm_sub`.

        The result has the name of that step.
        """
        return Projection(step(self.values), self.labels, step.__name__, self.estimator)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return JSON-ready values, with binomial intervals."""
        errors = None if self.boundary else self.standard_errors
        fields = {"n": self.n, "estimator": self.estimator, "labels": self.labels, "values": self.values,
                "standard_errors": errors, "boundary": self.boundary}  # fmt: skip
        fields["intervals"] = self.intervals(Binomial(level))
        return {name: jsonable(value) for name, value in fields.items()}

    def to_pandas(self, level: float = 0.95) -> Any:
        """Convert to a pandas DataFrame with one row per label, and binomial intervals."""
        import pandas as pd

        columns = self._columns(level)
        labels = pd.Index(columns.pop("category"), name="category", tupleize_cols=False)
        return pd.DataFrame(columns, index=labels)

    def _columns(self, level: float = 0.95) -> dict[str, list[Any]]:
        error = np.full(len(self.values), np.nan) if self.boundary else self.standard_errors
        return self._table({"estimate": self.values, "se": error}, self.intervals(Binomial(level)))

    def _cells(self) -> list[tuple[str, list[str]]]:
        values = [f"{value:.6f}" for value in self.values]
        cells = [("", list(map(str, self.labels))), ("estimate", values), ("se", self._errors())]
        limits = self.intervals()
        return [*cells, (f"95 % {limits.interval}", limits.as_text())]

    def _title(self) -> str:
        return f"{self.n} reports, {self.estimator}"

    def _errors(self) -> list[str]:
        return ["boundary"] * len(self.values) if self.boundary else [f"{e:.6f}" for e in self.standard_errors]

    def __repr__(self) -> str:
        return self.summary()

    def summary(self, level: float = 0.95) -> str:
        """Format the estimates with their standard errors and binomial intervals, as text."""
        limits, error = self.intervals(Binomial(level)), self._errors()
        if len(self.values) == 1:
            return f"{self.labels[0]}  {self.values[0]:.6f} ({error[0]}), {100 * level:g} % {limits.as_text()[0]}"
        columns = {"estimate": ("{:9.6f}", self.values), "se": ("{:>9}", error)}
        title = f"Estimate of {len(self.values)} proportions from {self.n} reports, {self.estimator}"
        return "\n".join([title, *text_table(self.labels, columns, limits, f"{100 * level:g} % {limits.interval}")])


def estimate(data: Any, channel: ChannelLike, estimator: Estimator | None = None, anytime: bool = False) -> Estimate:
    """Estimate the distribution of true answers from privatized reports [Rao, chapter 4; DLR].

    Parameters
    ----------
    data : A `CountTable`; counts by output label or as an array of shape (m,); or n reports, as an array, a pandas,
        Polars or pyarrow column, or a data frame with such a column. For a sample with weights, strata or clusters it
        is `SampledReports.of(...)`.
    channel : The channel (k, m) of every report: a `Channel`, an array, an exact channel, or the question of a plan. It
        may also come first, as in ``estimate(plan.question("vote"), reports)``.
    estimator : `GeneralizedLeastSquares()` by default, which is unbiased. `MaximumLikelihood()` gives a distribution.
        Others are `LeastSquares()` and `LeftInverse(matrix)`.
    anytime : True for confidence sequences as intervals: they stay valid under repeated looks and optional
        stopping. They are about 1.5 times as long. The sample must be simple, or have weights or clusters no larger
        than the largest in the data.

    Returns
    -------
    Estimate
        The k proportions with their errors.

    Raises
    ------
    InvalidInput
        For data that do not fit the channel.
    NotIdentifiable
        If the channel has rank below k. The message names the contrasts (weighted sums of the proportions) that can be
        estimated.

    >>> estimate({"yes": 40, "no": 60}, Channel([[0.8, 0.2], [0.2, 0.8]], ["yes", "no"], ["yes", "no"]))
    Estimate of 2 proportions from 100 reports, generalized least squares
               estimate         se  95 % binomial interval
    yes        0.333333   0.081650  [0.176037, 0.500447]
    no         0.666667   0.081650  [0.499553, 0.823963]
    """
    data, channel = _data_and_channel(data, channel)
    table, channel = as_table(data, channel), as_channel(channel)
    estimator = GeneralizedLeastSquares() if estimator is None else estimator
    frequencies = table.frequencies
    if not channel.matrix[0].all():  # otherwise the first answer can give every output
        impossible = np.flatnonzero((frequencies > 0) & ~channel.matrix.any(axis=0))
        if len(impossible):
            raise invalid("reports", "outputs that the channel can give", repr(channel.outputs[impossible[0]]))
    values, loadings = estimator.fit(frequencies, channel, table.n)
    boundary: tuple[Label, ...] = ()
    if isinstance(estimator, MaximumLikelihood):
        boundary = tuple(label for label, p in zip(channel.inputs, values, strict=True) if p < BOUNDARY_PROPORTION)
    fitted = fit_report_distribution(values, loadings, channel, frequencies, table.n)
    has_full_support = fitted is None and (loadings @ frequencies).min() > 0
    projected_distribution = None if has_full_support else positive_report_distribution(values, channel, table.n)
    positive_distribution = projected_distribution
    if projected_distribution is not None and not table.simple:
        positive_distribution = least_moved_distribution(
            values @ channel.matrix, projected_distribution, channel, table.n
        )
    fitted = fitted if table.simple else None
    bets = bets_of(table, [fixed_loadings(channel)]) if anytime else None
    return Estimate(
        values,
        channel.inputs,
        loadings,
        table,
        channel,
        estimator.name,
        boundary,
        fitted,
        positive_distribution,
        None if table.simple else projected_distribution,
        bets=bets,
    )


def fixed_loadings(channel: Channel) -> tuple[Array, Array]:
    """Return loadings (k, m) that do not depend on the reports, and their variance (k,).

    They have the least variance at the uniform distribution; the variance is that of one report there.
    """
    uniform = np.full(channel.shape[0], 1 / channel.shape[0])
    loadings, report_distribution = efficient_loadings(channel, uniform), channel.push(uniform)
    return loadings, loadings**2 @ report_distribution - (loadings @ report_distribution) ** 2


def fit_report_distribution(
    values: Array, loadings: Array, channel: Channel, frequencies: Array, n: int
) -> Array | None:
    """Return the distribution of the reports (m,) under an estimate.

    The result is None if the unbiased estimate fits all frequencies. With more outputs than answers, some scatter of
    few reports corresponds to no answer, and the loadings follow it.
    """
    if np.abs(loadings @ frequencies @ channel.matrix - frequencies).max() <= 1e-9:
        return None
    return positive_report_distribution(values, channel, n)


def positive_report_distribution(values: Array, channel: Channel, n: int) -> Array:
    """Return the distribution of the reports (m,) at an estimate projected on the simplex.

    A distribution on the boundary is mixed with the uniform one as if one more respondent than the n had been asked.
    """
    p = simplex_projection(values)
    return channel.push(p if p.min() > 0 else (n * p + 1 / len(p)) / (n + 1))


def least_moved_distribution(start: Array, end: Array, channel: Channel, n: int) -> Array:
    """Return a distribution of the reports (m,) that is positive, and as near to that of an estimate as this allows.

    start : (m,) the reports of the estimate, perhaps with negative probabilities.
    end : (m,) a positive distribution: of the estimate projected on the simplex. The projection raises rare answers,
        and with them the variance of their estimates.

    From `start` toward `end` it is the first point where each output is as probable as from one respondent in n + 1
    with uniform answers.
    """
    k = channel.shape[0]
    least = channel.push(np.full(k, 1 / k)) / (n + 1)
    step = float(np.clip(quotient(least - start, end - start).max(), 0.0, 1.0))
    return np.asarray(start + step * (end - start))


def _data_and_channel(data: Any, channel: Any) -> tuple[Any, Any]:
    """Data and channel, in this order, even if the caller put the channel first."""
    data_channel = None if isinstance(data, SampledReports) else getattr(data, "channel", None)
    is_channel_first = isinstance(data, (Channel, ExactChannel)) or isinstance(data_channel, (Channel, ExactChannel))
    return (channel, data) if is_channel_first else (data, channel)


def estimate_contrasts(
    data: Any, channel: ChannelLike, contrasts: ArrayLike, labels: tuple[Label, ...] | None = None
) -> Estimate:
    """Estimate contrasts a . p without bias, even if p is not identified [Rao, chapter 4].

    Parameters
    ----------
    data, channel : As in `estimate`.
    contrasts : (s, k) or (k,) weights of the proportions.
    labels : The names of the contrasts.

    Returns
    -------
    Estimate
        The s contrasts with their errors.

    Raises
    ------
    InvalidInput
        For another shape.
    NotIdentifiable
        For a contrast outside the column space of Q, which the reports do not determine.

    >>> estimate_contrasts({0: 45, 1: 55}, [[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]], [1, 1, 0]).values
    array([0.5])
    """
    data, channel = _data_and_channel(data, channel)
    table, channel = as_table(data, channel), as_channel(channel)
    a = _weights(contrasts, channel.shape[0])
    loadings = contrast_loadings(channel, a)
    names = labels or tuple(contrast_name(row, channel.inputs) for row in a)
    return Estimate(loadings @ table.frequencies, names, loadings, table, channel, "least squares")


def _weights(contrasts: ArrayLike, size: int) -> Array:
    """Contrasts as a matrix (s, size)."""
    a = np.atleast_2d(finite_array(contrasts, "contrasts", np.ndim(contrasts)))
    if a.ndim != 2 or a.shape[1] != size:
        raise invalid("contrasts", f"{size} weights in a row", f"shape {a.shape}")
    return a
