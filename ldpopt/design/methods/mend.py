"""A matrix with given outputs, mended until it meets its constraints by measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints import (
    AlphabetConstraint,
    ApproximateLDP,
    Constraint,
    Invariant,
    LocalDP,
    TotalVariation,
)
from ldpopt.design.constraints.parts import parts
from ldpopt.design.constraints.repair import Unrepairable
from ldpopt.design.programs.alphabet import AlphabetProgram
from ldpopt.distribution import Array
from ldpopt.errors import SolverError


def mend(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None) -> Array:
    """A matrix near `matrix` (k, m) that meets all constraints by measurement.

    Equations are restored first; then the matrix is mixed with a channel that meets everything with room to spare, a
    constant one where that can be, and the equations are restored again.
    """
    fixed = [constraint for constraint in constraints if isinstance(constraint, AlphabetConstraint)]

    def restored(q: Array) -> Array:
        for one in sorted(fixed, key=lambda one: isinstance(one, Invariant)):
            q = one.mend(q)
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    epsilon = min((c.epsilon for c in constraints if isinstance(c, LocalDP) and c.symmetric), default=math.inf)
    clean = np.where(matrix > 1e-11, matrix, 0.0)
    start = restored(np.maximum(clean, clean.max(axis=0) * math.exp(-epsilon)))
    centre = _centre(matrix.shape, constraints, inputs, restored, start)
    weight = 0.0
    while weight <= 1e-3:
        channel = Channel(restored((1 - weight) * start + weight * centre), inputs)
        if _within([constraint.measure(channel) for constraint in constraints], constraints):
            return channel.matrix
        weight = max(1e-16, 2 * weight)
    raise Unrepairable(start)


def _centre(
    shape: tuple[int, int], constraints: Sequence[Constraint], inputs: Any, restored: Any, start: Array
) -> Array:
    """A channel that meets the constraints, constant if one does, else the most central one a solver finds."""
    rows = [one.constant(shape) for one in constraints if isinstance(one, AlphabetConstraint)]
    for row in [*(row for row in rows if row is not None), start.mean(axis=0)]:
        made = np.tile(row, (shape[0], 1))
        if _within([constraint.measure(Channel(made, inputs)) for constraint in constraints], constraints):
            return made
    # Half of what total variation allows leaves the middle of the set.
    tighter = [replace(c, eta=c.eta / 2) if isinstance(c, TotalVariation) else
               replace(c, delta=c.delta / 2) if isinstance(c, ApproximateLDP) else c for c in constraints]  # fmt: skip
    for tried in (tighter, constraints):
        terms, fixed, expressions = parts(tried, inputs or range(shape[0]))
        try:
            found = AlphabetProgram(shape, terms, fixed, expressions).solve(np.zeros((1, *shape[::-1])))[0]
        except SolverError:
            continue
        return np.asarray(restored(np.where(found > 1e-11, found, 0.0)))
    return start


def _within(guarantees: Sequence[Any], constraints: Sequence[Constraint]) -> bool:
    return all(g.value <= constraint.bound for g, constraint in zip(guarantees, constraints, strict=True))
