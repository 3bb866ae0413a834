"""Rigorous bounds on suprema over s > 0 of functions of the cumulant K(s), for many pairs at once.

K is the log moment generating function of the centred privacy loss; the order of a Rényi divergence is 1 + s. The
method is branch and bound, with two bounds on an interval [a, b]:

- K is convex, so it lies below its chord. The largest value of the function on the chord is known in closed form.
- f(s) = 2 K(s)/s^2 is an average of the variances K'' of tilted laws. For a loss of range R, -K'''' <= R^2 K''/2 and
  K''(s) <= K''(0) exp(R s), so -f'' <= R^2 K''(0) exp(R b)/12, and f lies below its own chord plus
  (b - a)^2 R^2 K''(0) exp(R b)/96. This bound is good near 0, where f is flat.

Intervals whose bound exceeds the best value found are halved. If some remain at the end, the result includes their
bounds.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.privacy.loss import PrivacyLoss
from ldpopt.privacy.pairs import ENTRIES
from ldpopt.rounding import SUBNORMAL
from ldpopt.tolerances import SUPREMUM_GAP

MAX_ROUNDS = 70
MAX_INTERVALS = 200_000
"""If more intervals than this are unfinished, halving ends, and their bounds loosen the result."""

Rows = npt.NDArray[np.intp]


class Objective(Protocol):
    """An increasing function of K(s) for the pairs at positions `rows`; all arrays have the shape of `rows`."""

    def below(self, rows: Rows, k: Array, s: Array) -> Array:
        """A lower bound on the function at K(s) = k."""

    def above(self, rows: Rows, k: Array, s: Array) -> Array:
        """An upper bound on the function at K(s) = k."""

    def peak(self, rows: Rows, c0: Array, c1: Array) -> Array:
        """The s at which the function is largest if K(s) = c0 + c1 s."""

    def curved(self, rows: Rows, left: Array, right: Array, c0: Array, c1: Array) -> Array:
        """The largest value of the function on [left, right] if K(s) = s^2 (c0 + c1 s)/2."""

    def tail(self, rows: Rows, s: Array) -> Array:
        """An upper bound on the function at all arguments from s on."""


def supremum(loss: PrivacyLoss, sign: float, objective: Objective, start: Array, stop: Array) -> tuple[Array, Array]:
    """Bounds on the supremum of `objective` over s in [start, stop], (n,), with the cumulant at sign * s.

    The losses must be finite, and no pair identical. `stop` may be infinite.
    """
    rows: Rows = np.arange(len(start))
    loss_range = np.ptp(np.where(loss.p > 0, loss.centred, 0.0), axis=1)
    variance = (loss.p * (np.abs(loss.centred) + loss.slack) ** 2).sum(axis=1) * (1 + 1e-12)
    variance += 16 * loss.p.shape[1] * SUBNORMAL
    left: Array = start
    best, above, high_left = np.full(len(start), -np.inf), np.full(len(start), -np.inf), np.zeros(len(start))

    def measure(rows: Rows, s: Array) -> Array:
        low, high = _cumulant(loss, rows, sign * s)
        np.maximum.at(best, rows, objective.below(rows, low, s))
        np.maximum.at(above, rows, np.minimum(objective.above(rows, high, s), objective.tail(rows, s)))
        return high

    high_left = measure(rows, left)
    beyond = np.full(len(start), -np.inf)
    grown: list[tuple[Rows, Array]] = []
    for _ in range(MAX_ROUNDS):
        right = np.minimum(left * 8, stop[rows])
        high_right = measure(rows, right)
        grown.append((rows, np.stack([left, right, high_left, high_right])))
        beyond[rows] = np.where(right < stop[rows], objective.tail(rows, right), -np.inf)
        more = (right < stop[rows]) & (beyond[rows] > np.maximum(above[rows], 0.0) * (1 + SUPREMUM_GAP))
        rows, left, high_left = rows[more], right[more], high_right[more]
        if not len(rows):
            break
    rows = np.concatenate([part for part, _ in grown])
    left, right, high_left, high_right = np.concatenate([ends for _, ends in grown], axis=1)
    bound = np.zeros(0)
    for _ in range(MAX_ROUNDS):
        bound = np.minimum(
            _chord(objective, rows, left, right, high_left, high_right),
            _curved(objective, rows, left, right, high_left, high_right, loss_range[rows], variance[rows]),
        )
        # The tail is applied outside of `_chord` and `_curved`, which look for a largest value at ends and peaks only.
        bound = np.minimum(bound, objective.tail(rows, left))
        more = bound > np.maximum(above[rows], 0.0) * (1 + SUPREMUM_GAP)
        rows, bound = rows[more], bound[more]
        left, right, high_left, high_right = (part[more] for part in (left, right, high_left, high_right))
        if not 0 < len(rows) <= MAX_INTERVALS:
            break
        middle = np.sqrt(left) * np.sqrt(right)
        high = measure(rows, middle)
        rows = np.concatenate([rows, rows])
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        high_left, high_right = np.concatenate([high_left, high]), np.concatenate([high, high_right])
        bound = np.concatenate([bound, bound])
    upper = np.maximum(above, 0.0) * (1 + SUPREMUM_GAP)
    np.maximum.at(upper, rows, bound)
    return best, np.maximum(upper, beyond)


def _cumulant(loss: PrivacyLoss, rows: Rows, s: Array) -> tuple[Array, Array]:
    step = max(1, ENTRIES // loss.p.shape[1])
    if len(rows) <= step:
        return loss.rows(rows).cumulant(s)
    parts = [loss.rows(rows[at : at + step]).cumulant(s[at : at + step]) for at in range(0, len(rows), step)]
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def _chord(objective: Objective, rows: Rows, a: Array, b: Array, k_a: Array, k_b: Array) -> Array:
    """The largest value of the objective on the chord of K over [a, b]."""
    width = b - a
    with np.errstate(all="ignore"):
        c1 = (k_b - k_a) / width
        at = np.clip(np.nan_to_num(objective.peak(rows, k_a - c1 * a, c1), nan=0.0), a, b)
        inside = objective.above(rows, k_a + (at - a) / width * (k_b - k_a), at)
    # On very short intervals rounding hides the peak; K is increasing, so its value at the right end is a bound.
    short = (width <= 1e-7 * a) | ~np.isfinite(inside)
    inside = np.where(short, objective.above(rows, np.maximum(k_a, k_b), a), inside)
    ends = np.maximum(objective.above(rows, k_a, a), objective.above(rows, k_b, b))
    return np.asarray(np.maximum(inside * (1 + 1e-13), ends))


def _curved(
    objective: Objective, rows: Rows, a: Array, b: Array, k_a: Array, k_b: Array, loss_range: Array, variance: Array
) -> Array:
    """The largest value of the objective when f = 2 K/s^2 follows its chord over [a, b], raised by its curvature."""
    with np.errstate(all="ignore"):
        f_a, f_b = 2 * k_a / (a * a), 2 * k_b / (b * b)
        bump = ((b - a) * loss_range) ** 2 * variance * np.exp(loss_range * b) / 96
        c1 = (f_b - f_a) / (b - a)
        c0 = np.maximum(f_a - c1 * a, f_b - c1 * b) + bump + 1e-14 * np.maximum(f_a, f_b)
        bound = objective.curved(rows, a, b, c0, c1)
    return np.asarray(np.where(np.isfinite(bound) & (f_a > 0) & (f_b > 0), bound, np.inf))
