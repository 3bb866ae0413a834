"""Enclosures of divergences: intervals that hold the values of `FDivergence.excess`, its tangents and its chords.

An enclosure is an interval, or an array of intervals, that certainly holds the true value. Here d = a - b.

The excess is b phi(d/b) for a convex phi with phi(0) = 0 = min phi. For a fixed b it grows with |d| on either side of
zero. For a fixed d it does not grow with b, since its derivative in b is phi(x) - x phi'(x) <= phi(0) = 0 at x = d/b.
Take a box [d] x [b], cut to the domain b >= 0 and b + d >= 0. The excess is largest at one of the two ends of d, with
the lowest b that the box and the domain allow there. It is smallest at the d nearest to zero, with the highest b. (On
the edge b = -d it is |d| (f(0+) + f'(1)), which also grows with |d|, so no d between the ends gives more.)

The divergence with p and q exchanged is called the mirror. Its excess is a function of -d and a, and it does not grow
with a. Where an enclosure of a is known, too, the excess is bounded in both ways, and the better bound is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.divergences.base import FDivergence
from ldpopt.divergences.rules import Rule, custom_rule, mirror_of, rule_of
from ldpopt.errors import NotChecked
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array

MAX_TOGETHER = 4096  # Largest number of boxes whose points are computed together, in half the time


def enclosed_excess(f: FDivergence, d: Enclosure, b: Enclosure, a: Enclosure | None = None) -> Enclosure:
    """Enclose all values of `f.excess_of` on the box [d] x [b], with b >= 0 and b + d >= 0.

    a : an enclosure of b + d, if a tighter one than the sum is known.

    The arrays have any shapes. Where no point is in the domain, or the value is not defined, the result encloses every
    number. A user-defined function has a margin, which is not a proof; exact arithmetic rejects it with `InvalidInput`.
    """
    arith, rule = d.arithmetic, _rule(f, d.arithmetic)
    b = arith.of(b)
    all_points = np.ones(np.broadcast_shapes(d.shape, b.shape, () if a is None else a.shape), dtype=np.bool_)
    d, b = arith.where(all_points, d, 0.0), arith.where(all_points, b, 0.0)
    lower, upper, is_outside = _over_box(rule, d, b)
    mirror = None if a is None else mirror_of(f.recipe)
    if a is not None and mirror is not None:
        other_lower, other_upper, is_other_outside = _over_box(mirror, -d, arith.where(all_points, a, 0.0))
        lower, upper = _larger(lower, other_lower), -_larger(-upper, -other_upper)
        is_outside |= is_other_outside
    if rule.slack:
        slack = d.abs() * rule.slack
        lower, upper = lower - slack, upper + slack
    return arith.where(is_outside, np.nan, arith.between(lower, upper))


def _over_box(rule: Rule, d: Enclosure, b: Enclosure) -> tuple[Enclosure, Enclosure, npt.NDArray[np.bool_]]:
    """A lower and an upper bound over the box, and whether the box has no point in the domain."""
    arith = d.arithmetic
    (d_low, d_high), (b_low, b_high) = d.ends, b.ends
    is_outside = ~((np.asarray(b_high.upper) >= 0) & (np.asarray((d_high + b_high).upper) >= 0))
    b_low, d_low = b_low.positive(), d_low.maximum(-b_high)
    d_high = d_high.maximum(d_low)
    nearest = arith.where(np.asarray(d_low.lower) > 0, d_low, arith.where(np.asarray(d_high.upper) < 0, d_high, 0.0))
    if is_outside.size <= MAX_TOGETHER:
        points = (d_low, d_high, nearest), (b_low.maximum(-d_low), b_low.maximum(-d_high), b_high)
        values = _at_points(rule, *(arith.concatenate([end[None] for end in ends]) for ends in points))
        return values[2].positive(), values[0].maximum(values[1]), is_outside
    left, right = (_at_points(rule, end, b_low.maximum(-end)) for end in (d_low, d_high))
    return _at_points(rule, nearest, b_high).positive(), left.maximum(right), is_outside


def _larger(first: Enclosure, second: Enclosure) -> Enclosure:
    """The larger of two lower bounds; a bound may be unknown (minus infinity)."""
    arith = first.arithmetic
    unknown, other = np.asarray(first.lower) == -np.inf, np.asarray(second.lower) == -np.inf
    return arith.where(unknown, second, arith.where(other, first, first.maximum(second)))


def _at_points(rule: Rule, d: Enclosure, b: Enclosure) -> Enclosure:
    """The excess at single points of the domain, with its limits where b or a = b + d is exactly zero."""
    arith, a = d.arithmetic, b + d
    no_d, no_a, no_b = (np.asarray((np.asarray(x.lower) == 0) & (np.asarray(x.upper) == 0)) for x in (d, a, b))
    edge = no_d | no_a | no_b
    inner = rule.excess(arith.where(edge, 0.0, d), arith.where(edge, 1.0, b))
    at_zero, at_infinity = rule.limits(arith)
    value = arith.where(no_a, b * at_zero, arith.where(no_b, d * at_infinity, inner))
    return arith.where(no_d, 0.0, value)


def _rule(f: FDivergence, arith: Arithmetic) -> Rule:
    if f.recipe is None:
        if arith.exact:
            raise NotChecked(f"not covered: exact arithmetic needs a named divergence, {f.name} is known in float64")
        return custom_rule(f)
    return rule_of(*f.recipe)


def enclosed_slopes(f: FDivergence, ratio: Any, arith: Arithmetic = FLOAT) -> tuple[Enclosure, Enclosure]:
    """Enclose (on_a, on_b) of the plane that touches the excess at a/b = ratio from below."""
    return _rule(f, arith).slopes(arith.of(ratio))


def excess_above(f: FDivergence, d_low: Array, d_high: Array, b_low: Array, a_low: Array) -> Array:
    """Bound the excess in floats on boxes d_low <= d <= d_high, b >= b_low > 0, a >= a_low > 0.

    a = b + d. The bound is computed fast. It is largest at d_high and b_low, or at d_low and a_low; without a mirror, b
    is as small as a_low allows.
    """
    rule, mirror = _rule(f, FLOAT), mirror_of(f.recipe)
    upper = np.zeros(np.shape(d_low))
    is_rising, is_falling = d_high > 0, d_low < 0
    if is_rising.any():
        d = d_high[is_rising]
        upper[is_rising] = _top(rule, d, b_low[is_rising])
    if is_falling.any():
        d = -d_low[is_falling]
        if mirror is not None:
            largest = _top(mirror, d, a_low[is_falling])
        else:
            largest = _top(rule, -d, np.nextafter(np.maximum(b_low[is_falling], a_low[is_falling] + d), 0.0))
        upper[is_falling] = np.maximum(upper[is_falling], largest)
    return np.where(np.isnan(d_low) | np.isnan(d_high) | np.isnan(upper), np.inf, upper)


def _top(rule: Rule, d: Array, b: Array) -> Array:
    """The upper end of the excess at exact points with d not zero and b > 0, raised by the rule's slack."""
    top = np.asarray(rule.excess(FLOAT.of(d), FLOAT.of(b)).upper)
    return np.nextafter(top + 2 * rule.slack * np.abs(d), np.inf) if rule.slack else top
