"""The ratio-labeled program for hockey sticks on many intervals of ratios; only a few of them are active.

Given the multipliers of the rows, lambda, and of the pairs, nu, the intervals can be priced one by one. An interval
with the linear utility c gains at most

    min over 0 <= z <= nu of  sum_x ((c - lambda - u(z))_x)_+ ,      u(z) the support of the terms at z,

a small linear program for its flow z. With pure LDP of ratio E the sum is that of h + (E - 1) h_+. An interval that
gains is added to the program; for one that does not, the flow is its part of the certificate. In the active intervals,
the excess of a pair enters the program only if it is positive. That is a relaxation, whose multipliers are valid for
all intervals.

`close_dual_constraints` corrects multipliers of hockey sticks to the last digit. A solver leaves dual constraints
violated by its tolerance. That is a large violation for large multipliers: under a small epsilon or eta they are
1/epsilon or 1/eta times the bound that they prove. The violation at one input is moved along pairs of inputs to inputs
with slack. Per unit, that costs e^epsilon - 1 along the edge of a policy graph, and the cap along a pair that has one.
It matters most if the time is over before all intervals that gain are active.
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
from ldpopt.design.ratios.program import LabelSolution
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.errors import SolverError
from ldpopt.numbers.tolerances import CAP_EXCESS_RTOL, INTERVAL_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

MAX_PROGRAMS = 200


Cells = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ActiveIntervals:
    """The active part of a solved program: posteriors (m,), and for each term the active cells (m, pairs).

    A cell is the excess of one pair in one interval.
    """

    posteriors: Array
    cells: tuple[Cells, ...]


def interval_program(
    gains: Array, terms: Sequence[Term], knots: Array, memory: ActiveIntervals | None, deadline: Deadline = UNLIMITED
) -> tuple[LabelSolution, ActiveIntervals]:
    """Solve `label_program(gains, terms)` for ratios and hockey sticks, starting from a program on other intervals.

    gains : (n, k), in units of the optimum. The matrix (k, n) is an optimal vertex, zero outside the active intervals.
    When the time is over it is the best of the intervals that are active by then, within all constraints.
    """
    n, k = gains.shape
    cells = [np.zeros((n, len(term)), dtype=bool) for term in terms]
    sticks = [(cells[number], term) for number, term in ByKind(terms).sticks]
    if memory is None:
        active_intervals = np.unique(np.linspace(0, n - 1, 12).astype(np.intp))
    else:
        nearest = np.clip(np.searchsorted(knots, memory.posteriors) - 1, 0, n - 1)
        active_intervals = np.unique(nearest)
        for term_cells, old_cells in zip(cells, memory.cells, strict=True):
            np.logical_or.at(term_cells, nearest, old_cells)
    for _ in range(MAX_PROGRAMS):
        q, value, rows, prices = _solve_active(
            gains[active_intervals], terms, [term_cells[active_intervals] for term_cells in cells]
        )
        has_grown = False
        for term_cells, term in sticks:
            excess = q[term.left] - term.factor[:, None] * q[term.right]
            is_violated = np.maximum(excess, 0.0).sum(axis=1) - term.cap > CAP_EXCESS_RTOL
            new = (is_violated[:, None] & (excess > 0)).T & ~term_cells[active_intervals]
            term_cells[active_intervals] |= new
            has_grown = has_grown or bool(new.any())
        if has_grown:
            continue
        others = np.setdiff1d(np.arange(n), active_intervals)
        interval_gains, flows = _price_intervals(gains[others] - rows, terms, prices)
        new_intervals = _peaks(interval_gains, others)
        if not len(new_intervals) or deadline.over():
            break
        for term_cells, flow in zip(cells, flows, strict=True):
            term_cells[others[new_intervals]] = flow[new_intervals] > 0
        active_intervals = np.union1d(active_intervals, others[new_intervals])
    else:
        raise SolverError(f"program of intervals: not settled after {MAX_PROGRAMS} programs; pass another method")
    matrix = np.zeros((k, n))
    matrix[:, active_intervals] = q
    multipliers = []
    for z, flow in zip(prices, flows, strict=True):
        all_flows = np.zeros((n, flow.shape[1]))
        all_flows[active_intervals], all_flows[others] = z, flow
        multipliers.append(all_flows)
    used_intervals = active_intervals[q.max(axis=0) > 1e-6]
    middle = (knots[used_intervals] + knots[used_intervals + 1]) / 2
    return LabelSolution(matrix, value, rows, tuple(multipliers), np.ones(1)), ActiveIntervals(
        middle, tuple(c[used_intervals] for c in cells)
    )


def _solve_active(
    gains: Array, terms: Sequence[Term], cells: Sequence[Cells]
) -> tuple[Array, float, Array, list[Array]]:
    """Return the matrix (k, n), its value, the row multipliers, and the prices (n, pairs) of active cells per term."""
    import cvxpy as cp
    import scipy.sparse as sparse

    n, k = gains.shape
    q = cp.Variable((k, n), nonneg=True)
    flat = cp.vec(q, order="F")
    row = cp.sum(q, axis=1) == np.ones(k)
    constraints: list[Any] = [row]
    stick_constraints: list[tuple[int, Index, Index, Any]] = []
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
        capped_pairs, cap_of_cell = np.unique(pair, return_inverse=True)
        slack = cp.Variable(len(cell), nonneg=True)
        excess_constraint = slack >= (left - right) @ flat
        constraints += [
            excess_constraint,
            sparse.csr_array((ones, (cap_of_cell, cell))) @ slack <= term.cap[capped_pairs],
        ]
        stick_constraints.append((number, label, pair, excess_constraint))
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(gains.T, q))), constraints)
    solve(problem, "program of intervals", SIMPLEX)
    prices = [np.zeros(term_cells.shape) for term_cells in cells]
    for number, label, pair, excess_constraint in stick_constraints:
        prices[number][label, pair] = np.maximum(np.asarray(excess_constraint.dual_value), 0.0)
    return np.maximum(np.asarray(q.value), 0.0), float(problem.value), np.array(row.dual_value), prices


def _peaks(gains: Array, others: Index) -> Index:
    """Return the positions of gains larger than at either neighboring interval."""
    if not len(gains):
        return np.zeros(0, dtype=np.intp)
    is_adjacent = np.diff(others) == 1
    left = np.concatenate([[-np.inf], np.where(is_adjacent, gains[:-1], -np.inf)])
    right = np.concatenate([np.where(is_adjacent, gains[1:], -np.inf), [-np.inf]])
    return np.flatnonzero((gains > INTERVAL_GAIN) & (gains >= left) & (gains >= right))


def _price_intervals(profits: Array, terms: Sequence[Term], prices: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Return the gains (n,) of the intervals with `profits` (n, k), and for each term their flows (n, pairs).

    A pair's flow is at most nu, the largest of its `prices`; it is unlimited if the cap is 0, since nu then costs
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
        z, positive_profits = cp.Variable((support.shape[1], n), nonneg=True), cp.Variable((k, n), nonneg=True)
        costs = support @ z
        objective = cp.sum(positive_profits)
        if math.isfinite(ratio):
            objective = (ratio - 1) * objective - cp.sum(costs)
        capped_indices = np.flatnonzero(np.isfinite(limit))
        upper_limits = [z[capped_indices] <= limit[capped_indices, None]] if len(capped_indices) else []
        problem = cp.Problem(cp.Minimize(objective), [positive_profits + costs >= profits.T, *upper_limits])
        solve(problem, "pricing of intervals", SIMPLEX)
        flow_values, start = np.clip(np.asarray(z.value), 0.0, limit[:, None]), 0
        profits = profits - (support @ flow_values).T
        for i, _, pairs in sticks:
            flows[i][:, pairs] = flow_values[start : start + len(pairs)].T
            start += len(pairs)
    above_zero = np.maximum(profits, 0.0).sum(axis=1)
    return (above_zero if math.isinf(ratio) else profits.sum(axis=1) + (ratio - 1) * above_zero), flows


MAX_EDGE_FACTOR = 1e8  # Pairs with larger factors are not corrected


@dataclass(frozen=True)
class FlowEdge:
    """A pair of a term as an arc for flow.

    Raising its multiplier by `sign` takes 1 from one input, and gives `factor` to the other. cost : the increase of the
    bound per unit of flow.
    """

    term: int
    pair: int
    sign: float
    factor: float
    cost: float


Edges = dict[tuple[int, int], FlowEdge]


def close_dual_constraints(
    profits: Array, rows: Array, terms: Sequence[Term], multipliers: Sequence[Array]
) -> tuple[Array, list[Array]]:
    """Update `rows` (k,) and `multipliers` so that no profit is above 0.

    profits : (n, k), with the rows subtracted. The flows of a solver may be so large, as along cycles, that rounding
    drowns their effect; new flows replace them there. If one term states a pair for both orders, the rows compensate a
    multiplier below 0.
    """
    edges = _edges(terms)
    order, parent = _spanning_trees(edges, profits.shape[1])
    capped_multipliers = [np.where(term.cap > 0, values, 0.0) for term, values in zip(terms, multipliers, strict=True)]
    attempts = [list(multipliers)]
    attempts += [
        _move_violations(_reduced_profits(profits, terms, attempt), edges, order, parent, attempt)
        for attempt in (multipliers, capped_multipliers)
    ]
    best = np.array([_correction_cost(profits, terms, multipliers, attempt) for attempt in attempts]).argmin(axis=0)
    rows, corrected_multipliers = rows.copy(), list(multipliers)
    for number, term in _sticks(terms):
        values = np.stack([attempt[number] for attempt in attempts])[best, np.arange(len(best))]
        deficit = np.maximum(-values.min(axis=0), 0.0)
        corrected_multipliers[number] = np.maximum(values + deficit, 0.0)
        np.add.at(rows, term.left, -deficit)
        np.add.at(rows, term.right, deficit * term.factor)
    return rows, corrected_multipliers


def _sticks(terms: Sequence[Term]) -> list[tuple[int, Any]]:
    """Return the hockey sticks that have pairs, with their positions."""
    return [(number, term) for number, term in ByKind(terms).sticks if len(term)]


def _correction_cost(
    profits: Array, terms: Sequence[Term], original: Sequence[Array], corrected_multipliers: Sequence[Array]
) -> Array:
    """Return the remaining violation of each label, (n,), plus the increase of the cost of its multipliers."""
    cost = np.maximum(_reduced_profits(profits, terms, corrected_multipliers), 0.0).sum(axis=1)
    for number, term in _sticks(terms):
        extra = np.maximum(corrected_multipliers[number] - original[number].max(axis=0), 0.0) + np.maximum(
            -corrected_multipliers[number], 0.0
        )
        cost = cost + extra @ term.caps
    return np.asarray(cost)


def _reduced_profits(profits: Array, terms: Sequence[Term], multipliers: Sequence[Array]) -> Array:
    """Return the profits less the supports of the multipliers, (n, k)."""
    for term, values in zip(terms, multipliers, strict=True):
        if len(term):
            profits = profits - term.support(values, *profits.shape)
    return profits


def _move_violations(
    reduced_gains: Array, edges: Edges, order: Sequence[int], parent: Sequence[int], multipliers: Sequence[Array]
) -> list[Array]:
    """Return the multipliers after violations are moved up the trees, and down again to inputs with slack."""
    new_multipliers = [np.array(values) for values in multipliers]
    violations, room = np.maximum(reduced_gains, 0.0), np.maximum(-reduced_gains, 0.0)

    def move(source: int, target: int, amount: Array) -> None:
        edge = edges[source, target]
        new_multipliers[edge.term][:, edge.pair] += edge.sign * amount
        violations[:, source] -= amount
        violations[:, target] += amount * edge.factor

    def absorb(x: int) -> None:
        absorbed_violations = np.minimum(violations[:, x], room[:, x])
        violations[:, x] -= absorbed_violations
        room[:, x] -= absorbed_violations

    for x in reversed(order):
        absorb(x)
        if parent[x] >= 0:
            move(x, parent[x], violations[:, x].copy())
    room_below = room.copy()
    for x in reversed(order):
        if parent[x] >= 0:
            room_below[:, parent[x]] += room_below[:, x]
    for x in order:
        absorb(x)
        for child in (y for y in order if parent[y] == x):
            move(x, child, np.minimum(violations[:, x], room_below[:, child]))
    return new_multipliers


def _edges(terms: Sequence[Term]) -> Edges:
    """Return the cheapest arc between every two inputs, if there is one in both directions."""
    cheapest: Edges = {}
    for number, term in _sticks(terms):
        for pair, factor in enumerate(term.factor.tolist()):
            if factor > MAX_EDGE_FACTOR:
                continue
            a, b, cost = int(term.left[pair]), int(term.right[pair]), factor - 1 + float(term.caps[pair])
            directions = [((a, b), 1.0), ((b, a), -1.0)] if factor == 1 else [((a, b), 1.0)]
            for direction, sign in directions:
                if direction not in cheapest or cost < cheapest[direction].cost:
                    cheapest[direction] = FlowEdge(number, pair, sign, factor, cost)
    return {direction: edge for direction, edge in cheapest.items() if direction[::-1] in cheapest}


def _spanning_trees(edges: Edges, inputs: int) -> tuple[list[int], list[int]]:
    """Return the inputs in the order of cheapest spanning trees [Prim], and their parents, -1 for a root.

    Parents come first.
    """
    neighbors: list[list[tuple[float, int]]] = [[] for _ in range(inputs)]
    for (a, b), edge in edges.items():
        neighbors[a].append((edge.cost, b))
    order: list[int] = []
    parent = [-1] * inputs
    is_visited = [False] * inputs
    for root in range(inputs):
        heap = [(0.0, root, -1)]
        while heap:
            _, x, predecessor = heapq.heappop(heap)
            if is_visited[x]:
                continue
            is_visited[x], parent[x] = True, predecessor
            order.append(x)
            for cost, y in neighbors[x]:
                if not is_visited[y]:
                    heapq.heappush(heap, (cost, y, x))
    return order, parent
