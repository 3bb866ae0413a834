"""Distributions near a pilot: what a design that does not trust it guards against."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ldpopt.distribution import Array, number
from ldpopt.errors import invalid


class Neighbourhood(ABC):
    """A convex set of distributions around a pilot, known by its largest linear function."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @abstractmethod
    def highest(self, gradient: Array, pilot: Array) -> Array:
        """A distribution in the set that maximises gradient . p."""

    @abstractmethod
    def contains(self, p: Array, pilot: Array) -> bool:
        """Whether the distribution p is in the set, up to 1e-9 of rounding."""


@dataclass(frozen=True)
class Box(Neighbourhood):
    """Every share within `radius` > 0 of the pilot's.

    >>> Box(0.1).highest(np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.3, 0.5])).round(3)
    array([0.3, 0.3, 0.4])
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _share(self.radius, "radius"))

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"shares within {self.radius:g} of the pilot"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """The lower corner, with what is left given to the largest gradients first."""
        low, high = np.maximum(pilot - self.radius, 0.0), np.minimum(pilot + self.radius, 1.0)
        p = low.copy()
        left = 1 - p.sum()
        for x in np.argsort(-gradient, kind="stable"):
            given = min(left, high[x] - low[x])
            p[x] += given
            left -= given
        return np.asarray(p)

    def contains(self, p: Array, pilot: Array) -> bool:
        """Whether no share is off by more than the radius."""
        return bool(np.abs(p - pilot).max() <= self.radius + 1e-9)


@dataclass(frozen=True)
class Contamination(Neighbourhood):
    """(1 - share) pilot + share q for any distribution q: a smaller copy of the simplex around the pilot [Huber]."""

    share: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", _share(self.share, "share"))

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"the pilot with up to {self.share:g} of anything else"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """All of the foreign share on the largest gradient."""
        p = (1 - self.share) * pilot
        p[int(np.argmax(gradient))] += self.share
        return np.asarray(p)

    def contains(self, p: Array, pilot: Array) -> bool:
        """Whether p - (1 - share) pilot is non-negative."""
        return bool((p - (1 - self.share) * pilot).min() >= -1e-9)


def _share(value: object, what: str) -> float:
    made = number(value, what, "a number in (0, 1]")
    if not 0 < made <= 1:
        raise invalid(what, "a number in (0, 1]", made)
    return made
