"""The multipliers of the relaxed bounds: semidefinite programs, whose answers `columns` checks.

The relaxation knows of a staircase pattern S, with entries 1 and E = exp(epsilon), only its mass and
(S_x - 1)(S_x - E) = 0 (`columns.relaxation`); of a column of a policy graph, only products of two limits
(`columns.policy_relaxation`).
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from ldpopt.design.columns.base import AnyRelaxation, Columns
from ldpopt.design.columns.policy import SearchedColumns
from ldpopt.design.columns.relaxation import CLASSES, Relaxation
from ldpopt.design.columns.staircase import StaircaseColumns
from ldpopt.design.programs.policy_relaxation import relax_policy
from ldpopt.design.solve import INTERIOR, solve
from ldpopt.distribution import Array


@singledispatch
def relax(columns: Columns, gram: Array, prior: Array, eta: float | None) -> tuple[Array, Array, AnyRelaxation]:
    """Multipliers lambda (k,) and nu (k, k) with least sum lambda + eta sum nu, and a relaxation where none gains.

    nu is 0 without `eta`.
    """
    raise NotImplementedError(f"{columns.name} can all be priced")


@relax.register
def _of_patterns(
    columns: StaircaseColumns, gram: Array, prior: Array, eta: float | None
) -> tuple[Array, Array, AnyRelaxation]:
    return relax_patterns(gram, prior, math.exp(columns.epsilon), eta)


@relax.register
def _of_policy(
    columns: SearchedColumns, gram: Array, prior: Array, eta: float | None
) -> tuple[Array, Array, AnyRelaxation]:
    return relax_policy(gram, prior, columns.limits, eta)


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
