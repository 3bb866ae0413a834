"""Bounds on the total variation between the reports of two populations."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.divergences import TOTAL_VARIATION


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
