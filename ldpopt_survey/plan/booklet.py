"""Define a booklet: units asked together, their channel, and the information of one report on each target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import (
    Constraint,
    Design,
    FisherInformation,
    Marginals,
    MVOptimal,
    ThresholdColumns,
    optimal_channel,
)
from ldpopt.errors import InvalidInput
from ldpopt.values.deadline import Deadline
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_moments, contrast_variances, reports_to_estimate
from ldpopt_survey.plan.planned_question import Part
from ldpopt_survey.plan.units import Target, Unit, binding_targets, product_of

MIN_REPORT_PROBABILITY = 1e-4
"""The least probability of a report under the pilot; rarer ones are joined with the one that is most like them."""

SMALLEST_VARIANCE = 1e-300
"""Smaller variances of an estimate count as this one, so that its precision is finite."""


@dataclass(frozen=True, eq=False)
class Booklet:
    """Units that are asked together, with their channel and its design, if it was searched.

    rates : for each target, the fraction of it that one respondent supplies: 1 / respondents needed.
    """

    units: tuple[Unit, ...]
    channel: Channel
    design: Design | None
    rates: Mapping[tuple[str, ...], float]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The questions, in order."""
        return tuple(part for unit in self.units for part in unit.parts)

    @property
    def pilot(self) -> Array:
        """The pilot of the cells, shape (K,)."""
        return product_of(self.units)[0]

    @cached_property
    def trusted_rates(self) -> Mapping[tuple[str, ...], float]:
        """The rates; lower ones where estimates rest on rare reports, so that they need more to be estimable."""
        pilot, targets = product_of(self.units)
        rows = np.array([target.row for target in targets]).reshape(-1, len(pilot))
        needed = reports_to_estimate(*contrast_moments(self.channel, pilot, rows))
        limits = {target.key: 1 / n if n > 0 else math.inf for target, n in zip(targets, needed, strict=True)}
        return {key: min(rate, limits.get(key, math.inf)) for key, rate in self.rates.items()}

    @property
    def respondents(self) -> float:
        """The respondents, unrounded, who meet every target and make it estimable if all get this booklet.

        It is inf if none are enough.
        """
        lowest_rate = min(self.trusted_rates.values(), default=math.inf)
        return 1 / lowest_rate if lowest_rate > 0 else math.inf


BookletShares = tuple[tuple[Booklet, Fraction], ...]
"""Booklets with the share of respondents that each is asked of."""


def booklet_of(
    units: tuple[Unit, ...], channel: Channel, design: Design | None, pilot: Array, targets: Sequence[Target]
) -> Booklet:
    """Build the booklet, with the contribution of one report to each target."""
    variances = contrast_variances(channel, pilot, np.array([t.row for t in targets]).reshape(-1, len(pilot)))
    rates = {
        target.key: target.variance / max(variance, SMALLEST_VARIANCE) if math.isfinite(variance) else 0.0
        for target, variance in zip(targets, variances, strict=True)
    }
    return Booklet(units, channel, design, rates)


def merge_rare_reports(channel: Channel, pilot: Array, min_probability: float = MIN_REPORT_PROBABILITY) -> Channel:
    """Merge each report rarer than `min_probability` with the report most like it.

    A solver leaves traces of reports that hardly any respondent sends, and their information must not count. This is a
    function of the report, so no guarantee is weakened.
    """
    columns = channel.matrix.copy()
    while (probabilities := pilot @ columns).min() < min_probability and columns.shape[1] > 2:
        rare = int(probabilities.argmin())
        ratios = columns / np.maximum(probabilities, 1e-300)
        distances = pilot @ (ratios - ratios[:, [rare]]) ** 2
        distances[rare] = np.inf
        columns[:, int(distances.argmin())] += columns[:, rare]
        columns = np.delete(columns, rare, axis=1)
    return Channel(columns / columns.sum(axis=1, keepdims=True))


def channel_for_targets(
    targets: Sequence[Target],
    pilot: Array,
    constraints: Sequence[Constraint],
    deadline: Deadline,
    gap: float,
    start: Channel | None = None,
) -> Channel:
    """Design the channel for the target that needs the most respondents, up to a relative gap.

    start : a good channel at another epsilon, if one is known.
    """
    targets = binding_targets(targets)
    scale = min(target.variance for target in targets)
    factors = np.sqrt([[scale / target.variance] for target in targets])
    rows = np.array([target.row - target.row @ pilot for target in targets]) * factors
    utility = FisherInformation(pilot, MVOptimal(rows.T))
    with suppress(InvalidInput):  # of a small cap, say
        method = ThresholdColumns(gap, start)
        return optimal_channel(utility, constraints, method=method, time_limit=deadline.left, certify=False).channel
    # The sum of the variances is within reach of other methods for more cells. The weight of the cells is a trace.
    criterion = Marginals((len(pilot),), [1e-9], contrasts=(rows * factors).T)
    utility = FisherInformation(pilot, criterion)
    return optimal_channel(utility, constraints, time_limit=deadline.left, certify=False).channel
