"""Moments of a mixture under Gaussian and Laplace noise, as balls that surely hold them.

Let q be the distribution of the noise, p that of the moved noise, and l = log p/q. M = 1 - r + r e^l is the likelihood
ratio of r p + (1 - r) q against q. Every measure of Rényi type follows from E M^a (log M)^j under q, for real a and j =
0, 1, 2. D_alpha is log E M^alpha / (alpha - 1) in one direction, and log E M^(1 - alpha) / (alpha - 1) in the other.

Gaussian noise: the trapezoidal rule on the whole line. In the strip |Im x| <= d <= pi/(2 mu), the real part of
1 - r + r e^l is positive, so M^a and log M are analytic. Let N bound the integral of the modulus on every line of the
strip. The rule of step h errs by at most 2 N/(e^(2 pi d/h) - 1) [TW, Thm 5.1]. There |M(x + iy)| lies between
 M(x) cos(mu y/2) and M(x). Sums are cut where min(1, e^l) <= M <= max(1, e^l) bounds the rest.

Laplace noise: l has two atoms, -epsilon and epsilon, and a density between them. That integral is cut into panels that
shrink toward both ends, where the integrand has its peaks, and each panel is enclosed [ARB].
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flint import arb

MAX_POINTS = 60_000
"""Sums of more points are not formed; bounds in closed form stand in for them."""


def gaussian_moment(mu: float, rate: float, power: arb, logs: int, bits: int) -> arb | None:
    """Return a ball around E M^power (log M)^logs for N(0, 1) against N(mu, 1); None beyond `MAX_POINTS`.

    Parameters
    ----------
    mu, rate : Positive; rate in (0, 1).
    power : A ball around a real number; 0 or 1 if `logs` is not 0.
    logs : 0, 1 or 2.
    bits : The accuracy to aim at.
    """
    from flint import arb

    size, log_rest = float(power.mid()), -math.log1p(-rate)
    aim = (bits + 8) * math.log(2) + (abs(size) if size < 0 else 0.0)
    step, strip = _step(mu, aim)
    reach = math.sqrt((4 if logs else 2) * aim)
    if size < 0:
        left, right = math.sqrt(2 * (aim - size * log_rest)), max(reach, mu)
    else:
        growth = size * (size - 1) * mu * mu / 2
        left = reach
        right = size * mu + math.sqrt((4 if logs else 2) * (aim + max(0.0, min(growth, -size * math.log(rate)))))
        right = max(right, mu)
    if not (left + right) / step <= MAX_POINTS:
        return None
    m, r, a, h = arb(mu), arb(rate), power, arb(step)
    half, total = m * m / 2, arb(0)
    first, last = -math.ceil(left / step), math.ceil(right / step)
    for k in range(first, last + 1):
        x = h * k
        log_ratio = (1 - r + r * (m * x - half).exp()).log()
        total += (a * log_ratio - x * x / 2).exp() * log_ratio**logs
    total *= h / (2 * arb.pi()).sqrt()
    # The rest of the sum, left and right: tails of the normal density times the bound on M^a |log M|^j there.
    begin, end = h * -first, h * last
    if logs:
        size = 1 + 4 * m * m + m**4 / 2  # 1 + l^2 <= size e^(y^2/4), y the distance from the mode
        tails = size * ((-begin * begin / 4).exp() + (-((end - a * m) ** 2) / 4).exp())
        bound = 2 * m * m + m**4 / 2 + 8
    elif size < 0:
        tails = (a * (1 - r).log() - begin * begin / 2).exp() + (-end * end / 2).exp()
        bound = None
    else:
        tails = (-begin * begin / 2).exp() + (a * (a - 1) * m * m / 2 - (end - a * m) ** 2 / 2).exp()
        bound = None
    d = arb(strip)
    share = 2 * (d * d / 2).exp() / ((2 * arb.pi() * d / h).exp() - 1)
    if size < 0:
        share *= (d * m / 2).cos() ** a
    total += arb(0, tails.upper())
    if bound is not None:
        return total + arb(0, (share * bound).upper())
    return total / (1 + arb(0, share.upper()))


def _step(mu: float, aim: float) -> tuple[float, float]:
    """The step of the rule and the half width of the strip, for a relative error of about e^-aim."""
    strip = min(math.sqrt(2 * aim), 1.57 / mu)
    return 2 * math.pi * strip / (aim + strip * strip / 2), strip


def laplace_moment(epsilon: float, rate: float, power: arb, logs: int, bits: int) -> arb:
    """Return a ball around E M^power (log M)^logs for unit Laplace noise moved by `epsilon`; as `gaussian_moment`."""
    from flint import acb, arb

    e, r, a, size = arb(epsilon), arb(rate), power, float(power.mid())

    def log_ratio(loss: arb) -> arb:
        return (1 - r + r * loss.exp()).log()

    peak = a * log_ratio(e if size > 0 else -e)

    def integrand(t: acb, analytic: bool) -> acb:
        log = (1 - r + r * t.exp()).log(analytic=analytic)
        value = (acb(a) * log - peak - (t + e) / 2).exp()
        return value * log**logs if logs else value

    count = max(1, math.ceil(math.log2(max(2.0, (abs(size) + 1) * epsilon))))
    inner = [e * (1 - arb(2) ** -n) for n in range(1, count + 1)]
    cuts = [-e, *(-x for x in reversed(inner)), arb(0), *inner, e]
    inner_integral = arb(0)
    for low, high in pairwise(cuts):
        inner_integral += acb.integral(integrand, acb(low), acb(high)).real
    ends = [(log_ratio(loss), loss) for loss in (-e, e)]
    atoms = [(a * log - peak).exp() * log**logs * ((-e).exp() if loss > 0 else 1) / 2 for log, loss in ends]
    return (atoms[0] + atoms[1] + inner_integral / 4) * peak.exp()
