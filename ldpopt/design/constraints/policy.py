"""A policy graph with weights: d-privacy for its shortest-path metric follows from the constraints on its edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.terms import Index
from ldpopt.distribution import Array, number
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee, local_dp
from ldpopt.privacy.pairs import Policy
from ldpopt.rounding import ULP


@dataclass(frozen=True)
class Edges:
    """The checked edges of a policy graph: (input, input, weight), in both orders when the graph is undirected."""

    listed: tuple[tuple[Label, Label, float], ...]
    graph: Any

    def needed(self, inputs: Sequence[Label]) -> tuple[Index, Index, Array]:
        """The positions (edges,) of both ends, and the weights, of the edges that no path through others implies.

        Raises `InvalidInput` for a node that is no input.
        """
        distance = self.lengths(inputs)
        shortest = shortest_paths(distance)
        left, right = np.nonzero(np.isfinite(distance))
        kept = [_direct(shortest, distance, x, y) for x, y in zip(left.tolist(), right.tolist(), strict=True)]
        left, right = left[kept], right[kept]
        return left, right, distance[left, right]

    def lengths(self, inputs: Sequence[Label]) -> Array:
        """(k, k) weights of the edges, inf where there is none. Raises `InvalidInput` for a node that is no input."""
        position = {label: x for x, label in enumerate(inputs)}
        for one in self.graph.nodes:
            if one not in position:
                raise invalid("policy graph", f"nodes among the inputs {tuple(inputs)[:8]}", one)
        distance = np.full((len(position), len(position)), np.inf)
        for a, b, weight in self.listed:
            distance[position[a], position[b]] = weight
        return distance

    def diameter(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """The longest of all shortest paths between two inputs, rounded up; None where some two have no path."""
        longest = float(shortest_paths(self.lengths(inputs)).max())
        # A path is a sum of at most k floats, each addition rounded: no longer than this in exact numbers.
        return arithmetic.of(longest) * (1 + len(inputs) * ULP) if np.isfinite(longest) else None


def edges(graph: Policy) -> Edges:
    """The edges of `graph`, weights from the attribute ``weight`` (1 where missing); self-loops are dropped.

    Raises `InvalidInput` for something that is no graph and for weights that are not positive numbers.
    """
    if not (hasattr(graph, "edges") and hasattr(graph, "nodes")):
        raise invalid("policy graph", "a networkx graph over the inputs", type(graph).__name__)
    listed = []
    for a, b, given in graph.edges(data="weight", default=1.0):
        weight = number(given, "edge weight", "a positive number")
        if weight <= 0:
            raise invalid("edge weight", "a positive number", weight, f"edge {(a, b)}")
        if a != b:
            listed += [(a, b, weight)] if graph.is_directed() else [(a, b, weight), (b, a, weight)]
    return Edges(tuple(listed), graph)


def weighted_local_dp(channel: Channel, policy: Edges) -> Guarantee:
    """The largest log-likelihood ratio along an edge, divided by the weight of the edge."""
    import networkx as nx

    worst: Guarantee | None = None
    for weight in sorted({weight for _, _, weight in policy.listed}):
        graph = nx.DiGraph([(a, b) for a, b, w in policy.listed if w == weight])
        found = local_dp(channel, graph)
        value = found.value / weight * (1 + 2 * ULP)
        if worst is None or value > worst.value:
            lower = found.lower / weight * (1 - 2 * ULP)
            worst = Guarantee(found.notion, value, lower, found.witness, found.exact, found.reference)
    return worst if worst is not None else Guarantee("local_dp", 0.0, 0.0, None, True, "[GI, Def 6]")


def shortest_paths(lengths: Array) -> Array:
    """(k, k) lengths of the shortest paths between inputs, for (k, k) lengths of edges, inf for none [Floyd; Warshall].

    >>> float(shortest_paths(np.array([[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]]))[0, 2])
    2.0
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import floyd_warshall

    k = len(lengths)
    left, right = np.nonzero(np.isfinite(lengths) & ~np.eye(k, dtype=bool))
    # Listed entry by entry, so that an edge of length 0 is an edge.
    graph = csr_array((lengths[left, right], (left, right)), shape=(k, k))
    return np.asarray(floyd_warshall(graph), dtype=np.float64)


def _direct(shortest: Array, distance: Array, x: int, y: int) -> bool:
    """Whether no path from x to y through another input is as short as the edge."""
    through = shortest[x] + shortest[:, y]
    through[[x, y]] = np.inf
    return bool(through.min(initial=np.inf) > distance[x, y] * (1 + 1e-12))
