"""Mix channels of one unit by a public coin, where one is precise and another has no rare reports."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from ldpopt.channel import Channel
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import centered, reports_to_estimate
from ldpopt_survey.plan.units import Target

MAX_MIXED = 3
"""The most channels in a mixture."""

FIRST_PARTS = 0.5, 0.7, 0.9, 0.97
"""The parts of one of two channels in the mixtures at which a search may begin."""

STEP_PARTS, LEAST_STEP_SAVING = (0.5, 0.25, 0.12, 0.06, 0.03), 0.01
"""The parts of a mixture that another channel may take in a step, and the saving for which a step is taken."""

LEAST_PROBABILITY = 1e-12
"""Rarer reports are left out of the comparison, so that the squares of their scores are finite."""

SINGULAR_RTOL, UNBIASED_RTOL = 1e-12, 1e-6
"""The relative sizes of singular values that count as zero, and of errors of estimates that count as none."""


def mixture_of(channels: Sequence[Channel], pilot: Array, targets: Sequence[Target]) -> Channel | None:
    """Return a mixture of some channels that needs fewer respondents than each of them; None if none is found.

    A coin that everybody sees decides which channel makes a report. So an answer may be told precisely to some, and
    with frequent reports to others. The search begins with the best channel or mixture of two, and lets others take
    parts of the mixture.
    """
    needs = _Needs(channels, pilot, targets)
    units = np.eye(len(channels))
    pairs = [part * a + (1 - part) * b for part in FIRST_PARTS for a, b in permutations(units, 2)]
    required, shares = _smallest_need([*units, *pairs], needs)
    step = 0
    while step < len(STEP_PARTS) and np.isfinite(required):
        candidates = [
            (1 - STEP_PARTS[step]) * shares + STEP_PARTS[step] * unit
            for unit in units
            if shares @ unit > 0 or np.count_nonzero(shares) < MAX_MIXED
        ]
        needed, candidate = _smallest_need(candidates, needs)
        if needed < required * (1 - LEAST_STEP_SAVING):
            required, shares = needed, candidate
        else:
            step += 1
    if shares.max() == 1:
        return None
    parts = [share * channel.matrix for share, channel in zip(shares, channels, strict=True) if share > 0]
    return Channel(np.hstack(parts))


def _smallest_need(candidates: Sequence[Array] | Array, needs: _Needs) -> tuple[float, Array]:
    """Return the fewest respondents of all candidates, and their shares."""
    needed = [needs(shares) for shares in candidates]
    place = int(np.argmin(needed))
    return needed[place], candidates[place]


class _Needs:
    """The respondents for shares of channels: for the targets, and to make them estimable."""

    def __init__(self, channels: Sequence[Channel], pilot: Array, targets: Sequence[Target]) -> None:
        self.contrasts = centered(np.array([target.row for target in targets]).reshape(-1, len(pilot)), pilot)
        self.limits = np.array([target.variance for target in targets])
        self.scores, self.probabilities, self.informations = list[Array](), list[Array](), list[Array]()
        for channel in channels:
            probabilities = channel.push(pilot)
            columns = channel.matrix[:, probabilities > LEAST_PROBABILITY]
            probabilities = probabilities[probabilities > LEAST_PROBABILITY]
            scores = columns / probabilities - 1
            self.scores.append(scores)
            self.probabilities.append(probabilities)
            self.informations.append((scores * probabilities) @ scores.T)

    def __call__(self, shares: Array) -> float:
        information = np.tensordot(shares, self.informations, axes=1)
        kernel = np.linalg.lstsq(information, self.contrasts.T, rcond=SINGULAR_RTOL)[0].T
        errors = np.abs(kernel @ information - self.contrasts).max(axis=1)
        is_identified = errors <= UNBIASED_RTOL * np.abs(self.contrasts).max(axis=1)
        variances, thirds = np.zeros((2, len(self.contrasts)))
        for share, scores, probabilities in zip(shares, self.scores, self.probabilities, strict=True):
            if share > 0:
                deviations = np.abs(kernel @ scores)
                variances = variances + share * (deviations**2 @ probabilities)
                thirds = thirds + share * (deviations**3 @ probabilities)
        needed = np.maximum(variances / self.limits, reports_to_estimate(is_identified, variances, thirds))
        return float(needed.max(initial=0.0))
