"""The constraint that a channel be Rényi-LDP of one order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.constraints.terms import Moment, Ratio, Term, all_pairs
from ldpopt.distribution import positive_epsilon
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee, renyi
from ldpopt.privacy.renyi import renyi_order


@dataclass(frozen=True)
class RenyiLDP(ColumnConstraint):
    """The Rényi divergence of `order` in [1, inf] between any two rows is at most epsilon > 0 nats [M, Def 4].

    Order 1 bounds the KL divergence, order inf is `LocalDP(epsilon)`. In between, (order - 1) epsilon must be at
    most 500, beyond which float64 does not tell the constraint from order inf.

    >>> RenyiLDP(2.0, 0.5).measure(Channel([[0.6, 0.4], [0.4, 0.6]])).value <= 0.5
    True
    """

    order: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", renyi_order(self.order))
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))
        if math.isfinite(self.order) and (self.order - 1) * self.epsilon > 500:
            raise invalid("order", "(order - 1) epsilon of at most 500, or order inf", self.order)

    @property
    def plain(self) -> tuple[float, float] | None:
        """`LocalDP` where the order is inf."""
        return (self.epsilon, 1.0) if math.isinf(self.order) else None

    @property
    def bound(self) -> float:
        """The largest divergence allowed."""
        return self.epsilon

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own divergence of this order."""
        return renyi(channel, self.order)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """sqrt(epsilon/2), as the KL divergence is at most every later order [Pinsker]."""
        return (arithmetic.of(self.epsilon) / 2).sqrt()

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """sum_y Q[x, y]^order Q[x', y]^(1 - order) <= exp((order - 1) epsilon) for every ordered pair."""
        if math.isinf(self.order):
            return (Ratio(math.exp(self.epsilon)),)
        return (moment(len(inputs), self.order, self.epsilon),)


def moment(inputs: int, order: float, epsilon: float) -> Moment:
    """The moment term of every ordered pair for a divergence of `order` below inf."""
    cap = epsilon if order == 1 else math.expm1((order - 1) * epsilon)
    return Moment(*all_pairs(inputs), order, cap)
