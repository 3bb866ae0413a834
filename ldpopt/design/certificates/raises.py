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
