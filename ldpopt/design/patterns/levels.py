"""The extreme columns of (epsilon, delta)-LDP, powers of e^epsilon on a support, and those of channels over integers.

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
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ldpopt.values.distribution import Array

if TYPE_CHECKING:
    from ldpopt.design.kernel.arrangement import Arrangement

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
    from ldpopt.design.kernel.arrangement import Arrangement

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
    from ldpopt.design.kernel.arrangement import Arrangement

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
