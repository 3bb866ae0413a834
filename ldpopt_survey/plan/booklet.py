"""Define a booklet: units asked together, their channel, and the information of one report on each target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import (
    Constraint,
    Criterion,
    Design,
    FisherInformation,
    Marginals,
    ThresholdColumns,
    TotalVariation,
    optimal_channel,
)
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.values.deadline import Deadline
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.planned_question import Part
from ldpopt_survey.plan.units import Target, Unit, product_of

MIN_REPORT_PROBABILITY = 1e-4
"""The least probability of a report under the pilot; rarer ones are joined with the one that is most like them."""


MAX_BALANCING_ROUNDS, MIN_BALANCING_GAIN, MAX_IDLE_ROUNDS = 8, 5e-3, 2
"""The most designs of a balanced channel, the gain of a useful one, and the number of others after which it ends."""

BALANCING_GAP = 1e-4
"""The relative gap of the designs of a balanced channel under a cap on eta."""

MIN_TARGET_WEIGHT = 1e-6
"""The least weight of a target relative to the largest."""

MAX_BALANCED_CELLS = 16
"""The most cells for which weights are balanced; a design takes up to 0.1 s there, and 4 s at 26 cells."""

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

    @property
    def respondents(self) -> float:
        """The respondents, unrounded, who meet every target if all get this booklet; inf if none are enough."""
        lowest_rate = min(self.rates.values(), default=math.inf)
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

    This is a function of the report, so no guarantee is weakened. A solver leaves traces of reports that hardly any
    respondent sends, and their information must not count.
    """
    columns = channel.matrix.copy()
    while len(probabilities := pilot @ columns) > 2 and probabilities.min() < min_probability:
        rare = int(probabilities.argmin())
        ratios = columns / np.maximum(probabilities, 1e-300)
        distances = pilot @ (ratios - ratios[:, [rare]]) ** 2
        distances[rare] = np.inf
        columns[:, int(distances.argmin())] += columns[:, rare]
        columns = np.delete(columns, rare, axis=1)
    return Channel(columns / columns.sum(axis=1, keepdims=True))


def balanced_channel(
    targets: Sequence[Target],
    pilot: Array,
    constraints: Sequence[Constraint],
    deadline: Deadline,
    rounds: int = MAX_BALANCING_ROUNDS,
) -> Channel:
    """Design the channel for the target that needs the most respondents.

    rounds : the most designs, one after another.

    It is optimal for a weighted sum of the variances. A target that needs fewer respondents than another gets less
    weight, until this lowers the largest number no more.
    """
    rows = np.array([target.row - target.row @ pilot for target in targets])
    limits = np.array([target.variance for target in targets])
    weights, best, idle_rounds = np.ones(len(targets)), (math.inf, Channel(np.ones((len(pilot), 1)))), 0
    for _ in range(rounds if len(pilot) <= MAX_BALANCED_CELLS else 1):
        factors = np.sqrt(np.maximum(weights / weights.max(), MIN_TARGET_WEIGHT) / limits * limits.min())
        criterion = Marginals((len(pilot),), [1e-9], contrasts=(rows * factors[:, None]).T)
        utility = FisherInformation(pilot, criterion)
        channel = _designed(utility, constraints, deadline).channel
        required = contrast_variances(channel, pilot, rows) / limits
        idle_rounds = 0 if required.max() < best[0] * (1 - MIN_BALANCING_GAIN) else idle_rounds + 1
        if required.max() < best[0]:
            best = float(required.max()), channel
        if idle_rounds == MAX_IDLE_ROUNDS or not np.isfinite(required).all() or deadline.over():
            break
        weights = weights * required / required.max()
    return best[1]


def _designed(utility: FisherInformation, constraints: Sequence[Constraint], deadline: Deadline) -> Design:
    """Design one of several balanced channels; under a cap on eta to a gap, which takes a fraction of the time."""
    if any(isinstance(constraint, TotalVariation) for constraint in constraints):
        with suppress(InvalidInput, SolverError):  # of a small cap, say
            method = ThresholdColumns(BALANCING_GAP)
            return optimal_channel(utility, constraints, method=method, time_limit=deadline.left, certify=False)
    return optimal_channel(utility, constraints, time_limit=deadline.left, certify=False)


def criterion_of(targets: Sequence[Target], pilot: Array) -> Criterion:
    """Return the criterion that makes variances proportional to those of the targets.

    The weight of the cells themselves is a trace, which the faster method for `Marginals` asks for.
    """
    scale = min(t.variance for t in targets)
    rows = np.array([(t.row - t.row @ pilot) * (scale / t.variance) for t in targets])
    return Marginals((len(pilot),), [1e-9], contrasts=rows.T)
