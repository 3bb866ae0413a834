"""Restricted Rényi divergence of additive noise: what an adversary limited to affine features can learn.

For p = law of Y and q = law of Y + v, Y symmetric, and H = {a y + b}, with A = order/(order - 1),
D = -log min E|a Y + b|^A over a v + b = 1 [CIM, eq. 3]: a convex program in one variable. The printed bound
[CIM, Thm 13] is below this value for order > 2 and small epsilon, so it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ldpopt.distribution import Array, number
from ldpopt.errors import invalid
from ldpopt.mechanisms.outward import guarantee
from ldpopt.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Noise:
    """Symmetric noise: its `density` on [0, inf), where to cut that half-line for quadrature, and its variance.

    Beyond the last of `cuts` the density is negligible: less than 1e-18 of any moment asked for.
    """

    density: Callable[[Array], Array]
    cuts: tuple[float, ...]
    variance: float


def restricted_renyi(noise: Noise, shift: float, order: float) -> Guarantee:
    """The Rényi divergence restricted to affine features between `noise` and `noise` moved by `shift` > 0, in nats.

    order in (1, inf). The convex program is solved by quadrature and one-dimensional minimisation; convexity turns
    three values around the minimum into the bracket that the `Guarantee` reports.

    >>> from ldpopt.mechanisms.laplace import laplace_noise
    >>> round(float(restricted_renyi(laplace_noise(10.0), 1.0, 3.0)), 8)
    0.00739299
    """
    order = number(order, "order", "a finite number above 1")
    if not order > 1:
        raise invalid("order", "a finite number above 1", order)
    power = order / (order - 1)

    def excess(c: float) -> tuple[float, float]:
        """E|h|^A - 1 and its error, for h = a Y + b with b/a = c and a v + b = 1."""
        grown, error = grown_moment(noise, c, power)
        value = math.expm1(math.log1p(grown) - power * math.log1p(shift / c))
        return value, 1e-14 * (abs(value) + power * min(shift / c, 1.0)) + error * (1 + value) / (1 + grown)

    best = _minimiser(lambda c: excess(c)[0], noise.variance / (shift * (order - 1)), shift)
    middle, error = excess(best)
    # In a = 1/(v + c) the program is convex: at equal steps the minimum is at least 2 F(a) - F(a +- step).
    low = middle - error
    for step in (1e-5, 1e-4, 1e-3):
        around = [excess((shift + best) / (1 + sign * step) - shift) for sign in (-1.0, 1.0)]
        highest = max(value + slack for value, slack in around)
        if all(value >= middle for value, _ in around):
            low = 2 * (middle - error) - highest
            break
    else:
        raise AssertionError("the minimum of a convex function was not bracketed")
    parameters = {"order": order}
    return guarantee("capacity_bounded", _log(middle + error), _log(low), "[CIM, eq. 3]", parameters=parameters)


def _log(excess: float) -> float:
    return -math.log1p(excess) if excess > -1 else math.inf


def _minimiser(function: Callable[[float], float], guess: float, shift: float) -> float:
    """The minimiser over c > 0 of a unimodal function, near `guess` on a logarithmic scale."""
    from scipy.optimize import minimize_scalar

    low, high = math.log(min(guess, shift)) - 12, math.log(max(guess, shift)) + 12
    found = minimize_scalar(
        lambda u: function(math.exp(u)), bounds=(low, high), method="bounded", options={"xatol": 1e-8}
    )
    return math.exp(float(found.x))


def grown_moment(noise: Noise, c: float, power: float) -> tuple[float, float]:
    """E|1 + Y/c|^power - 1 for symmetric Y and c > 0, and the error of the quadrature.

    Composite Gauss-Legendre over the noise's own cuts and over intervals that shrink towards the kink at y = c.
    """
    end = noise.cuts[-1]
    near = c * 2.0 ** np.arange(-46, 60)
    edges = np.unique(np.concatenate([noise.cuts, [c], c - near[near < c], c + near[c + near < end]]))
    edges = edges[(edges >= 0) & (edges <= end)]
    fine, coarse = (_panels(noise.density, edges, c, power, nodes) for nodes in (24, 14))
    value = float(fine.sum())
    return value, float(np.abs(fine - coarse).sum()) + 1e-15 * abs(value)


def _panels(density: Any, edges: Array, c: float, power: float, nodes: int) -> Array:
    x, w = _rule(nodes)
    half = np.diff(edges)[:, None] / 2
    y = edges[:-1, None] + half * (1 + x)
    return np.asarray((half * w * density(y) * pair_growth(y / c, power)).sum(axis=1))


@cache
def _rule(nodes: int) -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(nodes)
    return x, w


def pair_growth(t: Array, power: float) -> Array:
    """|1 + t|^power + |1 - t|^power - 2 for t >= 0, to full relative accuracy at small t."""
    small = t < 0.03
    s = np.where(small, t, 0.0) ** 2
    series, coefficient, term = np.zeros_like(s), 1.0, np.ones_like(s)
    for j in range(1, 7):
        coefficient *= (power - 2 * j + 2) * (power - 2 * j + 1) / ((2 * j) * (2 * j - 1))
        term = term * s
        series += 2 * coefficient * term
    u = np.where(small, 0.5, t)
    return np.where(small, series, (1 + u) ** power + np.abs(1 - u) ** power - 2)
