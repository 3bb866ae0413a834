"""The multipliers of the relaxed bound under a policy graph: a semidefinite program (`columns.policy_relaxation`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.design.columns.policy_relaxation import PolicyRelaxation, limits_used, product_pairs
from ldpopt.design.solve import CONIC, solve
from ldpopt.distribution import Array


def relax_policy(
    gram: Array, prior: Array, limits: Array, eta: float | None = None
) -> tuple[Array, Array, PolicyRelaxation]:
    """lambda (k,) and nu (k, k) with least sum lambda + eta sum nu, and weights that prove that no column gains.

    limits : (k, k) log-ratios, the lengths of shortest paths. nu is 0 without `eta`.
    """
    import cvxpy as cp
    from scipy.sparse import csr_array

    k, cone = len(prior), _Cone(limits, prior)
    nothing, pairs = np.zeros((k, k)), np.zeros((k, k))
    scale = float(np.abs(cone.form(gram, np.zeros(k))).max()) or 1.0
    rows, weights = cp.Variable(k), cp.Variable(len(cone.first), nonneg=True)
    left, right = cone.faces[cone.first], cone.faces[cone.second]
    each = np.einsum("nx,ny->nxy", left, right)
    spread = csr_array(((each + each.transpose(0, 2, 1)) / 2).reshape(len(left), k * k).T)
    # (s.p)(rows.s) is linear in `rows`: one matrix for each of its entries.
    priced = np.array([cone.form(nothing, one).ravel() for one in np.eye(k)]).T
    form: Any = priced @ rows - spread @ weights + cone.form(gram / scale, np.zeros(k)).ravel()
    cost: Any = cp.sum(rows)
    if eta is not None:
        x, other = np.triu_indices(k, 1)
        caps = cp.Variable(len(x), nonneg=True)
        single = np.zeros((len(x), k, k))
        single[np.arange(len(x)), x, other] = 1.0
        form = form + np.array([cone.apart(one).ravel() for one in single]).T @ caps
        cost = cost + eta * cp.sum(caps)
    square = cp.reshape(form, (k, k), order="C")
    solve(cp.Problem(cp.Minimize(cost), [square >> 0]), "relaxed bound of a policy graph", CONIC)
    if eta is not None:
        pairs[x, other] = np.maximum(np.asarray(caps.value), 0.0) * scale
    return np.asarray(rows.value) * scale, pairs, PolicyRelaxation(np.maximum(weights.value, 0.0) * scale)


class _Cone:
    """The columns within limits, with entry x in units of the most that it can be for s.p = 1."""

    def __init__(self, limits: Array, prior: Array) -> None:
        k = len(prior)
        self.prior = prior
        # s.p >= s_x sum_x' p_x' exp(-L[x,x'])
        self.unit = 1 / (np.exp(-limits) @ prior)
        reach = self.unit[:, None] * -np.expm1(-limits)
        reach = np.maximum(reach, reach.T)
        self.reach = np.where(reach > 0, reach, np.inf)
        x, other = limits_used(limits)
        faces = np.zeros((len(x), k))
        at = np.arange(len(x))
        # Each row is divided by exp(L / 2), and then by its largest entry, so that nothing overflows.
        faces[at, other] = np.exp(limits[x, other] / 2) * self.unit[other]
        faces[at, x] = -np.exp(-limits[x, other] / 2) * self.unit[x]
        if np.isinf(limits).any():
            faces = np.vstack([faces, np.eye(k)])
        self.faces = faces / np.abs(faces).max(axis=1, keepdims=True)
        self.first, self.second = product_pairs(self.faces != 0)

    def form(self, gram: Array, rows: Array) -> Array:
        """(s.p)(rows.s) - s^T G s."""
        paid = np.outer(self.prior, rows)
        return np.asarray(((paid + paid.T) / 2 - gram) * np.outer(self.unit, self.unit))

    def apart(self, pairs: Array) -> Array:
        """sum nu (d (s.p) + d^2 / R) / 2, d = s_x - s_x'."""
        shift = (pairs.sum(axis=1) - pairs.sum(axis=0)) / 2
        bent = pairs / (2 * self.reach)
        bent = bent + bent.T
        square = np.diag(bent.sum(axis=1)) - bent
        return self.form(-square, shift)
