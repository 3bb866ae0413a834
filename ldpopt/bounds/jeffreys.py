"""Bounds on the symmetrised KL divergence of the reports of two populations, from their total variation TV(P0, P1).

All three bound J(M0, M1) = KL(M0 || M1) + KL(M1 || M0), in nats, where M0 and M1 are the distributions of the report if
the answer has the distribution P0 or P1. None is attained. At large epsilon they overflow to inf, which is still a
bound.
"""

from __future__ import annotations

import math
from typing import Any

from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.divergences import TOTAL_VARIATION


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
