"""Reports -> confidence sequences: intervals valid at all sample sizes at once, under repeated looks and stopping.

A report has a bounded score whose mean, given the booklet, is the proportion t. So for every lambda the product of 1 +
lambda c (score - t) is a martingale at the true t, for bets up and bets down: a fair game. The wealth is mixed over
lambda by weights that are fixed in advance. By Ville's inequality it ever reaches 2 / alpha with probability at most
alpha / 2. The interval consists of the t whose wealth has not reached it. It depends on the number of reports of each
kind but not on their order [WSR; WSWR].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import NotIdentifiable
from ldpopt_survey.estimate.sampled import SampledReports, Table

SEQUENCE_NAME = "confidence sequence"

HALF_WIDTH = 0.05
"""The half-width at which sequences are shortest, by default."""

LAMBDA_RATIO, LAMBDA_WEIGHT_RATIO = 1.5, 0.75
"""The ratio of neighboring lambdas, and of their weights, on both sides of the lambda for the target half-width."""

_LAMBDAS = np.arange(-36, 19)
MAX_BISECTIONS = 50


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets on r quantities t by U kinds of units (respondents, or clusters of them): 1 +- lambda (gain - t stake).

    gain, stake : (r, U).
    number : (U,) the number of units of each kind.
    low, high : (r,) the range of each quantity.
    losses : (2, r) the largest loss of a stake, up and down.
    favoured : the lambda of largest weight. For single respondents it is the half-width at which intervals are
        shortest.
    """

    gain: Array
    stake: Array
    number: Array
    low: Array
    high: Array
    losses: Array
    favoured: float = HALF_WIDTH

    def limits(self, level: float) -> tuple[Array, Array]:
        """Compute both ends (r,), which contain the true value at every look at once.

        This happens with probability at least `level`. Where every value is excluded, as by reports of another channel,
        the ends are those of the range.
        """
        log_threshold = np.log(2 / (1 - level))
        ends, excludes_all = [], np.zeros(len(self.low), dtype=bool)
        for sign, near_end, far_end in ((1, self.low, self.high), (-1, self.high, self.low)):
            inner, outer = far_end.copy(), near_end.copy()  # wealth falls from outside to inside
            for _ in range(MAX_BISECTIONS):
                midpoint = (inner + outer) / 2
                is_inside = self.log_wealth(midpoint, sign) < log_threshold
                inner, outer = np.where(is_inside, midpoint, inner), np.where(is_inside, outer, midpoint)
            ends.append(np.where(self.log_wealth(near_end, sign) < log_threshold, near_end, outer))
            excludes_all |= self.log_wealth(far_end, sign) >= log_threshold
        excludes_all |= ends[0] > ends[1]
        return np.where(excludes_all, self.low, ends[0]), np.where(excludes_all, self.high, ends[1])

    def log_wealth(self, t: Array, sign: int) -> Array:
        """Compute the log-wealth (r,) at t (r,) of bets that the true value is larger.

        sign : 1, or -1 for bets that the true value is smaller.
        """
        logarithms = np.empty(len(t))
        for row, (gain, stake) in enumerate(zip(self.gain, self.stake, strict=True)):
            lambdas, weights = self._mixture(float(self.losses[0 if sign > 0 else 1, row]))
            log_gains = np.log1p(lambdas[:, None] * (sign * (gain - t[row] * stake))) @ self.number + np.log(weights)
            logarithms[row] = log_gains.max() + np.log(np.exp(log_gains - log_gains.max()).sum())
        return logarithms

    def _mixture(self, loss: float) -> tuple[Array, Array]:
        """The lambdas whose bets cannot lose more than the wealth, and their weights, which sum to 1."""
        cap = 0.95 / loss
        lambdas = min(self.favoured, cap) * LAMBDA_RATIO ** _LAMBDAS.astype(float)
        is_affordable = lambdas <= cap * (1 + 1e-9)
        weights = LAMBDA_WEIGHT_RATIO ** np.abs(_LAMBDAS[is_affordable])
        return lambdas[is_affordable], weights / weights.sum()

    def contrast(self, a: Array) -> Bets:
        """Return the bets on linear combinations (s, r) of quantities.

        The quantities must have equal stakes, else `InvalidInput`.
        """
        if np.abs(self.stake - self.stake[0]).max() > 1e-9 * np.abs(self.stake).max():
            raise InvalidInput("contrast: anytime-valid contrasts need proportions that the same booklets identify")
        positive_part, negative_part = np.maximum(a, 0), np.minimum(a, 0)
        gain, stake = a @ self.gain, np.repeat(self.stake[:1], len(a), axis=0)
        low, high = (
            positive_part @ self.low + negative_part @ self.high,
            positive_part @ self.high + negative_part @ self.low,
        )
        losses = np.array(
            [
                positive_part @ self.losses[0] - negative_part @ self.losses[1],
                positive_part @ self.losses[1] - negative_part @ self.losses[0],
            ]
        )
        return replace(self, gain=gain, stake=stake, low=low, high=high, losses=losses)


def bets_of(table: Table, parts: Sequence[tuple[Array, Array]], half_width: float = HALF_WIDTH) -> Bets:
    """Build the bets on r proportions from the reports of one or more booklets.

    table : the reports; its outputs are those of all booklets in order.

    parts : for each booklet the loadings (r, m), which must not depend on the reports, and the variance (r,) of one
        report. It is inf if the booklet does not identify a proportion.

    half_width : the half-width that the sequences favor.

    Weights, and clusters of respondents, must not exceed the largest in these reports. Raises `InvalidInput` for
    strata, finite populations, known margins and replicate weights, whose errors are not those of independent units.
    """
    # All proportions that a booklet identifies have the same stake, so contrasts of them do as well.
    is_identified = [np.isfinite(variances) for _, variances in parts]
    precisions = np.array(
        [
            mask / (variances[mask].mean() if mask.any() else 1.0)
            for mask, (_, variances) in zip(is_identified, parts, strict=True)
        ]
    )
    if not (precisions.max(axis=0) > 0).all():
        raise NotIdentifiable("confidence sequence: expected reports that tell of every share, got others", parts[0][0])
    stake = np.hstack(
        [np.repeat(row[:, None], len(loadings.T), axis=1) for (loadings, _), row in zip(parts, precisions, strict=True)]
    )
    gain = stake * np.hstack([loadings for loadings, _ in parts])
    losses = np.array([(stake - gain).max(axis=1), gain.max(axis=1)])
    ends = np.zeros(len(gain)), np.ones(len(gain))
    if not isinstance(table, SampledReports):
        occurring = table.totals > 0
        return Bets(
            gain[:, occurring], stake[:, occurring], table.totals[occurring].astype(float), *ends, losses, half_width
        )
    design = table.design
    if len(design.units) > 1 or design.fractions.any() or design.margins or design.method.replicates:
        expected = "a simple sample, weights or clusters (--simple leaves the design of the plan out)"
        raise invalid("--anytime", expected, Phrase("strata, a finite population, known margins or replicates"))
    # A respondent has a report by chance, independently of the answers, so clusters count with their reports alone.
    respondent_weights, report, unit = (column[table.mask] for column in (design.weights, table.positions, design.unit))
    unit_weights = np.bincount(unit, respondent_weights)
    favoured = half_width * float(
        unit_weights.max() / respondent_weights.max()
    )  # times the respondents of the largest cluster, at least
    respondent_weights = respondent_weights / unit_weights.max()
    gains, stakes = (
        np.array([np.bincount(unit, respondent_weights * row[report], len(unit_weights)) for row in matrix])
        for matrix in (gain, stake)
    )
    return Bets(gains, stakes, np.ones(len(unit_weights)), *ends, losses, favoured)
