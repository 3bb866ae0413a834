"""Problems shared by the tests of `ldpopt.design`."""

import itertools
import json
from pathlib import Path

import numpy as np

from ldpopt import Divergence, LocalDP, TotalVariation
from ldpopt.design.patterns.proof_levels import ABSENT_LEVEL
from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    hockey_stick,
)

DIVERGENCES = {
    "kl": KL,
    "total_variation": TOTAL_VARIATION,
    "chi_squared": CHI_SQUARED,
    "squared_hellinger": SQUARED_HELLINGER,
    "jensen_shannon": JENSEN_SHANNON,
    "jeffreys": JEFFREYS,
    "le_cam": LE_CAM,
    "hockey_stick_1_5": hockey_stick(1.5),
}

ORACLE = json.loads((Path(__file__).parents[1] / "data" / "optimal_channels.json").read_text())["instances"]


def random_pair(k, seed, concentration=1.0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(k, concentration), 2)


def constraints(epsilon, eta=None):
    return [LocalDP(epsilon)] if eta is None else [LocalDP(epsilon), TotalVariation(eta)]


def utility(k, seed, f=KL):
    return Divergence(f, *random_pair(k, seed))


SHAPES = ("01", "10", "010", "120", "021", "0121", "1210")
"""The levels of the blocks of unimodal level shapes (docs/explanation/open-problems/approximate-ldp.md)."""


def level_shapes(k):
    """(n, k) levels of the unit vectors and of the columns of the seven `SHAPES` on k sorted inputs.

    n = k + 2(k-1) + 3 C(k-1, 2) + 2 C(k-1, 3), which grows as k^3/3.
    """
    units = np.where(np.eye(k, dtype=bool), 0, ABSENT_LEVEL).astype(np.int64)
    found = [units]
    for shape in SHAPES:
        digits = np.array([int(digit) for digit in shape], dtype=np.int64)
        cuts = np.array(list(itertools.combinations(range(1, k), len(shape) - 1)), dtype=np.int64)
        if len(cuts):
            blocks = (np.arange(k)[None, :, None] >= cuts[:, None, :]).sum(axis=2)
            found.append(digits[blocks])
    return np.concatenate(found)
