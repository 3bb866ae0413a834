"""f-divergences as frozen objects: generator, derivative, perspective, conjugate, and evaluation.

>>> from ldpopt.divergences import KL, CHI_SQUARED, FDivergence
>>> round(KL([0.5, 0.5], [0.25, 0.75]), 6)
0.143841
>>> CHI_SQUARED.perspective(0.5, 0.25)
0.25
"""

from ldpopt.divergences.base import NAMED, FDivergence
from ldpopt.divergences.families import alpha, hockey_stick
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
)

__all__ = [
    "CHI_SQUARED",
    "JEFFREYS",
    "JENSEN_SHANNON",
    "KL",
    "LE_CAM",
    "NAMED",
    "NEYMAN_CHI_SQUARED",
    "REVERSE_KL",
    "SQUARED_HELLINGER",
    "TOTAL_VARIATION",
    "FDivergence",
    "alpha",
    "hockey_stick",
]
