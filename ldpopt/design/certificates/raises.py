"""How much the multipliers of `MarginalDual` must be raised where they fall short, and what that costs.

A simplex of masses needs one of two raises. (1) The rows by delta times the mean w of the laws, which costs delta,
because w.Q sums to one. (2) Where h sums to zero or less, the pair (x, x') by p_x r_x': the flow p_x r_x' takes the
same share of every profit h_+ away, and divides it among the losses in proportion. It costs eta sum p sum r, which is
less where eta is small. One raise serves all simplices if it is as large as each needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.enclosures import Enclosure

Mask = npt.NDArray[np.bool_]

PADDING = 2.0**-46
"""The share by which a raise that was found in floats is increased before it is checked."""


@dataclass(frozen=True, eq=False)
class Raise:
    """A raise that is enough on each of m simplices: of the rows by delta (m,), or of the pairs by (m, n) numbers.

    profits, shares : (m, n), which raise the pair (x, x') by profits[x] shares[x'].
    """

    delta: Array
    profits: Array
    shares: Array

    def cost(self, eta: float) -> tuple[Array, Array]:
        """The costs of both ways for each simplex alone, (m,) each."""
        with np.errstate(all="ignore"):
            return self.delta, np.nan_to_num(
                eta * self.profits.sum(axis=1) * self.shares.sum(axis=1), nan=np.inf, posinf=np.inf
            )

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """The three arrays."""
        return self.delta, self.profits, self.shares

    def and_(self, other: Raise) -> Raise:
        """The raise of the simplices of both."""
        return Raise(*(np.concatenate(pair) for pair in zip(self.parts, other.parts, strict=True)))

    def total(self, eta: Enclosure) -> Enclosure:
        """The cost of one raise that serves all simplices, each in its cheaper way."""
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
    """The raise that is enough; of the pairs only where `left` sums to zero or less, in `sinks`.

    For left, base, mean, level and scale see `raise_of_rows`.
    """
    gains, losses = left.positive(), (-left).positive()
    gain = np.maximum(np.asarray((base + gains.sum(axis=1)).upper), 0.0)
    with np.errstate(all="ignore"):
        # The same share of every profit must go, and every loss takes its share of it.
        part = np.fmin(np.nextafter(gain / np.asarray(gains.sum(axis=1).lower), np.inf), 1.0)
        profits = np.nextafter(np.asarray(gains.upper) * np.where(gain > 0, part, 0.0)[:, None], np.inf)
        shares = np.nextafter(np.asarray(losses.upper) / np.asarray(losses.sum(axis=1).lower)[:, None], np.inf)
    profits = np.where((gain > 0)[:, None] & (np.asarray(gains.upper) > 0), profits, 0.0)
    profits = np.where(np.asarray(sinks)[:, None] & np.isfinite(profits), profits, np.inf)
    shares = np.where((gain > 0)[:, None], np.fmin(shares, 1.0), 0.0)
    return Raise(raise_of_rows(left, base, mean, level, scale), profits, shares)


def raise_of_rows(left: Enclosure, base: Enclosure, mean: Enclosure, level: Enclosure, scale: float) -> Array:
    """(m,) numbers delta >= 0 with base - t delta + sum (left - delta w)_+ <= 0 surely, or inf.

    left : (m, n), linear utilities less the row multipliers. base : (m,) t times the sums of `left`. mean : (n,) w, the
    law by which rows are raised. level : t. scale : the size of the multipliers, by which shortfalls are measured.
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
    """(m,) the least delta >= 0 with base - t delta + sum (left - delta w)_+ <= 0, in floats, by Newton's method."""
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
