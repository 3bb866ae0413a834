"""Reports of several groups, waves or booklets -> a table for each, differences, and a joint estimate [Rao; SSW]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.anytime import bets_of
from ldpopt_survey.estimate.counts import CountTable, factor, report_column
from ldpopt_survey.estimate.counts import column as as_column
from ldpopt_survey.estimate.estimate import Estimate, estimate
from ldpopt_survey.estimate.intervals import Binomial, IntervalMethod
from ldpopt_survey.estimate.linear import Estimator, NotIdentifiable, efficient_contrasts, pilot_of
from ldpopt_survey.estimate.results import Estimated, Intervals, p_values_of, quotient, text_table
from ldpopt_survey.estimate.sampled import SampledReports, Table, as_table, sampling_variance
from ldpopt_survey.sample.design import SampleDesign, SamplingVariance

__all__ = [
    "Difference", "Source", "difference", "estimate_booklets", "estimate_waves", "pooled_channel",
    "tables_by_group",
]  # fmt: skip


def tables_by_group(
    reports: Any, channel: ChannelLike, groups: Any, design: SampleDesign | None = None
) -> dict[Label, Table]:
    """Group the reports of respondents, in order of appearance [SSW, chapter 5].

    reports, groups : (n,).
    design : the sample design of the n respondents; None for a simple random sample.

    The result has a `CountTable` for each group or, with a design, `SampledReports` that keep the strata and clusters
    of the whole sample, which makes the variance of a subgroup right. `InvalidInput` for other lengths, or no report.

    >>> made = tables_by_group([0, 1, 1, 1], [[0.8, 0.2], [0.2, 0.8]], ["f", "m", "f", "m"])
    >>> made["f"].totals, made["m"].totals
    (array([1, 1]), array([0, 2]))
    """
    column, channel = as_column(report_column(reports, channel), "reports"), as_channel(channel)
    code, names = factor(groups, len(column), "groups")
    if len(column) == 0:
        raise invalid("reports", "at least one", "none")
    if design is None:
        return {name: CountTable.from_reports(column[code == g], channel) for g, name in enumerate(names)}
    all_reports = SampledReports.of(column, channel, design)
    return {name: all_reports.where(code == g) for g, name in enumerate(names)}


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Estimated):
    """a - b for two groups: `values` (r,) with `covariance` (r, r); `first` and `second` are the two estimates.

    `unit_fractions` (r,) are those of `SamplingVariance`; None for simple random samples.
    """

    first: Estimate
    second: Estimate
    values: Array
    covariance: Array
    degrees: float
    unit_fractions: Array | None = field(default=None, repr=False)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The category of each difference."""
        return self.first.labels

    @property
    def p_values(self) -> Array:
        """Two-sided p-values of no difference, one category at a time."""
        return p_values_of(quotient(self.values, self.standard_errors), self.degrees, self.unit_fractions)

    def intervals(self, method: IntervalMethod | None = None) -> Intervals:
        """Compute intervals by the square-and-add rule from the two groups' intervals [Newcombe].

        With `Wald` the rule gives the usual d +- z se. With `Binomial`, the default, the limits keep their coverage if
        an estimate rests on few reports. If groups share clusters, the rule allows for their correlation [Zou].
        """
        method = Binomial() if method is None else method
        a, b = self.first.moments, self.second.moments
        # Simultaneous methods take the critical value of the differences, not of either group.
        (low_a, up_a), (low_b, up_b) = (
            method.limits(replace(moments, covariance=lambda: self.covariance, degrees=self.degrees, redraw=None))
            for moments in (a, b)
        )
        cross = np.diag(self.covariance) - a.variance / a.size - b.variance / b.size
        scale = np.sqrt(a.variance / a.size * b.variance / b.size)
        correlation = np.clip(-quotient(cross, 2 * scale), -1, 1)
        below_a, above_a, below_b, above_b = a.centre - low_a, up_a - a.centre, b.centre - low_b, up_b - b.centre
        margin_below = np.sqrt(np.maximum(below_a**2 + above_b**2 - 2 * correlation * below_a * above_b, 0.0))
        margin_above = np.sqrt(np.maximum(above_a**2 + below_b**2 - 2 * correlation * above_a * below_b, 0.0))
        centre = a.centre - b.centre
        return Intervals(self.labels, centre - margin_below, centre + margin_above, method.level, method.name)

    _picture = "coefficients"

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the differences with their intervals on matplotlib axes, new ones without `ax`, and return them."""
        return super().plot(ax, **{"axis_label": "difference"} | options)

    def _estimates(self) -> dict[str, tuple[str, Any]]:
        return {"difference": ("{:10.6f}", self.values), "se": ("{:9.6f}", self.standard_errors),
                "p": ("{:7.4f}", self.p_values)}  # fmt: skip

    def __repr__(self) -> str:
        return "\n".join(text_table(self.labels, self._estimates(), self.intervals(), "95 % binomial interval"))


def difference(first: Estimate, second: Estimate) -> Difference:
    """Estimate the difference of two groups, first - second, by category [Newcombe; SSW].

    The groups may have answered through different channels, but the labels must agree (else `InvalidInput`). The groups
    are taken as independent, except that linearization accounts for clusters that they share.

    >>> from ldpopt_survey import estimate
    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> difference(estimate({0: 40, 1: 60}, q), estimate({0: 60, 1: 40}, q)).values
    array([-0.33333333,  0.33333333])
    """
    if not (np.isfinite(first.values).all() and np.isfinite(second.values).all()):
        raise invalid("groups", "estimates of both", Phrase("one that is not estimable"))
    if first.labels != second.labels:
        raise invalid("groups", f"the same categories {first.labels[:8]}", second.labels[:8])
    if first.table.simple and second.table.simple:
        sampling = SamplingVariance(first.sampling.covariance + second.sampling.covariance, math.inf)
    else:
        sampling = sampling_variance([(first.table, first.loadings), (second.table, -second.loadings)])
    values, fractions = first.values - second.values, sampling.unit_fractions
    return Difference(first, second, values, sampling.covariance, sampling.degrees, fractions)


def pooled_channel(channels: Sequence[ChannelLike], sizes: Sequence[float]) -> Channel:
    """Build one channel for the respondents of all waves, with outputs (wave, report).

    channels : one (k, m) channel for each wave, with the same k inputs. They need only identify the proportions
        jointly.
    sizes : the numbers of respondents in the waves.

    `InvalidInput` for different inputs.

    >>> pooled_channel([[[0.8, 0.2], [0.2, 0.8]], [[0.6, 0.4], [0.4, 0.6]]], [100, 300]).matrix
    array([[0.2 , 0.05, 0.45, 0.3 ],
           [0.05, 0.2 , 0.3 , 0.45]])
    """
    wave_channels = [as_channel(channel) for channel in channels]
    if not wave_channels or len(sizes) != len(wave_channels) or not min(sizes) >= 0 or not sum(sizes) > 0:
        raise invalid("waves", "one or more, each with a size that is not negative", Phrase(f"{len(wave_channels)}"))
    for channel in wave_channels[1:]:
        if channel.inputs != wave_channels[0].inputs:
            raise invalid("waves", f"channels of the same answers {wave_channels[0].inputs[:8]}", channel.inputs[:8])
    wave_fractions = np.asarray(sizes, dtype=np.float64) / sum(sizes)
    outputs = tuple((wave, label) for wave, channel in enumerate(wave_channels, 1) for label in channel.outputs)
    matrix = np.hstack(
        [fraction * channel.matrix for fraction, channel in zip(wave_fractions, wave_channels, strict=True)]
    )
    return Channel(matrix, wave_channels[0].inputs, outputs)


def estimate_waves(waves: Sequence[tuple[Any, ChannelLike]], estimator: Estimator | None = None) -> Estimate:
    """Estimate from several waves or random groups of one population [Rao, chapter 5].

    waves : pairs of reports (or counts) and their channel, which may depend on the reports of earlier waves. The
        samples are simple random samples.

    All reports count as those of one channel whose output is the wave with the report. So each wave is weighted by its
    information. `InvalidInput` for channels with different answers, and for samples with a design (average their
    estimates instead).

    >>> estimate_waves([({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]]), ({0: 90, 1: 110}, [[0.7, 0.3], [0.3, 0.7]])])
    Estimate of 2 proportions from 300 reports, generalized least squares
              estimate         se  95 % binomial interval
    0         ...
    1         ...
    """
    tables = [as_table(data, channel) for data, channel in waves]
    if not all(isinstance(table, CountTable) and table.simple for table in tables):
        raise invalid("waves", "simple samples", Phrase("one with a design"))
    channel = pooled_channel([channel for _, channel in waves], [table.n for table in tables])
    counts = np.concatenate([table.totals for table in tables])
    pooled = estimate(CountTable.from_counts(counts, channel.outputs), channel, estimator)
    # The loadings are shifted to have the same mean in every wave, so that their variance is for waves of fixed sizes.
    # The shifts average to zero over the waves, so the loadings remain a left inverse, and the estimate is the same.
    report_distribution = pooled.table.frequencies if pooled.fitted is None else pooled.fitted
    wave = np.repeat(np.arange(len(tables)), [len(table.totals) for table in tables])
    wave_fractions = np.asarray(np.bincount(wave, report_distribution), dtype=np.float64)
    wave_means = np.asarray(
        [np.bincount(wave, report_distribution * row, len(wave_fractions)) for row in pooled.loadings], dtype=np.float64
    )
    shifts = np.where(
        wave_fractions > 0, quotient(wave_means, wave_fractions) - wave_means.sum(axis=1, keepdims=True), 0.0
    )
    return replace(pooled, loadings=pooled.loadings - shifts[:, wave])


@dataclass(frozen=True, eq=False)
class Source:
    """The reports of one booklet, and r quantities about its k answers: weights (r, k), the `contrasts`.

    positions : (n,) each respondent's report, as a position among the outputs of `channel`; -1 for none. Counts (m,) of
        the outputs may replace it.
    pilot : (k,) the expected proportions of the answers.
    """

    name: str
    channel: Channel
    positions: npt.NDArray[np.intp]
    contrasts: Array
    pilot: Array


def estimate_booklets(
    sources: Sequence[Source],
    labels: tuple[Label, ...],
    design: SampleDesign | None = None,
    from_counts: bool = False,
    anytime: bool = False,
) -> Estimate:
    """Estimate r quantities, named `labels`, from the reports of one or more booklets.

    design : the design of all respondents, including those without a report; None for a simple random sample.
    from_counts : True if the sources have counts.
    anytime : as for `estimate`, about proportions.

    The reports of all booklets count as those of one channel whose output is the booklet together with the report.
    `NotIdentifiable` if no booklet with reports identifies a quantity, `InvalidInput` without any report.
    """
    outputs = tuple((source.name, label) for source in sources for label in source.channel.outputs)
    ends = np.cumsum([source.channel.shape[1] for source in sources])
    reports = np.full(0 if from_counts else len(sources[0].positions), -1)
    for end, source in zip(ends, sources, strict=True):
        if not from_counts:
            reports[source.positions >= 0] = source.positions[source.positions >= 0] + end - source.channel.shape[1]
    counts = (
        np.hstack([source.positions for source in sources])
        if from_counts
        else np.bincount(reports[reports >= 0], minlength=ends[-1])
    )
    if not counts.any():
        raise invalid("reports", "at least one that is not empty", "none")
    # A channel only for the table's sake: its outputs are those of every booklet, and its answers have no meaning.
    channel = Channel(np.full((2, len(outputs)), 1 / len(outputs)), (0, 1), outputs)
    table: CountTable | SampledReports = CountTable.from_counts(counts, outputs)
    if design is not None:
        table = SampledReports(np.maximum(reports, 0), channel, design).where(reports >= 0)
    parts = zip(sources, np.split(table.frequencies, ends[:-1]), np.split(counts, ends[:-1]), strict=True)
    estimates = []
    for source, booklet_frequencies, booklet_counts in parts:
        report_fraction = float(booklet_frequencies.sum())
        loadings, variances = loadings_of(
            source,
            booklet_frequencies / report_fraction if report_fraction else booklet_frequencies,
            int(booklet_counts.sum()),
        )
        estimates.append(
            (
                loadings @ booklet_frequencies / report_fraction if report_fraction else 0 * variances,
                loadings,
                variances,
                report_fraction,
            )
        )
    precision = np.array([report_fraction / variances for _, _, variances, report_fraction in estimates])
    if not (is_identified := precision.sum(axis=0) > 0).all():
        expected = "reports: expected a booklet whose reports tell of"
        raise NotIdentifiable(f"{expected} {labels[int(np.argmin(is_identified))]!r}, got none", sources[0].contrasts)
    weights = precision / precision.sum(axis=0)
    values = np.sum([weight * booklet for weight, (booklet, *_) in zip(weights, estimates, strict=True)], axis=0)
    # Linearized about the booklets' proportions of the reports, which are random.
    combined = [
        weight[:, None] / report_fraction * (loading - booklet[:, None]) if report_fraction else 0 * loading
        for weight, (booklet, loading, _, report_fraction) in zip(weights, estimates, strict=True)
    ]
    name = "generalized least squares" + (f", combined over {len(sources)} booklets" if len(sources) > 1 else "")
    bets = bets_of(table, [loadings_of(booklet, booklet.pilot, 0) for booklet in sources]) if anytime else None
    loadings = np.hstack(combined) + values[:, None]
    if isinstance(table, SampledReports):
        booklets = tuple((source.channel.matrix, source.contrasts) for source in sources)
        table = replace(table, booklets=booklets, combined=loadings)
    report_counts = [int(booklet_counts.sum()) for booklet_counts in np.split(counts, ends[:-1])]
    positive = _positive_distribution(sources, np.split(table.frequencies, ends[:-1]), report_counts)
    return Estimate(values, labels, loadings, table, channel, name, positive_distribution=positive, bets=bets)


def _positive_distribution(
    sources: Sequence[Source], frequencies_by_booklet: Sequence[Array], report_counts: Sequence[int]
) -> Array | None:
    """The distribution of the reports of all booklets (m,), where each possible report has positive probability.

    A booklet with a report that nobody has sent is mixed with one more respondent than it has, of uniform answers:
    `positive_report_distribution` without the proportions, which a booklet alone may not identify. None if no booklet
    has such a report.
    """
    mixed, is_mixed = [], False
    for source, frequencies, n in zip(sources, frequencies_by_booklet, report_counts, strict=True):
        k, report_fraction = source.channel.shape[0], frequencies.sum()
        one_more = source.channel.push(np.full(k, 1 / k))
        if report_fraction and (frequencies[one_more > 0] == 0).any():
            frequencies, is_mixed = (n * frequencies + report_fraction * one_more) / (n + 1), True
        mixed.append(frequencies)
    return np.concatenate(mixed) if is_mixed else None


def loadings_of(source: Source, frequencies: Array, n: int) -> tuple[Array, Array]:
    """Return loadings (r, m) for n reports of a booklet, and the variance (r,) of one report.

    frequencies : (m,) of its reports.

    Where the booklet does not identify a quantity, the loadings are 0 and the variance is inf.
    """
    channel, r = source.channel, len(source.contrasts)
    # More answers than reports are never identified, and they may be many, as those that include a number.
    answers = np.eye(channel.shape[0])[: None if channel.shape[0] <= channel.shape[1] else 0]
    all_loadings, identified = efficient_contrasts(channel, source.pilot, np.vstack([source.contrasts, answers]))
    loadings, answer_loadings = all_loadings[:r], all_loadings[r:]
    if n and channel.shape[0] < channel.shape[1] and identified.all():
        # The loadings of least variance at a first estimate, as for a single question.
        loadings = efficient_contrasts(channel, pilot_of(answer_loadings, frequencies, n), source.contrasts)[0]
    report_distribution, is_identified = channel.push(source.pilot), identified[:r]
    variances = np.maximum(loadings**2 @ report_distribution - (loadings @ report_distribution) ** 2, 1e-300)
    return np.where(is_identified[:, None], loadings, 0.0), np.where(is_identified, variances, np.inf)
