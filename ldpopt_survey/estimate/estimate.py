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
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.results import jsonable
from ldpopt_survey.estimate.anytime import NAME as SEQUENCE
from ldpopt_survey.estimate.anytime import Bets, bets_of
from ldpopt_survey.estimate.intervals import Binomial, IntervalMethod, Moments, moments, told_by_few
from ldpopt_survey.estimate.likelihood import BOUNDARY, MaximumLikelihood
from ldpopt_survey.estimate.linear import (
    Estimator,
    GeneralizedLeastSquares,
    contrast_loadings,
    contrast_name,
    efficient_loadings,
    report_covariance,
)
from ldpopt_survey.estimate.results import Estimated, Intervals, Projection, simplex_projection, text_table
from ldpopt_survey.estimate.sampled import SampledReports, Table, as_table, sampling_variance
from ldpopt_survey.sample.design import SamplingVariance

__all__ = ["Estimate", "estimate", "estimate_contrasts", "fixed_loadings"]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Estimated):
    """Estimated proportions, or contrasts of them, from privatized reports.

    values : (r,) the estimates of what `labels` name. A proportion may be negative, unless the estimator returns a
        distribution.
    loadings : (r, m) weights of the outputs. With fixed loadings, loadings @ frequencies is unbiased, and in large
        samples its sampling variance is the variance of the estimates.
    table, channel : the counted reports, and the channel that they went through.
    estimator : the estimator's name. boundary : the categories whose proportion maximum likelihood sets to zero.
    fitted : (m,) the distribution of the reports under the estimate, which gives the errors for a simple sample; None
        where the frequencies themselves do: if the estimate fits them all, and for other samples.
    law : (m,) the same of an estimate moved inside the simplex, which has reports that were not seen; None if the
        frequencies are themselves such a distribution.
    base : the share of the reports that a ratio is about.
    bets : where the intervals are to hold whenever one looks, what gives these confidence sequences.

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
    law: Array | None = None
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
        """The covariance of the estimates, also of those that maximum likelihood holds at zero, and its degrees."""
        if self.fitted is None:
            return sampling_variance([(self.table, self.loadings)])
        return SamplingVariance(report_covariance(self.loadings, self.fitted) / self.n, math.inf)

    @property
    def covariance(self) -> Array:
        """(r, r) covariance of the estimates: the sampling variance of the loadings.

        For maximum likelihood it is (J^-1 - p p^T) / n, where J is the Fisher information of one report [Rao, chapter
        5]. If that sets a proportion to zero, there is no covariance and this is `InvalidInput`; `intervals` still
        hold.
        """
        if self.boundary:
            raise invalid(
                "covariance", "an estimate inside the simplex (use Binomial intervals, or a linear estimator)",
                "proportions held at zero", ", ".join(str(label) for label in self.boundary[:8]),
            )  # fmt: skip
        return self.sampling.covariance

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the variance: inf for a simple sample, units minus strata for others."""
        return self.moments.degrees

    @cached_property
    def moments(self) -> Moments:
        """The moments (mean, variance and so on) that interval methods use. `InvalidInput` for anytime estimates."""
        if self.bets is not None:
            raise invalid("anytime estimate", "shares or contrasts, by `intervals`", Phrase("another analysis"))
        sampling = None if self.table.simple else self.sampling
        n = self.table.equal_n if isinstance(self.table, SampledReports) else self.n
        return moments(self.table.frequencies, self.loadings, sampling, n, self.fitted, self.base, self.law)

    @property
    def few(self) -> tuple[Label, ...]:
        """The labels whose binomial intervals rest on few reports and cover somewhat more or less than they say."""
        if self.bets is not None:
            return ()
        return tuple(label for label, few in zip(self.labels, told_by_few(self.moments), strict=True) if few)

    def intervals(self, method: IntervalMethod | None = None) -> Intervals:
        """Confidence intervals, by `Binomial()` at 95 % unless another method is given.

        They are built around the unbiased estimate loadings @ frequencies, so that they keep their coverage also where
        maximum likelihood sets a proportion to zero. `Intervals.clip` cuts them to [0, 1]. Those of an anytime estimate
        are confidence sequences at the level of the method.
        """
        method = Binomial() if method is None else method
        if self.bets is not None:
            return Intervals(self.labels, *self.bets.limits(method.level), method.level, SEQUENCE)
        lower, upper = method.limits(self.moments)
        return Intervals(self.labels, lower, upper, method.level, method.name)

    def contrast(self, contrasts: ArrayLike, labels: tuple[Label, ...] | None = None) -> Estimate:
        """The estimate of linear combinations of the values: (s, r) or (r,) weights.

        >>> e = estimate({0: 60, 1: 40}, [[0.8, 0.2], [0.2, 0.8]])
        >>> e.contrast([1, -1])
        p(0) - p(1)  0.333333 (0.163299), 95 % [-0.000894, 0.647926]
        """
        a = _weights(contrasts, len(self.values))
        names = labels or tuple(contrast_name(row, self.labels) for row in a)
        bets = None if self.bets is None else self.bets.contrast(a)
        return replace(self, values=a @ self.values, labels=names, loadings=a @ self.loadings, bets=bets)

    def ratio(self, above: Array, below: Array, labels: tuple[Label, ...], name: str = "") -> Estimate:
        """The ratios of the contrasts `above`, (s, r), to the contrast `below`, (r,), linearised [SSW, section 5.6].

        name : what the ratio is among. `InvalidInput` unless the estimate of `below` is positive.
        """
        if self.bets is not None:
            raise invalid(
                name or "ratio", "an estimate without anytime (there is no sequence of ratios)", Phrase("one")
            )
        size = float(below @ self.values)
        if not size > 0:
            raise invalid(name or "ratio", "an estimated share below that is positive", size)
        values = above @ self.values / size
        # These loadings are the gradient of the ratio plus the ratio itself. Frequencies sum to one, so loadings @
        # frequencies gives the ratios, and its variance is the variance of the linearised ratios.
        loadings = (above - np.outer(values, below)) @ self.loadings / size + values[:, None]
        held = tuple(label for label in self.boundary if label in labels)
        return replace(self, values=values, labels=labels, loadings=loadings, boundary=held, base=self.base * size,
                       estimator=f"{self.estimator}, {name}" if name else self.estimator)  # fmt: skip

    def project(self, step: Callable[[Array], Array]) -> Projection:
        """The estimate made into a distribution by `simplex_projection` or `norm_sub`, with the name of that step."""
        return Projection(step(self.values), self.labels, step.__name__, self.estimator)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """JSON-ready values, with binomial intervals."""
        errors = None if self.boundary else self.standard_errors
        shown = {"n": self.n, "estimator": self.estimator, "labels": self.labels, "values": self.values,
                "standard_errors": errors, "boundary": self.boundary}  # fmt: skip
        shown["intervals"] = self.intervals(Binomial(level))
        return {name: jsonable(value) for name, value in shown.items()}

    def to_pandas(self, level: float = 0.95) -> Any:
        """A pandas DataFrame with one row for each label, and binomial intervals. It needs pandas."""
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
        """The estimates with their standard errors and binomial intervals, as text."""
        limits, error = self.intervals(Binomial(level)), self._errors()
        if len(self.values) == 1:
            return f"{self.labels[0]}  {self.values[0]:.6f} ({error[0]}), {100 * level:g} % {limits.as_text()[0]}"
        columns = {"estimate": ("{:9.6f}", self.values), "se": ("{:>9}", error)}
        title = f"Estimate of {len(self.values)} proportions from {self.n} reports, {self.estimator}"
        return "\n".join([title, *text_table(self.labels, columns, limits, f"{100 * level:g} % {limits.interval}")])


def estimate(data: Any, channel: ChannelLike, estimator: Estimator | None = None, anytime: bool = False) -> Estimate:
    """Estimate the distribution of the true answers from privatized reports [Rao, chapter 4; DLR].

    Parameters
    ----------
    data : a `CountTable`; counts by output label or as an array of shape (m,); or n reports, as an array, a pandas,
        Polars or pyarrow column, or a data frame with such a column. For a sample with weights, strata or clusters use
        `SampledReports.of`.
    channel : the channel (k, m) that every report went through: a `Channel`, an array, an exact channel, or the
        question of a plan, which may also come first as in ``estimate(plan.question("vote"), reports)``.
    estimator : `GeneralizedLeastSquares()` by default, which is unbiased. `MaximumLikelihood()` gives a distribution.
        Others are `LeastSquares()` and `LeftInverse(matrix)`.
    anytime : whether the intervals are to hold after every number of reports at once, so that one may look whenever one
        likes, and stop for what one sees. They are longer by half or so. The sample must be simple, or have
        weights or clusters no larger than the largest here.

    Raises `InvalidInput` for data that do not fit the channel. Raises `NotIdentifiable` when the channel has rank below
    k; its message names the contrasts (weighted sums of the proportions) that can be estimated.

    >>> estimate({"yes": 40, "no": 60}, Channel([[0.8, 0.2], [0.2, 0.8]], ["yes", "no"], ["yes", "no"]))
    Estimate of 2 proportions from 100 reports, generalised least squares
               estimate         se  95 % binomial interval
    yes        0.333333   0.081650  [0.176037, 0.500447]
    no         0.666667   0.081650  [0.499553, 0.823963]
    """
    data, channel = _in_order(data, channel)
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
        boundary = tuple(label for label, p in zip(channel.inputs, values, strict=True) if p < BOUNDARY)
    fitted = fitted_law(values, loadings, channel, frequencies, table.n)
    inside = fitted is None and (loadings @ frequencies).min() > 0
    law = None if inside else possible_law(values, channel, table.n)
    fitted = fitted if table.simple else None
    bets = bets_of(table, [fixed_loadings(channel)]) if anytime else None
    return Estimate(values, channel.inputs, loadings, table, channel, estimator.name, boundary, fitted, law, bets=bets)


def fixed_loadings(channel: Channel) -> tuple[Array, Array]:
    """Loadings (k, m) that hang on no report, the best at even shares, and the variance (k,) of one report there."""
    even = np.full(channel.shape[0], 1 / channel.shape[0])
    loadings, law = efficient_loadings(channel, even), channel.push(even)
    return loadings, loadings**2 @ law - (loadings @ law) ** 2


def fitted_law(values: Array, loadings: Array, channel: Channel, frequencies: Array, n: int) -> Array | None:
    """The distribution of the reports (m,) that fits an estimate best; None if the unbiased one fits all frequencies.

    With more outputs than answers, some scatter of few reports is no answer's, and the loadings follow it.
    """
    if np.abs(loadings @ frequencies @ channel.matrix - frequencies).max() <= 1e-9:
        return None
    return possible_law(values, channel, n)


def possible_law(values: Array, channel: Channel, n: int) -> Array:
    """The distribution of the reports (m,) at an estimate from n of them, which is projected on the simplex.

    A distribution on the boundary is mixed with the uniform one as if one respondent more had been asked.
    """
    p = simplex_projection(values)
    return channel.push(p if p.min() > 0 else (n * p + 1 / len(p)) / (n + 1))


def _in_order(data: Any, channel: Any) -> tuple[Any, Any]:
    """(data, channel), in this order, also if the caller put the channel first: no data can be taken for a channel."""
    inner = None if isinstance(data, SampledReports) else getattr(data, "channel", None)
    first = isinstance(data, (Channel, ExactChannel)) or isinstance(inner, (Channel, ExactChannel))
    return (channel, data) if first else (data, channel)


def estimate_contrasts(
    data: Any, channel: ChannelLike, contrasts: ArrayLike, labels: tuple[Label, ...] | None = None
) -> Estimate:
    """Unbiased estimates of contrasts a . p, also of a channel that does not identify all proportions [Rao, chapter 4].

    contrasts : (s, k) or (k,) weights of the proportions.

    Raises `InvalidInput` for another shape, and `NotIdentifiable` for a contrast outside the column space of Q, which
    the reports do not determine.

    >>> estimate_contrasts({0: 45, 1: 55}, [[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]], [1, 1, 0]).values
    array([0.5])
    """
    data, channel = _in_order(data, channel)
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
