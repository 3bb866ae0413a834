"""Divergences with a parameter: hockey sticks and the alpha-divergences."""

from __future__ import annotations

from functools import cache
from typing import Any

from numpy import expm1, maximum, where

from ldpopt.distribution import number
from ldpopt.divergences.base import FAMILIES, FDivergence
from ldpopt.divergences.formulas import NEAR, log_ratio, patch
from ldpopt.divergences.named import KL, REVERSE_KL
from ldpopt.errors import invalid

_INF = float("inf")


def _digits(parameter: float) -> str:
    """The parameter with all its digits, so that it can be read back from the name."""
    return repr(parameter).removesuffix(".0")


def hockey_stick(gamma: float) -> FDivergence:
    """The hockey-stick divergence E_gamma(p || q) = sum (p - gamma q)_+ - (1 - gamma)_+, gamma > 0 [ADC].

    With gamma = 1 it is the total variation; with gamma = e^epsilon it is the delta of (epsilon, delta)-privacy.

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
    """The alpha-divergence of an `order`, f(t) = (t^order - 1) / (order^2 - order) [CIM, section 2].

    Order 1 is the KL divergence, and order 0 the reverse KL divergence.

    >>> from ldpopt.divergences import CHI_SQUARED
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

    def excess(d: Any, a: Any, b: Any) -> Any:
        # Two forms of b ((a/b)^order - 1 - order x) / scale: one keeps its digits as order -> 1, one as order -> 0.
        if order >= 0.5:
            value = a * (expm1((order - 1) * log_ratio(d, a, b)) / scale) - d / order
        else:
            value = b * (expm1(order * log_ratio(d, a, b)) / scale) - d / (order - 1)
        return patch(value, abs(d) < b * (NEAR / (abs(order) + 2)), series, d, b)

    def series(d: Any, b: Any) -> Any:  # the binomial series, from its second-order term on
        x = d / b
        term = total = d * x / 2
        for power in range(3, 8):
            term = term * (x * ((order - power + 1) / power))
            total = total + term
        return total

    def conjugate(s: Any) -> Any:
        u = (order - 1) * s  # t^(order-1) = u at the maximiser
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


FAMILIES |= {"hockey-stick": ("GAMMA", hockey_stick), "alpha": ("ORDER", alpha)}
