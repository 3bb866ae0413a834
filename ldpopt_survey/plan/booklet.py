"""What a booklet is: units that are asked together, their channel, and what one report tells of each target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import Criterion, Design, Marginals
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.planned_question import Part
from ldpopt_survey.plan.units import Target, Unit, product_of

RAREST = 1e-4
"""The least probability of a report under the pilot; rarer ones are joined with the one that is most like them."""


@dataclass(frozen=True, eq=False)
class Booklet:
    """Units that are asked together, their `design` or its `channel`, and what one respondent's report tells.

    served : for each target, the share of it that one respondent is, 1 / respondents needed.
    """

    units: tuple[Unit, ...]
    channel: Channel
    design: Design | None
    served: Mapping[tuple[str, ...], float]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The questions, in order."""
        return tuple(part for unit in self.units for part in unit.parts)

    @property
    def pilot(self) -> Array:
        """(K,) the pilot of the cells."""
        return product_of(self.units)[0]


Shares = tuple[tuple[Booklet, Fraction], ...]
"""Booklets with the share of respondents that each is asked of."""


def booklet_of(
    units: tuple[Unit, ...], channel: Channel, design: Design | None, pilot: Array, targets: Sequence[Target]
) -> Booklet:
    """The booklet with what one respondent's report through the channel serves each target."""
    variances = contrast_variances(channel, pilot, np.array([t.row for t in targets]).reshape(-1, len(pilot)))
    served = {
        target.key: target.variance / variance if math.isfinite(variance) else 0.0
        for target, variance in zip(targets, variances, strict=True)
    }
    return Booklet(units, channel, design, served)


def without_rare(channel: Channel, pilot: Array) -> Channel:
    """The channel with reports rarer than `RAREST` joined each with the one that it is most like.

    That is a function of the report, so that no guarantee is weaker. A solver leaves traces of reports that nearly
    nobody sends; what they would tell must not count.
    """
    columns = channel.matrix.copy()
    while len(law := pilot @ columns) > 2 and law.min() < RAREST:
        rare = int(law.argmin())
        ratios = columns / np.maximum(law, 1e-300)
        distances = pilot @ (ratios - ratios[:, [rare]]) ** 2
        distances[rare] = np.inf
        columns[:, int(distances.argmin())] += columns[:, rare]
        columns = np.delete(columns, rare, axis=1)
    return Channel(columns / columns.sum(axis=1, keepdims=True))


def criterion_of(targets: Sequence[Target], pilot: Array) -> Criterion:
    """Information is shared out so that every variance is in proportion to the one that is wanted.

    The weight of the cells themselves is a trace, which the faster method for `Marginals` asks for.
    """
    scale = min(t.variance for t in targets)
    rows = np.array([(t.row - t.row @ pilot) * (scale / t.variance) for t in targets])
    return Marginals((len(pilot),), [1e-9], contrasts=rows.T)
