"""Reports of booklets that ask a question -> its shares, combined over the booklets with their errors [Rao; SSW].

Each booklet's respondents are a random part of all, so its own reports estimate the question without bias. Estimates of
several booklets are averaged, category by category, with weights that are inverse to their variances at the pilot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, Label
from ldpopt.distribution import Array
from ldpopt.errors import invalid
from ldpopt.survey.estimate.counts import CountTable
from ldpopt.survey.estimate.estimate import Estimate
from ldpopt.survey.estimate.linear import NotIdentifiable, efficient_contrasts, pilot_of
from ldpopt.survey.estimate.sampled import SampledReports
from ldpopt.survey.sample.design import SampleDesign


@dataclass(frozen=True, eq=False)
class Source:
    """What the reports of one booklet tell of r quantities, which are weights (r, k) of its k answers, the `contrasts`.

    at : (n,) each respondent's report, as a position among the outputs of `channel`; -1 for none. Counts (m,) of the
        outputs may stand for it. pilot : (k,) the expected shares of the answers.
    """

    name: str
    channel: Channel
    at: npt.NDArray[np.intp]
    contrasts: Array
    pilot: Array


def estimate_booklets(
    sources: Sequence[Source], labels: tuple[Label, ...], design: SampleDesign | None = None, counted: bool = False
) -> Estimate:
    """The estimate of r quantities, named `labels`, from the reports of one booklet or more.

    design : of the sample of all respondents, those without a report included; None for a simple sample.
    counted : whether the sources have counts.

    The reports of all booklets count as those of one channel whose output is the booklet together with the report.
    `NotIdentifiable` if a booklet does not tell a quantity, `InvalidInput` if nobody has a report.
    """
    outputs = tuple((source.name, label) for source in sources for label in source.channel.outputs)
    ends = np.cumsum([source.channel.shape[1] for source in sources])
    reports = np.full(0 if counted else len(sources[0].at), -1)
    for end, source in zip(ends, sources, strict=True):
        if not counted:
            reports[source.at >= 0] = source.at[source.at >= 0] + end - source.channel.shape[1]
    counts = (
        np.hstack([source.at for source in sources])
        if counted
        else np.bincount(reports[reports >= 0], minlength=ends[-1])
    )
    if not counts.any():
        raise invalid("reports", "at least one that is not empty", "none")
    # What the table is of: its outputs are those of every booklet, and its answers are nobody's.
    channel = Channel(np.full((2, len(outputs)), 1 / len(outputs)), (0, 1), outputs)
    table: CountTable | SampledReports = CountTable.from_counts(counts, outputs)
    if design is not None:
        table = SampledReports(np.maximum(reports, 0), channel, design).where(reports >= 0)
    found = [
        _one(source, law, int(own.sum()))
        for source, law, own in zip(
            sources, np.split(table.frequencies, ends[:-1]), np.split(counts, ends[:-1]), strict=True
        )
    ]
    precision = np.array([one.share / one.variances for one in found])
    weights = precision / precision.sum(axis=0)
    values = np.sum([weight * one.values for weight, one in zip(weights, found, strict=True)], axis=0)
    # Linearised about the booklets' shares of the reports, which are random.
    loadings = [
        weight[:, None] / one.share * (one.loadings - one.values[:, None]) if one.share else 0 * one.loadings
        for weight, one in zip(weights, found, strict=True)
    ]
    name = "generalised least squares" + (f", combined over {len(sources)} booklets" if len(sources) > 1 else "")
    return Estimate(values, labels, np.hstack(loadings) + values[:, None], table, channel, name)


@dataclass(frozen=True, eq=False)
class _Part:
    """What one booklet tells: `values` (r,), `loadings` (r, m), `variances` (r,) of one report, `share` of reports."""

    values: Array
    loadings: Array
    variances: Array
    share: float


def _one(source: Source, law: Array, n: int) -> _Part:
    channel, share = source.channel, float(law.sum())
    frequencies = law / share if share else law
    every = np.vstack([source.contrasts, np.eye(channel.shape[0])])
    found, identified = efficient_contrasts(channel, source.pilot, every)
    if not identified[: len(source.contrasts)].all():
        expected = f"booklet {source.name!r}: expected reports that tell of every answer, got others"
        raise NotIdentifiable(expected, source.contrasts)
    loadings, cells = found[: len(source.contrasts)], found[len(source.contrasts) :]
    if share and channel.shape[0] != channel.shape[1] and identified.all():
        # The loadings of least variance at a first estimate, as for a single question.
        loadings = efficient_contrasts(channel, pilot_of(cells @ frequencies, n), source.contrasts)[0]
    expected_law = channel.push(source.pilot)
    variances = loadings**2 @ expected_law - (loadings @ expected_law) ** 2
    return _Part(loadings @ frequencies, loadings, np.maximum(variances, 1e-300), share)
