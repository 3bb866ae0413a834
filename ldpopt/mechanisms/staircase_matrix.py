"""The staircase matrix: a channel whose entries take two values, e^epsilon apart."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.rounding import toward_privacy

Mask = npt.NDArray[np.bool_]


def staircase_matrix(preferred: Mask, epsilon: float) -> Array:
    """The matrix proportional to e^epsilon where `preferred`, else to 1; shape (k, m) as `preferred` [KOV14, Def 3].

    Every row of `preferred` must have the same number of true entries. The matrix is built from a slightly smaller
    epsilon, so that its float64 entries do not exceed `epsilon` by rounding.
    """
    ratio = math.exp(toward_privacy(epsilon))
    members = int(preferred[0].sum())
    total = members * ratio + (preferred.shape[1] - members)
    return np.asarray(np.where(preferred, ratio / total, 1.0 / total), dtype=np.float64)
