"""Shared parts of mechanisms that release a number plus noise, and the divergences that affine functions see.

Let p be the distribution of the symmetric noise Y, q that of Y + v, and A = order/(order - 1). The divergence
restricted to affine functions a y + b is D = -log min E|a Y + b|^A over a v + b = 1 [CIM, eq. 3]. It is a convex
program in one variable. The bound of [CIM, Thm 13] is not used: it is below this value for order > 2 and small epsilon.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.errors import SolverError, invalid
from ldpopt.numbers.enclosures.adaptive import GUARD_BITS, START_BITS, enclosed
from ldpopt.numbers.enclosures.exact import precision
from ldpopt.numbers.rounding import ULP, down, up
from ldpopt.numbers.tolerances import ATTAINED_GAP
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import Array, Checked, Rng, generator, number, positive, unwrap_scalar

if TYPE_CHECKING:
    from flint import arb

IMPRECISE_BELOW = 1e-290
"""Below this, a value has lost digits, so its two bounds need not be close to be exact."""


def guarantee(
    notion: str, low: float, high: float, reference: str, exact: bool = True, /, **parameters: float
) -> Guarantee:
    """Build the `Guarantee` that the true value lies in [low, high].

    Each end may be off by a few units in the last place.

    exact : True if the interval encloses the value. The guarantee is exact if the interval is also narrow.
    """
    value = up(high, 16) + 0.0
    if notion in ("hockey_stick", "total_variation"):
        value = min(value, 1.0)
    lower = down(max(low, 0.0), 16)
    narrow = lower == value or (value < math.inf and value - lower <= max(ATTAINED_GAP * value, IMPRECISE_BELOW))
    return Guarantee(notion, value, lower, None, exact and narrow, reference, parameters)


def interval_around(value: float, error: float) -> tuple[float, float]:
    """Return the interval around a value of at most this relative error."""
    return value * (1 - error), value * (1 + error)


def enlarge(value: float) -> float:
    """Return a slightly larger epsilon or eta, so that a rounded pair still dominates."""
    # The reverse of `toward_privacy`.
    return value if math.isinf(value) else value + 2.0**-47 + 8 * ULP * value


def answers(x: Any) -> Array:
    """Return the answers as a float array, checked to be finite numbers."""
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
    """Symmetric noise `scale` Y.

    moment : maps balls c >= 0 and A >= 1 to a ball around E|Y + c|^A. variance : that of Y, nearly.
    """

    moment: Callable[[arb, arb], arb]
    variance: float
    scale: float

    def log_drop(self, c: arb, shift: arb, power: arb) -> arb:
        """Return a ball around log E|h|^A for the function h = a Y + b with h(shift) = 1 and b/a = c.

        E|Y + c|^A is even in c.
        """
        return self.moment(abs(c), power).log() - power * (shift + c).log()


def restricted_renyi(noise: Noise, shift: float, order: float) -> Guarantee:
    """Bound the Rényi divergence restricted to affine features of `noise` and moved noise.

    The noise is moved by `shift` > 0; in nats; order in [1.01, inf). The program is convex, so three neighboring values
    of it, as balls, enclose its minimum.
    """
    from flint import arb

    order = number(order, "order", f"a finite number of at least {LOWEST_ORDER}", LOWEST_ORDER)

    def log_value(best: float, step: float) -> arb:
        """Compute log E|h|^A at a (1 + step), where a = 1/(v + c) for c = `best`."""
        scaled_shift, power = arb(shift) / noise.scale, arb(order) / (arb(order) - 1)
        return noise.log_drop((scaled_shift + best) / (1 + arb(step)) - scaled_shift, scaled_shift, power)

    def rough(c: float) -> float:
        with precision(START_BITS + GUARD_BITS):
            return float(log_value(c, 0.0).mid())

    def rise_to(step: float, _: int) -> arb:
        return log_value(best, step) - log_value(best, 0.0)

    unit = shift / noise.scale
    best = _minimiser(rough, noise.variance / (unit * (order - 1)), unit)
    for step in BRACKET_STEPS:
        sides = [enclosed(partial(rise_to, sign * step)) for sign in (-1.0, 1.0)]
        if min(low for low, _ in sides) >= 0:
            break
    else:
        raise SolverError("restricted Rényi divergence: the minimum of the convex program was not bracketed")
    # Between the neighbors, the convex program is at least its middle value less its rise to the higher neighbor.
    rise = math.expm1(max(high for _, high in sides)) * (1 + 8 * ULP)
    low, high = enclosed(lambda _: -log_value(best, 0.0))
    return guarantee("restricted_renyi", low, high - math.log1p(-rise), "[CIM, eq. 3]", order=order)


BRACKET_STEPS = (1e-6, 1e-5, 1e-4, 1e-3)
"""Relative distances at which the neighbors of a minimum found in floats are compared with it."""


def _minimiser(function: Callable[[float], float], guess: float, shift: float) -> float:
    """The minimizer over c > 0 of a unimodal function, near `guess` on a logarithmic scale."""
    from scipy.optimize import minimize_scalar

    low, high = math.log(min(guess, shift)) - 12, math.log(max(guess, shift)) + 12
    options = {"xatol": 1e-8}
    return math.exp(
        minimize_scalar(lambda u: function(math.exp(u)), bounds=(low, high), method="bounded", options=options).x
    )


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
        """The distribution of the noise."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Noise of a shape."""

    @property
    def eta(self) -> float:
        """The total variation distance between the releases for two answers, rounded up [GI, section VI]."""
        return float(self.pair.total_variation())

    def restricted_renyi(self, order: float) -> Guarantee:
        """Compute the Rényi divergence restricted to affine features, in nats [CIM, eq. 3].

        The order lies in [1.01, inf). The divergence limits an adversary who computes only affine functions of the
        release. It also holds for vectors with `sensitivity` in the 1-norm for Laplace and the 2-norm for Gaussian
        noise.
        """
        return restricted_renyi(self.noise, self.sensitivity, order)

    def sample(self, x: Any, rng: Rng = None) -> Any:
        """Simulate releases for an answer or an array of answers.

        `rng` is a numpy generator, a seed or None. Never release them: the set of possible floats depends on the
        answer, so a release may disclose it.
        """
        x = answers(x)
        return unwrap_scalar(x + self._draw(generator(rng), x.shape))
