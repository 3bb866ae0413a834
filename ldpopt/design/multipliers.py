"""Sharper multipliers for the equivalence theorem: a kernel from the channel itself, and a linear program for the rest.

Any kernel proves a bound. That of the channel's own best estimate is optimal when the channel is, and its error counts
twice only in the second order. With it the least of sum lambda + eta sum nu is a linear program over the columns.
"""

from __future__ import annotations

import numpy as np

from ldpopt.design.criteria import Criterion, differences
from ldpopt.design.scores import scores
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.distribution import Array


def kernel_at(criterion: Criterion, matrix: Array, prior: Array) -> Array:
    """K (r, k) for which K u_y is the influence of report y, where u_y = q_y / (q_y . p) - 1."""
    reduced = scores(matrix, prior)
    scale = np.linalg.norm(reduced, axis=1)
    scale[scale == 0] = 1.0
    found = np.linalg.lstsq((reduced / scale[:, None]).T, criterion.influence(reduced).loadings.T, rcond=1e-10)[0]
    return np.asarray((found / scale[:, None]).T @ differences(len(prior)).T)


def least_multipliers(gram: Array, prior: Array, values: Array, eta: float | None) -> tuple[Array, Array]:
    """lambda (k,) and nu (k, k) of least sum lambda + eta sum nu that pay for the columns `values` (n, k).

    S^T G S / (S.p) <= lambda.S + sum_{x<x'} nu[x,x'] (S_x - S_x')_+ for every one of them.
    """
    import cvxpy as cp

    k = len(prior)
    unit = values / (values @ prior)[:, None]
    earned = np.einsum("nx,nx->n", unit @ gram, unit)
    scale = float(earned.max()) or 1.0
    rows, pairs = cp.Variable(k), np.zeros((k, k))
    paid, cost = unit @ rows, cp.sum(rows)
    if eta is not None:
        x, other = np.triu_indices(k, 1)
        cap = cp.Variable(len(x), nonneg=True)
        paid = paid + np.maximum(unit[:, x] - unit[:, other], 0.0) @ cap
        cost = cost + eta * cp.sum(cap)
    solve(cp.Problem(cp.Minimize(cost), [paid >= earned / scale]), "multipliers of the equivalence bound", SIMPLEX)
    if eta is not None:
        pairs[x, other] = np.maximum(np.asarray(cap.value), 0.0) * scale
    return np.asarray(rows.value) * scale, pairs
