"""Caps on divergences between rows, as moments: `RenyiLDP`, and `ConcentratedLDP` for all orders at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint, tanh_of_half
from ldpopt.design.constraints.terms import Ratio, Term, all_pairs, pick, scatter
from ldpopt.design.kernel.numbers import Unproved, real_numbers
from ldpopt.design.registry import Parameter
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.tolerances import MINIMUM_RHO, SAME_ORDER
from ldpopt.privacy import Guarantee, renyi, zcdp
from ldpopt.privacy.loss import privacy_loss
from ldpopt.privacy.renyi import SCANNED_ORDERS, highest_rate, lowest, renyi_order
from ldpopt.values.distribution import Array, Index, between, positive_epsilon

MAX_CAP_WITH_LINEAR_PART = 3.0
"""For larger caps, the program has the power a^o b^(1-o) of psi without its linear part, whose sum is a constant."""


@dataclass(frozen=True, eq=False)
class Moment(Term):
    """The term sum_y psi(Q[left], Q[right]) <= cap, psi(a, b) = a^o b^(1-o) - o a + (o-1) b >= 0, order o > 1.

    For o = 1, psi(a, b) = a log(a/b) - a + b.

    - `epsilon` : the cap on the Rényi divergence of this order, in nats, an exact number.

    The cap on psi is then e^((o-1) epsilon) - 1, or epsilon itself for o = 1. The function psi lies above its tangent
    planes, one for each ratio t = a/b > 0. A multiplier is an array (4, cuts) with one tangent plane in each column:
    its pair, its label, t and a weight z >= 0.
    """

    left: Index
    right: Index
    order: float
    epsilon: float | Fraction
    conic = True

    @property
    def cap(self) -> float:
        """The cap in floats, the same for all pairs."""
        epsilon = float(self.epsilon)
        return epsilon if self.order == 1 else math.expm1((self.order - 1) * epsilon)

    @property
    def tv_bound(self) -> float:
        """The root of the cap, at most 1."""
        return min(1.0, math.sqrt(self.cap))

    def excess(self, matrix: Array) -> Array:
        """Compute sum_y psi - cap.

        It is inf if an output of the left input is impossible for the right one.
        """
        a, b = matrix[self.left], matrix[self.right]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factor = np.log(a / b) if self.order == 1 else (a / b) ** (self.order - 1)
            power = np.where(a > 0, a * factor, 0.0)
        shift = a - b if self.order == 1 else self.order * a - (self.order - 1) * b
        return np.asarray((power - shift).sum(axis=1) - self.cap)

    def take(self, pairs: Index) -> Moment:
        """Select the term of these pairs alone."""
        return replace(self, left=self.left[pairs], right=self.right[pairs])

    def enclosed_slopes(self, t: Array, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
        """Enclose the partial derivatives of psi at positive a/b = t.

        They satisfy psi(a, b) >= slope_a a + slope_b b.
        """
        ratio = arithmetic.of(t)
        log = ratio.log()
        if self.order == 1:
            return log, 1 - ratio
        order_less_one = arithmetic.of(Fraction(self.order) - 1)
        return (log * order_less_one).expm1() * self.order, -((log * self.order).expm1() * order_less_one)

    def support(self, multiplier: Array, labels: int, inputs: int) -> Array:
        """Sum the weighted tangent planes of each label."""
        pair, label = multiplier[:2].astype(np.intp)
        on_left, on_right = (
            np.bincount(label * inputs + side[pair], multiplier[3] * slope.midpoint, labels * inputs)
            for side, slope in zip((self.left, self.right), self.enclosed_slopes(multiplier[2], FLOAT), strict=True)
        )
        return np.asarray((on_left + on_right).reshape(labels, inputs))

    def charge(self, multiplier: Array) -> float:
        """Sum cap times the largest weight of a label over the pairs."""
        pair, label = multiplier[:2].astype(np.intp)
        weight = np.zeros((int(label.max(initial=0)) + 1, len(self)))
        np.add.at(weight, (label, pair), multiplier[3])
        return float(self.cap * weight.max(axis=0).sum())

    def enclosed_support(
        self, multiplier: Any, labels: int, inputs: int, arithmetic: Arithmetic
    ) -> tuple[Enclosure, Enclosure]:
        """Sum the weighted tangent planes of each label."""
        pair, label, t, z = self.checked(multiplier, labels)
        on_left, on_right = (arithmetic.of(z) * slope for slope in self.enclosed_slopes(t, arithmetic))
        place = np.concatenate([label * inputs + self.left[pair], label * inputs + self.right[pair]])
        supports = scatter(arithmetic.concatenate([on_left, on_right]), place, labels * inputs)
        return supports.reshape(labels, inputs), scatter(on_left + on_right, label, labels)

    def enclosed_charge(self, multiplier: Any, labels: int, arithmetic: Arithmetic) -> Enclosure:
        """Sum cap times the largest weight of a label over the pairs."""
        pair, label, _, z = self.checked(multiplier, labels)
        pairs_in_use, place = np.unique(pair, return_inverse=True)
        if not len(pairs_in_use):
            return arithmetic.zeros(())
        weight = scatter(arithmetic.of(z), place.reshape(-1) * labels + label, len(pairs_in_use) * labels)
        return weight.reshape(len(pairs_in_use), labels).max(axis=1).sum() * moment_cap(
            self.order, self.epsilon, arithmetic
        )

    def checked(self, multiplier: Any, labels: int) -> tuple[Index, Index, Array, Array]:
        """Return the pairs, labels, ratios and weights of the cuts with positive weight.

        Raises `Unproved` for a malformed multiplier.
        """
        cuts = real_numbers(multiplier, "the values of a multiplier")
        cuts = cuts if cuts.size else np.zeros((4, 0))
        if cuts.ndim != 2 or len(cuts) != 4:
            raise Unproved(f"the multiplier of a moment has shape {cuts.shape}, not (4, cuts)")
        pair, label, t, z = cuts
        for numbers, count, part in ((pair, len(self), "pair"), (label, labels, "label")):
            if not ((numbers >= 0) & (numbers < count) & (numbers == np.floor(numbers))).all():
                raise Unproved(f"the multiplier of a moment names a {part} that is not one of {count}")
        if not (t > 0).all() or not (z >= 0).all():
            raise Unproved("the multiplier of a moment has a ratio that is not positive, or a negative weight")
        is_positive = z > 0
        return pair[is_positive].astype(np.intp), label[is_positive].astype(np.intp), t[is_positive], z[is_positive]

    def pose(self, q: Any) -> list[Any]:
        """Build second-order, power or exponential cones."""
        import cvxpy as cp

        if len(self) == 0:
            return []
        k, n = q.shape
        a, b = (pick(inputs, np.ones(len(self)), k) @ q for inputs in (self.left, self.right))
        # Slack in units of the cap, so that large and small caps are equally well conditioned.
        slack = cp.Variable((len(self), n))
        caps = cp.sum(slack, axis=1) <= np.ones(len(self))
        order, cap = self.order, self.cap
        if order == 1:
            # a log(a/b) <= cap slack + a - b
            return [cp.constraints.ExpCone(-cap * slack - a + b, a, b), caps]
        if order == 2:
            # (a - b)^2 <= cap slack b: the same set as a second-order cone, which solvers know best.
            bottom, side = cp.vec(slack + b, order="F"), cp.vec(2 / np.sqrt(cap) * (a - b), order="F")
            return [cp.SOC(bottom, cp.vstack([side, cp.vec(slack - b, order="F")]), axis=0), caps]
        return self._pose_power(a, b)

    def _pose_power(self, a: Any, b: Any) -> list[Any]:
        """Build a^o b^(1-o) <= moment as a tower of second-order cones.

        Solvers handle it far better than a power cone. It represents a fraction near 1/o. The dual values of the copies
        of a and b are slopes of a tangent plane in any case.
        """
        import cvxpy as cp
        from cvxpy.utilities.power_tools import gm_constrs

        order, size = self.order, a.shape[0] * a.shape[1]
        fraction = Fraction(1 / order).limit_denominator(4096)
        first, second, slack = cp.Variable(size), cp.Variable(size, nonneg=True), cp.Variable(a.shape)
        links = [first == cp.vec(a, order="F"), second == cp.vec(b, order="F")]
        if self.cap < MAX_CAP_WITH_LINEAR_PART:
            moment, scale = self.cap * cp.vec(slack, order="F") + order * first - (order - 1) * second, 1.0
        else:
            moment, scale = cp.vec(slack, order="F"), (1 + self.cap) ** (-1 / order)
        tower = gm_constrs(scale * first, [moment, second], (fraction, 1 - fraction))
        return [*links, cp.sum(slack, axis=1) <= np.ones(len(self)), *tower]

    def multiplier(self, conditions: list[Any]) -> Array:
        """Compute the tangent plane at each cone's dual point, in the dual cone.

        It follows from the weight and the coefficient of a.
        """
        if not conditions:
            return np.zeros((4, 0))
        tiny = 1e-300
        parts = [np.asarray(value) for value in conditions[0].dual_value] if self.order in (1, 2) else []
        if self.order == 2:
            side, last = parts[1].reshape(2, -1) if parts[1].shape[0] == 2 else parts[1].T
            weight = np.maximum(parts[0].ravel() + last, tiny) / self.cap
            ratio = 1 - side / (weight * np.sqrt(self.cap))
        elif self.order == 1:
            first, second, _ = (part.ravel(order="F") for part in parts)
            weight = np.maximum(-first, tiny)
            ratio = np.exp(np.clip((first - second) / weight, -20.0, 20.0))
        else:
            slope = -np.asarray(conditions[0].dual_value)
            unit = 1 + self.cap if self.cap >= MAX_CAP_WITH_LINEAR_PART else self.cap
            weights = np.maximum(np.asarray(conditions[2].dual_value), tiny) / unit
            weight = np.tile(weights, len(slope) // len(self))
            power = slope / (weight * self.order) + (0.0 if self.cap >= MAX_CAP_WITH_LINEAR_PART else 1.0)
            ratio = np.maximum(power, tiny) ** (1 / (self.order - 1))
        label, pair = np.divmod(np.arange(len(weight)), len(self))
        largest_ratio = np.exp(min(250.0, 600 / self.order))  # The tangent plane's slopes stay finite.
        return np.stack([pair, label, np.clip(ratio, 1e-250, largest_ratio), weight])

    def scaled(self, values: Array, scale: float) -> Array:
        """Scale the weights of a multiplier (pair, label, ratio, weight)."""
        return np.asarray(values * np.array([1.0, 1.0, 1.0, scale])[:, None])

    def on_rows(self, rows: Array, conditions: list[Any]) -> None:
        """Add the linear part of psi to the multipliers of the rows, where only the power was posed."""
        if conditions and self.order not in (1, 2) and self.cap >= MAX_CAP_WITH_LINEAR_PART:
            weight = np.maximum(np.asarray(conditions[2].dual_value), 0.0) / (1 + self.cap)
            np.add.at(rows, self.left, self.order * weight)
            np.add.at(rows, self.right, -(self.order - 1) * weight)


def moment_cap(order: float, epsilon: float | Fraction, arithmetic: Arithmetic) -> Enclosure:
    """Enclose the cap e^((o-1) epsilon) - 1 on psi that a cap on a divergence implies.

    It is epsilon itself for o = 1.
    """
    exact = arithmetic.of(epsilon)
    return exact if order == 1 else (exact * arithmetic.of(Fraction(order) - 1)).expm1()


@dataclass(frozen=True)
class RenyiLDP(ColumnConstraint, order=renyi_order, epsilon=positive_epsilon):
    """The Rényi divergence of `order` in [1, inf] between any two rows is at most epsilon > 0 nats [M, Def 4].

    Order 1 bounds the KL divergence, order inf is `LocalDP(epsilon)`. In between, (order - 1) epsilon must be at
    most 500, beyond which float64 does not tell the constraint from order inf.

    >>> RenyiLDP(2.0, 0.5).measure(Channel([[0.6, 0.4], [0.4, 0.6]])).value <= 0.5
    True
    """

    order: float
    epsilon: float
    asks = (
        Parameter("renyi_order", "Order of the Rényi divergence, above 1.", "ORDER", "order"),
        Parameter("renyi", "Limit of the Rényi divergence of one order, such as 2:0.5.", "NATS", "epsilon"),
    )
    preference = 40
    private = True
    capped = "epsilon"
    effort = (60.0, 2.0**21)

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isfinite(self.order) and (self.order - 1) * self.epsilon > 500:
            raise invalid("order", "(order - 1) epsilon of at most 500, or order inf", self.order)

    @property
    def equivalent_caps(self) -> tuple[float, float] | None:
        """The pair of `LocalDP` if the order is inf."""
        return (self.epsilon, 1.0) if math.isinf(self.order) else None

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the channel's divergence of this order."""
        return renyi(channel, self.order)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """Return sqrt(epsilon/2) from KL [Pinsker], as the divergence grows with the order.

        At order inf it is tanh(epsilon/2) [GI, Prop 2].
        """
        epsilon = arithmetic.of(self.epsilon)
        return tanh_of_half(epsilon) if math.isinf(self.order) else (epsilon / 2).sqrt()

    def implies(self, other: Any) -> bool:
        """Return True for a `RenyiLDP` with order no larger and epsilon no smaller.

        The divergence grows with the order [M, Prop 9].
        """
        return isinstance(other, RenyiLDP) and other.order <= self.order and other.epsilon >= self.epsilon

    def columns(self, inputs: Sequence[Label]) -> tuple[Term, ...]:
        """List sum_y Q[x, y]^order Q[x', y]^(1 - order) <= exp((order - 1) epsilon).

        There is one sum for every ordered pair.
        """
        is_infinite = math.isinf(self.order)
        return (Ratio(self.epsilon) if is_infinite else Moment(*all_pairs(len(inputs)), self.order, self.epsilon),)

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """Return the cap on the moment of every order from 1 up to this one; None beyond."""
        return moment_cap(order, self.epsilon, arithmetic) if 1 <= order <= self.order else None


ORDER_GRID = np.concatenate([[1.0], 1 + np.geomspace(1e-3, 1e3, 121)])  # Orders that are compared first.
MIN_GRID_PEAK, MIN_SCAN_PEAK = 0.9, 0.999
"""Peaks of the grid, and of a scan between its orders, below these fractions of rho are ignored: next to them the rate
is not much higher."""


@dataclass(frozen=True)
class ConcentratedLDP(ColumnConstraint):
    """The Rényi divergence of every order a > 1 between any two rows is at most a rho nats [BS, Def 1.1].

    rho : in [1e-300, 100]. orders : the finite orders, from 1 (the KL divergence), of the first program. Fewer
    orders allow more channels, so that the proved bounds hold for all orders. Orders that a designed channel exceeds
    are added, and the design is measured by the exact supremum over all orders (`privacy.zcdp`).

    >>> ConcentratedLDP(0.5).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= 0.5
    True
    """

    rho: float
    orders: tuple[float, ...] = (1.0,)
    asks = (Parameter("rho", "Limit of zero-concentrated privacy (zCDP).", "RHO"),)
    preference = 30
    private = True
    capped, effort = "rho", (600.0, 2.0**14, 300.0, 110.0)

    def __post_init__(self) -> None:
        rho = between(self.rho, "rho", f"a number in [{MINIMUM_RHO:g}, 100]", MINIMUM_RHO, 100.0)
        orders = tuple(sorted({renyi_order(order) for order in self.orders}))
        if not orders or not np.isfinite(orders[-1]) or (orders[-1] - 1) * orders[-1] * rho > 500:
            raise invalid("orders", "at least one order a from 1 with a (a - 1) rho of at most 500", orders)
        vars(self).update(rho=rho, orders=orders)

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the channel's rho, over all orders."""
        return zcdp(channel)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """Return sqrt(rho/2), as the KL divergence is at most rho [Pinsker]."""
        return (arithmetic.of(self.rho) / 2).sqrt()

    def columns(self, inputs: Sequence[Label]) -> tuple[Term, ...]:
        """List one moment sum for each order in the program and each ordered pair."""
        pairs = all_pairs(len(inputs))
        return tuple(Moment(*pairs, order, Fraction(order) * Fraction(self.rho)) for order in self.orders)

    def implies(self, other: Any) -> bool:
        """Return True for rho no smaller, and for `RenyiLDP` with epsilon at least order * rho.

        This is [BS, Def 1.1].
        """
        if isinstance(other, RenyiLDP):
            return math.isfinite(other.order) and Fraction(other.epsilon) >= Fraction(other.order) * Fraction(self.rho)
        return isinstance(other, ConcentratedLDP) and other.rho >= self.rho

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """Return the cap on the moment of any finite order, in the program or not."""
        is_finite = 1 <= order < math.inf
        return moment_cap(order, Fraction(order) * Fraction(self.rho), arithmetic) if is_finite else None

    def tightened(self, matrix: Array) -> ConcentratedLDP | None:
        """Add one more order, the one that `matrix` (k, m) exceeds most.

        It is None if the matrix exceeds rho by more than a relative 1e-7 only at orders that are in the program.
        """
        left, right = all_pairs(len(matrix))
        if not len(left):
            return None
        used_columns = matrix[:, matrix.max(axis=0) > 1e-9]
        used_columns = used_columns / used_columns.sum(axis=1, keepdims=True)
        usable = ORDER_GRID[ORDER_GRID * (ORDER_GRID - 1) * self.rho <= 500]
        loss = privacy_loss(used_columns[left], used_columns[right])
        rates = lowest(loss, usable) / usable[:, None]
        # Every peak of every pair is examined: higher ones next to it may be at orders that are in the program already.
        padded_rates = np.pad(rates, ((1, 1), (0, 0)), constant_values=-np.inf)
        peaks = (rates >= padded_rates[:-2]) & (rates >= padded_rates[2:]) & (rates > MIN_GRID_PEAK * self.rho)
        rates_by_order: dict[float, float] = {}
        for peak in np.flatnonzero(peaks.any(axis=1)).tolist():
            bracket = float(usable[max(peak - 1, 0)]), float(usable[min(peak + 1, len(usable) - 1)])
            pairs = np.flatnonzero(peaks[peak])
            rows = loss.rows(pairs)
            scan = lowest(rows, orders := np.linspace(*bracket, SCANNED_ORDERS)) / orders[:, None]
            for pair in pairs[scan.max(axis=0) > MIN_SCAN_PEAK * self.rho].tolist():
                order, rate = highest_rate(loss.rows(np.array([pair])), *bracket)
                is_new = min(abs(order - listed_order) for listed_order in self.orders) > SAME_ORDER * (order - 1)
                if rate > self.rho * (1 + 1e-7) and is_new:
                    rates_by_order[order] = rate
        return (
            replace(self, orders=(*self.orders, max(rates_by_order, key=rates_by_order.__getitem__)))
            if rates_by_order
            else None
        )
