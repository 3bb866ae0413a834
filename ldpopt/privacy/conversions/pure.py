"""Conversions from pure privacy to all other notions, and between (epsilon, delta) and total variation."""

from __future__ import annotations

import math

from ldpopt.distribution import unit_interval
from ldpopt.privacy.claims import MCDP, TV, ZCDP, ApproximateDP, Claim, PureDP, RenyiDP, need
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import down, sum_up, up

Given = Claim | Guarantee


def pure_to_tv(claim: Given) -> TV:
    """epsilon-DP implies eta <= tanh(epsilon/2), attained by binary randomized response [GI, Prop 2].

    >>> pure_to_tv(PureDP(1.0)).eta.__round__(9)
    0.462117157
    """
    epsilon = need(PureDP, claim).epsilon
    return TV(min(1.0, up(math.tanh(epsilon / 2))), tight=True, reference="[GI, Prop 2]")


def pure_to_approximate(claim: Given, delta: float) -> ApproximateDP:
    """The smallest epsilon' such that epsilon-DP implies (epsilon', delta)-DP [GI, Cor 1].

    It solves delta = (e^epsilon - e^epsilon')/(1 + e^epsilon), and binary randomized response attains it.

    >>> pure_to_approximate(PureDP(1.0), 0.1)
    ApproximateDP(epsilon=0.852906, delta=0.1) (tight, [GI, Cor 1])
    """
    epsilon, delta = need(PureDP, claim).epsilon, unit_interval(delta, "delta")
    reference = "[GI, Cor 1]"
    if math.isinf(epsilon) or delta == 0:
        return ApproximateDP(epsilon if delta < 1 else 0.0, delta, tight=True, reference=reference)
    inside = down(delta * (1 + math.exp(-epsilon)))  # e^(epsilon' - epsilon) = 1 - inside
    smaller = max(0.0, sum_up(epsilon, math.log1p(-inside))) if inside < 1 else 0.0
    return ApproximateDP(min(epsilon, smaller), delta, tight=True, reference=reference)


def approximate_to_tv(claim: Given) -> TV:
    """(epsilon, delta)-DP implies eta <= delta + (1 - delta) tanh(epsilon/2) [GI, Thm 2].

    >>> approximate_to_tv(ApproximateDP(1.0, 0.1))
    TV(eta=0.515906) (tight, [GI, Thm 2])
    """
    made = need(ApproximateDP, claim)
    return TV(
        min(1.0, up(made.delta + (1 - made.delta) * math.tanh(made.epsilon / 2))), tight=True, reference="[GI, Thm 2]"
    )


def tv_to_approximate(claim: Given) -> ApproximateDP:
    """eta-TV is the same as (0, eta)-DP [GI, Def 7].

    >>> tv_to_approximate(TV(0.3))
    ApproximateDP(epsilon=0, delta=0.3) (tight, [GI, Def 7])
    """
    return ApproximateDP(0.0, need(TV, claim).eta, tight=True, reference="[GI, Def 7]")


def pure_to_renyi(claim: Given, order: float) -> RenyiDP:
    """The Rényi divergence of binary randomized response, the largest of any epsilon-DP mechanism [M, Prop 5].

    D_a = log(cosh((a - 1/2) epsilon) / cosh(epsilon/2)) / (a - 1) nats at order a, and epsilon tanh(epsilon/2) at
    order 1. order in [1, inf].

    >>> pure_to_renyi(PureDP(1.0), 2.0)
    RenyiDP(order=2, epsilon=0.735326) (tight, [M, Prop 5; KOV15])
    """
    epsilon = need(PureDP, claim).epsilon
    order = RenyiDP(order, 0.0).order
    if math.isinf(order) or math.isinf(epsilon):
        value = epsilon
    elif order == 1:
        value = epsilon * math.tanh(epsilon / 2)
    else:
        # With a = (order - 1/2) eps and b = eps/2, a - b = (order - 1) eps is computed directly, not as a difference.
        gap, b = (order - 1) * epsilon, epsilon / 2
        if gap + b < 1:  # cosh a - cosh b = 2 sinh((a + b)/2) sinh((a - b)/2)
            log_ratio = math.log1p(2 * math.sinh(order * epsilon / 2) * math.sinh(gap / 2) / math.cosh(b))
        else:
            log_ratio = gap + math.log1p(math.expm1(-2 * gap) / (math.exp(2 * b) + 1) if b < 350 else 0.0)
        value = min(epsilon, log_ratio / (order - 1))
    return RenyiDP(order, up(max(0.0, value), 64), tight=True, reference="[M, Prop 5; KOV15]")


def pure_to_zcdp(claim: Given) -> ZCDP:
    """epsilon-DP implies zCDP with rho = epsilon^2 / 2 [BS, Prop 1.4]; `pure_to_zcdp_sharp` is better.

    >>> pure_to_zcdp(PureDP(1.0))
    ZCDP(xi=0, rho=0.5000000001) (not tight, [BS, Prop 1.4])
    """
    epsilon = need(PureDP, claim).epsilon
    return ZCDP(0.0, up(epsilon**2 / 2), tight=False, reference="[BS, Prop 1.4]")


def pure_to_zcdp_sharp(claim: Given) -> ZCDP:
    """epsilon-DP implies zCDP with rho = epsilon tanh(epsilon/2), attained by binary randomized response.

    >>> pure_to_zcdp_sharp(PureDP(1.0))
    ZCDP(xi=0, rho=0.462118) (tight, [BS, Prop 1.4; KOV15])
    """
    epsilon = need(PureDP, claim).epsilon
    return ZCDP(0.0, up(epsilon * math.tanh(epsilon / 2), 16), tight=True, reference="[BS, Prop 1.4; KOV15]")


def pure_to_mcdp(claim: Given) -> MCDP:
    """epsilon-DP implies (epsilon (e^epsilon - 1)/2, epsilon)-mCDP [DR, Thm 3.5]; `pure_to_mcdp_sharp` is better.

    >>> pure_to_mcdp(PureDP(1.0))
    MCDP(mu=0.859141, tau=1) (not tight, [DR, Thm 3.5])
    """
    epsilon = need(PureDP, claim).epsilon
    mu = epsilon * math.expm1(epsilon) / 2 if epsilon < 700 else math.inf
    return MCDP(up(mu, 16), epsilon, tight=False, reference="[DR, Thm 3.5]")


def pure_to_mcdp_sharp(claim: Given) -> MCDP:
    """epsilon-DP implies (epsilon tanh(epsilon/2), epsilon)-mCDP; the mean is attained [DR, Lemma 3.6].

    Randomized response has the smaller tau^2 = 2 epsilon tanh(epsilon/2). But post-processing can raise tau
    [BS, App A], so this says nothing about other epsilon-DP mechanisms.

    >>> pure_to_mcdp_sharp(PureDP(1.0))
    MCDP(mu=0.462118, tau=1) (not tight, [DR, Lemma 3.6, 3.9])
    """
    epsilon = need(PureDP, claim).epsilon
    mu = epsilon * math.tanh(epsilon / 2)
    return MCDP(up(mu, 16), epsilon, tight=False, reference="[DR, Lemma 3.6, 3.9]")
