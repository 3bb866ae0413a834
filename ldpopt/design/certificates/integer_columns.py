"""The best channel over a denominator by counting: every way in which columns of integers add up to the rows.

Multiply a channel by its denominator D: its columns become integers that sum to D in every row, with ratios of at most
E. Every such column is a sum of columns that `columns.integer` lists, with entries in the same order. As mu is convex
and homogeneous, the column is worth at most as much as these. With v(c) >= mu(c), let

    F(0) = 0,   F(r) = max over columns c <= r of  v(c) + F(r - c),   r in {0..D}^k;

then no such channel is worth more than F(D, ..., D) / D. The certificate stores no numbers: F is computed again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.columns.integer import count, integer_columns, pairs
from ldpopt.design.constraints.base import plain_caps
from ldpopt.design.constraints.outputs import Denominator
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure, arithmetic

MOST = 2.0e8
"""The most sums that are formed."""

OFF = 2.0**-50
"""The relative distance, at most, of a channel's floats from multiples of 1/D, and of their ratios from exact ones."""


@dataclass(frozen=True, eq=False, repr=False)
class IntegerColumns(Certificate):
    """A proof that no channel with the denominator and epsilon of the constraints keeps more than a bound.

    A cap on total variation is ignored, which can only raise the bound.
    """

    proves = ColumnUtility

    argument = "every sum of integer columns over the denominator, counted"

    @classmethod
    def applies(cls, utility: Any, constraints: Any) -> bool:
        """Whether such a certificate is about this problem, and the problem is small enough."""
        if not isinstance(utility, ColumnUtility) or utility.continuous:
            return False
        try:
            D, ratio = _asked(constraints, arithmetic(False))
        except Unproved:
            return False
        return _effort(utility.size, D, ratio) <= MOST

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """F(D, ..., D) / D for the criterion that bounds best."""
        if self.utility.continuous:
            raise Unproved(f"{self.utility.name} is no sum over outputs of convex functions of a finite column")
        D, ratio = _asked(self.constraints, arithmetic)
        k = self.utility.size
        if not _effort(k, D, ratio) <= MOST:
            raise Unproved(f"{k} inputs over a denominator of {D} have too many sums of columns to form all of them")
        columns, complete = integer_columns(k, ratio, D, int(MOST))
        if not complete:
            raise Unproved("not every column of integers was listed")
        base = columns.min(axis=0).astype(np.float64)
        rise = columns - base
        # The floats of a channel are near multiples of 1/D: D times a column's entries are in these intervals.
        room = columns * OFF
        worth = self.utility.enclosed_columns(arithmetic.of(base), arithmetic.between(rise - room, rise + room))
        most = np.asarray(worth.upper)
        if most.ndim != 2 or not np.isfinite(most).all():
            raise Unproved("the worth of a column of integers has no finite bound")
        best = min(_most(columns, values, D) for values in most)
        return arithmetic.of(best) / D


def _asked(constraints: Any, arithmetic: Arithmetic) -> tuple[int, Fraction]:
    """D, and a rational that no ratio of two integers of a column exceeds. `Unproved` unless both are constrained."""
    found = [one.D for one in constraints if isinstance(one, Denominator)]
    epsilon = plain_caps(constraints)[0]
    if not found or not epsilon < math.inf:
        raise Unproved("the constraints give no denominator, or no epsilon between all inputs")
    D = math.gcd(*found)
    upper = float(arithmetic.of(epsilon).exp().upper)
    # Beyond D a ratio is no cap on integers up to D.
    return D, min(Fraction(upper) if upper < math.inf else Fraction(D), Fraction(D)) * (1 + Fraction(OFF))


def _effort(k: int, D: int, ratio: Fraction) -> float:
    """The number of sums that `_most` forms; inf where these are surely too many."""
    if not float(k) * math.log(D + 1) <= math.log(MOST):
        return math.inf
    return float((D + 1) ** k) * sum(count(k, rise) for _, rise in pairs(ratio, D))


def _most(columns: Any, values: Array, D: int) -> float:
    """F(D, ..., D), each sum rounded up."""
    k = len(columns)
    found = np.full((D + 1,) * k, -np.inf)
    found[(0,) * k] = 0.0
    order = [(tuple(column.tolist()), value) for column, value in zip(columns.T, values.tolist(), strict=True)]
    for first in range(1, D + 1):
        row = found[first]
        for column, value in order:
            if column[0] <= first:
                # Every column takes something from the first row, so that F of the rest is known already.
                rest = found[first - column[0]][tuple(slice(0, D + 1 - c) for c in column[1:])]
                reached = row[tuple(slice(c, D + 1) for c in column[1:])]
                with np.errstate(invalid="ignore"):
                    total = np.where(rest > -np.inf, np.nextafter(rest + value, np.inf), -np.inf)
                np.maximum(reached, total, out=reached)
    return float(found[(D,) * k])
