"""The common part of the interior-point methods on columns: the iterate, its residuals, and a Newton step.

Columns q_i >= 0 of labels i gain c_i . q_i. At prices nu of pairs of inputs a column pays, each in units of the cap,

    psi(a, b)                          under a divergence between rows (`Moment`),
    u >= 0, u >= (a - factor b)        under a cap on what one row exceeds another by (`HockeyStick`),

and under pure LDP (`Ratio`) it lies between m and e^epsilon m. A side is an inequality of the program. The slacks u and
m, and the prices of all sides, are eliminated for each label, so that a step has one block (k, k) for each label, and
two numbers for each label and pair.

The constrained pairs of inputs: what columns pay for them, with derivatives, and which of them a program poses.

Interior-point programs take all pairs of all terms in one list (`Pairs`). Cone programs pose a few first, and then in
every round those that bind.
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

REACH = 0.99  # The share of the way to the boundary that a step goes
LAG = 10.0  # Below `LATE_GAP`, the gap is kept until the residuals are at most LAG times it; else columns lose digits
GROWTH = 3.0  # How much a step may raise the residuals before it is halved


@dataclass(frozen=True, eq=False)
class PairsPriced:
    """The columns (n, k), the row multipliers (k,), the prices (pairs,) of every term, slacks (n,) and the last gap.

    A label's slack is by how much its best column is worth less than its price, per unit of the column's sum.
    """

    columns: Array
    rows: Array
    weights: tuple[Array, ...]
    slack: Array
    gap: float


class Iterate(ABC):
    """A point of a primal-dual method: `gap` is the sum of `count` products of sides and prices.

    off, far : the largest dual residual and violation of a cap, inf where something overflowed. missing : the gains
    above the prices, and what the matrix's violations may be worth. sigma : the share of the gap that the next step
    aims to leave. patience : the number of steps that improve neither the iterate nor its gap, after which the best
    iterate is taken.
    """

    gap: float
    count: int
    off: float
    far: float
    missing: float
    sigma = 0.3
    patience = 20

    @abstractmethod
    def toward(self, mu: float) -> tuple[float, Callable[[float], Self]]:
        """How long a Newton step to products equal to `mu` may be, and the point after a step of a given length."""

    def settled(self, accuracy: float) -> bool:
        """Whether gap and residuals are within the accuracy."""
        return self.gap <= accuracy and self.missing <= 3 * accuracy

    def stepped(self, floor: float) -> Self | None:
        """The next iterate; None where no step makes progress."""
        late = self.gap < LATE_GAP and self.missing > LAG * self.gap
        for sigma in (1.0,) if late else (self.sigma, 1.0):
            size, moved = self.toward(max(sigma * self.gap, floor) / self.count)
            while size > 1e-10:
                new = moved(size)
                if new.off <= GROWTH * max(self.off, 0.1) and new.far <= max(GROWTH * self.far, 0.3):
                    new.sigma = 0.5 if size < 0.3 else 0.2 if size < 0.8 else 0.08
                    return new
                size /= 2
        return None

    def descended(self, accuracy: float, steps: int) -> tuple[Self, float]:
        """The best iterate that is met from here, and its gap with what it misses."""
        point: Self | None = self
        best, least, nearest, idle = self, np.inf, np.inf, 0
        for _ in range(steps):
            if point is None:
                break
            error = point.gap + point.missing
            idle = 0 if error < 0.9 * least or point.gap < 0.9 * nearest else idle + 1
            nearest = min(nearest, point.gap)
            if error < least:
                best, least = point, error
            if point.settled(accuracy) or idle > self.patience:
                break
            try:
                point = point.stepped(0.3 * accuracy)
            except np.linalg.LinAlgError:
                break
        return best, least


def largest(*residuals: Array) -> float:
    """The largest absolute value; inf where something overflowed."""
    worst = max(float(np.abs(residual).max(initial=0.0)) for residual in residuals)
    return worst if np.isfinite(worst) else np.inf


def cholesky(matrices: Array) -> Array:
    """Lower factors of (..., n, n), after the least of a few relative additions to the diagonal that works."""
    diagonal = np.arange(matrices.shape[-1])
    size = np.sqrt(np.maximum(matrices[..., diagonal, diagonal], 1e-300))
    scaled = matrices / size[..., :, None] / size[..., None, :]
    for weight in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9):
        heavier = scaled.copy()
        heavier[..., diagonal, diagonal] *= 1 + weight
        try:
            return np.asarray(np.linalg.cholesky(heavier)) * size[..., :, None]
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("not positive definite")


@dataclass(frozen=True, eq=False)
class Inside:
    """Columns with their slacks, and the prices of all sides; all of these numbers are positive.

    q, z : (n, k) columns, and prices of q >= 0. u, by_zero, by_excess : (n, sticks) slacks, prices of their two sides.
    m : (n, 1) the least of columns; by_low, by_high : (n, k) prices of m <= q <= ratio m. The last three are empty
    without pure LDP.
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
    def middle(cls, pairs: Pairs, q: Array, product: float | Array) -> Inside:
        """The iterate at constant columns `q` (n, k) where every side times its price is `product`, (n, 1) or one."""
        n, k = q.shape
        u = np.maximum(pairs.excess(q), 0.0) + 0.5 / n
        capped = int(pairs.ratio is not None)
        m = q[:, :capped] * (1 + 1 / (pairs.ratio or 2.0)) / 2
        none = np.zeros((n, k * capped))
        unpriced = cls(q, none, u, none, none, m, none, none)
        prices = [product / value for value, _ in unpriced.sides(pairs)]
        return cls(q, prices[0], u, prices[1], prices[2], m, *(prices[3:] or [none, none]))

    def grown(self, by: Inside) -> Array:
        """(n, 1) the share by which a step changes the sum of each column."""
        return np.asarray(by.q.sum(axis=1, keepdims=True) / self.q.sum(axis=1, keepdims=True))

    def moved(self, step: float | Array, by: Inside) -> Inside:
        """The iterate after a step of this length, which is (n, 1), one for each label, or one number.

        Size and shape of a column change by factors. Its price per unit depends on its shape alone, which a plain
        sum would lose where a column shrinks.
        """
        growth = self.grown(by)
        columns = {
            name: (1 + step * growth) * ((1 - step * growth) * getattr(self, name) + step * getattr(by, name))
            for name in ("q", "u", "m")
        }
        prices = ("z", "by_zero", "by_excess", "by_low", "by_high")
        return Inside(**columns, **{name: getattr(self, name) + step * getattr(by, name) for name in prices})

    def take(self, chosen: npt.NDArray[np.bool_]) -> Inside:
        """The labels that are `chosen`, (n,)."""
        return Inside(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def put(self, labels: npt.NDArray[np.intp], other: Inside) -> Inside:
        """The iterate with these `labels` replaced by those of `other`, which has no further labels."""
        fields = {name: getattr(self, name).copy() for name in self.__dataclass_fields__}
        for name, values in fields.items():
            values[labels] = getattr(other, name)
        return Inside(**fields)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Inside:
        """The step for the `chosen` labels (n,) alone; it is zero for the others."""
        each = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Inside(**{name: np.where(chosen[:, None], values, 0.0) for name, values in each.items()})

    def sides(self, pairs: Pairs) -> list[tuple[Array, Array]]:
        """All quantities that stay positive, each with its price."""
        positive = [(self.q, self.z), (self.u, self.by_zero), (self.u - pairs.excess(self.q), self.by_excess)]
        if pairs.ratio is not None:
            positive += [(self.q - self.m, self.by_low), (self.m - self.q / pairs.ratio, self.by_high)]
        return positive

    def limits(self, pairs: Pairs, by: Inside) -> list[tuple[Array, Array]]:
        """All quantities that must stay positive along a step, each with its change."""
        growth = self.grown(by)
        positive = [(np.ones(growth.shape), growth)]
        for (value, price), (change, dearer) in zip(self.sides(pairs), by.sides(pairs), strict=True):
            positive += [(value, change - growth * value), (price, dearer)]
        return positive


@dataclass(frozen=True, eq=False)
class Linear:
    """A Newton step at an iterate, with the slacks eliminated.

    block : (n, k, k). on_left, on_right : (n, pairs) the derivatives of what a pair pays by its two entries. along,
    levels : (n, k) and (n, pairs) the block and these derivatives times the columns themselves. loose : (pairs,) by how
    much a pair's price loosens the slacks. spent : (pairs,) the used part of the caps.
    """

    pairs: Pairs
    point: Inside
    nu: Array
    sides: list[tuple[Array, Array]]
    block: Array
    on_left: Array
    on_right: Array
    levels: Array
    along: Array
    loose: Array
    spent: Array
    paid: Array
    share: Array
    rate: Array

    @classmethod
    def of(cls, pairs: Pairs, point: Inside, nu: Array) -> Linear:
        """At an iterate, for prices nu (pairs,)."""
        n, k = point.q.shape
        count = pairs.count
        level, on_left, on_right, bend, t = pairs.psi(point.q)
        sides = point.sides(pairs)
        rate = [price / value for value, price in sides]
        whole = rate[1] + rate[2]
        share = rate[2] / whole
        stiff = rate[1] * share
        block = np.zeros((n, k, k))
        inputs = np.arange(k)
        weighted = bend * nu[:count]
        both = np.concatenate([-(weighted * t), stiff * pairs.on_left * pairs.on_right], axis=1)
        cells = block.reshape(n, k * k)
        for part in pairs.parts:
            cells[:, pairs.left[part] * k + pairs.right[part]] += both[:, part]
            cells[:, pairs.right[part] * k + pairs.left[part]] += both[:, part]
        first = np.concatenate([weighted, stiff * pairs.on_left**2], axis=1)
        second = np.concatenate([weighted * t * t, stiff * pairs.on_right**2], axis=1)
        block[:, inputs, inputs] += pairs.gather(first, second) + rate[0]
        if pairs.ratio is not None:
            cross = rate[3] + rate[4] / pairs.ratio
            block[:, inputs, inputs] += rate[3] + rate[4] / pairs.ratio / pairs.ratio
            total = (rate[3] + rate[4]).sum(axis=1)
            block -= cross[:, :, None] * cross[:, None, :] / total[:, None, None]
        by_left = np.concatenate([on_left, share * pairs.on_left], axis=1)
        by_right = np.concatenate([on_right, share * pairs.on_right], axis=1)
        paid = pairs.gather(
            np.concatenate([on_left * nu[:count], point.by_excess * pairs.on_left], axis=1),
            np.concatenate([on_right * nu[:count], point.by_excess * pairs.on_right], axis=1),
        )
        # psi is homogeneous, so that its second derivative vanishes along the column itself: that part is left out.
        excess = pairs.excess(point.q)
        levels = np.concatenate([level, share * excess], axis=1)
        none = np.zeros((n, count))
        along = point.z + pairs.gather(
            np.concatenate([none, stiff * excess * pairs.on_left], axis=1),
            np.concatenate([none, stiff * excess * pairs.on_right], axis=1),
        )
        if pairs.ratio is not None:
            weight = (cross * point.q).sum(axis=1) / total
            along += (rate[3] + rate[4] / pairs.ratio / pairs.ratio) * point.q - cross * weight[:, None]
        loose = np.concatenate([np.zeros(count), (1 / whole).sum(axis=0)])
        spent = np.concatenate([level.sum(axis=0), point.u.sum(axis=0)])
        return cls(pairs, point, nu, sides, block, by_left, by_right, levels, along, loose, spent, paid, share, whole)

    def take(self, chosen: npt.NDArray[np.bool_]) -> Linear:
        """The `chosen` labels (n,); sums over labels stay those over all labels."""
        each = {
            name: getattr(self, name)[chosen]
            for name in ("block", "on_left", "on_right", "levels", "along", "paid", "share", "rate")
        }
        sides = [(value[chosen], price[chosen]) for value, price in self.sides]
        return replace(self, point=self.point.take(chosen), sides=sides, **each)

    def left(self, profits: Array) -> Array:
        """(n, k) the gains of the columns beyond the prices of all sides; profits : (n, k), without those of pairs."""
        ratio = self.pairs.ratio
        gained = profits - self.paid + self.point.z
        return gained if ratio is None else gained + self.point.by_low - self.point.by_high / ratio

    def aims(self, mu: Array | float) -> list[Array]:
        """The changes of the prices for which their products with the sides become `mu`."""
        return [mu / value - price for value, price in self.sides]

    def right(self, left: Array, aims: Sequence[Array]) -> tuple[Array, Array, Array]:
        """The right side (n, k) of the step of q, of the slacks u (n, sticks), and of m (n,)."""
        point, pairs = self.point, self.pairs
        on_slack = point.by_zero + point.by_excess - self.nu[pairs.count :] + aims[1] + aims[2]
        paid = aims[2] - self.share * on_slack
        on_columns = left + aims[0] - self.on_sticks(paid)
        on_least = np.zeros(len(on_columns))
        if pairs.ratio is not None:
            on_least = (point.by_high - point.by_low - aims[3] + aims[4]).sum(axis=1)
            (low, by_low), (high, by_high) = self.sides[3:]
            cross = by_low / low + by_high / high / pairs.ratio
            total = (by_low / low + by_high / high).sum(axis=1)
            on_columns = on_columns + aims[3] - aims[4] / pairs.ratio + cross * (on_least / total)[:, None]
        return on_columns, on_slack, on_least

    def on_sticks(self, each: Array) -> Array:
        """(n, k) the prices `each` (n, sticks) of excesses, on the entries that they concern."""
        none = np.zeros((len(each), self.pairs.count))
        on_left = np.concatenate([none, each * self.pairs.on_left], axis=1)
        return self.pairs.gather(on_left, np.concatenate([none, each * self.pairs.on_right], axis=1))

    def step(self, dq: Array, dnu: Array, aims: Sequence[Array], on_slack: Array, on_least: Array) -> Inside:
        """The whole step, from the steps dq of the columns and dnu of the prices of pairs."""
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
        by = Inside(dq, dq * 0, du, du * 0, du * 0, dm, self.point.by_low * 0, self.point.by_high * 0)
        moved = [
            aim - price / value * change
            for aim, (value, price), (change, _) in zip(aims, self.sides, by.sides(pairs), strict=True)
        ]
        by = replace(by, z=moved[0], by_zero=moved[1], by_excess=moved[2])
        return replace(by, by_low=moved[3], by_high=moved[4]) if pairs.ratio is not None else by


def longest_step(values: Sequence[tuple[Array, Array]], axis: int | None = None) -> Array:
    """The length, at most 1, up to which a step keeps all values positive; with axis 1, one for each label."""
    rates = [np.max(-change / value, axis=axis, initial=0.0) for value, change in values]
    worst = np.max(np.stack([np.asarray(rate) for rate in rates]), axis=0)
    return np.asarray(np.minimum(1.0, REACH / np.maximum(worst, 1e-300)))


class Pairs:
    """The pairs of all terms in one list, those of moments first; psi and excess are in units of the cap."""

    def __init__(self, terms: Sequence[Term], k: int) -> None:
        kinds = ByKind(terms)
        self.moments, sticks = ([term for _, term in each] for each in (kinds.moments, kinds.sticks))
        self.numbers = [number for number, _ in (*kinds.moments, *kinds.sticks)]
        self.size = len(terms)
        each = [*self.moments, *sticks]
        none = np.zeros(0, dtype=np.intp)
        self.left = np.concatenate([none, *(term.left for term in each)])
        self.right = np.concatenate([none, *(term.right for term in each)])
        sizes = [len(term) for term in each]
        self.ends = np.cumsum(sizes, dtype=np.intp)
        self.parts = [slice(int(end) - size, int(end)) for end, size in zip(self.ends, sizes, strict=True)]
        self.count = sum(len(term) for term in self.moments)
        self.orders = _in_runs(self.moments)
        self.caps = np.concatenate([np.zeros(0), *(term.cap * np.ones(len(term)) for term in each)])
        factors = [np.zeros(0), *(term.factor for term in sticks)]
        self.on_left, self.on_right = 1 / self.caps[self.count :], -np.concatenate(factors) / self.caps[self.count :]
        self.on = np.eye(k)[self.left], np.eye(k)[self.right]
        self.tv_bound = min((term.tv_bound for term in terms), default=1.0)
        self.ratio = kinds.ratio if np.isfinite(kinds.ratio) else None

    def split(self, values: Array) -> tuple[Array, ...]:
        """The `values` of the pairs, one array for each term in the terms' order; an empty one for `Ratio`."""
        each = np.split(values, self.ends[:-1], axis=-1) if len(self.ends) else []
        own = dict(zip(self.numbers, each, strict=True))
        return tuple(own.get(number, values[..., :0]) for number in range(self.size))

    def joined(self, weights: Sequence[Array]) -> Array:
        """(pairs,) the values of all pairs in this list's order, from one array for each term."""
        return np.concatenate([np.zeros(0), *(weights[number] for number in self.numbers)])

    def gather(self, on_left: Array, on_right: Array) -> Array:
        """(n, k) for every input the sum of the values (n, pairs) of its pairs on the left and on the right."""
        return np.asarray(on_left @ self.on[0] + on_right @ self.on[1])

    def excess(self, q: Array) -> Array:
        """(n, sticks) by how much the left input exceeds the right one, in units of the cap; it may be negative."""
        return np.asarray(q[:, self.left[self.count :]] * self.on_left + q[:, self.right[self.count :]] * self.on_right)

    def psi(self, q: Array) -> tuple[Array, Array, Array, Array, Array]:
        """psi, its two slopes, its second derivative in a, and t = a/b, each (n, moments)."""
        a, b = q[:, self.left[: self.count]], q[:, self.right[: self.count]]
        with np.errstate(all="ignore"):
            parts = [_psi(order, self.caps[part], a[:, part], b[:, part]) for part, order in self.orders]
        level, on_left, on_right, bend, t = np.concatenate([np.zeros((5, len(q), 0)), *parts], axis=2)
        return level, on_left, on_right, bend, t


def _in_runs(moments: Sequence[Any]) -> list[tuple[slice, Any]]:
    """Neighbouring moments whose psi is of one form, with their orders: 1, or an order for each pair."""
    runs, start = [], 0
    for first, group in groupby(moments, lambda term: term.order == 1):
        orders = np.concatenate([np.full(len(term), float(term.order)) for term in group])
        runs.append((slice(start, start + len(orders)), 1.0 if first else orders))
        start += len(orders)
    return runs


def _psi(order: Any, cap: Array, a: Array, b: Array) -> Array:
    apart = (a - b) / b
    t = a / b
    log = np.where(np.abs(apart) < 0.5, np.log1p(np.where(np.abs(apart) < 0.5, apart, 0.0)), np.log(t))
    if np.ndim(order) == 0:  # order 1
        on_left, on_right, bend = log, -apart, 1 / a
        level = a * log - (a - b)
        series = b * apart**2 / 2 * (1 - apart / 3 + apart**2 / 6 - apart**3 / 10)
    else:
        rise = np.expm1((order - 1) * log)
        on_left, on_right = order * rise, -(order - 1) * np.expm1(order * log)
        bend = order * (order - 1) * (1 + rise) / a
        level = a * on_left + b * on_right  # by homogeneity
        series = (
            b * order * (order - 1) / 2 * apart**2
            * (1 + (order - 2) / 3 * apart * (1 + (order - 3) / 4 * apart * (1 + (order - 4) / 5 * apart)))
        )  # fmt: skip
    level = np.where(np.abs(apart) * order < SERIES_RATIO, series, level)
    return np.stack([level / cap, on_left / cap, on_right / cap, bend / cap, t])


MAX_WHOLE = 60  # Terms of up to this many pairs are posed whole; of larger ones, pairs that bind join in rounds


def first_pairs(term: Term, pair: Pair) -> Index:
    """The positions in the term of the pairs to begin with."""
    if len(term) <= max(MAX_WHOLE, 2 * len(pair)):
        return np.arange(len(term))
    order = np.argsort(pair.posterior)
    ends = order[[0, -1]]
    return np.flatnonzero(np.isin(term.left, ends) & np.isin(term.right, ends))


def tight_pairs(term: Term, matrix: Array) -> Index:
    """The positions of the pairs whose constraints `matrix` meets with equality, or nearly so."""
    if not len(term):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(term.excess(matrix) > -1e-3 * np.max(term.cap))


def violated_pairs(terms: Sequence[Term], matrix: Array, active: Sequence[Index]) -> list[Index]:
    """The pairs outside the active ones that the matrix violates most, a few for every input."""
    violated = []
    for term, pairs in zip(terms, active, strict=True):
        if len(pairs) == len(term):
            violated.append(np.zeros(0, dtype=np.intp))
            continue
        excess = term.excess(np.maximum(matrix, 0.0))
        excess[pairs] = -np.inf
        order = np.argsort(-excess, kind="stable")
        order = order[excess[order] > 1e-9 * np.max(term.cap)]
        # The worst partners of every input, not the worst pairs of all, which may be nearly alike.
        kept = np.concatenate([_ranks(term.left[order]), _ranks(term.right[order])]).reshape(2, -1).min(axis=0) < 2
        violated.append(order[kept])
    return violated


def _ranks(labels: Index) -> Index:
    """(n,) how often each entry's value has occurred before it."""
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[True], np.diff(labels[order]) != 0])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(labels)), 0))
    ranks = np.empty(len(labels), dtype=np.intp)
    ranks[order] = np.arange(len(labels)) - first
    return ranks
