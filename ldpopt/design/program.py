"""The ratio-labelled program: the best channel with one output a label and a linear utility on each.

    max  sum_i c_i . Q[:, i]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  the terms (z, nu)  and the users' own constraints.

Linear for hockey-stick terms; moment terms enter as second-order, power or exponential cones. The dual values come
back in the form that `terms` proves bounds with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve
from ldpopt.design.terms import Box, HockeyStick, Index, Moment, Term
from ldpopt.distribution import Array

SMALL = 4000
"""Up to this many slack variables the simplex method is the faster one."""

Expression = Callable[[Any], Sequence[Any]]
"""From the cvxpy variable Q (k, n) to cvxpy constraints on it."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A solved program: the matrix (k, n), its objective, the row multipliers (k,) and one multiplier a term."""

    matrix: Array
    value: float
    rows: Array
    multipliers: tuple[Array, ...]


def label_program(gains: Array, terms: Sequence[Term | Box], expressions: Sequence[Expression] = ()) -> Solved:
    """Solve for `gains` (n, k), the linear utility of each label; see the module for the program."""
    import cvxpy as cp

    n, k = gains.shape
    q = cp.Variable((k, n), nonneg=True)
    row = cp.sum(q, axis=1) == np.ones(k)
    constraints: list[Any] = [row]
    posed = []
    for term in terms:
        made = _pose(cp, q, term)
        posed.append(made)
        constraints += made
    for expression in expressions:
        constraints += list(expression(q))
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(gains.T, q))), constraints)
    slack = sum(len(term) for term in terms) * n
    cones = bool(expressions) or any(isinstance(term, Moment) for term in terms)
    solve(problem, "label program", CONIC if cones else INTERIOR if slack > SMALL else SIMPLEX)
    multipliers = tuple(_multiplier(term, made) for term, made in zip(terms, posed, strict=True))
    return Solved(np.asarray(q.value), float(problem.value), np.asarray(row.dual_value), multipliers)


def term_expressions(terms: Sequence[Term | Box], q: Any) -> list[Any]:
    """The terms as cvxpy constraints on the matrix variable `q` (k, m)."""
    import cvxpy as cp

    return [constraint for term in terms for constraint in _pose(cp, q, term)]


def _pose(cp: Any, q: Any, term: Term | Box) -> list[Any]:
    k, n = q.shape
    if isinstance(term, Box):
        floor = np.ones((k, 1)) @ cp.Variable((1, n), nonneg=True)
        return [q >= floor, q <= term.ratio * floor]
    if len(term) == 0:
        return []
    if isinstance(term, HockeyStick):
        above = _pick(term.left, np.ones(len(term)), k) @ q - _pick(term.right, term.factor, k) @ q
        if not term.cap.any():
            return [above <= 0]
        slack = cp.Variable((len(term), n), nonneg=True)
        return [slack >= above, cp.sum(slack, axis=1) <= term.cap]
    assert isinstance(term, Moment)
    a, b = (_pick(at, np.ones(len(term)), k) @ q for at in (term.left, term.right))
    slack = cp.Variable((len(term), n))
    caps = cp.sum(slack, axis=1) <= np.full(len(term), term.cap)
    order = term.order
    if order == 1:
        # a log(a/b) <= slack + a - b
        return [cp.constraints.ExpCone(-slack - a + b, a, b), caps]
    if order == 2:
        # (a - b)^2 <= slack b: the same set as a second-order cone, which solvers know best.
        bottom, side = cp.vec(slack + b, order="F"), cp.vec(2 * (a - b), order="F")
        return [cp.SOC(bottom, cp.vstack([side, cp.vec(slack - b, order="F")]), axis=0), caps]
    return [cp.constraints.PowCone3D(slack + order * a - (order - 1) * b, b, a, 1 / order), caps]


def _pick(at: Index, weight: Array, k: int) -> Any:
    import scipy.sparse as sparse

    return sparse.csr_array((weight, (np.arange(len(at)), at)), shape=(len(at), k))


def _multiplier(term: Term | Box, made: list[Any]) -> Array:
    if isinstance(term, Box) or len(term) == 0:
        return np.zeros((0, 0))
    if isinstance(term, Moment):
        return _cone_multiplier(term, made[0])
    return np.maximum(np.asarray(made[0].dual_value), 0.0).T


def _cone_multiplier(term: Moment, cone: Any) -> Array:
    """The tangent plane of each cone's dual point: its weight, and the ratio that gives its coefficient of a.

    The plane's coefficient of b is then on the safe side, because the dual point lies in the dual cone.
    """
    parts = [np.asarray(value) for value in cone.dual_value]
    tiny = 1e-300
    if term.order == 2:
        side, last = parts[1].reshape(2, -1) if parts[1].shape[0] == 2 else parts[1].T
        weight = np.maximum(parts[0].ravel() + last, tiny)
        ratio = 1 - side / weight
    elif term.order == 1:
        first, second, _ = (part.ravel(order="F") for part in parts)
        weight = np.maximum(-first, tiny)
        ratio = np.exp(np.clip((first - second) / weight, -20.0, 20.0))
    else:
        first, _, third = (part.ravel(order="F") for part in parts)
        weight = np.maximum(first, tiny)
        ratio = np.maximum(-third / weight / term.order, tiny) ** (1 / (term.order - 1))
    label, pair = np.divmod(np.arange(len(weight)), len(term))
    return np.stack([pair, label, np.clip(ratio, 1e-9, 1e9), weight])
