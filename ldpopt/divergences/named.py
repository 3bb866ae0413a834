"""The named f-divergences, in closed form.

The excess of each entry is written as a function of d = a - b, a and b. So a divergence of order d^2 keeps its relative
accuracy when a and b agree to many digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import exp, log, maximum, sqrt, where

from ldpopt.divergences.base import NAMED, FDivergence
from ldpopt.divergences.formulas import jensen_shannon_excess, kl_excess, log_ratio, middle, ratio_excess

_INF = float("inf")
_make = FDivergence._trusted


def _jeffreys_conjugate(s: Any) -> Any:
    from scipy.special import wrightomega

    t = 1 / np.real(wrightomega(1 - s))  # f'(t) = log t + 1 - 1/t = s
    return t * s - (t - 1) * log(t)


KL = _make(
    "KL divergence",
    lambda t: t * log(t),
    lambda t: log(t) + 1,
    0.0,
    _INF,
    lambda s: exp(s - 1),
    kl_excess,
    ("kl",),
)

REVERSE_KL = _make(
    "reverse KL divergence",
    lambda t: -log(t),
    lambda t: -1 / t,
    _INF,
    0.0,
    lambda s: where(s < 0, -1 - log(where(s < 0, -s, 1.0)), _INF),
    lambda d, a, b: kl_excess(-d, b, a),
    ("reverse-kl",),
)

JEFFREYS = _make(
    "Jeffreys divergence",
    lambda t: (t - 1) * log(t),
    lambda t: log(t) + 1 - 1 / t,
    _INF,
    _INF,
    _jeffreys_conjugate,
    lambda d, a, b: d * log_ratio(d, a, b),
    ("jeffreys",),
)

TOTAL_VARIATION = _make(
    "total variation",
    lambda t: abs(t - 1) / 2,
    lambda t: np.sign(t - 1) / 2,
    0.5,
    0.5,
    lambda s: where(s <= 0.5, maximum(s, -0.5), _INF),
    lambda d, a, b: abs(d) / 2,
    ("total-variation",),
)

CHI_SQUARED = _make(
    "chi-squared divergence",
    lambda t: (t - 1) ** 2,
    lambda t: 2 * (t - 1),
    1.0,
    _INF,
    lambda s: where(s >= -2, s + s * s / 4, -1.0),
    lambda d, a, b: ratio_excess(d, b),
    ("chi-squared",),
)

NEYMAN_CHI_SQUARED = _make(
    "Neyman chi-squared divergence",
    lambda t: (t - 1) ** 2 / t,
    lambda t: 1 - 1 / t**2,
    _INF,
    1.0,
    lambda s: where(s <= 1, 2 - 2 * sqrt(maximum(1 - s, 0.0)), _INF),
    lambda d, a, b: ratio_excess(d, a),
    ("neyman-chi-squared",),
)

SQUARED_HELLINGER = _make(
    "squared Hellinger distance",
    lambda t: (sqrt(t) - 1) ** 2,
    lambda t: 1 - 1 / sqrt(t),
    1.0,
    1.0,
    lambda s: where(s < 1, s / where(s < 1, 1 - s, 1.0), _INF),
    lambda d, a, b: (d / (sqrt(a) + sqrt(b))) ** 2,
    ("squared-hellinger",),
)

JENSEN_SHANNON = _make(
    "Jensen-Shannon divergence",
    lambda t: (t * log(t) - (1 + t) * log((1 + t) / 2)) / 2,
    lambda t: (log(t) - log((1 + t) / 2)) / 2,
    log(2) / 2,
    log(2) / 2,
    lambda s: where(exp(2 * s) < 2, -log(where(exp(2 * s) < 2, 2 - exp(2 * s), 1.0)) / 2, _INF),
    jensen_shannon_excess,
    ("jensen-shannon",),
)

LE_CAM = _make(
    "Le Cam distance",
    lambda t: (t - 1) ** 2 / (t + 1),
    lambda t: 1 - 4 / (t + 1) ** 2,
    1.0,
    1.0,
    lambda s: where(s <= 1, where(s >= -3, 4 - s - 4 * sqrt(maximum(1 - s, 0.0)), -1.0), _INF),
    lambda d, a, b: ratio_excess(d, middle(a, b)) / 2,
    ("le-cam",),
)

NAMED |= {
    f.recipe[0]: f
    for f in (
        KL,
        REVERSE_KL,
        JEFFREYS,
        TOTAL_VARIATION,
        CHI_SQUARED,
        NEYMAN_CHI_SQUARED,
        SQUARED_HELLINGER,
        JENSEN_SHANNON,
        LE_CAM,
    )
    if f.recipe
}
