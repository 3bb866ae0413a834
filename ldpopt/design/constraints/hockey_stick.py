"""Hockey-stick terms: a cap on the amount by which one row exceeds a multiple of another, summed over outputs.

Pure and approximate LDP, total variation and trade-off curves are all of this form. A linear program states it with one
slack for every output and pair, and a multiplier is one number for every label and pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.design.constraints.scatter import scatter
from ldpopt.design.constraints.terms import Index, Malformed, Ratio, Term, all_pairs, finite, pick
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False)
class HockeyStick(Term):
    """sum_y (Q[left] - e^(epsilon weight) Q[right])_+ <= cap; a cap of 0 binds every column by itself.

    epsilon : one number, or (pairs,), in nats. weight, caps : (pairs,). The floats are taken as exact numbers.
    A multiplier is a (labels, pairs) array z >= 0, as nu (a - E b)_+ >= z (a - E b) whenever nu >= z, for
    E = e^(epsilon weight).
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
        """The term with smaller factors. Multipliers shrink so that factor times multiplier, the right one's, stays."""
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
        """u = z on the left input and u = -z factor on the right one, summed over pairs."""
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
        """u = z on the left input and u = -z E on the right one, which sum to z (1 - E)."""
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
        """Linear constraints, with a slack for every pair and output unless all caps are zero."""
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
        """The same for a matrix in two parts, with both sides divided by the unit of the rises."""
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
        """(labels, pairs) dual values of the first of the posed constraints."""
        if not posed:
            return np.zeros((0, 0))
        return np.asarray(np.maximum(np.asarray(posed[0].dual_value), 0.0).T)

    def scaled(self, values: Array, scale: float) -> Array:
        """The multiplier times `scale`, in every entry."""
        return values * scale


def every_pair(inputs: int, epsilon: float, delta: float) -> HockeyStick:
    """The term of (epsilon, delta)-LDP between every two inputs; at epsilon = 0 one order of each pair is enough."""
    left, right = np.triu_indices(inputs, 1) if epsilon == 0 else all_pairs(inputs)
    return HockeyStick.of(left, right, epsilon, delta)


def approximate(inputs: int, epsilon: float, delta: float) -> Term | Ratio:
    """The same, but a `Ratio` where delta = 0 makes it pure LDP."""
    return Ratio(epsilon) if delta == 0 and epsilon > 0 else every_pair(inputs, epsilon, delta)
