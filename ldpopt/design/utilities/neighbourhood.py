"""Distributions near a pilot, for designs that guard against a wrong pilot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.design.registry import Kind
from ldpopt.design.utilities.laws import law
from ldpopt.distribution import Array, number_up_to
from ldpopt.enclosures import Enclosure
from ldpopt.rounding import exact_sum


class Neighbourhood(Kind, ABC):
    """A convex set of distributions around a pilot, described by the maximisers of linear functions on it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the set in designs and printed tables."""

    @abstractmethod
    def highest(self, gradient: Array, pilot: Array) -> Array:
        """A distribution in the set that maximises gradient . p."""

    def holds(self, p: Array, pilot: Array) -> bool:
        """Whether the law proportional to p is exactly in the set around the law proportional to `pilot`."""
        return all(x >= 0 for x in p.tolist()) and bool(p.sum() > 0) and self._holds(_law(p), _law(pilot))

    @abstractmethod
    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        """Whether the law p is in the set around the law `pilot`, in exact fractions."""

    @abstractmethod
    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """A lower bound on slope . p over the set, by weak duality, and nearly the least value."""

    @abstractmethod
    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """The set as cvxpy constraints on a variable `p` that is a distribution."""


@dataclass(frozen=True)
class Box(Neighbourhood):
    """Every distribution whose shares all differ from the pilot's by at most `radius`, in (0, 1].

    >>> Box(0.1).highest(np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.3, 0.5])).round(3)
    array([0.3, 0.3, 0.4])
    """

    radius: float
    checks = (("radius", number_up_to),)

    @property
    def name(self) -> str:
        """The name of the set, with its radius."""
        return f"shares within {self.radius:g} of the pilot"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """Every share at its lower limit, and the rest of the mass given to the largest gradients first."""
        low, high = np.maximum(pilot - self.radius, 0.0), np.minimum(pilot + self.radius, 1.0)
        p = low.copy()
        left = 1 - p.sum()
        for x in np.argsort(-gradient, kind="stable"):
            given = min(left, high[x] - low[x])
            p[x] += given
            left -= given
        return np.asarray(p)

    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        return all(abs(x - y) <= Fraction(self.radius) for x, y in zip(p, pilot, strict=True))

    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """t + sum_x (low_x (c_x - t)_+ - high_x (t - c_x)_+), where t is the slope at which the mass is used up."""
        near = np.asarray(slope.midpoint)
        p, order = self.highest(-near, pilot), np.argsort(near, kind="stable")
        full = p[order] >= np.minimum(pilot + self.radius, 1.0)[order]
        price = float(near[order][min(int(np.argmin(full)), len(near) - 1)])
        centre = law(pilot, slope.arithmetic)
        low, high = (centre - self.radius).positive(), (centre + self.radius).minimum(1.0)
        return (low * (slope - price).positive() - high * (price - slope).positive()).sum() + price

    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """Bounds on every share."""
        return [p >= pilot - self.radius, p <= pilot + self.radius]


@dataclass(frozen=True)
class Contamination(Neighbourhood):
    """(1 - share) pilot + share q for any distribution q: up to a `share` in (0, 1] of people are unlike it [Huber]."""

    share: float
    checks = (("share", number_up_to),)

    @property
    def name(self) -> str:
        """The name of the set, with its share."""
        return f"the pilot with up to {self.share:g} of anything else"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """q puts all its mass on the largest gradient."""
        p = (1 - self.share) * pilot
        p[int(np.argmax(gradient))] += self.share
        return np.asarray(p)

    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        return all(x >= (1 - Fraction(self.share)) * y for x, y in zip(p, pilot, strict=True))

    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """(1 - share) slope . pilot, plus share times the smallest slope."""
        centre = law(pilot, slope.arithmetic)
        return (1 - slope.arithmetic.of(self.share)) * (centre @ slope) + slope.min() * self.share

    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """Every p_x is at least (1 - share) pilot_x."""
        return [p >= (1 - self.share) * pilot]


@dataclass(frozen=True)
class TotalVariationBall(Neighbourhood):
    """Every distribution within total variation `radius` in (0, 1] of the pilot [Huber].

    >>> TotalVariationBall(0.1).highest(np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.3, 0.5])).round(3)
    array([0.3, 0.2, 0.5])
    """

    radius: float
    checks = (("radius", number_up_to),)

    @property
    def name(self) -> str:
        """The name of the set, with its radius."""
        return f"total variation {self.radius:g} around the pilot"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """The pilot with `radius` of mass moved from the smallest gradients to the largest one."""
        p = pilot.copy()
        best, left = int(np.argmax(gradient)), self.radius
        for x in np.argsort(gradient, kind="stable"):
            moved = min(left, p[x]) if gradient[x] < gradient[best] else 0.0
            p[x] -= moved
            p[best] += moved
            left -= moved
        return np.asarray(p)

    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        return sum(max(x - y, Fraction(0)) for x, y in zip(p, pilot, strict=True)) <= Fraction(self.radius)

    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """c.pilot - (radius t + sum_x pilot_x (c_x - min c - t)_+), where t is the gain at which radius is used up."""
        near, centre = np.asarray(slope.midpoint), law(pilot, slope.arithmetic)
        gains = near - near.min()
        order = np.argsort(-gains, kind="stable")
        at = min(int(np.searchsorted(np.cumsum(pilot[order]), self.radius)), len(order) - 1)
        price = float(max(gains[order][at], 0.0))
        moved = (centre * (slope - slope.min() - price).positive()).sum() + slope.arithmetic.of(self.radius) * price
        return centre @ slope - moved

    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """The excesses of p over the pilot sum to at most the radius."""
        import cvxpy as cp

        return [cp.sum(cp.pos(p - pilot)) <= self.radius]


def _law(p: Array) -> list[Fraction]:
    """The law proportional to p, in exact fractions."""
    total = exact_sum(p)
    return [Fraction(x) / total for x in p.tolist()]
