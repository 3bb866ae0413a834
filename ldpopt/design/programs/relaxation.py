"""The multipliers of relaxed bounds, by semidefinite programs whose answers `columns.relaxation` proves [Shor].

The relaxation knows of a staircase pattern S, with entries 1 and E = exp(epsilon), only its mass and
(S_x - 1)(S_x - E) = 0; of a column of a policy graph, only products of two limits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.design.columns.base import AnyRelaxation, Columns
from ldpopt.design.columns.relaxation import CLASSES, PolicyRelaxation, Relaxation, limits_used, product_pairs
from ldpopt.design.solve import CONIC, INTERIOR, solve
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


def relax(columns: Columns, gram: Array, prior: Array, eta: float | None) -> tuple[Array, Array, AnyRelaxation]:
    """Multipliers lambda (k,) and nu (k, k) with least sum lambda + eta sum nu, and a relaxation where none gains.

    nu is 0 without `eta`. columns : staircase patterns, or those of a policy graph, which have `limits`.
    """
    limits = getattr(columns, "limits", None)
    if limits is not None:
        return relax_policy(gram, prior, limits, eta)
    return relax_patterns(gram, prior, math.exp(columns.epsilon), eta)


def relax_patterns(gram: Array, prior: Array, ratio: float, eta: float | None) -> tuple[Array, Array, Relaxation]:
    """lambda (k,) and nu (k, k) with least sum lambda + eta sum nu, and the relaxation; nu is 0 without `eta`."""
    import cvxpy as cp

    k = len(prior)
    scale = float(np.trace(gram))
    classes = 1 if eta is None else CLASSES
    rows, pairs = cp.Variable(k), np.zeros((k, k))
    squares, spans = cp.Variable((classes, k)), cp.Variable(classes, nonneg=True)
    cost: Any = cp.sum(rows)
    spent: Any = pairs
    if eta is not None:
        x, other = np.triu_indices(k, 1)
        each = cp.Variable(len(x), nonneg=True)
        place = np.zeros((k * k, len(x)))
        place[x * k + other, np.arange(len(x))] = 1.0
        spent = cp.reshape(place @ each, (k, k), order="C")
        cost = cost + eta * cp.sum(each)
    mass = _masses(ratio, classes)
    cones = []
    for at in range(classes):
        ends = (float(mass[at]), float(mass[at + 1]), ratio)
        top, edge, corner = _form(gram / scale, prior, rows, spent, squares[at], spans[at], ends)
        edge = cp.reshape(edge, (k, 1), order="C")
        cones.append(cp.bmat([[top, edge], [edge.T, cp.reshape(corner, (1, 1), order="C")]]) >> 0)
    solve(cp.Problem(cp.Minimize(cost), cones), "relaxed equivalence bound", INTERIOR)
    if eta is not None:
        pairs[x, other] = np.maximum(np.asarray(each.value), 0.0) * scale
    made = Relaxation(np.asarray(squares.value) * scale, np.maximum(np.asarray(spans.value), 0.0) * scale)
    return np.asarray(rows.value) * scale, pairs, made


def _masses(ratio: float, classes: int) -> Array:
    """(classes + 1,) the ends of the classes of masses."""
    return np.asarray(ratio ** (np.arange(classes + 1) / classes))


def _form(
    gram: Array, prior: Array, rows: Any, pairs: Any, d: Any, span: Any, ends: tuple[float, float, float]
) -> tuple[Any, Any, Any]:
    """The quadratic, linear (halved) and constant part of N in S, as cvxpy expressions."""
    import cvxpy as cp

    low, high, ratio = ends
    k, gain, ones = len(prior), ratio - 1, np.ones(len(prior))
    row = cp.reshape(rows, (1, k), order="C")
    square = (prior[:, None] @ row + row.T @ prior[None]) / 2 - gram
    top = square - low / gain * (pairs + pairs.T) / 2 + cp.diag(d) + span * np.outer(prior, prior)
    out, into = pairs @ ones, pairs.T @ ones
    edge = low / gain * (ratio * out + into) / 2 - (1 + ratio) / 2 * d - span * (low + high) / 2 * prior
    corner = ones @ (ratio * d - low * ratio / gain * out) + span * low * high
    return top, edge, corner
