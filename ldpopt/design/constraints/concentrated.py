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
"""The orders at which a channel is first compared with its cap."""

APART = 1e-4
"""An order is not added when one is posed within this share of its distance from 1: both say the same."""

SUMMIT = 0.9
"""Peaks of the grid below this share of rho are passed over: between its orders the rate is not that much higher."""


@dataclass(frozen=True)
class ConcentratedLDP(ColumnConstraint):
    """The Rényi divergence of every order a > 1 between any two rows is at most a rho nats [BS, Def 1.1].

    rho : in (0, 100]. orders : the finite orders, from 1 (the KL divergence), that the program poses first. Fewer
    orders allow more channels, so that the proved bounds hold for all orders. Orders that a designed channel exceeds
    are added, and the design is measured by the exact supremum over all orders (`privacy.zcdp`).

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
        """One moment sum for each posed order and each ordered pair."""
        return tuple(moment(len(inputs), order, Fraction(order) * Fraction(self.rho)) for order in self.orders)

    def implies(self, other: Any) -> bool:
        """True of the same with rho no smaller, and of `RenyiLDP` with epsilon at least order * rho [BS, Def 1.1]."""
        if isinstance(other, ConcentratedLDP):
            return other.rho >= self.rho
        if isinstance(other, RenyiLDP):
            return math.isfinite(other.order) and Fraction(other.epsilon) >= Fraction(other.order) * Fraction(self.rho)
        return False

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """The cap on the moment of any finite order, whether it is posed or not."""
        if not 1 <= order < math.inf:
            return None
        exact, rho = Fraction(order), arithmetic.of(self.rho)
        return rho if order == 1 else (rho * arithmetic.of(exact * (exact - 1))).expm1()

    def tightened(self, matrix: Array) -> ConcentratedLDP | None:
        """The same with one more order, the one that `matrix` (k, m) exceeds most.

        None if the matrix exceeds rho by more than a relative 1e-7 at no order that is not posed.
        """
        left, right = all_pairs(len(matrix))
        if not len(left):
            return None
        used = matrix[:, matrix.max(axis=0) > 1e-9]
        used = used / used.sum(axis=1, keepdims=True)
        usable = GRID[GRID * (GRID - 1) * self.rho <= 500]

        def worst(orders: Array) -> Array:
            return np.array([renyi_of_pairs(used[left], used[right], a)[0].max() / a for a in orders])

        rates = worst(usable)
        # Every peak of the grid is looked at, because the highest one may be at an order that is posed already.
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
