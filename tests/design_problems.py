"""Problems shared by the tests of `ldpopt.design`."""

import json
from pathlib import Path

import numpy as np

from ldpopt import Divergence, LocalDP, TotalVariation
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

ORACLE = json.loads((Path(__file__).parent / "data" / "optimal_channels.json").read_text())["instances"]


def random_pair(k, seed, concentration=1.0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(k, concentration), 2)


def constraints(epsilon, eta=None):
    return [LocalDP(epsilon)] if eta is None else [LocalDP(epsilon), TotalVariation(eta)]


def utility(k, seed, f=KL):
    return Divergence(f, *random_pair(k, seed))
