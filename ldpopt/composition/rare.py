"""Outcomes so rare that their masses have lost digits, and the error this causes in a privacy loss."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldpopt.composition.parametric import ParametricPair
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.tolerances import ROW_SUM

RARE = 4 * ROW_SUM
"""A bound on how much a loss changes if a subnormal mass is divided by the sum of its row, within `ROW_SUM` of 1."""


def rare(pair: FinitePair) -> npt.NDArray[np.bool_]:
    """Where a mass is so small that it may have lost digits, by itself or before it was merged with others."""
    if isinstance(pair, ParametricPair):
        return np.zeros(len(pair.p), dtype=np.bool_)
    rarest = np.minimum(pair.p, pair.q)
    return np.asarray((rarest > 0) & (rarest < 2.0**-1000))


def rare_error(pair: FinitePair) -> float:
    """A bound on the rounding error of log p and of log q together, beyond a few ulps; 0 for most pairs."""
    return RARE if rare(pair).any() else 0.0
