"""Reports -> confidence sequences: intervals that hold after all numbers of reports at once, so one may look and stop.

A report has a bounded score whose mean, given the booklet, is the share t. So for every lambda the product of
1 + lambda c (score - t) is a martingale at the true t, for bets up and bets down: a gambler without an edge. By Ville's
inequality the wealth, mixed over lambda by weights fixed in advance, ever reaches 2 / alpha with chance alpha / 2; the
t at which it has not are an interval, which depends on how many reports there are of each kind but not on their order
[WSR; WSWR].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array
from ldpopt_survey.estimate.linear import NotIdentifiable
from ldpopt_survey.estimate.sampled import SampledReports, Table

NAME = "confidence sequence"

HALF_WIDTH = 0.05
"""The half-width that sequences are best at, unless another is wanted."""

_STEP, _DECAY = 1.5, 0.75
"""The ratio of neighbouring lambdas, and that of their weights, away from the one that the wanted half-width needs."""

_LAMBDAS = np.arange(-36, 19)
_BISECTIONS = 50


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets on r quantities t by U kinds of units (respondents, or clusters of them): 1 +- lambda (gain - t stake).

    gain, stake : (r, U). number : (U,) how many units there are of each kind.
    low, high : (r,) between which the quantities lie. losses : (2, r) the most that stakes can lose up and down.
    favoured : the lambda of most weight: for single respondents the half-width at which intervals are at their best.
    """

    gain: Array
    stake: Array
    number: Array
    low: Array
    high: Array
    losses: Array
    favoured: float = HALF_WIDTH

    def limits(self, level: float) -> tuple[Array, Array]:
        """Both ends (r,): with chance `level` the truth is between them whenever anybody looks.

        Where every value is ruled out, as by reports that are not of this channel, they are those of the range.
        """
        reached = np.log(2 / (1 - level))
        ends, none_left = [], np.zeros(len(self.low), dtype=bool)
        for sign, start, far in ((1, self.low, self.high), (-1, self.high, self.low)):
            inside, outside = far.copy(), start.copy()  # wealth falls from outside to inside
            for _ in range(_BISECTIONS):
                middle = (inside + outside) / 2
                below = self.log_wealth(middle, sign) < reached
                inside, outside = np.where(below, middle, inside), np.where(below, outside, middle)
            ends.append(np.where(self.log_wealth(start, sign) < reached, start, outside))
            none_left |= self.log_wealth(far, sign) >= reached
        none_left |= ends[0] > ends[1]
        return np.where(none_left, self.low, ends[0]), np.where(none_left, self.high, ends[1])

    def log_wealth(self, t: Array, sign: int) -> Array:
        """(r,) the logarithm of the wealth at t (r,) of who bets that the truth is above it, or below for sign -1."""
        logarithms = np.empty(len(t))
        for row, (gain, stake) in enumerate(zip(self.gain, self.stake, strict=True)):
            lambdas, weights = self._mixture(float(self.losses[0 if sign > 0 else 1, row]))
            won = np.log1p(lambdas[:, None] * (sign * (gain - t[row] * stake))) @ self.number + np.log(weights)
            logarithms[row] = won.max() + np.log(np.exp(won - won.max()).sum())
        return logarithms

    def _mixture(self, loss: float) -> tuple[Array, Array]:
        """The lambdas, with which no bet loses more than it has, and their weights, which sum to 1."""
        cap = 0.95 / loss
        lambdas = min(self.favoured, cap) * _STEP ** _LAMBDAS.astype(float)
        kept = lambdas <= cap * (1 + 1e-9)
        weights = _DECAY ** np.abs(_LAMBDAS[kept])
        return lambdas[kept], weights / weights.sum()

    def contrast(self, a: Array) -> Bets:
        """The bets on linear combinations (s, r) of quantities that have the same stakes, else `InvalidInput`."""
        if np.abs(self.stake - self.stake[0]).max() > 1e-9 * np.abs(self.stake).max():
            raise invalid("contrast", "shares that are told by the same booklets", Phrase("others"))
        up, down = np.maximum(a, 0), np.minimum(a, 0)
        gain, stake = a @ self.gain, np.repeat(self.stake[:1], len(a), axis=0)
        low, high = up @ self.low + down @ self.high, up @ self.high + down @ self.low
        losses = np.array([up @ self.losses[0] - down @ self.losses[1], up @ self.losses[1] - down @ self.losses[0]])
        return replace(self, gain=gain, stake=stake, low=low, high=high, losses=losses)


def bets_of(table: Table, parts: Sequence[tuple[Array, Array]], wanted: float = HALF_WIDTH) -> Bets:
    """The bets on r shares from reports of one booklet or more.

    table : the reports, whose outputs are those of all booklets in order.
    parts : by booklet the loadings (r, m), which must not depend on the reports, and the variance (r,) of one report,
        inf where the booklet does not tell a share.

    Weights, and clusters of respondents, must be below or at the largest here. `InvalidInput` for strata, finite
    populations, known margins and replicate weights, whose errors are not those of independent units.
    """
    # Of a booklet all shares that it tells have the same stake, so that contrasts of them have it, too.
    told = [np.isfinite(variances) for _, variances in parts]
    precisions = np.array(
        [own / (variances[own].mean() if own.any() else 1.0) for own, (_, variances) in zip(told, parts, strict=True)]
    )
    if not (precisions.max(axis=0) > 0).all():
        raise NotIdentifiable("confidence sequence: expected reports that tell of every share, got others", parts[0][0])
    stake = np.hstack(
        [np.repeat(own[:, None], len(loadings.T), axis=1) for (loadings, _), own in zip(parts, precisions, strict=True)]
    )
    gain = stake * np.hstack([loadings for loadings, _ in parts])
    losses = np.array([(stake - gain).max(axis=1), gain.max(axis=1)])
    ends = np.zeros(len(gain)), np.ones(len(gain))
    if not isinstance(table, SampledReports):
        seen = table.totals > 0
        return Bets(gain[:, seen], stake[:, seen], table.totals[seen].astype(float), *ends, losses, wanted)
    design = table.design
    if len(design.units) > 1 or design.fractions.any() or design.margins or design.method.replicates:
        expected = "a simple sample, weights or clusters (--simple leaves the design of the plan out)"
        raise invalid("--anytime", expected, Phrase("strata, a finite population, known margins or replicates"))
    # Who has a report is chance, whatever the answers are, so that clusters count with their reports alone.
    own, report, unit = (column[table.mask] for column in (design.weights, table.at, design.unit))
    weight = np.bincount(unit, own)
    favoured = wanted * float(weight.max() / own.max())  # times the respondents of the largest cluster, at least
    own = own / weight.max()
    gains, stakes = (
        np.array([np.bincount(unit, own * row[report], len(weight)) for row in matrix]) for matrix in (gain, stake)
    )
    return Bets(gains, stakes, np.ones(len(weight)), *ends, losses, favoured)
