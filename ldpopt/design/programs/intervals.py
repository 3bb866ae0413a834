"""The ratio-labelled program for hockey sticks on many intervals of ratios, of which only few are posed.

Given the multipliers of the rows, lambda, and of the pairs, nu, the intervals can be looked at one by one. An interval
with the linear utility c gains at most

    min over 0 <= z <= nu of  sum_x ((c - lambda - u(z))_x)_+ ,      u(z) the support of the terms at z,

a small linear program for its own flow z. Beside pure LDP of ratio E the sum is that of h + (E - 1) h_+. An interval
that gains joins the program; for one that does not, the flow is its part of the certificate. In the posed intervals,
the excess of a pair is posed only where it is positive. That is a relaxation, whose multipliers hold for the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.constraints.hockey_stick import HockeyStick
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.programs.labels import Solved
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.distribution import Array, Index
from ldpopt.errors import SolverError

LEAST = 1e-10
"""Gains below this, in units of the optimum, are within the solver's accuracy."""


VIOLATED = 1e-9
"""How far a cap may be exceeded before more of its excess is posed."""


ROUNDS = 200


Cells = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Memory:
    """The posed part of a solved program: posteriors (m,), and for each term the cells (m, pairs) posed there.

    A cell is the excess of one pair in one interval.
    """

    posteriors: Array
    cells: tuple[Cells, ...]


def interval_program(
    gains: Array, terms: Sequence[Term | Ratio], knots: Array, memory: Memory | None, deadline: Deadline = UNLIMITED
) -> tuple[Solved, Memory]:
    """`label_program(gains, terms)` for ratios and hockey sticks, begun where a program on other intervals ended.

    gains : (n, k), in units of the optimum. The matrix (k, n) is an optimal vertex, zero outside the posed intervals.
    When the time is over it is the best of the intervals that are posed by then, within all constraints.
    """
    n, k = gains.shape
    sizes = [0 if isinstance(term, Ratio) else len(term) for term in terms]
    cells = [np.zeros((n, size), dtype=bool) for size in sizes]
    if memory is None:
        posed = np.unique(np.linspace(0, n - 1, 12).astype(np.intp))
    else:
        at = np.clip(np.searchsorted(knots, memory.posteriors) - 1, 0, n - 1)
        posed = np.unique(at)
        for mine, old in zip(cells, memory.cells, strict=True):
            np.logical_or.at(mine, at, old)
    for _ in range(ROUNDS):
        q, value, rows, prices = _solved(gains[posed], terms, [mine[posed] for mine in cells])
        grown = False
        for mine, term in zip(cells, terms, strict=True):
            if isinstance(term, HockeyStick) and len(term):
                above = q[term.left] - term.factor[:, None] * q[term.right]
                over = np.maximum(above, 0.0).sum(axis=1) - term.cap > VIOLATED
                new = (over[:, None] & (above > 0)).T & ~mine[posed]
                mine[posed] |= new
                grown = grown or bool(new.any())
        if grown:
            continue
        others = np.setdiff1d(np.arange(n), posed)
        kept, flows = _priced(gains[others] - rows, terms, prices)
        joining = _peaks(kept, others)
        if not len(joining) or deadline.over():
            break
        for mine, flow in zip(cells, flows, strict=True):
            mine[others[joining]] = flow[joining] > 0
        posed = np.union1d(posed, others[joining])
    else:
        raise SolverError(f"program of intervals: not settled after {ROUNDS} programs; pass another method")
    matrix = np.zeros((k, n))
    matrix[:, posed] = q
    multipliers = []
    for z, flow in zip(prices, flows, strict=True):
        whole = np.zeros((n, flow.shape[1]))
        whole[posed], whole[others] = z, flow
        multipliers.append(whole)
    used = posed[q.max(axis=0) > 1e-6]
    middle = (knots[used] + knots[used + 1]) / 2
    return Solved(matrix, value, rows, tuple(multipliers), np.ones(1)), Memory(middle, tuple(c[used] for c in cells))


def _solved(
    gains: Array, terms: Sequence[Term | Ratio], cells: Sequence[Cells]
) -> tuple[Array, float, Array, list[Array]]:
    """The matrix (k, n), its value, the row multipliers, and for each term the prices (n, pairs) of posed cells."""
    import cvxpy as cp
    import scipy.sparse as sparse

    n, k = gains.shape
    q = cp.Variable((k, n), nonneg=True)
    flat = cp.vec(q, order="F")
    row = cp.sum(q, axis=1) == np.ones(k)
    constraints: list[Any] = [row]
    posed: list[tuple[int, Index, Index, Any]] = []
    for number, (term, mine) in enumerate(zip(terms, cells, strict=True)):
        if isinstance(term, Ratio):
            floor = np.ones((k, 1)) @ cp.Variable((1, n), nonneg=True)
            constraints += [q >= floor, q <= term.ratio * floor]
            continue
        assert isinstance(term, HockeyStick)
        label, pair = np.nonzero(mine)
        if not len(label):
            continue
        at, ones = np.arange(len(label)), np.ones(len(label))
        left = sparse.csr_array((ones, (at, term.left[pair] + k * label)), shape=(len(at), k * n))
        right = sparse.csr_array((term.factor[pair], (at, term.right[pair] + k * label)), shape=(len(at), k * n))
        capped, which = np.unique(pair, return_inverse=True)
        slack = cp.Variable(len(at), nonneg=True)
        made = slack >= (left - right) @ flat
        constraints += [made, sparse.csr_array((ones, (which, at))) @ slack <= term.cap[capped]]
        posed.append((number, label, pair, made))
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(gains.T, q))), constraints)
    solve(problem, "program of intervals", SIMPLEX)
    prices = [np.zeros(mine.shape) for mine in cells]
    for number, label, pair, made in posed:
        prices[number][label, pair] = np.maximum(np.asarray(made.dual_value), 0.0)
    return np.maximum(np.asarray(q.value), 0.0), float(problem.value), np.array(row.dual_value), prices


def _peaks(kept: Array, others: Index) -> Index:
    """The positions in `kept` of gains larger than at either neighbouring interval."""
    if not len(kept):
        return np.zeros(0, dtype=np.intp)
    beside = np.diff(others) == 1
    left = np.concatenate([[-np.inf], np.where(beside, kept[:-1], -np.inf)])
    right = np.concatenate([np.where(beside, kept[1:], -np.inf), [-np.inf]])
    return np.flatnonzero((kept > LEAST) & (kept >= left) & (kept >= right))


def _priced(profits: Array, terms: Sequence[Term | Ratio], prices: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The gains (n,) of the intervals with `profits` (n, k), and for each term their flows (n, pairs).

    A pair's flow is at most nu, the largest of its `prices`; it is unlimited where the cap is 0, as nu then costs
    nothing.
    """
    import cvxpy as cp
    import scipy.sparse as sparse

    n, k = profits.shape
    ratio = min((term.ratio for term in terms if isinstance(term, Ratio)), default=math.inf)
    flows = [np.zeros((n, 0 if isinstance(term, Ratio) else len(term))) for term in terms]
    limits = [
        np.where(t.cap > 0, z.max(axis=0), np.inf) if isinstance(t, HockeyStick) else np.zeros(0)
        for t, z in zip(terms, prices, strict=True)
    ]
    sticks = [(i, t, np.flatnonzero(limits[i] > 0)) for i, t in enumerate(terms) if isinstance(t, HockeyStick)]
    sticks = [one for one in sticks if len(one[2])]
    if n and sticks:
        parts: list[Any] = []
        for _, term, pairs in sticks:
            left, right, at = term.left[pairs], term.right[pairs], np.arange(len(pairs))
            sign = np.concatenate([np.ones(len(pairs)), -term.factor[pairs]])
            parts.append(sparse.csr_array((sign, (np.concatenate([left, right]), np.tile(at, 2))), shape=(k, len(at))))
        support = sparse.hstack(parts)
        limit = np.concatenate([limits[i][pairs] for i, _, pairs in sticks])
        z, above = cp.Variable((support.shape[1], n), nonneg=True), cp.Variable((k, n), nonneg=True)
        paid = support @ z
        objective = cp.sum(above)
        if math.isfinite(ratio):
            objective = (ratio - 1) * objective - cp.sum(paid)
        capped = np.flatnonzero(np.isfinite(limit))
        within = [z[capped] <= limit[capped, None]] if len(capped) else []
        problem = cp.Problem(cp.Minimize(objective), [above + paid >= profits.T, *within])
        solve(problem, "pricing of intervals", SIMPLEX)
        found, start = np.clip(np.asarray(z.value), 0.0, limit[:, None]), 0
        profits = profits - (support @ found).T
        for i, _, pairs in sticks:
            flows[i][:, pairs] = found[start : start + len(pairs)].T
            start += len(pairs)
    above_zero = np.maximum(profits, 0.0).sum(axis=1)
    return (above_zero if math.isinf(ratio) else profits.sum(axis=1) + (ratio - 1) * above_zero), flows
