"""Enclosures of divergences: their excess over boxes, the tangent planes and the chords of mu.

The excess is b phi(d/b) for a convex phi with phi(0) = 0 = min phi. For a fixed b it grows with |d| on either side of
zero; for a fixed d it does not grow with b, since its derivative in b is phi(x) - x phi'(x) <= phi(0) = 0 at x = d/b.
Over a box [d] x [b], cut to the domain b >= 0 and b + d >= 0, it is therefore largest at one end of d with the lowest b
that the domain allows there, max(b, -d), and smallest at the d nearest to zero with the highest b. (On the edge b = -d
the excess is |d| (f(0+) + f'(1)), which also grows with |d|, so that no d between the ends does better.)

The same holds with a in the place of b, for the divergence with its arguments exchanged, its mirror: the excess is a
function of -d and a, and does not grow with a. Where a is enclosed too, both ways bound it, and the better one counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.divergences.base import FDivergence
from ldpopt.divergences.rules import Rule, mirror_of, own_rule, rule_of
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.errors import Phrase, invalid


def enclosed_excess(f: FDivergence, d: Enclosure, b: Enclosure, a: Enclosure | None = None) -> Enclosure:
    """Every value of `f.excess_of` on the box [d] x [b], where that meets b >= 0 and b + d >= 0; of any shapes.

    a : an enclosure of b + d, if there is one of more digits than the sum has: where a is far below b and f(0+) is
        infinite, the sum does not say how far a is from zero.

    Where the box misses the domain, or the value is not defined, it encloses every number. A function of one's own is
    known in float64 only: its excess is enclosed with a relative 2^-40 of its terms, which is no proof; with an exact
    arithmetic it is `InvalidInput`.

    >>> from ldpopt.divergences import CHI_SQUARED
    >>> value = enclosed_excess(CHI_SQUARED, FLOAT.between(-0.125, 0.25), FLOAT.of(0.5))
    >>> value.lower, bool(value.certainly_at_most(0.1250001))
    (0.0, True)
    """
    of, rule = d.arithmetic, _rule(f, d.arithmetic)
    b = of.of(b)
    every = np.ones(np.broadcast_shapes(d.shape, b.shape, () if a is None else a.shape), dtype=np.bool_)
    d, b = of.where(every, d, 0.0), of.where(every, b, 0.0)
    lower, upper, missed = _over_box(rule, d, b)
    mirror = None if a is None else mirror_of(f.recipe)
    if a is not None and mirror is not None:
        other_lower, other_upper, outside = _over_box(mirror, -d, of.where(every, a, 0.0))
        lower, upper = _larger(lower, other_lower), -_larger(-upper, -other_upper)
        missed |= outside
    if rule.slack:
        slack = d.abs() * rule.slack
        lower, upper = lower - slack, upper + slack
    return of.where(missed, np.nan, of.between(lower, upper))


def _over_box(rule: Rule, d: Enclosure, b: Enclosure) -> tuple[Enclosure, Enclosure, npt.NDArray[np.bool_]]:
    """A lower and an upper bound over the box, and where it misses the domain, so that there is nothing to bound."""
    of = d.arithmetic
    (d_low, d_high), (b_low, b_high) = d.ends, b.ends
    missed = ~((np.asarray(b_high.upper) >= 0) & (np.asarray((d_high + b_high).upper) >= 0))
    b_low, d_low = b_low.positive(), d_low.maximum(-b_high)
    d_high = d_high.maximum(d_low)
    left, right = (_at(rule, end, b_low.maximum(-end)) for end in (d_low, d_high))
    nearest = of.where(np.asarray(d_low.lower) > 0, d_low, of.where(np.asarray(d_high.upper) < 0, d_high, 0.0))
    return _at(rule, nearest, b_high).positive(), left.maximum(right), missed


def _larger(one: Enclosure, two: Enclosure) -> Enclosure:
    """The larger of two lower bounds, where either may be unknown."""
    of = one.arithmetic
    unknown, other = np.asarray(one.lower) == -np.inf, np.asarray(two.lower) == -np.inf
    return of.where(unknown, two, of.where(other, one, one.maximum(two)))


def _at(rule: Rule, d: Enclosure, b: Enclosure) -> Enclosure:
    """The excess at points of the domain, without width, with its limits where b or a = b + d is exactly zero."""
    of, a = d.arithmetic, b + d
    no_d, no_a, no_b = (_zero(part) for part in (d, a, b))
    edge = no_d | no_a | no_b
    inner = rule.excess(of.where(edge, 0.0, d), of.where(edge, 1.0, b))
    at_zero, at_infinity = rule.limits(of)
    value = of.where(no_a, b * at_zero, of.where(no_b, d * at_infinity, inner))
    return of.where(no_d, 0.0, value)


def _zero(points: Enclosure) -> npt.NDArray[np.bool_]:
    return np.asarray((np.asarray(points.lower) == 0) & (np.asarray(points.upper) == 0))


def _rule(f: FDivergence, of: Arithmetic) -> Rule:
    if f.recipe is None:
        if of.exact:
            expected = "a named divergence, since one's own function is known in float64 only"
            raise invalid("divergence", expected, Phrase(f.name))
        return own_rule(f)
    return rule_of(*f.recipe)


def enclosed_slopes(f: FDivergence, ratio: Any, of: Arithmetic = FLOAT) -> tuple[Enclosure, Enclosure]:
    """(on_a, on_b) of the plane that touches the excess at a/b = ratio: excess(a, b) >= on_a a + on_b b everywhere.

    ratio : exact positive numbers. For a function of one's own, the slope lies between two chords on either side.

    >>> from ldpopt.divergences import CHI_SQUARED
    >>> [round(part.midpoint, 12) for part in enclosed_slopes(CHI_SQUARED, 2.0)]
    [2.0, -3.0]
    """
    return _rule(f, of).slopes(of.of(ratio))


def enclosed_chord(f: FDivergence, low: Enclosure, high: Enclosure) -> tuple[Enclosure, Enclosure]:
    """(on_a, on_b) of the plane through the excess at two posteriors: the excess lies below it in between.

    low, high : posteriors a / (a + b) in [0, 1]. Where they are one exact number, the plane holds on that ray; where
    it is not clear that low < high, it encloses everything.
    """
    of = low.arithmetic
    one_low, one_high = 1 - low, 1 - high
    below, above = enclosed_excess(f, 2 * low - 1, one_low), enclosed_excess(f, 2 * high - 1, one_high)
    width = high - low
    on_a, on_b = (above * one_low - below * one_high) / width, (high * below - low * above) / width
    same = (np.asarray(low.lower) == np.asarray(low.upper)) & (np.asarray(high.lower) == np.asarray(high.upper))
    same &= np.asarray(low.lower) == np.asarray(high.lower)
    return of.where(same, below, on_a), of.where(same, below, on_b)


def excess_above(f: FDivergence, d_low: Array, d_high: Array, b_low: Array, a_low: Array) -> Array:
    """Floats not below the excess on boxes d_low <= d <= d_high, b >= b_low > 0, a = b + d >= a_low > 0: the fast path.

    For d > 0 the largest excess is at d_high and b_low. For d < 0 it is at d_low and a_low, by the same argument for
    the divergence with its arguments exchanged, or where that is not known at d_low and the b that a_low leaves.
    """
    rule, mirror = _rule(f, FLOAT), mirror_of(f.recipe)
    above = np.zeros(np.shape(d_low))
    rising, falling = d_high > 0, d_low < 0
    if rising.any():
        d = d_high[rising]
        above[rising] = _top(rule, d, b_low[rising])
    if falling.any():
        d = -d_low[falling]
        if mirror is not None:
            found = _top(mirror, d, a_low[falling])
        else:
            found = _top(rule, -d, np.nextafter(np.maximum(b_low[falling], a_low[falling] + d), 0.0))
        above[falling] = np.maximum(above[falling], found)
    return np.where(np.isnan(d_low) | np.isnan(d_high) | np.isnan(above), np.inf, above)


def _top(rule: Rule, d: Array, b: Array) -> Array:
    """The upper end of the excess at exact points with d not zero and b > 0, with what the rule's slack allows."""
    top = np.asarray(rule.excess(FLOAT.of(d), FLOAT.of(b)).upper)
    return np.nextafter(top + 2 * rule.slack * np.abs(d), np.inf) if rule.slack else top
