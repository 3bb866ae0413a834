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


def likelihood_ratio_order(p0: Array, p1: Array) -> Index:
    """Sort the inputs of positive mass by increasing p0/p1, proved by exact cross products.

    Ties come in any order.
    """
    support_inputs = np.flatnonzero((p0 > 0) | (p1 > 0))
    with np.errstate(divide="ignore"):
        log_ratio = np.log(p0[support_inputs]) - np.log(p1[support_inputs])
    order = support_inputs[np.argsort(log_ratio, kind="stable")]
    if not _is_ratio_sorted(p0[order], p1[order]):

        def compared(x: int, y: int) -> int:
            return _compare_ratios(p0, p1, x, y)

        order = np.array(sorted(order.tolist(), key=cmp_to_key(compared)), dtype=np.intp)
    return np.asarray(order)


def _is_ratio_sorted(p0: Array, p1: Array) -> bool:
    """Return True if p0/p1 never falls: products in floats decide, else fractions."""
    with np.errstate(over="ignore", invalid="ignore"):
        left_products, right_products = p0[:-1] * p1[1:], p0[1:] * p1[:-1]
        # Products in the range of normal floats are right to half an ulp; infinite ones decide nothing.
        is_decided = (right_products - left_products > 2.0**-50 * right_products) & (right_products > 1e-290)
    return all(_compare_ratios(p0, p1, x, x + 1) <= 0 for x in np.flatnonzero(~is_decided).tolist())


def _compare_ratios(p0: Array, p1: Array, x: int, y: int) -> int:
    """Return the sign of p0[x]/p1[x] - p0[y]/p1[y].

    It is computed in integers, unless floats in their normal range clearly differ.
    """
    a, b, c, d = p0.item(x), p1.item(y), p0.item(y), p1.item(x)
    left_product, right_product = a * b, c * d
    if min(left_product, right_product) > 1e-290 and abs(left_product - right_product) > 2.0**-50 * max(
        left_product, right_product
    ):
        return 1 if left_product > right_product else -1
    (a0, a1), (b0, b1), (c0, c1), (d0, d1) = (mass.as_integer_ratio() for mass in (a, b, c, d))
    exact_left, exact_right = a0 * b0 * c1 * d1, c0 * d0 * a1 * b1
    return (exact_left > exact_right) - (exact_left < exact_right)


MAX_EXACT_PRODUCTS = 1_000_000  # Products of fractions, to compare two pairs where floats cannot decide.


def dominates(a0: Array, a1: Array, b0: Array, b1: Array) -> bool:
    """Return True if (a0, a1) is surely at least as informative as (b0, b1) [Blackwell].

    That is so if h(s) = sum (s p1 - (1-s) p0)_+ is nowhere smaller for the first pair. h is convex. Between two points
    it lies below its chord, and above the contribution of any set of inputs, which is linear in s. So one condition is
    enough for each interval. Some set of the first pair's inputs must contribute at least the second pair's h at both
    ends. Sums of floats, rounded outward, decide most intervals, from one end of the inputs or the other. Fractions
    decide the rest. The answer is False if that would take too many.
    """
    sorted_a, sorted_b = _Sorted.from_pair(a0, a1), _Sorted.from_pair(b0, b1)
    # Just outside the second pair's inputs its h is known: 0 on one side, 2 s - 1 on the other.
    beyond_ends = sorted_b.posterior[[0, -1]] + 4 * sorted_b.blur * np.array([-1.0, 1.0])
    thresholds = np.unique(
        np.clip(np.concatenate([[0.0, 1.0], beyond_ends, sorted_a.posterior, sorted_b.posterior]), 0.0, 1.0)
    )
    is_decided = _decided_by_floats(sorted_a, sorted_b, thresholds, False)
    if not is_decided.all():
        is_decided |= _decided_by_floats(sorted_a, sorted_b, thresholds, True)
    undecided_intervals = np.flatnonzero(~is_decided)
    return not len(undecided_intervals) or _dominates_exactly(
        (a0, a1),
        (b0, b1),
        thresholds[undecided_intervals],
        thresholds[undecided_intervals + 1],
        2 * (sorted_a.blur + sorted_b.blur),
    )


def dominance_work(n: int, k: int) -> Work:
    """Bound the work to show that n points dominate hypotheses on k inputs.

    Both are sorted.
    """
    return (Work.on(n + k, 150.0) + Work(300.0 * min(MAX_EXACT_PRODUCTS, (n + k) ** 2))).in_floats


def require_dominance(points: Any, p0: Array, p1: Array) -> tuple[Array, Array]:
    """Return the masses (n,) of `points` (n, 2), after a proof that they dominate.

    Raises `Unproved` unless the points surely dominate the hypotheses.
    """
    a0, a1 = nonnegative_array(points, (-1, 2), "points").T
    is_dominating = a0.sum() > 0 and a1.sum() > 0 and dominates(a0, a1, np.asarray(p0), np.asarray(p1))
    require(is_dominating, "the points do not dominate the hypotheses")
    return a0, a1


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Two distributions on the inputs in order of likelihood ratio, with running sums of both, from 0 at either end.

    posterior : (n,) floats near p0 / (p0 + p1), with an error of at most `blur`.
    """

    posterior: Array
    blur: float
    first: tuple[Enclosure, Enclosure]
    rest: tuple[Enclosure, Enclosure]

    @classmethod
    def from_pair(cls, p0: Array, p1: Array) -> _Sorted:
        order = likelihood_ratio_order(p0, p1)
        laws = LawPair.from_floats(p0, p1, FLOAT).take(order)
        # The posterior of the laws differs from that of the floats by the ratio of their sums.
        blur = 2.0**-50 + 2 * abs(float(exact_sum(p0) / exact_sum(p1) - 1))
        posterior = np.maximum.accumulate(p0[order] / (p0[order] + p1[order]))
        masses = (laws.p0, laws.p1)
        first_sums, rest_sums = (
            (_running_sums(x), _running_sums(y)) for x, y in (masses, (masses[0][::-1], masses[1][::-1]))
        )
        return cls(posterior, blur, first_sums, (rest_sums[0][::-1], rest_sums[1][::-1]))

    def line(self, count: npt.NDArray[np.intp], s: Array, from_last: bool) -> Enclosure:
        """Enclose the contribution of the first `count` inputs to h(s).

        With `from_last`, enclose that of the other inputs to h(s) - (2 s - 1).
        """
        mass0, mass1 = (sums[count] for sums in (self.rest if from_last else self.first))
        contribution: Enclosure = FLOAT.of(s) * mass1 - (1 - FLOAT.of(s)) * mass0
        return -contribution if from_last else contribution

    def upper_bound(self, s: Array, from_last: bool) -> Array:
        """Bound h(s), or h(s) - (2 s - 1), from above.

        The bound holds the inputs that surely count, and a small term for inputs at s.
        """
        tie_start = np.searchsorted(self.posterior, s - self.blur, "left")
        tie_stop = np.searchsorted(self.posterior, s + self.blur, "right")
        tie_mass = (
            self.first[0][tie_stop] - self.first[0][tie_start] + self.first[1][tie_stop] - self.first[1][tie_start]
        ) * (2 * self.blur)
        certain_contribution = self.line(tie_stop if from_last else tie_start, s, from_last).positive()
        bound = (certain_contribution + FLOAT.where(tie_stop > tie_start, tie_mass, 0.0)).upper
        return np.asarray(np.where(s == (1.0 if from_last else 0.0), 0.0, bound))


def _decided_by_floats(first: _Sorted, second: _Sorted, points: Array, from_last: bool) -> npt.NDArray[np.bool_]:
    """Mark the intervals between two points where h of `first` is surely at least that of `second`."""
    low, high, second_bound = points[:-1], points[1:], second.upper_bound(points, from_last)
    count = (
        np.searchsorted(first.posterior, low, "right") if from_last else np.searchsorted(first.posterior, high, "left")
    )
    contributions_at_ends = [first.line(count, s, from_last).lower for s in (low, high)]
    is_above = (contributions_at_ends[0] >= second_bound[:-1]) & (contributions_at_ends[1] >= second_bound[1:])
    return np.asarray(is_above | ((second_bound[:-1] <= 0) & (second_bound[1:] <= 0)))


def _dominates_exactly(
    first: tuple[Array, Array], second: tuple[Array, Array], low: Array, high: Array, tolerance: float
) -> bool:
    """Compare both pairs on some intervals in fractions: at their ends, and at each kink inside."""
    masses, kinks = [], {Fraction(s) for s in np.concatenate([low, high]).tolist()}
    for p0, p1 in (first, second):
        mass0, mass1 = exact_sum(p0), exact_sum(p1)
        used_inputs = np.flatnonzero(p0 + p1 > 0)
        masses.append([(Fraction(p0[x]) / mass0, Fraction(p1[x]) / mass1) for x in used_inputs.tolist()])
        posterior = p0[used_inputs] / (p0 + p1)[used_inputs]
        is_between = np.searchsorted(low, posterior + tolerance, "right") > np.searchsorted(
            high, posterior - tolerance, "left"
        )
        kinks |= {masses[-1][x][0] / sum(masses[-1][x]) for x in np.flatnonzero(is_between).tolist()}
    if len(kinks) * sum(map(len, masses)) > MAX_EXACT_PRODUCTS:
        return False

    def support_function(input_masses: list[tuple[Fraction, Fraction]], s: Fraction) -> Fraction:
        return sum((s * y - (1 - s) * x for x, y in input_masses if s * y > (1 - s) * x), Fraction(0))

    return all(support_function(masses[0], s) >= support_function(masses[1], s) for s in kinks)


def _running_sums(masses: Enclosure) -> Enclosure:
    """Compute (n + 1,) running sums from 0, in two levels.

    So the error grows with the root of their number.
    """
    n, width = len(masses), max(1, math.isqrt(len(masses)))
    row_count = -(-n // width)
    blocks = FLOAT.concatenate([masses, FLOAT.zeros(row_count * width - n)]).reshape(row_count, width).cumsum(axis=1)
    offset = FLOAT.concatenate([FLOAT.zeros(1), blocks[:, -1].cumsum()])[:-1]
    return FLOAT.concatenate([FLOAT.zeros(1), (blocks + offset[:, None]).reshape(row_count * width)])[: n + 1]


@dataclass(frozen=True, eq=False)
class Rays:
    """Rays (a, b) of posteriors a and b = 1 - a, and `lean` = a - b.

    All three are stored, because each has digits that the others lose.
    """

    a: Enclosure
    b: Enclosure
    lean: Enclosure

    def __getitem__(self, index: slice) -> Rays:
        return Rays(self.a[index], self.b[index], self.lean[index])

    @classmethod
    def join(cls, pieces: Sequence[Rays]) -> Rays:
        """Join the rays of all parts."""
        fields = (tuple(getattr(piece, name) for piece in pieces) for name in ("a", "b", "lean"))
        return cls(*(column[0].arithmetic.concatenate(column) for column in fields))

    @classmethod
    def of_masses(cls, p0: Enclosure, p1: Enclosure, difference: Enclosure) -> Rays:
        """Compute the rays of inputs with these masses; difference : p0 - p1."""
        total = p0 + p1
        return cls(p0 / total, p1 / total, difference / total)

    @classmethod
    def spread(cls, size: Enclosure, is_above: npt.ArrayLike) -> Rays:
        """Compute the rays at the ratios e^size where `is_above`, and at their inverses elsewhere."""
        choose, inverse_ratio = size.arithmetic.where, (-size).exp()
        larger_part, smaller_part, lean = (
            1 / (1 + inverse_ratio),
            inverse_ratio / (1 + inverse_ratio),
            -(-size).expm1() / (1 + inverse_ratio),
        )
        return cls(
            choose(is_above, larger_part, smaller_part),
            choose(is_above, smaller_part, larger_part),
            choose(is_above, lean, -lean),
        )

    @classmethod
    def from_logs(cls, log: Array, arithmetic: Arithmetic) -> Rays:
        """Compute the rays at exact logarithms of a/b, which may be infinite."""
        is_infinite, is_above = np.isinf(log), log >= 0
        rays = cls.spread(arithmetic.of(np.where(is_infinite, 0.0, np.abs(log))), is_above)
        limits = (np.where(is_above, 1.0, 0.0), np.where(is_above, 0.0, 1.0), np.where(is_above, 1.0, -1.0))
        limits_and_values = zip(limits, (rays.a, rays.b, rays.lean), strict=True)
        return cls(
            *(
                arithmetic.where(is_infinite, infinite_value, finite_value)
                for infinite_value, finite_value in limits_and_values
            )
        )


@dataclass(frozen=True, eq=False)
class Planes:
    """Planes level (a + b) + slope c, one for each interval (n, m).

    The variable c is a - b where `is_near`, else b where `is_above`, else a.
    """

    level: Enclosure
    slope: Array
    is_near: npt.NDArray[np.bool_]
    is_above: npt.NDArray[np.bool_]


def log_ratios(laws: LawPair) -> tuple[float, float]:
    """Bound log(P0/P1) of the inputs that occur from below and from above."""
    arithmetic = laws.p0.arithmetic
    is_zero0, is_zero1 = np.asarray(laws.p0.upper) == 0, np.asarray(laws.p1.upper) == 0
    has_both = ~is_zero0 & ~is_zero1
    p0, p1 = arithmetic.where(has_both, laws.p0, 1.0), arithmetic.where(has_both, laws.p1, 1.0)
    difference = arithmetic.where(has_both, laws.difference, 0.0)
    is_near_one = np.abs(np.asarray(difference.midpoint)) <= np.asarray(p1.lower) / 2
    log = arithmetic.where(
        is_near_one, (arithmetic.where(is_near_one, difference, 0.0) / p1).log1p(), p0.log() - p1.log()
    )
    lower = np.where(has_both, log.lower, np.where(is_zero1, np.inf, -np.inf))[~(is_zero0 & is_zero1)]
    upper = np.where(has_both, log.upper, np.where(is_zero1, np.inf, -np.inf))[~(is_zero0 & is_zero1)]
    return float(lower.min()), float(upper.max())


@dataclass(frozen=True, eq=False)
class Classes:
    """A partition of the inputs into classes of equal likelihood ratio; inputs that never occur may be in any class.

    Within a class, both hypotheses have the same conditional distribution. Average a channel over each class by this
    distribution. The average has the same marginals, and is as private under every constraint that treats all inputs
    equally. So merging the inputs of a class preserves the optimum under such constraints.

    number : (k,) the class of every input, 0..count-1.
    """

    number: Index
    count: int

    @classmethod
    def checked(cls, numbers: Any, p0: Array, p1: Array) -> Classes:
        """Build the classes, after a check of their numbers.

        Raises `Unproved` unless the ratios in each class are equal, which exact products decide.
        """
        number = positions(numbers, len(p0), len(p0), "the classes of the inputs")
        count = int(number.max()) + 1
        require(np.array_equal(np.unique(number), np.arange(count)), "the classes are not numbered 0, 1, 2, ...")
        support_inputs = np.flatnonzero((p0 > 0) | (p1 > 0))
        first_inputs = np.full(count, -1, dtype=np.intp)
        first_inputs[number[support_inputs][::-1]] = support_inputs[::-1]
        for x, y in zip(support_inputs.tolist(), first_inputs[number[support_inputs]].tolist(), strict=True):
            require(
                x == y or _compare_ratios(p0, p1, x, y) == 0, "inputs of one class differ in their likelihood ratio"
            )
        return cls(number, count)

    @property
    def trivial(self) -> bool:
        """True if each input is its own class, in order."""
        return np.array_equal(self.number, np.arange(len(self.number)))

    def laws(self, p0: Array, p1: Array, arithmetic: Arithmetic) -> LawPair:
        """Compute the hypotheses on the classes."""
        laws = LawPair.from_floats(p0, p1, arithmetic)
        if self.trivial:
            return laws
        return LawPair(*(scatter(masses, self.number, self.count) for masses in (laws.p0, laws.p1, laws.difference)))
