"""Caps on the excess of one row over a multiple of another, summed over outputs, as terms and constraints.

`TotalVariation`, `ApproximateLDP` and `TradeOff` are of this form, and `LocalDP` along a graph. A linear program has
one slack for every output and pair, and a multiplier is one number for every label and pair.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import EPSILON, ColumnConstraint, tanh_of_half
from ldpopt.design.constraints.terms import Ratio, Term, all_pairs, pick, scatter
from ldpopt.design.kernel.numbers import real_numbers, require
from ldpopt.design.registry import Parameter
from ldpopt.design.work import Work, count_distinct_rows, pairwise_work
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON
from ldpopt.privacy import Guarantee, TradeOffCurve, hockey_stick, total_variation
from ldpopt.values.distribution import Array, Index, nonnegative, unit_interval


@dataclass(frozen=True, eq=False)
class HockeyStick(Term):
    """The term sum_y (Q[left] - e^(epsilon weight) Q[right])_+ <= cap; a cap of 0 binds every column by itself.

    - `epsilon` : one number, or (pairs,), in nats.
    - `weight`, `caps` : (pairs,). The floats represent exact numbers.

    A multiplier is a (labels, pairs) array z >= 0. Let E = e^(epsilon weight). Then nu (a - E b)_+ >= z (a - E b)
    whenever nu >= z.
    """

    left: Index
    right: Index
    epsilon: float
    caps: Array
    weight: Array

    @classmethod
    def from_pairs(
        cls, left: Index, right: Index, epsilon: float, cap: float, weight: Array | None = None
    ) -> HockeyStick:
        """Build the term of one epsilon and one cap for all pairs; the default weights are 1."""
        ones = np.ones(len(left))
        return cls(left, right, epsilon, cap * ones, ones if weight is None else weight)

    @property
    def cap(self) -> Array:
        """The caps, (pairs,)."""
        return self.caps

    @cached_property
    def factor(self) -> Array:
        """The factors e^(epsilon weight) in floats, (pairs,)."""
        return np.asarray(np.exp(self.epsilon * self.weight))

    @property
    def tv_bound(self) -> float:
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

    def limit_ratio(self, farthest: float) -> tuple[HockeyStick, Any]:
        """Limit the factors of the term.

        Multipliers shrink so that the product of the factor and the multiplier of the right input remains.
        """
        if self.farthest <= farthest:
            return self, 1.0
        exponent = self.epsilon * self.weight
        capped_exponent = np.minimum(exponent, math.log(farthest))
        return HockeyStick(self.left, self.right, 1.0, self.caps, capped_exponent), np.exp(capped_exponent - exponent)

    def excess(self, matrix: Array) -> Array:
        """Compute sum_y (Q[left] - factor Q[right])_+ - cap."""
        parts = np.array_split(np.arange(len(self)), 1 + len(self) * matrix.shape[1] // 2**22)
        factor = self.factor
        sums = [
            np.maximum(matrix[self.left[c]] - factor[c, None] * matrix[self.right[c]], 0.0).sum(axis=1) for c in parts
        ]
        return np.asarray(np.concatenate(sums) - self.caps)

    def take(self, pairs: Index) -> HockeyStick:
        """Select the term of these pairs alone."""
        return HockeyStick(self.left[pairs], self.right[pairs], self.epsilon, self.caps[pairs], self.weight[pairs])

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """Compute u = z on the left input and u = -z factor on the right one, summed over pairs."""
        supports = np.zeros((labels, inputs))
        for x in range(inputs):
            on_left, on_right = self.left == x, self.right == x
            supports[:, x] = multiplier[:, on_left].sum(axis=1) - multiplier[:, on_right] @ self.factor[on_right]
        return supports

    def charge(self, multiplier: Array) -> float:
        """Sum cap max_i z_i over the pairs."""
        return float(self.caps @ multiplier.max(axis=0)) if len(self) else 0.0

    def enclosed_support(
        self, multiplier: Any, labels: int, inputs: int, arithmetic: Arithmetic
    ) -> tuple[Enclosure, Enclosure]:
        """Enclose u = z on the left input and u = -z E on the right one, which sum to z (1 - E)."""
        multipliers = self._checked(multiplier, labels)
        label, pair = np.nonzero(multipliers)
        values = arithmetic.of(multipliers[label, pair])
        exponent = (arithmetic.of(self.epsilon) * self.weight)[pair]
        left = scatter(values, label * inputs + self.left[pair], labels * inputs)
        right = scatter(values * exponent.exp(), label * inputs + self.right[pair], labels * inputs)
        sums = scatter(values * -exponent.expm1(), label, labels)
        return (left - right).reshape(labels, inputs), sums

    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """Sum cap max_i z_i over the pairs."""
        largest = self._checked(multiplier, labels).max(axis=0, initial=0.0)
        return (arithmetic.of(largest) * self.caps).sum()

    def _checked(self, multiplier: Any, labels: int) -> Array:
        z = real_numbers(multiplier, "the values of a multiplier")
        if not z.size and not len(self):
            return np.zeros((labels, 0))
        require(z.shape == (labels, len(self)), f"a multiplier has shape {z.shape}, not {(labels, len(self))}")
        require((z >= 0).all(), "a multiplier is negative")
        return z

    def pose(self, q: Any) -> list[Any]:
        """Build linear constraints, with a slack per pair and output unless all caps are zero."""
        return self._limit_positive_parts(self._differences(q.shape[0]) @ q, self.caps) if len(self) else []

    def pose_split(self, q: Any) -> list[Any]:
        """Build the same for a matrix in two parts, divided by the unit of the rises."""
        if len(self) == 0:
            return []
        widths = np.expm1(self.epsilon * self.weight) * (q.level / q.unit)
        return self._limit_positive_parts(
            self._differences(q.shape[0]) @ q.rise - widths[:, None] @ q.base, self.caps / q.unit
        )

    def _differences(self, k: int) -> Any:
        """Build the sparse (pairs, k) matrix of Q[left] - factor Q[right]."""
        return pick(self.left, np.ones(len(self)), k) - pick(self.right, self.factor, k)

    def _limit_positive_parts(self, excess: Any, caps: Array) -> list[Any]:
        """Build constraints that the positive parts of `excess` (pairs, labels) sum to at most `caps`."""
        import cvxpy as cp

        if not caps.any():
            return [excess <= 0]
        slack = cp.Variable(excess.shape, nonneg=True)
        return [slack >= excess, cp.sum(slack, axis=1) <= caps]

    def multiplier(self, conditions: list[Any]) -> Array:
        """Read (labels, pairs) dual values of the first of the program's constraints."""
        return np.maximum(np.asarray(conditions[0].dual_value), 0.0).T if conditions else np.zeros((0, 0))


def every_pair(inputs: int, epsilon: float, delta: float) -> HockeyStick:
    """Build the term of (epsilon, delta)-LDP between every two inputs.

    At epsilon = 0 one order of each pair is enough.
    """
    left, right = np.triu_indices(inputs, 1) if epsilon == 0 else all_pairs(inputs)
    return HockeyStick.from_pairs(left, right, epsilon, delta)


def approximate(inputs: int, epsilon: float, delta: float) -> Term:
    """Build the same, but a `Ratio` where delta = 0 makes it pure LDP."""
    return Ratio(epsilon) if delta == 0 and epsilon > 0 else every_pair(inputs, epsilon, delta)


class Excesses(ColumnConstraint):
    """Caps delta on sum_y (Q[x, y] - e^epsilon Q[x', y])_+ between all ordered pairs, at several `levels` epsilon."""

    effort = (30.0, 2.0**21)

    @property
    @abstractmethod
    def levels(self) -> tuple[tuple[float, float], ...]:
        """The pairs (epsilon, delta); delta is the bound."""

    @property
    def equivalent_caps(self) -> tuple[float, float] | None:
        """The pair (epsilon, eta) if every level is `LocalDP` (delta = 0) or `TotalVariation` (epsilon = 0)."""
        if any(epsilon > 0 and delta > 0 for epsilon, delta in self.levels):
            return None
        return self._pure, min((delta for epsilon, delta in self.levels if epsilon == 0), default=1.0)

    @property
    def _pure(self) -> float:
        """The smallest epsilon with delta = 0; inf if there is none."""
        return min((epsilon for epsilon, delta in self.levels if delta == 0 < epsilon), default=math.inf)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """Return the smallest delta + (1 - delta) tanh(epsilon/2) over the levels [GI, eq. 7]."""
        smallest = arithmetic.of(1.0)
        for epsilon, level_delta in self.levels:
            delta = arithmetic.of(level_delta)
            # At epsilon = 0 rounding must not add to delta.
            cap = delta + (1 - delta) * tanh_of_half(arithmetic.of(epsilon)) if epsilon > 0 else delta
            smallest = smallest.minimum(cap)
        return smallest

    def centred(self) -> Excesses:
        """Return the constraint with half of the cap, if a field is the cap."""
        return replace(cast(Any, self), **{self.capped: self.bound / 2}) if self.capped else self

    def columns(self, inputs: Sequence[Label]) -> tuple[Term, ...]:
        """List one hockey-stick sum for each level and ordered pair.

        If delta = 0 < epsilon, these are ratios within a box.
        """
        return tuple(approximate(len(inputs), epsilon, delta) for epsilon, delta in self.levels)

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """Return the smallest epsilon with delta = 0; None if there is none."""
        return arithmetic.of(self._pure) if math.isfinite(self._pure) else None

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """Return the smallest delta with an epsilon of at most `reach`.

        A larger ratio only lowers the excess.
        """
        caps = [delta for epsilon, delta in self.levels if epsilon <= reach]
        return arithmetic.of(min(caps)) if caps else None


@dataclass(frozen=True)
class TotalVariation(Excesses, eta=unit_interval):
    """Total variation: sum_y |Q[x, y] - Q[x', y]| / 2 <= eta for any two inputs, eta in [0, 1] [GI, Def 7].

    >>> TotalVariation(0.4).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= TotalVariation(0.41).bound
    True
    """

    eta: float
    capped = "eta"
    asks = (Parameter("eta", "Cap on the total variation, in [0, 1].", "ETA"),)
    preference = 50

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """The single level (0, eta)."""
        return ((0.0, self.eta),)

    def work(self, channel: Channel) -> Work:
        """Bound the work to compare pairs of different rows."""
        return Work.on(channel.matrix.size, 10.0).in_floats + pairwise_work(
            count_distinct_rows(channel.matrix), channel.shape[1], *self.effort
        )

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the largest total variation between two rows, the Dobrushin coefficient."""
        return total_variation(channel)


@dataclass(frozen=True)
class ApproximateLDP(Excesses, epsilon=nonnegative, delta=unit_interval):
    """Approximate LDP: sum_y (Q[x, y] - exp(epsilon) Q[x', y])_+ <= delta for all ordered pairs of inputs [GI, Def 1].

    (a)_+ is max(a, 0), and the sum is called the hockey-stick divergence.

    - `epsilon` : nats, from 0 (then this is `TotalVariation(delta)`) to `tolerances.MAXIMUM_EPSILON`.
    - `delta` : in [0, 1]; at 0 this is `LocalDP(epsilon)`.

    >>> ApproximateLDP(1.0, 0.01).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value
    0.0
    """

    epsilon: float
    delta: float
    capped = "delta"
    asks = (EPSILON, Parameter("delta", "Delta of (epsilon, delta)-LDP, in (0, 1].", "DELTA"))
    preference = 20
    private = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon > MAXIMUM_EPSILON:
            raise invalid("epsilon", f"at most {MAXIMUM_EPSILON:g} nats", self.epsilon)

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """The single level (epsilon, delta)."""
        return ((self.epsilon, self.delta),)

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the channel's delta at this epsilon."""
        return hockey_stick(channel, self.epsilon)


@dataclass(frozen=True)
class TradeOff(Excesses):
    """A trade-off constraint: T(Q[x], Q[x']) >= curve for all pairs of inputs, for a `privacy.TradeOffCurve` [DRS, Def
    2.2].

    T is the trade-off curve of two rows: the least error of the second kind for each error of the first. Every segment
    of the given curve is a line that is equivalent to (epsilon_i, delta_i)-LDP [DRS, Prop 2.12]. The measure is the
    largest excess of the channel's delta at epsilon_i over delta_i, which must be 0. The constraint is on all ordered
    pairs, so that a curve that is not its own inverse also requires its inverse.

    >>> curve = TradeOffCurve.of_pair([0.75, 0.25], [0.25, 0.75])
    >>> [(round(e, 4), d) for e, d in TradeOff(curve).levels]
    [(1.0986, 0.0)]
    """

    curve: TradeOffCurve
    bound = 0.0  # No line may be exceeded.

    def __post_init__(self) -> None:
        if not isinstance(self.curve, TradeOffCurve):
            raise invalid("curve", "a TradeOffCurve", type(self.curve).__name__)

    @cached_property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """The (epsilon, delta) of the lines that no other line implies; delta falls with epsilon."""
        a, b = self.curve.knots.T
        # Beyond the last knot the curve is flat at 0, which every pair meets.
        slopes = -np.diff(b) / np.diff(a)
        heights = b[:-1] + slopes * a[:-1]
        lines = set()
        for slope, height in zip(slopes.tolist(), heights.tolist(), strict=True):
            if slope > 0:
                # A line flatter than -1 says the same of the pair in the other order, where it is steeper.
                epsilon, delta = abs(math.log(slope)), 1 - (height if slope >= 1 else height / slope)
                lines.add((epsilon if epsilon > 1e-12 else 0.0, delta if delta > 1e-12 else 0.0))
        kept_levels: list[tuple[float, float]] = []
        for epsilon, delta in sorted(lines):
            if kept_levels and epsilon - kept_levels[-1][0] <= 1e-12 * (1 + epsilon):
                # Only rounding distinguishes a line from its mirror image in a symmetric curve.
                kept_levels[-1] = (kept_levels[-1][0], min(delta, kept_levels[-1][1]))
            elif not kept_levels or delta < kept_levels[-1][1]:
                kept_levels.append((epsilon, delta))
        return tuple(kept_levels)

    def work(self, channel: Channel) -> Work:
        """Bound the work to compare all pairs once for each line of the curve."""
        one_line = super().work(channel)
        return replace(one_line, float_operations=one_line.float_operations * max(len(self.levels), 1))

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the largest excess of the channel's delta over the curve's lines."""
        worst = max((hockey_stick(channel, e).value - d for e, d in self.levels), default=0.0)
        return Guarantee("trade_off", max(worst, 0.0), 0.0, None, False, "[DRS, Prop 2.12]")
