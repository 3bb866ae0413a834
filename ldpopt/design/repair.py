"""From a nearly feasible matrix to one that meets its constraints by measurement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints import Constraint
from ldpopt.distribution import Array
from ldpopt.errors import SolverError


def repair(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None = None) -> Array:
    """A stochastic matrix near `matrix` whose measures are within the constraints.

    Negative entries are clipped, rows divided by their sums, and the result mixed with the constant channel of its
    own column means, with the least weight on a geometric scale from 1e-16 that makes every re-measured (and outward
    rounded) guarantee hold. A matrix that would need more than 1e-3 is refused: it was no solution.
    """
    clipped = np.maximum(matrix, 0.0)
    clipped = clipped / clipped.sum(axis=1, keepdims=True)
    mean = clipped.mean(axis=0)
    weight = 0.0
    while weight <= 1e-3:
        mixed = (1 - weight) * clipped + weight * mean
        channel = Channel(mixed / mixed.sum(axis=1, keepdims=True), inputs)  # type: ignore[arg-type]
        if all(float(constraint.measure(channel)) <= constraint.bound for constraint in constraints):
            return channel.matrix
        weight = max(1e-16, 2 * weight)
    raise SolverError("repair: the solver's matrix is too far from private to mend; pass another method")
