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
from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.programs.labels import Solved
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.distribution import Array, Index
from ldpopt.errors import SolverError
from ldpopt.tolerances import INTERVAL_GAIN, VIOLATED

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
    gains: Array, terms: Sequence[Term], knots: Array, memory: Memory | None, deadline: Deadline = UNLIMITED
) -> tuple[Solved, Memory]:
    """`label_program(gains, terms)` for ratios and hockey sticks, begun where a program on other intervals ended.

    gains : (n, k), in units of the optimum. The matrix (k, n) is an optimal vertex, zero outside the posed intervals.
    When the time is over it is the best of the intervals that are posed by then, within all constraints.
    """
    n, k = gains.shape
    cells = [np.zeros((n, len(term)), dtype=bool) for term in terms]
    sticks = [(cells[number], term) for number, term in ByKind(terms).sticks]
    if memory is None:
        posed = np.unique(np.linspace(0, n - 1, 12).astype(np.intp))
    else:
        nearest = np.clip(np.searchsorted(knots, memory.posteriors) - 1, 0, n - 1)
        posed = np.unique(nearest)
        for mine, old in zip(cells, memory.cells, strict=True):
            np.logical_or.at(mine, nearest, old)
    for _ in range(ROUNDS):
        q, value, rows, prices = _solved(gains[posed], terms, [mine[posed] for mine in cells])
        grown = False
        for mine, term in sticks:
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


def _solved(gains: Array, terms: Sequence[Term], cells: Sequence[Cells]) -> tuple[Array, float, Array, list[Array]]:
    """The matrix (k, n), its value, the row multipliers, and for each term the prices (n, pairs) of posed cells."""
    import cvxpy as cp
    import scipy.sparse as sparse

    n, k = gains.shape
    q = cp.Variable((k, n), nonneg=True)
    flat = cp.vec(q, order="F")
    row = cp.sum(q, axis=1) == np.ones(k)
    constraints: list[Any] = [row]
    posed: list[tuple[int, Index, Index, Any]] = []
    kinds = ByKind(terms)
    if math.isfinite(kinds.ratio):
        floor = np.ones((k, 1)) @ cp.Variable((1, n), nonneg=True)
        constraints += [q >= floor, q <= kinds.ratio * floor]
    for number, term in kinds.sticks:
        label, pair = np.nonzero(cells[number])
        if not len(label):
            continue
        cell, ones = np.arange(len(label)), np.ones(len(label))
        left = sparse.csr_array((ones, (cell, term.left[pair] + k * label)), shape=(len(cell), k * n))
        right = sparse.csr_array((term.factor[pair], (cell, term.right[pair] + k * label)), shape=(len(cell), k * n))
        capped, which = np.unique(pair, return_inverse=True)
        slack = cp.Variable(len(cell), nonneg=True)
        above = slack >= (left - right) @ flat
        constraints += [above, sparse.csr_array((ones, (which, cell))) @ slack <= term.cap[capped]]
        posed.append((number, label, pair, above))
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(gains.T, q))), constraints)
    solve(problem, "program of intervals", SIMPLEX)
    prices = [np.zeros(mine.shape) for mine in cells]
    for number, label, pair, above in posed:
        prices[number][label, pair] = np.maximum(np.asarray(above.dual_value), 0.0)
    return np.maximum(np.asarray(q.value), 0.0), float(problem.value), np.array(row.dual_value), prices


def _peaks(kept: Array, others: Index) -> Index:
    """The positions in `kept` of gains larger than at either neighbouring interval."""
    if not len(kept):
        return np.zeros(0, dtype=np.intp)
    beside = np.diff(others) == 1
    left = np.concatenate([[-np.inf], np.where(beside, kept[:-1], -np.inf)])
    right = np.concatenate([np.where(beside, kept[1:], -np.inf), [-np.inf]])
    return np.flatnonzero((kept > INTERVAL_GAIN) & (kept >= left) & (kept >= right))


def _priced(profits: Array, terms: Sequence[Term], prices: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The gains (n,) of the intervals with `profits` (n, k), and for each term their flows (n, pairs).

    A pair's flow is at most nu, the largest of its `prices`; it is unlimited where the cap is 0, as nu then costs
    nothing.
    """
    import cvxpy as cp
    import scipy.sparse as sparse

    n, k = profits.shape
    kinds = ByKind(terms)
    ratio = kinds.ratio
    flows = [np.zeros((n, len(term))) for term in terms]
    limits = {i: np.where(term.cap > 0, prices[i].max(axis=0), np.inf) for i, term in kinds.sticks}
    sticks = [(i, term, np.flatnonzero(limits[i] > 0)) for i, term in kinds.sticks]
    sticks = [stick for stick in sticks if len(stick[2])]
    if n and sticks:
        parts: list[Any] = []
        for _, term, pairs in sticks:
            left, right = term.left[pairs], term.right[pairs]
            sign = np.concatenate([np.ones(len(pairs)), -term.factor[pairs]])
            index = np.concatenate([left, right]), np.tile(np.arange(len(pairs)), 2)
            parts.append(sparse.csr_array((sign, index), shape=(k, len(pairs))))
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
        sent, start = np.clip(np.asarray(z.value), 0.0, limit[:, None]), 0
        profits = profits - (support @ sent).T
        for i, _, pairs in sticks:
            flows[i][:, pairs] = sent[start : start + len(pairs)].T
            start += len(pairs)
    above_zero = np.maximum(profits, 0.0).sum(axis=1)
    return (above_zero if math.isinf(ratio) else profits.sum(axis=1) + (ratio - 1) * above_zero), flows
