"""Constraints in column form: sums over outputs of convex, positively homogeneous functions of the column.

A term says  sum over y of phi_c(Q[:, y]) <= cap_c  for each of its pairs c, with phi_c convex and homogeneous. Weak
duality needs only that phi_c lies above its linear supports: a multiplier gives every label vectors u with
u.q <= nu phi(q) for columns q >= 0 (`support`), and costs nu cap (`charge`). Both exist twice: in floats for those who
look for multipliers, and enclosed, from the exact parameters of the constraint, for those who prove with them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ldpopt.design.certificates.numbers import real_numbers
from ldpopt.design.certificates.unproved import Unproved
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import LdpoptError

Index = npt.NDArray[np.intp]


class Malformed(LdpoptError, ValueError):
    """A multiplier that is none: of the wrong shape, not finite, negative, or of pairs or labels that are not there."""


@dataclass(frozen=True, eq=False)
class Term(ABC):
    """One family of column constraints, each on a `left` and a `right` input, (pairs,) positions each."""

    left: Index
    right: Index

    def __len__(self) -> int:
        return len(self.left)

    @property
    @abstractmethod
    def cap(self) -> Any:
        """The cap in floats, one for all pairs or one each."""

    @property
    def conic(self) -> bool:
        """Whether a program needs cones for it."""
        return False

    @property
    def reach(self) -> float:
        """About how far apart it lets two rows be, at most 1."""
        return 1.0

    @property
    def width(self) -> float:
        """How much larger than a column's smallest entry it lets others be, relatively; 0 where it does not say."""
        return 0.0

    @property
    def farthest(self) -> float:
        """The largest ratio of two entries that it names."""
        return 1.0

    def within(self, farthest: float) -> tuple[Term, Any]:
        """The term with its ratios cut to `farthest`, and by what its multipliers then shrink for this one."""
        return self, 1.0

    def pose_split(self, q: Any) -> list[Any]:
        """As `pose`, for a matrix in two parts (`programs.labels.MatrixVariable`), in units of its rises."""
        return self.pose(q.whole)

    @abstractmethod
    def excess(self, matrix: Array) -> Array:
        """(pairs,) by how much each pair exceeds its cap at `matrix` (k, n); at most 0 where it holds."""

    @abstractmethod
    def take(self, pairs: Index) -> Self:
        """The term of these pairs alone."""

    @abstractmethod
    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """(labels, inputs) supports of the weighted term, for a multiplier as `multiplier` makes it, in floats."""

    @abstractmethod
    def charge(self, multiplier: Array) -> float:
        """What the multiplier adds to the bound, in floats."""

    @abstractmethod
    def enclosed_support(
        self, multiplier: Any, labels: int, inputs: int, arithmetic: Arithmetic
    ) -> tuple[Enclosure, Enclosure]:
        """The supports (labels, inputs), and (labels,) their sums over the inputs, formed before they can cancel.

        Raises `Malformed` for what is no multiplier. Columns are not negative, so that the lower end supports as well.
        """

    @abstractmethod
    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """What the multiplier adds to the bound. Raises `Malformed` for what is no multiplier."""

    @abstractmethod
    def pose(self, q: Any) -> list[Any]:
        """The term as cvxpy constraints on the matrix variable `q` (k, labels), in the order `multiplier` reads."""

    @abstractmethod
    def multiplier(self, posed: list[Any]) -> Array:
        """The multiplier of a solved term, from the dual values of what `pose` made."""

    @abstractmethod
    def scaled(self, values: Array, scale: float) -> Array:
        """A multiplier times `scale`."""

    def on_rows(self, rows: Array, posed: list[Any]) -> None:
        """Add to the multipliers of the rows what a term posed without its linear part owes to them."""
        return


@dataclass(frozen=True, eq=False)
class Ratio:
    """Every column lies in [m, e^epsilon m] for some m >= 0: pure LDP between all inputs, without multipliers.

    Certificates take it from the constraint itself (`ColumnConstraint.spread`).
    """

    epsilon: float

    def __len__(self) -> int:
        return 0

    @property
    def conic(self) -> bool:
        """It needs no cones."""
        return False

    @property
    def ratio(self) -> float:
        """e^epsilon in floats."""
        return float(np.exp(self.epsilon))

    @property
    def reach(self) -> float:
        """About e^epsilon - 1, at most 1."""
        return min(1.0, self.width)

    @property
    def width(self) -> float:
        """e^epsilon - 1."""
        return float(np.expm1(self.epsilon))

    @property
    def farthest(self) -> float:
        """The ratio."""
        return self.ratio

    def within(self, farthest: float) -> tuple[Ratio, Any]:
        """The smaller ratio; there are no multipliers."""
        return (self if self.ratio <= farthest else Ratio(math.log(farthest))), 1.0

    def pose_split(self, q: Any) -> list[Any]:
        """No rise above the base times e^epsilon - 1."""
        return [q.rise <= np.ones((q.shape[0], 1)) @ (self.width * q.level / q.unit * q.base)]

    def pose(self, q: Any) -> list[Any]:
        """A floor for every column, and the ceiling above it."""
        import cvxpy as cp

        k, n = q.shape
        floor = np.ones((k, 1)) @ cp.Variable((1, n), nonneg=True)
        return [q >= floor, q <= self.ratio * floor]

    def multiplier(self, posed: list[Any]) -> Array:
        """None."""
        return np.zeros((0, 0))

    def scaled(self, values: Array, scale: float) -> Array:
        """None."""
        return values

    def on_rows(self, rows: Array, posed: list[Any]) -> None:
        """Nothing."""
        return


def finite(values: Any) -> Array:
    """Finite float64, or `Malformed`."""
    try:
        return real_numbers(values, "the values of a multiplier")
    except Unproved as error:
        raise Malformed(str(error)) from None


def pick(at: Index, weight: Array, k: int) -> Any:
    """A sparse (pairs, k) matrix that picks the inputs `at`, times `weight`."""
    import scipy.sparse as sparse

    return sparse.csr_array((weight, (np.arange(len(at)), at)), shape=(len(at), k))


def all_pairs(inputs: int) -> tuple[Index, Index]:
    """Positions of every ordered pair of different inputs."""
    left, right = np.nonzero(~np.eye(inputs, dtype=bool))
    return left, right
