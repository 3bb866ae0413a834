"""The constraint that an adversary from a restricted class can hardly distinguish any two answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.base import AlphabetConstraint
from ldpopt.design.constraints.terms import all_pairs, pick
from ldpopt.design.kernel.numbers import Unproved, nonnegative_array, real_array
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.tolerances import MIN_OUTPUT_MASS
from ldpopt.privacy import Guarantee, capacity_bounded
from ldpopt.privacy.capacity import (
    Affine,
    Polynomial,
    RestrictedAlpha,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    feature_map,
)
from ldpopt.values.distribution import Array, number


@dataclass(frozen=True, eq=False)
class CapacityBounded(AlphabetConstraint):
    """The restricted divergence between any two rows is at most `bound` > 0 [CIM, Def 3].

    The adversary sees a report only through functions that are linear in its features. Merging and splitting outputs
    changes their features, so the outputs are fixed.

    - `features` : array (m,) or (m, d), one row for each output of the channel, or `privacy.Affine`,
      `privacy.Polynomial`.
    - `divergence` : `RestrictedKL()`, `RestrictedRenyi(order)`, `RestrictedAlpha(order)` or
      `RestrictedTotalVariation()`.
    - `bound` : the cap, in nats for KL and Rényi divergences.

    In the program, each pair of rows p, q has a measure r near q that no function of the class distinguishes from p.
    This is the dual of the definition [CIM, Lem 1], jointly convex in p, q and r.

    >>> cap = CapacityBounded([0, 1], RestrictedTotalVariation(), 0.5)
    >>> cap.measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= cap.bound
    True
    """

    effort = (5000.0, 2.0**40)
    takes = (RestrictedKL, RestrictedRenyi, RestrictedAlpha, RestrictedTotalVariation, Affine, Polynomial)
    features: Any
    divergence: Any
    bound: float = math.nan

    def __post_init__(self) -> None:
        if not isinstance(self.divergence, self.takes[:4]):
            raise invalid("divergence", "a restricted divergence such as RestrictedKL()", self.divergence)
        level = number(self.bound, "bound", "a positive number")
        if not level > 0:
            raise invalid("bound", "a positive number", level)
        if self._power > 1 and (self._power - 1) * level > 100:
            raise invalid("bound", "(order - 1) bound of at most 100", level)
        features = feature_map(self.features)
        if not isinstance(features, self.takes[4:]):
            raise invalid("features", "an array, Affine or Polynomial", features)
        vars(self).update(features=features, bound=level)

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the channel's restricted divergence.

        It is inf unless the channel has one output for each row of features.
        """
        if channel.shape[1] != self._count:
            return Guarantee(self.divergence.notion, np.inf, np.inf, None, True, "[CIM, Def 3]")
        return capacity_bounded(channel, self.features, self.divergence)

    def outputs(self, inputs: int) -> int:
        """Return the number of rows of the features."""
        return self._count

    def pairs(self, inputs: int) -> int:
        """Return the number of all ordered pairs."""
        return inputs * (inputs - 1)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """Build, for every ordered pair, a measure r with the moments of one row.

        The measure is near the other row.
        """
        import cvxpy as cp

        k, m = q.shape
        left, right = all_pairs(k)
        first_rows, second_rows = (pick(side, np.ones(len(side)), k) @ q for side in (right, left))
        basis = self._basis
        r = cp.Variable((len(left), m), nonneg=self._power == 1 and not self._of_variation)
        bounds = cp.Variable((len(left), m), nonneg=self._of_variation)
        moments = (r - second_rows) @ basis == 0
        caps = cp.sum(bounds, axis=1) <= np.full(len(left), self._cap)
        if self._of_variation:
            cone = bounds >= r - first_rows
        elif self._power == 1:
            cone = cp.constraints.ExpCone(-bounds, r, first_rows)
        elif self._power == 2:
            flat_parts = [cp.vec(part, order="F") for part in (bounds + first_rows, 2 * r, bounds - first_rows)]
            cone = cp.SOC(flat_parts[0], cp.vstack(flat_parts[1:]), axis=0)
        else:
            flat_parts = [cp.vec(part, order="F") for part in (bounds, first_rows, r)]
            cone = cp.constraints.PowCone3D(*flat_parts, np.full(len(left) * m, 1 / self._power))

        def read() -> Any:
            weights = np.maximum(np.asarray(caps.dual_value), 0.0)
            return self._functions(weights, -np.asarray(moments.dual_value) @ basis.T)

        return [moments, caps, cone], read

    def enclosed_support(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """Enclose the coefficients of weight (E_p h - E_q f*(h)).

        There is one function h of the class for each pair of rows.
        """
        weight, coefficients = self._checked(multiplier, shape[0])
        left, right = all_pairs(shape[0])
        h, star = self._conjugate(arithmetic.of(coefficients) @ self._basis.T, arithmetic)
        on_left, on_right = weight[:, None] * h, weight[:, None] * star
        first, second = (arithmetic.of(np.equal.outer(np.arange(shape[0]), x).astype(float)) for x in (left, right))
        return (first @ on_left - second @ on_right).T

    def enclosed_charge(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """Enclose the sum of the weights, times the cap of the f-divergence."""
        weight, _ = self._checked(multiplier, shape[0])
        return arithmetic.of(weight).sum() * self._level_of_f(arithmetic)

    def _checked(self, multiplier: Any, inputs: int) -> tuple[Array, Array]:
        """Check the weights (pairs,) and coefficients (pairs, r) of functions; raise `Unproved` for others."""
        if not isinstance(multiplier, tuple) or len(multiplier) != 2:
            raise Unproved("a multiplier of a restricted divergence is a pair of weights and coefficients")
        pairs = inputs * (inputs - 1)
        weight = nonnegative_array(multiplier[0], (pairs,), "weights of pairs")
        return weight, real_array(multiplier[1], (pairs, self._basis.shape[1]), "coefficients of functions")

    def idle(self, shape: tuple[int, int]) -> Any:
        """Return the multiplier without weight on any pair."""
        pairs = shape[0] * (shape[0] - 1)
        return np.zeros(pairs), np.zeros((pairs, self._basis.shape[1]))

    def scaled(self, multiplier: Any, scale: float) -> Any:
        """Scale the weights of the multiplier; functions do not scale with the utility."""
        return multiplier[0] * scale, multiplier[1]

    def repair(self, matrix: Array) -> Array:
        """Mix `MIN_OUTPUT_MASS` into every entry if a restricted total variation leaves an output unused.

        The definition bounds the adversary's functions only on outputs that occur.
        """
        if not self._of_variation or matrix.max(axis=0).all():
            return matrix
        return np.asarray((1 - MIN_OUTPUT_MASS * matrix.shape[1]) * matrix + MIN_OUTPUT_MASS)

    @property
    def _basis(self) -> Array:
        return np.asarray(self.features.basis(self._count))

    @property
    def _count(self) -> int:
        return int(len(self.features.features))

    @property
    def _of_variation(self) -> bool:
        return isinstance(self.divergence, RestrictedTotalVariation)

    @property
    def _power(self) -> float:
        """The order of the alpha-divergence that the program bounds, 1 for KL and total variation."""
        return float(getattr(self.divergence, "order", 1.0))

    @property
    def _cap(self) -> float:
        """The cap of sum_y q |r/q|^order, of KL or of total variation."""
        a = self._power
        if a == 1:
            return self.bound
        renyi = isinstance(self.divergence, RestrictedRenyi)
        return math.exp((a - 1) * self.bound) if renyi else 1 + a * (a - 1) * self.bound

    def _level_of_f(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the cap of sup E_p h - E_q f*(h).

        Here f(t) is t log t - t + 1, (|t|^a - 1)/(a^2 - a) or (t - 1)_+.
        """
        a, level = arithmetic.of(self._power), arithmetic.of(self.bound)
        if isinstance(self.divergence, RestrictedRenyi) and self._power > 1:
            return ((a - 1) * level).expm1() / (a * (a - 1))
        return level

    def _conjugate(self, h: Enclosure, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
        """Return h (pairs, m), moved into the domain of f* if necessary, and upper bounds on f*(h)."""
        if self._of_variation:
            # f* is the identity on [0, 1]; a constant and a smaller slope keep h in the class.
            smallest = np.asarray(h.lower).min(axis=1)
            span = np.maximum(np.asarray((h - smallest[:, None]).upper).max(axis=1), 1.0)
            h = (h - smallest[:, None]) / span[:, None]
            return h, h
        if self._power == 1:
            return h, h.expm1()
        a, size = arithmetic.of(self._power), h.abs().ends[1]
        is_zero, exponent = np.asarray(size.upper) == 0, a / (a - 1)
        power = size.square() if self._power == 2 else (arithmetic.where(is_zero, 1.0, size).log() * exponent).exp()
        factor = ((a - 1).log() * exponent).exp() / a
        return h, factor * arithmetic.where(is_zero, 0.0, power) + 1 / (a * (a - 1))

    def _functions(self, weight: Array, prices: Array) -> tuple[Array, Array]:
        """Compute the functions of the class from dual values: weight (pairs,), coefficients (pairs, r).

        Stationarity in r gives weight f'(r/q) = prices, and f' is the function. The derivative of t log t, which the
        program uses for KL, is one more than that of f.
        """
        weight = weight * (self._power * (self._power - 1) if self._power > 1 else 1.0)
        is_significant = weight > 1e-9 * max(float(weight.max(initial=0.0)), 1e-300)
        h = np.where(is_significant[:, None], prices, 0.0) / np.where(is_significant, weight, 1.0)[:, None]
        if self._power == 1 and not self._of_variation:
            h = h - 1
        return np.where(is_significant, weight, 0.0), h @ self._basis
