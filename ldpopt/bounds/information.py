"""How much any private report can tell of an answer, in nats of mutual information."""

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
    """t - 1 - log t, t = epsilon/(1 - e^-epsilon): the most I(X; Y) under epsilon-LDP, whatever the law of X.

    epsilon : nats. In nats, rounded up. On a staircase pattern of a set of probability a the information is
    h(a) = (E epsilon a - m log m)/m of its own probability, m = 1 + (E - 1) a, E = e^epsilon, and this is the largest
    [KOV14, Thm 4]. Reached where sets of probability `capacity_mass(epsilon)` cover all answers alike, as they nearly
    do where no answer has much more than that.

    >>> round(information_capacity(1.0), 8), round(information_capacity(3.0), 8)
    (0.12330156, 1.00750562)
    """
    return float(enclosed_capacity(FLOAT.of(positive_epsilon(epsilon))).upper)


def capacity_mass(epsilon: float) -> float:
    """The probability of a set whose report tells most: (t - 1)/(e^epsilon - 1), t = epsilon/(1 - e^-epsilon).

    epsilon : nats. A report that favours a set of answers of this probability tells `information_capacity(epsilon)`
    on average [KOV14, section 4]. 1/2 for small epsilon, about epsilon e^-epsilon for large ones.

    >>> round(capacity_mass(1.0), 3), round(capacity_mass(3.0), 3)
    (0.339, 0.113)
    """
    return best_mass(positive_epsilon(epsilon))


def information_under_cap(prior: Any, epsilon: float, eta: float) -> float:
    """A bound on I(X; Y) under epsilon-LDP with total variation at most eta, from the prior's second moment.

    prior : the law of X, shape (k,). epsilon : nats. eta : in [0, 1]. In nats, rounded up. The least of eta H(X)
    [Dobrushin] and of  c + eta n (1 - sum P_x^2)  over n >= 0, c the largest (h(a) - n a (1 - a))/(t + a) over
    0 <= a <= 1, t = 1/(e^epsilon - 1): the rows of the cap averaged with weights P_x P_x'. 0 for eta = 0.

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
