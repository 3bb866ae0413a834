"""Constraints in column form: sums over outputs of convex, positively homogeneous functions of the column.

A term says  sum over y of phi_c(Q[:, y]) <= cap_c  for each of its pairs c, with phi_c convex and homogeneous. Weak
duality needs only that phi_c lies above its linear supports: `support` turns a multiplier for every label into
vectors u with u.q <= nu phi(q), and `charge` is the nu cap that they cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array

Index = npt.NDArray[np.intp]


class Term(Protocol):
    """One family of column constraints, each on a `left` and a `right` input."""

    @property
    def left(self) -> Index:
        """(pairs,) positions of the first inputs."""
        ...

    @property
    def right(self) -> Index:
        """(pairs,) positions of the second inputs."""
        ...

    @property
    def cap(self) -> Any:
        """The cap, one for all pairs or one each."""
        ...

    def __len__(self) -> int:
        """The number of pairs."""
        ...

    def excess(self, matrix: Array) -> Array:
        """By how much each pair exceeds its cap at `matrix` (k, n); at most 0 where it holds."""
        ...

    def take(self, pairs: Index) -> Term:
        """The term of these pairs alone."""
        ...

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """(labels, inputs) supports of the weighted term, for a multiplier as `program` makes it."""
        ...

    def charge(self, multiplier: Array) -> float:
        """What the multiplier adds to the bound."""
        ...


@dataclass(frozen=True, eq=False)
class Ratio:
    """Every column lies in [m, ratio m] for some m >= 0: pure LDP between all inputs, without multipliers."""

    ratio: float

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, eq=False)
class HockeyStick:
    """sum_y (Q[left] - factor Q[right])_+ <= cap, arrays of shape (pairs,); a cap of 0 binds every column by itself.

    A multiplier is a (labels, pairs) array z >= 0: nu (a - E b)_+ >= z (a - E b) whenever nu >= z.
    """

    left: Index
    right: Index
    factor: Array
    cap: Array

    def __len__(self) -> int:
        return len(self.left)

    def excess(self, matrix: Array) -> Array:
        """sum_y (Q[left] - factor Q[right])_+ - cap."""
        parts = np.array_split(np.arange(len(self)), 1 + len(self) * matrix.shape[1] // 2**22)
        sums = [
            np.maximum(matrix[self.left[c]] - self.factor[c, None] * matrix[self.right[c]], 0.0).sum(axis=1)
            for c in parts
        ]
        return np.asarray(np.concatenate(sums) - self.cap)

    def take(self, pairs: Index) -> HockeyStick:
        """The term of these pairs alone."""
        return HockeyStick(self.left[pairs], self.right[pairs], self.factor[pairs], self.cap[pairs])

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """u = z on the left input and -z factor on the right one."""
        z = np.maximum(multiplier, 0.0)
        return _scatter(z, self.left, inputs) - _scatter(z * self.factor, self.right, inputs)

    def charge(self, multiplier: Array) -> float:
        """sum over pairs of cap max_i z_i."""
        return float(self.cap @ np.maximum(multiplier, 0.0).max(axis=0)) if len(self) else 0.0


@dataclass(frozen=True, eq=False)
class Moment:
    """sum_y psi(Q[left], Q[right]) <= cap, for psi(a, b) = a^o b^(1-o) - o a + (o-1) b >= 0, order o > 1.

    With o = 1, psi(a, b) = a log(a/b) - a + b. It lies above its tangent planes, one for each ratio t = a/b > 0:
    a multiplier is an array (4, cuts) of pair, label, t and weight z >= 0.
    """

    left: Index
    right: Index
    order: float
    cap: float

    def __len__(self) -> int:
        return len(self.left)

    def excess(self, matrix: Array) -> Array:
        """sum_y psi - cap; inf where an output of the left input is impossible for the right one."""
        a, b = matrix[self.left], matrix[self.right]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.order == 1:
                power = np.where(a > 0, a * np.log(a / b), 0.0)
            else:
                power = np.where(a > 0, a * (a / b) ** (self.order - 1), 0.0)
        shift = a - b if self.order == 1 else self.order * a - (self.order - 1) * b
        return np.asarray((power - shift).sum(axis=1) - self.cap)

    def take(self, pairs: Index) -> Moment:
        """The term of these pairs alone."""
        return replace(self, left=self.left[pairs], right=self.right[pairs])

    def slopes(self, t: Array) -> tuple[Array, Array]:
        """The partial derivatives of psi at a/b = t: psi(a, b) >= slope_a a + slope_b b."""
        if self.order == 1:
            return np.log(t), 1 - t
        log = np.log(t)
        return self.order * np.expm1((self.order - 1) * log), -(self.order - 1) * np.expm1(self.order * log)

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """The weighted sum of the tangent planes of each label."""
        pair, label = multiplier[:2].astype(np.intp)
        on_left, on_right = self.slopes(multiplier[2])
        z = np.maximum(multiplier[3], 0.0)
        total = np.bincount(label * inputs + self.left[pair], z * on_left, labels * inputs)
        total += np.bincount(label * inputs + self.right[pair], z * on_right, labels * inputs)
        return np.asarray(total.reshape(labels, inputs))

    def charge(self, multiplier: Array) -> float:
        """sum over pairs of cap max over labels of the label's weight."""
        if not multiplier.size:
            return 0.0
        pair, label = multiplier[:2].astype(np.intp)
        weight = np.zeros((int(label.max()) + 1, len(self)))
        np.add.at(weight, (label, pair), np.maximum(multiplier[3], 0.0))
        return float(self.cap * weight.max(axis=0).sum())


def _scatter(values: Array, at: Index, inputs: int) -> Array:
    """(n, inputs) sums of the columns of `values` by input."""
    n = len(values)
    flat = at[None, :] + inputs * np.arange(n)[:, None]
    return np.asarray(np.bincount(flat.ravel(), values.ravel(), n * inputs).reshape(n, inputs), dtype=np.float64)


def all_pairs(inputs: int) -> tuple[Index, Index]:
    """Positions of every ordered pair of different inputs."""
    left, right = np.nonzero(~np.eye(inputs, dtype=bool))
    return left, right


def every_pair(inputs: int, epsilon: float, delta: float) -> HockeyStick:
    """(epsilon, delta) between every two inputs; at epsilon = 0 one order of each pair says it for both."""
    left, right = np.triu_indices(inputs, 1) if epsilon == 0 else all_pairs(inputs)
    count = len(left)
    return HockeyStick(left, right, np.full(count, math.exp(epsilon)), np.full(count, delta))
