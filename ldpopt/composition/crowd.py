"""Bounds on delta of one person's report among n - 1 independent reports of one distribution, order forgotten.

The person draws a report from p or from q, the others from w. With probability 1 - sum w another person's report is
withheld. With L = (p - e^epsilon q)/w, zero for a withheld report, the histograms of all n reports differ by

    delta(epsilon) = E (L_1 + ... + L_n)_+ / n + sum over w = 0 of (p - e^epsilon q)_+,    L_i independent under w,

because removing the person's report y from a histogram h multiplies its probability by h_y / (n w_y) [BBGN]. From above
the L_i are split onto a lattice, which keeps means, so that the expectation of the convex (.)_+ only grows. From below
the sum on a lattice is a test: its power under p less e^epsilon times that under q is exact on the lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr

from ldpopt.composition.lattice import WINDOW_CELLS, collect
from ldpopt.composition.laws import LatticeLaw
from ldpopt.numbers.rounding import ULP, down, up
from ldpopt.numbers.tolerances import FINE_LATTICE, NEVER_SENT
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

_ENTRY = 16 * ULP
"""A bound on the relative error of an entry of a row that was divided by its sum, and of a ratio of two of them."""

_OUTSIDE_PROBABILITY = 1e-22
"""Bound on the tilted probability of a sum outside a window, as in `laws.Window`."""

_MAX_SCORE_RATIO = 1e15
"""Largest ratio of a score's distance below zero to the largest score."""

_MAX_DEVIATIONS = 256.0
"""Scores farther below zero are raised to this many standard deviations of the sum below zero."""

_MAX_LATTICE_STEPS = 2.0**16
"""Largest number of lattice steps between a score and the likeliest one."""

MAX_EXPONENT = 700.0
"""The largest epsilon whose exponential is a float."""


@dataclass(frozen=True, eq=False)
class Crowd(ByValue):
    """The laws p and q of one person's report (m,), the part w (m,) of the others' that anyone may report, and n."""

    p: Array
    q: Array
    w: Array
    n: int

    @classmethod
    def from_distributions(cls, p: Array, q: Array, w: Array, n: int) -> Crowd:
        """Merge reports with the same ratios p/w and q/w, which need not be distinguished."""
        w = np.where(w < NEVER_SENT, 0.0, w)
        has_mass = w > 0
        scale = np.where(has_mass, w, 1.0)
        ratios = np.stack([np.where(has_mass, p / scale, np.inf), np.where(has_mass, q / scale, 0.0)])
        kinds, back = np.unique(ratios, axis=1, return_inverse=True)
        back = np.where(has_mass, back.ravel(), kinds.shape[1] + np.arange(len(w)))
        back = np.unique(back, return_inverse=True)[1]
        p, q, w = (collect(back, part, int(back.max()) + 1) for part in (p, q, w))
        return cls(p, q, w, n)

    def unmatched_delta(self, epsilon: float) -> float:
        """Compute the part of delta from reports that the others never send."""
        is_unmatched = self.w == 0
        growth = math.exp(min(epsilon, MAX_EXPONENT))
        return float(
            np.maximum(self.p[is_unmatched] * (1 + _ENTRY) - growth * self.q[is_unmatched] * (1 - _ENTRY), 0.0).sum()
        )

    def scores(self, epsilon: float) -> tuple[Array, Array]:
        """Return L and its masses, rounded up, with the zero of the withheld reports."""
        has_mass, growth = self.w > 0, math.exp(epsilon)
        masses = self.w[has_mass]
        with np.errstate(over="ignore"):
            gain, price = self.p[has_mass] / masses, np.minimum(growth * (self.q[has_mass] / masses), 1e300)
        scores = gain - price + 4 * _ENTRY * (gain + price)
        scores = np.maximum(scores, -_MAX_SCORE_RATIO * max(float(scores.max(initial=0.0)), 1e-100))
        withheld = 1 - math.fsum(masses)
        return np.append(scores, 0.0), np.append(masses, max(withheld, 0.0))

    def estimate(self, epsilon: float) -> float:
        """Estimate log delta by the normal distribution of the tilted sum, to a percent, unproved."""
        scores, masses = self.scores(epsilon)
        unmatched_delta = self.unmatched_delta(epsilon)
        tilt = _tilt(scores, masses)
        if math.isinf(tilt):
            return math.log(unmatched_delta) if unmatched_delta > 0 else -math.inf
        cumulant, mean, variance = _cumulant(scores, masses, tilt)
        deviation, n = math.sqrt(max(variance, 1e-300) * self.n), self.n
        if tilt == 0:
            z = n * mean / deviation
            log_part = math.log(
                max(mean * math.exp(log_ndtr(z)) + deviation / n * math.exp(-z * z / 2) / 2.5066, 1e-300)
            )
        else:
            slope = tilt * deviation
            share = 1 - slope * math.sqrt(math.pi / 2) * erfcx(slope / math.sqrt(2)) if slope < 1e3 else slope**-2
            log_part = n * cumulant + math.log(deviation / n * share / math.sqrt(2 * math.pi))
        return float(np.logaddexp(log_part, math.log(unmatched_delta))) if unmatched_delta > 0 else log_part

    def best_phase_free_tilt(self, epsilon: float) -> tuple[float, float]:
        """Find the tilt that least overestimates E (sum)_+ without phases, and the variance there."""
        scores, masses = self.scores(epsilon)
        tilt = _tilt(scores, masses)
        if not 0 < tilt < math.inf:
            return tilt, 0.0
        tilts = tilt * np.linspace(1.0, 1.6, 61)
        cumulants = np.array([_cumulant(scores, masses, t) for t in tilts])
        costs = self.n * cumulants[:, 0] + np.log(erfcx(tilts * np.sqrt(cumulants[:, 2] * self.n / 2)) / tilts)
        best = int(costs.argmin())
        return float(tilts[best]), float(cumulants[best, 2])

    def upper(self, epsilon: float) -> float:
        """Bound delta at epsilon from above."""
        unmatched_delta = up(self.unmatched_delta(epsilon), 64)
        scores, masses = self.scores(epsilon)
        tilt = _tilt(scores, masses)
        if math.isinf(tilt):
            return min(1.0, unmatched_delta)
        if tilt > 0 and (bound := self._chernoff(scores, masses, tilt)) < 1e-290:
            return min(1.0, unmatched_delta + bound)
        spacing, anchor, position = _lattice(scores, masses, tilt, self.n)
        floors = np.floor(position)
        upper_share = np.minimum(position - floors + 4 * ULP * (1 + np.abs(position)), 1.0)
        places, back = np.unique(np.concatenate([floors, floors + 1]).astype(np.int64), return_inverse=True)
        split = collect(back, np.concatenate([masses * (1 - upper_share), masses * upper_share]), len(places))
        window = LatticeLaw(spacing, ((places, split, self.n),), 0.0).window(tilt)
        values = (window.first + np.arange(len(window.masses))) * spacing + self.n * anchor
        values = values + 8 * ULP * self.n * (abs(anchor) + spacing)
        positive = values > 0
        decay = np.exp(-tilt * values[positive]) * values[positive]
        scale = math.exp(min(MAX_EXPONENT, window.cumulant + tilt * self.n * anchor))
        rest = _OUTSIDE_PROBABILITY * min(self.n * float(scores.max()), 1 / tilt if tilt > 0 else math.inf)
        total = float(window.masses[positive] @ decay) + window.error * float(decay.sum()) + rest
        return min(1.0, unmatched_delta + up(scale * total * (1 + self._slack) / self.n, 64) + 1e-300)

    def lower(self, epsilon: float) -> float:
        """Bound delta at epsilon from below by the best test by a sum on a lattice; w must sum to 1."""
        has_mass, growth = self.w > 0, math.exp(epsilon)
        p, q = self.p[has_mass], growth * self.q[has_mass]
        is_unmatched = self.w == 0
        visible_excess = np.maximum(
            self.p[is_unmatched] * (1 - _ENTRY) - growth * self.q[is_unmatched] * (1 + _ENTRY), 0.0
        )
        unmatched_delta = max(0.0, down(math.fsum(visible_excess), 64) - growth * self.n * len(self.w) * NEVER_SENT)
        scores, masses = (part[:-1] for part in self.scores(epsilon))
        tilt = _tilt(scores, masses)
        if math.isinf(tilt) or self.n == 1:
            return unmatched_delta
        spacing, _, positions = _lattice(scores, masses, tilt, self.n)
        cells = np.rint(positions).astype(np.int64)
        places, back = np.unique(cells, return_inverse=True)
        law = LatticeLaw(spacing, ((places, collect(back, masses, len(places)), self.n - 1),), 0.0)
        window = law.window(tilt)
        center = round(window.mean / spacing) - window.first
        exponents = -tilt * spacing * (np.arange(len(window.masses)) - center)
        decay = np.exp(np.minimum(exponents, MAX_EXPONENT / 2))
        scale = math.exp(min(MAX_EXPONENT, window.cumulant - tilt * spacing * (window.first + center)))
        tails, unsure = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (window.masses * decay, decay))
        reach = cells.max() - cells
        outside_probability = _OUTSIDE_PROBABILITY * growth * float(decay[-1])

        def gained(starts: Array) -> Array:
            """Compute the gains of the tests that reject if the others' sum reaches a threshold."""
            # The threshold is `starts` less the person's position.
            first = np.clip(starts.astype(np.int64)[:, None] + reach, 0, len(decay))
            with np.errstate(over="ignore", invalid="ignore"):  # a test of such a size gains nothing
                size = tails[first] @ (p + q)
                error = window.error * (unsure[first] @ (p + q))
                error = error + (self._slack + (8 * _ENTRY + 64 * ULP) * len(p)) * size
                gain = tails[first] @ (p - q) - error - outside_probability
            return np.asarray(np.nan_to_num(gain, nan=-math.inf, posinf=-math.inf))

        width = 4 * window.deviation / spacing
        best = float(center)
        while width >= 1:
            starts = np.rint(best + np.linspace(-width, width, 65))
            best = float(starts[np.argmax(gained(starts))])
            width /= 16
        return down(unmatched_delta + max(0.0, scale * float(gained(np.array([best]))[0])), 64)

    @property
    def _slack(self) -> float:
        """A bound on the relative error of the probability of n reports, from that of each."""
        return 64 * self.n * ULP

    def _chernoff(self, scores: Array, masses: Array, tilt: float) -> float:
        """E (sum)_+ / n is at most E e^(t sum) / (e t n)."""
        exponent = self.n * _cumulant(scores, masses, tilt)[0] - 1 - math.log(tilt * self.n)
        return math.exp(min(MAX_EXPONENT, exponent + self._slack + 1e-9)) * (1 + self._slack)

    def surely_at_most(self, epsilon: float, delta: float) -> bool:
        """Return True if Chernoff's bound shows that delta at epsilon is at most `delta`."""
        scores, masses = self.scores(epsilon)
        tilt = _tilt(scores, masses)
        if math.isinf(tilt) or tilt == 0:
            return math.isinf(tilt) and up(self.unmatched_delta(epsilon), 64) <= delta
        return up(self.unmatched_delta(epsilon), 64) + self._chernoff(scores, masses, tilt) <= delta

    def epsilon(self, delta: float, top: float) -> float:
        """Find the epsilon in [0, top] with an estimated delta of `delta`, in (0, 1)."""
        from scipy.optimize import brentq

        target = math.log(delta)
        if self.estimate(0.0) <= target:
            return 0.0
        if not self.estimate(top) < target:
            return top
        excess = lambda epsilon: max(self.estimate(epsilon), -1e6) - target  # noqa: E731
        return float(brentq(excess, 0.0, top, rtol=1e-9))


def _cumulant(scores: Array, masses: Array, tilt: float) -> tuple[float, float, float]:
    """The cumulant log E e^(tilt L), and mean and variance of the tilted distribution."""
    exponents = tilt * scores
    with np.errstate(invalid="ignore"):
        parts = masses * np.expm1(exponents)
    growth = max(math.fsum(parts), ULP - 1)  # at least the truth, where nearly all underflows
    weights = masses * np.exp(exponents) / (1 + growth)
    mean = float(weights @ scores)
    return math.log1p(growth), mean, float(weights @ (scores - mean) ** 2)


def _tilt(scores: Array, masses: Array) -> float:
    """The tilt >= 0 that moves the mean of L to 0, or 0 if it is not below; inf if no L is positive."""
    from scipy.optimize import brentq

    top = float(scores[masses > 0].max(initial=0.0))
    if top <= 0:
        return math.inf
    rescaled_scores = scores / top

    def slope(tilt: float) -> float:
        return float(masses @ (rescaled_scores * np.exp(tilt * (rescaled_scores - 1))))

    if slope(0.0) >= 0:
        return 0.0
    high = 1.0
    while slope(high) < 0:
        high *= 2
    return float(brentq(slope, 0.0, high, rtol=1e-13)) / top


def _lattice(scores: Array, masses: Array, tilt: float, n: int) -> tuple[float, float, Array]:
    """A lattice (spacing, anchor, positions) through the likeliest score that nearly holds the other scores.

    Positions are not rounded. Those far below zero are raised, but stay so low that no sum that includes them matters.
    """
    weights = masses * np.exp(tilt * (scores - scores.max()))
    weights = weights / weights.sum()
    variance = float(weights @ (scores - weights @ scores) ** 2)
    anchor = float(scores[int(weights.argmax())])
    distance = np.abs(scores - anchor)
    farthest = float(distance[int((weights * distance**2).argmax())] or distance.max() or 1.0)
    deviation = math.sqrt(max(variance, (1e-9 * farthest) ** 2) * n)
    raised_scores = np.maximum(scores - anchor, -_MAX_DEVIATIONS * deviation - max(-anchor, 0.0))
    distance = np.abs(raised_scores)
    cells = min(2**14, WINDOW_CELLS)
    while True:
        max_steps = max(
            1e-12, min(farthest / max(28 * deviation / cells, float(distance.max()) / _MAX_LATTICE_STEPS), 1.0 * cells)
        )
        counts = np.array([max_steps])
        if max_steps >= 1:
            counts = np.unique(np.linspace(max(1.0, max_steps / 2), max_steps, 64).astype(np.int64))
        shares = distance / farthest * counts[:, None]
        shares = np.abs(shares - np.rint(shares))
        costs = (weights * shares * (1 - shares)).sum(axis=1) * (farthest / counts) ** 2
        best = int(costs.argmin())
        if cells >= WINDOW_CELLS or costs[best] <= FINE_LATTICE * variance:
            spacing = farthest / float(counts[best])
            return spacing, anchor, raised_scores / spacing
        cells *= 4
