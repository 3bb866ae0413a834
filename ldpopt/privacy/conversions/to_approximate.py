"""Conversions from Rényi and concentrated privacy to (epsilon, delta)."""

from __future__ import annotations

import math

from ldpopt.distribution import number, unit_interval
from ldpopt.errors import invalid
from ldpopt.privacy.claims import ZCDP, ApproximateDP, ApproximateZCDP, RenyiDP, need, positive_delta
from ldpopt.privacy.conversions.least_divergence import least_epsilon
from ldpopt.privacy.conversions.pure import Given
from ldpopt.rounding import SUBNORMAL, sum_up, up


def renyi_to_approximate(claim: Given, delta: float) -> ApproximateDP:
    """The epsilon at `delta` is epsilon + log(1/delta)/(order - 1) [M, Prop 3]; the sharp form is smaller.

    >>> renyi_to_approximate(RenyiDP(10.0, 0.5), 1e-6)
    ApproximateDP(epsilon=2.03506, delta=1e-06) (not tight, [M, Prop 3])
    """
    made, delta = need(RenyiDP, claim), positive_delta(delta)
    if made.order == 1:
        return ApproximateDP(math.inf, delta, tight=False, reference="[M, Prop 3]")
    value = made.epsilon + (0.0 if math.isinf(made.order) else -math.log(delta) / (made.order - 1))
    return ApproximateDP(up(value, 16), delta, tight=False, reference="[M, Prop 3]")


def renyi_to_approximate_sharp(claim: Given, delta: float) -> ApproximateDP:
    """The least epsilon at `delta` that follows from the Rényi divergence of one order in one direction [ALCKS, Thm 3].

    Two biased coins with this Rényi divergence attain it. It never exceeds `renyi_to_approximate_closed`.

    >>> round(renyi_to_approximate_sharp(RenyiDP(8, 0.4), 1e-5).epsilon, 6)
    1.605152
    """
    made, delta = need(RenyiDP, claim), positive_delta(delta)
    value = renyi_to_approximate_closed(made, delta).epsilon
    if 1 < made.order < math.inf and 0 < delta < 1 and 0 < value < math.inf:
        value = min(value, least_epsilon(made.order, made.epsilon, delta, value))
    return ApproximateDP(value, delta, tight=False, reference="[ALCKS, Thm 3]")


def renyi_to_approximate_closed(claim: Given, delta: float) -> ApproximateDP:
    """The epsilon at `delta` is epsilon + log(1 - 1/order) - log(order delta)/(order - 1), at least 0 [CKS, Prop 12].

    `renyi_to_approximate_sharp` is better, most of all for small divergences.

    >>> round(renyi_to_approximate_closed(RenyiDP(8, 0.4), 1e-5).epsilon, 6)
    1.614109
    """
    made, delta = need(RenyiDP, claim), positive_delta(delta)
    a = made.order
    if a == 1 or math.isinf(made.epsilon):
        value = math.inf
    elif math.isinf(a):
        value = made.epsilon
    else:
        value = sum_up(made.epsilon, math.log1p(-1 / a), -math.log(a) / (a - 1), -math.log(delta) / (a - 1))
    return ApproximateDP(max(0.0, value), delta, tight=False, reference="[CKS, Prop 12]")


def zcdp_to_renyi(claim: Given, order: float) -> RenyiDP:
    """(xi, rho)-zCDP implies a Rényi divergence of at most xi + rho order, in nats [BS, Def 1.1].

    >>> zcdp_to_renyi(ZCDP(0.0, 0.1), 4.0)
    RenyiDP(order=4, epsilon=0.4000000001) (tight, [BS, Def 1.1])
    """
    made = need(ZCDP, claim)
    order = RenyiDP(order, 0.0).order
    growth = made.rho * order if made.rho > 0 else 0.0
    value = sum_up(made.xi, growth) if math.isfinite(growth) else math.inf
    return RenyiDP(order, max(0.0, value), tight=True, reference="[BS, Def 1.1]")


def zcdp_to_approximate(claim: Given, delta: float) -> ApproximateDP:
    """zCDP implies epsilon = xi + rho + sqrt(4 rho log(1/delta)) [BS, Lemma 3.5]; the sharp form is smaller.

    >>> round(zcdp_to_approximate(ZCDP(0, 0.5), 1e-6).epsilon, 6)
    5.756522
    """
    made, delta = need(ZCDP, claim), positive_delta(delta)
    value = sum_up(made.xi, made.rho, math.sqrt(4 * made.rho * -math.log(delta))) if made.rho < math.inf else math.inf
    return ApproximateDP(max(0.0, value), delta, tight=False, reference="[BS, Lemma 3.5]")


def zcdp_delta(claim: Given, epsilon: float) -> ApproximateDP:
    """The delta at `epsilon` >= xi + rho, a Gaussian tail times the smallest of several factors [BS, Lemma 3.6].

    Below xi + rho the lemma says nothing, and delta is 1.

    >>> zcdp_delta(ZCDP(0.0, 0.1), 2.0)
    ApproximateDP(epsilon=2, delta=1.115e-05) (not tight, [BS, Lemma 3.6])
    """
    made, epsilon = need(ZCDP, claim), number(epsilon, "epsilon")
    if epsilon < 0:
        raise invalid("epsilon", "a non-negative number of nats", epsilon)
    value = _three_way(made.xi, made.rho, epsilon)
    return ApproximateDP(epsilon, min(1.0, up(value, 64)), tight=False, reference="[BS, Lemma 3.6]")


def _three_way(xi: float, rho: float, epsilon: float) -> float:
    if rho == 0:
        return 0.0 if epsilon >= xi else 1.0
    over = math.fsum((epsilon, -xi, -rho))  # `fsum` gives the exact sign
    if not over >= 0:
        return 1.0
    u = over / (2 * rho)
    factors = (
        1.0,
        math.sqrt(math.pi * rho),
        1 / (1 + u),
        2 / (1 + u + math.sqrt((1 + u) ** 2 + 4 / (math.pi * rho))),
    )
    exponent = over * over / (4 * rho)
    return max(SUBNORMAL, math.exp(-exponent * (1 - 1e-15)) * min(factors))


def zcdp_to_approximate_sharp(claim: Given, delta: float) -> ApproximateDP:
    """The least epsilon that the Rényi bounds of all orders give at `delta` [CKS, Prop 12; BS, Lemma 3.6].

    >>> zcdp_to_approximate_sharp(ZCDP(0.0, 0.1), 1e-6)
    ApproximateDP(epsilon=2.14194, delta=1e-06) (not tight, [BS, Lemma 3.6; CKS, Prop 12])
    """
    made, delta = need(ZCDP, claim), positive_delta(delta)
    reference = "[BS, Lemma 3.6; CKS, Prop 12]"
    if math.isinf(made.rho) or math.isinf(made.xi):
        return ApproximateDP(math.inf, delta, tight=False, reference=reference)
    if made.rho == 0:
        return ApproximateDP(up(max(0.0, made.xi)), delta, tight=False, reference=reference)
    least = min(zcdp_to_approximate(made, delta).epsilon, _best_order(made, delta))
    return ApproximateDP(least, delta, tight=False, reference=reference)


def _best_order(claim: ZCDP, delta: float) -> float:
    """The least epsilon that the Rényi bounds of (xi, rho)-zCDP give; any order is valid, so a rough search is safe."""
    from scipy.optimize import minimize_scalar

    def at(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return renyi_to_approximate_closed(zcdp_to_renyi(claim, order), delta).epsilon

    guess = math.log(math.sqrt(max(-math.log(delta), 1e-3) / claim.rho))
    found = minimize_scalar(at, bounds=(guess - 6, guess + 6), method="bounded", options={"xatol": 1e-9})
    return min(at(float(found.x)), at(guess))


def approximate_zcdp_to_approximate(claim: Given, epsilon: float) -> ApproximateDP:
    """delta-approximate zCDP implies (epsilon, delta + (1 - delta) delta')-DP, delta' of `zcdp_delta` [BS, Lemma 8.8].

    >>> approximate_zcdp_to_approximate(ApproximateZCDP(1e-6, 0.0, 0.1), 2.0)
    ApproximateDP(epsilon=2, delta=1.215e-05) (not tight, [BS, Lemma 8.8])
    """
    made, epsilon = need(ApproximateZCDP, claim), number(epsilon, "epsilon")
    inner = zcdp_delta(ZCDP(made.xi, made.rho), epsilon).delta
    value = min(1.0, up(made.delta + (1 - made.delta) * inner, 8))
    return ApproximateDP(epsilon, value, tight=False, reference="[BS, Lemma 8.8]")


def approximate_zcdp_to_epsilon(claim: Given, delta: float) -> ApproximateDP:
    """The epsilon at a `delta` above the claim's own delta, by [BS, Lemma 8.8]; inf at or below it.

    If rho = 0, the claim implies (xi, delta)-DP with its own delta already.

    >>> approximate_zcdp_to_epsilon(ApproximateZCDP(1e-6, 0.0, 0.1), 1e-5)
    ApproximateDP(epsilon=1.92523, delta=1e-05) (not tight, [BS, Lemma 8.8])
    """
    made, delta = need(ApproximateZCDP, claim), unit_interval(delta, "delta")
    reference = "[BS, Lemma 8.8]"
    if made.rho == 0:
        epsilon = up(max(0.0, made.xi)) if delta >= made.delta else math.inf
        return ApproximateDP(epsilon, delta, tight=True, reference=reference)
    room = (delta - made.delta) / (1 - made.delta) * (1 - 1e-14) if made.delta < 1 else 0.0
    if room <= 0:
        return ApproximateDP(math.inf, delta, tight=False, reference=reference)
    inner = zcdp_to_approximate_sharp(ZCDP(made.xi, made.rho), room)
    return ApproximateDP(inner.epsilon, delta, tight=False, reference=reference)
