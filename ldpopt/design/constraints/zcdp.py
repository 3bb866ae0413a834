"""The constraint that a channel be zero-concentrated LDP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.constraints.renyi import moment
from ldpopt.design.terms import Box, Term
from ldpopt.distribution import number
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee, zcdp
from ldpopt.privacy.renyi import renyi_order


@dataclass(frozen=True)
class ZCDP(ColumnConstraint):
    """The Rényi divergence of every order alpha > 1 between any two rows is at most rho alpha [BS, Def 1.1].

    The program imposes it at `orders`, which is a relaxation and bounds the optimum from above; the design itself is
    measured at every order, and mixed until it holds.

    >>> ZCDP(0.1).measure(Channel([[0.6, 0.4], [0.4, 0.6]])).value <= 0.1
    True
    """

    rho: float
    orders: tuple[float, ...] = (1.125, 2.0, 5.0)

    def __post_init__(self) -> None:
        rho = number(self.rho, "rho", "a positive number")
        if rho <= 0:
            raise invalid("rho", "a positive number", rho)
        object.__setattr__(self, "rho", rho)
        orders = tuple(renyi_order(order) for order in self.orders)
        if not orders or max((order - 1) * order for order in orders) * rho > 500:
            orders = tuple(order for order in orders if (order - 1) * order * rho <= 500)
        if not orders:
            raise invalid("orders", "at least one order with order (order - 1) rho of at most 500", self.orders)
        object.__setattr__(self, "orders", orders)

    @property
    def bound(self) -> float:
        """The largest rho allowed."""
        return self.rho

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own rho."""
        return zcdp(channel)

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Box, ...]:
        """A moment of each of the orders."""
        return tuple(moment(len(inputs), order, order * self.rho) for order in self.orders)
