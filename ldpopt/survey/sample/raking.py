"""Raking: weights that meet the known totals of every margin, by iterative proportional fitting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.errors import SolverError

CLOSE = 1e-10
"""The relative accuracy to which raked weights must meet every known total."""

CYCLES = 2000


def raked(weights: Array, margins: Sequence[tuple[npt.NDArray[np.intp], Array]]) -> Array:
    """The raked weights (n,).

    Within every cell of the margins they are proportional to `weights`, which may be zero.
    """
    w = np.array(weights)
    for _ in range(CYCLES):
        worst = 0.0
        for codes, known in margins:
            now = np.bincount(codes, w, len(known))
            if not now.min() > 0:
                raise SolverError("raking: a group of a margin has no respondent left; merge it with another")
            worst = max(worst, float(np.abs(now / known - 1).max()))
            w *= (known / now)[codes]
        if len(margins) == 1 or worst <= CLOSE:
            return w
    raise SolverError(
        f"raking: after {CYCLES} cycles the weights miss a known total by {worst:.2g} of itself; some combination of "
        "groups has no respondent (merge groups, or leave a margin out)"
    )
