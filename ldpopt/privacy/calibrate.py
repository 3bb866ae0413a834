"""Calibration: the weakest claim that still meets a target, rounded to the private side."""

from __future__ import annotations

import math

from ldpopt.distribution import number
from ldpopt.errors import invalid
from ldpopt.privacy.claims import ZCDP, ApproximateDP, PureDP, RenyiDP, need, positive_delta
from ldpopt.privacy.conversions import renyi_to_approximate_sharp, zcdp_to_approximate_sharp
from ldpopt.rounding import down


def largest_rho(target: ApproximateDP, xi: float = 0.0) -> ZCDP:
    """The rho that suffices for `target`: (sqrt(eps - xi + log 1/delta) - sqrt(log 1/delta))^2 [BS, Lemma 3.5].

    Rounded down, to the private side; `largest_rho_sharp` allows more. 0 when epsilon does not exceed xi.

    >>> round(largest_rho(ApproximateDP(1.0, 1e-6)).rho, 9)
    0.017468905
    """
    target, xi = need(ApproximateDP, target, "target"), number(xi, "xi")
    log = -math.log(positive_delta(target.delta))
    room = target.epsilon - xi
    # (sqrt(room + log) - sqrt(log))^2 without cancellation
    rho = (room / (math.sqrt(room + log) + math.sqrt(log))) ** 2 if room > 0 else 0.0
    return ZCDP(xi, rho * (1 - 1e-14), tight=False, reference="[BS, Lemma 3.5]", budget=True)


def largest_rho_sharp(target: ApproximateDP, xi: float = 0.0) -> ZCDP:
    """The largest rho whose `zcdp_to_approximate_sharp` meets `target`, to 12 digits, from below.

    >>> largest_rho_sharp(ApproximateDP(1.0, 1e-6))
    ZCDP(xi=0, rho=0.0243559) (not tight, [BS, Lemma 3.6; CKS, Prop 12])
    """
    target = need(ApproximateDP, target, "target")
    low = largest_rho(target, xi).rho
    high = 2 * low
    if low == 0:
        return ZCDP(xi, 0.0, tight=False, reference="[BS, Lemma 3.6; CKS, Prop 12]", budget=True)

    def meets(rho: float) -> bool:
        return zcdp_to_approximate_sharp(ZCDP(xi, rho), target.delta).epsilon <= target.epsilon

    while meets(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return ZCDP(xi, low, tight=False, reference="[BS, Lemma 3.6; CKS, Prop 12]", budget=True)


def largest_renyi(target: ApproximateDP, order: float) -> RenyiDP:
    """The largest Rényi epsilon at `order` > 1 whose sharp conversion meets `target` [CKS, Prop 12]; raises if none.

    >>> largest_renyi(ApproximateDP(1.0, 1e-6), 32.0)
    RenyiDP(order=32, epsilon=0.6978849997) (not tight, [CKS, Prop 12])
    """
    target = need(ApproximateDP, target, "target")
    delta = positive_delta(target.delta)
    at_zero = renyi_to_approximate_sharp(RenyiDP(order, 0.0), delta).epsilon
    low, high = 0.0, target.epsilon + 2 - math.log(delta) + math.log(max(order, 1.0))
    if at_zero > target.epsilon:
        raise invalid("order", "an order at which some Rényi divergence meets the target", order)
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        meets = renyi_to_approximate_sharp(RenyiDP(order, middle), delta).epsilon <= target.epsilon
        low, high = (middle, high) if meets else (low, middle)
    return RenyiDP(order, low, tight=False, reference="[CKS, Prop 12]", budget=True)


def largest_pure(target: ApproximateDP) -> PureDP:
    """The largest epsilon for which every epsilon-DP mechanism meets (epsilon', delta)-DP [GI, Cor 1].

    From delta = (e^epsilon - e^epsilon')/(1 + e^epsilon): e^epsilon = (e^epsilon' + delta)/(1 - delta).

    >>> largest_pure(ApproximateDP(1.0, 0.01))
    PureDP(epsilon=1.01372) (tight, [GI, Cor 1])
    """
    target = need(ApproximateDP, target, "target")
    if target.delta == 1 or math.isinf(target.epsilon):
        return PureDP(math.inf, tight=True, reference="[GI, Cor 1]", budget=True)
    more = math.log1p(target.delta * math.exp(-target.epsilon)) - math.log1p(-target.delta)
    epsilon = max(target.epsilon, down(target.epsilon + more, 16))
    return PureDP(epsilon, tight=True, reference="[GI, Cor 1]", budget=True)
