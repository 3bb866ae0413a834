"""Multipliers of constraints that bind every column by itself, made right to the last digit.

A solver leaves dual constraints open by its tolerance, which is much where the multipliers are large: under a small
epsilon they are 1/epsilon times what they prove. Moving what is open along the edges of the policy costs
exp(epsilon) - 1 of it, and closes it where another input has room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.design.constraints.terms import HockeyStick, Ratio, Term
from ldpopt.distribution import Array

Edges = dict[tuple[int, int], tuple[int, int, float]]
"""(input, input): the number of the term, the pair in it, and its factor."""


def closed(profits: Array, terms: Sequence[Term | Ratio], multipliers: Sequence[Array]) -> list[Array]:
    """`multipliers` with more on the edges of a spanning tree, so that the `profits` (n, k) left are nowhere above 0.

    Only edges that hold both ways, under terms with caps of 0, are used; what has no room stays open. Where a solver's
    flows are so large that they drown what they move, as along cycles, new ones replace them.
    """
    edges = _both_ways(terms)
    order, parent = _tree(edges, profits.shape[1])
    fresh = [
        np.where(term.cap > 0, values, 0.0) if isinstance(term, HockeyStick) else values
        for term, values in zip(terms, multipliers, strict=True)
    ]
    left = [_left(profits, terms, made) for made in (multipliers, fresh)]
    tried = [_closed(reduced, edges, order, parent, made) for reduced, made in zip(left, (multipliers, fresh), strict=True)]
    remaining = [np.maximum(_left(profits, terms, made), 0.0).sum(axis=1) for made in tried]
    better = remaining[1] < remaining[0]
    return [
        np.where(better[:, None], new, old) if isinstance(term, HockeyStick) else old
        for term, old, new in zip(terms, *tried, strict=True)
    ]


def _left(profits: Array, terms: Sequence[Term | Ratio], multipliers: Sequence[Array]) -> Array:
    """What the multipliers leave of the profits."""
    for term, values in zip(terms, multipliers, strict=True):
        if not isinstance(term, Ratio) and len(term):
            profits = profits - term.support(values, *profits.shape)
    return profits


def _closed(
    reduced: Array, edges: Edges, order: Sequence[int], parent: Sequence[int], multipliers: Sequence[Array]
) -> list[Array]:
    made = [np.array(values) for values in multipliers]
    open_left, room = np.maximum(reduced, 0.0), np.maximum(-reduced, 0.0)

    def move(source: int, target: int, amount: Array) -> None:
        term, pair, factor = edges[source, target]
        made[term][:, pair] += amount
        open_left[:, source] -= amount
        open_left[:, target] += amount * factor

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


def _both_ways(terms: Sequence[Term | Ratio]) -> Edges:
    """(input, input): number of the term, pair, factor; of edges that hold in both orders."""
    found: Edges = {}
    for number, term in enumerate(terms):
        if isinstance(term, HockeyStick):
            for pair in np.flatnonzero(term.cap == 0):
                # Ratios beyond any float that counts are left to the solver.
                if term.factor[pair] > 1e8:
                    continue
                found[int(term.left[pair]), int(term.right[pair])] = number, int(pair), float(term.factor[pair])
    return {edge: found[edge] for edge in found if edge[::-1] in found}


def _tree(edges: Edges, inputs: int) -> tuple[list[int], list[int]]:
    """The inputs of spanning trees, parents first, and the parent of each, -1 for a root."""
    near: list[list[int]] = [[] for _ in range(inputs)]
    for a, b in edges:
        near[a].append(b)
    order: list[int] = []
    parent = [-1] * inputs
    seen = [False] * inputs
    for root in range(inputs):
        if seen[root]:
            continue
        seen[root] = True
        queue = [root]
        for x in queue:
            for y in near[x]:
                if not seen[y]:
                    seen[y], parent[y] = True, x
                    queue.append(y)
        order += queue
    return order, parent
