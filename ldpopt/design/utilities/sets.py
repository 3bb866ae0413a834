"""Convex sets of distributions: near a pilot that may be wrong, and hypotheses that are not known exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldpopt.design.kernel.numbers import Unproved, weights_array
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.laws import law
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, distribution, number_up_to
from ldpopt.values.results import ByValue


class Neighbourhood(Kind, ABC):
    """A convex set of distributions around a pilot, described by the maximizers of linear functions on it."""

    words: ClassVar[str]
    """The name of the set, with a place for its size."""

    @property
    def name(self) -> str:
        """The name of the set in designs and printed tables, with its size."""
        return self.words.format(*(getattr(self, size) for size in self._readers))

    @abstractmethod
    def highest(self, gradient: Array, pilot: Array) -> Array:
        """Return a distribution in the set that maximizes gradient . p."""

    def holds(self, p: Array, pilot: Array) -> bool:
        """Return True if p is exactly in the set around `pilot`.

        Both stand for the distributions proportional to them.
        """
        return all(x >= 0 for x in p.tolist()) and bool(p.sum() > 0) and self._holds(_law(p), _law(pilot))

    @abstractmethod
    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        """Return True if the distribution p is in the set around `pilot`, in exact fractions."""

    @abstractmethod
    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """Enclose a lower bound on slope . p over the set, by weak duality, close to the least value."""

    @abstractmethod
    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """Return the set as cvxpy constraints on a variable `p` that is a distribution."""


@dataclass(frozen=True)
class Box(Neighbourhood, radius=number_up_to):
    """Every distribution whose shares all differ from the pilot's by at most `radius`, in (0, 1].

    >>> Box(0.1).highest(np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.3, 0.5])).round(3)
    array([0.3, 0.3, 0.4])
    """

    radius: float

    words = "shares within {:g} of the pilot"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """Return every proportion at its lower limit, and add the remaining mass to the largest gradients first."""
        low, high = np.maximum(pilot - self.radius, 0.0), np.minimum(pilot + self.radius, 1.0)
        p = low.copy()
        remaining_mass = 1 - p.sum()
        for x in np.argsort(-gradient, kind="stable"):
            added_mass = min(remaining_mass, high[x] - low[x])
            p[x] += added_mass
            remaining_mass -= added_mass
        return np.asarray(p)

    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        return all(abs(x - y) <= Fraction(self.radius) for x, y in zip(p, pilot, strict=True))

    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """Compute t + sum_x (low_x (c_x - t)_+ - high_x (t - c_x)_+), for the slope t that exhausts the mass."""
        slopes = np.asarray(slope.midpoint)
        p, order = self.highest(-slopes, pilot), np.argsort(slopes, kind="stable")
        full = p[order] >= np.minimum(pilot + self.radius, 1.0)[order]
        price = float(slopes[order][min(int(np.argmin(full)), len(slopes) - 1)])
        center = law(pilot, slope.arithmetic)
        low, high = (center - self.radius).positive(), (center + self.radius).minimum(1.0)
        return (low * (slope - price).positive() - high * (price - slope).positive()).sum() + price

    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """Return bounds on every proportion."""
        return [p >= pilot - self.radius, p <= pilot + self.radius]


@dataclass(frozen=True)
class Contamination(Neighbourhood, share=number_up_to):
    """The distributions (1 - share) pilot + share q for any q: up to a `share` in (0, 1] of people differ [Huber]."""

    share: float

    words = "the pilot with up to {:g} of anything else"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """Return the member whose q has all its mass on the largest gradient."""
        p = (1 - self.share) * pilot
        p[int(np.argmax(gradient))] += self.share
        return np.asarray(p)

    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        return all(x >= (1 - Fraction(self.share)) * y for x, y in zip(p, pilot, strict=True))

    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """Compute (1 - share) slope . pilot, plus share times the smallest slope."""
        center = law(pilot, slope.arithmetic)
        return (1 - slope.arithmetic.of(self.share)) * (center @ slope) + slope.min() * self.share

    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """Return the constraints that every p_x is at least (1 - share) pilot_x."""
        return [p >= (1 - self.share) * pilot]


@dataclass(frozen=True)
class TotalVariationBall(Neighbourhood, radius=number_up_to):
    """Every distribution within total variation `radius` in (0, 1] of the pilot [Huber].

    >>> TotalVariationBall(0.1).highest(np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.3, 0.5])).round(3)
    array([0.3, 0.2, 0.5])
    """

    radius: float

    words = "total variation {:g} around the pilot"

    def highest(self, gradient: Array, pilot: Array) -> Array:
        """Return the pilot with `radius` of mass moved from the smallest gradients to the largest one."""
        p = pilot.copy()
        best, remaining_mass = int(np.argmax(gradient)), self.radius
        for x in np.argsort(gradient, kind="stable"):
            moved_mass = min(remaining_mass, p[x]) if gradient[x] < gradient[best] else 0.0
            p[x] -= moved_mass
            p[best] += moved_mass
            remaining_mass -= moved_mass
        return np.asarray(p)

    def _holds(self, p: list[Fraction], pilot: list[Fraction]) -> bool:
        return sum(max(x - y, Fraction(0)) for x, y in zip(p, pilot, strict=True)) <= Fraction(self.radius)

    def enclosed_least(self, slope: Enclosure, pilot: Array) -> Enclosure:
        """Compute c.pilot - (radius t + sum_x pilot_x (c_x - min c - t)_+), for the gain t that exhausts radius."""
        slopes, center = np.asarray(slope.midpoint), law(pilot, slope.arithmetic)
        gains = slopes - slopes.min()
        order = np.argsort(-gains, kind="stable")
        last = min(int(np.searchsorted(np.cumsum(pilot[order]), self.radius)), len(order) - 1)
        price = float(max(gains[order][last], 0.0))
        moved_mass = (center * (slope - slope.min() - price).positive()).sum() + slope.arithmetic.of(
            self.radius
        ) * price
        return center @ slope - moved_mass

    def expression(self, p: Any, pilot: Array) -> list[Any]:
        """Return the constraint that the excesses of p over the pilot sum to at most the radius."""
        import cvxpy as cp

        return [cp.sum(cp.pos(p - pilot)) <= self.radius]


def _law(p: Array) -> list[Fraction]:
    """Return the distribution proportional to p, in exact fractions."""
    total = exact_sum(p)
    return [Fraction(x) / total for x in p.tolist()]


class HypothesisSet(Kind, ByValue, ABC):
    """A convex set of distributions on k inputs, described by inequalities and the maximizers of linear functions."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number k of inputs."""

    @property
    @abstractmethod
    def centre(self) -> Array:
        """Some distribution in the set."""

    @abstractmethod
    def highest(self, gradient: Array) -> Array:
        """Return a distribution in the set that maximizes gradient . p."""

    @abstractmethod
    def member(self, p: Array) -> Array:
        """Return a distribution in the set, up to 1e-12 of rounding, near a p that is nearly in it."""

    def mixture(self, p: Array) -> Array | None:
        """Return weights that show that p is in the set up to rounding, for `member_near`; None if none are needed."""
        return None

    @abstractmethod
    def member_near(self, p: Array, mixture: Array | None, arithmetic: Arithmetic) -> Enclosure | None:
        """Return a distribution that is surely in the set, and near p if `mixture` is right.

        Returns None if p itself is surely in the set. Raises `Unproved` if neither is shown.
        """

    @abstractmethod
    def enclosed_least(self, slope: Enclosure) -> Enclosure:
        """Enclose a lower bound on slope . p over the set, close to the least value."""

    @abstractmethod
    def expression(self, p: Any) -> list[Any]:
        """Return the set as cvxpy constraints on a variable `p` that is a distribution."""


@dataclass(frozen=True, eq=False)
class Hull(HypothesisSet):
    """All mixtures of n distributions, the rows of `vertices`, shape (n, k).

    >>> Hull([[0.2, 0.8], [0.6, 0.4]]).highest(np.array([1.0, 0.0]))
    array([0.6, 0.4])
    """

    vertices: Any

    def __post_init__(self) -> None:
        vertices = np.atleast_2d(np.asarray(self.vertices, dtype=object))
        rows = [
            distribution(row.tolist(), f"vertex {index}", size=vertices.shape[1]) for index, row in enumerate(vertices)
        ]
        if not rows:
            raise invalid("vertices", "at least one distribution", "none")
        object.__setattr__(self, "vertices", np.stack(rows))

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return int(self.vertices.shape[1])

    @property
    def centre(self) -> Array:
        """The mean of the vertices."""
        return np.asarray(self.vertices.mean(axis=0))

    def highest(self, gradient: Array) -> Array:
        """Return the best vertex."""
        return np.asarray(self.vertices[int(np.argmax(self.vertices @ gradient))])

    def member(self, p: Array) -> Array:
        """Return the mixture nearest to p, by non-negative least squares."""
        return np.asarray(self._weights(p) @ self.vertices)

    def _weights(self, p: Array) -> Array:
        from scipy.optimize import nnls

        weights = nnls(np.vstack([self.vertices.T, np.ones(len(self.vertices))]), np.append(p, 1.0))[0]
        return np.asarray(weights / weights.sum())

    def mixture(self, p: Array) -> Array | None:
        """Return the weights (n,) of the mixture nearest to p; None if there is one vertex."""
        return None if len(self.vertices) == 1 else self._weights(p)

    def member_near(self, p: Array, mixture: Array | None, arithmetic: Arithmetic) -> Enclosure | None:
        """Return the mixture of the vertices by the given weights, for any p."""
        if mixture is None:
            if not any(np.array_equal(p, vertex) for vertex in self.vertices):
                raise Unproved("the distribution is no vertex of its set")
            return None
        weights = weights_array(mixture, (len(self.vertices),), "weights of vertices", "the vertices")
        mixture_weights = arithmetic.of(weights)
        return mixture_weights @ self._laws(arithmetic) / mixture_weights.sum()

    def enclosed_least(self, slope: Enclosure) -> Enclosure:
        """Return the least slope . p of the vertices."""
        return (self._laws(slope.arithmetic) @ slope).min()

    def _laws(self, arith: Arithmetic) -> Enclosure:
        """Return the distributions proportional to the vertices, (n, k)."""
        return arith.stack([law(vertex, arith) for vertex in self.vertices])

    def expression(self, p: Any) -> list[Any]:
        """Return equations that p is a mixture, with weights as further variables."""
        import cvxpy as cp

        weights = cp.Variable(len(self.vertices), nonneg=True)
        return [p == self.vertices.T @ weights]


@dataclass(frozen=True, eq=False)
class Around(HypothesisSet, pilot=distribution):
    """The distributions near `pilot`, shape (k,): in a `Box`, a `Contamination` or a `TotalVariationBall` around it.

    >>> from ldpopt.design import Contamination
    >>> Around([0.2, 0.8], Contamination(0.1)).highest(np.array([1.0, 0.0])).round(3)
    array([0.28, 0.72])
    """

    pilot: Any
    neighbourhood: Neighbourhood

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.neighbourhood, Neighbourhood):
            got = type(self.neighbourhood).__name__
            raise invalid("neighbourhood", "a Box, Contamination or TotalVariationBall", got)

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return len(self.pilot)

    @property
    def centre(self) -> Array:
        """The pilot."""
        return np.asarray(self.pilot)

    def highest(self, gradient: Array) -> Array:
        """Return the neighborhood's `highest`."""
        return self.neighbourhood.highest(gradient, self.pilot)

    def member(self, p: Array) -> Array:
        """Return p, moved towards the pilot until it is in the neighborhood."""
        share = 0.0
        while share < 1:
            mixture = np.maximum((1 - share) * p + share * self.pilot, 0.0)
            mixture = mixture / mixture.sum()
            if self.neighbourhood.holds(mixture, self.pilot):
                return np.asarray(mixture)
            share = max(1e-16, 2 * share)
        return np.asarray(self.pilot)

    def member_near(self, p: Array, mixture: Array | None, arithmetic: Arithmetic) -> Enclosure | None:
        """Return None if p itself is in the neighborhood, in exact fractions; else raise `Unproved`."""
        if mixture is not None or not self.neighbourhood.holds(p, self.pilot):
            raise Unproved(f"the distribution is not within {self.neighbourhood.name}")
        return None

    def enclosed_least(self, slope: Enclosure) -> Enclosure:
        """Return the neighborhood's `enclosed_least`."""
        return self.neighbourhood.enclosed_least(slope, self.pilot)

    def expression(self, p: Any) -> list[Any]:
        """Return the neighborhood's constraints."""
        return self.neighbourhood.expression(p, self.pilot)


def as_set(value: Any, name: str) -> HypothesisSet:
    """Return `value` if it is a set; a single distribution as the set that contains it alone."""
    return value if isinstance(value, HypothesisSet) else Hull(distribution(value, name)[None])
