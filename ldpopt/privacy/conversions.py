"""Conversions from one notion of privacy to another.

Each takes a claim (or a measured `Guarantee`) and returns a claim that follows from it, with numbers rounded outward.
`tight` says whether no better conversion exists, and `reference` names the theorem. The plain name is the statement of
the paper; a name that ends in ``_sharp`` is a better bound of the same kind.
"""

from __future__ import annotations

import math

from ldpopt.numbers.rounding import SUBNORMAL, down, sum_up, up
from ldpopt.privacy.claims import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, Given, PureDP, RenyiDP, need
from ldpopt.privacy.least_divergence import largest_delta, least_epsilon
from ldpopt.values.distribution import nonnegative, number, number_up_to, unit_interval

__all__ = [
    "approximate_curve_to_zcdp", "approximate_to_approximate_zcdp", "approximate_to_approximate_zcdp_sharp",
    "approximate_to_tv", "approximate_zcdp_to_approximate", "approximate_zcdp_to_epsilon", "mcdp_to_zcdp",
    "pure_to_approximate", "pure_to_mcdp", "pure_to_mcdp_sharp", "pure_to_renyi", "pure_to_tv", "pure_to_zcdp",
    "pure_to_zcdp_sharp", "renyi_to_approximate", "renyi_to_approximate_closed", "renyi_to_approximate_sharp",
    "tv_to_approximate", "zcdp_delta", "zcdp_to_approximate", "zcdp_to_approximate_sharp", "zcdp_to_mcdp_mean",
    "zcdp_to_renyi",
]  # fmt: skip


def pure_to_tv(claim: Given) -> TV:
    """Convert epsilon-DP to eta-TV: eta <= tanh(epsilon/2) [GI, Prop 2].

    Binary randomized response attains the bound.

    >>> pure_to_tv(PureDP(1.0)).eta.__round__(9)
    0.462117157
    """
    epsilon = need(PureDP, claim).epsilon
    return TV(min(1.0, up(math.tanh(epsilon / 2))), tight=True, reference="[GI, Prop 2]")


def pure_to_approximate(claim: Given, delta: float) -> ApproximateDP:
    """Compute the smallest epsilon' such that epsilon-DP implies (epsilon', delta)-DP [GI, Cor 1].

    It solves delta = (e^epsilon - e^epsilon')/(1 + e^epsilon), and binary randomized response attains it.

    >>> pure_to_approximate(PureDP(1.0), 0.1)
    ApproximateDP(epsilon=0.852906, delta=0.1) (tight, [GI, Cor 1])
    """
    epsilon, delta = need(PureDP, claim).epsilon, unit_interval(delta, "delta")
    if math.isinf(epsilon) or delta == 0:
        return ApproximateDP(epsilon if delta < 1 else 0.0, delta, tight=True, reference="[GI, Cor 1]")
    reduction = down(delta * (1 + math.exp(-epsilon)))  # e^(epsilon' - epsilon) = 1 - inside
    smaller = max(0.0, sum_up(epsilon, math.log1p(-reduction))) if reduction < 1 else 0.0
    return ApproximateDP(min(epsilon, smaller), delta, tight=True, reference="[GI, Cor 1]")


def approximate_to_tv(claim: Given) -> TV:
    """Convert (epsilon, delta)-DP to eta <= delta + (1 - delta) tanh(epsilon/2) [GI, Thm 2].

    >>> approximate_to_tv(ApproximateDP(1.0, 0.1))
    TV(eta=0.515906) (tight, [GI, Thm 2])
    """
    claim = need(ApproximateDP, claim)
    eta = claim.delta + (1 - claim.delta) * math.tanh(claim.epsilon / 2)
    return TV(min(1.0, up(eta)), tight=True, reference="[GI, Thm 2]")


def tv_to_approximate(claim: Given) -> ApproximateDP:
    """Convert eta-TV to (0, eta)-DP, which is the same [GI, Def 7].

    >>> tv_to_approximate(TV(0.3))
    ApproximateDP(epsilon=0, delta=0.3) (tight, [GI, Def 7])
    """
    return ApproximateDP(0.0, need(TV, claim).eta, tight=True, reference="[GI, Def 7]")


def pure_to_renyi(claim: Given, order: float) -> RenyiDP:
    """Compute the largest Rényi divergence of any epsilon-DP mechanism [M, Prop 5].

    Binary randomized response attains it: D_a = log(cosh((a - 1/2) epsilon) / cosh(epsilon/2)) / (a - 1) nats at order
    a, and epsilon tanh(epsilon/2) at order 1. `order` lies in [1, inf].

    >>> pure_to_renyi(PureDP(1.0), 2.0)
    RenyiDP(order=2, epsilon=0.735326) (tight, [M, Prop 5; KOV15])
    """
    epsilon = need(PureDP, claim).epsilon
    order = RenyiDP(order, 0.0).order
    if math.isinf(order) or math.isinf(epsilon):
        renyi_epsilon = epsilon
    elif order == 1:
        renyi_epsilon = epsilon * math.tanh(epsilon / 2)
    else:
        # With a = (order - 1/2) eps and b = eps/2, a - b = (order - 1) eps is computed directly, not as a difference.
        gap, b = (order - 1) * epsilon, epsilon / 2
        if gap + b < 1:  # cosh a - cosh b = 2 sinh((a + b)/2) sinh((a - b)/2)
            log_ratio = math.log1p(2 * math.sinh(order * epsilon / 2) * math.sinh(gap / 2) / math.cosh(b))
        else:
            log_ratio = gap + math.log1p(math.expm1(-2 * gap) / (math.exp(2 * b) + 1) if b < 350 else 0.0)
        renyi_epsilon = min(epsilon, log_ratio / (order - 1))
    return RenyiDP(order, up(max(0.0, renyi_epsilon), 64), tight=True, reference="[M, Prop 5; KOV15]")


def pure_to_zcdp(claim: Given) -> ZCDP:
    """Convert epsilon-DP to zCDP with rho = epsilon^2 / 2 [BS, Prop 1.4].

    `pure_to_zcdp_sharp` is better.

    >>> pure_to_zcdp(PureDP(1.0))
    ZCDP(xi=0, rho=0.5000000001) (not tight, [BS, Prop 1.4])
    """
    epsilon = need(PureDP, claim).epsilon
    return ZCDP(0.0, up(epsilon**2 / 2), tight=False, reference="[BS, Prop 1.4]")


def pure_to_zcdp_sharp(claim: Given) -> ZCDP:
    """Convert epsilon-DP to zCDP with rho = epsilon tanh(epsilon/2).

    Binary randomized response attains it.

    >>> pure_to_zcdp_sharp(PureDP(1.0))
    ZCDP(xi=0, rho=0.462118) (tight, [BS, Prop 1.4; KOV15])
    """
    epsilon = need(PureDP, claim).epsilon
    return ZCDP(0.0, up(epsilon * math.tanh(epsilon / 2), 16), tight=True, reference="[BS, Prop 1.4; KOV15]")


def pure_to_mcdp(claim: Given) -> MCDP:
    """Convert epsilon-DP to (epsilon (e^epsilon - 1)/2, epsilon)-mCDP [DR, Thm 3.5].

    `pure_to_mcdp_sharp` is better.

    >>> pure_to_mcdp(PureDP(1.0))
    MCDP(mu=0.859141, tau=1) (not tight, [DR, Thm 3.5])
    """
    epsilon = need(PureDP, claim).epsilon
    mu = epsilon * math.expm1(epsilon) / 2 if epsilon < 700 else math.inf
    return MCDP(up(mu, 16), epsilon, tight=False, reference="[DR, Thm 3.5]")


def pure_to_mcdp_sharp(claim: Given) -> MCDP:
    """Convert epsilon-DP to (epsilon tanh(epsilon/2), epsilon)-mCDP [DR, Lemma 3.6].

    The mean is attained. Randomized response has the smaller tau^2 = 2 epsilon tanh(epsilon/2). But post-processing can
    raise tau [BS, App A], so this value does not bound tau of other epsilon-DP mechanisms.

    >>> pure_to_mcdp_sharp(PureDP(1.0))
    MCDP(mu=0.462118, tau=1) (not tight, [DR, Lemma 3.6, 3.9])
    """
    epsilon = need(PureDP, claim).epsilon
    mu = epsilon * math.tanh(epsilon / 2)
    return MCDP(up(mu, 16), epsilon, tight=False, reference="[DR, Lemma 3.6, 3.9]")


def approximate_curve_to_zcdp(xi_hat: float, rho_hat: float) -> ZCDP:
    """Convert a curve of approximate guarantees to zCDP [BS, Lemma 3.7].

    The premise is (xi_hat + sqrt(rho_hat log(1/delta)), delta)-DP for all delta > 0. The result is
    (xi_hat - rho_hat/4 + 5 rho_hat^(1/4), rho_hat/4)-zCDP, which is far from tight. xi_hat and rho_hat
    lie in [0, 1].

    >>> approximate_curve_to_zcdp(0.1, 0.2)
    ZCDP(xi=3.39371, rho=0.05000000001) (not tight, [BS, Lemma 3.7])
    """
    xi_hat, rho_hat = unit_interval(xi_hat, "xi_hat"), unit_interval(rho_hat, "rho_hat")
    xi = sum_up(xi_hat, 5 * rho_hat**0.25, -rho_hat / 4)
    return ZCDP(xi, up(rho_hat / 4), tight=False, reference="[BS, Lemma 3.7]")


def mcdp_to_zcdp(claim: Given) -> ZCDP:
    """Convert (mu, tau)-mCDP to (mu - tau^2/2, tau^2/2)-zCDP [BS, Lemma 4.2].

    Gaussian noise attains it.

    >>> mcdp_to_zcdp(MCDP(1.0, 1.0))
    ZCDP(xi=0.5000000001, rho=0.5000000001) (tight, [BS, Lemma 4.2])
    """
    claim = need(MCDP, claim)
    if math.isinf(claim.mu) or math.isinf(claim.tau):
        return ZCDP(math.inf, math.inf, tight=True, reference="[BS, Lemma 4.2]")
    rho = up(claim.tau**2 / 2, 8)
    return ZCDP(sum_up(claim.mu, -(claim.tau**2) / 2), rho, tight=True, reference="[BS, Lemma 4.2]")


def zcdp_to_mcdp_mean(claim: Given) -> RenyiDP:
    """Bound the mean of the privacy loss under (xi, rho)-zCDP by xi + rho [BS, Lemma 4.3].

    The mean is the Rényi divergence of order 1. The lemma also gives a subgaussian parameter O(sqrt(xi + 2 rho)), but
    without a constant, so nothing is claimed about it here; measure the mechanism's tau with `mcdp` instead.

    >>> zcdp_to_mcdp_mean(ZCDP(0.1, 0.2))
    RenyiDP(order=1, epsilon=0.3000000001) (tight, [BS, Lemma 4.3])
    """
    claim = need(ZCDP, claim)
    return RenyiDP(1.0, max(0.0, sum_up(claim.xi, claim.rho)), tight=True, reference="[BS, Lemma 4.3]")


def approximate_to_approximate_zcdp(claim: Given) -> ApproximateZCDP:
    """Convert (epsilon, delta)-DP to delta-approximate epsilon^2/2-zCDP [BS, Prop 1.13].

    `approximate_to_approximate_zcdp_sharp` is smaller.

    >>> approximate_to_approximate_zcdp(ApproximateDP(1.0, 1e-6))
    ApproximateZCDP(delta=1e-06, xi=0, rho=0.5000000001) (not tight, [BS, Prop 1.13])
    """
    claim = need(ApproximateDP, claim)
    return ApproximateZCDP(claim.delta, 0.0, up(claim.epsilon**2 / 2), tight=False, reference="[BS, Prop 1.13]")


def approximate_to_approximate_zcdp_sharp(claim: Given) -> ApproximateZCDP:
    """Convert (epsilon, delta)-DP to delta-approximate epsilon tanh(epsilon/2)-zCDP.

    The result is sharper than [BS, Cor 8.7].

    >>> approximate_to_approximate_zcdp_sharp(ApproximateDP(1.0, 1e-6))
    ApproximateZCDP(delta=1e-06, xi=0, rho=0.462118) (not tight, [BS, Cor 8.7])
    """
    claim = need(ApproximateDP, claim)
    rho = pure_to_zcdp_sharp(PureDP(claim.epsilon)).rho
    return ApproximateZCDP(claim.delta, 0.0, rho, tight=False, reference="[BS, Cor 8.7]")


def renyi_to_approximate(claim: Given, delta: float) -> ApproximateDP:
    """Convert Rényi privacy to epsilon + log(1/delta)/(order - 1) at `delta` [M, Prop 3].

    `renyi_to_approximate_sharp` is smaller.

    >>> renyi_to_approximate(RenyiDP(10.0, 0.5), 1e-6)
    ApproximateDP(epsilon=2.03506, delta=1e-06) (not tight, [M, Prop 3])
    """
    claim, delta = need(RenyiDP, claim), number_up_to(delta, "delta")
    approximate_epsilon = claim.epsilon + (math.inf if claim.order == 1 else -math.log(delta) / (claim.order - 1))
    return ApproximateDP(up(approximate_epsilon, 16), delta, tight=False, reference="[M, Prop 3]")


def renyi_to_approximate_sharp(claim: Given, delta: float) -> ApproximateDP:
    """Compute the smallest epsilon at `delta` that one Rényi order implies [ALCKS, Thm 3].

    The Rényi divergence is of one order in one direction. Two biased coins with this divergence attain epsilon. It
    never exceeds `renyi_to_approximate_closed`.

    >>> round(renyi_to_approximate_sharp(RenyiDP(8, 0.4), 1e-5).epsilon, 6)
    1.605152
    """
    claim, delta = need(RenyiDP, claim), number_up_to(delta, "delta")
    approximate_epsilon = renyi_to_approximate_closed(claim, delta).epsilon
    if 1 < claim.order < math.inf and 0 < delta < 1 and 0 < approximate_epsilon < math.inf:
        approximate_epsilon = min(
            approximate_epsilon, least_epsilon(claim.order, claim.epsilon, delta, approximate_epsilon)
        )
    return ApproximateDP(approximate_epsilon, delta, tight=False, reference="[ALCKS, Thm 3]")


def renyi_to_approximate_closed(claim: Given, delta: float) -> ApproximateDP:
    """Convert Rényi privacy to an epsilon at `delta` by a closed form [CKS, Prop 12].

    It is epsilon + log(1 - 1/order) - log(order delta)/(order - 1), at least 0. `renyi_to_approximate_sharp` is
    better, especially for small divergences.

    >>> round(renyi_to_approximate_closed(RenyiDP(8, 0.4), 1e-5).epsilon, 6)
    1.614109
    """
    claim, delta = need(RenyiDP, claim), number_up_to(delta, "delta")
    a = claim.order
    if a == 1 or math.isinf(claim.epsilon):
        approximate_epsilon = math.inf
    elif math.isinf(a):
        approximate_epsilon = claim.epsilon
    else:
        approximate_epsilon = sum_up(
            claim.epsilon, math.log1p(-1 / a), -math.log(a) / (a - 1), -math.log(delta) / (a - 1)
        )
    return ApproximateDP(max(0.0, approximate_epsilon), delta, tight=False, reference="[CKS, Prop 12]")


def zcdp_to_renyi(claim: Given, order: float) -> RenyiDP:
    """Bound the Rényi divergence under (xi, rho)-zCDP by xi + rho order, in nats [BS, Def 1.1].

    >>> zcdp_to_renyi(ZCDP(0.0, 0.1), 4.0)
    RenyiDP(order=4, epsilon=0.4000000001) (tight, [BS, Def 1.1])
    """
    claim = need(ZCDP, claim)
    order = RenyiDP(order, 0.0).order
    growth = claim.rho * order if claim.rho > 0 else 0.0
    divergence_bound = sum_up(claim.xi, growth) if math.isfinite(growth) else math.inf
    return RenyiDP(order, max(0.0, divergence_bound), tight=True, reference="[BS, Def 1.1]")


def zcdp_to_approximate(claim: Given, delta: float) -> ApproximateDP:
    """Convert zCDP to epsilon = xi + rho + sqrt(4 rho log(1/delta)) [BS, Lemma 3.5].

    `zcdp_to_approximate_sharp` is smaller.

    >>> round(zcdp_to_approximate(ZCDP(0, 0.5), 1e-6).epsilon, 6)
    5.756522
    """
    claim, delta = need(ZCDP, claim), number_up_to(delta, "delta")
    xi, rho = claim.xi, claim.rho
    approximate_epsilon = sum_up(xi, rho, math.sqrt(4 * rho * -math.log(delta))) if rho < math.inf else math.inf
    return ApproximateDP(max(0.0, approximate_epsilon), delta, tight=False, reference="[BS, Lemma 3.5]")


def zcdp_delta(claim: Given, epsilon: float) -> ApproximateDP:
    """Bound delta at `epsilon` >= xi + rho by a Gaussian tail times a factor [BS, Lemma 3.6].

    The factor is the smallest of several. Below xi + rho the lemma does not apply, and delta is 1.

    >>> zcdp_delta(ZCDP(0.0, 0.1), 2.0)
    ApproximateDP(epsilon=2, delta=1.115e-05) (not tight, [BS, Lemma 3.6])
    """
    claim, epsilon = need(ZCDP, claim), nonnegative(epsilon, "epsilon")
    rho, epsilon_excess = claim.rho, math.fsum((epsilon, -claim.xi, -claim.rho))  # `fsum` gives the exact sign
    delta_bound = 0.0 if epsilon_excess >= 0 else 1.0
    if rho > 0 and epsilon_excess >= 0:
        u = epsilon_excess / (2 * rho)
        last_factor = 2 / (1 + u + math.sqrt((1 + u) ** 2 + 4 / (math.pi * rho)))
        factor = min(1.0, math.sqrt(math.pi * rho), 1 / (1 + u), last_factor)
        delta_bound = max(SUBNORMAL, math.exp(-epsilon_excess * epsilon_excess / (4 * rho) * (1 - 1e-15)) * factor)
    return ApproximateDP(epsilon, min(1.0, up(delta_bound, 64)), tight=False, reference="[BS, Lemma 3.6]")


def zcdp_delta_sharp(claim: Given, epsilon: float) -> ApproximateDP:
    """Return the least delta at `epsilon` >= 0 that the Rényi bounds of all orders give [ALCKS, Thm 3].

    At each order the best conversion is used, which two biased coins attain; orders near 1 bring in the KL divergence.
    So it is never above `zcdp_delta` nor the closed form of [CKS, Prop 12].

    >>> zcdp_delta_sharp(ZCDP(0.0, 0.1), 2.0)
    ApproximateDP(epsilon=2, delta=4.32514e-06) (not tight, [ALCKS, Thm 3])
    >>> round(zcdp_delta_sharp(ZCDP(0.0, 1 / 32), 0.0).delta, 4)  # [CKS, Prop 12] gives 0.1508
    0.1248
    """
    claim, epsilon = need(ZCDP, claim), nonnegative(epsilon, "epsilon")
    if math.isinf(claim.rho) or math.isinf(claim.xi):
        delta_bound = 1.0
    elif claim.rho == 0:  # the divergence of order inf is at most xi
        epsilon_excess = epsilon - claim.xi
        delta_bound = up(-math.expm1(epsilon_excess) / (1 + math.exp(-claim.xi)), 16) if epsilon_excess < 0 else 0.0
    else:
        delta_bound = min(zcdp_delta(claim, epsilon).delta, _least_delta(claim, epsilon))
    return ApproximateDP(epsilon, delta_bound, tight=False, reference="[ALCKS, Thm 3]")


def _least_delta(claim: ZCDP, epsilon: float) -> float:
    """The least delta over orders; any order is valid, so that a rough search for the best is safe."""

    def delta_of_order(log_excess: float, gap: float = 1e-5) -> float:
        order = 1 + math.exp(log_excess)
        return largest_delta(order, epsilon, zcdp_to_renyi(claim, order).epsilon, gap)

    tail_order = (epsilon - claim.xi + claim.rho) / (2 * claim.rho)  # where exp((a - 1)(xi + a rho - epsilon)) is least
    centre = math.log(min(max(tail_order - 1, math.sqrt(1 / claim.rho), 1e-3), 1e8))
    low, high = centre - 12, min(centre + 3, 20.0)
    for width, gap in ((3e-2, 1e-4), (1e-4, 1e-10)):
        while high - low > width:  # the conversion of one order has one minimum over orders
            lower_point, upper_point = low + 0.382 * (high - low), high - 0.382 * (high - low)
            low, high = (
                (low, upper_point)
                if delta_of_order(lower_point, gap) <= delta_of_order(upper_point, gap)
                else (lower_point, high)
            )
        if gap > 1e-10:
            low, high = low - width, high + width
    middle = (low + high) / 2
    return min(delta_of_order(middle, 1e-13), delta_of_order(centre, 1e-13), delta_of_order(-9.0, 1e-13))


def zcdp_to_approximate_sharp(claim: Given, delta: float) -> ApproximateDP:
    """Compute the smallest epsilon at `delta` from the Rényi bounds of all orders.

    The conversions are those of [CKS, Prop 12] and [BS, Lemma 3.6].

    >>> zcdp_to_approximate_sharp(ZCDP(0.0, 0.1), 1e-6)
    ApproximateDP(epsilon=2.14194, delta=1e-06) (not tight, [BS, Lemma 3.6; CKS, Prop 12])
    """
    claim, delta = need(ZCDP, claim), number_up_to(delta, "delta")
    if math.isinf(claim.rho) or math.isinf(claim.xi):
        epsilon = math.inf
    elif claim.rho == 0:
        epsilon = up(max(0.0, claim.xi))
    else:
        epsilon = min(zcdp_to_approximate(claim, delta).epsilon, _best_order(claim, delta))
    return ApproximateDP(epsilon, delta, tight=False, reference="[BS, Lemma 3.6; CKS, Prop 12]")


def _best_order(claim: ZCDP, delta: float) -> float:
    """The least epsilon that the Rényi bounds of (xi, rho)-zCDP give; any order is valid, so a rough search is safe."""
    from scipy.optimize import minimize_scalar

    def epsilon_of_order(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return renyi_to_approximate_closed(zcdp_to_renyi(claim, order), delta).epsilon

    guess = math.log(math.sqrt(max(-math.log(delta), 1e-3) / claim.rho))
    minimization = minimize_scalar(
        epsilon_of_order, bounds=(guess - 6, guess + 6), method="bounded", options={"xatol": 1e-9}
    )
    return min(epsilon_of_order(float(minimization.x)), epsilon_of_order(guess))


def approximate_zcdp_to_approximate(claim: Given, epsilon: float) -> ApproximateDP:
    """Convert delta-approximate zCDP to approximate DP at `epsilon` [BS, Lemma 8.8].

    The result is (epsilon, delta + (1 - delta) delta')-DP, where delta' is that of `zcdp_delta`.

    >>> approximate_zcdp_to_approximate(ApproximateZCDP(1e-6, 0.0, 0.1), 2.0)
    ApproximateDP(epsilon=2, delta=1.215e-05) (not tight, [BS, Lemma 8.8])
    """
    claim, epsilon = need(ApproximateZCDP, claim), number(epsilon, "epsilon")
    conditional_delta = zcdp_delta(ZCDP(claim.xi, claim.rho), epsilon).delta
    total_delta = min(1.0, up(claim.delta + (1 - claim.delta) * conditional_delta, 8))
    return ApproximateDP(epsilon, total_delta, tight=False, reference="[BS, Lemma 8.8]")


def approximate_zcdp_to_approximate_sharp(claim: Given, epsilon: float) -> ApproximateDP:
    """Return (epsilon, delta + (1 - delta) delta')-DP, delta' of `zcdp_delta_sharp` [BS, Lemma 8.8].

    >>> approximate_zcdp_to_approximate_sharp(ApproximateZCDP(1e-6, 0.0, 0.1), 2.0).delta < 1e-5
    True
    """
    claim, epsilon = need(ApproximateZCDP, claim), nonnegative(epsilon, "epsilon")
    conditional_delta = zcdp_delta_sharp(ZCDP(claim.xi, claim.rho), epsilon).delta
    total_delta = min(1.0, up(claim.delta + (1 - claim.delta) * conditional_delta, 8))
    return ApproximateDP(epsilon, total_delta, tight=False, reference="[BS, Lemma 8.8]")


def approximate_zcdp_to_epsilon(claim: Given, delta: float) -> ApproximateDP:
    """Compute the epsilon at a `delta` above that of the claim [BS, Lemma 8.8].

    At or below the claim's delta, epsilon is inf. But if rho = 0, the claim already implies (xi, delta)-DP at its
    delta.

    >>> approximate_zcdp_to_epsilon(ApproximateZCDP(1e-6, 0.0, 0.1), 1e-5)
    ApproximateDP(epsilon=1.92523, delta=1e-05) (not tight, [BS, Lemma 8.8])
    """
    claim, delta = need(ApproximateZCDP, claim), unit_interval(delta, "delta")
    remaining_delta = (delta - claim.delta) / (1 - claim.delta) * (1 - 1e-14) if claim.delta < 1 else 0.0
    epsilon = math.inf
    if claim.rho == 0:
        epsilon = up(max(0.0, claim.xi)) if delta >= claim.delta else math.inf
    elif remaining_delta > 0:
        epsilon = zcdp_to_approximate_sharp(ZCDP(claim.xi, claim.rho), remaining_delta).epsilon
    return ApproximateDP(epsilon, delta, tight=claim.rho == 0, reference="[BS, Lemma 8.8]")


__all__ = [
    "approximate_curve_to_zcdp", "approximate_to_approximate_zcdp", "approximate_to_approximate_zcdp_sharp",
    "approximate_to_tv", "approximate_zcdp_to_approximate", "approximate_zcdp_to_approximate_sharp",
    "approximate_zcdp_to_epsilon", "mcdp_to_zcdp", "pure_to_approximate", "pure_to_mcdp", "pure_to_mcdp_sharp",
    "pure_to_renyi", "pure_to_tv", "pure_to_zcdp", "pure_to_zcdp_sharp", "renyi_to_approximate",
    "renyi_to_approximate_closed", "renyi_to_approximate_sharp", "tv_to_approximate", "zcdp_delta",
    "zcdp_delta_sharp", "zcdp_to_approximate", "zcdp_to_approximate_sharp", "zcdp_to_mcdp_mean", "zcdp_to_renyi",
]  # fmt: skip
