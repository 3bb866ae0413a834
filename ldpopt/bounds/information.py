"""Bounds on the mutual information of an answer X and its private report Y, in nats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import Contraction, InformationDual, LocalDP, MutualInformation, TotalVariation
from ldpopt.design.certificates.capacity import information_capacity as enclosed_capacity
from ldpopt.design.columns.shares import best_mass, level_of
from ldpopt.design.programs.shares import SharesProgram
from ldpopt.distribution import distribution, positive_epsilon, unit_interval
from ldpopt.enclosures import FLOAT


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
    p, epsilon, eta = distribution(prior, "prior"), positive_epsilon(epsilon), unit_interval(eta, "eta")
    if np.count_nonzero(p) < 2:
        return 0.0
    utility, caps = MutualInformation(p), (LocalDP(epsilon), TotalVariation(eta))
    nothing = Channel(np.ones((len(p), 1)))
    bounds = [information_capacity(epsilon), Contraction(utility, caps, nothing).bound]
    if 0 < eta < math.tanh(epsilon / 2):
        program = SharesProgram(np.zeros(0), 1.0, 1 - float((p**2).sum()), level_of(epsilon), eta)
        found = program.solve()
        none = np.zeros(0, dtype=np.intp)
        bounds.append(InformationDual(utility, caps, nothing, none, found.rows, found.pairs).bound)
    return min(bounds)
