"""Strong data processing: the largest share of a divergence that a private channel can keep."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    NEYMAN_CHI_SQUARED,
    REVERSE_KL,
    SQUARED_HELLINGER,
    FDivergence,
)
from ldpopt.errors import invalid

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
