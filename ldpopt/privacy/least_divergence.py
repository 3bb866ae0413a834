"""The smallest Rényi divergence of two distributions with a given hockey stick: the best conversion from one order.

Suppose the hockey stick of P and Q at epsilon is at least delta. Then some event A has P(A) = p and Q(A) <= (p -
delta)/e^epsilon. By data processing, D_a(P || Q) is at least that of two coins with these probabilities. So it is at
least the minimum over p in (delta, 1) of

    epsilon + log(p^a (p - delta)^(1 - a) + (1 - p)^a (e^epsilon - p + delta)^(1 - a)) / (a - 1)    [ALCKS, Thm 3],

and the coins at the minimum attain it. The sum in the logarithm is convex in p, so it lies above its tangents. The
minimum is found in floats, and proved by the tangents at two neighboring points, computed with fifty digits.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

from ldpopt.numbers.rounding import ULP, sum_up

_DIGITS = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MAX_REFINEMENTS = 12

MAX_ORDER = 1e9
"""For orders and epsilons above this the closed form is used, which is as good there."""


def least_divergence(order: float, epsilon: float, delta: float) -> float:
    """Bound D_order(P || Q) from below, in nats, for a hockey stick of at least `delta`.

    The minimum is over all distributions with a hockey stick of at least `delta` at `epsilon`. order in (1, inf),
    epsilon >= 0 in nats, delta in (0, 1). Up to `MAX_ORDER` the bound is the exact minimum to about twelve
    digits, rounded down; beyond, the closed form is used.

    >>> round(least_divergence(2.0, 0.0, 0.5), 9)  # the smallest chi-squared at a total variation of 1/2 is 1
    0.693147181
    """
    if not (order <= MAX_ORDER and epsilon <= MAX_ORDER):
        negated_terms = (-math.log1p(-1 / order), math.log(order) / (order - 1), math.log(delta) / (order - 1))
        return (
            max(0.0, -sum_up(-epsilon, *(-negated_term for negated_term in negated_terms)))
            if math.isfinite(epsilon)
            else math.inf
        )
    return _proved(order, epsilon, delta, _best_share(order, epsilon, delta))


def least_epsilon(order: float, divergence: float, delta: float, start: float) -> float:
    """Compute the smallest epsilon <= `start`, nearly, with a least divergence of `divergence`.

    At this epsilon a hockey stick of `delta` implies at least this `divergence`. So distributions with a smaller
    divergence are (epsilon, delta)-close. order in (1, inf); nats; delta in (0, 1).
    """
    if start > MAX_ORDER and order <= MAX_ORDER and least_divergence(order, MAX_ORDER, delta) >= divergence:
        start = MAX_ORDER
    if not (start <= MAX_ORDER and order <= MAX_ORDER):
        return start
    if least_divergence(order, 0.0, delta) >= divergence:
        return 0.0
    low, high = 0.0, start
    for _ in range(100):  # the divergence grows with epsilon; floats show where
        middle = (low + high) / 2
        if high - low <= 1e-13 * high or not low < middle < high:
            break
        share = _best_share(order, middle, delta)
        low, high = (low, middle) if _rough(order, middle, delta, share) >= divergence else (middle, high)
    step = 4 * ULP
    for _ in range(_MAX_REFINEMENTS):
        epsilon = min(high * (1 + step) + step, start)
        if epsilon == start or least_divergence(order, epsilon, delta) >= divergence:
            return _refined(order, divergence, delta, epsilon)
        step *= 16
    return start


def largest_delta(order: float, epsilon: float, divergence: float, gap: float = 1e-13) -> float:
    """Return the largest hockey stick at `epsilon` that a Rényi `divergence` of one order allows, rounded up.

    Parameters
    ----------
    order : In (1, inf).
    epsilon, divergence : At least 0, in nats.
    gap : The relative accuracy of the search; the result holds at any.

    >>> round(largest_delta(2.0, 0.0, 0.6931471805599453), 9)
    0.5
    """
    if divergence == 0:
        return 0.0
    if not (order <= MAX_ORDER and epsilon <= MAX_ORDER):
        return 1.0
    excess = (order - 1) * (divergence - epsilon) - math.log(order) + (order - 1) * math.log1p(-1 / order)
    high = min(0.0, excess) * (1 - 8 * ULP) + 64 * ULP  # log delta, by [CKS, Prop 12]
    if high < -700 or math.exp(high) >= 1:
        high = min(high, -ULP)

    def exceeds(log_delta: float) -> bool:
        delta = math.exp(log_delta)
        return delta < 1 and _rough(order, epsilon, delta, _best_share(order, epsilon, delta)) > divergence

    low, width = high, 1.0
    while low > -690 and exceeds(low):
        low, width = low - width, 4 * width
    while high - low > gap * max(1.0, abs(high)):
        middle = (low + high) / 2
        low, high = (low, middle) if exceeds(middle) else (middle, high)
    step = 4 * ULP
    for _ in range(_MAX_REFINEMENTS):
        delta = math.exp(high) * (1 + step) + 1e-300
        if delta >= 1 or least_divergence(order, epsilon, delta) >= divergence:
            return min(1.0, delta)
        step *= 16
    return 1.0


def _refined(order: float, divergence: float, delta: float, high: float) -> float:
    """The epsilon `high`, which suffices, lowered as far as it is still proved to suffice."""
    low, step = high, 4 * ULP * (high + ULP)
    while low > 0 and least_divergence(order, low, delta) >= divergence:
        low, high, step = max(low - step, 0.0), low, 8 * step
    for _ in range(40):
        middle = (low + high) / 2
        if high - low <= 2 * ULP * high or not low < middle < high:
            break
        low, high = (low, middle) if least_divergence(order, middle, delta) >= divergence else (middle, high)
    return high


def _pieces(order: float, epsilon: float, delta: float, t: float) -> tuple[float, float, float, float, float]:
    """The logs of both terms, p - delta, 1 - p and 1 - (p - delta)/e^epsilon; t is the logit of (p - d)/(1 - d)."""
    share, rest = 1 / (1 + math.exp(-t)), 1 / (1 + math.exp(t))
    u, miss = (1 - delta) * share, (1 - delta) * rest
    wide = -math.expm1(-epsilon) + (delta + miss) * math.exp(-epsilon)
    first = order * math.log(delta + u) - (order - 1) * math.log(u)
    second = order * math.log(miss) - (order - 1) * (math.log(wide) + epsilon)
    return first, second, u, miss, wide


def _best_share(order: float, epsilon: float, delta: float) -> float:
    """The logit of (p - delta)/(1 - delta) at the minimum, by bisection on the sign of the slope."""
    low, high = -600.0, 600.0
    for _ in range(70):
        t = (low + high) / 2
        first, second, u, miss, wide = _pieces(order, epsilon, delta, t)
        rise = u - (order - 1) * delta
        if rise <= 0:
            low = t
            continue
        # slope = A (u - (a - 1) delta)/(p u) - B (a W - (a - 1)(1 - p))/((1 - p) W), in logarithms
        shrunk = miss * math.exp(-epsilon)
        left = first + math.log(rise) - math.log(delta + u) - math.log(u)
        right = second + math.log(order * wide - (order - 1) * shrunk) - math.log(miss) - math.log(wide)
        low, high = (low, t) if left > right else (t, high)
    return (low + high) / 2


def _rough(order: float, epsilon: float, delta: float, t: float) -> float:
    first, second, *_ = _pieces(order, epsilon, delta, t)
    top = max(first, second)
    return epsilon + (top + math.log1p(math.exp(min(first, second) - top))) / (order - 1)


def _proved(order: float, epsilon: float, delta: float, t: float) -> float:
    """A bound on the minimum, rounded down, from the tangents on both sides of it, or else from the better tangent."""
    with localcontext(_DIGITS):
        for offset in ("1e-13", "1e-11", "1e-9", "1e-7"):
            width = Decimal(offset) * (1 + abs(Decimal(t)))
            (u, f, slope), (v, g, rise) = (_tangent(order, epsilon, delta, Decimal(t) + w) for w in (-width, width))
            if slope < 0 < rise:
                minimum = f + slope * (f - g + rise * (v - u)) / (rise - slope)
                break
        else:
            rest = 1 - Decimal(delta)
            minimum = max(f - (slope * u if slope > 0 else -slope * (rest - u)),
                        g - (rise * v if rise > 0 else -rise * (rest - v)))  # fmt: skip
        if not minimum > 0:
            return 0.0
        value = float(Decimal(epsilon) + minimum.ln() / (Decimal(order) - 1) - Decimal("1e-30"))
    return max(0.0, math.nextafter(value, -math.inf))


def _tangent(order: float, epsilon: float, delta: float, t: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """The tuple (p - delta, value, slope): both terms' sum up to a factor independent of p, and its slope, in fifty
    digits.
    """
    a, e, d = Decimal(order), Decimal(epsilon).exp(), Decimal(delta)
    u, miss = (1 - d) / (1 + (-t).exp()), (1 - d) / (1 + t.exp())
    p, odds_width = d + u, (e - 1) + (d + miss)
    first, second = (a * p.ln() - (a - 1) * u.ln()).exp(), (a * miss.ln() - (a - 1) * odds_width.ln()).exp()
    slope = first * (u - (a - 1) * d) / (p * u) - second * (a * odds_width - (a - 1) * miss) / (miss * odds_width)
    return u, first + second, slope
