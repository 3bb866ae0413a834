"""The staircase-pattern program of any column utility, its patterns priced all at once."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.design.columns.masks import Masks, members
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.column import ColumnUtility
from ldpopt.distribution import Array
from ldpopt.errors import SolverError


def pattern_columns(utility: ColumnUtility, epsilon: float, eta: float) -> tuple[Masks, Array, Array, Array, Array]:
    """Masks, weights theta, row and pair multipliers and criteria weights of the pattern program, by pricing."""
    import cvxpy as cp

    k, ratio = utility.size, math.exp(epsilon)
    every = np.arange(2**k - 1, dtype=np.int64)
    inside = members(every, k)
    column = np.where(inside, ratio, 1.0)
    mu = utility.columns(column.T)
    scale = float(mu.max()) or 1.0
    mu = mu / scale
    capped = eta < math.tanh(epsilon / 2)
    above, below = np.triu_indices(k, 1)
    chosen = np.unique(np.concatenate([[0], 2 ** np.arange(k), np.argsort(-mu.max(axis=0))[:400]]))
    for _ in range(200):
        theta = cp.Variable(len(chosen), nonneg=True)
        least = cp.Variable()
        row = column[chosen].T @ theta == np.ones(k)
        worst = mu[:, chosen] @ theta >= least * np.ones(len(mu))
        cap = ((inside[chosen][:, above] & ~inside[chosen][:, below]).T * (ratio - 1)) @ theta <= np.full(
            len(above), eta
        )
        problem = cp.Problem(cp.Maximize(least), [row, worst, *([cap] if capped else [])])
        solve(problem, "pattern LP", INTERIOR)
        rows, weights, pairs = np.asarray(row.dual_value), np.maximum(worst.dual_value, 0.0), np.zeros((k, k))
        if capped:
            pairs[above, below] = np.maximum(cap.dual_value, 0.0)
        weights = weights / weights.sum()
        cut = np.einsum("ax,ax->a", inside @ pairs, (~inside).astype(np.float64))
        gain = weights @ mu - column @ rows - (ratio - 1) * cut
        new = np.setdiff1d(np.flatnonzero(gain > 1e-9), chosen)
        if len(new) == 0:
            solve(problem, "pattern LP", SIMPLEX)
            return every[chosen], np.asarray(theta.value), rows * scale, pairs * scale, weights
        chosen = np.concatenate([chosen, new[np.argsort(-gain[new])[:400]]])
    raise SolverError("pattern LP: pricing did not settle; take fewer inputs")
