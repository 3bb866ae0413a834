"""What raises the multipliers of `RatioDual` where they fall short, in the cheaper of two ways, and what it costs.

An interval of ratios needs either delta times the mean of the hypotheses for the rows, or profits times shares for the
pairs (`certificates.ratios` says why). One raise serves all intervals, if it is as large as each of them needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array, Index
from ldpopt.enclosures import Enclosure

Mask = npt.NDArray[np.bool_]

PADDING = 2.0**-46
"""By what share a shortfall found in floats is raised before it is checked."""


@dataclass(frozen=True, eq=False)
class Raise:
    """What raises the multipliers enough on each of m intervals: delta (m,), or else profits and shares (m, n)."""

    delta: Array
    profits: Array
    shares: Array

    def cost(self, eta: float) -> tuple[Array, Array]:
        """What each way costs for each interval alone."""
        with np.errstate(all="ignore"):
            return self.delta, np.nan_to_num(
                eta * self.profits.sum(axis=1) * self.shares.sum(axis=1), nan=np.inf, posinf=np.inf
            )

    def better(self, other: Raise, eta: float) -> Raise:
        """For each interval the one of two raises that costs less in its cheaper way."""
        mine, its = (np.minimum(*one.cost(eta)) for one in (self, other))
        swap = its < mine
        return Raise(*(np.where(swap if own.ndim == 1 else swap[:, None], new, own)
                        for own, new in zip(self.parts, other.parts, strict=True)))  # fmt: skip

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """The three arrays."""
        return self.delta, self.profits, self.shares

    def take(self, which: Index | Mask) -> Raise:
        """Some of the intervals."""
        return Raise(*(part[which] for part in self.parts))

    def and_(self, other: Raise) -> Raise:
        """The intervals of both."""
        return Raise(*(np.concatenate(pair) for pair in zip(self.parts, other.parts, strict=True)))

    def total(self, eta: Enclosure) -> Enclosure:
        """What one raise for all intervals costs, each in its cheaper way."""
        of = eta.arithmetic
        by_rows, by_pairs = self.cost(float(eta.midpoint))
        rows = by_rows <= by_pairs
        whole = of.of(self.delta[rows].max(initial=0.0))
        if not rows.all():
            sums = [of.of(part[~rows].max(axis=0)).sum() for part in (self.profits, self.shares)]
            whole = whole + eta * sums[0] * sums[1]
        return whole


def raise_of_both(
    left: Enclosure, base: Enclosure, sinks: Mask, mean: Enclosure, level: Enclosure, scale: float
) -> Raise:
    """What raises the multipliers enough; by pairs only where `left` sums to zero or less, in `sinks`."""
    gains, losses = left.positive(), (-left).positive()
    gain = np.maximum(np.asarray((base + gains.sum(axis=1)).upper), 0.0)
    with np.errstate(all="ignore"):
        # Of every profit the share that is too much; of it every loss takes its own share.
        part = np.fmin(np.nextafter(gain / np.asarray(gains.sum(axis=1).lower), np.inf), 1.0)
        profits = np.nextafter(np.asarray(gains.upper) * np.where(gain > 0, part, 0.0)[:, None], np.inf)
        shares = np.nextafter(np.asarray(losses.upper) / np.asarray(losses.sum(axis=1).lower)[:, None], np.inf)
    profits = np.where((gain > 0)[:, None] & (np.asarray(gains.upper) > 0), profits, 0.0)
    profits = np.where(np.asarray(sinks)[:, None] & np.isfinite(profits), profits, np.inf)
    shares = np.where((gain > 0)[:, None], np.fmin(shares, 1.0), 0.0)
    return Raise(raise_of_rows(left, base, mean, level, scale), profits, shares)


def raise_of_rows(left: Enclosure, base: Enclosure, mean: Enclosure, level: Enclosure, scale: float) -> Array:
    """(m,) numbers delta >= 0 with base - t delta + sum (left - delta w)_+ <= 0 surely, or inf.

    left : (m, n), what a linear utility leaves of the rows; base : (m,) t times its sum. mean : (n,) w, a law, by
    which rows are raised. scale : the size of the multipliers, which shortfalls are measured by.
    """
    at = least_raise(left.midpoint, base.midpoint, mean.midpoint, float(level.midpoint))
    surely = np.full(len(at), np.inf)
    for step in range(6):
        tried = np.flatnonzero(~(surely < np.inf))
        raised = at[tried] + (16.0**step - 1) * PADDING * np.maximum(at[tried], scale)
        delta = level.arithmetic.of(raised)
        gain = base[tried] - level * delta
        gain = gain + (left[tried] - delta[:, None] * mean).positive().sum(axis=1)
        proved = np.asarray(gain.upper) <= 0
        surely[tried[proved]] = raised[proved]
        if proved.all():
            break
    return surely


def least_raise(left: Array, base: Array, mean: Array, level: float) -> Array:
    """(m,) the least delta >= 0 with base - t delta + sum (left - delta w)_+ <= 0, by Newton from below, in floats."""
    delta = np.zeros(len(base))
    with np.errstate(all="ignore"):
        for _ in range(60):
            rest = left - delta[:, None] * mean
            gain = base - level * delta + np.maximum(rest, 0.0).sum(axis=1)
            slope = level + np.where(rest > 0, mean, 0.0).sum(axis=1)
            new = np.where(gain > 0, delta + gain / slope, delta)
            if not (new > delta).any():
                break
            delta = new
    return np.where(np.isfinite(delta), delta, 0.0)
