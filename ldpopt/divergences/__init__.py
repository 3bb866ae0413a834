"""f-divergences: measures of how far two distributions p and q are apart, one for each convex function f.

Each is a frozen object, called with two distributions: sum_y q_y f(p_y / q_y), with f(1) = 0.

>>> from ldpopt.divergences import KL
>>> round(KL([0.5, 0.5], [0.25, 0.75]), 6)
0.143841
"""

from ldpopt.divergences.base import NAMED, FDivergence, format_divergence, parse_divergence
from ldpopt.divergences.named import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    NEYMAN_CHI_SQUARED,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    alpha,
    hockey_stick,
    piecewise_linear,
)

__all__ = [
    "CHI_SQUARED", "JEFFREYS", "JENSEN_SHANNON", "KL", "LE_CAM", "NAMED", "NEYMAN_CHI_SQUARED", "REVERSE_KL",
    "SQUARED_HELLINGER", "TOTAL_VARIATION", "FDivergence", "alpha", "format_divergence", "hockey_stick",
    "parse_divergence", "piecewise_linear",
]  # fmt: skip
