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
        """Return the edges that no path through others implies.

        They are the positions (edges,) of both ends, and the weights. Raises `InvalidInput` for a node that is not an
        input.
        """
        shortest = shortest_paths(self.lengths(inputs))
        left, right = np.nonzero(direct_limits(shortest, SAME_PATH * shortest))
        return left, right, shortest[left, right]

    def lengths(self, inputs: Sequence[Label]) -> Array:
        """Return (k, k) weights of the edges, inf for no edge.

        Raises `InvalidInput` for a node that is not an input.
        """
        position = {label: x for x, label in enumerate(inputs)}
        for node in self.graph.nodes:
            if node not in position:
                raise invalid("policy graph", f"nodes among the inputs {tuple(inputs)[:8]}", node)
        lengths = np.full((len(position), len(position)), np.inf)
        for a, b, weight in self.listed:
            lengths[position[a], position[b]] = weight
        return lengths

    def diameter(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """Compute the longest shortest path between two inputs, rounded up.

        It is None if some two inputs have no path.
        """
        longest_path = float(shortest_paths(self.lengths(inputs)).max())
        # A path is a sum of at most k floats, each addition rounded: no longer than this in exact numbers.
        return arithmetic.of(longest_path) * (1 + len(inputs) * ULP) if np.isfinite(longest_path) else None


def edges(graph: Policy) -> Edges:
    """List the edges of `graph`, with weights from the attribute ``weight`` (1 if missing).

    Of parallel edges, all limits hold, so that the smallest weight counts. Self-loops are dropped. Raises
    `InvalidInput` for an object that is not a graph and for weights that are not positive numbers.
    """
    if not (hasattr(graph, "edges") and hasattr(graph, "nodes")):
        raise invalid("policy graph", "a networkx graph over the inputs", type(graph).__name__)
    smallest_weights: dict[tuple[Any, Any], float] = {}
    for a, b, raw_weight in graph.edges(data="weight", default=1.0):
        weight = number(raw_weight, "edge weight", "a positive number")
        if weight <= 0:
            raise invalid("edge weight", "a positive number", weight, f"edge {(a, b)}")
        if a != b:
            for ends in ((a, b),) if graph.is_directed() else ((a, b), (b, a)):
                smallest_weights[ends] = min(smallest_weights.get(ends, weight), weight)
    return Edges(tuple((a, b, weight) for (a, b), weight in smallest_weights.items()), graph)


def weighted_local_dp(channel: Channel, policy: Edges) -> Guarantee:
    """Measure the largest log-likelihood ratio along an edge, divided by the edge's weight."""
    import networkx as nx

    worst: Guarantee | None = None
    for weight in sorted({weight for _, _, weight in policy.listed}):
        graph = nx.DiGraph([(a, b) for a, b, w in policy.listed if w == weight])
        guarantee = local_dp(channel, graph)
        value = guarantee.value / weight * (1 + 2 * ULP)
        if worst is None or value > worst.value:
            lower = guarantee.lower / weight * (1 - 2 * ULP)
            worst = Guarantee(guarantee.notion, value, lower, guarantee.witness, guarantee.exact, guarantee.reference)
    return worst if worst is not None else Guarantee("local_dp", 0.0, 0.0, None, True, "[GI, Def 6]")


def shortest_paths(lengths: Array) -> Array:
    """Compute (k, k) lengths of the shortest paths between inputs [Floyd; Warshall].

    lengths : (k, k) lengths of edges, inf for none.

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


def direct_limits(shortest: Array, margin: Array | float) -> npt.NDArray[np.bool_]:
    """Mark (k, k) the limits between two inputs that are tighter than all other paths.

    A limit must be tighter, by more than `margin`, than any path through other inputs. shortest : (k, k) limits that
    are lengths of shortest paths.
    """
    is_diagonal = np.eye(len(shortest), dtype=bool)
    off_diagonal = np.where(is_diagonal, np.inf, shortest)  # A path through an end does not count.
    shortest_detour, detour = np.full(shortest.shape, np.inf), np.empty(shortest.shape)
    for incoming, outgoing in zip(off_diagonal.T, off_diagonal, strict=True):
        np.minimum(shortest_detour, np.add(incoming[:, None], outgoing, out=detour), out=shortest_detour)
    return np.asarray(np.isfinite(shortest) & (shortest_detour > shortest + margin) & ~is_diagonal)


@dataclass(frozen=True, eq=False, repr=False)
class LocalDP(ColumnConstraint, epsilon=positive_epsilon):
    """Pure local differential privacy: every Q[x, y] <= exp(epsilon) Q[x', y], epsilon > 0 in nats [GI, Def 6].

    graph : a networkx graph over the input labels (or positions 0..k-1), whose edges are the pairs x, x' that must be
        hard to distinguish; None for all pairs. An edge attribute ``weight`` w > 0 allows ratios up to exp(w epsilon)
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
        # str(graph) shows the graph's size. Its repr would be an address in memory, which changes with every run.
        return f"LocalDP(epsilon={self.epsilon!r}, graph={f'<{self.graph}>' if self.graph is not None else None})"

    @property
    def names_inputs(self) -> bool:
        """True if the constraint refers to the labels of inputs, as a policy graph does."""
        return self.listed is not None

    @property
    def symmetric(self) -> bool:
        """True if every pair of inputs is compared, as without a graph."""
        return self.listed is None

    @property
    def equivalent_caps(self) -> tuple[float, float] | None:
        """The pair (epsilon, 1) without a graph, else None."""
        return (self.epsilon, 1.0) if self.symmetric else None

    def work(self, channel: Channel) -> Work:
        """Bound the work of `measure`.

        Along a graph, edges are compared for each of the weights, and shortest paths are computed.
        """
        k, m = channel.shape
        if self.listed is None:
            return super().work(channel)
        edges, weights = len(self.listed.listed), len({weight for *_, weight in self.listed.listed})
        comparison = Work.on(edges, 60.0 * m + 2000) + Work(weights * (100_000.0 + 300 * k))
        return (comparison + Work(10.0 * float(k) ** 3, 100.0 * float(k) ** 2)).in_floats

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the channel's epsilon, per unit of weight."""
        return local_dp(channel) if self.listed is None else weighted_local_dp(channel, self.listed)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """Return tanh(epsilon/2) between all inputs [GI, Prop 2].

        It is 1 with a graph, where two nodes may be far apart.
        """
        return arithmetic.of(1.0) if self.listed is not None else tanh_of_half(arithmetic.of(self.epsilon))

    def columns(self, inputs: Sequence[Label]) -> tuple[Term, ...]:
        """List a `Ratio` for all inputs at once, or terms for the edges of the graph.

        Edges that another path implies are left out.
        """
        if self.listed is None:
            return (Ratio(self.epsilon),)
        left, right, weight = self.listed.needed(inputs)
        return (HockeyStick.from_pairs(left, right, self.epsilon, 0.0, weight),)

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """Return epsilon, times the diameter of the graph if there is one.

        It is None if some two inputs have no path.
        """
        if self.listed is None:
            return arithmetic.of(self.epsilon)
        diameter = self.listed.diameter(inputs, arithmetic)
        return None if diameter is None else diameter * self.epsilon

    def log_limits(self, inputs: Sequence[Label]) -> Array | None:
        """Return epsilon for all pairs, or times the weights of the edges.

        Edges that another path implies are left out.
        """
        if self.listed is None:
            return np.full((len(inputs), len(inputs)), self.epsilon)
        limits = np.full((len(inputs), len(inputs)), np.inf)
        left, right, weight = self.listed.needed(inputs)
        limits[left, right] = weight * self.epsilon
        return limits

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """Return 0 if `reach` is at least epsilon and every two inputs are compared; else None."""
        return arithmetic.of(0.0) if self.listed is None and reach >= self.epsilon else None
