"""epsilon-LDP between all pairs of inputs, or along the weighted edges of a policy graph.

d-privacy for the shortest-path metric of the graph follows from the constraints on its edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import EPSILON, ColumnConstraint, tanh_of_half
from ldpopt.design.constraints.hockey_stick import HockeyStick
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.work import Work
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import SAME_PATH
from ldpopt.privacy import Guarantee, local_dp
from ldpopt.privacy.pairs import Policy
from ldpopt.values.distribution import Array, Index, number, positive_epsilon


@dataclass(frozen=True)
class Edges:
    """The checked edges of a policy graph: (input, input, weight), in both orders when the graph is undirected."""

    listed: tuple[tuple[Label, Label, float], ...]
    graph: Any

    def needed(self, inputs: Sequence[Label]) -> tuple[Index, Index, Array]:
        """The positions (edges,) of both ends, and the weights, of the edges that no path through others implies.
        Raises `InvalidInput` for a node that is no input.
        """
        shortest = shortest_paths(self.lengths(inputs))
        left, right = np.nonzero(direct_limits(shortest, SAME_PATH * shortest))
        return left, right, shortest[left, right]

    def lengths(self, inputs: Sequence[Label]) -> Array:
        """(k, k) weights of the edges, inf where there is none. Raises `InvalidInput` for a node that is no input."""
        position = {label: x for x, label in enumerate(inputs)}
        for node in self.graph.nodes:
            if node not in position:
                raise invalid("policy graph", f"nodes among the inputs {tuple(inputs)[:8]}", node)
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
    """The edges of `graph`, weights from the attribute ``weight`` (1 where missing), of parallel edges the least.

    All limits hold, so that the least is the limit. Self-loops are dropped. Raises `InvalidInput` for something that
    is no graph and for weights that are not positive numbers.
    """
    if not (hasattr(graph, "edges") and hasattr(graph, "nodes")):
        raise invalid("policy graph", "a networkx graph over the inputs", type(graph).__name__)
    least: dict[tuple[Any, Any], float] = {}
    for a, b, given in graph.edges(data="weight", default=1.0):
        weight = number(given, "edge weight", "a positive number")
        if weight <= 0:
            raise invalid("edge weight", "a positive number", weight, f"edge {(a, b)}")
        if a != b:
            for ends in ((a, b),) if graph.is_directed() else ((a, b), (b, a)):
                least[ends] = min(least.get(ends, weight), weight)
    return Edges(tuple((a, b, weight) for (a, b), weight in least.items()), graph)


def weighted_local_dp(channel: Channel, policy: Edges) -> Guarantee:
    """The largest log-likelihood ratio along an edge, divided by the weight of the edge."""
    import networkx as nx

    worst: Guarantee | None = None
    for weight in sorted({weight for _, _, weight in policy.listed}):
        graph = nx.DiGraph([(a, b) for a, b, w in policy.listed if w == weight])
        measured = local_dp(channel, graph)
        value = measured.value / weight * (1 + 2 * ULP)
        if worst is None or value > worst.value:
            lower = measured.lower / weight * (1 - 2 * ULP)
            worst = Guarantee(measured.notion, value, lower, measured.witness, measured.exact, measured.reference)
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


def direct_limits(shortest: Array, room: Array | float) -> npt.NDArray[np.bool_]:
    """(k, k) whether the limit between two inputs is tighter, by more than `room`, than any path through other inputs.
    shortest : (k, k) limits that are lengths of shortest paths.
    """
    own = np.eye(len(shortest), dtype=bool)
    others = np.where(own, np.inf, shortest)  # a path through an end is none
    through, between = np.full(shortest.shape, np.inf), np.empty(shortest.shape)
    for to, on in zip(others.T, others, strict=True):
        np.minimum(through, np.add(to[:, None], on, out=between), out=through)
    return np.asarray(np.isfinite(shortest) & (through > shortest + room) & ~own)


@dataclass(frozen=True, eq=False, repr=False)
class LocalDP(ColumnConstraint, epsilon=positive_epsilon):
    """Pure local differential privacy: every Q[x, y] <= exp(epsilon) Q[x', y], epsilon > 0 in nats [GI, Def 6].

    graph : a networkx graph over the input labels (or positions 0..k-1), whose edges are the pairs x, x' that must be
        hard to tell apart; None for all pairs. An edge attribute ``weight`` w > 0 allows ratios up to exp(w epsilon)
        along the edge, which is d-privacy for the graph's shortest-path metric.

    >>> LocalDP(1.0).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= LocalDP(1.0).bound
    True
    """

    epsilon: float
    graph: Policy = None
    listed: Edges | None = field(init=False, repr=False, compare=False, default=None)
    capped = "epsilon"
    asks = (EPSILON,)
    preference = 10
    private = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.graph is not None:
            object.__setattr__(self, "listed", edges(self.graph))

    def __repr__(self) -> str:
        # str(graph) tells the graph's size. Its repr would be an address in memory, which changes with every run.
        return f"LocalDP(epsilon={self.epsilon!r}, graph={f'<{self.graph}>' if self.graph is not None else None})"

    @property
    def names_inputs(self) -> bool:
        """Whether it goes by the labels of inputs, as a policy graph does."""
        return self.listed is not None

    @property
    def symmetric(self) -> bool:
        """Whether every pair of inputs is compared, as it is without a graph."""
        return self.listed is None

    @property
    def plain(self) -> tuple[float, float] | None:
        """(epsilon, 1) without a graph, else None."""
        return (self.epsilon, 1.0) if self.symmetric else None

    def work(self, channel: Channel) -> Work:
        """Along a graph, edges are compared for each of the weights, and shortest paths are sought."""
        k, m = channel.shape
        if self.listed is None:
            return super().work(channel)
        edges, weights = len(self.listed.listed), len({weight for *_, weight in self.listed.listed})
        looked = Work.on(edges, 60.0 * m + 2000) + Work(weights * (100_000.0 + 300 * k))
        return (looked + Work(10.0 * float(k) ** 3, 100.0 * float(k) ** 2)).in_floats

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own epsilon, for each unit of weight."""
        return local_dp(channel) if self.listed is None else weighted_local_dp(channel, self.listed)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """tanh(epsilon/2) between all inputs [GI, Prop 2]; 1 with a graph, two of whose nodes may be far apart."""
        return arithmetic.of(1.0) if self.listed is not None else tanh_of_half(arithmetic.of(self.epsilon))

    def columns(self, inputs: Sequence[Label]) -> tuple[Term, ...]:
        """A `Ratio` for all inputs at once, or terms for the edges of the graph that no other path implies."""
        if self.listed is None:
            return (Ratio(self.epsilon),)
        left, right, weight = self.listed.needed(inputs)
        return (HockeyStick.of(left, right, self.epsilon, 0.0, weight),)

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """epsilon, times the diameter of the graph if there is one; None where some two inputs have no path."""
        if self.listed is None:
            return arithmetic.of(self.epsilon)
        diameter = self.listed.diameter(inputs, arithmetic)
        return None if diameter is None else diameter * self.epsilon

    def log_limits(self, inputs: Sequence[Label]) -> Array | None:
        """epsilon for all pairs, or times the weights of the edges that no other path implies."""
        if self.listed is None:
            return np.full((len(inputs), len(inputs)), self.epsilon)
        limits = np.full((len(inputs), len(inputs)), np.inf)
        left, right, weight = self.listed.needed(inputs)
        limits[left, right] = weight * self.epsilon
        return limits

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """0 where `reach` is at least epsilon and every two inputs are compared; None elsewhere."""
        return arithmetic.of(0.0) if self.listed is None and reach >= self.epsilon else None
