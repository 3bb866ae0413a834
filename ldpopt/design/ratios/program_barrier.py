"""The common part of the interior-point methods on columns: the iterate, its residuals, and a Newton step.

Columns q_i >= 0 of labels i gain c_i . q_i. At prices nu of pairs of inputs a column pays, each in units of the cap,

    psi(a, b)                          under a divergence between rows (`Moment`),
    u >= 0, u >= (a - factor b)        under a cap on the excess of one row over another (`HockeyStick`),

and under pure LDP (`Ratio`) it lies between m and e^epsilon m. A side is an inequality of the program. The slacks u and
m, and the prices of all sides, are eliminated for each label. So a step has one block (k, k) per label, and two numbers
per label and pair.

The module also has the constrained pairs of inputs, their costs with derivatives, and the selection of pairs for a
program.

Interior-point programs take all pairs of all terms in one list (`Pairs`). Cone programs start with a few, and add those
that bind in every round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.problems.reduction import Pair
from ldpopt.numbers.tolerances import LATE_GAP, SERIES_RATIO
from ldpopt.values.distribution import Array, Index

BOUNDARY_STEP_FRACTION = 0.99  # The fraction of the distance to the boundary per step
MAX_RESIDUAL_PER_GAP = 10.0  # Below `LATE_GAP` the gap waits for smaller residuals
MAX_RESIDUAL_GROWTH = 3.0  # A step that raises the residuals by more is halved


@dataclass(frozen=True, eq=False)
class PairPrices:
    """The columns (n, k), the row multipliers (k,), the prices (pairs,) of every term, slacks (n,) and the last gap.

    The slack of a label is the price of its best column less its value, per unit of the column's sum.
    """

    columns: Array
    rows: Array
    weights: tuple[Array, ...]
    slack: Array
    gap: float


class Iterate(ABC):
    """A point of a primal-dual method: `gap` is the sum of `count` products of sides and prices.

    - `dual_residual`, `cap_violation` : the largest dual residual and violation of a cap, inf after an overflow.
    - `infeasibility` : the gains above the prices, and the possible value of the matrix's violations.
    - `sigma` : the fraction of the gap that the next step aims for.
    - `patience` : the number of steps without improvement of the iterate or its gap, after which the best iterate is
      returned.
    """

    gap: float
    count: int
    dual_residual: float
    cap_violation: float
    infeasibility: float
    sigma = 0.3
    patience = 20

    @abstractmethod
    def step_toward(self, mu: float) -> tuple[float, Callable[[float], Self]]:
        """Return the length of a Newton step to products equal to `mu`, and the point after a step as a function."""

    def is_accurate(self, accuracy: float) -> bool:
        """Return True if gap and residuals are within the accuracy."""
        return self.gap <= accuracy and self.infeasibility <= 3 * accuracy

    def next_iterate(self, floor: float) -> Self | None:
        """Return the next iterate; None if no step makes progress."""
        is_late = self.gap < LATE_GAP and self.infeasibility > MAX_RESIDUAL_PER_GAP * self.gap
        for sigma in (1.0,) if is_late else (self.sigma, 1.0):
            size, point_after = self.step_toward(max(sigma * self.gap, floor) / self.count)
            while size > 1e-10:
                new = point_after(size)
                if new.dual_residual <= MAX_RESIDUAL_GROWTH * max(self.dual_residual, 0.1) and new.cap_violation <= max(
                    MAX_RESIDUAL_GROWTH * self.cap_violation, 0.3
                ):
                    new.sigma = 0.5 if size < 0.3 else 0.2 if size < 0.8 else 0.08
                    return new
                size /= 2
        return None

    def descend(self, accuracy: float, steps: int) -> tuple[Self, float]:
        """Return the best iterate that is found from here, and its error."""
        point: Self | None = self
        best, best_error, smallest_gap, idle_steps = self, np.inf, np.inf, 0
        for _ in range(steps):
            if point is None:
                break
            error = point.gap + point.infeasibility
            idle_steps = 0 if error < 0.9 * best_error or point.gap < 0.9 * smallest_gap else idle_steps + 1
            smallest_gap = min(smallest_gap, point.gap)
            if error < best_error:
                best, best_error = point, error
            if point.is_accurate(accuracy) or idle_steps > self.patience:
                break
            try:
                point = point.next_iterate(0.3 * accuracy)
            except np.linalg.LinAlgError:
                break
        return best, best_error


def largest_residual(*residuals: Array) -> float:
    """Return the largest absolute value; inf after an overflow."""
    worst = max(float(np.abs(residual).max(initial=0.0)) for residual in residuals)
    return worst if np.isfinite(worst) else np.inf


def cholesky(matrices: Array) -> Array:
    """Compute lower factors of (..., n, n), after the least of a few relative additions to the diagonal that works."""
    diagonal = np.arange(matrices.shape[-1])
    size = np.sqrt(np.maximum(matrices[..., diagonal, diagonal], 1e-300))
    scaled_matrices = matrices / size[..., :, None] / size[..., None, :]
    for weight in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9):
        regularized_matrices = scaled_matrices.copy()
        regularized_matrices[..., diagonal, diagonal] *= 1 + weight
        try:
            return np.asarray(np.linalg.cholesky(regularized_matrices)) * size[..., :, None]
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("not positive definite")


@dataclass(frozen=True, eq=False)
class InteriorPoint:
    """Columns with their slacks, and the prices of all sides; all of these numbers are positive.

    q, z : (n, k) columns, and prices of q >= 0.
    u, by_zero, by_excess : (n, sticks) slacks, prices of their two sides.
    m : (n, 1) the least entries of columns.
    by_low, by_high : (n, k) prices of m <= q <= ratio m.

    The last three are empty without pure LDP.
    """

    q: Array
    z: Array
    u: Array
    by_zero: Array
    by_excess: Array
    m: Array
    by_low: Array
    by_high: Array

    @classmethod
    def middle(cls, pairs: Pairs, q: Array, product: float | Array) -> InteriorPoint:
        """Build the iterate at constant columns `q` (n, k) such that every side times its price is `product`.

        product : (n, 1), or one number.
        """
        n, k = q.shape
        u = np.maximum(pairs.excess(q), 0.0) + 0.5 / n
        is_capped = int(pairs.ratio is not None)
        m = q[:, :is_capped] * (1 + 1 / (pairs.ratio or 2.0)) / 2
        zeros = np.zeros((n, k * is_capped))
        unpriced_point = cls(q, zeros, u, zeros, zeros, m, zeros, zeros)
        prices = [product / value for value, _ in unpriced_point.sides(pairs)]
        return cls(q, prices[0], u, prices[1], prices[2], m, *(prices[3:] or [zeros, zeros]))

    def grown(self, direction: InteriorPoint) -> Array:
        """Return the relative change of the sum of each column by a step, (n, 1)."""
        return np.asarray(direction.q.sum(axis=1, keepdims=True) / self.q.sum(axis=1, keepdims=True))

    def moved(self, step: float | Array, direction: InteriorPoint) -> InteriorPoint:
        """Return the iterate after a step of this length: (n, 1), one per label, or one number.

        Size and shape of a column change by factors. Its price per unit depends on its shape alone, which a plain sum
        would lose if a column shrinks.
        """
        growth = self.grown(direction)
        columns = {
            name: (1 + step * growth) * ((1 - step * growth) * getattr(self, name) + step * getattr(direction, name))
            for name in ("q", "u", "m")
        }
        prices = ("z", "by_zero", "by_excess", "by_low", "by_high")
        return InteriorPoint(
            **columns, **{name: getattr(self, name) + step * getattr(direction, name) for name in prices}
        )

    def take(self, is_selected: npt.NDArray[np.bool_]) -> InteriorPoint:
        """Return the labels that are `is_selected`, (n,)."""
        return InteriorPoint(*(getattr(self, name)[is_selected] for name in self.__dataclass_fields__))

    def put(self, labels: npt.NDArray[np.intp], other: InteriorPoint) -> InteriorPoint:
        """Replace these `labels` by those of `other`, which has no further labels."""
        fields = {name: getattr(self, name).copy() for name in self.__dataclass_fields__}
        for name, values in fields.items():
            values[labels] = getattr(other, name)
        return InteriorPoint(**fields)

    def only(self, is_selected: npt.NDArray[np.bool_]) -> InteriorPoint:
        """Return the step for the `is_selected` labels (n,) alone; it is zero for the others."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return InteriorPoint(**{name: np.where(is_selected[:, None], values, 0.0) for name, values in fields.items()})

    def sides(self, pairs: Pairs) -> list[tuple[Array, Array]]:
        """List all quantities that stay positive, each with its price."""
        positive = [(self.q, self.z), (self.u, self.by_zero), (self.u - pairs.excess(self.q), self.by_excess)]
        if pairs.ratio is not None:
            positive += [(self.q - self.m, self.by_low), (self.m - self.q / pairs.ratio, self.by_high)]
        return positive

    def limits(self, pairs: Pairs, direction: InteriorPoint) -> list[tuple[Array, Array]]:
        """List all quantities that must stay positive along a step, each with its change."""
        growth = self.grown(direction)
        positive = [(np.ones(growth.shape), growth)]
        for (value, price), (change, price_change) in zip(self.sides(pairs), direction.sides(pairs), strict=True):
            positive += [(value, change - growth * value), (price, price_change)]
        return positive


@dataclass(frozen=True, eq=False)
class NewtonStep:
    """A Newton step at an iterate, with the slacks eliminated.

    block : (n, k, k).
    on_left, on_right : (n, pairs) the derivatives of the cost of a pair by its two entries.
    along, levels : (n, k) and (n, pairs) the block and these derivatives times the columns themselves.
    loose : (pairs,) the derivative of the slacks by the price of a pair.
    cap_use : (pairs,) the used fraction of the caps.
    """

    pairs: Pairs
    point: InteriorPoint
    nu: Array
    sides: list[tuple[Array, Array]]
    block: Array
    on_left: Array
    on_right: Array
    levels: Array
    along: Array
    loose: Array
    cap_use: Array
    cost: Array
    share: Array
    rate: Array

    @classmethod
    def from_point(cls, pairs: Pairs, point: InteriorPoint, nu: Array) -> NewtonStep:
        """Build the step at an iterate, for prices nu (pairs,)."""
        n, k = point.q.shape
        count = pairs.count
        level, on_left, on_right, bend, t = pairs.psi(point.q)
        sides = point.sides(pairs)
        rate = [price / value for value, price in sides]
        slack_rate = rate[1] + rate[2]
        share = rate[2] / slack_rate
        stiff = rate[1] * share
        block = np.zeros((n, k, k))
        inputs = np.arange(k)
        weighted_bend = bend * nu[:count]
        cross_terms = np.concatenate([-(weighted_bend * t), stiff * pairs.on_left * pairs.on_right], axis=1)
        cells = block.reshape(n, k * k)
        for part in pairs.parts:
            cells[:, pairs.left[part] * k + pairs.right[part]] += cross_terms[:, part]
            cells[:, pairs.right[part] * k + pairs.left[part]] += cross_terms[:, part]
        first = np.concatenate([weighted_bend, stiff * pairs.on_left**2], axis=1)
        second = np.concatenate([weighted_bend * t * t, stiff * pairs.on_right**2], axis=1)
        block[:, inputs, inputs] += pairs.gather(first, second) + rate[0]
        if pairs.ratio is not None:
            cross = rate[3] + rate[4] / pairs.ratio
            block[:, inputs, inputs] += rate[3] + rate[4] / pairs.ratio / pairs.ratio
            total = (rate[3] + rate[4]).sum(axis=1)
            block -= cross[:, :, None] * cross[:, None, :] / total[:, None, None]
        by_left = np.concatenate([on_left, share * pairs.on_left], axis=1)
        by_right = np.concatenate([on_right, share * pairs.on_right], axis=1)
        cost = pairs.gather(
            np.concatenate([on_left * nu[:count], point.by_excess * pairs.on_left], axis=1),
            np.concatenate([on_right * nu[:count], point.by_excess * pairs.on_right], axis=1),
        )
        # psi is homogeneous, so that its second derivative vanishes along the column itself: that part is left out.
        excess = pairs.excess(point.q)
        levels = np.concatenate([level, share * excess], axis=1)
        zeros = np.zeros((n, count))
        along = point.z + pairs.gather(
            np.concatenate([zeros, stiff * excess * pairs.on_left], axis=1),
            np.concatenate([zeros, stiff * excess * pairs.on_right], axis=1),
        )
        if pairs.ratio is not None:
            weight = (cross * point.q).sum(axis=1) / total
            along += (rate[3] + rate[4] / pairs.ratio / pairs.ratio) * point.q - cross * weight[:, None]
        loose = np.concatenate([np.zeros(count), (1 / slack_rate).sum(axis=0)])
        consumption = np.concatenate([level.sum(axis=0), point.u.sum(axis=0)])
        return cls(
            pairs,
            point,
            nu,
            sides,
            block,
            by_left,
            by_right,
            levels,
            along,
            loose,
            consumption,
            cost,
            share,
            slack_rate,
        )

    def take(self, is_selected: npt.NDArray[np.bool_]) -> NewtonStep:
        """Return the `is_selected` labels (n,); sums over labels remain those over all labels."""
        fields = {
            name: getattr(self, name)[is_selected]
            for name in ("block", "on_left", "on_right", "levels", "along", "cost", "share", "rate")
        }
        sides = [(value[is_selected], price[is_selected]) for value, price in self.sides]
        return replace(self, point=self.point.take(is_selected), sides=sides, **fields)

    def left(self, profits: Array) -> Array:
        """Return the gains of the columns beyond the prices of all sides, (n, k).

        profits : (n, k), without the prices of pairs.
        """
        ratio = self.pairs.ratio
        gains = profits - self.cost + self.point.z
        return gains if ratio is None else gains + self.point.by_low - self.point.by_high / ratio

    def aims(self, mu: Array | float) -> list[Array]:
        """Return the changes of the prices after which their products with the sides are `mu`."""
        return [mu / value - price for value, price in self.sides]

    def right(self, gains: Array, aims: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Return the right side of the step of q (n, k), of the slacks u (n, sticks), and of m (n,)."""
        point, pairs = self.point, self.pairs
        on_slack = point.by_zero + point.by_excess - self.nu[pairs.count :] + aims[1] + aims[2]
        excess_prices = aims[2] - self.share * on_slack
        on_columns = gains + aims[0] - self.on_sticks(excess_prices)
        on_least = np.zeros(len(on_columns))
        if pairs.ratio is not None:
            on_least = (point.by_high - point.by_low - aims[3] + aims[4]).sum(axis=1)
            (low, by_low), (high, by_high) = self.sides[3:]
            cross = by_low / low + by_high / high / pairs.ratio
            total = (by_low / low + by_high / high).sum(axis=1)
            on_columns = on_columns + aims[3] - aims[4] / pairs.ratio + cross * (on_least / total)[:, None]
        return on_columns, on_slack, on_least

    def on_sticks(self, prices: Array) -> Array:
        """Return the prices of excesses (n, sticks) on the entries of their pairs, (n, k)."""
        zeros = np.zeros((len(prices), self.pairs.count))
        on_left = np.concatenate([zeros, prices * self.pairs.on_left], axis=1)
        return self.pairs.gather(on_left, np.concatenate([zeros, prices * self.pairs.on_right], axis=1))

    def step(self, dq: Array, dnu: Array, aims: Sequence[Array], on_slack: Array, on_least: Array) -> InteriorPoint:
        """Return the whole step, from the steps dq of the columns and dnu of the prices of pairs."""
        pairs = self.pairs
        excess = pairs.excess(dq)
        by_excess = self.sides[2][1] / self.sides[2][0]
        du = (on_slack - dnu[pairs.count :] + by_excess * excess) / self.rate
        dm = self.point.m * 0
        if pairs.ratio is not None:
            (low, by_low), (high, by_high) = self.sides[3:]
            cross = by_low / low + by_high / high / pairs.ratio
            total = (by_low / low + by_high / high).sum(axis=1)
            dm = ((on_least + (cross * dq).sum(axis=1)) / total)[:, None]
        direction = InteriorPoint(dq, dq * 0, du, du * 0, du * 0, dm, self.point.by_low * 0, self.point.by_high * 0)
        price_changes = [
            aim - price / value * change
            for aim, (value, price), (change, _) in zip(aims, self.sides, direction.sides(pairs), strict=True)
        ]
        direction = replace(direction, z=price_changes[0], by_zero=price_changes[1], by_excess=price_changes[2])
        return (
            replace(direction, by_low=price_changes[3], by_high=price_changes[4])
            if pairs.ratio is not None
            else direction
        )


def longest_step(values: Sequence[tuple[Array, Array]], axis: int | None = None) -> Array:
    """Return the largest length, at most 1, that keeps all values positive; with axis 1, one per label."""
    rates = [np.max(-change / value, axis=axis, initial=0.0) for value, change in values]
    worst = np.max(np.stack([np.asarray(rate) for rate in rates]), axis=0)
    return np.asarray(np.minimum(1.0, BOUNDARY_STEP_FRACTION / np.maximum(worst, 1e-300)))


class Pairs:
    """The pairs of all terms in one list, those of moments first; psi and excess are in units of the cap."""

    def __init__(self, terms: Sequence[Term], k: int) -> None:
        kinds = ByKind(terms)
        self.moments, sticks = ([term for _, term in ordered_terms] for ordered_terms in (kinds.moments, kinds.sticks))
        self.numbers = [number for number, _ in (*kinds.moments, *kinds.sticks)]
        self.size = len(terms)
        ordered_terms = [*self.moments, *sticks]
        no_pairs = np.zeros(0, dtype=np.intp)
        self.left = np.concatenate([no_pairs, *(term.left for term in ordered_terms)])
        self.right = np.concatenate([no_pairs, *(term.right for term in ordered_terms)])
        sizes = [len(term) for term in ordered_terms]
        self.ends = np.cumsum(sizes, dtype=np.intp)
        self.parts = [slice(int(end) - size, int(end)) for end, size in zip(self.ends, sizes, strict=True)]
        self.count = sum(len(term) for term in self.moments)
        self.orders = _runs_of_moments(self.moments)
        self.caps = np.concatenate([np.zeros(0), *(term.cap * np.ones(len(term)) for term in ordered_terms)])
        factors = [np.zeros(0), *(term.factor for term in sticks)]
        self.on_left, self.on_right = 1 / self.caps[self.count :], -np.concatenate(factors) / self.caps[self.count :]
        self.on = np.eye(k)[self.left], np.eye(k)[self.right]
        self.tv_bound = min((term.tv_bound for term in terms), default=1.0)
        self.ratio = kinds.ratio if np.isfinite(kinds.ratio) else None

    def split(self, values: Array) -> tuple[Array, ...]:
        """Split the `values` of the pairs into one array per term, in the terms' order; an empty one for `Ratio`."""
        parts = np.split(values, self.ends[:-1], axis=-1) if len(self.ends) else []
        part_by_term = dict(zip(self.numbers, parts, strict=True))
        return tuple(part_by_term.get(number, values[..., :0]) for number in range(self.size))

    def concatenate(self, weights: Sequence[Array]) -> Array:
        """Join one array per term into the values of all pairs, (pairs,), in the order of this list."""
        return np.concatenate([np.zeros(0), *(weights[number] for number in self.numbers)])

    def gather(self, on_left: Array, on_right: Array) -> Array:
        """Sum for every input the values (n, pairs) of its pairs on the left and on the right, (n, k)."""
        return np.asarray(on_left @ self.on[0] + on_right @ self.on[1])

    def excess(self, q: Array) -> Array:
        """Return the excess of the left input over the right one, (n, sticks), in units of the cap.

        It may be negative.
        """
        return np.asarray(q[:, self.left[self.count :]] * self.on_left + q[:, self.right[self.count :]] * self.on_right)

    def psi(self, q: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Compute psi, its two slopes, its second derivative in a, and t = a/b, each (n, moments)."""
        a, b = q[:, self.left[: self.count]], q[:, self.right[: self.count]]
        with np.errstate(all="ignore"):
            parts = [_psi(order, self.caps[part], a[:, part], b[:, part]) for part, order in self.orders]
        level, on_left, on_right, bend, t = np.concatenate([np.zeros((5, len(q), 0)), *parts], axis=2)
        return level, on_left, on_right, bend, t


def _runs_of_moments(moments: Sequence[Any]) -> list[tuple[slice, Any]]:
    """List runs of moments with psi of one form, with their orders: 1, or an order per pair."""
    runs, start = [], 0
    for first, group in groupby(moments, lambda term: term.order == 1):
        orders = np.concatenate([np.full(len(term), float(term.order)) for term in group])
        runs.append((slice(start, start + len(orders)), 1.0 if first else orders))
        start += len(orders)
    return runs


def _psi(order: Any, cap: Array, a: Array, b: Array) -> Array:
    tilt = (a - b) / b
    t = a / b
    log = np.where(
        np.abs(tilt) < 0.5,
        np.log1p(np.where(np.abs(tilt) < 0.5, tilt, 0.0)),
        np.log(t),
    )
    if np.ndim(order) == 0:  # order 1
        on_left, on_right, bend = log, -tilt, 1 / a
        level = a * log - (a - b)
        series = b * tilt**2 / 2 * (1 - tilt / 3 + tilt**2 / 6 - tilt**3 / 10)
    else:
        rise = np.expm1((order - 1) * log)
        on_left, on_right = order * rise, -(order - 1) * np.expm1(order * log)
        bend = order * (order - 1) * (1 + rise) / a
        level = a * on_left + b * on_right  # by homogeneity
        series = (
            b * order * (order - 1) / 2 * tilt**2
            * (1 + (order - 2) / 3 * tilt * (1 + (order - 3) / 4 * tilt * (1 + (order - 4) / 5 * tilt)))
        )  # fmt: skip
    level = np.where(np.abs(tilt) * order < SERIES_RATIO, series, level)
    return np.stack([level / cap, on_left / cap, on_right / cap, bend / cap, t])


MAX_PAIRS_AT_ONCE = (
    60  # Terms of up to this many pairs are included completely; of larger ones, binding pairs are added in rounds
)


def first_pairs(term: Term, pair: Pair) -> Index:
    """Return the positions in the term of the initial pairs."""
    if len(term) <= max(MAX_PAIRS_AT_ONCE, 2 * len(pair)):
        return np.arange(len(term))
    order = np.argsort(pair.posterior)
    ends = order[[0, -1]]
    return np.flatnonzero(np.isin(term.left, ends) & np.isin(term.right, ends))


def tight_pairs(term: Term, matrix: Array) -> Index:
    """Return the positions of the pairs whose constraints `matrix` meets with equality, or nearly so."""
    if not len(term):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(term.excess(matrix) > -1e-3 * np.max(term.cap))


def violated_pairs(terms: Sequence[Term], matrix: Array, active: Sequence[Index]) -> list[Index]:
    """Return the pairs outside the active ones that the matrix violates most, a few per input."""
    violated_by_term = []
    for term, pairs in zip(terms, active, strict=True):
        if len(pairs) == len(term):
            violated_by_term.append(np.zeros(0, dtype=np.intp))
            continue
        excess = term.excess(np.maximum(matrix, 0.0))
        excess[pairs] = -np.inf
        order = np.argsort(-excess, kind="stable")
        order = order[excess[order] > 1e-9 * np.max(term.cap)]
        # The worst partners of every input, not the worst pairs of all, which may be nearly equal.
        is_among_worst = (
            np.concatenate([_ranks(term.left[order]), _ranks(term.right[order])]).reshape(2, -1).min(axis=0) < 2
        )
        violated_by_term.append(order[is_among_worst])
    return violated_by_term


def _ranks(labels: Index) -> Index:
    """Count for each entry, (n,), how often its value has occurred before it."""
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[True], np.diff(labels[order]) != 0])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(labels)), 0))
    ranks = np.empty(len(labels), dtype=np.intp)
    ranks[order] = np.arange(len(labels)) - first
    return ranks
