"""The constraint that a channel be Rényi-LDP of one order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint, tanh_of_half
from ldpopt.design.constraints.moment import moment
from ldpopt.design.constraints.terms import Ratio, Term
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
        """sqrt(epsilon/2), as the divergence grows with the order, from KL [Pinsker]; at order inf [GI, Prop 2]."""
        epsilon = arithmetic.of(self.epsilon)
        return tanh_of_half(epsilon) if math.isinf(self.order) else (epsilon / 2).sqrt()

    def implies(self, other: Any) -> bool:
        """True of `RenyiLDP` with order no larger and epsilon no smaller: it grows with the order [M, Prop 9]."""
        return isinstance(other, RenyiLDP) and other.order <= self.order and other.epsilon >= self.epsilon

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """sum_y Q[x, y]^order Q[x', y]^(1 - order) <= exp((order - 1) epsilon) for every ordered pair."""
        if math.isinf(self.order):
            return (Ratio(self.epsilon),)
        return (moment(len(inputs), self.order, self.epsilon),)

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """epsilon at order inf, else None."""
        return arithmetic.of(self.epsilon) if math.isinf(self.order) else None

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """The cap on the moment of every order from 1 up to this one; None beyond."""
        if not 1 <= order <= self.order:
            return None
        epsilon = arithmetic.of(self.epsilon)
        return epsilon if order == 1 else (epsilon * arithmetic.of(Fraction(order) - 1)).expm1()
