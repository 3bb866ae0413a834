"""Constraints in column form: sums over outputs of convex, positively homogeneous functions of the column.

A term states  sum over y of phi_c(Q[:, y]) <= cap_c  for each of its pairs c of inputs; phi_c is convex and
homogeneous. A label is an output of the program, identified by its likelihood ratio. Weak duality needs only that phi_c
lies above its linear supports. A multiplier gives every label a vector u with u.q <= nu phi(q) for all columns q >= 0
(`support`), and costs nu cap (`charge`). Both exist twice: in floats for programs that search multipliers, and
enclosed, from the exact parameters of the constraint, for certificates that prove with them. A malformed multiplier is
`Unproved`: one of the wrong shape, not finite, negative, or of a pair or label that does not exist.

A term is pure (`Ratio`), conic (`moment.Moment`) or neither (`hockey_stick.HockeyStick`); `ByKind` sorts them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array, Index


class Term(ABC):
    """One family of column constraints, each on a pair of inputs: `left` and `right`, (pairs,) positions each."""

    left: Index
    right: Index
    pure: ClassVar[bool] = False
    """True for pure LDP between all inputs, which has no pairs and no multipliers."""
    conic: ClassVar[bool] = False
    """True if a program needs cones for it."""

    def __len__(self) -> int:
        return len(self.left)

    @property
    def cap(self) -> Any:
        """The cap in floats: one number, or (pairs,); empty by default."""
        return np.zeros(0)

    @property
    def ratio(self) -> float:
        """The largest ratio of two entries of a column; inf if the term states none."""
        return math.inf

    @property
    def tv_bound(self) -> float:
        """An approximate bound on the total variation of two rows; at most 1."""
        return 1.0

    @property
    def width(self) -> float:
        """The relative limit on the excess of an entry over its column's smallest entry; 0 without a limit."""
        return 0.0

    @property
    def farthest(self) -> float:
        """The largest ratio of two entries of a column that the term names."""
        return 1.0

    def limit_ratio(self, farthest: float) -> tuple[Term, Any]:
        """Limit the ratios of the term to `farthest`.

        Also returns the factor that turns its multipliers into this one's.
        """
        return self, 1.0

    def pose_split(self, q: Any) -> list[Any]:
        """Build `pose` for a matrix in two parts (`ratios.program.MatrixVariable`).

        The units are those of its rises.
        """
        return self.pose(q.whole)

    def excess(self, matrix: Array) -> Array:
        """Compute (pairs,) the excess of `matrix` (k, n) over the cap of each pair.

        It is at most 0 if the matrix meets the cap.
        """
        return np.zeros(0)

    def take(self, pairs: Index) -> Self:
        """Select the term of these pairs alone."""
        return self

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """Compute (labels, inputs) supports u, in floats, for a multiplier from `multiplier`."""
        return np.zeros((labels, inputs))

    def charge(self, multiplier: Array) -> float:
        """Compute the multiplier's contribution to the bound, in floats."""
        return 0.0

    @abstractmethod
    def enclosed_support(
        self, multiplier: Any, labels: int, inputs: int, arithmetic: Arithmetic
    ) -> tuple[Enclosure, Enclosure]:
        """Enclose the supports (labels, inputs), and their sums over the inputs (labels,).

        They are computed without cancellation. As columns are not negative, the lower bounds are supports too.
        """

    @abstractmethod
    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the multiplier's contribution to the bound."""

    @abstractmethod
    def pose(self, q: Any) -> list[Any]:
        """Build the term as cvxpy constraints on a matrix variable `q` (k, labels).

        Their order is that which `multiplier` reads.
        """

    def multiplier(self, conditions: list[Any]) -> Array:
        """Read the multiplier of a solved term from the dual values of the constraints of `pose`."""
        return np.zeros((0, 0))

    def scaled(self, values: Array, scale: float) -> Array:
        """Multiply a multiplier by `scale`; by default every entry of it."""
        return values * scale

    def on_rows(self, rows: Array, conditions: list[Any]) -> None:
        """Add the linear part of the term to the multipliers of the rows, if `pose` omits it."""
        return


@dataclass(frozen=True, eq=False)
class Ratio(Term):
    """Pure LDP between all inputs: the entries of every column lie in [m, e^epsilon m] for some m >= 0.

    It has no multipliers: certificates use epsilon from the constraint itself (`ColumnConstraint.spread`).
    """

    epsilon: float
    left: Index = field(init=False, repr=False, default_factory=lambda: np.zeros(0, dtype=np.intp))
    right: Index = field(init=False, repr=False, default_factory=lambda: np.zeros(0, dtype=np.intp))
    pure = True

    @property
    def ratio(self) -> float:
        """The float e^epsilon."""
        return float(np.exp(self.epsilon))

    @property
    def tv_bound(self) -> float:
        """e^epsilon - 1, at most 1."""
        return min(1.0, self.width)

    @property
    def width(self) -> float:
        """e^epsilon - 1."""
        return float(np.expm1(self.epsilon))

    @property
    def farthest(self) -> float:
        """The ratio."""
        return self.ratio

    def enclosed_support(
        self, multiplier: Any, labels: int, inputs: int, arithmetic: Arithmetic
    ) -> tuple[Enclosure, Enclosure]:
        """Return zero."""
        return arithmetic.zeros((labels, inputs)), arithmetic.zeros(labels)

    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """Return zero."""
        return arithmetic.zeros(())

    def limit_ratio(self, farthest: float) -> tuple[Ratio, Any]:
        """Return the term with the smaller ratio; it has no multipliers to shrink."""
        return (self if self.ratio <= farthest else Ratio(math.log(farthest))), 1.0

    def pose_split(self, q: Any) -> list[Any]:
        """Build the constraint that every rise is at most e^epsilon - 1 times the base."""
        return [q.rise <= np.ones((q.shape[0], 1)) @ (self.width * q.level / q.unit * q.base)]

    def pose(self, q: Any) -> list[Any]:
        """Build a variable floor for every column, and e^epsilon times it as the ceiling."""
        import cvxpy as cp

        k, n = q.shape
        floor = np.ones((k, 1)) @ cp.Variable((1, n), nonneg=True)
        return [q >= floor, q <= self.ratio * floor]


class ByKind:
    """Terms by kind: the least `ratio` of pure LDP, and the hockey sticks and moments with their positions."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.ratio = min((term.ratio for term in terms), default=math.inf)
        self.sticks: list[tuple[int, Any]] = [(i, t) for i, t in enumerate(terms) if not t.pure and not t.conic]
        self.moments: list[tuple[int, Any]] = [(i, t) for i, t in enumerate(terms) if t.conic]


def pick(inputs: Index, weight: Array, k: int) -> Any:
    """Build a sparse (pairs, k) matrix that picks the `inputs`, times `weight`."""
    import scipy.sparse as sparse

    return sparse.csr_array((weight, (np.arange(len(inputs)), inputs)), shape=(len(inputs), k))


def all_pairs(inputs: int) -> tuple[Index, Index]:
    """List the positions of both inputs of every ordered pair, (inputs (inputs - 1),) each."""
    left, right = np.nonzero(~np.eye(inputs, dtype=bool))
    return left, right


def scatter(values: Enclosure, index: Index, size: int) -> Enclosure:
    """Sum the (m,) `values` that share an `index` into (size,) sums.

    The sum is zero for an index that does not occur. The values of a group are added pair by pair, so that a group of n
    costs log2(n) roundings.

    >>> from ldpopt.numbers.enclosures import FLOAT
    >>> scatter(FLOAT.of([1.0, 2.0, 4.0]), np.array([2, 0, 2]), 3).lower
    array([2., 0., 5.])
    """
    order = np.argsort(index, kind="stable")
    values, index = values[order], np.asarray(index)[order]
    while True:
        first = np.flatnonzero(np.diff(index, prepend=-1) != 0)
        if len(first) == len(index):
            break
        place = np.arange(len(index)) - np.repeat(first, np.diff(np.append(first, len(index))))
        even_positions = np.flatnonzero(place % 2 == 0)
        has_partner = np.append(place, 0)[even_positions + 1] % 2 == 1
        odd_positions = np.minimum(even_positions + 1, len(index) - 1)
        values = values[even_positions] + values.arithmetic.where(has_partner, values[odd_positions], 0.0)
        index = index[even_positions]
    padded_values = values.arithmetic.concatenate([values, values.arithmetic.zeros(1)])
    table = np.full(size, len(index), dtype=np.intp)
    table[index] = np.arange(len(index))
    return padded_values[table]
