"""The program over orbits of sets: the best weights of orbits, and multipliers whose prices cover all of them.

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
    """Build the caps on the distance of two answers, for each two groups.

    A group of two answers or more also has a cap with itself.
    """
    left, right = np.triu_indices(len(sizes) if cap is not None else 0)
    is_posed = (left != right) | (sizes[left] > 1)
    left, right = left[is_posed], right[is_posed]
    limit = ExcessCaps.variation(2, 1.0 if cap is None else cap).limits
    return ExcessCaps(left, right, np.full(len(left), float(limit.max(initial=0.0))), left != right)


def separations(member_counts: Array, sizes: Index, caps: ExcessCaps) -> Array:
    """Compute (m, n) the probabilities that a set of each orbit separates two answers.

    There is one row for the two answers of each cap; inside : (c, n) j.
    """
    left, right = caps.left, caps.right
    pair_counts = sizes[left] * (sizes[right] - (left == right))
    return np.asarray(member_counts[left] * (sizes[:, None] - member_counts)[right] / pair_counts[:, None])


def orbit_program(
    groups: Groups, level: float, cap: float | None, deadline: Deadline = UNLIMITED
) -> tuple[Index, WeightedColumns]:
    """Solve the program over orbits.

    Returns the orbits (c, m) in use, with the weights (m,) of their patterns t + 1_A, and multipliers of groups and
    caps.

    level : t. cap : on total variation, None without. Raises `SolverError` when no solver is accurate.
    """
    sizes, count = groups.sizes, groups.count
    member_counts = orbits(sizes, np.arange(count, dtype=np.intp)).astype(np.float64)
    masses = groups.values / (groups.values @ sizes)
    midpoints, upper_bounds = np.zeros((1, count)), np.zeros((1, count))
    for start in range(0, count, COLUMNS_PER_BLOCK):
        block = slice(start, start + COLUMNS_PER_BLOCK)
        masses_of_sets = (
            FLOAT.of(masses @ member_counts[:, block]),
            FLOAT.of(masses @ (sizes[:, None] - member_counts[:, block])),
        )
        value = information(*masses_of_sets, FLOAT.of(level))
        midpoints[0, block] = np.where(np.asarray(value.lower) > 0, np.asarray(value.midpoint), 0.0)
        upper_bounds[0, block] = np.asarray(value.upper)
    caps = separation_caps(sizes, cap)

    def excess(columns: Any) -> Array:
        return separations(member_counts[:, columns], sizes, caps)

    rise = member_counts / sizes[:, None]
    program = ColumnProgram(np.full(count, level), rise, caps, excess, np.zeros(1), midpoints, upper_bounds)
    used_orbits, best = program.solve(deadline)
    return member_counts[:, used_orbits].astype(np.intp), best
