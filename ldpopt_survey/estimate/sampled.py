"""Reports with the design of their sample -> sampling variances by linearization or replication."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.counts import CountTable, are_reports, find_positions, positions, report_column
from ldpopt_survey.estimate.linear import (
    NotIdentifiable,
    centered,
    efficient_loadings,
    report_covariance,
    require_identifiable,
)
from ldpopt_survey.estimate.results import simplex_projection
from ldpopt_survey.sample.design import SampleDesign, SamplingVariance

__all__ = ["SampledReports", "as_table"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class SampledReports(ByValue):
    """The reports of a sample, or of a group in it, with the design of the whole sample; accepted like a `CountTable`.

    - `positions` : (n,) every respondent's report, as a position among the outputs of `channel`.
    - `design` : the `SampleDesign` of all n respondents.
    - `in_group` : (n,) mask of the group to estimate; None for all. Respondents outside the group remain in the design
      without contributing to the estimate. This makes the variance of a subgroup right [SSW, section 5.8].
    - `booklets` : for the outputs of several booklets, each booklet's channel matrix (k, m) and the weights of its
      answers in r quantities, (r, k). By default `channel` alone.
    - `combined` : with booklets, the loadings (r, m) of all outputs. For every respondent and booklet, their mean is
      the weight of the true answers in the quantities.

    >>> from ldpopt_survey import SampleDesign, estimate
    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> made = SampledReports.of([0, 1, 1, 1], q, SampleDesign(weights=[1, 2, 1, 2]))
    >>> estimate(made, q).values.round(4), estimate(made.where([True, True, True, False]), q).values.round(4)
    (array([-0.0556,  1.0556]), array([0.0833, 0.9167]))
    """

    positions: npt.NDArray[np.intp]
    channel: Channel
    design: SampleDesign
    in_group: Mask | None = None
    booklets: tuple[tuple[Array, Array], ...] = ()
    combined: Array | None = None

    simple: ClassVar[bool] = False

    @classmethod
    def of(cls, reports: Any, channel: ChannelLike, design: SampleDesign) -> SampledReports:
        """Build from the reports (n,) of a channel, a column or a frame.

        `InvalidInput` unless there is one report per respondent of the design.
        """
        question_channel = as_channel(channel)
        report_positions = positions(report_column(reports, channel), question_channel.outputs)
        if len(report_positions) != design.n:
            raise invalid("reports", f"{design.n}, one a respondent of the design", len(report_positions))
        return cls(report_positions, question_channel, design)

    def where(self, in_group: ArrayLike) -> SampledReports:
        """Select the respondents in a mask (n,), within the previous group, if any."""
        mask = np.asarray(in_group)
        if mask.shape != (self.design.n,) or mask.dtype != bool:
            raise invalid("inside", f"{self.design.n} truth values", Phrase(f"{mask.dtype} of shape {mask.shape}"))
        mask = mask if self.in_group is None else mask & self.in_group
        if not (mask & self.design.weighted).any():
            raise InvalidInput("group: no respondent of the group has a positive weight")
        return replace(self, in_group=mask)

    @property
    def outputs(self) -> tuple[Label, ...]:
        """The m labels of the channel's outputs."""
        return self.channel.outputs

    @property
    def mask(self) -> Mask:
        """Mask (n,) of the respondents in the group who have a positive weight."""
        return self.design.weighted if self.in_group is None else self.in_group & self.design.weighted

    @property
    def n(self) -> int:
        """Number of respondents in the group who have a positive weight."""
        return int(self.mask.sum())

    @property
    def totals(self) -> npt.NDArray[np.int64]:
        """Number (m,) of respondents for each output."""
        return np.bincount(self.positions[self.mask], minlength=len(self.outputs))

    @property
    def total_weight(self) -> float:
        """Sum of the weights in the group, which estimates the group's size in the population."""
        return float(self.design.weights[self.mask].sum())

    @property
    def equal_n(self) -> float:
        """Kish's effective sample size: the number of respondents of equal weights with the same precision [Kish]."""
        relative_weights = self.design.weights[self.mask]
        relative_weights = relative_weights / relative_weights.max()
        return float(relative_weights.sum() ** 2 / (relative_weights @ relative_weights))

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of a variance within the group, by `SampleDesign.degrees_within`."""
        return self.design.degrees_within(self.mask)

    @cached_property
    def frequencies(self) -> Array:
        """Weighted proportion (m,) of every output."""
        sums = np.bincount(self.positions[self.mask], self.design.weights[self.mask], len(self.outputs))
        return np.asarray(sums / sums.sum())

    def frequencies_under(self, weights: Array) -> Array:
        """Compute the weighted proportions (R, m) under replicate weights (R, n)."""
        w = weights * self.mask
        sums = np.stack([w[:, self.positions == y].sum(axis=1) for y in range(len(self.outputs))], axis=1)
        total = sums.sum(axis=1, keepdims=True)
        if not self.degrees:  # a group inside one unit has no estimate without it, and always the same with it
            sums, total = np.where(total > 0, sums, self.frequencies), np.where(total > 0, total, 1.0)
        if not total.min() > 0:
            expected = "somebody of the group in each (linearization needs none)"
            raise invalid("replicates", expected, Phrase("none in one"))
        return np.asarray(sums / total)

    def __repr__(self) -> str:
        return f"SampledReports({self.n} reports over {len(self.outputs)} outputs; {self.design!r})"


Part = tuple[SampledReports, Array]
"""Reports with loadings (r, m)."""


def designed_variance(parts: Sequence[Part]) -> SamplingVariance:
    """Compute the covariance of the sum of l_i f_i over parts of one design.

    The parts are groups or questions of the same respondents. A respondent's influence is the sum over the parts of
    (l_i at the report - l_i f_i) / W_i. No variance is less than that of the channels' randomness alone. The degrees of
    freedom are those of the respondents who contribute to some estimate: 0 if some group is inside one primary unit of
    each stratum.
    """
    design = parts[0][0].design
    noise = _noise(parts)
    score_parts = [_scores(*part) for part in parts]
    sizes = np.abs(score_parts).max(axis=(0, 2))
    contributes = _contributes(sizes) if sizes.any() else np.any([reports.mask for reports, _ in parts], axis=0)
    degrees = design.degrees_within(contributes) if all(reports.degrees for reports, _ in parts) else 0.0
    if design.method.replicates:

        def statistic(weights: Array) -> Array:
            estimates = [reports.frequencies_under(weights) @ loadings.T for reports, loadings in parts]
            return np.asarray(np.sum(estimates, axis=0))

        sampling = design.replicate(statistic, noise, contributes)
        degrees = degrees if math.isinf(degrees) else min(degrees, sampling.degrees)
    else:
        sampling = design.total_variance(np.sum(score_parts, axis=0), noise)
        factors = [_leverage_factors(reports, scores) for (reports, _), scores in zip(parts, score_parts, strict=True)]
        if any(factor.max() > 1 for factor in factors):
            adjusted = np.sum([factor * scores for factor, scores in zip(factors, score_parts, strict=True)], axis=0)
            unit_variances = design.total_variance(adjusted, noise).unit_variances
            sampling = replace(sampling, unit_variances=unit_variances)
    return replace(sampling, degrees=degrees)


def _contributes(sizes: Array) -> npt.NDArray[np.bool_]:
    """Return True for respondents whose scores have sizes (n,) above the rounding errors of the largest one."""
    return np.asarray(sizes > 1e-9 * sizes.max(), dtype=np.bool_)


def _leverage_factors(reports: SampledReports, scores: Array) -> Array:
    """Factors (n, 1) of the scores (n, r), 1 where all primary units that contribute have the same weight.

    A unit with a fraction h of the weight pulls the estimate toward itself, which makes the expected square of its
    total smaller by 1 - h. The factor n / (n - 1) of a variance allows for this with an average unit, but not with a
    larger one [BM].
    """
    design, sizes = reports.design, np.abs(scores).max(axis=1)
    totals = np.bincount(design.unit, design.weights * _contributes(sizes), len(design.unit_stratum))
    fractions = np.asarray(totals / max(float(totals.sum()), 1e-300))
    average = 1 / max(int(np.count_nonzero(fractions)), 1)
    is_larger = (fractions > average * (1 + 1e-9)) & (fractions < 1)
    factors = np.sqrt(np.where(is_larger, (1 - average) / np.where(is_larger, 1 - fractions, 1.0), 1.0))
    return np.asarray(factors[design.unit, None])


def _scores(reports: SampledReports, loadings: Array) -> Array:
    influence = centered(loadings, reports.frequencies) / reports.total_weight
    return np.asarray(influence.T[reports.positions] * reports.mask[:, None])


def _noise(parts: Sequence[Part]) -> Array:
    """The variance from the channels' randomness: the sum of w_i^2 Cov(score_i | answer_i).

    It is averaged over answers that would give the reports of every stratum, (H, r, r). The reports of the whole sample
    are enough, (r, r), if the design does not need strata.
    """
    design, r = parts[0][0].design, parts[0][1].shape[0]
    by_stratum = design.needs_noise
    stratum = design.unit_stratum[design.unit] if by_stratum else np.zeros(design.n, dtype=np.intp)
    noise = np.zeros((len(design.units) if by_stratum else 1, r, r))
    weights = np.where(np.any([table.mask for table, _ in parts], axis=0), design.weights, 0.0)
    largest_weight = weights.max()  # in any unit of the weights, no square overflows or underflows
    squares = (weights / largest_weight) ** 2
    questions: dict[int, list[Part]] = {}
    for part in parts:
        questions.setdefault(id(part[0].positions), []).append(part)
    for question_parts in questions.values():
        reports = question_parts[0][0]
        patterns = np.array([table.mask for table, _ in question_parts])
        for pattern in np.unique(patterns, axis=1).T if len(patterns) > 1 else np.array([[patterns.any()]]):
            if not pattern.any():
                continue
            members = np.all(patterns == pattern[:, None], axis=0)
            group_parts = [part for part, uses in zip(question_parts, pattern, strict=True) if uses]
            loadings = np.sum([rows / (group.total_weight / largest_weight) for group, rows in group_parts], axis=0)
            m = loadings.shape[1]
            squares_by_report = np.bincount(
                stratum[members] * m + reports.positions[members], squares[members], len(noise) * m
            )
            sums = np.asarray(squares_by_report, dtype=np.float64).reshape(-1, m)
            noise += _channel_variance(reports, loadings, sums)
    return noise if by_stratum else np.asarray(noise[0])


def _channel_variance(reports: SampledReports, loadings: Array, sums: Array) -> Array:
    """The sum over reports (H, r, r) of Cov(loadings | answers), for weights `sums` (H, m) of the reports.

    Given the answers the report is random, and with several booklets also the choice of the booklet.
    """
    parts = [(reports.channel.matrix, reports.channel.matrix @ loadings.T)]
    if reports.combined is not None:
        base = np.vstack([reports.combined, np.ones(loadings.shape[1])])
        rows = np.linalg.lstsq(base.T, loadings.T, rcond=None)[0]
        parts = [(q, contrasts.T @ rows[:-1] + rows[-1]) for q, contrasts in reports.booklets]
    noise = np.array([loadings * row @ loadings.T for row in sums])
    start = 0
    for q, means in parts:
        block = sums[:, start : (start := start + q.shape[1])]
        total = block.sum(axis=1)
        occupied = np.flatnonzero(total > 0)
        answers = _answers(q, block[occupied] / total[occupied, None]) * total[occupied, None]
        for row_index, weights in zip(occupied, answers, strict=True):
            if (
                len(parts) == 1
            ):  # the distribution of reports under these answers, which may differ from the observed one
                noise[row_index] = loadings * (weights @ q) @ loadings.T
            noise[row_index] -= means.T * weights @ means
    if len(parts) == 1:
        return noise
    # The difference of two estimates may have negative eigenvalues.
    values, vectors = np.linalg.eigh((noise + noise.transpose(0, 2, 1)) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None]) @ vectors.transpose(0, 2, 1))


def _answers(q: Array, laws: Array) -> Array:
    """Answers (H, k) whose reports have about the distributions `laws` (H, m), also where these leave a choice."""
    if (loadings := _answer_loadings(q.tobytes(), q.shape)) is None:
        answers = np.full((len(laws), len(q)), 1 / len(q))
        for _ in range(200):  # steps of expectation and maximization
            answers = answers * (laws / np.maximum(answers @ q, 1e-300) @ q.T)
            answers /= np.maximum(answers.sum(axis=1, keepdims=True), 1e-300)
        return answers
    return simplex_projection(laws @ loadings.T)


@lru_cache(maxsize=64)
def _answer_loadings(raw: bytes, shape: tuple[int, ...]) -> Array | None:
    """Loadings (k, m) that estimate the answers from reports of a channel; None if it does not identify them."""
    q = np.frombuffer(raw).reshape(shape)
    channel = Channel(q / q.sum(axis=1, keepdims=True))
    try:
        require_identifiable(channel)
    except NotIdentifiable:
        return None
    return efficient_loadings(channel, np.full(len(q), 1 / len(q)))


Table = CountTable | SampledReports
"""Reports for estimates: counts, or the reports of single respondents with their design."""


def as_tables(data: Sequence[Any], channels: Sequence[ChannelLike]) -> tuple[Table, ...]:
    """Convert several data to tables, by `as_table`.

    If one array can only be counts, all that could be either are counts.
    """
    counts = False
    for item, channel in zip(data, channels, strict=True):
        if isinstance(item, (list, tuple, np.ndarray)):
            outputs, array = as_channel(channel).outputs, np.asarray(item)
            has_all_outputs = array.ndim == 1 and array.dtype.kind in "iuf" and len(array) == len(outputs)
            counts |= has_all_outputs and not are_reports(array, outputs)
    return tuple(as_table(item, channel, counts) for item, channel in zip(data, channels, strict=True))


def as_table(data: Any, channel: ChannelLike, counts: bool = False) -> Table:
    """Convert `data` to a count table.

    data : a table, counts by label, an array of m counts, or reports, perhaps in a data frame.
    counts : True if an array that could be either is counts.

    A numeric array of m entries is taken as counts, and anything else as reports. An array that could be either is
    `InvalidInput` unless `counts` is set. So is an array of fewer than m numbers: they may be counts of which some are
    missing. A pandas series, as from `value_counts`, is read by its index.
    """
    if not isinstance(data, (CountTable, SampledReports, Mapping)):
        data = report_column(data, channel)
    channel = as_channel(channel)
    if isinstance(data, (CountTable, SampledReports)):
        has_same_outputs = data.outputs == channel.outputs
        if has_same_outputs and isinstance(data, CountTable):
            return data
        if not has_same_outputs and find_positions(list(data.outputs), channel.outputs).tolist() != list(
            range(len(channel.outputs))
        ):
            raise invalid("count table", f"the channel's outputs {channel.outputs[:8]}", data.outputs[:8])
        if isinstance(data, SampledReports):
            return replace(data, channel=channel)
        return CountTable(channel.outputs, data.totals)
    if isinstance(data, Mapping):
        return CountTable.from_counts(data, channel.outputs)
    if hasattr(data, "to_pylist"):  # an arrow column
        data = np.asarray(data.to_pylist())
    array = np.asarray(data)
    if array.ndim == 0:
        raise invalid("data", "counts by label, an array of counts, or a column of reports", Phrase("one value"))
    is_numeric, has_all_outputs = array.ndim == 1 and array.dtype.kind in "iuf", len(array) == len(channel.outputs)
    is_labeled = is_numeric and hasattr(data, "to_dict") and (has_all_outputs or getattr(data, "name", None) == "count")
    if is_labeled and list(data.index) not in (list(channel.outputs), list(range(len(array)))):
        return CountTable.from_counts(data.to_dict(), channel.outputs)
    if is_numeric and has_all_outputs:
        if not counts and are_reports(array, channel.outputs):
            expected = "CountTable.from_counts(...) or CountTable.from_reports(...)"
            raise invalid("data", expected, "an array that could be either counts or reports")
        return CountTable.from_counts(array, channel.outputs)
    if is_numeric and array.dtype.kind != "b" and 0 < len(array) < len(channel.outputs):
        expected = f"{len(channel.outputs)} counts, one for each output, or CountTable.from_reports(...) for reports"
        raise invalid("data", expected, Phrase(f"{len(array)} numbers, which could be either"))
    return CountTable.from_reports(data, channel)


def sampling_variance(parts: Sequence[tuple[Table, Array]]) -> SamplingVariance:
    """Compute the covariance of sum_i l_i f_i.

    parts : tables with frequencies f_i, and loadings l_i of shape (r, m_i).

    For a simple random sample it is (l diag(f) l^T - t t^T) / n. For reports with a `SampleDesign` the design
    determines it. Different designs are independent samples, with the smallest of their degrees of freedom.
    """
    designed: dict[int, list[Part]] = {}
    variances = []
    for table, loadings in parts:
        if isinstance(table, SampledReports):
            designed.setdefault(id(table.design), []).append((table, loadings))
        else:
            variances.append(SamplingVariance(report_covariance(loadings, table.frequencies) / table.n, math.inf))
    variances += [designed_variance(design_parts) for design_parts in designed.values()]
    covariance = np.sum([variance.covariance for variance in variances], axis=0)
    unit_variances = np.sum([variance.unit_fractions * np.diag(variance.covariance) for variance in variances], axis=0)
    return SamplingVariance(covariance, min(variance.degrees for variance in variances), unit_variances)
