"""Calibration: the largest parameters of one notion that still imply a target in another, rounded down."""

from __future__ import annotations

import math

from ldpopt.errors import invalid
from ldpopt.numbers.rounding import bisected, down
from ldpopt.privacy.claims import ZCDP, ApproximateDP, PureDP, RenyiDP, need
from ldpopt.privacy.conversions import renyi_to_approximate_sharp, zcdp_to_approximate_sharp
from ldpopt.privacy.least_divergence import least_divergence
from ldpopt.values.distribution import number, number_up_to

__all__ = ["largest_pure", "largest_renyi", "largest_rho", "largest_rho_sharp"]


def largest_rho(target: ApproximateDP, xi: float = 0.0) -> ZCDP:
    """Compute a rho such that zCDP implies `target`, rounded down [BS, Lemma 3.5].

    rho = (sqrt(eps - xi + log 1/delta) - sqrt(log 1/delta))^2, and 0 if epsilon does not exceed xi. `largest_rho_sharp`
    finds a larger one.

    >>> round(largest_rho(ApproximateDP(1.0, 1e-6)).rho, 9)
    0.017468905
    """
    target, xi = need(ApproximateDP, target, "target"), number(xi, "xi")
    log = -math.log(number_up_to(target.delta, "delta"))
    excess_epsilon = target.epsilon - xi
    # (sqrt(room + log) - sqrt(log))^2 without cancellation
    rho = (excess_epsilon / (math.sqrt(excess_epsilon + log) + math.sqrt(log))) ** 2 if excess_epsilon > 0 else 0.0
    return ZCDP(xi, rho * (1 - 1e-14), tight=False, reference="[BS, Lemma 3.5]", budget=True)


def largest_rho_sharp(target: ApproximateDP, xi: float = 0.0) -> ZCDP:
    """Compute the largest rho such that `zcdp_to_approximate_sharp` meets `target`.

    It is computed to 12 digits and rounded down.

    >>> largest_rho_sharp(ApproximateDP(1.0, 1e-6))
    ZCDP(xi=0, rho=0.0243559) (not tight, [BS, Lemma 3.6; CKS, Prop 12])
    """
    target = need(ApproximateDP, target, "target")
    low = largest_rho(target, xi).rho
    if low > 0:

        def meets(rho: float) -> bool:
            return zcdp_to_approximate_sharp(ZCDP(xi, rho), target.delta).epsilon <= target.epsilon

        high = 2 * low
        while meets(high):
            low, high = high, 2 * high
        low = bisected(meets, low, high, 1e-12)[0]
    return ZCDP(xi, low, tight=False, reference="[BS, Lemma 3.6; CKS, Prop 12]", budget=True)


def largest_renyi(target: ApproximateDP, order: float) -> RenyiDP:
    """Compute the largest Rényi epsilon (nats) at `order` > 1 that implies `target`.

    The conversion is that of [ALCKS, Thm 3]. Raises `InvalidInput` if no epsilon implies the target.

    >>> largest_renyi(ApproximateDP(1.0, 1e-6), 32.0)
    RenyiDP(order=32, epsilon=0.6978849997) (not tight, [ALCKS, Thm 3])
    """
    target = need(ApproximateDP, target, "target")
    delta, reference = number_up_to(target.delta, "delta"), "[ALCKS, Thm 3]"
    order = RenyiDP(order, 0.0).order
    if math.isinf(order):
        renyi_epsilon = target.epsilon
    elif order == 1 or delta == 1:
        renyi_epsilon = math.inf if delta == 1 else 0.0
    else:
        renyi_epsilon = least_divergence(order, target.epsilon, delta)
    if renyi_epsilon <= 0 and not renyi_to_approximate_sharp(RenyiDP(order, 0.0), delta).epsilon <= target.epsilon:
        raise invalid("order", "an order at which some Rényi divergence meets the target", order)
    return RenyiDP(order, renyi_epsilon, tight=False, reference=reference, budget=True)


def largest_pure(target: ApproximateDP) -> PureDP:
    """Compute the largest epsilon such that every epsilon-DP mechanism meets `target`.

    The target is (epsilon', delta)-DP [GI, Cor 1]. epsilon solves delta = (e^epsilon - e^epsilon')/(1 + e^epsilon):
    e^epsilon = (e^epsilon' + delta)/(1 - delta).

    >>> largest_pure(ApproximateDP(1.0, 0.01))
    PureDP(epsilon=1.01372) (tight, [GI, Cor 1])
    """
    target = need(ApproximateDP, target, "target")
    if target.delta == 1 or math.isinf(target.epsilon):
        return PureDP(math.inf, tight=True, reference="[GI, Cor 1]", budget=True)
    increase = math.log1p(target.delta * math.exp(-target.epsilon)) - math.log1p(-target.delta)
    epsilon = max(target.epsilon, down(target.epsilon + increase, 16))
    return PureDP(epsilon, tight=True, reference="[GI, Cor 1]", budget=True)
