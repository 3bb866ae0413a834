"""Rigorous bounds on suprema over s > 0 of functions of the cumulant K(s), for many pairs at once.

K is the log moment generating function of the centred privacy loss; the order of a Rényi divergence is 1 + s. The
method is branch and bound, with two bounds on an interval [a, b]:

- K is convex, so it lies below its chord. The largest value of the function on the chord is known in closed form.
- f(s) = 2 K(s)/s^2 is an average of the variances K'' of tilted distributions. For a loss of range R, -K'''' <= R^2
K''/2 and
  K''(s) <= K''(0) exp(R s), so -f'' <= R^2 K''(0) exp(R b)/12, and f lies below its own chord plus
  (b - a)^2 R^2 K''(0) exp(R b)/96. This bound is good near 0, where f is flat.

Intervals whose bound exceeds the best value found are halved. If some remain at the end, the result includes their
bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import NARROW_ORDERS, SUPREMUM_GAP
from ldpopt.values.distribution import Array

MAX_ROUNDS = 70
MAX_INTERVALS = 200_000
MAX_CHORDS = 4000
"""If more intervals are unfinished (with chords alone, `MAX_CHORDS`), halving ends, and the result is looser."""

Rows = npt.NDArray[np.intp]
Bounds = tuple[Array, Array]

Cumulant = Callable[[Rows, Array], Bounds]
"""Bounds on K(s) for the pairs at positions `rows`, which may repeat, one s each."""


def largest_slope(
    cumulant: Cumulant, mean: Bounds, largest: Array, xi: float, span: float, spread: Bounds | None = None
) -> Bounds:
    """Bound sup of (D - xi)/(1 + s) over 0 < s < `span`, (n,), for D = E Z + K(s)/s.

    D is a Rényi divergence [BS, Def 1.1].

    mean, largest : bounds on E Z, and a finite upper bound on D, (n,) each.
    spread : as in `supremum`.
    """
    start = np.minimum(2.0**-38 / (1 + largest), span / 4)
    best, upper = supremum(cumulant, _Slope(*mean, largest, xi), start, np.full(len(start), span), spread)
    # Orders between 1 and 1 + start: D is non-decreasing, and tends to KL.
    upper_near_one = mean[1] + cumulant(np.arange(len(start)), start)[1] / start
    upper_near_one = np.minimum(upper_near_one * (1 + 4 * ULP), largest) - xi
    best = np.maximum(best, mean[0] - xi)
    return np.maximum(best * (1 - 8 * ULP), 0.0), np.maximum(np.maximum(upper, upper_near_one) * (1 + 16 * ULP), 0.0)


def largest_spread(cumulant: Cumulant, variance: Bounds, reach: Array, spread: Bounds | None = None) -> Bounds:
    """Bound tau = sup over s != 0 of sqrt(2 K(s))/|s|, (n,) [DR, Def 3.3].

    reach : largest distance of the loss from its mean, (n,).
    variance : bounds on K''(0), (n,) each.
    spread : as in `supremum`.
    """
    # K'' is at most exp(2 reach |s|) times K''(0); this bounds tau^2 on the interval next to 0.
    start = 2.0**-38 / reach
    best, upper = variance[0], variance[1] * (1 + 2.0**-36)
    for sign in (1.0, -1.0):

        def signed(rows: Rows, s: Array, sign: float = sign) -> Bounds:
            return cumulant(rows, sign * s)

        low, high = supremum(signed, _Spread(reach), start, np.full(len(start), np.inf), spread)
        best, upper = np.maximum(best, low), np.maximum(upper, high)
    return np.sqrt(best) * (1 - 8 * ULP), np.sqrt(upper) * (1 + 8 * ULP)


def vectorized(cumulant: Callable[[int, float], tuple[float, float]]) -> Cumulant:
    """Convert a function of one row and one s to a `Cumulant`."""

    def bounds(rows: Rows, s: Array) -> Bounds:
        lower_and_upper = np.array([cumulant(row, tilt) for row, tilt in zip(rows.tolist(), s.tolist(), strict=True)])
        return lower_and_upper[:, 0], lower_and_upper[:, 1]

    return bounds


class Objective(Protocol):
    """An increasing function of K(s) for the pairs at positions `rows`; all arrays have the shape of `rows`."""

    def lower(self, rows: Rows, k: Array, s: Array) -> Array:
        """Bound the function at K(s) = k from below."""

    def upper(self, rows: Rows, k: Array, s: Array) -> Array:
        """Bound the function at K(s) = k from above."""

    def peak(self, rows: Rows, c0: Array, c1: Array) -> Array:
        """Find the s that maximizes the function if K(s) = c0 + c1 s."""

    def curved(self, rows: Rows, left: Array, right: Array, c0: Array, c1: Array) -> Array:
        """Compute the largest value on [left, right] if K(s) = s^2 (c0 + c1 s)/2."""

    def tail(self, rows: Rows, s: Array) -> Array:
        """Bound the function at all arguments from s on."""


@dataclass(frozen=True)
class _Slope:
    """The objective (D_alpha - xi)/alpha with alpha = 1 + s and D_alpha = E Z + K(s)/s <= largest."""

    mean_lower: Array
    mean_upper: Array
    largest: Array
    xi: float

    def lower(self, rows: Rows, k: Array, s: Array) -> Array:
        constant = self.mean_lower[rows] - self.xi
        return np.asarray((constant - 4 * ULP * np.abs(constant) + k / s) / (1 + s))

    def upper(self, rows: Rows, k: Array, s: Array) -> Array:
        constant = self.mean_upper[rows] - self.xi
        return np.asarray((constant + k / s + 4 * ULP * np.abs(constant)) / (1 + s))

    def peak(self, rows: Rows, c0: Array, c1: Array) -> Array:
        a, b = np.maximum(-c0, 0.0), c1 + self.mean_upper[rows] - self.xi
        return np.asarray(np.where(b > 0, (a + np.sqrt(a * a + a * b)) / b, 0.0))

    def curved(self, rows: Rows, left: Array, right: Array, c0: Array, c1: Array) -> Array:
        constant = self.mean_upper[rows] - self.xi
        turning_point = np.where(c1 < 0, np.sqrt(np.maximum(1 - (c0 - 2 * constant) / c1, 1.0)) - 1, left)
        values = [
            self.upper(rows, s * s * (c0 + c1 * s) / 2, s) for s in (left, right, np.clip(turning_point, left, right))
        ]
        return np.asarray(np.maximum.reduce(values))

    def tail(self, rows: Rows, s: Array) -> Array:
        return np.asarray(np.maximum(self.largest[rows] - self.xi, 0.0) / (1 + s))


@dataclass(frozen=True)
class _Spread:
    """2 K(s)/s^2, for a loss that stays within `reach` of its mean."""

    reach: Array

    def lower(self, rows: Rows, k: Array, s: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(2 * k / (s * s))

    upper = lower

    def peak(self, rows: Rows, c0: Array, c1: Array) -> Array:
        return np.asarray(2 * np.maximum(-c0, 0.0) / c1)

    def curved(self, rows: Rows, left: Array, right: Array, c0: Array, c1: Array) -> Array:
        return np.asarray(c0 + np.maximum(c1 * left, c1 * right))

    def tail(self, rows: Rows, s: Array) -> Array:
        return np.asarray(2 * self.reach[rows] / s)  # K(s) <= |s| max |Z - E Z|


def supremum(
    cumulant: Cumulant, objective: Objective, start: Array, stop: Array, spread: Bounds | None = None
) -> Bounds:
    """Bound the supremum of `objective` over s in [start, stop], (n,).

    stop : (n,), may be infinite.
    spread : the range of the loss and a bound on its variance, (n,) each; without them, only chords are used.
    """
    rows: Rows = np.arange(len(start))
    left: Array = start
    best_lower, upper_at_points, cumulant_left = (
        np.full(len(start), -np.inf),
        np.full(len(start), -np.inf),
        np.zeros(len(start)),
    )

    def measure(rows: Rows, s: Array) -> Array:
        low, high = cumulant(rows, s)
        np.maximum.at(best_lower, rows, objective.lower(rows, low, s))
        np.maximum.at(upper_at_points, rows, np.minimum(objective.upper(rows, high, s), objective.tail(rows, s)))
        return high

    cumulant_left = measure(rows, left)
    unfinished_upper = np.full(len(start), -np.inf)  # bounds of the intervals that are not halved further
    grown_intervals: list[tuple[Rows, Array]] = []
    for _ in range(MAX_ROUNDS):
        right = np.minimum(left * 8, stop[rows])
        cumulant_right = measure(rows, right)
        grown_intervals.append((rows, np.stack([left, right, cumulant_left, cumulant_right])))
        unfinished_upper[rows] = np.where(right < stop[rows], objective.tail(rows, right), -np.inf)
        is_active = (right < stop[rows]) & (
            unfinished_upper[rows] > np.maximum(upper_at_points[rows], 0.0) * (1 + SUPREMUM_GAP)
        )
        rows, left, cumulant_left = rows[is_active], right[is_active], cumulant_right[is_active]
        if not len(rows):
            break
    rows = np.concatenate([piece for piece, _ in grown_intervals])
    left, right, cumulant_left, cumulant_right = np.concatenate([intervals for _, intervals in grown_intervals], axis=1)
    interval_bounds = np.zeros(0)
    for _ in range(MAX_ROUNDS):
        interval_bounds = _chord(objective, rows, left, right, cumulant_left, cumulant_right)
        if spread is not None:
            curved_bound = _curved(
                objective, rows, left, right, cumulant_left, cumulant_right, *(piece[rows] for piece in spread)
            )
            interval_bounds = np.minimum(interval_bounds, curved_bound)
        # The tail is applied outside of `_chord` and `_curved`, which search for a largest value at ends and peaks
        # only.
        interval_bounds = np.minimum(interval_bounds, objective.tail(rows, left))
        is_exceeding = interval_bounds > np.maximum(upper_at_points[rows], 0.0) * (1 + SUPREMUM_GAP)
        is_active = is_exceeding & (right - left > NARROW_ORDERS * left)
        np.maximum.at(unfinished_upper, rows[is_exceeding & ~is_active], interval_bounds[is_exceeding & ~is_active])
        rows, interval_bounds = rows[is_active], interval_bounds[is_active]
        left, right, cumulant_left, cumulant_right = (
            piece[is_active] for piece in (left, right, cumulant_left, cumulant_right)
        )
        if not 0 < len(rows) <= (MAX_CHORDS if spread is None else MAX_INTERVALS):
            break
        middle = np.sqrt(left) * np.sqrt(right)
        high = measure(rows, middle)
        rows = np.concatenate([rows, rows])
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        cumulant_left, cumulant_right = np.concatenate([cumulant_left, high]), np.concatenate([high, cumulant_right])
        interval_bounds = np.concatenate([interval_bounds, interval_bounds])
    upper = np.maximum(upper_at_points, 0.0) * (1 + SUPREMUM_GAP)
    np.maximum.at(upper, rows, interval_bounds)
    return best_lower, np.maximum(upper, unfinished_upper)


def _chord(objective: Objective, rows: Rows, a: Array, b: Array, k_a: Array, k_b: Array) -> Array:
    """The largest value of the objective on the chord of K over [a, b]."""
    width = b - a
    with np.errstate(all="ignore"):
        c1 = (k_b - k_a) / width
        peak_points = np.clip(np.nan_to_num(objective.peak(rows, k_a - c1 * a, c1), nan=0.0), a, b)
        peak_values = objective.upper(rows, k_a + (peak_points - a) / width * (k_b - k_a), peak_points)
    # On very short intervals rounding hides the peak; K is increasing, so its value at the right end is a bound.
    is_rounded = (width <= 1e-7 * a) | ~np.isfinite(peak_values)
    peak_values = np.where(is_rounded, objective.upper(rows, np.maximum(k_a, k_b), a), peak_values)
    end_values = np.maximum(objective.upper(rows, k_a, a), objective.upper(rows, k_b, b))
    return np.asarray(np.maximum(peak_values * (1 + 1e-13), end_values))


def _curved(
    objective: Objective, rows: Rows, a: Array, b: Array, k_a: Array, k_b: Array, loss_range: Array, variance: Array
) -> Array:
    """The largest value of the objective when f = 2 K/s^2 follows its chord over [a, b], raised by its curvature."""
    with np.errstate(all="ignore"):
        f_a, f_b = 2 * k_a / (a * a), 2 * k_b / (b * b)
        curvature_margin = ((b - a) * loss_range) ** 2 * variance * np.exp(loss_range * b) / 96
        c1 = (f_b - f_a) / (b - a)
        c0 = np.maximum(f_a - c1 * a, f_b - c1 * b) + curvature_margin + 1e-14 * np.maximum(f_a, f_b)
        bound = objective.curved(rows, a, b, c0, c1)
    return np.asarray(np.where(np.isfinite(bound) & (f_a > 0) & (f_b > 0), bound, np.inf))
