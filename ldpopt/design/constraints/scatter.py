"""Sums by group, for enclosures."""

from __future__ import annotations

import numpy as np

from ldpopt.distribution import Index
from ldpopt.enclosures import Enclosure


def scatter(values: Enclosure, at: Index, size: int) -> Enclosure:
    """(size,) sums of the (m,) `values` that share an index in `at`; zero for an index that does not occur.

    The values of a group are added pair by pair, so that a group of n costs log2(n) roundings.

    >>> from ldpopt.enclosures import FLOAT
    >>> scatter(FLOAT.of([1.0, 2.0, 4.0]), np.array([2, 0, 2]), 3).lower
    array([2., 0., 5.])
    """
    order = np.argsort(at, kind="stable")
    values, at = values[order], np.asarray(at)[order]
    while True:
        first = np.flatnonzero(np.concatenate([[True], np.diff(at) != 0])) if len(at) else np.zeros(0, dtype=np.intp)
        if len(first) == len(at):
            break
        place = np.arange(len(at)) - np.repeat(first, np.diff(np.append(first, len(at))))
        even = np.flatnonzero(place % 2 == 0)
        paired = np.append(place, 0)[even + 1] % 2 == 1
        odd = np.minimum(even + 1, len(at) - 1)
        values = values[even] + values.arithmetic.where(paired, values[odd], 0.0)
        at = at[even]
    whole = values.arithmetic.concatenate([values, values.arithmetic.zeros(1)])
    table = np.full(size, len(at), dtype=np.intp)
    table[at] = np.arange(len(at))
    return whole[table]
