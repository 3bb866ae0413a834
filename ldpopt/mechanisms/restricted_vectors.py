"""Restricted Rényi divergence of vectors of Laplace noise: the convex program in several variables.

Let Y be a vector of independent unit Laplace variables, v a shift, and w.y + b the affine functions with w in a linear
space. The divergence is -log min F, with F(w) = E|w.Y + 1 - w.v|^A and A = order/(order - 1) [CIM, eq. 3]. The moment
of the sum w.Y is computed as that of one Laplace variable of the same variance, plus a cosine integral of the
difference of the two characteristic functions [OM].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from ldpopt.distribution import Array
from ldpopt.mechanisms.laplace import laplace_noise
from ldpopt.mechanisms.restricted import log_growth

LOWEST_ORDER = 1.5
"""Below this order the cosine integral is too singular at 0 to be computed accurately."""

_RADIUS = math.sqrt(3)
"""Every w with F(w) <= 1 has |w| <= sqrt(3): E|w.Y| <= 1, and E X^2 and E X^4 bound E|X| from below."""


def vector_divergence(shift: Array, space: Array, order: float) -> tuple[float, float]:
    """Bounds below and above on the divergence, for order >= `LOWEST_ORDER`.

    shift : (s,), in units of the noise; space : (s, r), orthonormal columns that span the allowed w.
    The upper bound uses that the convex F lies above its tangent plane at the point found. The plane's least value is
    taken over a ball that contains the minimiser.
    """
    from scipy.optimize import minimize

    power = order / (order - 1)
    seen = space.T @ shift
    if not np.any(np.abs(seen) > 1e-15):
        return 0.0, 0.0

    def excess(t: Array) -> float:
        return weighted_excess(space @ t, float(seen @ t), power)[0]

    start = seen / (2 + seen @ seen)  # the minimiser at order 2: least squares
    found = minimize(excess, start * min(1.0, order - 1), jac=lambda t: _gradient(excess, t), options={"gtol": 1e-10})
    best = np.asarray(found.x)
    value, error = weighted_excess(space @ best, float(seen @ best), power)
    slope = float(np.linalg.norm(_gradient(excess, best))) + 1e-11 * math.sqrt(len(best))
    lowest = value - error - slope * (_RADIUS + float(np.linalg.norm(best)))
    return -math.log1p(value + error), -math.log1p(lowest) if lowest > -1 else math.inf


def _gradient(function: Callable[[Array], float], t: Array, step: float = 1e-3) -> Array:
    """Five-point central differences: their error is of fourth order in the step."""
    slopes = np.empty(len(t))
    for i in range(len(t)):
        e = np.zeros(len(t))
        e[i] = step
        near, far = function(t + e) - function(t - e), function(t + 2 * e) - function(t - 2 * e)
        slopes[i] = (8 * near - far) / (12 * step)
    return slopes


def weighted_excess(w: Array, signal: float, power: float) -> tuple[float, float]:
    """E|w.Y + 1 - signal|^power - 1 for independent unit Laplace Y, power <= 3, and its error."""
    scale, b = float(np.linalg.norm(w)), max(abs(1 - signal), 1e-60)
    if scale == 0:
        return math.expm1(power * math.log(b)), 1e-15
    growth, error = log_growth(laplace_noise(scale), b, power)
    coarse, fine = (_correction(np.abs(w) / b, power, panels) for panels in (90, 130))
    logarithm = growth + math.log1p(fine * math.exp(-growth))
    value = math.expm1(power * math.log(b) + logarithm)
    error += abs(fine - coarse) * math.exp(-logarithm) + 2e-15 * (power * abs(math.log(b)) + abs(logarithm))
    return value, error * (1 + value)


def _correction(ratio: Array, power: float, panels: int) -> float:
    """E|1 + X|^power for X = ratio.Y, less that for the Laplace variable of the same variance."""
    if np.count_nonzero(ratio) < 2:
        return 0.0
    u, weight = _cosine_rule(panels)
    total, higher = np.zeros_like(u), np.zeros_like(u)
    # prod(1 + z) = 1 + total + higher, of non-negative terms: the difference of the two functions does not cancel.
    for z in (np.square(r * u) for r in ratio):
        higher = higher * (1 + z) + z * total
        total = total + z
    difference = higher / ((1 + total) * (1 + total + higher)) * u ** (-1 - power)
    constant = 2 / math.pi * math.gamma(1 + power) * math.sin(math.pi * power / 2)
    return constant * float(weight @ difference)


@cache
def _cosine_rule(panels: int) -> tuple[Array, Array]:
    """Nodes and weights for integrals of g(u) cos u over (0, inf): double exponential, for singular slow g [OM]."""
    step, beta = math.pi / panels, 0.25
    slope = beta / math.sqrt(1 + panels * math.log1p(panels) / (4 * math.pi))
    n = np.arange(-math.floor(8 / step), math.floor(5.5 / step))
    t = (n + 0.5) * step
    exponent = 2 * t + slope * -np.expm1(-t) + beta * np.expm1(t)
    rate = 2 + slope * np.exp(-t) + beta * np.exp(t)
    # t/(1 - e^-E) and its derivative, in the decaying exponential of either sign.
    decay = np.exp(-np.abs(exponent))
    ratio = np.where(exponent > 0, 1 / (1 - decay), -decay / (1 - decay))
    slope_term = t * rate * decay / (1 - decay) ** 2
    phi, derivative = t * ratio, ratio - slope_term
    # For t > 0 the node is close to a zero of the cosine; its distance is computed, not its difference.
    gap = t * decay / (1 - decay)
    cosine = np.where(t > 0, np.where(n % 2 == 0, -1.0, 1.0) * np.sin(panels * gap), np.cos(panels * phi))
    keep = phi > 1e-60
    return panels * phi[keep], (panels * step * derivative * cosine)[keep]
