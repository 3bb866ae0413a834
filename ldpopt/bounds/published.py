"""Published bounds on what a private channel keeps of the distance between P0 and P1, and what simple ones reach.

The three bounds on the symmetrised divergence bound J(M0, M1) = KL(M0 || M1) + KL(M1 || M0), in nats, where M0 and M1
are the distributions of the report if the answer has the distribution P0 or P1. None is attained. At large epsilon they
overflow to inf, which is still a bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.kernel.sets import best_mass, level_of
from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    NEYMAN_CHI_SQUARED,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    FDivergence,
)
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.values.distribution import distribution, positive_epsilon, unit_interval


def binary_share_kairouz(epsilon: float) -> float:
    """The binary mechanism keeps at least a share 1 / (2 (e^epsilon + 1)^2) of the KL optimum [KOV14, Thm 7].

    epsilon : nats.

    >>> round(binary_share_kairouz(1.0), 9)
    0.036164744
    """
    base = math.exp(positive_epsilon(epsilon)) + 1
    return 1 / base / base / 2


def binary_share_ghazi_issa(epsilon: float) -> float:
    """The binary mechanism keeps at least 1 / (min{2, e^epsilon} (e^epsilon + 1)) of the KL optimum [GI, VII-B1].

    epsilon : nats.

    This share is larger than `binary_share_kairouz`.

    >>> round(binary_share_ghazi_issa(1.0), 9)
    0.134470711
    """
    growth = math.exp(positive_epsilon(epsilon))
    return 1 / (min(2.0, growth) * (growth + 1))


def binary_share(epsilon: float) -> float:
    """The least share of the optimum that the binary mechanism keeps: 4/(e+1)^2 / max(1/e, 2/(e+2)), e = e^epsilon.

    epsilon : nats.

    It holds for every operator convex divergence, which the eight of [AZ, Thm 1] are (KL, chi-squared, Hellinger and
    their relatives), for all P0 and P1, and nothing larger does; its proof by [SPR] is on the page "How little the
    binary mechanism keeps".

    >>> round(binary_share(1.0), 9)
    0.682541819
    """
    small = math.exp(-positive_epsilon(epsilon))
    return 4 * small / (1 + small) ** 2 / max(1.0, 2 / (1 + 2 * small))


def jeffreys_of_total_variation(p0: Any, p1: Any, epsilon: float, eta: float = 1.0) -> float:
    """J <= (e-1) TV(P0, P1)^2 min{2 eta, (e-1) max(2/(e+2), 1/e)} for epsilon-LDP, eta-TV channels [SPR].

    p0, p1 : distributions, shape (k,). epsilon : nats, e = e^epsilon. eta : in [0, 1].

    It is `ghazi_issa` without the factor min{2, e^epsilon}, and the best constant for every epsilon alone.

    >>> round(jeffreys_of_total_variation([0.9, 0.1], [0.4, 0.6], 0.5, 0.1), 6)
    0.032436
    """
    growth, eta = math.expm1(positive_epsilon(epsilon)), unit_interval(eta, "eta")
    pure = growth * max(2 / (growth + 3), 1 / (growth + 1))
    return _times_squared_tv(growth * min(2 * eta, pure), p0, p1)


def erased_share(epsilon: float, eta: float) -> float:
    """The share of the epsilon-LDP optimum that erasing to eta leaves: min{1, eta / tanh(epsilon/2)} [GI, Thm 8].

    epsilon : nats. eta : in [0, 1].

    If the reports of the optimal epsilon-LDP channel are erased with probability 1 - share, whatever the answer is, the
    channel is eta-TV and keeps this share of every f-divergence. So OPT(epsilon, eta) >= share * OPT(epsilon).

    >>> round(erased_share(1.0, 0.2), 9), erased_share(1.0, 0.9)
    (0.432790683, 1.0)
    """
    return min(1.0, unit_interval(eta, "eta") / math.tanh(positive_epsilon(epsilon) / 2))


# The theorem covers chi-squared, KL and squared Hellinger, for every pair. The others follow from it. Exchanging P0 and
# P1 gives the reversed divergences and their sum. A channel maps the mixture (P0 + P1)/2 to (M0 + M1)/2, which gives
# Le Cam, 2 chi^2(P0 || mixture), and Jensen-Shannon, a mean of two KL divergences from the mixture.
CONTRACTED = (
    CHI_SQUARED, KL, SQUARED_HELLINGER, REVERSE_KL, NEYMAN_CHI_SQUARED, JEFFREYS, LE_CAM, JENSEN_SHANNON,
)  # fmt: skip


def asoodeh_zhang(divergence: FDivergence, p0: Any, p1: Any, epsilon: float) -> float:
    """No epsilon-LDP channel keeps more than tanh(epsilon/2)^2 D(P0 || P1) of a divergence D [AZ, Thm 1].

    divergence : KL, reverse KL, Jeffreys, either chi-squared, squared Hellinger, Le Cam or Jensen-Shannon;
        `InvalidInput` for any other. The total variation, for example, shrinks only by tanh(epsilon/2).
    p0, p1 : distributions, shape (k,). epsilon : nats.

    Binary randomized response attains the bound for chi-squared if P1 is uniform on two inputs, and for the others in
    the limit of close P0 and P1. The bound may be inf.

    >>> from ldpopt.divergences import KL
    >>> round(asoodeh_zhang(KL, [0.9, 0.1], [0.4, 0.6], 1.0), 9)
    0.117594958
    """
    if not any(divergence is known for known in CONTRACTED):
        names = ", ".join(known.name for known in CONTRACTED)
        raise invalid("divergence", f"one of {names}", divergence)
    return math.tanh(positive_epsilon(epsilon) / 2) ** 2 * divergence(p0, p1)


def dobrushin(divergence: FDivergence, p0: Any, p1: Any, eta: float) -> float:
    """No eta-TV channel keeps more than eta D_f(P0 || P1) of an f-divergence [Dobrushin].

    p0, p1 : distributions, shape (k,). eta : in [0, 1].

    Two point masses attain the bound for total variation. The bound may be inf; for eta = 0 it is 0.

    >>> from ldpopt.divergences import CHI_SQUARED
    >>> round(dobrushin(CHI_SQUARED, [0.9, 0.1], [0.4, 0.6], 0.5), 9)
    0.520833333
    """
    eta = unit_interval(eta, "eta")
    whole = divergence(p0, p1)
    return eta * whole if eta > 0 else 0.0


def information_capacity(epsilon: float) -> float:
    """The most mutual information I(X; Y) under epsilon-LDP, for any law of X, in nats, rounded up [KOV14, Thm 4].

    epsilon : nats.

    It is t - 1 - log t with t = epsilon/(1 - e^-epsilon). An optimal report is e^epsilon times as likely under the
    answers of a set as under all others. If the set has the probability a, the information per unit of the report's
    probability is h(a) = (E epsilon a - m log m)/m, with m = 1 + (E - 1) a and E = e^epsilon. The bound is the largest
    h(a). It is attained if sets of probability `capacity_mass(epsilon)` cover all answers evenly, and nearly attained
    if no answer has much more probability than that.

    >>> round(information_capacity(1.0), 8), round(information_capacity(3.0), 8)
    (0.12330156, 1.00750562)
    """
    from ldpopt.design.information.proof_capacity import information_capacity as enclosed_capacity

    return float(enclosed_capacity(FLOAT.of(positive_epsilon(epsilon))).upper)


def capacity_mass(epsilon: float) -> float:
    """The probability of the set of answers that the most informative report favours [KOV14, section 4].

    epsilon : nats.

    It is (t - 1)/(e^epsilon - 1) with t = epsilon/(1 - e^-epsilon): 1/2 for small epsilon, about epsilon e^-epsilon for
    large epsilon. A report that favours a set of answers of this probability carries `information_capacity(epsilon)` on
    average.

    >>> round(capacity_mass(1.0), 3), round(capacity_mass(3.0), 3)
    (0.339, 0.113)
    """
    return best_mass(positive_epsilon(epsilon))


def information_under_cap(prior: Any, epsilon: float, eta: float) -> float:
    """A bound on I(X; Y) under epsilon-LDP with total variation at most eta, in nats, rounded up [Dobrushin].

    prior : the law P of X, shape (k,). epsilon : nats. eta : in [0, 1].

    It is the least of three bounds: `information_capacity(epsilon)`, eta H(X), and c + eta n (1 - sum P_x^2) for the
    best n >= 0. Here c is the largest (h(a) - n a (1 - a))/(t + a) over 0 <= a <= 1, with t = 1/(e^epsilon - 1). The
    third averages the limits on all pairs of answers with the weights P_x P_x'. For eta = 0 the bound is 0.

    >>> round(information_under_cap([0.01] * 100, 1.0, 0.2), 4), information_under_cap([0.5, 0.5], 1.0, 0.0)
    (0.1062, 0.0)
    """
    from ldpopt.design import Contraction, InformationDual, LocalDP, MutualInformation, TotalVariation
    from ldpopt.design.information.program import SharesProgram

    p, epsilon, eta = distribution(prior, "prior"), positive_epsilon(epsilon), unit_interval(eta, "eta")
    if np.count_nonzero(p) < 2:
        return 0.0
    utility, caps = MutualInformation(p), (LocalDP(epsilon), TotalVariation(eta))
    nothing = Channel(np.ones((len(p), 1)))
    bounds = [information_capacity(epsilon), Contraction(utility, caps, nothing).bound]
    if 0 < eta < math.tanh(epsilon / 2):
        program = SharesProgram(np.zeros(0), 1.0, 1 - float((p**2).sum()), level_of(epsilon), eta)
        solved = program.solve()
        none = np.zeros(0, dtype=np.intp)
        bounds.append(InformationDual(utility, caps, nothing, none, solved.rows, solved.pairs).bound)
    return min(bounds)


def duchi_jordan_wainwright(p0: Any, p1: Any, epsilon: float) -> float:
    """J <= min{4, e^(2 epsilon)} (e^epsilon - 1)^2 TV(P0, P1)^2 for epsilon-LDP channels [DJW, Thm 1; GI, Thm 6].

    p0, p1 : distributions, shape (k,). epsilon : nats.

    >>> round(duchi_jordan_wainwright([0.9, 0.1], [0.4, 0.6], 0.5), 6)
    0.28599
    """
    epsilon = positive_epsilon(epsilon)
    growth = math.expm1(epsilon)
    return _times_squared_tv(min(2.0, math.exp(epsilon)) ** 2 * (growth * growth), p0, p1)


def ghazi_issa(p0: Any, p1: Any, epsilon: float, eta: float) -> float:
    """J <= 2 eta min{2, e^epsilon} (e^epsilon - 1) TV(P0, P1)^2 for epsilon-LDP, eta-TV channels [GI, Thm 7].

    p0, p1 : distributions, shape (k,). epsilon : nats. eta : in [0, 1]; a value above tanh(epsilon/2), which epsilon
    implies, is lowered to it [GI, Prop 2].

    >>> round(ghazi_issa([0.9, 0.1], [0.4, 0.6], 0.5, 0.1), 6)
    0.053478
    """
    epsilon = positive_epsilon(epsilon)
    eta = min(unit_interval(eta, "eta"), math.tanh(epsilon / 2))
    return _times_squared_tv(2 * eta * min(2.0, math.exp(epsilon)) * math.expm1(epsilon), p0, p1)


def ghazi_issa_corollary(p0: Any, p1: Any, epsilon: float) -> float:
    """J <= 2 min{2, e^epsilon} (e^epsilon - 1)^2 / (e^epsilon + 1) TV^2 for epsilon-LDP channels [GI, Cor 2].

    p0, p1 : distributions, shape (k,). epsilon : nats.

    It is never above `duchi_jordan_wainwright` [GI, eq 45].

    >>> round(ghazi_issa_corollary([0.9, 0.1], [0.4, 0.6], 0.5), 6)
    0.130978
    """
    return ghazi_issa(p0, p1, epsilon, 1.0)


def _times_squared_tv(factor: float, p0: Any, p1: Any) -> float:
    distance = TOTAL_VARIATION(p0, p1)
    return factor * distance * distance if distance > 0 else 0.0


def kairouz_oh_viswanath(p0: Any, p1: Any, epsilon: float) -> float:
    """The most total variation that an epsilon-LDP channel keeps: tanh(epsilon/2) TV(P0, P1) [KOV14, Thm 6; GI, Thm 4].

    p0, p1 : distributions, shape (k,). epsilon : nats.

    The binary mechanism attains the bound, for every P0 and P1.

    >>> round(kairouz_oh_viswanath([0.9, 0.1], [0.4, 0.6], 1.0), 9)
    0.231058579
    """
    return math.tanh(positive_epsilon(epsilon) / 2) * TOTAL_VARIATION(p0, p1)


def ghazi_issa_total_variation(p0: Any, p1: Any, eta: float) -> float:
    """The most that an eta-TV channel keeps of the total variation: eta TV(P0, P1) [GI, Thm 5].

    p0, p1 : distributions, shape (k,). eta : in [0, 1].

    Under epsilon-LDP with eta <= tanh(epsilon/2), the binary mechanism with erasure attains the bound, for every P0 and
    P1.

    >>> round(ghazi_issa_total_variation([0.9, 0.1], [0.4, 0.6], 0.3), 9)
    0.15
    """
    return unit_interval(eta, "eta") * TOTAL_VARIATION(p0, p1)
