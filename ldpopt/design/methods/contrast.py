"""The best staircase patterns for one contrast of the proportions, such as one share, for hundreds of categories.

Categories of the same weight need not be told apart [KOV14, section 2.2]: they are merged. The first patterns cut the
categories, sorted by weight, in two. In every round, all of the few sets that can be best at its multipliers
(`columns.prices`) are priced, and those that gain join, until none does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.columns.base import BATCH
from ldpopt.design.columns.prices import Prices
from ldpopt.design.programs.fisher import FisherSolution, fisher_program
from ldpopt.design.utilities.criteria import COptimal
from ldpopt.distribution import Array
from ldpopt.rounding import ULP

ROUNDS = 60
"""The most rounds: about fifteen are enough for a hundred categories."""


def single_contrast(criterion: Any, k: int) -> Array | None:
    """(k,) the contrast whose variance is the criterion; None for any other criterion."""
    if not getattr(criterion, "additive", False) or criterion.kernel_rows(k) != 1:
        return None
    return np.asarray(criterion.factor(k)[:, 0])


def one_contrast(
    contrast: Array, prior: Array, epsilon: float, eta: float | None, gap: float, deadline: Deadline = UNLIMITED
) -> tuple[Array, FisherSolution]:
    """Logarithms (n, k) of patterns, their weights, and multipliers at which no pattern gains more than about `gap`.

    Under a cap on total variation there must be at most 24 different weights, so that all patterns are priced.
    """
    weights, place = np.unique(contrast, return_inverse=True)
    place = place.reshape(-1)
    mass = np.asarray(np.bincount(place, prior), dtype=np.float64)
    c = len(weights)
    below = np.arange(c)[None, :] < np.arange(1, c)[:, None]
    sets = np.unique(np.vstack([np.zeros((1, c), dtype=bool), below, ~below]), axis=0)
    ratio = math.exp(epsilon)
    for _ in deadline.rounds(range(ROUNDS)):
        posed = sets
        found = fisher_program(COptimal(weights), [mass], np.where(posed, ratio, 1.0), epsilon, eta)
        kernel = found.kernel[0] - found.kernel.sum() * mass
        prices = Prices(np.outer(kernel, kernel), mass, found.rows, found.pairs, ratio)
        least = 0.05 * gap * (abs(float(found.rows.sum())) + (eta or 0.0) * float(found.pairs.sum()))
        tried = prices.line() if eta is None else prices.best(BATCH, least)[1]
        paid = prices.gains(np.where(tried, ratio, 1.0)) > least
        known = {row.tobytes() for row in sets}
        new = [row for row in tried[paid] if row.tobytes() not in known]
        if not new:
            break
        sets = np.vstack([sets, new])
    # Categories of one weight share its multipliers by their shares; rows are raised a little for the rounding.
    share = prior / mass[place]
    rows = found.rows[place] * share
    rows = rows + 16 * ULP * float(np.abs(rows).sum()) * prior
    pairs = found.pairs[np.ix_(place, place)] * np.outer(share, share)
    lifted = FisherSolution(found.theta, rows, pairs, kernel[place][None] * share, np.ones(1))
    return posed[:, place] * epsilon, lifted
