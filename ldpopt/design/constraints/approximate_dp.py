"""The constraint that a channel be (epsilon, delta)-LDP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint, tanh_of_half
from ldpopt.design.constraints.hockey_stick import approximate
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.distribution import unit_interval
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee, hockey_stick
from ldpopt.privacy.approximate_dp import nonnegative
from ldpopt.tolerances import MAXIMUM_EPSILON


@dataclass(frozen=True)
class ApproximateLDP(ColumnConstraint):
    """sum_y (Q[x, y] - exp(epsilon) Q[x', y])_+ <= delta for all ordered pairs of inputs [GI, Def 1].

    (a)_+ is max(a, 0), and the sum is called the hockey-stick divergence. epsilon is in nats, from 0 (then this is
    `TotalVariation(delta)`) to `tolerances.MAXIMUM_EPSILON`; delta is in [0, 1] (at 0 this is `LocalDP(epsilon)`).

    >>> ApproximateLDP(1.0, 0.01).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value
    0.0
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = nonnegative(self.epsilon, "epsilon")
        if epsilon > MAXIMUM_EPSILON:
            raise invalid("epsilon", f"at most {MAXIMUM_EPSILON:g} nats", epsilon)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", unit_interval(self.delta, "delta"))

    @property
    def plain(self) -> tuple[float, float] | None:
        """`LocalDP` where delta is 0, `TotalVariation` where epsilon is 0."""
        if self.epsilon == 0:
            return math.inf, self.delta
        return (self.epsilon, 1.0) if self.delta == 0 else None

    @property
    def bound(self) -> float:
        """The largest delta allowed."""
        return self.delta

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own delta at this epsilon."""
        return hockey_stick(channel, self.epsilon)

    def centred(self) -> ApproximateLDP:
        """The same with half of delta."""
        return replace(self, delta=self.delta / 2)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """delta + (1 - delta) tanh(epsilon/2) [GI, eq. 7]."""
        delta = arithmetic.of(self.delta)
        return delta + (1 - delta) * tanh_of_half(arithmetic.of(self.epsilon))

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """One hockey-stick sum for every ordered pair; with delta = 0, ratios within a box."""
        return (approximate(len(inputs), self.epsilon, self.delta),)

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """epsilon where delta is 0, else None."""
        return arithmetic.of(self.epsilon) if self.delta == 0 else None

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """delta where `reach` is at least epsilon; None below."""
        return arithmetic.of(self.delta) if reach >= self.epsilon else None
