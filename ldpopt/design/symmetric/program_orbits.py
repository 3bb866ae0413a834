"""The program over orbits of sets: the best weights of orbits, and multipliers that pay for all of them.

It is a program of columns (`patterns.program`) with one row for each group of answers. The column of the orbit j has
the base t, the rises j_i/k_i, and for two groups i, l the excess that `symmetric.proof_orbits` states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.design.information.proof import information
from ldpopt.design.patterns.program import COLUMNS_PER_BLOCK, ColumnProgram, ExcessCaps, WeightedColumns
from ldpopt.design.symmetric.proof_orbits import Groups, orbits
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index


def separation_caps(sizes: Index, cap: float | None) -> ExcessCaps:
    """The caps on the distance of two answers, for each two groups, and for each group of two answers or more."""
    left, right = np.triu_indices(len(sizes) if cap is not None else 0)
    posed = (left != right) | (sizes[left] > 1)
    left, right = left[posed], right[posed]
    limit = ExcessCaps.variation(2, 1.0 if cap is None else cap).limits
    return ExcessCaps(left, right, np.full(len(left), float(limit.max(initial=0.0))), left != right)


def separations(inside: Array, sizes: Index, caps: ExcessCaps) -> Array:
    """(m, n) with which probability a set of each orbit separates the two answers of each cap; inside : (c, n) j."""
    left, right = caps.left, caps.right
    apart = sizes[left] * (sizes[right] - (left == right))
    return np.asarray(inside[left] * (sizes[:, None] - inside)[right] / apart[:, None])


def orbit_program(
    groups: Groups, level: float, cap: float | None, deadline: Deadline = UNLIMITED
) -> tuple[Index, WeightedColumns]:
    """The orbits (c, m) in use, with the weights (m,) of their patterns t + 1_A, and multipliers of groups and caps.

    level : t. cap : on total variation, None without. Raises `SolverError` when no solver is accurate.
    """
    sizes, count = groups.sizes, groups.count
    inside = orbits(sizes, np.arange(count, dtype=np.intp)).astype(np.float64)
    masses = groups.values / (groups.values @ sizes)
    middle, high = np.zeros((1, count)), np.zeros((1, count))
    for start in range(0, count, COLUMNS_PER_BLOCK):
        some = slice(start, start + COLUMNS_PER_BLOCK)
        own = FLOAT.of(masses @ inside[:, some]), FLOAT.of(masses @ (sizes[:, None] - inside[:, some]))
        worth = information(*own, FLOAT.of(level))
        middle[0, some] = np.where(np.asarray(worth.lower) > 0, np.asarray(worth.midpoint), 0.0)
        high[0, some] = np.asarray(worth.upper)
    caps = separation_caps(sizes, cap)

    def excess(chosen: Any) -> Array:
        return separations(inside[:, chosen], sizes, caps)

    rise = inside / sizes[:, None]
    program = ColumnProgram(np.full(count, level), rise, caps, excess, np.zeros(1), middle, high)
    used, best = program.solve(deadline)
    return inside[:, used].astype(np.intp), best
