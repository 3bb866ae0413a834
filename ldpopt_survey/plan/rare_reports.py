"""Merge the reports of a channel that are so rare that intervals would need too many respondents to be trusted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import centered, efficient_contrasts, reports_to_estimate
from ldpopt_survey.plan.smaller_epsilon import LEAST_EXCESS, Attempt
from ldpopt_survey.plan.units import Target

MAX_MERGING_COST = 1.03
"""The factor by which rare reports may raise the respondents for targets where they are merged."""

MAX_VAIN_MERGES, MAX_VAIN_ENTRIES, LEAST_MERGING_GAIN = 8, 200_000, 1e-3
"""Of so many rare reports, merged one after another without saving this fraction of respondents, the last is the end.

It is fewer for channels of many entries, so that so many entries are looked at.
"""

SMALLEST_PROBABILITY = 1e-150
"""Smaller probabilities of a report count as this one, so that squares of ratios are finite where nobody answers."""


def attempt_of(epsilon: float, channel: Channel, pilot: Array, targets: Sequence[Target]) -> Attempt:
    """Return a channel of an epsilon (nats) with the respondents that it needs for targets at a pilot (k,).

    Where an estimate rests on rare reports, the report that contributes the most to its third moment is merged with
    another one, as long as that costs the targets little. Since it is a function of the report, no guarantee is
    weakened.
    """
    rows = np.array([target.row for target in targets]).reshape(-1, len(pilot))
    limits = np.array([target.variance for target in targets])
    vain_merges, columns, best, most_for_targets = 0, channel.matrix, None, np.inf
    max_vain_merges = min(MAX_VAIN_MERGES, MAX_VAIN_ENTRIES // columns.size)
    while True:
        loadings, is_identified = efficient_contrasts(channel, pilot, rows)
        identified = np.asarray(is_identified, dtype=np.bool_)
        probabilities = channel.push(pilot)
        deviations = np.abs(centered(loadings, probabilities))
        thirds = deviations**3 * probabilities
        variances = deviations**2 @ probabilities
        needed = reports_to_estimate(identified, variances, thirds.sum(axis=1))
        for_targets = float(np.where(identified, variances / limits, np.inf).max(initial=0.0))
        attempt = Attempt(epsilon, channel, for_targets, float(needed.max(initial=0.0)))
        if best is None:
            best, most_for_targets = attempt, for_targets * MAX_MERGING_COST
        elif not for_targets <= most_for_targets:
            return best
        else:
            is_vain = attempt.required >= best.required * (1 - LEAST_MERGING_GAIN)
            vain_merges = vain_merges + 1 if is_vain else 0
            best = min(best, attempt, key=lambda a: a.required)
        if not best.excess > LEAST_EXCESS or vain_merges >= max_vain_merges or columns.shape[1] <= 2:
            return best
        columns = _merged(columns, pilot, int(thirds[needed.argmax()].argmax()))
        channel = Channel(columns / columns.sum(axis=1, keepdims=True))


def _merged(columns: Array, pilot: Array, place: int) -> Array:
    """Return the columns with one of them added to another, where the sum loses the least information."""
    probabilities = np.maximum(pilot @ columns, SMALLEST_PROBABILITY)
    ratios = columns / probabilities
    losses = pilot @ (ratios - ratios[:, [place]]) ** 2 * (probabilities / (probabilities + probabilities[place]))
    losses[place] = np.inf
    merged = columns.copy()
    merged[:, int(losses.argmin())] += columns[:, place]
    return np.delete(merged, place, axis=1)
