"""The named f-divergences, in closed form.

Each entry's `excess` is written in d = a - b, so that a divergence of order d^2 keeps its relative
accuracy when a and b agree to many digits; where logarithms would cancel, a series takes over.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy import exp, expm1, log, log1p, maximum, sqrt, where

from ldpopt.distribution import number
from ldpopt.divergences.base import FDivergence
from ldpopt.errors import invalid

_INF = float("inf")
_make = FDivergence._trusted


def _digits(parameter: float) -> str:
    """All digits, so that a name gives its parameter back."""
    return repr(parameter).removesuffix(".0")


def _jeffreys_conjugate(s: Any) -> Any:
    from scipy.special import wrightomega

    t = 1 / np.real(wrightomega(1 - s))  # f'(t) = log t + 1 - 1/t = s
    return t * s - (t - 1) * log(t)


_NEAR = 0.01
"""Relative distance of a and b below which series replace logarithms; they are exact to a double there."""

_FLOOR = -1 + 2.0**-53


def _patch(value: Any, mask: Any, formula: Any, a: Any, b: Any) -> Any:
    """`value`, with `formula(a, b)` where `mask` says; computed only there, since this is the solvers' inner loop."""
    if not np.any(mask):
        return value
    if np.all(mask):
        return formula(a, b)
    a, b = np.broadcast_arrays(a, b)
    value[mask] = formula(a[mask], b[mask])
    return value


def _log_ratio(a: Any, b: Any) -> Any:
    """log(a/b) to a few units in the last place, near a = b and at extreme ratios too."""
    x = (a - b) / b
    return _patch(log1p(maximum(x, _FLOOR)), (x < -0.9) | (x == _INF), _log_extreme_ratio, a, b)


def _log_extreme_ratio(a: Any, b: Any) -> Any:
    ratio = a / b
    safe = (ratio > 0) & (ratio < _INF)
    return where(safe, log(where(safe, ratio, 1.0)), log(a) - log(b))


def _kl_excess(a: Any, b: Any) -> Any:
    """a log(a/b) - (a - b), without cancellation."""
    d = a - b
    x = d / b
    near = abs(x) < _NEAR
    if np.all(near):
        return _kl_series(d, x)
    # Where a is below 2**-53 b, the first term is lost in the second, whatever the logarithm.
    value = _patch(a * log1p(maximum(x, _FLOOR)) - d, near, _kl_series, d, x)
    return _patch(value, x == _INF, lambda a, b: a * (log(a) - log(b)) - (a - b), a, b)


def _kl_series(d: Any, x: Any) -> Any:
    """b ((1+x) log(1+x) - x) for b = d/x: the sum over n >= 2 of (-x)^n / (n (n-1))."""
    return d * x * (1 / 2 - x * (1 / 6 - x * (1 / 12 - x * (1 / 20 - x * (1 / 30 - x * (1 / 42 - x / 56))))))


def _jensen_shannon_excess(a: Any, b: Any) -> Any:
    """(a log(2a/(a+b)) + b log(2b/(a+b))) / 2, without cancellation."""
    m = (a + b) / 2
    r = (a - b) / (2 * m)
    near = abs(r) < _NEAR
    if np.all(near):
        return _jensen_shannon_series(m, r)
    value = (a * log1p(maximum(r, _FLOOR)) + b * log1p(maximum(-r, _FLOOR))) / 2
    return _patch(value, near, _jensen_shannon_series, m, r)


def _jensen_shannon_series(m: Any, r: Any) -> Any:
    """m ((1+r) log(1+r) + (1-r) log(1-r)) / 2: the sum over n of r^2n / (n (2n-1)), times m/2."""
    r2 = r * r
    return m * r2 * (1 + r2 * (1 / 6 + r2 * (1 / 15 + r2 / 28))) / 2


KL = _make(
    "KL divergence",
    lambda t: t * log(t),
    lambda t: log(t) + 1,
    0.0,
    _INF,
    lambda s: exp(s - 1),
    _kl_excess,
)

REVERSE_KL = _make(
    "reverse KL divergence",
    lambda t: -log(t),
    lambda t: -1 / t,
    _INF,
    0.0,
    lambda s: where(s < 0, -1 - log(where(s < 0, -s, 1.0)), _INF),
    lambda a, b: _kl_excess(b, a),
)

JEFFREYS = _make(
    "Jeffreys divergence",
    lambda t: (t - 1) * log(t),
    lambda t: log(t) + 1 - 1 / t,
    _INF,
    _INF,
    _jeffreys_conjugate,
    lambda a, b: (a - b) * _log_ratio(a, b),
)

TOTAL_VARIATION = _make(
    "total variation",
    lambda t: abs(t - 1) / 2,
    lambda t: np.sign(t - 1) / 2,
    0.5,
    0.5,
    lambda s: where(s <= 0.5, maximum(s, -0.5), _INF),
    lambda a, b: abs(a - b) / 2,
)

CHI_SQUARED = _make(
    "chi-squared divergence",
    lambda t: (t - 1) ** 2,
    lambda t: 2 * (t - 1),
    1.0,
    _INF,
    lambda s: where(s >= -2, s + s * s / 4, -1.0),
    lambda a, b: (a - b) ** 2 / b,
)

NEYMAN_CHI_SQUARED = _make(
    "Neyman chi-squared divergence",
    lambda t: (t - 1) ** 2 / t,
    lambda t: 1 - 1 / t**2,
    _INF,
    1.0,
    lambda s: where(s <= 1, 2 - 2 * sqrt(maximum(1 - s, 0.0)), _INF),
    lambda a, b: (a - b) ** 2 / a,
)

SQUARED_HELLINGER = _make(
    "squared Hellinger distance",
    lambda t: (sqrt(t) - 1) ** 2,
    lambda t: 1 - 1 / sqrt(t),
    1.0,
    1.0,
    lambda s: where(s < 1, s / where(s < 1, 1 - s, 1.0), _INF),
    lambda a, b: ((a - b) / (sqrt(a) + sqrt(b))) ** 2,
)

JENSEN_SHANNON = _make(
    "Jensen-Shannon divergence",
    lambda t: (t * log(t) - (1 + t) * log((1 + t) / 2)) / 2,
    lambda t: (log(t) - log((1 + t) / 2)) / 2,
    log(2) / 2,
    log(2) / 2,
    lambda s: where(exp(2 * s) < 2, -log(where(exp(2 * s) < 2, 2 - exp(2 * s), 1.0)) / 2, _INF),
    _jensen_shannon_excess,
)

LE_CAM = _make(
    "Le Cam distance",
    lambda t: (t - 1) ** 2 / (t + 1),
    lambda t: 1 - 4 / (t + 1) ** 2,
    1.0,
    1.0,
    lambda s: where(s <= 1, where(s >= -3, 4 - s - 4 * sqrt(maximum(1 - s, 0.0)), -1.0), _INF),
    lambda a, b: (a - b) ** 2 / (a + b),
)


def hockey_stick(gamma: float) -> FDivergence:
    """E_gamma(p || q) = sum (p - gamma q)_+ - (1 - gamma)_+, for gamma > 0; gamma = 1 is total variation.

    >>> hockey_stick(1.5)([0.9, 0.1], [0.2, 0.8])
    0.6
    """
    gamma = number(gamma, "gamma", "a positive number")
    if gamma <= 0:
        raise invalid("gamma", "a positive number", gamma)
    return _hockey_stick(gamma)


@cache
def _hockey_stick(gamma: float) -> FDivergence:
    offset = max(1 - gamma, 0.0)
    # The subgradient at a kink on t = 1 (gamma = 1) is one half, as for total variation.
    slope = 0.5 if gamma == 1 else float(gamma < 1)

    def excess(a: Any, b: Any) -> Any:
        if gamma == 1:
            return abs(a - b) / 2
        return maximum(a - gamma * b, 0.0) if gamma > 1 else maximum(gamma * b - a, 0.0)

    return _make(
        f"hockey-stick divergence of {_digits(gamma)}",
        lambda t: maximum(t - gamma, 0.0) - offset,
        lambda t: where(t == gamma, slope if gamma == 1 else 0.5, (t > gamma) * 1.0),
        0.0 - offset,
        1.0,
        lambda s: where(s > 1, _INF, gamma * maximum(s, 0.0) + offset),
        excess,
    )


def alpha(order: float) -> FDivergence:
    """The alpha-divergence, f(t) = (t^order - 1) / (order^2 - order) [CIM, section 2]; 1 is KL, 0 reverse KL.

    >>> round(alpha(2)([0.5, 0.5], [0.25, 0.75]) - CHI_SQUARED([0.5, 0.5], [0.25, 0.75]) / 2, 12)
    0.0
    """
    order = number(order, "order")
    if order == 1:
        return KL
    if order == 0:
        return REVERSE_KL
    return _alpha(order)


@cache
def _alpha(order: float) -> FDivergence:
    scale = order * (order - 1)
    dual = order / (order - 1)

    def excess(a: Any, b: Any) -> Any:
        d = a - b
        # Two forms of b ((a/b)^order - 1 - order x) / scale: one keeps its digits as order -> 1, one as order -> 0.
        if order >= 0.5:
            value = (a * expm1((order - 1) * _log_ratio(a, b)) / (order - 1) - d) / order
        else:
            value = (b * expm1(order * _log_ratio(a, b)) / order - d) / (order - 1)
        return _patch(value, abs(d) < b * (_NEAR / (abs(order) + 2)), series, a, b)

    def series(a: Any, b: Any) -> Any:  # the binomial one, from its second-order term on
        x = (a - b) / b
        term = total = (a - b) * x / 2
        for power in range(3, 8):
            term = term * (x * ((order - power + 1) / power))
            total = total + term
        return total

    def conjugate(s: Any) -> Any:
        u = (order - 1) * s  # t^(order-1) = u at the maximiser
        inner = where(u > 0, u, 1.0) ** dual / order + 1 / scale
        edge = where(s == 0, _INF if 0 < order < 1 else 1 / scale, 1 / scale if order > 1 else _INF)
        return where(u > 0, inner, edge)

    return _make(
        f"alpha-divergence of order {_digits(order)}",
        lambda t: (t**order - 1) / scale,
        lambda t: t ** (order - 1) / (order - 1),
        _INF if order < 0 else -1 / scale,
        _INF if order > 1 else 0.0,
        conjugate,
        excess,
    )


NAMED: dict[str, FDivergence] = {
    "kl": KL,
    "reverse-kl": REVERSE_KL,
    "jeffreys": JEFFREYS,
    "total-variation": TOTAL_VARIATION,
    "chi-squared": CHI_SQUARED,
    "neyman-chi-squared": NEYMAN_CHI_SQUARED,
    "squared-hellinger": SQUARED_HELLINGER,
    "jensen-shannon": JENSEN_SHANNON,
    "le-cam": LE_CAM,
}
"""The names the command line and files use."""

_FAMILIES = {"hockey-stick": hockey_stick, "alpha": alpha}


def rebuild(name: str, *parameters: float) -> FDivergence:
    """The divergence with a name of `NAMED`, or of a family with its parameter.

    >>> rebuild("hockey-stick", 1.5)
    <hockey-stick divergence of 1.5>
    """
    if name in NAMED and not parameters:
        return NAMED[name]
    if name in _FAMILIES and len(parameters) == 1:
        return _FAMILIES[name](parameters[0])
    choices = ", ".join([*NAMED, "hockey-stick GAMMA", "alpha ORDER"])
    raise invalid("divergence", f"one of {choices}", " ".join([name, *map(str, parameters)]))


def recipe(divergence: FDivergence) -> tuple[Any, ...] | None:
    """The arguments of `rebuild` that give `divergence` back, or None for a user's own."""
    for name, known in NAMED.items():
        if known is divergence:
            return (name,)
    for family, words in (("hockey-stick", "hockey-stick divergence of "), ("alpha", "alpha-divergence of order ")):
        if divergence._excess is not None and divergence.name.startswith(words):
            return (family, float(divergence.name.removeprefix(words)))
    return None
