"""What mechanisms share that release a number plus noise, and the divergences that affine functions see.

Let p be the law of the symmetric noise Y, q that of Y + v, and A = order/(order - 1). The divergence restricted to
affine functions a y + b is D = -log min E|a Y + b|^A over a v + b = 1 [CIM, eq. 3], a convex program in one variable.
The bound of [CIM, Thm 13] is not used: it is below this value for order > 2 and small epsilon.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ldpopt.errors import SolverError, invalid
from ldpopt.numbers.rounding import ULP, down, up
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import Array, Checked, Rng, generator, number, plain, positive


def guarantee(
    notion: str, low: float, high: float, reference: str, exact: bool = True, /, **parameters: float
) -> Guarantee:
    """The `Guarantee` that the true value lies in [low, high]; each end may be off by a few units in the last place."""
    value = up(high, 16) + 0.0
    if notion in ("hockey_stick", "total_variation"):
        value = min(value, 1.0)
    return Guarantee(notion, value, down(max(low, 0.0), 16), None, exact, reference, parameters)


def near(value: float, error: float) -> tuple[float, float]:
    """The interval around a value of at most this relative error."""
    return value * (1 - error), value * (1 + error)


def enlarge(value: float) -> float:
    """A slightly larger epsilon or eta, so that a rounded pair still dominates; the reverse of `toward_privacy`."""
    return value if math.isinf(value) else value + 2.0**-47 + 8 * ULP * value


def answers(x: Any) -> Array:
    """The answers as a float array, checked to be finite numbers."""
    try:
        values = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid("answers", "an array of numbers", x) from None
    if not np.isfinite(values).all():
        raise invalid("answers", "finite numbers", x)
    return values


LOWEST_ORDER = 1.01
"""Closer to order 1, the power order/(order - 1) is too large for the quadrature."""


@dataclass(frozen=True)
class Noise:
    """Symmetric noise Y: its `density` on [0, inf), its variance, and points at which to cut that half-line.

    The part of E|Y + c|^power beyond the last of `cuts(power)` is less than 1e-16 of the whole, for every c.
    """

    density: Callable[[Array], Array]
    cuts: Callable[[float], Array]
    variance: float


def restricted_renyi(noise: Noise, shift: float, order: float) -> Guarantee:
    """The Rényi divergence restricted to affine features between `noise` and `noise` moved by `shift` > 0, in nats.

    order in [1.01, inf). By convexity, three values around the minimum give the lower and the upper bound.
    """
    order = number(order, "order", f"a finite number of at least {LOWEST_ORDER}", LOWEST_ORDER)
    power = order / (order - 1)

    def log_moment(c: float) -> tuple[float, float]:
        """log E|h|^A and its error, for h = a Y + b with b/a = c and a v + b = 1."""
        growth, error = log_growth(noise, c, power)
        drop = power * math.log1p(shift / c)
        return growth - drop, error + 2e-15 * (growth + drop)

    best = _minimiser(lambda c: log_moment(c)[0], noise.variance / (shift * (order - 1)), shift)
    middle, error = log_moment(best)
    # In a = 1/(v + c) the moment F is convex: at equal steps its minimum is at least 2 F(a) - F(a +- step).
    for step in (1e-5, 1e-4, 1e-3):
        around = [log_moment((shift + best) / (1 + sign * step) - shift) for sign in (-1.0, 1.0)]
        if all(value >= middle for value, _ in around):
            break
    else:
        raise SolverError("restricted Rényi divergence: the minimum of the convex program was not bracketed")
    rise = math.expm1(max(value + slack for value, slack in around) - (middle - error))
    highest = error - middle - math.log1p(-rise)
    return guarantee("restricted_renyi", -middle - error, highest, "[CIM, eq. 3]", order=order)


def _minimiser(function: Callable[[float], float], guess: float, shift: float) -> float:
    """The minimiser over c > 0 of a unimodal function, near `guess` on a logarithmic scale."""
    from scipy.optimize import minimize_scalar

    low, high = math.log(min(guess, shift)) - 12, math.log(max(guess, shift)) + 12
    options = {"xatol": 1e-8}
    return math.exp(
        minimize_scalar(lambda u: function(math.exp(u)), bounds=(low, high), method="bounded", options=options).x
    )


def log_growth(noise: Noise, c: float, power: float) -> tuple[float, float]:
    """log E|1 + Y/c|^power for symmetric Y and c > 0, and the error of the quadrature, denser towards y = c."""
    cuts = noise.cuts(power)
    near = c * 2.0 ** np.arange(-46, 240)
    edges = np.unique(np.concatenate([cuts, [c], c - near[near < c], c + near]))
    edges = edges[edges <= cuts[-1]]
    # The largest growth, divided out where it would overflow; elsewhere the growth less 1 keeps its digits.
    top = power * math.log1p(cuts[-1] / c)
    growth = partial(pair_growth, power=power) if top < 600 else partial(_scaled_growth, power=power, top=top)
    fine, coarse = (_panels(noise.density, edges, c, growth, nodes) for nodes in (24, 14))
    value = float(fine.sum())
    error = float(np.abs(fine - coarse).sum()) + 1e-15 * value
    if top < 600:
        return math.log1p(value), error / (1 + value)
    return top + math.log(value), error / value + 1e-15 * top


def _panels(
    density: Callable[[Array], Array], edges: Array, c: float, growth: Callable[[Array], Array], n: int
) -> Array:
    x, w = _rule(n)
    half = np.diff(edges)[:, None] / 2
    y = edges[:-1, None] + half * (1 + x)
    return np.asarray((half * w * density(y) * growth(y / c)).sum(axis=1))


@cache
def _rule(nodes: int) -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(nodes)
    return x, w


def pair_growth(t: Array, power: float) -> Array:
    """|1 + t|^power + |1 - t|^power - 2 for t >= 0, to full relative accuracy at small t."""
    small = t < 0.03
    s, u = t[small] ** 2, t[~small]
    series, coefficient, term = np.zeros_like(s), 1.0, np.ones_like(s)
    for j in range(1, 7):
        coefficient *= (power - 2 * j + 2) * (power - 2 * j + 1) / ((2 * j) * (2 * j - 1))
        term = term * s
        series += 2 * coefficient * term
    growth = np.empty_like(t)
    growth[small], growth[~small] = series, (1 + u) ** power + np.abs(1 - u) ** power - 2
    return growth


def _scaled_growth(t: Array, power: float, top: float) -> Array:
    """(|1 + t|^power + |1 - t|^power) / exp(top)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(power * np.log1p(t) - top) + np.exp(power * np.log(np.abs(1 - t)) - top))


class AdditiveNoise(Checked, ABC, sensitivity=positive):
    """A mechanism that releases a number plus noise; answers are at most `sensitivity` apart."""

    sensitivity: float

    @property
    @abstractmethod
    def pair(self) -> Any:
        """The dominating pair: the releases for two answers that are `sensitivity` apart."""

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """The law of the noise."""

    @abstractmethod
    def _drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Noise of a shape."""

    @property
    def eta(self) -> float:
        """The total variation distance between the releases for two answers, rounded up [GI, section VI]."""
        return float(self.pair.total_variation())

    def restricted_renyi(self, order: float) -> Guarantee:
        """The Rényi divergence restricted to affine features, of an order in [1.01, inf), in nats [CIM, eq. 3].

        It is what an adversary learns who computes only affine functions of the release, also of vectors with
        `sensitivity` in the 1-norm for Laplace and the 2-norm for Gaussian noise.
        """
        return restricted_renyi(self.noise, self.sensitivity, order)

    def sample(self, x: Any, rng: Rng = None) -> Any:
        """Simulated releases for an answer or an array of answers; `rng` is a numpy generator, a seed or None.

        Never release them: which floats can come up depends on the answer, so that a release may give it away.
        """
        x = answers(x)
        return plain(x + self._drawn(generator(rng), x.shape))
