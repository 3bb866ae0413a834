"""Staircase patterns as bit masks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Masks = npt.NDArray[np.int64]


def members(masks: Masks, k: int) -> npt.NDArray[np.bool_]:
    """(patterns, k) membership of input x in the pattern whose bit mask has bit x."""
    return np.asarray((masks[:, None] >> np.arange(k)) & 1 == 1)
