"""The constraint that a channel be epsilon-LDP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint, tanh_of_half
from ldpopt.design.constraints.hockey_stick import HockeyStick
from ldpopt.design.constraints.policy import Edges, edges, weighted_local_dp
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.distribution import positive_epsilon
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.privacy import Guarantee, local_dp
from ldpopt.privacy.pairs import Policy


@dataclass(frozen=True, eq=False, repr=False)
class LocalDP(ColumnConstraint):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))
        if self.graph is not None:
            object.__setattr__(self, "listed", edges(self.graph))

    def __repr__(self) -> str:
        # str(graph) tells the graph's size. Its repr would be an address in memory, which changes with every run.
        return f"LocalDP(epsilon={self.epsilon!r}, graph={f'<{self.graph}>' if self.graph is not None else None})"

    @property
    def symmetric(self) -> bool:
        """Whether every pair of inputs is compared, as it is without a graph."""
        return self.listed is None

    @property
    def plain(self) -> tuple[float, float] | None:
        """(epsilon, 1) without a graph, else None."""
        return (self.epsilon, 1.0) if self.symmetric else None

    @property
    def bound(self) -> float:
        """The largest epsilon allowed, for each unit of weight, in nats."""
        return self.epsilon

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own epsilon, for each unit of weight."""
        return local_dp(channel) if self.listed is None else weighted_local_dp(channel, self.listed)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """tanh(epsilon/2) between all inputs [GI, Prop 2]; 1 with a graph, two of whose nodes may be far apart."""
        return arithmetic.of(1.0) if self.listed is not None else tanh_of_half(arithmetic.of(self.epsilon))

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
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

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """0 where `reach` is at least epsilon and every two inputs are compared; None elsewhere."""
        return arithmetic.of(0.0) if self.listed is None and reach >= self.epsilon else None
