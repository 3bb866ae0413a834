"""Proofs over the extreme columns of (epsilon, delta)-LDP, and over columns of integers.

The columns are the extreme rays of `level_arrangement`. They are scaled to a largest entry of one: an entry of level l
is exp(-(h - l) epsilon) for the highest level h. The cap is delta, on sum_c theta_c (c_x - e^epsilon c_x')_+. If total
variation is limited, too, eta is the cap on sum_c theta_c (c_x - c_x')_+, and the list includes the constant column.

`IntegerColumns` enumerates every sum of integer columns that adds up to the rows. Multiply a channel by its denominator
D: its columns become integers that sum to D in every row, with ratios of at most E. Every such column is a sum of
columns that `integer_columns` lists, with entries in the same order. As mu is convex and homogeneous, the value of the
column is at most the sum of their values. With v(c) >= mu(c), let

    F(0) = 0,   F(r) = max over columns c <= r of  v(c) + F(r - c),   r in {0..D}^k;

then the value of such a channel is at most F(D, ..., D) / D. The certificate stores no numbers: F is computed again.

The extreme columns of (epsilon, delta)-LDP, powers of e^epsilon on a support, and those of channels over integers.

*(epsilon, delta)-LDP.* The cone of all columns q >= 0 is cut by the planes q_x = e^epsilon q_x'. Within each piece
every excess (q_x - e^epsilon q_x')_+ is linear. So a convex and homogeneous utility loses nothing if a column is split
into the extreme rays of its piece. On such a ray the equalities q_x = e^epsilon q_x' connect the whole support. So its
levels, the logarithms in units of epsilon, are integers that take all values 0..h. A support of one input gives a
unit vector. A larger one has h >= 1, because inputs of the same level are connected only through another level. There
are 4, 21, 138, 1055, 9308, 94465, 1091422 such columns for 2 to 8 inputs.

Where total variation is capped too, the cone is also cut by the planes q_x = q_x', which connect inputs of the same
level. Then the columns of h = 0 are extreme as well: constants on any inputs, on all of them too. There are 5, 25, 149,
1081, 9365, 94585, 1091669 such columns for 2 to 8 inputs.

*Integers* with bounded ratios. For a utility that is a sum over outputs of a convex, homogeneous function mu, mu(s + t)
<= mu(s) + mu(t). So splitting a column into two never loses utility, and does not raise the total variation where both
have their entries in the order of the whole. Let b be the least entry of a column, and b + S the largest. The column
can be split whenever (b, S) is a sum of two such pairs that the ratio allows, because the steps between its entries can
be divided at will. So only pairs that are not such sums are needed.
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

COLUMNS_PER_BLOCK = 2048  # Columns checked at the same time.


@dataclass(frozen=True, eq=False, repr=False)
class LevelDual(ListedDual):
    """Multipliers of the exact program of any column utility under `ApproximateLDP`, for up to eight inputs.

    rows, pairs, weights : as in `ListedDual`; the entry (x, x') of `pairs` is for the excess of row x over e^epsilon
    times row x'. Where there are several such constraints, the one that gives the best bound counts.
    """

    argument = "linear-programming duality over all extreme columns of (epsilon, delta)-LDP"

    def work(self) -> Work:
        """Bound the work to price all columns of up to eight inputs, for each of the constraints."""
        k, prices = min(self.answers, MAX_LEVEL_INPUTS), (self.pairs, getattr(self, "spreads", None))
        price_count = sum(
            np.count_nonzero(matrix) if isinstance(matrix, np.ndarray) else k * k
            for matrix in prices
            if matrix is not None
        )
        operations_per_column = 40.0 * (k + self.criteria) + 4.0 * price_count
        return Work.on(
            MAX_LEVEL_COLUMNS[k] * max(len(self.constraints), 1), operations_per_column, COLUMNS_PER_BLOCK * k * k
        )

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute sum l + kappa (sum rows + delta sum pairs), with l and kappa as in `listed`."""
        k = finite_size(self.utility)
        require(not k > MAX_LEVEL_INPUTS, f"{k} inputs have too many extreme columns to look at all of them")
        failure, bounds = Unproved("no constraint asks for ApproximateLDP"), []
        caps = {(c.epsilon, c.delta) for c in self.constraints if isinstance(c, ApproximateLDP)}
        for epsilon in sorted({epsilon for epsilon, _ in caps}):
            try:
                delta = min(delta for other, delta in caps if other == epsilon)
                bounds.append(self._bound_at(arithmetic.of(epsilon), delta))
            except Unproved as error:
                failure = error
        if not bounds:
            raise failure
        return min(bounds, key=lambda bound: float(bound.upper))

    def _bound_at(self, epsilon: Enclosure, delta: float) -> Enclosure:
        """Return the bound by one epsilon, and the least delta at it."""
        _, pairs = self._multipliers()
        priced_columns = (
            columns.with_costs(pairs) for columns in level_column_blocks(level_columns(len(pairs)), epsilon)
        )
        return self._total_price(priced_columns, delta, epsilon.arithmetic)


@dataclass(frozen=True, eq=False, repr=False)
class LevelVariationDual(LevelDual):
    """Multipliers of the exact program of a column utility under `ApproximateLDP` and `TotalVariation` together.

    The numbers of `LevelDual`, and spreads : (k, k) non-negative; entry (x, x') is the multiplier of the cap on
    sum_y (Q[x, y] - Q[x', y])_+, and the diagonal is ignored.
    """

    spreads: Array
    argument = "linear-programming duality over all extreme columns of (epsilon, delta)-LDP and total variation"

    def _bound_at(self, epsilon: Enclosure, delta: float) -> Enclosure:
        """Return the bound by one epsilon, the least delta at it, and the least cap on total variation."""
        arithmetic, (_, pairs) = epsilon.arithmetic, self._multipliers()
        spreads = pair_prices(self.spreads, len(pairs), "spreads")
        priced_columns = (
            c.with_costs(pairs, spreads) for c in level_column_blocks(level_columns(len(pairs), flat=True), epsilon)
        )
        return self._total_price(
            priced_columns, delta, arithmetic, arithmetic.of(spreads).sum() * plain_caps(self.constraints)[1]
        )


def level_column_blocks(levels: Levels, epsilon: Enclosure) -> Iterator[LeveledColumns]:
    """Generate the columns of these levels in blocks."""
    for start in range(0, len(levels), COLUMNS_PER_BLOCK):
        yield LeveledColumns.at_epsilon(levels[start : start + COLUMNS_PER_BLOCK], epsilon)


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
    def at_epsilon(cls, levels: Levels, epsilon: Enclosure) -> LeveledColumns:
        """Compute the columns at this epsilon."""
        arithmetic, (power, rest) = epsilon.arithmetic, powers(epsilon, levels.shape[1])
        height, is_full, is_positive = levels.max(axis=1), np.all(levels >= 0, axis=1), np.asarray(levels >= 0)
        base = arithmetic.where(is_full, power[height], arithmetic.zeros(len(levels)))
        entry = power[np.where(is_positive, height[:, None] - levels, 0)]
        full_rise = entry * rest[np.where(is_positive, levels, 0)]
        rise = arithmetic.where(
            is_full[:, None], full_rise, arithmetic.where(is_positive, entry, arithmetic.zeros(levels.shape))
        )
        return cls(levels, height, epsilon, base, rise.T)

    def with_costs(self, pairs: Array, spreads: Array | None = None) -> Listed:
        """Return the columns with their costs at these prices of excesses (k, k) and total variation (k, k)."""
        total_cost = None
        for prices, step in ((pairs, 1), *(() if spreads is None else ((spreads, 0),))):
            x, y = np.nonzero(prices)
            if len(x):
                excess = excesses(self.epsilon, int(self.height.max()), step)
                cost = excess[self.height[:, None], self.levels[:, x], self.levels[:, y]] @ prices[x, y]
                total_cost = cost if total_cost is None else total_cost + cost
        return Listed(self.base, self.rise, total_cost)


def powers(epsilon: Enclosure, top: int) -> tuple[Enclosure, Enclosure]:
    """Return e^(-j epsilon), (top + 1,), and 1 - e^(-j epsilon) with all digits for small epsilon."""
    exponents = -(epsilon * np.arange(top + 1.0))
    return exponents.exp(), -exponents.expm1()


def excesses(epsilon: Enclosure, top: int, step: int = 1) -> Enclosure:
    """Compute the excesses (c_x - e^(step epsilon) c_y)_+ by height and levels, for a step of 1 or 0.

    The shape is (top + 1, top + 2, top + 2): the height of the column, at most `top`, and the levels of x and y. The
    last level, number -1, is `ABSENT_LEVEL`. At d levels above, the excess is c_x (1 - e^(-(d - step) epsilon)).
    """
    arithmetic, (power, rest) = epsilon.arithmetic, powers(epsilon, top)
    height, upper, lower = np.indices((top + 1, top + 2, top + 2))
    is_possible = upper <= height
    entry = power[np.where(is_possible, height - upper, 0)]
    part = arithmetic.where(
        lower <= top, rest[np.where(is_possible, np.maximum(upper - lower - step, 0), 0)], arithmetic.of(1.0)
    )
    return arithmetic.where(is_possible, entry * part, arithmetic.of(0.0))


MAX_SUMS = 2.0e8  # Sums that are computed.
INTEGER_RTOL = 2.0**-50
"""The relative distance, at most, of a channel's floats from multiples of 1/D, and of their ratios from exact ones."""


@dataclass(frozen=True, eq=False, repr=False)
class IntegerColumns(Certificate):
    """A proof that the value of any channel within the constraints on denominator and epsilon is at most a bound.

    A cap on total variation is ignored, which can only raise the bound.
    """

    proves = ColumnUtility
    argument = "every sum of integer columns over the denominator, counted"

    @classmethod
    def applies(cls, utility: Any, constraints: Any) -> bool:
        """Return True if such a certificate is about this problem, and the problem is small enough."""
        if not isinstance(utility, cls.proves) or utility.continuous:
            return False
        try:
            D, ratio = _denominator_and_ratio(constraints, arithmetic(False))
        except Unproved:
            return False
        return _count_sums(utility.size, D, ratio) <= MAX_SUMS

    def work(self) -> Work:
        """Bound the work to compute all sums of columns."""
        try:
            D, ratio = _denominator_and_ratio(self.constraints, arithmetic(False))
        except Unproved:
            return Work()
        effort = _count_sums(self.answers, D, ratio)
        # A computation that is too large is not started: only its size is computed.
        listing_cost = Work(0.0, 0.0, 10.0 * float(D) ** 2 if effort < math.inf else 0.0)
        return listing_cost + (
            Work(9.0 * effort, 24.0 * float(D + 1) ** self.answers) if effort <= MAX_SUMS else Work()
        )

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute F(D, ..., D) / D for the criterion with the best bound."""
        k = finite_size(self.utility)
        D, ratio = _denominator_and_ratio(self.constraints, arithmetic)
        if not _count_sums(k, D, ratio) <= MAX_SUMS:
            raise Unproved(f"{k} inputs over a denominator of {D} have too many sums of columns to form all of them")
        columns, complete = integer_columns(k, ratio, D, int(MAX_SUMS))
        require(complete, "not every column of integers was listed")
        base = columns.min(axis=0).astype(np.float64)
        rise = columns - base
        # The floats of a channel are near multiples of 1/D: D times a column's entries are in these intervals.
        rounding_margin = columns * INTEGER_RTOL
        column_values = self.utility.enclosed_columns(
            arithmetic.of(base), arithmetic.between(rise - rounding_margin, rise + rounding_margin)
        )
        upper_values = np.asarray(column_values.upper)
        require(
            upper_values.ndim == 2 and np.isfinite(upper_values).all(),
            "the worth of a column of integers has no finite bound",
        )
        best = min(_max_value(columns, values, D) for values in upper_values)
        return arithmetic.of(best) / D


def _denominator_and_ratio(constraints: Any, arithmetic: Arithmetic) -> tuple[int, Fraction]:
    """Return D, and a rational upper bound on all ratios of two integers of a column.

    Raises `Unproved` unless both are constrained.
    """
    denominators = [constraint.D for constraint in constraints if isinstance(constraint, Denominator)]
    epsilon = plain_caps(constraints)[0]
    if not denominators or not epsilon < math.inf:
        raise Unproved("the constraints give no denominator, or no epsilon between all inputs")
    D = math.gcd(*denominators)
    upper = float(arithmetic.of(epsilon).exp().upper)
    # A ratio above D does not limit integers up to D.
    return D, min(Fraction(upper) if upper < math.inf else Fraction(D), Fraction(D)) * (1 + Fraction(INTEGER_RTOL))


def _count_sums(k: int, D: int, ratio: Fraction) -> float:
    """Count the sums that `_max_value` computes; inf if these are surely too many."""
    # There are more columns than inputs, unless none but the constant one is allowed.
    if not float(k) * math.log(D + 1) + math.log(k + 1) <= math.log(MAX_SUMS):
        return math.inf
    return float((D + 1) ** k) * sum(count_columns(k, rise) for _, rise in indivisible_pairs(ratio, D))


def _max_value(columns: Any, values: Array, D: int) -> float:
    """Compute F(D, ..., D), each sum rounded up."""
    k = len(columns)
    best_values = np.full((D + 1,) * k, -np.inf)
    best_values[(0,) * k] = 0.0
    order = [(tuple(column.tolist()), value) for column, value in zip(columns.T, values.tolist(), strict=True)]
    for first in range(1, D + 1):
        row = best_values[first]
        for column, value in order:
            if column[0] <= first:
                # Every column takes something from the first row, so that F of the rest is known already.
                remaining_value = best_values[first - column[0]][tuple(slice(0, D + 1 - c) for c in column[1:])]
                target = row[tuple(slice(c, D + 1) for c in column[1:])]
                with np.errstate(invalid="ignore"):
                    total = np.where(remaining_value > -np.inf, np.nextafter(remaining_value + value, np.inf), -np.inf)
                np.maximum(target, total, out=target)
    return float(best_values[(D,) * k])


Levels = npt.NDArray[np.integer[Any]]
MAX_LEVEL_INPUTS = 8  # Inputs whose columns are listed: 9 inputs have more than fourteen million.
MAX_LEVEL_COLUMNS = (
    1,
    1,
    5,
    25,
    149,
    1081,
    9365,
    94585,
    1091669,
)  # The largest number of columns, by the number of inputs.
ABSENT_LEVEL = -1  # The level of an input outside the support.
"""Levels on blocks of neighbouring inputs, one digit for each block, that were enough in all cases seen."""


@cache
def level_columns(k: int, flat: bool = False) -> Levels:
    """List the levels (n, k) of all extreme columns of k <= `MAX_LEVEL_INPUTS` inputs.

    They are the extreme rays of `level_arrangement`, with `ABSENT_LEVEL` outside the support.

    flat : True to add the columns that are constant on some inputs or all, which a cap on total variation needs.

    >>> [len(level_columns(k)) for k in (2, 3, 4, 5)]
    [4, 21, 138, 1055]
    >>> [len(level_columns(k, flat=True)) for k in (2, 3, 4, 5)]
    [5, 25, 149, 1081]
    """
    columns = []
    for size in range(1, k + 1):
        gaps = np.array([level_bits.bit_length() - level_bits.bit_count() for level_bits in range(2**size)])
        levels, level_bits = np.zeros((1, 0), dtype=np.int8), np.zeros(1, dtype=np.int64)
        for inputs_left in reversed(
            range(size)
        ):  # All levels 0..h occur: there are at most as many gaps as inputs left.
            level = np.tile(np.arange(size, dtype=np.int8), len(levels))
            level_bits = np.repeat(level_bits, size) | (1 << level.astype(np.int64))
            is_fillable = gaps[level_bits] <= inputs_left
            levels, level_bits = (
                np.column_stack([np.repeat(levels, size, axis=0)[is_fillable], level[is_fillable]]),
                level_bits[is_fillable],
            )
        levels = levels[(levels.max(axis=1) >= 1) | (size == 1) | flat]
        for support in itertools.combinations(range(k), size):
            columns.append(np.full((len(levels), k), ABSENT_LEVEL, dtype=np.int8))
            columns[-1][:, support] = levels
    all_columns = np.concatenate(columns)
    all_columns.setflags(write=False)
    return all_columns


def level_arrangement(k: int, flat: bool = False) -> Arrangement:
    """Return the arrangement whose extreme rays `level_columns` lists, for the ratio E = e^epsilon.

    The cone is that of all columns >= 0. It is cut by c_x = E c_x' and, if `flat`, by c_x = c_x'.
    """
    from ldpopt.design.kernel.listed import Arrangement

    return Arrangement.uniform(k, cut=1, has_order_cuts=flat)


Integers = npt.NDArray[np.int64]
MAX_COLUMNS_PER_PAIR = 20_000
"""If one pair (b, S) has more columns than this, only its columns with two different entries are listed."""


def indivisible_pairs(ratio: Fraction | None, total: int) -> list[tuple[int, int]]:
    """List the (b, S), b + S <= total, S <= (ratio - 1) b, that are not sums of others.

    Without a ratio the pairs are (0, 1) and (1, 0).

    For b = 1 every S is needed, because a smaller b allows none. For a larger b at most the largest S is needed,
    because smaller ones are sums.

    >>> indivisible_pairs(Fraction(2718281828, 10**9), 36)
    [(1, 0), (1, 1), (2, 3), (3, 5), (7, 12)]
    """
    if ratio is None:
        return [(0, 1), (1, 0)]
    max_rise = [0] + [(ratio.numerator * b // ratio.denominator) - b for b in range(1, total + 1)]
    needed_pairs = [(1, S) for S in range(min(max_rise[1], total - 1) + 1)]
    larger = range(2, total + 1)
    sums = {b: max(max_rise[a] + max_rise[b - a] for a in range(1, b // 2 + 1)) for b in larger}
    return needed_pairs + [(b, max_rise[b]) for b in larger if b + max_rise[b] <= total and max_rise[b] > sums[b]]


def count_columns(k: int, rise: int) -> int:
    """Count the columns of k entries from 0 to `rise` that have both 0 and `rise` among their entries.

    >>> count_columns(3, 2), count_columns(3, 0)
    (12, 1)
    """
    return (rise + 1) ** k - 2 * rise**k + (rise - 1) ** k if rise else 1


def integer_columns(
    k: int, ratio: Fraction | None, total: int, max_columns_per_pair: int = MAX_COLUMNS_PER_PAIR
) -> tuple[Integers, bool]:
    """List the columns, (k, n), and return True if these are all that `integer_arrangement` needs.

    - `ratio` : the largest ratio of two entries, None without a limit.
    - `total` : the sum of a row, an upper bound on entries.
    - `max_columns_per_pair` : a pair (b, S) with more columns than this gives only its columns of two values.

    >>> columns, complete = integer_columns(2, Fraction(3), 4)
    >>> columns.T.tolist(), complete
    ([[1, 1], [1, 2], [2, 1], [1, 3], [3, 1]], True)
    """
    columns, complete = [], True
    for base, rise in indivisible_pairs(ratio, total):
        is_complete = count_columns(k, rise) <= max_columns_per_pair
        complete = complete and is_complete
        steps = range(rise + 1) if is_complete else sorted({0, rise})
        entries = [entry for entry in itertools.product(steps, repeat=k) if min(entry) == 0 and max(entry) == rise]
        columns.append(base + np.array(entries, dtype=np.int64).reshape(-1, k))
    return np.ascontiguousarray(np.concatenate(columns).T), complete


def integer_arrangement(k: int) -> Arrangement:
    """Return the arrangement of `integer_columns`, for the ratio as E.

    The cone is that of the columns with c_x <= E c_x', cut by c_x = c_x'. Every column of integers up to the total is a
    sum of listed ones from one piece: the list contains the columns that are not such sums.
    """
    from ldpopt.design.kernel.listed import Arrangement

    return Arrangement.uniform(k, limit=1, has_order_cuts=True)


def merge_proportional(weights: Integers) -> Integers:
    """Merge proportional columns: guarantees and utility are unchanged, with fewer reports."""
    parts: dict[tuple[int, ...], Integers] = {}
    for column in weights.T:
        if column.any():
            key = tuple((column // np.gcd.reduce(column)).tolist())
            parts[key] = parts[key] + column if key in parts else column
    return np.stack(list(parts.values()), axis=1)


def as_matrix(weights: Integers, total: int) -> Array:
    """Return the floats nearest to weights / total."""
    return np.asarray(weights / np.float64(total))
