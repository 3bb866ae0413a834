"""The constraint that a channel be zero-concentrated: Rényi divergences of all orders at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.constraints.moment import moment
from ldpopt.design.constraints.renyi import RenyiLDP
from ldpopt.design.constraints.terms import Ratio, Term, all_pairs
from ldpopt.distribution import Array, number
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee, zcdp
from ldpopt.privacy.renyi import renyi_of_pairs, renyi_order

GRID = np.concatenate([[1.0], 1 + np.geomspace(1e-3, 1e3, 121)])
"""Where orders that a channel exceeds are looked for."""

APART = 1e-4
"""Orders nearer than this share of their distance from 1 say the same."""

SUMMIT = 0.9
"""Between two orders of the grid the rate may be that much higher than at both."""


@dataclass(frozen=True)
class ConcentratedLDP(ColumnConstraint):
    """The Rényi divergence of every order a > 1 between any two rows is at most a rho, rho > 0 [BS, Def 1.1].

    orders : the orders, from 1 (the KL divergence) below inf, that the program poses: what they bound, all orders
        bound too, so that the bounds of designs hold. Designs add the orders that their channels exceed, and are
        measured by the exact supremum over all orders (`privacy.zcdp`).

    >>> ConcentratedLDP(0.5).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= 0.5
    True
    """

    rho: float
    orders: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        rho = number(self.rho, "rho", "a positive number")
        if not 0 < rho <= 100:
            raise invalid("rho", "a number in (0, 100]", rho)
        orders = tuple(sorted({renyi_order(order) for order in self.orders}))
        if not orders or not np.isfinite(orders[-1]) or (orders[-1] - 1) * orders[-1] * rho > 500:
            raise invalid("orders", "at least one order a from 1 with a (a - 1) rho of at most 500", orders)
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "orders", orders)

    @property
    def bound(self) -> float:
        """The largest rho allowed."""
        return self.rho

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own rho, over all orders."""
        return zcdp(channel)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """sqrt(rho/2), as the KL divergence is at most rho [Pinsker]."""
        return (arithmetic.of(self.rho) / 2).sqrt()

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """One moment sum an order and ordered pair."""
        return tuple(moment(len(inputs), order, Fraction(order) * Fraction(self.rho)) for order in self.orders)

    def implies(self, other: Any) -> bool:
        """That of every rho not smaller, posed for any orders, and each order's own [BS, Def 1.1]."""
        if isinstance(other, ConcentratedLDP):
            return other.rho >= self.rho
        if isinstance(other, RenyiLDP):
            return math.isfinite(other.order) and Fraction(other.epsilon) >= Fraction(other.order) * Fraction(self.rho)
        return False

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """That of any order, whether it is posed or not."""
        if not 1 <= order < math.inf:
            return None
        exact, rho = Fraction(order), arithmetic.of(self.rho)
        return rho if order == 1 else (rho * arithmetic.of(exact * (exact - 1))).expm1()

    def tightened(self, matrix: Array) -> ConcentratedLDP | None:
        """With the order that `matrix` (k, m) exceeds most, of those not posed; None where none by a relative 1e-7."""
        left, right = all_pairs(len(matrix))
        if not len(left):
            return None
        used = matrix[:, matrix.max(axis=0) > 1e-9]
        used = used / used.sum(axis=1, keepdims=True)
        usable = GRID[GRID * (GRID - 1) * self.rho <= 500]

        def worst(orders: Array) -> Array:
            return np.array([renyi_of_pairs(used[left], used[right], a)[0].max() / a for a in orders])

        rates = worst(usable)
        # Every summit of the grid is looked at: one of an order that is known already may hide a higher one.
        beside = np.concatenate([[-np.inf], rates, [-np.inf]])
        summits = np.flatnonzero((rates >= beside[:-2]) & (rates >= beside[2:]) & (rates > SUMMIT * self.rho))
        found: dict[float, float] = {}
        for at in summits.tolist():
            fine = np.linspace(usable[max(at - 1, 0)], usable[min(at + 1, len(usable) - 1)], 41)
            peak = int(worst(fine).argmax())
            fine = np.linspace(fine[max(peak - 1, 0)], fine[min(peak + 1, len(fine) - 1)], 41)
            finer = worst(fine)
            order, rate = float(fine[finer.argmax()]), float(finer.max())
            near = min(abs(order - known) for known in self.orders) <= APART * (order - 1)
            if rate > self.rho * (1 + 1e-7) and not near:
                found[order] = rate
        return replace(self, orders=(*self.orders, max(found, key=lambda order: found[order]))) if found else None
