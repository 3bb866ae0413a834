"""A policy graph with weights: d-privacy for the shortest-path metric, by its edges alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.terms import Index
from ldpopt.distribution import Array, number
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee, local_dp
from ldpopt.privacy.policy import Policy
from ldpopt.rounding import ULP


@dataclass(frozen=True)
class Edges:
    """The weighted edges of a policy graph, checked: (input, input, weight), both orders when undirected."""

    listed: tuple[tuple[Label, Label, float], ...]
    graph: Any

    def needed(self, inputs: Sequence[Label]) -> tuple[Index, Index, Array]:
        """Positions and weights of the edges that no path through other inputs implies.

        Raises `InvalidInput` for a node that is no input.
        """
        position = {label: x for x, label in enumerate(inputs)}
        for one in self.graph.nodes:
            if one not in position:
                raise invalid("policy graph", f"nodes among the inputs {tuple(inputs)[:8]}", one)
        k = len(position)
        distance = np.full((k, k), np.inf)
        for a, b, weight in self.listed:
            distance[position[a], position[b]] = weight
        shortest = _shortest(distance)
        left, right = np.nonzero(np.isfinite(distance))
        kept = [_direct(shortest, distance, x, y) for x, y in zip(left.tolist(), right.tolist(), strict=True)]
        left, right = left[kept], right[kept]
        return left, right, distance[left, right]


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


def _shortest(distance: Array) -> Array:
    """All shortest-path lengths [Floyd; Warshall]."""
    import networkx as nx

    k = len(distance)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(k))
    left, right = np.nonzero(np.isfinite(distance))
    graph.add_weighted_edges_from(zip(left.tolist(), right.tolist(), distance[left, right].tolist(), strict=True))
    return np.asarray(nx.floyd_warshall_numpy(graph, nodelist=range(k)), dtype=np.float64)


def _direct(shortest: Array, distance: Array, x: int, y: int) -> bool:
    """Whether no path from x to y through another input is as short as the edge."""
    through = shortest[x] + shortest[:, y]
    through[[x, y]] = np.inf
    return bool(through.min(initial=np.inf) > distance[x, y] * (1 + 1e-12))
