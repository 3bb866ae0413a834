"""Convex sets of distributions: hypotheses that are not known exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.certificates.numbers import Unproved, weights_array
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.laws import law
from ldpopt.design.utilities.neighbourhood import Neighbourhood
from ldpopt.distribution import Array, distribution
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.results import ByValue

ROUNDING = 1e-12


class HypothesisSet(Kind, ByValue, ABC):
    """A convex set of distributions on k inputs, described by inequalities and the maximisers of linear functions."""

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
        """A distribution in the set that maximises gradient . p."""

    @abstractmethod
    def member(self, p: Array) -> Array:
        """A distribution in the set, up to 1e-12 of rounding, near a p that is nearly in it."""

    @abstractmethod
    def mixture(self, p: Array) -> Array | None:
        """Weights that show that p is in the set up to rounding, for `member_near`; None where none are needed."""

    @abstractmethod
    def member_near(self, p: Array, mixture: Array | None, arithmetic: Arithmetic) -> Enclosure | None:
        """A law that is surely in the set, and near p if `mixture` is right; None where p itself is surely in the set.

        Raises `Unproved` where neither is shown.
        """

    @abstractmethod
    def enclosed_least(self, slope: Enclosure) -> Enclosure:
        """A lower bound on slope . p over the set, and nearly the least value."""

    @abstractmethod
    def expression(self, p: Any) -> list[Any]:
        """The set as cvxpy constraints on a variable `p` that is a distribution."""


@dataclass(frozen=True, eq=False)
class Hull(HypothesisSet):
    """All mixtures of n distributions, the rows of `vertices`, shape (n, k).

    >>> Hull([[0.2, 0.8], [0.6, 0.4]]).highest(np.array([1.0, 0.0]))
    array([0.6, 0.4])
    """

    vertices: Any

    def __post_init__(self) -> None:
        given = np.atleast_2d(np.asarray(self.vertices, dtype=object))
        rows = [distribution(row.tolist(), f"vertex {at}", size=given.shape[1]) for at, row in enumerate(given)]
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
        """The best vertex."""
        return np.asarray(self.vertices[int(np.argmax(self.vertices @ gradient))])

    def member(self, p: Array) -> Array:
        """The mixture nearest to p, by non-negative least squares."""
        return np.asarray(self._weights(p) @ self.vertices)

    def _weights(self, p: Array) -> Array:
        from scipy.optimize import nnls

        weights = nnls(np.vstack([self.vertices.T, np.ones(len(self.vertices))]), np.append(p, 1.0))[0]
        return np.asarray(weights / weights.sum())

    def mixture(self, p: Array) -> Array | None:
        """(n,) the weights of the mixture nearest to p; None where there is one vertex."""
        return None if len(self.vertices) == 1 else self._weights(p)

    def member_near(self, p: Array, mixture: Array | None, arithmetic: Arithmetic) -> Enclosure | None:
        """The mixture of the vertices by the given weights, whatever p is."""
        if mixture is None:
            if not any(np.array_equal(p, vertex) for vertex in self.vertices):
                raise Unproved("the distribution is no vertex of its set")
            return None
        weights = weights_array(mixture, (len(self.vertices),), "weights of vertices", "the vertices")
        mixed = arithmetic.of(weights)
        return mixed @ self._laws(arithmetic) / mixed.sum()

    def enclosed_least(self, slope: Enclosure) -> Enclosure:
        """The least slope . p of the vertices."""
        return (self._laws(slope.arithmetic) @ slope).min()

    def _laws(self, arith: Arithmetic) -> Enclosure:
        """(n, k) the laws proportional to the vertices."""
        return arith.stack([law(vertex, arith) for vertex in self.vertices])

    def expression(self, p: Any) -> list[Any]:
        """Equations that p is a mixture, with weights as further variables."""
        import cvxpy as cp

        weights = cp.Variable(len(self.vertices), nonneg=True)
        return [p == self.vertices.T @ weights]


@dataclass(frozen=True, eq=False)
class Around(HypothesisSet):
    """The distributions near `pilot`, shape (k,): in a `Box`, a `Contamination` or a `TotalVariationBall` around it.

    >>> from ldpopt.design import Contamination
    >>> Around([0.2, 0.8], Contamination(0.1)).highest(np.array([1.0, 0.0])).round(3)
    array([0.28, 0.72])
    """

    pilot: Any
    neighbourhood: Neighbourhood
    checks = (("pilot", distribution),)

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
        """The neighbourhood's `highest`."""
        return self.neighbourhood.highest(gradient, self.pilot)

    def member(self, p: Array) -> Array:
        """p, moved towards the pilot until it is in the neighbourhood."""
        share = 0.0
        while share < 1:
            drawn = np.maximum((1 - share) * p + share * self.pilot, 0.0)
            drawn = drawn / drawn.sum()
            if self.neighbourhood.holds(drawn, self.pilot):
                return np.asarray(drawn)
            share = max(1e-16, 2 * share)
        return np.asarray(self.pilot)

    def mixture(self, p: Array) -> Array | None:
        """None: the inequalities can be checked directly."""
        return None

    def member_near(self, p: Array, mixture: Array | None, arithmetic: Arithmetic) -> Enclosure | None:
        """None if p itself is in the neighbourhood, by inequalities in exact fractions; else raises `Unproved`."""
        if mixture is not None or not self.neighbourhood.holds(p, self.pilot):
            raise Unproved(f"the distribution is not within {self.neighbourhood.name}")
        return None

    def enclosed_least(self, slope: Enclosure) -> Enclosure:
        """The neighbourhood's `enclosed_least`."""
        return self.neighbourhood.enclosed_least(slope, self.pilot)

    def expression(self, p: Any) -> list[Any]:
        """The neighbourhood's constraints."""
        return self.neighbourhood.expression(p, self.pilot)


def as_set(given: Any, what: str) -> HypothesisSet:
    """`given` if it is a set; a single distribution as the set that holds it alone."""
    return given if isinstance(given, HypothesisSet) else Hull(distribution(given, what)[None])
