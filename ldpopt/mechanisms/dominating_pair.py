"""The dominating pair of (epsilon, delta, eta): two distributions as easy to tell apart as these limits allow."""

from __future__ import annotations

from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.mechanisms.outward import enlarge
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.tolerances import MAXIMUM_EPSILON


def dominating_pair(epsilon: float, delta: float = 0.0, eta: float = 1.0) -> FinitePair:
    """The five-point pair that dominates every (epsilon, delta)-DP mechanism of total variation eta [GI, eq. 7-8].

    epsilon in nats; delta and eta in [0, 1]. With e = exp(epsilon) and
    1 - alpha = (eta - delta)(e + 1)/((1 - delta)(e - 1)), p is
    (delta, (1-delta)(1-alpha) e/(1+e), alpha (1-delta), (1-delta)(1-alpha)/(1+e), 0) and q is p reversed.
    The pair dominates a mechanism if no two answers to it are easier to tell apart than p and q. An eta above
    delta + (1 - delta) tanh(epsilon/2) limits nothing, and is lowered to this value; a delta above eta is lowered to
    eta. Parameters are enlarged by a few units in the last place, so that the rounded pair dominates, too.

    >>> dominating_pair(1.0, 0.0, 0.7 * 0.46211715726).p.round(4)
    array([0.    , 0.5117, 0.3   , 0.1883, 0.    ])
    >>> round(float(dominating_pair(1.0, 0.0, 0.3).renyi(1)), 9)  # epsilon eta
    0.3
    """
    epsilon = min(enlarge(positive_epsilon(epsilon)), MAXIMUM_EPSILON)
    eta = min(enlarge(unit_interval(eta, "eta")), 1.0)
    return FinitePair.of_parameters(epsilon, delta, eta)
