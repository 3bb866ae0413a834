"""Two hypotheses in the order of likelihood ratio, without rounding: sorting, dominance, classes of equal ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.terms import scatter
from ldpopt.design.kernel.numbers import nonnegative_array, positions, require
from ldpopt.design.utilities.laws import LawPair
from ldpopt.design.work import Work
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index


def by_ratio(p0: Array, p1: Array) -> Index:
    """The inputs of positive mass in increasing order of p0/p1, proved by exact cross products; ties in any order."""
    used = np.flatnonzero((p0 > 0) | (p1 > 0))
    with np.errstate(divide="ignore"):
        near = np.log(p0[used]) - np.log(p1[used])
    order = used[np.argsort(near, kind="stable")]
    if not _sorted(p0[order], p1[order]):

        def compared(x: int, y: int) -> int:
            return _compare(p0, p1, x, y)

        order = np.array(sorted(order.tolist(), key=cmp_to_key(compared)), dtype=np.intp)
    return np.asarray(order)


def _sorted(p0: Array, p1: Array) -> bool:
    """Whether p0/p1 never falls: products in floats decide, and fractions where these cannot."""
    with np.errstate(over="ignore", invalid="ignore"):
        left, right = p0[:-1] * p1[1:], p0[1:] * p1[:-1]
        # Products in the range of normal floats are right to half an ulp; infinite ones decide nothing.
        clear = (right - left > 2.0**-50 * right) & (right > 1e-290)
    return all(_compare(p0, p1, x, x + 1) <= 0 for x in np.flatnonzero(~clear).tolist())


def _compare(p0: Array, p1: Array, x: int, y: int) -> int:
    """The sign of p0[x]/p1[x] - p0[y]/p1[y]: in integers, unless floats in their normal range are clearly apart."""
    a, b, c, d = p0.item(x), p1.item(y), p0.item(y), p1.item(x)
    left, right = a * b, c * d
    if min(left, right) > 1e-290 and abs(left - right) > 2.0**-50 * max(left, right):
        return 1 if left > right else -1
    (a0, a1), (b0, b1), (c0, c1), (d0, d1) = (mass.as_integer_ratio() for mass in (a, b, c, d))
    exact_left, exact_right = a0 * b0 * c1 * d1, c0 * d0 * a1 * b1
    return (exact_left > exact_right) - (exact_left < exact_right)


EXACT_WORK = 1_000_000  # The most products of fractions that are compared where floats cannot decide.


def dominates(a0: Array, a1: Array, b0: Array, b1: Array) -> bool:
    """Whether the laws (a0, a1) are at least as informative as (b0, b1), without any slack [Blackwell]. That is so when
    h(s) = sum (s p1 - (1-s) p0)_+ is nowhere smaller for the first pair. h is convex: between two points it lies below
    its chord, and above the contribution of any set of inputs, which is linear in s. So it is enough that, for each
    interval, some set of the first pair's inputs contributes at least the second pair's h at both ends. Sums of floats,
    rounded outward, decide most intervals, from one end of the inputs or the other. Fractions decide the rest; where
    that would take too many, the answer is False.
    """
    own, other = _Sorted.of(a0, a1), _Sorted.of(b0, b1)
    # Just outside of the second pair's inputs its h is known: 0 on one side, 2 s - 1 on the other.
    outside = other.posterior[[0, -1]] + 4 * other.blur * np.array([-1.0, 1.0])
    points = np.unique(np.clip(np.concatenate([[0.0, 1.0], outside, own.posterior, other.posterior]), 0.0, 1.0))
    settled = _settled(own, other, points, False)
    if not settled.all():
        settled |= _settled(own, other, points, True)
    left = np.flatnonzero(~settled)
    return not len(left) or _exactly((a0, a1), (b0, b1), points[left], points[left + 1], 2 * (own.blur + other.blur))


def dominance(n: int, k: int) -> Work:
    """What it takes to show that n points dominate hypotheses on k inputs, both of which are sorted."""
    return (Work.on(n + k, 150.0) + Work(300.0 * min(EXACT_WORK, (n + k) ** 2))).in_floats


def dominating(points: Any, p0: Array, p1: Array) -> tuple[Array, Array]:
    """The masses (n,) of `points` (n, 2), once they are shown to dominate the hypotheses; else `Unproved`."""
    a0, a1 = nonnegative_array(points, (-1, 2), "points").T
    surely = a0.sum() > 0 and a1.sum() > 0 and dominates(a0, a1, np.asarray(p0), np.asarray(p1))
    require(surely, "the points do not dominate the hypotheses")
    return a0, a1


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Two laws on the inputs in order of likelihood ratio, with running sums of both, from 0 at either end. posterior :
    (n,) floats near p0 / (p0 + p1), none off by more than `blur`.
    """

    posterior: Array
    blur: float
    first: tuple[Enclosure, Enclosure]
    rest: tuple[Enclosure, Enclosure]

    @classmethod
    def of(cls, p0: Array, p1: Array) -> _Sorted:
        order = by_ratio(p0, p1)
        laws = LawPair.of(p0, p1, FLOAT).take(order)
        # The posterior of the laws differs from that of the floats by the ratio of their sums.
        blur = 2.0**-50 + 2 * abs(float(exact_sum(p0) / exact_sum(p1) - 1))
        posterior = np.maximum.accumulate(p0[order] / (p0[order] + p1[order]))
        parts = (laws.p0, laws.p1)
        first, rest = ((_running(x), _running(y)) for x, y in (parts, (parts[0][::-1], parts[1][::-1])))
        return cls(posterior, blur, first, (rest[0][::-1], rest[1][::-1]))

    def line(self, count: npt.NDArray[np.intp], s: Array, upper: bool) -> Enclosure:
        """The contribution of the first `count` inputs to h(s); if `upper`, of the others to h(s) - (2 s - 1)."""
        mass0, mass1 = (part[count] for part in (self.rest if upper else self.first))
        mine: Enclosure = FLOAT.of(s) * mass1 - (1 - FLOAT.of(s)) * mass0
        return -mine if upper else mine

    def most(self, s: Array, upper: bool) -> Array:
        """An upper bound on h(s), or on h(s) - (2 s - 1): of inputs that surely count, and a little for inputs at s."""
        first = np.searchsorted(self.posterior, s - self.blur, "left")
        last = np.searchsorted(self.posterior, s + self.blur, "right")
        at = (self.first[0][last] - self.first[0][first] + self.first[1][last] - self.first[1][first]) * (2 * self.blur)
        sure = self.line(last if upper else first, s, upper).positive()
        bound = (sure + FLOAT.where(last > first, at, 0.0)).upper
        return np.asarray(np.where(s == (1.0 if upper else 0.0), 0.0, bound))


def _settled(own: _Sorted, other: _Sorted, points: Array, upper: bool) -> npt.NDArray[np.bool_]:
    """For each interval between two points, whether h of `own` is surely at least that of `other`."""
    low, high, most = points[:-1], points[1:], other.most(points, upper)
    count = np.searchsorted(own.posterior, low, "right") if upper else np.searchsorted(own.posterior, high, "left")
    ends = [own.line(count, s, upper).lower for s in (low, high)]
    above = (ends[0] >= most[:-1]) & (ends[1] >= most[1:])
    return np.asarray(above | ((most[:-1] <= 0) & (most[1:] <= 0)))


def _exactly(own: tuple[Array, Array], other: tuple[Array, Array], low: Array, high: Array, blur: float) -> bool:
    """The comparison on some intervals in fractions: at their ends, and at every kink of either inside."""
    masses, kinks = [], {Fraction(s) for s in np.concatenate([low, high]).tolist()}
    for p0, p1 in (own, other):
        mass0, mass1 = exact_sum(p0), exact_sum(p1)
        used = np.flatnonzero(p0 + p1 > 0)
        masses.append([(Fraction(p0[x]) / mass0, Fraction(p1[x]) / mass1) for x in used.tolist()])
        posterior = p0[used] / (p0 + p1)[used]
        inside = np.searchsorted(low, posterior + blur, "right") > np.searchsorted(high, posterior - blur, "left")
        kinks |= {masses[-1][x][0] / sum(masses[-1][x]) for x in np.flatnonzero(inside).tolist()}
    if len(kinks) * sum(map(len, masses)) > EXACT_WORK:
        return False

    def support(rows: list[tuple[Fraction, Fraction]], s: Fraction) -> Fraction:
        return sum((s * y - (1 - s) * x for x, y in rows if s * y > (1 - s) * x), Fraction(0))

    return all(support(masses[0], s) >= support(masses[1], s) for s in kinks)


def _running(part: Enclosure) -> Enclosure:
    """(n + 1,) running sums from 0, in two levels, so that the error grows with the root of their number."""
    n, width = len(part), max(1, math.isqrt(len(part)))
    rows = -(-n // width)
    square = FLOAT.concatenate([part, FLOAT.zeros(rows * width - n)]).reshape(rows, width).cumsum(axis=1)
    before = FLOAT.concatenate([FLOAT.zeros(1), square[:, -1].cumsum()])[:-1]
    return FLOAT.concatenate([FLOAT.zeros(1), (square + before[:, None]).reshape(rows * width)])[: n + 1]


@dataclass(frozen=True, eq=False)
class Rays:
    """Rays (a, b) of posteriors a and b = 1 - a, and `lean` = a - b. All three are kept, because each has digits that
    the others lose.
    """

    a: Enclosure
    b: Enclosure
    lean: Enclosure

    def __getitem__(self, index: slice) -> Rays:
        return Rays(self.a[index], self.b[index], self.lean[index])

    @classmethod
    def joined(cls, parts: Sequence[Rays]) -> Rays:
        """The rays of all parts, in a row."""
        each = (tuple(getattr(part, name) for part in parts) for name in ("a", "b", "lean"))
        return cls(*(column[0].arithmetic.concatenate(column) for column in each))

    @classmethod
    def of_masses(cls, p0: Enclosure, p1: Enclosure, apart: Enclosure) -> Rays:
        """The rays of inputs with these masses; apart : p0 - p1."""
        total = p0 + p1
        return cls(p0 / total, p1 / total, apart / total)

    @classmethod
    def spread(cls, size: Enclosure, above: npt.ArrayLike) -> Rays:
        """The rays at the ratios e^size where `above`, and at their inverses elsewhere."""
        where, less = size.arithmetic.where, (-size).exp()
        large, small, lean = 1 / (1 + less), less / (1 + less), -(-size).expm1() / (1 + less)
        return cls(where(above, large, small), where(above, small, large), where(above, lean, -lean))

    @classmethod
    def at(cls, log: Array, arithmetic: Arithmetic) -> Rays:
        """The rays at exact logarithms of a/b, which may be infinite."""
        endless, above = np.isinf(log), log >= 0
        rays = cls.spread(arithmetic.of(np.where(endless, 0.0, np.abs(log))), above)
        ends = (np.where(above, 1.0, 0.0), np.where(above, 0.0, 1.0), np.where(above, 1.0, -1.0))
        parts = zip(ends, (rays.a, rays.b, rays.lean), strict=True)
        return cls(*(arithmetic.where(endless, end, part) for end, part in parts))


@dataclass(frozen=True, eq=False)
class Planes:
    """level (a + b) + slope c for each interval (n, m): c is a - b where `near`, else b where `above`, else a."""

    level: Enclosure
    slope: Array
    near: npt.NDArray[np.bool_]
    above: npt.NDArray[np.bool_]


def log_ratios(laws: LawPair) -> tuple[float, float]:
    """The least and the largest log(P0/P1) of the inputs that occur, rounded outward."""
    of = laws.p0.arithmetic
    none0, none1 = np.asarray(laws.p0.upper) == 0, np.asarray(laws.p1.upper) == 0
    both = ~none0 & ~none1
    p0, p1 = of.where(both, laws.p0, 1.0), of.where(both, laws.p1, 1.0)
    apart = of.where(both, laws.difference, 0.0)
    near = np.abs(np.asarray(apart.midpoint)) <= np.asarray(p1.lower) / 2
    log = of.where(near, (of.where(near, apart, 0.0) / p1).log1p(), p0.log() - p1.log())
    lower = np.where(both, log.lower, np.where(none1, np.inf, -np.inf))[~(none0 & none1)]
    upper = np.where(both, log.upper, np.where(none1, np.inf, -np.inf))[~(none0 & none1)]
    return float(lower.min()), float(upper.max())


@dataclass(frozen=True, eq=False)
class Classes:
    """A partition of the inputs into classes of equal likelihood ratio; inputs that never occur may be in any class.
    Both hypotheses give the inputs of a class the same shares. The average of a channel over a class, by these shares,
    has the same marginals, and is as private under every constraint that treats all inputs alike. So merging the inputs
    of a class keeps the optimum under such constraints. number : (k,) the class of every input, 0..count-1.
    """

    number: Index
    count: int

    @classmethod
    def checked(cls, given: Any, p0: Array, p1: Array) -> Classes:
        """The classes. Raises `Unproved` unless the ratios in each are equal, which exact products decide."""
        number = positions(given, len(p0), len(p0), "the classes of the inputs")
        count = int(number.max()) + 1
        require(np.array_equal(np.unique(number), np.arange(count)), "the classes are not numbered 0, 1, 2, ...")
        used = np.flatnonzero((p0 > 0) | (p1 > 0))
        first = np.full(count, -1, dtype=np.intp)
        first[number[used][::-1]] = used[::-1]
        for x, y in zip(used.tolist(), first[number[used]].tolist(), strict=True):
            require(x == y or _compare(p0, p1, x, y) == 0, "inputs of one class differ in their likelihood ratio")
        return cls(number, count)

    @property
    def trivial(self) -> bool:
        """Whether each input is its own class, in order."""
        return np.array_equal(self.number, np.arange(len(self.number)))

    def laws(self, p0: Array, p1: Array, arithmetic: Arithmetic) -> LawPair:
        """The hypotheses on the classes."""
        laws = LawPair.of(p0, p1, arithmetic)
        if self.trivial:
            return laws
        return LawPair(*(scatter(part, self.number, self.count) for part in (laws.p0, laws.p1, laws.difference)))
