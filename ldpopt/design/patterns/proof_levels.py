"""Proofs over the extreme columns of (epsilon, delta)-LDP, and over columns of integers.

The columns are the extreme rays of `level_arrangement`. They are scaled to a largest entry of one: an entry of level l
is exp(-(h - l) epsilon) for the highest level h. The cap is delta, on
sum_c theta_c (c_x - e^epsilon c_x')_+. Where total variation is limited, too, there is the cap eta on
sum_c theta_c (c_x - c_x')_+, and the constant column is one of the list.

`IntegerColumns` counts every way in which columns of integers add up to the rows. Multiply a channel by its denominator
D: its columns become integers that sum to D in every row, with ratios of at most E. Every such column is a sum of
columns that `columns.integer` lists, with entries in the same order. As mu is convex and homogeneous, the column is
worth at most as much as these. With v(c) >= mu(c), let

    F(0) = 0,   F(r) = max over columns c <= r of  v(c) + F(r - c),   r in {0..D}^k;

then no such channel is worth more than F(D, ..., D) / D. The certificate stores no numbers: F is computed again.

The extreme columns of (epsilon, delta)-LDP, powers of e^epsilon on a support, and those of channels over integers.

*(epsilon, delta)-LDP.* The cone of all columns q >= 0 is cut by the planes q_x = e^epsilon q_x'. Inside each piece
every excess (q_x - e^epsilon q_x')_+ is linear, so that a convex and homogeneous utility loses nothing when a column is
split into the extreme rays of its piece. On such a ray the equalities q_x = e^epsilon q_x' connect the whole support.
So its levels, the logarithms in units of epsilon, are whole numbers that take all values 0..h. A support of one input
gives a unit vector. A larger one has h >= 1, because inputs of the same level are connected only through another level.
There are 4, 21, 138, 1055, 9308, 94465, 1091422 such columns for 2 to 8 inputs.

Where total variation is capped too, the cone is also cut by the planes q_x = q_x', which connect inputs of the same
level. Then the columns of h = 0 are extreme as well: constants on any inputs, on all of them too. There are 5, 25, 149,
1081, 9365, 94585, 1091669 such columns for 2 to 8 inputs.

*Integers* with bounded ratios. For a utility that is a sum over outputs of a convex, homogeneous function mu, mu(s + t)
<= mu(s) + mu(t). So splitting a column into two never loses utility, and does not raise the total variation where both
have their entries in the order of the whole. Let b be the least entry of a column, and b + S the largest. The column
can be split whenever (b, S) is a sum of two such pairs that the ratio allows, because the steps between its entries can
be divided at will. So only pairs that are no such sums are needed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.base import plain_caps
from ldpopt.design.constraints.hockey_stick import ApproximateLDP
from ldpopt.design.constraints.outputs import Denominator
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Listed, ListedDual, finite_size
from ldpopt.design.kernel.numbers import Unproved, pair_prices, require
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.work import Work
from ldpopt.numbers.enclosures import Arithmetic, Enclosure, arithmetic
from ldpopt.values.distribution import Array

if TYPE_CHECKING:
    from ldpopt.design.kernel.listed import Arrangement

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


Levels = npt.NDArray[np.integer[Any]]
LIMIT = 8  # The most inputs whose columns are listed: 9 inputs have more than fourteen million.
COLUMNS = (1, 1, 5, 25, 149, 1081, 9365, 94585, 1091669)  # How many there are at most of so many inputs.
ABSENT = -1  # The level of an input outside the support.
"""Levels on blocks of neighbouring inputs, one digit for each block, that were enough in all cases seen."""


@cache
def level_columns(k: int, flat: bool = False) -> Levels:
    """(n, k) levels of all extreme columns of k <= `LIMIT` inputs, `ABSENT` outside the support: the extreme rays of
    `level_arrangement`.

    flat : whether to add the columns that are constant on some inputs or all, which a cap on total variation needs.

    >>> [len(level_columns(k)) for k in (2, 3, 4, 5)]
    [4, 21, 138, 1055]
    >>> [len(level_columns(k, flat=True)) for k in (2, 3, 4, 5)]
    [5, 25, 149, 1081]
    """
    columns = []
    for size in range(1, k + 1):
        gaps = np.array([seen.bit_length() - seen.bit_count() for seen in range(2**size)])
        every, seen = np.zeros((1, 0), dtype=np.int8), np.zeros(1, dtype=np.int64)
        for left in reversed(range(size)):  # All levels 0..h occur: there are no more gaps than inputs left.
            level = np.tile(np.arange(size, dtype=np.int8), len(every))
            seen = np.repeat(seen, size) | (1 << level.astype(np.int64))
            kept = gaps[seen] <= left
            every, seen = np.column_stack([np.repeat(every, size, axis=0)[kept], level[kept]]), seen[kept]
        every = every[(every.max(axis=1) >= 1) | (size == 1) | flat]
        for support in itertools.combinations(range(k), size):
            columns.append(np.full((len(every), k), ABSENT, dtype=np.int8))
            columns[-1][:, support] = every
    stacked = np.concatenate(columns)
    stacked.setflags(write=False)
    return stacked


def level_arrangement(k: int, flat: bool = False) -> Arrangement:
    """Return the arrangement whose extreme rays `level_columns` lists, for the ratio E = e^epsilon.

    The cone is that of all columns >= 0. It is cut by c_x = E c_x' and, if `flat`, by c_x = c_x'.
    """
    from ldpopt.design.kernel.listed import Arrangement

    return Arrangement.of(k, cut=1, ordered=flat)


Integers = npt.NDArray[np.int64]
MAX_LISTED = 20_000
"""Where one pair (b, S) has more columns than this, only its columns with two different entries are listed."""


def pairs(ratio: Fraction | None, total: int) -> list[tuple[int, int]]:
    """The (b, S) with b + S <= total, S <= (ratio - 1) b, that are no sums of others; (0, 1) and (1, 0) without ratio.

    For b = 1 every S is needed, because a smaller b allows none. For a larger b at most the largest S is needed,
    because smaller ones are sums.

    >>> pairs(Fraction(2718281828, 10**9), 36)
    [(1, 0), (1, 1), (2, 3), (3, 5), (7, 12)]
    """
    if ratio is None:
        return [(0, 1), (1, 0)]
    most = [0] + [(ratio.numerator * b // ratio.denominator) - b for b in range(1, total + 1)]
    needed = [(1, S) for S in range(min(most[1], total - 1) + 1)]
    larger = range(2, total + 1)
    sums = {b: max(most[a] + most[b - a] for a in range(1, b // 2 + 1)) for b in larger}
    return needed + [(b, most[b]) for b in larger if b + most[b] <= total and most[b] > sums[b]]


def count(k: int, rise: int) -> int:
    """How many columns of k entries from 0 to `rise` have both 0 and `rise` among their entries.

    >>> count(3, 2), count(3, 0)
    (12, 1)
    """
    return (rise + 1) ** k - 2 * rise**k + (rise - 1) ** k if rise else 1


def integer_columns(k: int, ratio: Fraction | None, total: int, many: int = MAX_LISTED) -> tuple[Integers, bool]:
    """The columns, shape (k, n), and whether these are all that `integer_arrangement` needs.

    ratio : the largest ratio of two entries, None without a limit. total : the sum of a row, an upper limit of entries.
    many : a pair (b, S) with more columns than this gives only its columns of two values.

    >>> columns, complete = integer_columns(2, Fraction(3), 4)
    >>> columns.T.tolist(), complete
    ([[1, 1], [1, 2], [2, 1], [1, 3], [3, 1]], True)
    """
    listed, complete = [], True
    for base, rise in pairs(ratio, total):
        every = count(k, rise) <= many
        complete = complete and every
        steps = range(rise + 1) if every else sorted({0, rise})
        entries = [entry for entry in itertools.product(steps, repeat=k) if min(entry) == 0 and max(entry) == rise]
        listed.append(base + np.array(entries, dtype=np.int64).reshape(-1, k))
    return np.ascontiguousarray(np.concatenate(listed).T), complete


def integer_arrangement(k: int) -> Arrangement:
    """Return the arrangement of `integer_columns`, for the ratio as E.

    The cone is that of the columns with c_x <= E c_x', cut by c_x = c_x'. Every column of integers up to the total is a
    sum of listed ones from one piece: the list holds the columns that are no such sums.
    """
    from ldpopt.design.kernel.listed import Arrangement

    return Arrangement.of(k, limit=1, ordered=True)


def merged(weights: Integers) -> Integers:
    """The columns with proportional ones merged: guarantees and utility stay the same, with fewer reports."""
    parts: dict[tuple[int, ...], Integers] = {}
    for column in weights.T:
        if column.any():
            key = tuple((column // np.gcd.reduce(column)).tolist())
            parts[key] = parts[key] + column if key in parts else column
    return np.stack(list(parts.values()), axis=1)


def as_matrix(weights: Integers, total: int) -> Array:
    """The floats nearest to weights / total."""
    return np.asarray(weights / np.float64(total))
