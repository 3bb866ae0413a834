"""The named f-divergences, in closed form.

Each entry's `excess` is written in d = a - b, so that a divergence of order d^2 keeps its relative
accuracy when a and b agree to many digits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy import exp, log, log1p, maximum, sqrt, where

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


KL = _make(
    "KL divergence",
    lambda t: t * log(t),
    lambda t: log(t) + 1,
    0.0,
    _INF,
    lambda s: exp(s - 1),
    lambda a, b: a * log1p((a - b) / b) - (a - b),
)

REVERSE_KL = _make(
    "reverse KL divergence",
    lambda t: -log(t),
    lambda t: -1 / t,
    _INF,
    0.0,
    lambda s: where(s < 0, -1 - log(where(s < 0, -s, 1.0)), _INF),
    lambda a, b: b * log1p((b - a) / a) - (b - a),
)

JEFFREYS = _make(
    "Jeffreys divergence",
    lambda t: (t - 1) * log(t),
    lambda t: log(t) + 1 - 1 / t,
    _INF,
    _INF,
    _jeffreys_conjugate,
    lambda a, b: (a - b) * log1p((a - b) / b),
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
    lambda a, b: (a * log1p((a - b) / (a + b)) + b * log1p((b - a) / (a + b))) / 2,
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


@cache
def hockey_stick(gamma: float) -> FDivergence:
    """E_gamma(p || q) = sum (p - gamma q)_+ - (1 - gamma)_+, for gamma > 0; gamma = 1 is total variation.

    >>> hockey_stick(1.5)([0.9, 0.1], [0.2, 0.8])
    0.6
    """
    gamma = number(gamma, "gamma", "a positive number")
    if gamma <= 0:
        raise invalid("gamma", "a positive number", gamma)
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


@cache
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
    scale = order * (order - 1)
    dual = order / (order - 1)

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
        lambda a, b: b * (np.expm1(order * log1p((a - b) / b)) - order * ((a - b) / b)) / scale,
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
