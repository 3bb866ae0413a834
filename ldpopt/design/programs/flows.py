"""Multipliers of hockey-stick terms, corrected to the last digit.

A solver leaves dual constraints violated by its tolerance. That is much where multipliers are large: under a small
epsilon or eta they are 1/epsilon or 1/eta times the bound that they prove. The violation at one input is moved along
pairs of inputs to inputs with room. Per unit, that costs e^epsilon - 1 along the edge of a policy graph, and the cap
along a pair that has one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.distribution import Array

FARTHEST = 1e8
"""Pairs with larger factors are left as the solver made them."""


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
    tried += [_moved(_left(profits, terms, made), edges, order, parent, made) for made in (multipliers, fresh)]
    best = np.array([_cost(profits, terms, multipliers, made) for made in tried]).argmin(axis=0)
    rows, made = rows.copy(), list(multipliers)
    for number, term in _sticks(terms):
        values = np.stack([one[number] for one in tried])[best, np.arange(len(best))]
        below = np.maximum(-values.min(axis=0), 0.0)
        made[number] = np.maximum(values + below, 0.0)
        np.add.at(rows, term.left, -below)
        np.add.at(rows, term.right, below * term.factor)
    return rows, made


def _sticks(terms: Sequence[Term]) -> list[tuple[int, Any]]:
    """The hockey sticks that have pairs, with their positions."""
    return [(number, term) for number, term in ByKind(terms).sticks if len(term)]


def _cost(profits: Array, terms: Sequence[Term], solved: Sequence[Array], made: Sequence[Array]) -> Array:
    """(n,) the violation that each label has left, plus what its multipliers charge beyond those of the solver."""
    cost = np.maximum(_left(profits, terms, made), 0.0).sum(axis=1)
    for number, term in _sticks(terms):
        beyond = np.maximum(made[number] - solved[number].max(axis=0), 0.0) + np.maximum(-made[number], 0.0)
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
    made = [np.array(values) for values in multipliers]
    open_left, room = np.maximum(reduced, 0.0), np.maximum(-reduced, 0.0)

    def move(source: int, target: int, amount: Array) -> None:
        edge = edges[source, target]
        made[edge.term][:, edge.pair] += edge.sign * amount
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
    return made


def _edges(terms: Sequence[Term]) -> Edges:
    """The cheapest arc between every two inputs, where there is one in both directions."""
    found: Edges = {}
    for number, term in _sticks(terms):
        for pair, factor in enumerate(term.factor.tolist()):
            if factor > FARTHEST:
                continue
            a, b, cost = int(term.left[pair]), int(term.right[pair]), factor - 1 + float(term.caps[pair])
            ways = [((a, b), 1.0), ((b, a), -1.0)] if factor == 1 else [((a, b), 1.0)]
            for way, sign in ways:
                if way not in found or cost < found[way].cost:
                    found[way] = Edge(number, pair, sign, factor, cost)
    return {way: edge for way, edge in found.items() if way[::-1] in found}


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
