"""A bound on the price of every staircase pattern, for alphabets whose patterns cannot be priced one by one [Shor].

With lambda and nu as in `pricing`, a pattern S whose mass S.p lies in [a, b] pays for itself when

    (S.p)(lambda.S) + a sum nu[x,x'] (S_x - S_x')_+ - S^T G S >= 0,

and that is quadratic in S: on patterns (S_x - S_x')_+ = (S_x - 1)(E - S_x') / (E - 1). It holds for all of them when
the form N, with d_x (S_x - 1)(S_x - E) = 0 added and tau (S.p - a)(b - S.p) >= 0 taken off, is positive semidefinite on
(S, 1). The masses, from 1 to E, are cut into classes, each with its own d and tau; without nu one class is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.distribution import Array

CLASSES = 6


@dataclass(frozen=True, eq=False)
class Relaxation:
    """d (classes, k) and tau (classes,) of the classes of masses; sound whatever their values."""

    squares: Array
    spans: Array

    def violation(self, gram: Array, prior: Array, rows: Array, pairs: Array, ratio: float) -> float:
        """A bound on the price of every pattern: -(lowest eigenvalue) (k E^2 + 1), as S.p >= 1."""
        k, worst = len(prior), 0.0
        mass = _masses(ratio, len(self.spans))
        for d, span, low, high in zip(self.squares, np.maximum(self.spans, 0.0), mass[:-1], mass[1:], strict=True):
            top, edge, corner = _form(gram, prior, rows, pairs, d, span, (low, high, ratio))
            form = np.block([[top, edge[:, None]], [edge[None], np.array([[corner]])]])
            lowest = float(np.linalg.eigvalsh(form)[0]) - 1e-14 * (k + 1) * float(np.abs(form).max())
            worst = max(worst, -lowest)
        return worst * (k * ratio**2 + 1)


def relax(gram: Array, prior: Array, ratio: float, eta: float | None) -> tuple[Array, Array, Relaxation]:
    """lambda (k,), nu (k, k) and the classes of least sum lambda + eta sum nu; nu is 0 without `eta`."""
    import cvxpy as cp

    from ldpopt.design.solve import INTERIOR, solve

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
    """Ends of the classes of masses."""
    return np.asarray(ratio ** (np.arange(classes + 1) / classes))


def _form(
    gram: Array, prior: Array, rows: Any, pairs: Any, d: Any, span: Any, ends: tuple[float, float, float]
) -> tuple[Any, Any, Any]:
    """The quadratic, linear (halved) and constant part of N, for numbers as for cvxpy expressions."""
    low, high, ratio = ends
    k, gain, ones = len(prior), ratio - 1, np.ones((len(prior), 1))
    square = (prior[:, None] @ _row(rows, k) + _row(rows, k).T @ prior[None]) / 2 - gram
    top = square - low / gain * (pairs + pairs.T) / 2 + _diagonal(d) + span * np.outer(prior, prior)
    out, into = pairs @ np.ones(k), pairs.T @ np.ones(k)
    edge = low / gain * (ratio * out + into) / 2 - (1 + ratio) / 2 * d - span * (low + high) / 2 * prior
    corner = ones[:, 0] @ (ratio * d - low * ratio / gain * out) + span * low * high
    return top, edge, corner


def _row(values: Any, k: int) -> Any:
    return values.reshape(1, k) if isinstance(values, np.ndarray) else _cvxpy().reshape(values, (1, k), order="C")


def _diagonal(values: Any) -> Any:
    return np.diag(values) if isinstance(values, np.ndarray) else _cvxpy().diag(values)


def _cvxpy() -> Any:
    import cvxpy

    return cvxpy
