"""Proofs over the extreme columns of (epsilon, delta)-LDP, and over columns of integers.

The columns of `listed` are those of `patterns.levels`, the extreme rays of `level_arrangement`. They are scaled to a
largest entry of one: an entry of level l is exp(-(h - l) epsilon) for the highest level h. The cap is delta, on
sum_c theta_c (c_x - e^epsilon c_x')_+. Where total variation is limited, too, there is the cap eta on
sum_c theta_c (c_x - c_x')_+, and the constant column is one of the list.

`IntegerColumns` counts every way in which columns of integers add up to the rows. Multiply a channel by its denominator
D: its columns become integers that sum to D in every row, with ratios of at most E. Every such column is a sum of
columns that `columns.integer` lists, with entries in the same order. As mu is convex and homogeneous, the column is
worth at most as much as these. With v(c) >= mu(c), let

    F(0) = 0,   F(r) = max over columns c <= r of  v(c) + F(r - c),   r in {0..D}^k;

then no such channel is worth more than F(D, ..., D) / D. The certificate stores no numbers: F is computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import plain_caps
from ldpopt.design.constraints.hockey_stick import ApproximateLDP
from ldpopt.design.constraints.outputs import Denominator
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Listed, ListedDual, finite_size
from ldpopt.design.kernel.numbers import Unproved, pair_prices, require
from ldpopt.design.patterns.levels import COLUMNS, LIMIT, Levels, count, integer_columns, level_columns, pairs
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.work import Work
from ldpopt.numbers.enclosures import Arithmetic, Enclosure, arithmetic
from ldpopt.values.distribution import Array

BLOCK = 2048  # Columns that are looked at together.


@dataclass(frozen=True, eq=False, repr=False)
class LevelDual(ListedDual):
    """Multipliers of the exact program of any column utility under `ApproximateLDP`, for up to eight inputs.

    rows, pairs, weights : as in `ListedDual`; the entry (x, x') of `pairs` is for the excess of row x over e^epsilon
    times row x'. Where there are several such constraints, the one that gives the best bound counts.
    """

    argument = "linear-programming duality over all extreme columns of (epsilon, delta)-LDP"

    def work(self) -> Work:
        """All columns of up to eight inputs, which pay each price, for each of the constraints."""
        k, prices = min(self.answers, LIMIT), (self.pairs, getattr(self, "spreads", None))
        paid = sum(np.count_nonzero(own) if isinstance(own, np.ndarray) else k * k for own in prices if own is not None)
        each = 40.0 * (k + self.criteria) + 4.0 * paid
        return Work.on(COLUMNS[k] * max(len(self.constraints), 1), each, BLOCK * k * k)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum l + kappa (sum rows + delta sum pairs), with l and kappa as in `listed`."""
        k = finite_size(self.utility)
        require(not k > LIMIT, f"{k} inputs have too many extreme columns to look at all of them")
        refused, bounds = Unproved("no constraint asks for ApproximateLDP"), []
        caps = {(c.epsilon, c.delta) for c in self.constraints if isinstance(c, ApproximateLDP)}
        for epsilon in sorted({epsilon for epsilon, _ in caps}):
            try:
                delta = min(delta for other, delta in caps if other == epsilon)
                bounds.append(self._within(arithmetic.of(epsilon), delta))
            except Unproved as error:
                refused = error
        if not bounds:
            raise refused
        return min(bounds, key=lambda one: float(one.upper))

    def _within(self, epsilon: Enclosure, delta: float) -> Enclosure:
        """The bound by one epsilon, and the least delta at it."""
        _, pairs = self._multipliers()
        listed = (columns.charged(pairs) for columns in leveled(level_columns(len(pairs)), epsilon))
        return self._paid(listed, delta, epsilon.arithmetic)


@dataclass(frozen=True, eq=False, repr=False)
class LevelVariationDual(LevelDual):
    """Multipliers of the exact program of a column utility under `ApproximateLDP` and `TotalVariation` together.

    The numbers of `LevelDual`, and spreads : (k, k) non-negative; entry (x, x') is the multiplier of the cap on
    sum_y (Q[x, y] - Q[x', y])_+, and the diagonal is ignored.
    """

    spreads: Array
    argument = "linear-programming duality over all extreme columns of (epsilon, delta)-LDP and total variation"

    def _within(self, epsilon: Enclosure, delta: float) -> Enclosure:
        """The bound by one epsilon, the least delta at it, and the least cap on total variation."""
        of, (_, pairs) = epsilon.arithmetic, self._multipliers()
        spreads = pair_prices(self.spreads, len(pairs), "spreads")
        listed = (c.charged(pairs, spreads) for c in leveled(level_columns(len(pairs), flat=True), epsilon))
        return self._paid(listed, delta, of, of.of(spreads).sum() * plain_caps(self.constraints)[1])


def leveled(every: Levels, epsilon: Enclosure) -> Iterator[LeveledColumns]:
    """The columns of these levels, some at a time."""
    for start in range(0, len(every), BLOCK):
        yield LeveledColumns.of(every[start : start + BLOCK], epsilon)


@dataclass(frozen=True, eq=False)
class LeveledColumns:
    """Columns of given `levels` (n, k), scaled to a largest entry of one: `base` (n,) + `rise` (k, n).

    height : (n,) the highest levels.
    """

    levels: Levels
    height: Levels
    epsilon: Enclosure
    base: Enclosure
    rise: Enclosure

    @classmethod
    def of(cls, levels: Levels, epsilon: Enclosure) -> LeveledColumns:
        """The columns at this epsilon."""
        of, (power, rest) = epsilon.arithmetic, powers(epsilon, levels.shape[1])
        height, full, inside = levels.max(axis=1), np.all(levels >= 0, axis=1), np.asarray(levels >= 0)
        base = of.where(full, power[height], of.zeros(len(levels)))
        entry = power[np.where(inside, height[:, None] - levels, 0)]
        above = entry * rest[np.where(inside, levels, 0)]
        rise = of.where(full[:, None], above, of.where(inside, entry, of.zeros(levels.shape)))
        return cls(levels, height, epsilon, base, rise.T)

    def charged(self, pairs: Array, spreads: Array | None = None) -> Listed:
        """The columns, with what each pays at these prices of its excesses (k, k) and its total variation (k, k)."""
        charged = None
        for prices, step in ((pairs, 1), *(() if spreads is None else ((spreads, 0),))):
            x, y = np.nonzero(prices)
            if len(x):
                excess = excesses(self.epsilon, int(self.height.max()), step)
                told = excess[self.height[:, None], self.levels[:, x], self.levels[:, y]] @ prices[x, y]
                charged = told if charged is None else charged + told
        return Listed(self.base, self.rise, charged)


def powers(epsilon: Enclosure, top: int) -> tuple[Enclosure, Enclosure]:
    """(top + 1,) e^(-j epsilon), and 1 - e^(-j epsilon) with all digits where epsilon is small."""
    exponents = -(epsilon * np.arange(top + 1.0))
    return exponents.exp(), -exponents.expm1()


def excesses(epsilon: Enclosure, top: int, step: int = 1) -> Enclosure:
    """(top + 1, top + 2, top + 2) the excess (c_x - e^(step epsilon) c_y)_+, for a step of 1 or 0, by the height of the
    column, at most `top`, and the levels of x and y, of which the last, number -1, stands for `ABSENT`. It is c_x (1 -
    e^(-(d - step) epsilon)) at d levels above.
    """
    of, (power, rest) = epsilon.arithmetic, powers(epsilon, top)
    height, upper, lower = np.indices((top + 1, top + 2, top + 2))
    there = upper <= height
    entry = power[np.where(there, height - upper, 0)]
    part = of.where(lower <= top, rest[np.where(there, np.maximum(upper - lower - step, 0), 0)], of.of(1.0))
    return of.where(there, entry * part, of.of(0.0))


MAX_SUMS = 2.0e8  # The most sums that are formed.
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
        if not isinstance(utility, cls.proves) or utility.continuous:
            return False
        try:
            D, ratio = _asked(constraints, arithmetic(False))
        except Unproved:
            return False
        return _effort(utility.size, D, ratio) <= MAX_SUMS

    def work(self) -> Work:
        """All sums of columns."""
        try:
            D, ratio = _asked(self.constraints, arithmetic(False))
        except Unproved:
            return Work()
        effort = _effort(self.answers, D, ratio)
        # What is too much is not begun, but for finding it out.
        found = Work(0.0, 0.0, 10.0 * float(D) ** 2 if effort < math.inf else 0.0)
        return found + (Work(9.0 * effort, 24.0 * float(D + 1) ** self.answers) if effort <= MAX_SUMS else Work())

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """F(D, ..., D) / D for the criterion that bounds best."""
        k = finite_size(self.utility)
        D, ratio = _asked(self.constraints, arithmetic)
        if not _effort(k, D, ratio) <= MAX_SUMS:
            raise Unproved(f"{k} inputs over a denominator of {D} have too many sums of columns to form all of them")
        columns, complete = integer_columns(k, ratio, D, int(MAX_SUMS))
        require(complete, "not every column of integers was listed")
        base = columns.min(axis=0).astype(np.float64)
        rise = columns - base
        # The floats of a channel are near multiples of 1/D: D times a column's entries are in these intervals.
        room = columns * OFF
        worth = self.utility.enclosed_columns(arithmetic.of(base), arithmetic.between(rise - room, rise + room))
        most = np.asarray(worth.upper)
        require(most.ndim == 2 and np.isfinite(most).all(), "the worth of a column of integers has no finite bound")
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
    # There are more columns than inputs, unless none but the constant one is allowed.
    if not float(k) * math.log(D + 1) + math.log(k + 1) <= math.log(MAX_SUMS):
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
