"""Linear utilities above and below a divergence, and its value at a channel, without loss of digits.

A linear utility of a column q is written as  slope (P0 - P1).q + level (weights).q , so that hypotheses that are nearly
equal, and reports that say little, lose no digits. `LabelGains` stores the gain of a constant column separately,
because the gains of its entries cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.problems.reduction import Pair
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence

SMALL = 2.0**-12
"""Nearer to ratio one than this, slopes are computed from differences of the excess, which keep their digits there."""


@dataclass(frozen=True, eq=False)
class LabelGains:
    """Linear utilities: each : (n, k) the gain of every input's entry. flat : (n,) the gain of a column of ones."""

    each: Array
    flat: Array

    @classmethod
    def of(cls, each: Array) -> LabelGains:
        """Utilities whose gains do not cancel."""
        return cls(each, each.sum(axis=-1))

    def __truediv__(self, scale: float) -> LabelGains:
        return LabelGains(self.each / scale, self.flat / scale)


def chord_gains(f: FDivergence, pair: Pair, knots: Array) -> LabelGains:
    """The chords of the divergence between neighbouring posteriors `knots`, above it for columns in between."""
    tilt, height = 2 * knots - 1, heights(f, knots)
    width = np.diff(tilt)
    if not np.isfinite(height[[0, -1]]).all():
        return _open_ended(f, pair, knots, height)
    slope = np.diff(height) / width
    # At posterior 1/2 the divergence is zero, and the chords on either side pass through zero exactly.
    level = (height[:-1] * tilt[1:] - height[1:] * tilt[:-1]) / width
    return LabelGains(slope[:, None] * pair.apart + level[:, None] * (pair.p0 + pair.p1), 2 * level)


def _open_ended(f: FDivergence, pair: Pair, knots: Array, height: Array) -> LabelGains:
    """The chords, with the tangent at the nearest cut beside an end where the divergence is infinite (`tails`)."""
    closed = slice(int(not np.isfinite(height[0])), len(knots) - int(not np.isfinite(height[-1])))
    made = [chord_gains(f, pair, knots[closed])]
    if not np.isfinite(height[0]):
        made.insert(0, tangents_at(f, pair, knots[1:2]))
    if not np.isfinite(height[-1]):
        made.append(tangents_at(f, pair, knots[-2:-1]))
    return LabelGains(np.concatenate([one.each for one in made]), np.concatenate([one.flat for one in made]))


def heights(f: FDivergence, posterior: Array) -> Array:
    """The excess at (s, 1 - s) for posteriors s."""
    tilt = 2 * posterior - 1
    near = np.abs(tilt) < 0.5
    # The tilt is exact near one half, the posterior itself near the ends.
    inner = f.excess_of(np.where(near, tilt, 0.0), np.where(near, 1 - posterior, 1.0))
    outer = f.excess(np.where(near, 0.5, posterior), np.where(near, 0.5, 1 - posterior))
    return np.asarray(np.where(near, inner, outer))


def marginals(pair: Pair, matrix: Array) -> tuple[Array, Array, Array]:
    """(P0 - P1).Q, P0.Q and P1.Q of a matrix (k, n) whose rows have equal sums."""
    # The part that all rows share has equal masses under both hypotheses, and is left out before it is rounded.
    return pair.apart @ (matrix - matrix.min(axis=0)), pair.p0 @ matrix, pair.p1 @ matrix


def kept(f: FDivergence, pair: Pair, matrix: Array) -> Array:
    """(n,) the divergence that each column of `matrix` (k, n) contributes."""
    d, a, b = marginals(pair, matrix)
    far = np.abs(d) > 0.5 * b
    near = f.excess_of(np.where(far, 0.0, np.maximum(d, -b)), b)
    return np.asarray(np.where(far, f.excess(np.maximum(a, 0.0), np.maximum(b, 0.0)), near))


def value_of(f: FDivergence, pair: Pair, matrix: Array) -> float:
    """The divergence of the two marginals of a matrix (k, n)."""
    return float(kept(f, pair, matrix).sum())


def posteriors(pair: Pair, matrix: Array) -> Array:
    """(n,) the posteriors a / (a + b) of the columns, one half where a column is zero."""
    d, a, b = marginals(pair, matrix)
    total = np.where(a + b > 0, a + b, 1.0)
    near = np.abs(d) < 0.5 * (a + b)
    return np.asarray(np.where(a + b > 0, np.where(near, 0.5 + d / total / 2, a / total), 0.5))


def tangent_gains(f: FDivergence, pair: Pair, matrix: Array) -> LabelGains:
    """The planes that touch the divergence at the columns of `matrix`, and lie below it."""
    d, a, b = marginals(pair, matrix)
    return tangents_of(f, pair, d, a, b)


def tangents_at(f: FDivergence, pair: Pair, posterior: Array) -> LabelGains:
    """The planes that touch the divergence at posteriors."""
    return tangents_of(f, pair, 2 * posterior - 1, posterior, 1 - posterior)


def tangents_of(f: FDivergence, pair: Pair, d: Array, a: Array, b: Array) -> LabelGains:
    """The planes that touch the divergence at marginals a = b + d."""
    b = np.where(b > 0, b, np.finfo(float).tiny)
    x = np.clip(d / b, -1.0, None)
    near = np.abs(x) < SMALL
    ratio = np.clip(a / b, 1e-12, 1e12)
    far_slope = np.asarray(f.derivative(ratio)) - float(f.derivative(1.0))
    step = np.where(near, x, SMALL) * 2.0**-17
    inner = np.where(near, x, SMALL)
    # A difference over a step of relative size 2^-17: right to about 2^-34, and 0 at x = 0.
    rise = np.asarray(f.excess_of(inner + step, 1.0)) - np.asarray(f.excess_of(inner - step, 1.0))
    near_slope = np.where(inner == 0, 0.0, rise / np.where(step == 0, 1.0, 2 * step))
    slope = np.where(near, near_slope, far_slope)
    height = np.where(near, f.excess_of(inner, 1.0), f.excess(ratio, np.ones_like(ratio)))
    level = height - np.where(near, x, ratio - 1) * slope
    return LabelGains(slope[:, None] * pair.apart + level[:, None] * pair.p1, np.asarray(level))
