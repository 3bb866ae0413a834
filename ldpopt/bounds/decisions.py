"""Two populations and privacy constraints: the best decision rate, and the number of respondents that suffices.

For s in (0, 1) let OPT_s be the largest f-divergence 1 - t^s that a channel preserves. Then 1 - OPT_s is the smallest
affinity sum_y M0(y)^s M1(y)^(1-s) of the distributions of reports. Affinities of independent reports multiply, also if
the choice of each channel depends on earlier reports. So all bounds on respondents also hold for interactive protocols.
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
"""Largest number of composed reports; beyond it, the bound by affinities is returned."""

_CURVE_POINTS = 17
"""Number of hockey sticks computed for the dominating pair, and compared for its composition."""

_LATTICE_STEPS = 2**10
"""Range of the log-likelihood ratio of one report, in steps."""

_ORDER_MARGIN = 1e-3
"""Smallest order of a design, and one minus the largest."""


@dataclass(frozen=True, eq=False)
class Exponent(Result):
    """The exponential rate of the errors in the number of respondents for the best channel, in nats per respondent.

    lower, upper : bounds on the best rate.
    order : the s of the affinity whose optimum reaches `lower` (1 for Stein's exponent).
    design : the channel that reaches it.

    >>> from ldpopt.bounds import stein
    >>> exponent = stein([0.9, 0.1], [0.4, 0.6], 1.0)
    >>> exponent.order, exponent.lower <= exponent.upper
    (1.0, True)
    """

    lower: float
    upper: float
    order: float
    design: Design


@dataclass(frozen=True, eq=False)
class Decision(Result):
    """Bounds on the respondents that a decision between two populations needs; `upper` suffice with `design`.

    >>> from ldpopt.bounds import respondents_to_decide
    >>> decision = respondents_to_decide([0.9, 0.1], [0.4, 0.6], 0.05, 0.05, 1.0)
    >>> decision.lower, decision.upper
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
    """Bound the best Chernoff exponent C: the larger error falls like exp(-n C).

    See [Chernoff; SPR]. C is the maximum over s of -log(1 - OPT_s). For a fixed channel this is concave in s and zero
    at 0 and 1. So between orders a < b with bounds A and B it is at most min(s A / a, (1 - s) B / (1 - b)).

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.
    eta : Cap on the total variation, in [0, 1]; None for no cap.
    tolerance : Of upper over lower, relative.
    time_limit : In seconds; the bounds reached by then are returned.

    Returns
    -------
    Exponent
        Lower and upper bounds on C, in nats for each respondent, and the order s of the lower one.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> exponent = chernoff([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], 2.0, 0.5, tolerance=0.01)
    >>> round(exponent.lower, 6), round(exponent.order, 6)
    (0.068274, 0.5)
    """
    optimum = _optima(p0, p1, epsilon, eta)
    relative_tolerance = number(tolerance, "tolerance")
    if not 0 < relative_tolerance < 1:
        raise invalid("tolerance", "a number between 0 and 1", tolerance)
    orders = [_ORDER_MARGIN, 0.5, 1 - _ORDER_MARGIN]
    with watched(time_limit, False) as deadline:
        for _ in deadline.rounds(range(_MAX_DESIGNS)):
            rates = [_rates(optimum(s), s) for s in orders]
            best_index = int(np.argmax([low for low, _ in rates]))
            peaks = _peaks(orders, [high for _, high in rates])
            upper, peak_order = max(peaks)
            if upper <= rates[best_index][0] * (1 + relative_tolerance):
                break
            orders = sorted({*orders, peak_order})
    return Exponent(
        rates[best_index][0], max(upper, rates[best_index][0]), orders[best_index], optimum(orders[best_index])
    )


def stein(p0: Any, p1: Any, epsilon: float, eta: float | None = None, *, time_limit: float | None = None) -> Exponent:
    """Bound the best Stein exponent E: with one error fixed, the other falls like exp(-n E).

    It is the largest KL divergence of the distributions of reports [KOV14, section 1]. By the chain rule no interactive
    protocol has a larger one.

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer; the error under p0 is fixed at any level.
    epsilon : In nats.
    eta : Cap on the total variation, in [0, 1]; None for no cap.
    time_limit : In seconds.

    Returns
    -------
    Exponent
        Lower and upper bounds on E, in nats for each respondent.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> round(stein([0.9, 0.1], [0.4, 0.6], 1.0).lower, 6)
    0.108541
    """
    design = optimal_channel(Divergence(KL, p0, p1), limits_of(epsilon, eta), time_limit=time_limit)
    return Exponent(design.lower_bound, design.upper_bound, 1.0, design)


def respondents_to_decide(
    p0: Any, p1: Any, alpha: float, beta: float, epsilon: float, eta: float | None = None
) -> Decision:
    """Bound the number of respondents for a decision with errors alpha and beta.

    For every s, each protocol, interactive or not, needs n respondents [Chernoff; SPR], where n is at least

        log((1-alpha)^s beta^(1-s) + alpha^s (1-beta)^(1-s)) / log(1 - OPT_s).

    Consider also the pair of distributions with the largest hockey-stick divergences of all channels. It dominates
    every report, and n such pairs dominate every n reports [KOV15]; so no protocol needs fewer reports than this pair.

    With the channel of OPT_s a likelihood ratio test succeeds with n >= log(alpha^s beta^(1-s)) / log(1 - OPT_s). It
    also succeeds with the n where the distribution of the (rounded) log-likelihood ratio shows it.

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    alpha, beta : The largest errors under p0 and p1, in (0, 1).
    epsilon : In nats.
    eta : Cap on the total variation, in [0, 1]; None for no cap.

    Returns
    -------
    Decision
        Lower and upper bounds on the number of respondents.

    Raises
    ------
    InvalidInput
        If no report distinguishes the populations under the constraints, and for disjoint populations; there
        `mechanisms.binary` is best.

    Examples
    --------
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

    def respondents_needed(s: float) -> float:
        joint = (1 - a) ** s * b ** (1 - s) + a**s * (1 - b) ** (1 - s)
        return max(-math.log(joint), 0.0) / _rates(optimum(s), s)[1] if a + b < 1 else 0.0

    def sufficient_respondents(s: float) -> float:
        rate = _rates(optimum(s), s)[0]
        return -(s * math.log(a) + (1 - s) * math.log(b)) / rate if rate > 0 else math.inf

    best_order = _best(sufficient_respondents)
    if not sufficient_respondents(best_order) < math.inf:
        raise invalid("epsilon, eta", "limits under which a report tells p0 and p1 apart", Phrase("none that does"))
    lower = math.ceil(respondents_needed(_best(lambda s: -respondents_needed(s))) * (1 - 1e-12))
    upper = max(lower, math.ceil(sufficient_respondents(best_order) * (1 + 1e-12)))
    decides = _test(optimum(best_order), p0, p1, a, b)
    upper = _fewest(decides, lower, upper)
    if a + b < 1 and lower < upper <= _MAX_COMPOSED:
        lower = _fewest(_possible(p0, p1, limits_of(epsilon, eta), a, b), lower, upper)
    return Decision(lower, upper, optimum(best_order))


def _fewest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """A number above which, up to `high`, the condition holds, and below which it was seen not to; by halving."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def _test(design: Design, p0: Any, p1: Any, alpha: float, beta: float) -> Callable[[int], bool]:
    """The predicate: the test by the log-likelihood ratio of n reports, rounded to a lattice, has these errors."""
    m0, m1 = design.channel.push(p0), design.channel.push(p1)
    has_mass = (m0 > 0) | (m1 > 0)
    m0, m1 = m0[has_mass], m1[has_mass]
    if not (m0 > 0).all() or not (m1 > 0).all():
        return lambda n: False
    ratios = np.log(m1 / m0)
    lattice_points, point_indices = np.unique(
        np.rint(ratios / np.ptp(ratios) * _LATTICE_STEPS).astype(np.int64), return_inverse=True
    )

    def decides(n: int) -> bool:
        if min(alpha, beta) <= 1024 * n * ULP:  # a shortcut: the test below would fail, too
            return False
        windows = []
        for law in (m0, m1):
            window = LatticeLaw(
                1.0, ((lattice_points, collect(point_indices, law, len(lattice_points)), n),), 0.0
            ).window(0.0)
            windows.append((window.first, np.cumsum(window.masses), window.error * len(window.masses) + 256 * n * ULP))
        (first0, below0, error0), (first1, below1, error1) = windows
        if alpha <= 4 * error0 or beta <= 4 * error1:
            return False
        # The least t with Pr0(T > t) <= alpha; at t itself the test rejects with the probability that is left.
        test_size = alpha - 2 * error0
        threshold0 = int(np.searchsorted(below0, below0[-1] - test_size))
        threshold1 = threshold0 + first0 - first1
        if threshold1 < 0 or threshold1 >= len(below1):
            return threshold1 < 0
        type_two = below1[threshold1]
        if threshold0 > 0 and threshold1 > 0:
            randomization = (test_size - (below0[-1] - below0[threshold0])) / (
                below0[threshold0] - below0[threshold0 - 1]
            )
            type_two -= min(max(randomization, 0.0), 1.0) * (1 - 1e-9) * (below1[threshold1] - below1[threshold1 - 1])
        return bool(type_two + 2 * error1 <= beta)

    return decides


def _possible(p0: Any, p1: Any, limits: Sequence[Constraint], alpha: float, beta: float) -> Callable[[int], bool]:
    """The predicate: n copies of the pair that dominates every report may have these errors."""
    epsilon = next(limit.epsilon for limit in limits if isinstance(limit, LocalDP))
    points = np.linspace(0.0, epsilon, _CURVE_POINTS)
    hockey_sticks = [
        max(optimal_channel(Divergence(hockey_stick(math.exp(e)), *laws), limits).upper_bound
            for laws in ((p0, p1), (p1, p0)))
        for e in points[:-1].tolist()
    ]  # fmt: skip
    pair = FinitePair.through(points, np.append(np.minimum.accumulate(np.minimum(hockey_sticks, 1.0)), 0.0))

    def possible(n: int) -> bool:
        pair_of_reports = ComposedPair.from_pairs([(pair, n)])
        for error, other_error in ((alpha, beta), (beta, alpha)):
            for e in np.linspace(0.0, -math.log(error), _CURVE_POINTS):
                if pair_of_reports.delta_at(float(e)) < (1 - other_error - math.exp(e) * error) * (1 - 1e-12):
                    return False
        return True

    return possible


def _best(loss: Callable[[float], float]) -> float:
    minimum = minimize_scalar(
        lambda s: loss(float(s)), bounds=(_ORDER_MARGIN, 1 - _ORDER_MARGIN), method="bounded", options={"xatol": 1e-3}
    )
    return float(minimum.x)


def _optima(p0: Any, p1: Any, epsilon: float, eta: float | None) -> Callable[[float], Design]:
    """The optimal channel for each order s, designed once: the alpha-divergence is (1 - t^s)/(s (1 - s))."""
    limits = limits_of(epsilon, eta)
    designs: dict[float, Design] = {}

    def optimum(s: float) -> Design:
        if s not in designs:
            designs[s] = optimal_channel(Divergence(alpha_divergence(s), p0, p1), limits)
        return designs[s]

    return optimum


def _rates(design: Design, s: float) -> tuple[float, float]:
    """The bounds -log(1 - OPT_s), rounded outward."""
    low, high = (-math.log1p(-min(s * (1 - s) * optimum, 1.0)) if optimum < math.inf else math.inf
                 for optimum in (design.lower_bound, design.upper_bound))  # fmt: skip
    return low * (1 - 1e-15), high * (1 + 1e-15)


def _peaks(orders: list[float], rates: list[float]) -> list[tuple[float, float]]:
    """The bound between neighbors and its order; beyond the first and last, the bound is at the ends."""
    peaks = [(rates[0] / (1 - orders[0]), orders[0] / 2), (rates[-1] / orders[-1], (1 + orders[-1]) / 2)]
    for a, b, low, high in zip(orders, orders[1:], rates, rates[1:], strict=False):
        rising_slope, falling_slope = low / a, high / (1 - b)
        total = rising_slope + falling_slope
        s = min(max(falling_slope / total, a), b) if total > 0 else (a + b) / 2
        bound = min(s * rising_slope, (1 - s) * falling_slope)
        margin = (b - a) / 10
        peaks.append((bound, min(max(s, a + margin), b - margin)))
    return peaks
