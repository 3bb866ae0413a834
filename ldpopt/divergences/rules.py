"""The formulas of the named divergences over enclosures, shared by every arithmetic.

Where the terms of a formula nearly cancel, interval arithmetic of a fixed precision loses digits. This concerns the
formulas with logarithms that are made by `_either`. The exact arithmetic computes them with as many additional bits as
the cancellation costs. The fast arithmetic uses the float64 formula, whose series do not cancel, with a proved bound
on its relative error.

The bound is found as follows. Series are used for |d| < SERIES_BELOW b. At the end of this range, terms of size d
cancel to d^2 / (2 b). This multiplies relative errors by 200, and by 1000 for the alpha-divergence, whose terms also
carry 1/order. Each term has an error of at most 8 units in the last place: 4 of the logarithm, and 4 of its argument
and factors. The series omit terms below 2^-47 of their sum. For the alpha-divergence, the exponent (order - 1) log(a/b)
has a relative error of a few units; times its size, this is the relative error of the power.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.divergences.base import FDivergence
from ldpopt.divergences.named import JENSEN_SHANNON, KL, REVERSE_KL, alpha
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure, Exact
from ldpopt.numbers.rounding import SUBNORMAL, ULP

INF = math.inf
FLOAT64_LOG_RTOL = 2.0**-40
"""Bound on the relative error of the float64 excess with logarithms: four thousand units in the last place."""

Limit = Callable[[Arithmetic], Enclosure]
Points = Callable[[Enclosure, Enclosure], Enclosure]
Slopes = Callable[[Enclosure], tuple[Enclosure, Enclosure]]


@dataclass(frozen=True)
class Rule:
    """The functions of one divergence that work on enclosures.

    - `excess` : the excess at points d and b, where b and b + d are positive.
    - `limits` : the excess at a = 0 divided by b, and the excess at b = 0 divided by d.
    - `slopes` : the coefficients of a and b in the tangent plane of the excess at a ratio a/b.
    - `slack` : times |d|, a bound on the error of the computed excess, as a function that is zero at d = 0.
    """

    excess: Points
    limits: Callable[[Arithmetic], tuple[Enclosure, Enclosure]]
    slopes: Slopes
    slack: float = 0.0


def _either(float64: Points, exact: Points) -> Points:
    """A formula that cancels: the float64 formula in the fast arithmetic, `exact` with more bits in the exact one."""

    def excess(d: Enclosure, b: Enclosure) -> Enclosure:
        arith = d.arithmetic
        if not isinstance(arith, Exact):
            return float64(d, b)
        # Near a = b the logarithm loses the bits of b / d, and the terms of size d, which leave d^2 / b, lose as many
        # again. Where d is far above b, the sum b + d loses those of d / b.
        size = [np.maximum(np.abs(part.lower), np.abs(part.upper)) for part in (d, b)]
        with np.errstate(all="ignore"):
            lost_bits = np.log2(size[1]) - np.log2(np.where(size[0] > 0, size[0], size[1]))
        precise = Exact(arith.bits + 128 + 2 * int(np.clip(np.abs(np.nan_to_num(lost_bits)), 0, 2200).max(initial=0)))
        return arith.of(exact(precise.of(d), precise.of(b)))

    return excess


def _float64(
    f: FDivergence, error: Callable[[Any, Any], Any] | None = None, has_exchanged_arguments: bool = False
) -> Points:
    """The float64 excess, widened by `FLOAT64_LOG_RTOL`, its relative error; a function of -d and a if exchanged."""

    def excess(d: Enclosure, b: Enclosure) -> Enclosure:
        x, y = np.asarray(d.lower), np.asarray(b.lower)
        with np.errstate(all="ignore"):
            inner_value = f._inner(-x, y, x + y) if has_exchanged_arguments else f._inner(x, x + y, y)
            value = np.where(np.isfinite(x + y), inner_value, np.nan)
            margin = FLOAT64_LOG_RTOL if error is None else error(x, y)
            low = np.where(value == INF, 0.0, value) * (1 - margin) - 16 * SUBNORMAL
            return FLOAT.between(low, value * (1 + margin) + 16 * SUBNORMAL)

    return excess


def _kl(d: Enclosure, b: Enclosure) -> Enclosure:
    a = b + d
    return a * (a / b).log() - d


def _jensen_shannon(d: Enclosure, b: Enclosure) -> Enclosure:
    a = b + d
    total = a + b
    return (a * (2 * a / total).log() + b * (2 * b / total).log()) / 2


def _jeffreys(d: Enclosure, b: Enclosure) -> Enclosure:
    """d log(a/b): with log1p(d/b) where a and b are close, else with log(a) - log(b), which cannot overflow."""
    a = b + d
    x = d / b
    is_close = np.abs(x.midpoint) < 0.5
    return d * d.arithmetic.where(is_close, d.arithmetic.where(is_close, x, 0.0).log1p(), a.log() - b.log())


def _rule(excess: Points, at_zero: float, at_infinity: float, slopes: Slopes) -> Rule:
    return Rule(excess, lambda arith: (arith.of(at_zero), arith.of(at_infinity)), slopes)


def _swapped(excess: Points) -> Points:
    """The excess with p and q exchanged: `excess` of -d and a = b + d."""
    return lambda d, b: excess(-d, b + d)


def _sign(t: Enclosure) -> Enclosure:
    """The sign of t - 1: -1, 0 or 1, or the interval from -1 to 1 where the sign is not certain."""
    is_below, is_above = np.asarray(t.upper) < 1, np.asarray(t.lower) > 1
    equal = (np.asarray(t.lower) == 1) & (np.asarray(t.upper) == 1)
    arith = t.arithmetic
    unclear = arith.where(equal, 0.0, arith.between(-np.ones(t.shape), np.ones(t.shape)))
    return arith.where(is_below, -1.0, arith.where(is_above, 1.0, unclear))


def _hockey_stick(gamma: float) -> Rule:
    if gamma == 1:
        return RULES["total-variation"]
    offset = Fraction(gamma) - 1
    sign = 1 if gamma > 1 else -1

    def excess(d: Enclosure, b: Enclosure) -> Enclosure:
        return ((d - d.arithmetic.of(offset) * b) * sign).positive()

    def limits(arith: Arithmetic) -> tuple[Enclosure, Enclosure]:
        return (arith.of(0.0), arith.of(1.0)) if gamma > 1 else (arith.of(gamma), arith.of(0.0))

    def slopes(t: Enclosure) -> tuple[Enclosure, Enclosure]:
        # At the kink, any plane between the two that meet there lies below the function; the zero plane has no error.
        is_active = np.asarray(t.lower) > gamma if gamma > 1 else np.asarray(t.upper) < gamma
        arith = t.arithmetic
        zeros = arith.zeros(t.shape)
        return arith.where(is_active, float(sign), zeros), arith.where(is_active, -sign * gamma, zeros)

    return Rule(excess, limits, slopes)


def _alpha(order: float, has_exchanged_arguments: bool = False) -> Rule:
    f, o = alpha(order), Fraction(order)

    def exact(d: Enclosure, b: Enclosure) -> Enclosure:
        arith = d.arithmetic
        power = ((b + d) / b).log() * arith.of(o)
        return (b * power.expm1() - arith.of(o) * d) / arith.of(o * (o - 1))

    def error(d: Any, b: Any) -> Any:
        if abs(order) < 2.0**-900:  # the exponent underflows
            return INF
        steps = np.abs(np.log(b + d) - np.log(b))
        return ULP * (2**14 + 32 * (abs(order) + 1) * steps)

    def limits(arith: Arithmetic) -> tuple[Enclosure, Enclosure]:
        at_zero = arith.of(1 / o) if order > 0 else arith.of(INF)
        at_infinity = arith.of(INF) if order > 1 else arith.of(1 / (1 - o))
        return (at_infinity, at_zero) if has_exchanged_arguments else (at_zero, at_infinity)

    def slopes(t: Enclosure) -> tuple[Enclosure, Enclosure]:
        arith = t.arithmetic
        return (t.log() * arith.of(o - 1)).expm1() / arith.of(o - 1), -((t.log() * arith.of(o)).expm1() / arith.of(o))

    return Rule(
        _either(_float64(f, error, has_exchanged_arguments), _swapped(exact) if has_exchanged_arguments else exact),
        limits,
        slopes,
    )


def custom_slack(f: FDivergence) -> float:
    """Compute the slack of a user-defined divergence: its margin per unit of difference."""
    return 2.0**-31 * (abs(f._slope_at_one()) + abs(float(f.generator(0.5))) + abs(float(f.generator(2.0))))


def custom_rule(f: FDivergence) -> Rule:
    """Build the rule of a user-defined divergence: float64 values with margins, not a proof.

    The slack is for f'(1), which is often a difference of values.
    """
    slope, slack = f._slope_at_one(), custom_slack(f)
    size = slack * 2.0**31

    def excess(d: Enclosure, b: Enclosure) -> Enclosure:
        x, y = np.asarray(d.lower), np.asarray(b.lower)
        with np.errstate(all="ignore"):
            try:
                value = np.asarray(f.excess_of(x, y))
            except (ArithmeticError, TypeError, ValueError):  # a user's function may raise outside of its domain
                value = np.full(x.shape, np.nan)
            margin = FLOAT64_LOG_RTOL * (np.abs(value) + 2 * np.abs(slope * x)) + 16 * ULP * size * (2 * y + np.abs(x))
            # A value far below zero shows that f is not convex, and then nothing is known.
            value = np.where(value + margin + slack * np.abs(x) >= 0, value, np.nan)
            low = np.where(value == INF, 0.0, value - margin) - 16 * SUBNORMAL
            return FLOAT.between(low, value + margin + 16 * SUBNORMAL)

    def limits(arith: Arithmetic) -> tuple[Enclosure, Enclosure]:
        ends = []
        for end, sign in ((f.at_zero, 1), (f.slope_at_infinity, -1)):
            margin = 2.0**-20 * (abs(end) + abs(slope)) if math.isfinite(end) else 0.0  # often extrapolated
            ends.append(arith.between(end + sign * slope - margin, end + sign * slope + margin))
        return ends[0], ends[1]

    def slopes(t: Enclosure) -> tuple[Enclosure, Enclosure]:
        unit = FLOAT.of(np.ones(t.shape))
        step = (t * 2.0**-20).ends[0]
        right, left, middle = (excess((t - 1 + move).ends[0], unit) for move in (step, -step, 0.0))
        slope = FLOAT.between(((middle - left) / step).ends[0], ((right - middle) / step).ends[1])
        return slope, middle - t * slope

    return Rule(excess, limits, slopes, slack)


RULES: dict[str, Rule] = {
    "total-variation": _rule(lambda d, b: d.abs() / 2, 0.5, 0.5, lambda t: (_sign(t) / 2, -_sign(t) / 2)),
    "chi-squared": _rule(lambda d, b: d.abs() * (d.abs() / b), 1.0, INF, lambda t: (2 * (t - 1), (1 - t) * (1 + t))),
    "neyman-chi-squared": _rule(
        lambda d, b: d.abs() * (d.abs() / (b + d)), INF, 1.0, lambda t: ((t - 1) * (t + 1) / t / t, 2 * (1 - t) / t)
    ),
    "squared-hellinger": _rule(
        lambda d, b: (d / ((b + d).sqrt() + b.sqrt())).square(), 1.0, 1.0, lambda t: (1 - 1 / t.sqrt(), 1 - t.sqrt())
    ),
    "le-cam": _rule(
        lambda d, b: d.abs() * (d.abs() / (2 * b + d)),
        1.0,
        1.0,
        lambda t: (1 - 4 / (t + 1).square(), 1 - 4 / (1 + 1 / t).square()),
    ),
    "jeffreys": _rule(_jeffreys, INF, INF, lambda t: (t.log() + 1 - 1 / t, 1 - t - t.log())),
    "kl": _rule(_either(_float64(KL), _kl), 1.0, INF, lambda t: (t.log(), 1 - t)),
    "reverse-kl": _rule(_either(_float64(REVERSE_KL), _swapped(_kl)), INF, 1.0, lambda t: (1 - 1 / t, -t.log())),
    "jensen-shannon": Rule(
        _either(_float64(JENSEN_SHANNON), _jensen_shannon),
        lambda arith: (arith.of(2.0).log() / 2, arith.of(2.0).log() / 2),
        lambda t: ((2 * t / (1 + t)).log() / 2, (2 / (1 + t)).log() / 2),
    ),
}
"""The rules of the divergences without a parameter, by name."""


def _piecewise_linear(lists: tuple[tuple[float, ...], tuple[float, ...]]) -> Rule:
    """The sum of the rules of hockey sticks at the knots, each times the rise of the slope there, an exact number."""
    knots, slopes = lists
    sticks = [_hockey_stick(knot) for knot in knots]
    rises = [Fraction(high) - Fraction(low) for low, high in pairwise(slopes)]

    def total(arith: Arithmetic, values: Sequence[Enclosure]) -> Enclosure:
        terms = [arith.of(rise) * value for rise, value in zip(rises, values, strict=True)]
        return reduce(operator.add, terms)

    def both(arith: Arithmetic, pairs: Sequence[tuple[Enclosure, Enclosure]]) -> tuple[Enclosure, Enclosure]:
        return total(arith, [first for first, _ in pairs]), total(arith, [other for _, other in pairs])

    return Rule(
        lambda d, b: total(d.arithmetic, [stick.excess(d, b) for stick in sticks]),
        lambda arith: both(arith, [stick.limits(arith) for stick in sticks]),
        lambda t: both(t.arithmetic, [stick.slopes(t) for stick in sticks]),
    )


FAMILIES: dict[str, Callable[[Any], Rule]] = {
    "hockey-stick": _hockey_stick,
    "alpha": _alpha,
    "piecewise-linear": _piecewise_linear,
}


def rule_of(name: str, *parameters: Any) -> Rule:
    """Return the rule of the divergence with this recipe."""
    return FAMILIES[name](*parameters) if parameters else RULES[name]


_MIRRORS = {
    "kl": "reverse-kl",
    "reverse-kl": "kl",
    "chi-squared": "neyman-chi-squared",
    "neyman-chi-squared": "chi-squared",
}


def mirror_of(recipe: tuple[Any, ...] | None) -> Rule | None:
    """Return the rule of the divergence with p and q exchanged; None if there is none here."""
    # Its generator is t f(1/t).
    if recipe is None or recipe[0] in ("hockey-stick", "piecewise-linear"):
        return None
    if recipe[0] == "alpha":
        return _alpha(recipe[1], has_exchanged_arguments=True)
    return RULES[_MIRRORS.get(recipe[0], recipe[0])]
