"""The named f-divergences, hockey sticks and alpha-divergences, in closed form.

The excess of each entry is a function of d = a - b, a and b, although two of them determine the third. The reason is
that d may be known to digits that the rounded a = b + d has lost. a and b are positive. Where logarithms would cancel,
a series is used. So a divergence of order d^2 keeps its relative accuracy when a and b agree to many digits.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy import exp, expm1, log, log1p, maximum, sqrt, where

from ldpopt.divergences.base import FAMILIES, FDivergence
from ldpopt.errors import invalid
from ldpopt.values.distribution import finite_array, number, positive

_INF = float("inf")

SERIES_BELOW = 0.01
"""The relative distance of a and b below which series replace logarithms; there they are accurate to a double."""

_MIN_LOG1P_ARGUMENT = -1 + 2.0**-53


def patch(value: Any, mask: Any, formula: Any, a: Any, b: Any) -> Any:
    """Replace `value` by `formula(a, b)` where `mask` is true, and compute it only there."""
    if not np.any(mask):
        return value
    if np.all(mask):
        return formula(a, b)
    a, b = np.broadcast_arrays(a, b)
    value[mask] = formula(a[mask], b[mask])
    return value


def log_ratio(d: Any, a: Any, b: Any) -> Any:
    """Compute log(a/b) to a few ulps, also near a = b and at extreme ratios."""
    x = d / b
    return patch(log1p(maximum(x, _MIN_LOG1P_ARGUMENT)), (x < -0.9) | (x == _INF), _log_extreme_ratio, a, b)


def _log_extreme_ratio(a: Any, b: Any) -> Any:
    ratio = a / b
    safe = (ratio > 0) & (ratio < _INF)
    return where(safe, log(where(safe, ratio, 1.0)), log(a) - log(b))


def kl_excess(d: Any, a: Any, b: Any) -> Any:
    """Compute a log(a/b) - d, without cancellation."""
    x = d / b
    is_close = abs(x) < SERIES_BELOW
    if np.all(is_close):
        return _kl_series(d, x)
    # Where a is below 2**-53 b, the first term is too small to change the second, so its logarithm may be wrong.
    value = patch(a * log1p(maximum(x, _MIN_LOG1P_ARGUMENT)) - d, is_close, _kl_series, d, x)
    return patch(value, x == _INF, lambda a, b: a * (log(a) - log(b)) - (a - b), a, b)


def _kl_series(d: Any, x: Any) -> Any:
    """b ((1+x) log(1+x) - x) for b = d/x: the sum over n >= 2 of (-x)^n / (n (n-1))."""
    return d * x * (1 / 2 - x * (1 / 6 - x * (1 / 12 - x * (1 / 20 - x * (1 / 30 - x * (1 / 42 - x / 56))))))


def jensen_shannon_excess(d: Any, a: Any, b: Any) -> Any:
    """Compute (a log(2a/(a+b)) + b log(2b/(a+b))) / 2, without cancellation."""
    m = middle(a, b)
    r = d / 2 / m
    is_close = abs(r) < SERIES_BELOW
    if np.all(is_close):
        return _jensen_shannon_series(d, r)
    value = (a * log1p(maximum(r, _MIN_LOG1P_ARGUMENT)) + b * log1p(maximum(-r, _MIN_LOG1P_ARGUMENT))) / 2
    return patch(value, is_close, _jensen_shannon_series, d, r)


def _jensen_shannon_series(d: Any, r: Any) -> Any:
    """m ((1+r) log(1+r) + (1-r) log(1-r)) / 2 for m = d/2r: the sum over n of r^2n / (n (2n-1)), times m/2."""
    r2 = r * r
    return d / 2 * r * (1 + r2 * (1 / 6 + r2 * (1 / 15 + r2 / 28))) / 2


def middle(a: Any, b: Any) -> Any:
    """Compute (a + b) / 2, also where a + b overflows."""
    total = a + b
    return patch(total / 2, total == _INF, lambda a, b: a / 2 + b / 2, a, b)


def ratio_excess(d: Any, b: Any) -> Any:
    """Compute d^2 / b, also where d^2 or d / b leaves the range of floats."""
    x = d / b
    return patch(d * x, np.isinf(x), lambda d, b: (d / sqrt(b)) ** 2, d, b)


_make = FDivergence._trusted


def _jeffreys_conjugate(s: Any) -> Any:
    from scipy.special import wrightomega

    t = 1 / np.real(wrightomega(1 - s))  # f'(t) = log t + 1 - 1/t = s
    return t * s - (t - 1) * log(t)


KL = _make(
    "KL divergence", lambda t: t * log(t), lambda t: log(t) + 1, 0.0, _INF,
    lambda s: exp(s - 1), kl_excess, ("kl",),
)  # fmt: skip

REVERSE_KL = _make(
    "reverse KL divergence", lambda t: -log(t), lambda t: -1 / t, _INF, 0.0,
    lambda s: where(s < 0, -1 - log(where(s < 0, -s, 1.0)), _INF),
    lambda d, a, b: kl_excess(-d, b, a), ("reverse-kl",),
)  # fmt: skip

JEFFREYS = _make(
    "Jeffreys divergence", lambda t: (t - 1) * log(t), lambda t: log(t) + 1 - 1 / t, _INF, _INF,
    _jeffreys_conjugate, lambda d, a, b: d * log_ratio(d, a, b), ("jeffreys",),
)  # fmt: skip

TOTAL_VARIATION = _make(
    "total variation", lambda t: abs(t - 1) / 2, lambda t: np.sign(t - 1) / 2, 0.5, 0.5,
    lambda s: where(s <= 0.5, maximum(s, -0.5), _INF), lambda d, a, b: abs(d) / 2, ("total-variation",),
)  # fmt: skip

CHI_SQUARED = _make(
    "chi-squared divergence", lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1), 1.0, _INF,
    lambda s: where(s >= -2, s + s * s / 4, -1.0), lambda d, a, b: ratio_excess(d, b), ("chi-squared",),
)  # fmt: skip

NEYMAN_CHI_SQUARED = _make(
    "Neyman chi-squared divergence", lambda t: (t - 1) ** 2 / t, lambda t: 1 - 1 / t**2, _INF, 1.0,
    lambda s: where(s <= 1, 2 - 2 * sqrt(maximum(1 - s, 0.0)), _INF),
    lambda d, a, b: ratio_excess(d, a), ("neyman-chi-squared",),
)  # fmt: skip

SQUARED_HELLINGER = _make(
    "squared Hellinger distance", lambda t: (sqrt(t) - 1) ** 2, lambda t: 1 - 1 / sqrt(t), 1.0, 1.0,
    lambda s: where(s < 1, s / where(s < 1, 1 - s, 1.0), _INF),
    lambda d, a, b: (d / (sqrt(a) + sqrt(b))) ** 2, ("squared-hellinger",),
)  # fmt: skip

JENSEN_SHANNON = _make(
    "Jensen-Shannon divergence", lambda t: (t * log(t) - (1 + t) * log((1 + t) / 2)) / 2,
    lambda t: (log(t) - log((1 + t) / 2)) / 2, log(2) / 2, log(2) / 2,
    lambda s: where(exp(2 * s) < 2, -log(where(exp(2 * s) < 2, 2 - exp(2 * s), 1.0)) / 2, _INF),
    jensen_shannon_excess, ("jensen-shannon",),
)  # fmt: skip

LE_CAM = _make(
    "Le Cam distance", lambda t: (t - 1) ** 2 / (t + 1), lambda t: 1 - 4 / (t + 1) ** 2, 1.0, 1.0,
    lambda s: where(s <= 1, where(s >= -3, 4 - s - 4 * sqrt(maximum(1 - s, 0.0)), -1.0), _INF),
    lambda d, a, b: ratio_excess(d, middle(a, b)) / 2, ("le-cam",),
)  # fmt: skip


def _digits(parameter: float) -> str:
    """The parameter with all its digits, so that it can be read back from the name."""
    return repr(parameter).removesuffix(".0")


def hockey_stick(gamma: float) -> FDivergence:
    """Build the hockey-stick divergence E_gamma [ADC].

    E_gamma(p || q) = sum (p - gamma q)_+ - (1 - gamma)_+. With gamma = 1 it is the total variation; with gamma =
    e^epsilon it is the delta of (epsilon, delta)-privacy.

    Parameters
    ----------
    gamma : A positive number.

    Returns
    -------
    FDivergence
        The divergence.

    Raises
    ------
    InvalidInput
        If gamma is not positive.

    Examples
    --------
    >>> hockey_stick(1.5)([0.9, 0.1], [0.2, 0.8])
    0.6
    """
    return _hockey_stick(positive(gamma, "gamma"))


@cache
def _hockey_stick(gamma: float) -> FDivergence:
    offset = max(1 - gamma, 0.0)
    # The subgradient at a kink on t = 1 (gamma = 1) is one half, as for total variation.
    slope = 0.5 if gamma == 1 else float(gamma < 1)

    def excess(d: Any, a: Any, b: Any) -> Any:
        if gamma == 1:
            return abs(d) / 2
        return maximum(d - (gamma - 1) * b, 0.0) if gamma > 1 else maximum((gamma - 1) * b - d, 0.0)

    return FDivergence._trusted(
        f"hockey-stick divergence of {_digits(gamma)}",
        lambda t: maximum(t - gamma, 0.0) - offset,
        lambda t: where(t == gamma, slope if gamma == 1 else 0.5, (t > gamma) * 1.0),
        0.0 - offset,
        1.0,
        lambda s: where(s > 1, _INF, gamma * maximum(s, 0.0) + offset),
        excess,
        ("hockey-stick", gamma),
    )


def alpha(order: float) -> FDivergence:
    """Build the alpha-divergence of an order [CIM, section 2].

    f(t) = (t^order - 1) / (order^2 - order). Order 1 is the KL divergence, and order 0 the reverse KL divergence.

    Parameters
    ----------
    order : A finite number.

    Returns
    -------
    FDivergence
        The divergence.

    Examples
    --------
    >>> from ldpopt.divergences import CHI_SQUARED
    >>> round(alpha(2)([0.5, 0.5], [0.25, 0.75]) - CHI_SQUARED([0.5, 0.5], [0.25, 0.75]) / 2, 12)
    0.0
    """
    order = number(order, "order")
    return KL if order == 1 else REVERSE_KL if order == 0 else _alpha(order)


@cache
def _alpha(order: float) -> FDivergence:
    scale = order * (order - 1)
    dual = order / (order - 1)

    def excess(d: Any, a: Any, b: Any) -> Any:
        # Two forms of b ((a/b)^order - 1 - order x) / scale: one keeps its digits as order -> 1, one as order -> 0.
        if order >= 0.5:
            value = a * (expm1((order - 1) * log_ratio(d, a, b)) / scale) - d / order
        else:
            value = b * (expm1(order * log_ratio(d, a, b)) / scale) - d / (order - 1)
        return patch(value, abs(d) < b * (SERIES_BELOW / (abs(order) + 2)), series, d, b)

    def series(d: Any, b: Any) -> Any:  # the binomial series, from its second-order term on
        x = d / b
        term = total = d * x / 2
        for power in range(3, 8):
            term = term * (x * ((order - power + 1) / power))
            total = total + term
        return total

    def conjugate(s: Any) -> Any:
        u = (order - 1) * s  # t^(order-1) = u at the maximizer
        inner = where(u > 0, u, 1.0) ** dual / order + 1 / scale
        edge = where(s == 0, _INF if 0 < order < 1 else 1 / scale, 1 / scale if order > 1 else _INF)
        return where(u > 0, inner, edge)

    return FDivergence._trusted(
        f"alpha-divergence of order {_digits(order)}",
        lambda t: (t**order - 1) / scale,
        lambda t: t ** (order - 1) / (order - 1),
        _INF if order < 0 else -1 / scale,
        _INF if order > 1 else 0.0,
        conjugate,
        excess,
        ("alpha", order),
    )


def piecewise_linear(knots: Any, slopes: Any) -> FDivergence:
    """Build the divergence of a convex piecewise linear f, exact in proofs and saved in files.

    It is the sum of hockey sticks at the knots, times the rise of the slope there [ADC].

    Parameters
    ----------
    knots : Array (n,) of rising positive numbers, where the slope changes.
    slopes : Array (n + 1,) of rising slopes of f, before the first knot, between knots, and after the last. Adding a
        number to all of them changes no divergence.

    Returns
    -------
    FDivergence
        The divergence.

    Raises
    ------
    InvalidInput
        If the numbers do not rise, or the lengths do not fit.

    Examples
    --------
    >>> two_sided = piecewise_linear([0.5, 2.0], [-1.0, 0.0, 1.0])
    >>> two_sided([0.9, 0.1], [0.2, 0.8])
    0.8
    """
    points, rises = _finite(knots, "knots"), _finite(slopes, "slopes")
    if not points or min(points) <= 0 or any(b <= a for a, b in pairwise(points)):
        raise invalid("knots", "rising positive numbers", knots)
    if len(rises) != len(points) + 1 or any(b <= a for a, b in pairwise(rises)):
        raise invalid("slopes", f"{len(points) + 1} rising numbers, one more than knots", slopes)
    return _piecewise_linear(points, rises)


def _finite(values: Any, name: str) -> tuple[float, ...]:
    return tuple(float(value) for value in finite_array(values, name, 1))


@cache
def _piecewise_linear(knots: tuple[float, ...], slopes: tuple[float, ...]) -> FDivergence:
    sticks = [(_hockey_stick(knot), high - low) for knot, (low, high) in zip(knots, pairwise(slopes), strict=True)]
    # Each stick is known up to a multiple of t - 1, and so is f: slopes of sticks start at 0.
    at_zero = sum(rise * stick.at_zero for stick, rise in sticks) - slopes[0]

    def generator(t: Any) -> Any:
        return slopes[0] * (t - 1) + sum(rise * stick._generator(t) for stick, rise in sticks)

    def conjugate(s: Any) -> Any:
        ends = [-at_zero, *(s * knot - float(generator(np.float64(knot))) for knot in knots)]
        return where(s > slopes[-1], _INF, np.max(np.broadcast_arrays(*ends), axis=0))

    return FDivergence._trusted(
        f"piecewise linear divergence with {len(knots)} knot{'s' * (len(knots) > 1)}",
        generator,
        lambda t: slopes[0] + sum(rise * stick._derivative(t) for stick, rise in sticks),
        at_zero,
        slopes[-1],
        conjugate,
        lambda d, a, b: sum(rise * stick._inner(d, a, b) for stick, rise in sticks),
        ("piecewise-linear", (knots, slopes)),
    )


def _lists(text: str) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in part.split(",")) for part in text.split("/"))


FAMILIES |= {
    "hockey-stick": ("GAMMA", hockey_stick, float),
    "alpha": ("ORDER", alpha, float),
    "piecewise-linear": ("KNOTS/SLOPES", lambda lists: piecewise_linear(*lists), _lists),
}
