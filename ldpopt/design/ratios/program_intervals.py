"""The ratio-labelled program for hockey sticks on many intervals of ratios, of which only few are posed.

Given the multipliers of the rows, lambda, and of the pairs, nu, the intervals can be looked at one by one. An interval
with the linear utility c gains at most

    min over 0 <= z <= nu of  sum_x ((c - lambda - u(z))_x)_+ ,      u(z) the support of the terms at z,

a small linear program for its own flow z. Beside pure LDP of ratio E the sum is that of h + (E - 1) h_+. An interval
that gains joins the program; for one that does not, the flow is its part of the certificate. In the posed intervals,
the excess of a pair is posed only where it is positive. That is a relaxation, whose multipliers hold for the whole.

`closed` corrects multipliers of hockey sticks to the last digit. A solver leaves dual constraints violated by its
tolerance. That is much where multipliers are large: under a small epsilon or eta they are 1/epsilon or 1/eta times the
bound that they prove. The violation at one input is moved along pairs of inputs to inputs with room. Per unit, that
costs e^epsilon - 1 along the edge of a policy graph, and the cap along a pair that has one.
It matters most where the time is over before all intervals that gain have joined.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.ratios.program import Solved
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.errors import SolverError
from ldpopt.numbers.tolerances import INTERVAL_GAIN, VIOLATED
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

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


FARTHEST = 1e8  # Pairs with larger factors are left as the solver made them


@dataclass(frozen=True)
class Edge:
    """A pair of a term as an arc for flow: raising its multiplier by `sign` takes 1 from one input, and gives `factor`
    to the other. cost : what a unit of flow adds to the bound.
    """

    term: int
    pair: int
    sign: float
    factor: float
    cost: float


Edges = dict[tuple[int, int], Edge]


def closed(
    profits: Array, rows: Array, terms: Sequence[Term], multipliers: Sequence[Array]
) -> tuple[Array, list[Array]]:
    """`rows` (k,) and `multipliers` after which no profit is above 0; profits : (n, k), with the rows subtracted.

    A solver's flows may be so large, as along cycles, that rounding drowns their effect; new flows replace them there.
    Where one term states a pair for both orders, a multiplier below 0 is made up for by the rows.
    """
    edges = _edges(terms)
    order, parent = _tree(edges, profits.shape[1])
    fresh = [np.where(term.cap > 0, values, 0.0) for term, values in zip(terms, multipliers, strict=True)]
    tried = [list(multipliers)]
    tried += [_moved(_left(profits, terms, each), edges, order, parent, each) for each in (multipliers, fresh)]
    best = np.array([_cost(profits, terms, multipliers, each) for each in tried]).argmin(axis=0)
    rows, corrected = rows.copy(), list(multipliers)
    for number, term in _sticks(terms):
        values = np.stack([each[number] for each in tried])[best, np.arange(len(best))]
        below = np.maximum(-values.min(axis=0), 0.0)
        corrected[number] = np.maximum(values + below, 0.0)
        np.add.at(rows, term.left, -below)
        np.add.at(rows, term.right, below * term.factor)
    return rows, corrected


def _sticks(terms: Sequence[Term]) -> list[tuple[int, Any]]:
    """The hockey sticks that have pairs, with their positions."""
    return [(number, term) for number, term in ByKind(terms).sticks if len(term)]


def _cost(profits: Array, terms: Sequence[Term], solved: Sequence[Array], corrected: Sequence[Array]) -> Array:
    """(n,) the violation that each label has left, plus what its multipliers charge beyond those of the solver."""
    cost = np.maximum(_left(profits, terms, corrected), 0.0).sum(axis=1)
    for number, term in _sticks(terms):
        beyond = np.maximum(corrected[number] - solved[number].max(axis=0), 0.0) + np.maximum(-corrected[number], 0.0)
        cost = cost + beyond @ term.caps
    return np.asarray(cost)


def _left(profits: Array, terms: Sequence[Term], multipliers: Sequence[Array]) -> Array:
    """(n, k) the profits less the supports of the multipliers."""
    for term, values in zip(terms, multipliers, strict=True):
        if len(term):
            profits = profits - term.support(values, *profits.shape)
    return profits


def _moved(
    reduced: Array, edges: Edges, order: Sequence[int], parent: Sequence[int], multipliers: Sequence[Array]
) -> list[Array]:
    """The multipliers after violations are moved up the trees, and down again to inputs with room."""
    moved = [np.array(values) for values in multipliers]
    open_left, room = np.maximum(reduced, 0.0), np.maximum(-reduced, 0.0)

    def move(source: int, target: int, amount: Array) -> None:
        edge = edges[source, target]
        moved[edge.term][:, edge.pair] += edge.sign * amount
        open_left[:, source] -= amount
        open_left[:, target] += amount * edge.factor

    def settle(x: int) -> None:
        taken = np.minimum(open_left[:, x], room[:, x])
        open_left[:, x] -= taken
        room[:, x] -= taken

    for x in reversed(order):
        settle(x)
        if parent[x] >= 0:
            move(x, parent[x], open_left[:, x].copy())
    below = room.copy()
    for x in reversed(order):
        if parent[x] >= 0:
            below[:, parent[x]] += below[:, x]
    for x in order:
        settle(x)
        for child in (y for y in order if parent[y] == x):
            move(x, child, np.minimum(open_left[:, x], below[:, child]))
    return moved


def _edges(terms: Sequence[Term]) -> Edges:
    """The cheapest arc between every two inputs, where there is one in both directions."""
    cheapest: Edges = {}
    for number, term in _sticks(terms):
        for pair, factor in enumerate(term.factor.tolist()):
            if factor > FARTHEST:
                continue
            a, b, cost = int(term.left[pair]), int(term.right[pair]), factor - 1 + float(term.caps[pair])
            ways = [((a, b), 1.0), ((b, a), -1.0)] if factor == 1 else [((a, b), 1.0)]
            for way, sign in ways:
                if way not in cheapest or cost < cheapest[way].cost:
                    cheapest[way] = Edge(number, pair, sign, factor, cost)
    return {way: edge for way, edge in cheapest.items() if way[::-1] in cheapest}


def _tree(edges: Edges, inputs: int) -> tuple[list[int], list[int]]:
    """The inputs in the order of cheapest spanning trees [Prim], parents first, and their parents, -1 for a root."""
    near: list[list[tuple[float, int]]] = [[] for _ in range(inputs)]
    for (a, b), edge in edges.items():
        near[a].append((edge.cost, b))
    order: list[int] = []
    parent = [-1] * inputs
    seen = [False] * inputs
    for root in range(inputs):
        heap = [(0.0, root, -1)]
        while heap:
            _, x, before = heapq.heappop(heap)
            if seen[x]:
                continue
            seen[x], parent[x] = True, before
            order.append(x)
            for cost, y in near[x]:
                if not seen[y]:
                    heapq.heappush(heap, (cost, y, x))
    return order, parent
