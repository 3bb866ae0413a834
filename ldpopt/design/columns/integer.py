"""Columns of integers with bounded ratios that are no sums of others: a channel over a denominator needs no more.

For a utility that is a sum over outputs of a convex, homogeneous function mu, mu(s + t) <= mu(s) + mu(t). So splitting
a column into two never loses utility, and does not raise the total variation where both have their entries in the order
of the whole. Let b be the least entry of a column, and b + S the largest. The column can be split whenever (b, S) is a
sum of two such pairs that the ratio allows, because the steps between its entries can be divided at will. So only pairs
that are no such sums are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array

Integers = npt.NDArray[np.int64]
MANY = 20_000
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
    found = [(1, S) for S in range(min(most[1], total - 1) + 1)]
    larger = range(2, total + 1)
    sums = {b: max(most[a] + most[b - a] for a in range(1, b // 2 + 1)) for b in larger}
    return found + [(b, most[b]) for b in larger if b + most[b] <= total and most[b] > sums[b]]


def count(k: int, rise: int) -> int:
    """How many columns of k entries from 0 to `rise` have both 0 and `rise` among their entries.

    >>> count(3, 2), count(3, 0)
    (12, 1)
    """
    return (rise + 1) ** k - 2 * rise**k + (rise - 1) ** k if rise else 1


def integer_columns(k: int, ratio: Fraction | None, total: int, many: int = MANY) -> tuple[Integers, bool]:
    """The columns, shape (k, n), and whether these are all that are needed.

    ratio : the largest ratio of two entries, None without a limit. total : the sum of a row, an upper limit of entries.
    many : a pair (b, S) with more columns than this gives only its columns of two values.

    >>> columns, complete = integer_columns(2, Fraction(3), 4)
    >>> columns.T.tolist(), complete
    ([[1, 1], [1, 2], [2, 1], [1, 3], [3, 1]], True)
    """
    made, complete = [], True
    for base, rise in pairs(ratio, total):
        every = count(k, rise) <= many
        complete = complete and every
        made.append(base + np.array(list(_all(k, rise) if every else _two_valued(k, rise)), dtype=np.int64))
    return np.ascontiguousarray(np.concatenate(made).T), complete


def _all(k: int, rise: int) -> Iterator[tuple[int, ...]]:
    for entries in product(range(rise + 1), repeat=k):
        if min(entries) == 0 and max(entries) == rise:
            yield entries


def _two_valued(k: int, rise: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, k):
        for chosen in combinations(range(k), size):
            yield tuple(rise if x in chosen else 0 for x in range(k))


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
