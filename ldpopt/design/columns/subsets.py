"""Subsets of given masses whose sums are near a target, many at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.masks import members
from ldpopt.distribution import Array

LISTED = 12
"""Up to this many masses, all subsets are listed."""

HALF = 4096
"""The number of subsets of one half of the masses with which subsets of the other half are combined."""

Subsets = npt.NDArray[np.bool_]


def subsets_near(masses: Array, target: float, count: int, rng: np.random.Generator) -> Subsets:
    """(n, len(masses)) up to `count` different subsets with sums near `target`; all masses occur about equally often.

    For few masses, the subsets with the nearest sums. For many, random subsets of one random half, each combined with
    one of the few best from a sample of subsets of the other half.
    """
    n = len(masses)
    if n <= LISTED:
        every = members(np.arange(2**n, dtype=np.int64), n)
        return every[np.argsort(np.abs(every @ masses - target), kind="stable")[:count]]
    share = min(max(target / masses.sum(), 0.0), 1.0)
    found = []
    for _ in range(4):
        order = rng.permutation(n)
        one, two = order[: n // 2], order[n // 2 :]
        first, second = (rng.random((size, len(part))) < share for size, part in ((count, one), (HALF, two)))
        sums = second @ masses[two]
        by = np.argsort(sums)
        wanted = target - first @ masses[one]
        # One of the nearest few, so that it is not always the same.
        at = np.clip(np.searchsorted(sums[by], wanted) + rng.integers(-2, 2, count), 0, HALF - 1)
        made = np.zeros((count, n), dtype=bool)
        made[:, one], made[:, two] = first, second[by[at]]
        found.append(made)
    both = rng.permutation(np.unique(np.vstack(found), axis=0))  # no preference among equally near ones
    return both[np.argsort(np.abs(both @ masses - target), kind="stable")[:count]]
