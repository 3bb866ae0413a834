"""Upper bound on delta of one person's report among n - 1 others with any answers, order forgotten; close for large n.

Let q_i be the distribution of the report of the other i, and b the blanket min_x Q_x over its sum g. In random order
others *help*, until R of their reports are hidden draws of b. Each report is one with probability g, independently of
the choice of helpers. The rest of the helpers' reports are shown. Of the m remaining others choose i at random, unseen.
All reports are those of the m, with the person's in the place of the report of i, and one more report of i among the R
draws of b. The published histogram is a function of both heaps. So with the mean s_i of q_i/b over R + 1 draws of b

    delta <= E (sum of s_i L_i)_+ / m,   L_i = (p - e^epsilon q)/q_i under q_i, all independent,

which is, with M_i(z) = E e^(z L_i), for every tilt t > 0 and normal noise of any variance v, which only raises it,

    <= E 1/(2 pi m) integral of prod |M_i(s_i (t + j u))| e^(v (t^2 - u^2)/2) / (t^2 + u^2) du.

A product of m numbers is at most the mean of their m-th powers. So each answer of the others may be bounded alone, and
the largest of these bounds holds for every mixture: no phase, hence no skewness, is left to distinguish answers.
Let V be the tilted variance and F the fourth central moment. From sin^2 x >= x^2 - x^4/3 follows
|M(t + j u)| <= M(t) exp(-(V u^2/2 - (2 F + 6 V^2) u^4/48)). Beyond the range where that bound falls,
|M(t + j u)| <= M(t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpopt.composition.crowd import Crowd
from ldpopt.composition.lattice import collect
from ldpopt.numbers.rounding import ULP, up
from ldpopt.numbers.tolerances import LEFT_OUT
from ldpopt.values.distribution import Array

_MAX_TRIPLES = 20_000
_MAX_KINDS = 1000
"""Channels with more triples of answers, or kinds of them, are not bounded."""

_MAX_HELPERS = 300

_RATIO_STEPS = 256
"""Number of steps that ratios to the blanket are rounded to; intervals of their mean are wider by one step at both
ends."""

_MAX_MEAN_RATIO = 2.0
"""Larger means of ratios to the blanket are bounded by how rare they are."""

_NOISE_FRACTIONS = 1e-4, 1e-3, 4e-3
"""Trial variances of the noise, as fractions of the variance of all scores."""


@dataclass(frozen=True)
class _Mean:
    """The law of a mean of ratios: the probability of each interval, and of more than `_MAX_MEAN_RATIO`; all rounded
    up.
    """

    chances: Array
    step: float
    rare: float


class AnyCrowd:
    """The bound for n reports of one channel with rows (k, m)."""

    def __init__(self, rows: Array, n: int) -> None:
        self.rows, self.n = rows, n
        blanket = rows.min(axis=0)
        self.hidden = min(1.0, float(blanket.sum()))
        self.blanket = blanket / blanket.sum()
        self.ratios = rows / self.blanket
        spread = float(((self.ratios - 1) ** 2 @ self.blanket).max())
        self.helpers = min(_MAX_HELPERS, math.ceil(math.sqrt(1.1 * spread * self.hidden * n)))
        deviation = math.sqrt(spread / (self.helpers + 1))
        within_eight_deviations = np.clip(1 + deviation * np.linspace(-8, 8, 65), 0.0, _MAX_MEAN_RATIO)
        self.edges = np.unique([0.0, *within_eight_deviations.tolist(), _MAX_MEAN_RATIO])

    @classmethod
    def from_rows(cls, rows: Array, n: int) -> AnyCrowd | None:
        """Build the bound; None if it does not apply or would be too large."""
        # No bound for reports that some answers never send, few respondents, or too many types of answers.
        k = len(rows)
        if n < 100 or rows.min() < 1e-12 or k * k * (k - 1) > _MAX_TRIPLES:
            return None
        crowd = cls(rows, n)
        return crowd if crowd.helpers < crowd.hidden * n / 4 and len(crowd._kinds) <= _MAX_KINDS else None

    @cached_property
    def _kinds(self) -> dict[tuple[Crowd, int], None]:
        """The person's two answers and the others' one, of each type, with the position of the latter's mean."""
        rows, (_, places), k = self.rows, self._means, len(self.rows)
        triples = ((x, other, z) for x in range(k) for other in range(k) if x != other for z in range(k))
        return {
            (Crowd.from_distributions(rows[x], rows[other], rows[z], self.n), places[z]): None
            for x, other, z in triples
        }

    @cached_property
    def _worst(self) -> Crowd:
        return max(
            (crowd for crowd, _ in self._kinds), key=lambda crowd: float(((crowd.p - crowd.q) ** 2 / crowd.w).sum())
        )

    @cached_property
    def _means(self) -> tuple[list[_Mean], list[int]]:
        """The means of the ratios to the blanket, of each type of row, and the position of each row's mean."""
        kinds: dict[bytes, int] = {}
        means: list[_Mean] = []
        places = []
        for ratios in self.ratios:
            order = np.lexsort((self.blanket, ratios))
            kind = np.round(np.stack([ratios, self.blanket])[:, order], 13).tobytes()
            if kind not in kinds:
                kinds[kind] = len(means)
                means.append(self._mean(ratios))
            places.append(kinds[kind])
        return means, places

    def _mean(self, ratios: Array) -> _Mean:
        count, lowest, highest = self.helpers + 1, float(ratios.min()), float(ratios.max())
        step = max((highest - lowest) / _RATIO_STEPS, 1e-12)
        cells = _RATIO_STEPS * count + 1
        size = 1 << math.ceil(math.log2(cells))
        steps = np.rint((ratios - lowest) / step).astype(np.int64)
        transform = np.fft.rfft(np.bincount(steps, self.blanket, minlength=size)) ** count
        error = 8 * ULP * count * math.log2(size) * float(np.abs(transform).mean())
        chances = np.maximum(np.fft.irfft(transform, size)[:cells], 0.0) + error
        means = lowest + step / count * np.arange(cells)
        place = np.searchsorted(self.edges, means[means <= _MAX_MEAN_RATIO], side="right") - 1
        place = np.minimum(place, len(self.edges) - 2)
        tilts = np.linspace(0.25, 40.0, 160)[:, None] / max(highest, 1.0)
        rare = count * float(np.log(np.exp(tilts * (ratios - _MAX_MEAN_RATIO + step)) @ self.blanket).min())
        return _Mean(
            collect(place, chances[means <= _MAX_MEAN_RATIO], len(self.edges) - 1), step, math.exp(min(rare, 0.0))
        )

    def delta(self, epsilon: float, goal: float) -> float:
        """Bound delta at epsilon from above, precisely where it is about `goal` > 0."""
        if epsilon > 30:  # above the local epsilon of rows with no smaller entries than are taken
            return 1.0
        from scipy.stats import nbinom

        helping = self.helpers + float(nbinom.isf(LEFT_OUT * goal, self.helpers, self.hidden)) + 2
        tilt, variance = self._worst.best_phase_free_tilt(epsilon)
        if not (helping < self.n / 2 and 0 < tilt < math.inf):
            return 1.0
        means, places = self._means
        parts = []
        for crowd, place in self._kinds:
            mean = means[place]
            first, last = np.maximum(self.edges[:-1] - mean.step, 0.0), self.edges[1:] + mean.step
            scores, masses = crowd.scores(epsilon)
            if tilt * (last[-1] + 1) * float(np.abs(scores).max()) > 600:
                return 1.0
            tops = np.maximum(*(np.log1p(np.expm1(tilt * end[:, None] * scores) @ masses) for end in (first, last)))
            parts.append((float(mean.chances @ self._powers(tops)), mean.chances, first, last, tops, scores, masses))
        largest = max(part[0] for part in parts)
        coarse = max((part[0] for part in parts if part[0] < LEFT_OUT * largest), default=0.0)
        falls, reach = [], math.inf
        for _, chances, first, last, tops, scores, masses in (part for part in parts if part[0] >= LEFT_OUT * largest):
            seconds, fourths = _moments(scores, masses, tilt, first, last)
            with np.errstate(divide="ignore", invalid="ignore"):  # no bound where one score has all the mass
                valid_reach = np.sqrt(seconds / fourths) / last
            reach = min(reach, float(valid_reach[np.searchsorted(self.edges, 1.0, side="right") - 1]))
            falls.append((chances, first, valid_reach, tops, seconds, fourths))
        if not 0 < reach < math.inf:
            return 1.0
        unit = 8 / math.sqrt(variance * self.n)
        points = np.append(np.linspace(0, unit, 161), np.geomspace(unit, max(reach, 1.1 * unit), 24)[1:])
        points = np.append(points[points < reach], reach)
        points, ends = points[:-1], points[1:]
        integrand = np.zeros(len(points))
        for chances, first, valid_reach, tops, seconds, fourths in falls:
            y = (first[:, None] * points) ** 2
            fall = np.where(ends <= valid_reach[:, None], seconds[:, None] * y - fourths[:, None] * y**2 / 2, 0.0)
            integrand = np.maximum(integrand, chances @ self._powers(tops[:, None] - fall))
        integrand = (integrand + coarse) / (tilt**2 + points**2) * (ends - points)
        totals = []
        for noise in np.array(_NOISE_FRACTIONS) * variance * self.n:
            inner = float(integrand @ np.exp(-noise * points**2 / 2))
            totals.append((inner + largest * math.exp(-noise * reach**2 / 2) / reach) * math.exp(noise * tilt**2 / 2))
        rare = float(self.ratios.max()) * sum(means[place].rare for place in places) + 1.01 * LEFT_OUT * goal
        delta = min(totals) / (math.pi * (self.n - 1 - helping)) + rare
        return min(1.0, up(delta * (1 + 1e-9 + 256 * self.n * ULP), 64)) if delta < 1 else 1.0

    def _powers(self, logs: Array) -> Array:
        """E e^(m logs) over the number m of others that do not help, rounded up."""
        shown_fraction = (1 - self.hidden) * np.exp(-logs)
        helper_logs = math.log(self.hidden) - logs - np.log1p(-np.minimum(shown_fraction, 1 - ULP))
        exponents = (self.n - 1) * logs + self.helpers * np.where(shown_fraction < 1 - 1e-6, helper_logs, math.inf)
        return np.asarray(np.exp(np.minimum(exponents + 1e-9, 500.0)))


def _moments(scores: Array, masses: Array, tilt: float, first: Array, last: Array) -> tuple[Array, Array]:
    """An upper bound on V/2 and a lower bound on (2 F + 6 V^2)/24, for all s of each interval, under tilt s t.

    Along an interval the logarithms of tilted masses change by at most the tilt's change times the range of the scores.
    """
    weights = masses * np.exp(tilt * last[:, None] * scores)
    weights = weights / weights.sum(axis=1, keepdims=True)
    deviation = scores - (weights @ scores)[:, None]
    second, fourth = (weights * deviation**2).sum(axis=1), (weights * deviation**4).sum(axis=1)
    change = np.exp(2 * tilt * (last - first) * np.ptp(scores)) * (1 + 1e-9)
    return second / 2 / change, (2 * fourth + 6 * second**2) / 24 * change
