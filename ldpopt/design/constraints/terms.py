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
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.scatter import scatter
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
        """As `pose`, for a matrix in two parts (`programs.labels.Split`), in units of its rises."""
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


@dataclass(frozen=True, eq=False)
class HockeyStick(Term):
    """sum_y (Q[left] - e^(epsilon weight) Q[right])_+ <= cap; a cap of 0 binds every column by itself.

    epsilon : (pairs,) or one number; weight, caps : (pairs,). All of them stand for their exact values.
    A multiplier is a (labels, pairs) array z >= 0: nu (a - E b)_+ >= z (a - E b) whenever nu >= z.
    """

    epsilon: float
    caps: Array
    weight: Array

    @classmethod
    def of(cls, left: Index, right: Index, epsilon: float, cap: float, weight: Array | None = None) -> HockeyStick:
        """One epsilon and one cap for all pairs; weights are 1 where none are given."""
        ones = np.ones(len(left))
        return cls(left, right, epsilon, cap * ones, ones if weight is None else weight)

    @property
    def cap(self) -> Array:
        """(pairs,) the caps."""
        return self.caps

    @cached_property
    def factor(self) -> Array:
        """(pairs,) e^(epsilon weight) in floats."""
        return np.asarray(np.exp(self.epsilon * self.weight))

    @property
    def reach(self) -> float:
        """The largest of e^(epsilon weight) - 1 + cap, at most 1."""
        return min(1.0, float(np.max(np.expm1(self.epsilon * self.weight) + self.caps, initial=0.0)))

    @property
    def width(self) -> float:
        """The largest of e^(epsilon weight) - 1."""
        return float(np.expm1(self.epsilon * self.weight).max(initial=0.0))

    @property
    def farthest(self) -> float:
        """The largest factor."""
        return float(self.factor.max(initial=1.0))

    def within(self, farthest: float) -> tuple[HockeyStick, Any]:
        """Smaller factors; what the right input pays, factor times multiplier, stays."""
        if self.farthest <= farthest:
            return self, 1.0
        exponent = self.epsilon * self.weight
        cut = np.minimum(exponent, math.log(farthest))
        return HockeyStick(self.left, self.right, 1.0, self.caps, cut), np.exp(cut - exponent)

    def excess(self, matrix: Array) -> Array:
        """sum_y (Q[left] - factor Q[right])_+ - cap."""
        parts = np.array_split(np.arange(len(self)), 1 + len(self) * matrix.shape[1] // 2**22)
        factor = self.factor
        sums = [
            np.maximum(matrix[self.left[c]] - factor[c, None] * matrix[self.right[c]], 0.0).sum(axis=1) for c in parts
        ]
        return np.asarray(np.concatenate(sums) - self.caps)

    def take(self, pairs: Index) -> HockeyStick:
        """The term of these pairs alone."""
        return HockeyStick(self.left[pairs], self.right[pairs], self.epsilon, self.caps[pairs], self.weight[pairs])

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """u = z on the left input and -z factor on the right one."""
        made = np.zeros((labels, inputs))
        for x in range(inputs):
            at, by = self.left == x, self.right == x
            made[:, x] = multiplier[:, at].sum(axis=1) - multiplier[:, by] @ self.factor[by]
        return made

    def charge(self, multiplier: Array) -> float:
        """sum over pairs of cap max_i z_i."""
        return float(self.caps @ multiplier.max(axis=0)) if len(self) else 0.0

    def enclosed_support(
        self, multiplier: Any, labels: int, inputs: int, arithmetic: Arithmetic
    ) -> tuple[Enclosure, Enclosure]:
        """u = z on the left input and -z E on the right one; together z (1 - E)."""
        z = self._checked(multiplier, labels)
        label, pair = np.nonzero(z)
        given = arithmetic.of(z[label, pair])
        exponent = (arithmetic.of(self.epsilon) * self.weight)[pair]
        left = scatter(given, label * inputs + self.left[pair], labels * inputs)
        right = scatter(given * exponent.exp(), label * inputs + self.right[pair], labels * inputs)
        sums = scatter(given * -exponent.expm1(), label, labels)
        return (left - right).reshape(labels, inputs), sums

    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """sum over pairs of cap max_i z_i."""
        most = self._checked(multiplier, labels).max(axis=0, initial=0.0)
        return (arithmetic.of(most) * self.caps).sum()

    def _checked(self, multiplier: Any, labels: int) -> Array:
        z = finite(multiplier)
        if not z.size and not len(self):
            return np.zeros((labels, 0))
        if z.shape != (labels, len(self)):
            raise Malformed(f"a multiplier has shape {z.shape}, not {(labels, len(self))}")
        if not (z >= 0).all():
            raise Malformed("a multiplier is negative")
        return z

    def pose(self, q: Any) -> list[Any]:
        """A slack for every output, or none where nothing may be exceeded."""
        import cvxpy as cp

        if len(self) == 0:
            return []
        k, n = q.shape
        above = pick(self.left, np.ones(len(self)), k) @ q - pick(self.right, self.factor, k) @ q
        if not self.caps.any():
            return [above <= 0]
        slack = cp.Variable((len(self), n), nonneg=True)
        return [slack >= above, cp.sum(slack, axis=1) <= self.caps]

    def pose_split(self, q: Any) -> list[Any]:
        """The same, each side divided by the unit of the rises."""
        import cvxpy as cp

        if len(self) == 0:
            return []
        k, n = q.shape
        apart = (pick(self.left, np.ones(len(self)), k) - pick(self.right, self.factor, k)) @ q.rise
        widths = np.expm1(self.epsilon * self.weight) * (q.level / q.unit)
        above = apart - widths[:, None] @ q.base
        if not self.caps.any():
            return [above <= 0]
        slack = cp.Variable((len(self), n), nonneg=True)
        return [slack >= above, cp.sum(slack, axis=1) <= self.caps / q.unit]

    def multiplier(self, posed: list[Any]) -> Array:
        """The dual values of the first constraint."""
        if not posed:
            return np.zeros((0, 0))
        return np.asarray(np.maximum(np.asarray(posed[0].dual_value), 0.0).T)

    def scaled(self, values: Array, scale: float) -> Array:
        """All of it scales."""
        return values * scale


def finite(values: Any) -> Array:
    """Finite float64, or `Malformed`."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Malformed("a multiplier is not made of numbers") from None
    if given.dtype.kind not in "fiu":
        raise Malformed("a multiplier is not made of numbers")
    made = np.array(given, dtype=np.float64)
    if not np.isfinite(made).all():
        raise Malformed("a multiplier is not finite")
    return made


def pick(at: Index, weight: Array, k: int) -> Any:
    """A sparse (pairs, k) matrix that picks the inputs `at`, times `weight`."""
    import scipy.sparse as sparse

    return sparse.csr_array((weight, (np.arange(len(at)), at)), shape=(len(at), k))


def all_pairs(inputs: int) -> tuple[Index, Index]:
    """Positions of every ordered pair of different inputs."""
    left, right = np.nonzero(~np.eye(inputs, dtype=bool))
    return left, right


def every_pair(inputs: int, epsilon: float, delta: float) -> HockeyStick:
    """(epsilon, delta) between every two inputs; at epsilon = 0 one order of each pair says it for both."""
    left, right = np.triu_indices(inputs, 1) if epsilon == 0 else all_pairs(inputs)
    return HockeyStick.of(left, right, epsilon, delta)


def approximate(inputs: int, epsilon: float, delta: float) -> Term | Ratio:
    """The same, as a ratio where delta = 0 makes it pure."""
    return Ratio(epsilon) if delta == 0 and epsilon > 0 else every_pair(inputs, epsilon, delta)
