"""From a nearly feasible matrix to one that meets its constraints by measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints import Constraint, LocalDP
from ldpopt.design.constraints.terms import HockeyStick, Ratio, Term
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

_HOPELESS = "repair: the solver's matrix is too far from private to mend; pass another method"


class Unrepairable(SolverError):
    """The matrix (k, m) of a solver is too far from its constraints."""

    def __init__(self, matrix: Array) -> None:
        super().__init__(_HOPELESS)
        self.matrix = matrix


def repair(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None = None) -> Array:
    """A stochastic matrix near `matrix` whose measures are within the constraints.

    Entries too small for epsilon are raised to the largest of their column over exp(epsilon), or to what the edges of a
    policy graph ask for, rows divided by their sums, and the result mixed with the constant channel of its own column
    means, with the least weight on a geometric scale from 1e-16 that makes every re-measured (and outward rounded)
    guarantee hold. A matrix that would need more than 1e-3 is refused, and so is one that the raising moves by more: it
    was no solution.
    """
    epsilon = min((c.epsilon for c in constraints if isinstance(c, LocalDP) and c.symmetric), default=math.inf)
    clipped = np.maximum(matrix, np.maximum(matrix.max(axis=0), 0.0) * math.exp(-epsilon))
    for constraint in constraints:
        if isinstance(constraint, LocalDP) and not constraint.symmetric:
            clipped = _raised(clipped, constraint.columns(inputs or range(len(clipped))))
    if np.abs(clipped - matrix).max() > 1e-3:
        raise Unrepairable(matrix)
    clipped = clipped / clipped.sum(axis=1, keepdims=True)
    mean = clipped.mean(axis=0)
    weight = 0.0
    while weight <= 1e-3:
        mixed = (1 - weight) * clipped + weight * mean
        channel = Channel(mixed / mixed.sum(axis=1, keepdims=True), inputs)
        if all(float(constraint.measure(channel)) <= constraint.bound for constraint in constraints):
            return channel.matrix
        weight = max(1e-16, 2 * weight)
    raise Unrepairable(clipped)


def _raised(matrix: Array, terms: Sequence[Term | Ratio]) -> Array:
    """The least matrix above `matrix` that keeps the ratios along all edges: a longest path for every column."""
    raised = matrix.copy()
    for term in terms:
        assert isinstance(term, HockeyStick)
        for _ in range(len(matrix)):
            before = raised.copy()
            np.maximum.at(raised, term.right, raised[term.left] / term.factor[:, None])
            if np.array_equal(raised, before):
                break
    return raised
