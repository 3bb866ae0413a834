"""The ratio-labelled program: the best channel with one output a label and a linear utility on each.

    max  sum_i c_i . Q[:, i]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  the terms (z, nu)  and the users' own constraints.

Linear for the hockey-stick terms, with power or exponential cones for the moments. The dual values come back in the
form that `terms` proves bounds with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
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
    conic = bool(expressions) or any(isinstance(term, Moment) for term in terms)
    solve(problem, "label program", INTERIOR if conic or slack > SMALL else SIMPLEX)
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
    return [cp.constraints.PowCone3D(slack + order * a - (order - 1) * b, b, a, 1 / order), caps]


def _pick(at: Index, weight: Array, k: int) -> Any:
    import scipy.sparse as sparse

    return sparse.csr_array((weight, (np.arange(len(at)), at)), shape=(len(at), k))


def _multiplier(term: Term | Box, made: list[Any]) -> Array:
    if isinstance(term, Box) or len(term) == 0:
        return np.zeros((0, 0))
    if isinstance(term, HockeyStick):
        return np.maximum(np.asarray(made[0].dual_value), 0.0).T
    assert isinstance(term, Moment)
    return _moment_multiplier(term, made)


def _moment_multiplier(term: Moment, made: list[Any]) -> Array:
    """(2, n, pairs): weight and ratio of the support that the dual cone's point stands for."""
    shape = tuple(made[0].args[0].shape)
    first, second, third = (np.asarray(value).reshape(shape, order="F") for value in made[0].dual_value)
    cap = np.maximum(np.asarray(made[1].dual_value), 0.0)[:, None]
    order = term.order
    tiny = 1e-300
    if order == 1:
        # slack >= a log t - (t-1) b ...: the dual point (-z, u, v) has v = z t.
        weight, ratio = np.maximum(-first, tiny), np.maximum(third, tiny) / np.maximum(-first, tiny)
    else:
        # The slack of z psi has (z, z (o-1) t^o, -z o t^(o-1)): the quotient of the last two gives t.
        ratio = np.maximum(second, tiny) / np.maximum(-third, tiny) * order / (order - 1)
        weight = np.maximum(-third, tiny) / (order * ratio ** (order - 1))
    # Where the dual point is noise, the cap's own multiplier is as good a weight.
    weight = np.minimum(weight, cap * (1 + 1e-7))
    ratio = np.clip(ratio, 1e-12, 1e12)
    return np.stack([weight.T, ratio.T])
