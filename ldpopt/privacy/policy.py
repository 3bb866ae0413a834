"""The policy graph: its edges connect the inputs that must not be told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.errors import invalid

Policy = Any
"""A networkx Graph or DiGraph over input labels, or None for every pair of inputs. networkx is not imported here."""

Pairs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


def ordered_pairs(channel: Channel, graph: Policy = None) -> Pairs:
    """Positions (i, j) of every ordered pair of inputs that `graph` compares; all of them without a graph.

    Nodes are input labels. An undirected edge stands for both orders; self-loops are ignored. Raises
    `InvalidInput` for an object that is not a graph, and for a node that is not an input.

    >>> i, j = ordered_pairs(Channel([[1.0], [1.0]]))
    >>> list(zip(i.tolist(), j.tolist()))
    [(0, 1), (1, 0)]
    """
    k = channel.shape[0]
    if graph is None:
        i, j = np.nonzero(~np.eye(k, dtype=bool))
        return i, j
    if not (hasattr(graph, "edges") and hasattr(graph, "nodes")):
        raise invalid("policy graph", "a networkx graph over the inputs", type(graph).__name__)
    position = {label: x for x, label in enumerate(channel.inputs)}
    unknown = [node for node in graph.nodes if node not in position]
    if unknown:
        raise invalid("policy graph", f"nodes among the inputs {channel.inputs[:8]}", unknown[0])
    edges = {(position[a], position[b]) for a, b in graph.edges() if a != b}
    if not graph.is_directed():
        edges |= {(b, a) for a, b in edges}
    ordered = np.array(sorted(edges), dtype=np.intp).reshape(-1, 2)
    return ordered[:, 0], ordered[:, 1]
