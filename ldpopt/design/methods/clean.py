"""The outputs of a solved channel: rare and nearly equal ones merged, without losing utility."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldpopt.design.constraints.repair import repair
from ldpopt.design.problems.problem import Problem
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

LEVELS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-7, 0.0)
"""How rare, and how near in posterior, outputs are merged; the coarsest level that costs nothing is taken."""


FREE = 1e-9


def cleanest(problem: Problem, matrix: Array, improve: Callable[[Array], Array]) -> Array:
    """The channel with the fewest outputs among those of `LEVELS` that keep the most utility once repaired.

    Merging keeps the rows' sums and every constraint that is a convex sum over outputs. `improve` may better each
    merged channel before it is measured.
    """
    pair, f = problem.reduction.pair, problem.utility.f
    best, most = None, -np.inf
    for level in LEVELS:
        q = merge(improve(merge(matrix, pair.p0, pair.p1, level)), pair.p0, pair.p1, 1e-7)
        try:
            q = repair(q, problem.constraints, problem.inputs)
        except SolverError:
            continue
        value = float(f.excess(pair.p0 @ q, pair.p1 @ q).sum())
        if value > most + FREE * abs(most) or best is None:
            best, most = q, value
    return matrix if best is None else best


def merge(matrix: Array, p0: Array, p1: Array, level: float) -> Array:
    """Outputs of mass above `level` and further than that apart in posterior; each other joins the nearest."""
    q = np.maximum(matrix, 0.0)
    mass = q.max(axis=0)
    posterior = p0 @ q / np.maximum((p0 + p1) @ q, 1e-300)
    heads: list[int] = []
    for y in np.argsort(-mass):
        if not heads or (mass[y] > level and np.abs(posterior[heads] - posterior[y]).min() > level):
            heads.append(int(y))
    nearest = np.abs(posterior[:, None] - posterior[heads]).argmin(axis=1)
    merged = np.zeros((len(heads), len(q)))
    np.add.at(merged, nearest, q.T)
    return np.asarray(merged.T / merged.T.sum(axis=1, keepdims=True))
