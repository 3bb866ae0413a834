"""Constraints in column form: sums over outputs of convex, positively homogeneous functions of the column.

A term says  sum over y of phi_c(Q[:, y]) <= cap_c  for each of its pairs c of inputs; phi_c is convex and homogeneous.
A label is an output of the program, known by its likelihood ratio. Weak duality needs only that phi_c lies above its
linear supports: a multiplier gives every label a vector u with u.q <= nu phi(q) for all columns q >= 0 (`support`), and
costs nu cap (`charge`). Both exist twice: in floats for programs that look for multipliers, and enclosed, from the
exact parameters of the constraint, for certificates that prove with them. A malformed multiplier is `Unproved`: one
of the wrong shape, not finite, negative, or of a pair or label that does not exist.

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
    """Whether it is pure LDP between all inputs, which has no pairs and no multipliers."""
    conic: ClassVar[bool] = False
    """Whether a program needs cones for it."""

    def __len__(self) -> int:
        return len(self.left)

    @property
    def cap(self) -> Any:
        """The cap in floats: one number, or (pairs,); by default there are no pairs."""
        return np.zeros(0)

    @property
    def ratio(self) -> float:
        """The largest ratio of two entries of a column; inf where the term states none."""
        return math.inf

    @property
    def tv_bound(self) -> float:
        """About how far apart, in total variation, the term lets two rows be; at most 1."""
        return 1.0

    @property
    def width(self) -> float:
        """By which share of itself the term lets a column's smallest entry be exceeded; 0 where it does not say."""
        return 0.0

    @property
    def farthest(self) -> float:
        """The largest ratio of two entries of a column that the term names."""
        return 1.0

    def within(self, farthest: float) -> tuple[Term, Any]:
        """The term with its ratios cut to `farthest`, and the factor that turns its multipliers into this one's."""
        return self, 1.0

    def pose_split(self, q: Any) -> list[Any]:
        """Like `pose`, for a matrix in two parts (`ratios.program.MatrixVariable`), in units of its rises."""
        return self.pose(q.full_matrix)

    def excess(self, matrix: Array) -> Array:
        """(pairs,) by how much `matrix` (k, n) exceeds the cap of each pair; at most 0 where it does not."""
        return np.zeros(0)

    def take(self, pairs: Index) -> Self:
        """The term of these pairs alone."""
        return self

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """(labels, inputs) supports u, in floats, for a multiplier as `multiplier` makes it."""
        return np.zeros((labels, inputs))

    def charge(self, multiplier: Array) -> float:
        """What the multiplier adds to the bound, in floats."""
        return 0.0

    @abstractmethod
    def enclosed_support(
        self, multiplier: Any, labels: int, inputs: int, arithmetic: Arithmetic
    ) -> tuple[Enclosure, Enclosure]:
        """The supports (labels, inputs), and their sums over the inputs (labels,), computed without cancellation. As
        columns are not negative, the lower ends are supports too.
        """

    @abstractmethod
    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """What the multiplier adds to the bound."""

    @abstractmethod
    def pose(self, q: Any) -> list[Any]:
        """The term as cvxpy constraints on a matrix variable `q` (k, labels), in the order that `multiplier` reads."""

    def multiplier(self, posed: list[Any]) -> Array:
        """The multiplier of a solved term, from the dual values of the constraints that `pose` made."""
        return np.zeros((0, 0))

    def scaled(self, values: Array, scale: float) -> Array:
        """A multiplier times `scale`; by default every entry of it."""
        return values * scale

    def on_rows(self, rows: Array, posed: list[Any]) -> None:
        """Add the linear part of the term to the multipliers of the rows, where it was posed without that part."""
        return


@dataclass(frozen=True, eq=False)
class Ratio(Term):
    """The entries of every column lie in [m, e^epsilon m] for some m >= 0: pure LDP between all inputs. It has no
    multipliers: certificates take epsilon from the constraint itself (`ColumnConstraint.spread`).
    """

    epsilon: float
    left: Index = field(init=False, repr=False, default_factory=lambda: np.zeros(0, dtype=np.intp))
    right: Index = field(init=False, repr=False, default_factory=lambda: np.zeros(0, dtype=np.intp))
    pure = True

    @property
    def ratio(self) -> float:
        """e^epsilon in floats."""
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
        """Zero."""
        return arithmetic.zeros((labels, inputs)), arithmetic.zeros(labels)

    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """Zero."""
        return arithmetic.zeros(())

    def within(self, farthest: float) -> tuple[Ratio, Any]:
        """The same with the smaller ratio; there are no multipliers to shrink."""
        return (self if self.ratio <= farthest else Ratio(math.log(farthest))), 1.0

    def pose_split(self, q: Any) -> list[Any]:
        """Every rise is at most e^epsilon - 1 times the base."""
        return [q.rise <= np.ones((q.shape[0], 1)) @ (self.width * q.level / q.unit * q.base)]

    def pose(self, q: Any) -> list[Any]:
        """A variable floor for every column, and e^epsilon times it as the ceiling."""
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
    """A sparse (pairs, k) matrix that picks the `inputs`, times `weight`."""
    import scipy.sparse as sparse

    return sparse.csr_array((weight, (np.arange(len(inputs)), inputs)), shape=(len(inputs), k))


def all_pairs(inputs: int) -> tuple[Index, Index]:
    """The positions of both inputs of every ordered pair, (inputs (inputs - 1),) each."""
    left, right = np.nonzero(~np.eye(inputs, dtype=bool))
    return left, right


def scatter(values: Enclosure, index: Index, size: int) -> Enclosure:
    """(size,) sums of the (m,) `values` that share an `index`; zero for an index that does not occur.

    The values of a group are added pair by pair, so that a group of n costs log2(n) roundings.

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
        even = np.flatnonzero(place % 2 == 0)
        paired = np.append(place, 0)[even + 1] % 2 == 1
        odd = np.minimum(even + 1, len(index) - 1)
        values = values[even] + values.arithmetic.where(paired, values[odd], 0.0)
        index = index[even]
    whole = values.arithmetic.concatenate([values, values.arithmetic.zeros(1)])
    table = np.full(size, len(index), dtype=np.intp)
    table[index] = np.arange(len(index))
    return whole[table]
