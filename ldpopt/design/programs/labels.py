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

from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve
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
    weights: Array


def label_program(gains: Array, terms: Sequence[Term | Ratio], expressions: Sequence[Expression] = ()) -> Solved:
    """Solve for `gains` (n, k), the linear utility of each label; see the module for the program.

    Of several criteria, `gains` (criteria, n, k), the smallest utility is maximised; their `weights` are dual values.
    """
    import cvxpy as cp

    criteria = gains.reshape(-1, *gains.shape[-2:])
    n, k = gains.shape[-2:]
    q = cp.Variable((k, n), nonneg=True)
    row = cp.sum(q, axis=1) == np.ones(k)
    constraints: list[Any] = [row]
    posed = []
    for term in terms:
        made = term.pose(q)
        posed.append(made)
        constraints += made
    for expression in expressions:
        constraints += list(expression(q))
    values = [cp.sum(cp.multiply(each.T, q)) for each in criteria]
    least = cp.Variable() if len(values) > 1 else values[0]
    above = [value >= least for value in values] if len(values) > 1 else []
    problem = cp.Problem(cp.Maximize(least), [*constraints, *above])
    slack = sum(len(term) for term in terms) * n
    cones = bool(expressions) or any(term.conic for term in terms)
    solve(problem, "label program", CONIC if cones else INTERIOR if slack > SMALL else SIMPLEX)
    multipliers = tuple(term.multiplier(made) for term, made in zip(terms, posed, strict=True))
    rows = row_multipliers(np.array(row.dual_value), terms, posed)
    weights = np.array([max(float(one.dual_value), 0.0) for one in above] or [1.0])
    return Solved(np.asarray(q.value), float(problem.value), rows, multipliers, weights / weights.sum())


def row_multipliers(rows: Array, terms: Sequence[Term | Ratio], posed: Sequence[list[Any]]) -> Array:
    """The dual values of the row sums, with what moments posed on the power alone owe to them."""
    for term, made in zip(terms, posed, strict=True):
        term.on_rows(rows, made)
    return rows


def scaled(term: Term | Ratio, values: Array, scale: float) -> Array:
    """A multiplier times `scale`."""
    return term.scaled(values, scale)


def term_expressions(terms: Sequence[Term | Ratio], q: Any) -> list[Any]:
    """The terms as cvxpy constraints on the matrix variable `q` (k, m)."""
    return [constraint for term in terms for constraint in term.pose(q)]


def pose_term(cp: Any, q: Any, term: Term | Ratio) -> list[Any]:
    """One term as cvxpy constraints on the matrix variable `q`, in the order that `term_multiplier` reads."""
    return term.pose(q)


def term_multiplier(term: Term | Ratio, made: list[Any]) -> Array:
    """The multiplier of a solved term, as the term's own `support` takes it."""
    return term.multiplier(made)
