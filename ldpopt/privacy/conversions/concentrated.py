"""Conversions to zero- and mean-concentrated privacy."""

from __future__ import annotations

import math

from ldpopt.distribution import unit_interval
from ldpopt.privacy.claims import MCDP, ZCDP, ApproximateDP, ApproximateZCDP, PureDP, RenyiDP, need
from ldpopt.privacy.conversions.pure import Given, pure_to_zcdp_sharp
from ldpopt.rounding import sum_up, up


def approximate_curve_to_zcdp(xi_hat: float, rho_hat: float) -> ZCDP:
    """The zCDP that follows from (xi_hat + sqrt(rho_hat log(1/delta)), delta)-DP for all delta > 0 [BS, Lemma 3.7].

    The result is (xi_hat - rho_hat/4 + 5 rho_hat^(1/4), rho_hat/4)-zCDP, which is far from tight. xi_hat and rho_hat
    lie in [0, 1].

    >>> approximate_curve_to_zcdp(0.1, 0.2)
    ZCDP(xi=3.39371, rho=0.05000000001) (not tight, [BS, Lemma 3.7])
    """
    xi_hat, rho_hat = unit_interval(xi_hat, "xi_hat"), unit_interval(rho_hat, "rho_hat")
    xi = sum_up(xi_hat, 5 * rho_hat**0.25, -rho_hat / 4)
    return ZCDP(xi, up(rho_hat / 4), tight=False, reference="[BS, Lemma 3.7]")


def mcdp_to_zcdp(claim: Given) -> ZCDP:
    """(mu, tau)-mCDP implies (mu - tau^2/2, tau^2/2)-zCDP; Gaussian noise attains it [BS, Lemma 4.2].

    >>> mcdp_to_zcdp(MCDP(1.0, 1.0))
    ZCDP(xi=0.5000000001, rho=0.5000000001) (tight, [BS, Lemma 4.2])
    """
    made = need(MCDP, claim)
    if math.isinf(made.mu) or math.isinf(made.tau):
        return ZCDP(math.inf, math.inf, tight=True, reference="[BS, Lemma 4.2]")
    rho = up(made.tau**2 / 2, 8)
    return ZCDP(sum_up(made.mu, -(made.tau**2) / 2), rho, tight=True, reference="[BS, Lemma 4.2]")


def zcdp_to_mcdp_mean(claim: Given) -> RenyiDP:
    """(xi, rho)-zCDP implies that the mean of the privacy loss is at most xi + rho [BS, Lemma 4.3].

    The mean is the Rényi divergence of order 1. The lemma also gives a subgaussian parameter O(sqrt(xi + 2 rho)), but
    without a constant, so nothing is claimed about it here; measure the mechanism's tau with `mcdp` instead.

    >>> zcdp_to_mcdp_mean(ZCDP(0.1, 0.2))
    RenyiDP(order=1, epsilon=0.3000000001) (tight, [BS, Lemma 4.3])
    """
    made = need(ZCDP, claim)
    return RenyiDP(1.0, max(0.0, sum_up(made.xi, made.rho)), tight=True, reference="[BS, Lemma 4.3]")


def approximate_to_approximate_zcdp(claim: Given) -> ApproximateZCDP:
    """(epsilon, delta)-DP implies delta-approximate epsilon^2/2-zCDP [BS, Prop 1.13]; the sharp form is smaller.

    >>> approximate_to_approximate_zcdp(ApproximateDP(1.0, 1e-6))
    ApproximateZCDP(delta=1e-06, xi=0, rho=0.5000000001) (not tight, [BS, Prop 1.13])
    """
    made = need(ApproximateDP, claim)
    return ApproximateZCDP(made.delta, 0.0, up(made.epsilon**2 / 2), tight=False, reference="[BS, Prop 1.13]")


def approximate_to_approximate_zcdp_sharp(claim: Given) -> ApproximateZCDP:
    """(epsilon, delta)-DP implies delta-approximate epsilon tanh(epsilon/2)-zCDP, sharper than [BS, Cor 8.7].

    >>> approximate_to_approximate_zcdp_sharp(ApproximateDP(1.0, 1e-6))
    ApproximateZCDP(delta=1e-06, xi=0, rho=0.462118) (not tight, [BS, Cor 8.7])
    """
    made = need(ApproximateDP, claim)
    rho = pure_to_zcdp_sharp(PureDP(made.epsilon)).rho
    return ApproximateZCDP(made.delta, 0.0, rho, tight=False, reference="[BS, Cor 8.7]")
