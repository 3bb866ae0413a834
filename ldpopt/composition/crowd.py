"""One person's report among n - 1 independent reports of one law, order forgotten -> delta, from above and below.

The person draws a report from p or from q, the others from w; what the others keep for themselves, 1 - sum w, nobody
else can report. With L = (p - e^epsilon q)/w, zero for what is kept, the histograms of all n reports differ by

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

from ldpopt.composition.lattice import CELLS, collect
from ldpopt.composition.laws import LatticeLaw
from ldpopt.numbers.rounding import ULP, down, up
from ldpopt.numbers.tolerances import FINE_LATTICE, NEVER_SENT
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

_ENTRY = 16 * ULP
"""A bound on the relative error of an entry of a row that was divided by its sum, and of a ratio of two of them."""

_OUTSIDE = 1e-22
"""A bound on the tilted probability of a sum outside a window, as of `laws.Window`."""

_FAR = 1e15
"""No score is further below zero than so many times the largest one."""

_REACH = 256.0
"""A score is raised to this many standard deviations of the sum below zero if it is further below."""

_STEPS = 2.0**16
"""No score is more steps of the lattice away from the likeliest one."""

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
    def of(cls, p: Array, q: Array, w: Array, n: int) -> Crowd:
        """The same with reports together that have the same ratios p/w and q/w, which nobody need tell apart."""
        w = np.where(w < NEVER_SENT, 0.0, w)
        some = w > 0
        scale = np.where(some, w, 1.0)
        ratios = np.stack([np.where(some, p / scale, np.inf), np.where(some, q / scale, 0.0)])
        kinds, back = np.unique(ratios, axis=1, return_inverse=True)
        back = np.where(some, back.ravel(), kinds.shape[1] + np.arange(len(w)))
        back = np.unique(back, return_inverse=True)[1]
        p, q, w = (collect(back, part, int(back.max()) + 1) for part in (p, q, w))
        return cls(p, q, w, n)

    def lost(self, epsilon: float) -> float:
        """The part of delta from reports that the others never send."""
        only = self.w == 0
        growth = math.exp(min(epsilon, MAX_EXPONENT))
        return float(np.maximum(self.p[only] * (1 + _ENTRY) - growth * self.q[only] * (1 - _ENTRY), 0.0).sum())

    def scores(self, epsilon: float) -> tuple[Array, Array]:
        """L and its masses, rounded up, with the zero of what the others keep."""
        some, growth = self.w > 0, math.exp(epsilon)
        masses = self.w[some]
        with np.errstate(over="ignore"):
            gain, price = self.p[some] / masses, np.minimum(growth * (self.q[some] / masses), 1e300)
        scores = gain - price + 4 * _ENTRY * (gain + price)
        scores = np.maximum(scores, -_FAR * max(float(scores.max(initial=0.0)), 1e-100))
        kept = 1 - math.fsum(masses)
        return np.append(scores, 0.0), np.append(masses, max(kept, 0.0))

    def estimate(self, epsilon: float) -> float:
        """log delta by the normal law of the tilted sum: good to a percent, and proved of nothing."""
        scores, masses = self.scores(epsilon)
        lost = self.lost(epsilon)
        tilt = _tilt(scores, masses)
        if math.isinf(tilt):
            return math.log(lost) if lost > 0 else -math.inf
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
        return float(np.logaddexp(log_part, math.log(lost))) if lost > 0 else log_part

    def apart(self, epsilon: float) -> tuple[float, float]:
        """(the tilt at which E (sum)_+ is least overestimated if phases are dropped, the variance of L there)."""
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
        """delta at epsilon, rounded up."""
        lost = up(self.lost(epsilon), 64)
        scores, masses = self.scores(epsilon)
        tilt = _tilt(scores, masses)
        if math.isinf(tilt):
            return min(1.0, lost)
        if tilt > 0 and (bound := self._chernoff(scores, masses, tilt)) < 1e-290:
            return min(1.0, lost + bound)
        spacing, anchor, position = _lattice(scores, masses, tilt, self.n)
        below = np.floor(position)
        share = np.minimum(position - below + 4 * ULP * (1 + np.abs(position)), 1.0)
        places, back = np.unique(np.concatenate([below, below + 1]).astype(np.int64), return_inverse=True)
        split = collect(back, np.concatenate([masses * (1 - share), masses * share]), len(places))
        window = LatticeLaw(spacing, ((places, split, self.n),), 0.0).window(tilt)
        values = (window.first + np.arange(len(window.masses))) * spacing + self.n * anchor
        values = values + 8 * ULP * self.n * (abs(anchor) + spacing)
        positive = values > 0
        decay = np.exp(-tilt * values[positive]) * values[positive]
        scale = math.exp(min(MAX_EXPONENT, window.cumulant + tilt * self.n * anchor))
        rest = _OUTSIDE * min(self.n * float(scores.max()), 1 / tilt if tilt > 0 else math.inf)
        total = float(window.masses[positive] @ decay) + window.error * float(decay.sum()) + rest
        return min(1.0, lost + up(scale * total * (1 + self._slack) / self.n, 64) + 1e-300)

    def lower(self, epsilon: float) -> float:
        """delta at epsilon, rounded down, of the best test by a sum on a lattice; w must sum to 1."""
        some, growth = self.w > 0, math.exp(epsilon)
        p, q = self.p[some], growth * self.q[some]
        only = self.w == 0
        seen = np.maximum(self.p[only] * (1 - _ENTRY) - growth * self.q[only] * (1 + _ENTRY), 0.0)
        lost = max(0.0, down(math.fsum(seen), 64) - growth * self.n * len(self.w) * NEVER_SENT)
        scores, masses = (part[:-1] for part in self.scores(epsilon))
        tilt = _tilt(scores, masses)
        if math.isinf(tilt) or self.n == 1:
            return lost
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
        beyond = _OUTSIDE * growth * float(decay[-1])

        def gained(starts: Array) -> Array:
            """What the tests gain that reject if the others' sum is at least `starts` less the person's position."""
            first = np.clip(starts.astype(np.int64)[:, None] + reach, 0, len(decay))
            with np.errstate(over="ignore", invalid="ignore"):  # a test of such a size gains nothing
                size = tails[first] @ (p + q)
                error = window.error * (unsure[first] @ (p + q))
                error = error + (self._slack + (8 * _ENTRY + 64 * ULP) * len(p)) * size
                gain = tails[first] @ (p - q) - error - beyond
            return np.asarray(np.nan_to_num(gain, nan=-math.inf, posinf=-math.inf))

        width = 4 * window.deviation / spacing
        best = float(center)
        while width >= 1:
            starts = np.rint(best + np.linspace(-width, width, 65))
            best = float(starts[np.argmax(gained(starts))])
            width /= 16
        return down(lost + max(0.0, scale * float(gained(np.array([best]))[0])), 64)

    @property
    def _slack(self) -> float:
        """A bound on the relative error of the probability of n reports, from that of each."""
        return 64 * self.n * ULP

    def _chernoff(self, scores: Array, masses: Array, tilt: float) -> float:
        """E (sum)_+ / n is at most E e^(t sum) / (e t n)."""
        exponent = self.n * _cumulant(scores, masses, tilt)[0] - 1 - math.log(tilt * self.n)
        return math.exp(min(MAX_EXPONENT, exponent + self._slack + 1e-9)) * (1 + self._slack)

    def surely_at_most(self, epsilon: float, delta: float) -> bool:
        """Whether Chernoff's bound already shows that delta at epsilon is at most `delta`."""
        scores, masses = self.scores(epsilon)
        tilt = _tilt(scores, masses)
        if math.isinf(tilt) or tilt == 0:
            return math.isinf(tilt) and up(self.lost(epsilon), 64) <= delta
        return up(self.lost(epsilon), 64) + self._chernoff(scores, masses, tilt) <= delta

    def epsilon(self, delta: float, top: float) -> float:
        """The epsilon in [0, top] at which the estimate of delta is `delta`, in (0, 1)."""
        from scipy.optimize import brentq

        target = math.log(delta)
        if self.estimate(0.0) <= target:
            return 0.0
        if not self.estimate(top) < target:
            return top
        bounded = lambda epsilon: max(self.estimate(epsilon), -1e6) - target  # noqa: E731
        return float(brentq(bounded, 0.0, top, rtol=1e-9))


def _cumulant(scores: Array, masses: Array, tilt: float) -> tuple[float, float, float]:
    """(log E e^(tilt L), mean and variance of the tilted law)."""
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
    rescaled = scores / top

    def slope(tilt: float) -> float:
        return float(masses @ (rescaled * np.exp(tilt * (rescaled - 1))))

    if slope(0.0) >= 0:
        return 0.0
    high = 1.0
    while slope(high) < 0:
        high *= 2
    return float(brentq(slope, 0.0, high, rtol=1e-13)) / top


def _lattice(scores: Array, masses: Array, tilt: float, n: int) -> tuple[float, float, Array]:
    """(spacing, anchor, positions): a lattice through the likeliest score on which the others nearly fall.

    Positions are not rounded. Those far below zero are raised to where no sum that matters comes back from.
    """
    weights = masses * np.exp(tilt * (scores - scores.max()))
    weights = weights / weights.sum()
    variance = float(weights @ (scores - weights @ scores) ** 2)
    anchor = float(scores[int(weights.argmax())])
    away = np.abs(scores - anchor)
    far = float(away[int((weights * away**2).argmax())] or away.max() or 1.0)
    deviation = math.sqrt(max(variance, (1e-9 * far) ** 2) * n)
    raised = np.maximum(scores - anchor, -_REACH * deviation - max(-anchor, 0.0))
    away = np.abs(raised)
    cells = min(2**14, CELLS)
    while True:
        most = max(1e-12, min(far / max(28 * deviation / cells, float(away.max()) / _STEPS), 1.0 * cells))
        counts = np.array([most])
        if most >= 1:
            counts = np.unique(np.linspace(max(1.0, most / 2), most, 64).astype(np.int64))
        shares = away / far * counts[:, None]
        shares = np.abs(shares - np.rint(shares))
        costs = (weights * shares * (1 - shares)).sum(axis=1) * (far / counts) ** 2
        best = int(costs.argmin())
        if cells >= CELLS or costs[best] <= FINE_LATTICE * variance:
            spacing = far / float(counts[best])
            return spacing, anchor, raised / spacing
        cells *= 4
