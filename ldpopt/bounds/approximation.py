"""The share of the optimum that simple mechanisms always reach, for all distributions P0 and P1."""

from __future__ import annotations

import math

from ldpopt.distribution import positive_epsilon, unit_interval


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


def erased_share(epsilon: float, eta: float) -> float:
    """The share of the epsilon-LDP optimum that erasing to eta leaves: min{1, eta / tanh(epsilon/2)} [GI, Thm 8].

    epsilon : nats. eta : in [0, 1].

    If the reports of the optimal epsilon-LDP channel are erased with probability 1 - share, whatever the answer is, the
    channel is eta-TV and keeps this share of every f-divergence. So OPT(epsilon, eta) >= share * OPT(epsilon).

    >>> round(erased_share(1.0, 0.2), 9), erased_share(1.0, 0.9)
    (0.432790683, 1.0)
    """
    return min(1.0, unit_interval(eta, "eta") / math.tanh(positive_epsilon(epsilon) / 2))
