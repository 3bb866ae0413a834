"""Convex sets of distributions: hypotheses that are not known exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.utilities.neighbourhood import Neighbourhood
from ldpopt.distribution import Array, distribution
from ldpopt.errors import invalid

ROUNDING = 1e-12


class HypothesisSet(ABC):
    """A convex set of distributions on k inputs, known by its largest linear function and by its inequalities."""

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
        """A distribution in the set near a p that is nearly in it, up to 1e-12 of rounding."""

    @abstractmethod
    def contains(self, p: Array) -> bool:
        """Whether the distribution p is in the set, up to 1e-12 of rounding."""

    @abstractmethod
    def expression(self, p: Any) -> list[Any]:
        """The set as cvxpy constraints on a variable `p` that is a distribution."""


@dataclass(frozen=True, eq=False)
class Hull(HypothesisSet):
    """All mixtures of some distributions, the rows of `vertices`, shape (n, k). One row is one distribution.

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
        from scipy.optimize import nnls

        weights = nnls(np.vstack([self.vertices.T, np.ones(len(self.vertices))]), np.append(p, 1.0))[0]
        return np.asarray(weights / weights.sum() @ self.vertices)

    def contains(self, p: Array) -> bool:
        """Whether p is the mixture nearest to it."""
        return bool(np.abs(self.member(p) - p).max() <= ROUNDING)

    def expression(self, p: Any) -> list[Any]:
        """p is a mixture."""
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "pilot", distribution(self.pilot, "pilot"))
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
        """The neighbourhood's own."""
        return self.neighbourhood.highest(gradient, self.pilot)

    def member(self, p: Array) -> Array:
        """p, drawn towards the pilot until it is in the neighbourhood."""
        share = 0.0
        while share < 1:
            drawn = np.maximum((1 - share) * p + share * self.pilot, 0.0)
            drawn = drawn / drawn.sum()
            if self.contains(drawn):
                return np.asarray(drawn)
            share = max(1e-12, 2 * share)
        return np.asarray(self.pilot)

    def contains(self, p: Array) -> bool:
        """Whether p is in the neighbourhood."""
        return self.neighbourhood.contains(p, self.pilot, ROUNDING)

    def expression(self, p: Any) -> list[Any]:
        """The neighbourhood's own."""
        return self.neighbourhood.expression(p, self.pilot)


def as_set(given: Any, what: str) -> HypothesisSet:
    """A set as it is; a single distribution as the set of it alone."""
    return given if isinstance(given, HypothesisSet) else Hull(distribution(given, what)[None])
