"""Two populations and limits of privacy -> how fast, and with how few respondents, they can be told apart.

For s in (0, 1) let OPT_s be the most that a channel keeps of the f-divergence 1 - t^s; then 1 - OPT_s is the least
affinity sum_y M0(y)^s M1(y)^(1-s) of the reports' laws. Affinities of independent reports multiply, also where each
channel is chosen in view of earlier reports, so that all bounds on respondents hold for interactive protocols, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ldpopt.bounds.comparison import limits_of
from ldpopt.composition.compose import ComposedPair
from ldpopt.composition.lattice import collect
from ldpopt.composition.laws import LatticeLaw
from ldpopt.design import Constraint, Design, Divergence, LocalDP, optimal_channel
from ldpopt.divergences import KL, hockey_stick
from ldpopt.divergences.named import alpha as alpha_divergence
from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.values.deadline import watched
from ldpopt.values.distribution import number
from ldpopt.values.results import Result

_MAX_DESIGNS = 400
_MAX_COMPOSED = 10**7
"""More reports are not composed: the affinities' number stands."""

_POINTS = 17
"""So many hockey sticks of the dominating pair are found, and so many of its composition are compared."""

_LATTICE = 2**10
"""The range of the log-likelihood ratio of one report, in steps."""

_END = 1e-3
"""The least order that is designed for, and one minus the largest."""


@dataclass(frozen=True, eq=False)
class Exponent(Result):
    """The rate at which errors fall with the number of respondents under the best channel, in nats a respondent.

    lower, upper : the best rate lies between them. order : the s of the affinity whose optimum reaches `lower` (1 for
    Stein's exponent). design : the channel that reaches it.

    >>> from ldpopt.bounds import stein
    >>> found = stein([0.9, 0.1], [0.4, 0.6], 1.0)
    >>> found.order, found.lower <= found.upper
    (1.0, True)
    """

    lower: float
    upper: float
    order: float
    design: Design


@dataclass(frozen=True, eq=False)
class Decision(Result):
    """How many respondents a decision between two populations needs: at least `lower`; `upper` suffice with `design`.

    >>> from ldpopt.bounds import respondents_to_decide
    >>> found = respondents_to_decide([0.9, 0.1], [0.4, 0.6], 0.05, 0.05, 1.0)
    >>> found.lower, found.upper
    (42, 48)
    """

    lower: int
    upper: int
    design: Design


def chernoff(
    p0: Any,
    p1: Any,
    epsilon: float,
    eta: float | None = None,
    *,
    tolerance: float = 1e-4,
    time_limit: float | None = None,
) -> Exponent:
    """The best Chernoff exponent: the larger of the two errors falls like exp(-n C) [Chernoff; SPR].

    p0, p1 : distributions of the answers, shape (k,). epsilon : nats. eta : cap on the total variation, in [0, 1].
    tolerance : of upper over lower, relative. time_limit : in seconds; the bracket that is known then is returned.

    It is the maximum over s of -log(1 - OPT_s). For a fixed channel this is concave in s and zero at 0 and 1, so that
    between orders a < b, at which it is at most A and B, it is at most min(s A / a, (1 - s) B / (1 - b)).

    >>> found = chernoff([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], 2.0, 0.5, tolerance=0.01)
    >>> round(found.lower, 6), round(found.order, 6)
    (0.068274, 0.5)
    """
    optimum = _optima(p0, p1, epsilon, eta)
    slack = number(tolerance, "tolerance")
    if not 0 < slack < 1:
        raise invalid("tolerance", "a number between 0 and 1", tolerance)
    orders = [_END, 0.5, 1 - _END]
    with watched(time_limit, False) as deadline:
        for _ in deadline.rounds(range(_MAX_DESIGNS)):
            rates = [_rates(optimum(s), s) for s in orders]
            best = int(np.argmax([low for low, _ in rates]))
            peaks = _peaks(orders, [high for _, high in rates])
            upper, peak = max(peaks)
            if upper <= rates[best][0] * (1 + slack):
                break
            orders = sorted({*orders, peak})
    return Exponent(rates[best][0], max(upper, rates[best][0]), orders[best], optimum(orders[best]))


def stein(p0: Any, p1: Any, epsilon: float, eta: float | None = None, *, time_limit: float | None = None) -> Exponent:
    """The best Stein exponent: with one error held at any level, the other falls like exp(-n E) [KOV14, section 1].

    p0, p1 : distributions of the answers, shape (k,); the error under p0 is held. epsilon : nats. eta : cap on the
    total variation, in [0, 1]. time_limit : in seconds.

    It is the largest KL divergence of the reports' laws. By the chain rule no interactive protocol has a larger one.

    >>> round(stein([0.9, 0.1], [0.4, 0.6], 1.0).lower, 6)
    0.108541
    """
    design = optimal_channel(Divergence(KL, p0, p1), limits_of(epsilon, eta), time_limit=time_limit)
    return Exponent(design.lower_bound, design.upper_bound, 1.0, design)


def respondents_to_decide(
    p0: Any, p1: Any, alpha: float, beta: float, epsilon: float, eta: float | None = None
) -> Decision:
    """How many respondents tell two populations apart with errors alpha and beta, from below and above [Chernoff; SPR].

    p0, p1 : distributions of the answers, shape (k,). alpha, beta : the largest errors under p0 and p1, in (0, 1).
    epsilon : nats. eta : cap on the total variation, in [0, 1].

    No protocol, interactive or not, does with fewer than n >= log((1-alpha)^s beta^(1-s) + alpha^s (1-beta)^(1-s)) /
    log(1 - OPT_s) for any s, nor with fewer reports than the pair of laws needs whose hockey-stick divergences are the
    largest of all channels: it dominates every report, and n such pairs every n reports [KOV15]. With the channel of
    OPT_s a likelihood ratio test does with n >= log(alpha^s beta^(1-s)) / log(1 - OPT_s), and with the n at which the
    law of the (rounded) log-likelihood ratio shows it. Raises `InvalidInput` for limits under which no report tells
    the populations apart, and for disjoint ones, which `mechanisms.binary` serves best.

    >>> respondents_to_decide([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], 0.05, 0.2, 2.0, 0.5).lower
    12
    """
    optimum = _optima(p0, p1, epsilon, eta)
    errors = []
    for name, error in (("alpha", alpha), ("beta", beta)):
        errors.append(number(error, name))
        if not 0 < errors[-1] < 1:
            raise invalid(name, "an error between 0 and 1", error)
    a, b = errors

    def needed(s: float) -> float:
        joint = (1 - a) ** s * b ** (1 - s) + a**s * (1 - b) ** (1 - s)
        return max(-math.log(joint), 0.0) / _rates(optimum(s), s)[1] if a + b < 1 else 0.0

    def enough(s: float) -> float:
        rate = _rates(optimum(s), s)[0]
        return -(s * math.log(a) + (1 - s) * math.log(b)) / rate if rate > 0 else math.inf

    above = _best(enough)
    if not enough(above) < math.inf:
        raise invalid("epsilon, eta", "limits under which a report tells p0 and p1 apart", Phrase("none that does"))
    lower = math.ceil(needed(_best(lambda s: -needed(s))) * (1 - 1e-12))
    upper = max(lower, math.ceil(enough(above) * (1 + 1e-12)))
    decides = _test(optimum(above), p0, p1, a, b)
    upper = _fewest(decides, lower, upper)
    if a + b < 1 and lower < upper <= _MAX_COMPOSED:
        lower = _fewest(_possible(p0, p1, limits_of(epsilon, eta), a, b), lower, upper)
    return Decision(lower, upper, optimum(above))


def _fewest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """A number above which, up to `high`, the condition holds, and below which it was seen not to; by halving."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def _test(design: Design, p0: Any, p1: Any, alpha: float, beta: float) -> Callable[[int], bool]:
    """Whether the test by the log-likelihood ratio of n reports, rounded to a lattice, surely has these errors."""
    m0, m1 = design.channel.push(p0), design.channel.push(p1)
    used = (m0 > 0) | (m1 > 0)
    m0, m1 = m0[used], m1[used]
    if not (m0 > 0).all() or not (m1 > 0).all():
        return lambda n: False
    ratios = np.log(m1 / m0)
    places, back = np.unique(np.rint(ratios / np.ptp(ratios) * _LATTICE).astype(np.int64), return_inverse=True)

    def decides(n: int) -> bool:
        if min(alpha, beta) <= 1024 * n * ULP:  # what follows would find it, too
            return False
        ends = []
        for law in (m0, m1):
            window = LatticeLaw(1.0, ((places, collect(back, law, len(places)), n),), 0.0).window(0.0)
            ends.append((window.first, np.cumsum(window.masses), window.error * len(window.masses) + 256 * n * ULP))
        (first, below0, error0), (other, below1, error1) = ends
        if alpha <= 4 * error0 or beta <= 4 * error1:
            return False
        # The least t with Pr0(T > t) <= alpha; at t itself the test rejects with the probability that is left.
        held = alpha - 2 * error0
        t = int(np.searchsorted(below0, below0[-1] - held))
        bar = t + first - other
        if bar < 0 or bar >= len(below1):
            return bar < 0
        missed = below1[bar]
        if t > 0 and bar > 0:
            left = (held - (below0[-1] - below0[t])) / (below0[t] - below0[t - 1])
            missed -= min(max(left, 0.0), 1.0) * (1 - 1e-9) * (below1[bar] - below1[bar - 1])
        return bool(missed + 2 * error1 <= beta)

    return decides


def _possible(p0: Any, p1: Any, limits: Sequence[Constraint], alpha: float, beta: float) -> Callable[[int], bool]:
    """Whether the pair that dominates every report could have these errors, n times, for all that is known."""
    largest = next(limit.epsilon for limit in limits if isinstance(limit, LocalDP))
    points = np.linspace(0.0, largest, _POINTS)
    kept = [
        max(optimal_channel(Divergence(hockey_stick(math.exp(e)), *laws), limits).upper_bound
            for laws in ((p0, p1), (p1, p0)))
        for e in points[:-1].tolist()
    ]  # fmt: skip
    pair = FinitePair.through(points, np.append(np.minimum.accumulate(np.minimum(kept, 1.0)), 0.0))

    def possible(n: int) -> bool:
        composed = ComposedPair.of([(pair, n)])
        for held, other in ((alpha, beta), (beta, alpha)):
            for e in np.linspace(0.0, -math.log(held), _POINTS):
                if composed.delta_at(float(e)) < (1 - other - math.exp(e) * held) * (1 - 1e-12):
                    return False
        return True

    return possible


def _best(loss: Callable[[float], float]) -> float:
    minimum = minimize_scalar(
        lambda s: loss(float(s)), bounds=(_END, 1 - _END), method="bounded", options={"xatol": 1e-3}
    )
    return float(minimum.x)


def _optima(p0: Any, p1: Any, epsilon: float, eta: float | None) -> Callable[[float], Design]:
    """The optimal channel for each order s, designed once: the alpha-divergence is (1 - t^s)/(s (1 - s))."""
    limits = limits_of(epsilon, eta)
    known: dict[float, Design] = {}

    def optimum(s: float) -> Design:
        if s not in known:
            known[s] = optimal_channel(Divergence(alpha_divergence(s), p0, p1), limits)
        return known[s]

    return optimum


def _rates(design: Design, s: float) -> tuple[float, float]:
    """-log(1 - OPT_s) from below and above: the logarithm rounds, outward here."""
    low, high = (-math.log1p(-min(s * (1 - s) * kept, 1.0)) if kept < math.inf else math.inf
                 for kept in (design.lower_bound, design.upper_bound))  # fmt: skip
    return low * (1 - 1e-15), high * (1 + 1e-15)


def _peaks(orders: list[float], rates: list[float]) -> list[tuple[float, float]]:
    """(bound, order at which it is reached) between neighbours; beyond the first and last the bound is at the ends."""
    peaks = [(rates[0] / (1 - orders[0]), orders[0] / 2), (rates[-1] / orders[-1], (1 + orders[-1]) / 2)]
    for a, b, low, high in zip(orders, orders[1:], rates, rates[1:], strict=False):
        rising, falling = low / a, high / (1 - b)
        total = rising + falling
        s = min(max(falling / total, a), b) if total > 0 else (a + b) / 2
        bound = min(s * rising, (1 - s) * falling)
        margin = (b - a) / 10
        peaks.append((bound, min(max(s, a + margin), b - margin)))
    return peaks
