"""The criteria of optimal design in cvxpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import cvxpy as cp
import numpy as np

from ldpopt.design.utilities.criteria import AOptimal, COptimal, Criterion, DOptimal, MVOptimal, differences
from ldpopt.distribution import Array
from ldpopt.errors import invalid


@dataclass(frozen=True, eq=False)
class Posed:
    """A criterion in cvxpy: an expression to minimise and its constraints.

    factor : the slope of the criterion over that of the expression. kernel : a function that, after solving, gives K
    (r, k) from the dual values, for which |K column|^2 is the slope of the criterion.
    """

    expression: Any
    constraints: list[Any]
    factor: float
    kernel: Callable[[], Array]


@singledispatch
def pose(criterion: Criterion, columns: Array, mass: Any) -> Posed:
    """The criterion of the cvxpy variable w = `mass` (n,), for the centred columns u = `columns` (n, k).

    A criterion of your own is registered with ``@pose.register``.
    """
    raise invalid("criterion", "AOptimal, COptimal, MVOptimal or DOptimal", type(criterion).__name__)


@pose.register
def _contrast(criterion: COptimal, columns: Array, mass: Any) -> Posed:
    """min of sum f_y^2 / w_y over influences f_y / w_y with sum f_y u_y = a: the information need not have full rank.

    There is one cone of three numbers for each column; K is half the multiplier of the contrast.
    """
    t = differences(columns.shape[1])
    left, right = cp.Variable(len(columns)), cp.Variable(len(columns))
    aim = t.T @ criterion.contrast
    unit = float(np.linalg.norm(aim))
    tie = (columns @ t).T @ left == aim / unit
    cones = cp.SOC(mass + right, cp.vstack([2 * left, mass - right]))

    def kernel() -> Array:
        found = t @ np.asarray(tie.dual_value)
        return np.asarray(found[None] * (unit / 2 * np.sign(found @ criterion.contrast)))

    return Posed(cp.sum(right), [tie, cones], unit**2, kernel)


@pose.register
def _linear(criterion: AOptimal, columns: Array, mass: Any) -> Posed:
    """min of tr(F_r^T X^-1 F_r), F_r = T^T F, as tr Y with [[Y, F_r^T], [F_r, X]] positive semidefinite."""
    information, tie, t = _information(columns, mass)
    left, size, right = np.linalg.svd(t.T @ criterion.factor(columns.shape[1]), full_matrices=False)
    seen = size > 1e-12 * size.max()  # tr(W C) depends on F F^T alone
    unit = float(np.linalg.norm(size))
    target = (left * size)[:, seen] / unit
    r = target.shape[1]
    y = cp.Variable((r, r), symmetric=True)
    cone = cp.bmat([[y, target.T], [target, information]]) >> 0

    def kernel() -> Array:
        return np.asarray(unit * right[seen].T @ np.asarray(cone.dual_value)[:r, r:] @ t.T)

    return Posed(cp.trace(y), [tie, cone], unit**2, kernel)


@pose.register
def _largest(criterion: MVOptimal, columns: Array, mass: Any) -> Posed:
    """min of max diag Y with [[Y, T], [T^T, X]] positive semidefinite, so that Y is above T X^-1 T^T."""
    information, tie, t = _information(columns, mass)
    k = columns.shape[1]
    y = cp.Variable((k, k), symmetric=True)
    cone = cp.bmat([[y, t], [t.T, information]]) >> 0

    def kernel() -> Array:
        dual = np.asarray(cone.dual_value)
        weights = np.maximum(np.diag(dual)[:k], 0.0)
        root = np.sqrt(np.where(weights > 1e-9 * weights.max(), weights, np.inf))
        made = dual[:k, k:] / root[:, None] @ t.T
        return np.asarray(made * np.sign(np.trace(made)))

    return Posed(cp.max(cp.diag(y)), [tie, cone], 1.0, kernel)


@pose.register
def _determinant(criterion: DOptimal, columns: Array, mass: Any) -> Posed:
    """min of -log det X."""
    information, tie, t = _information(columns, mass)

    def kernel() -> Array:
        dual = np.asarray(tie.dual_value)
        dual = (dual + dual.T) / 2 * np.sign(np.trace(dual))
        values, vectors = np.linalg.eigh(dual)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 1e-300))).T @ t.T)

    return Posed(-cp.log_det(information), [tie], 1.0, kernel)


def _information(columns: Array, mass: Any) -> tuple[Any, Any, Array]:
    """A cvxpy variable X, its tie to sum_y w_y (T^T u_y)(T^T u_y)^T, and T."""
    t = differences(columns.shape[1])
    reduced = columns @ t
    information = cp.Variable((t.shape[1], t.shape[1]), symmetric=True)
    return information, information == reduced.T @ cp.diag(mass) @ reduced, t
