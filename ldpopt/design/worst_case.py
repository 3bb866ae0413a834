"""The worst distribution of a neighbourhood for a channel: a concave maximisation, with a proven upper end.

The covariance is the least of L D L^T - p p^T over left inverses L, so it is concave in p, and so is every criterion
that increases with it. Frank-Wolfe steps find the maximum, and the gradient bounds it from above at every step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldpopt.design.criteria import Criterion
from ldpopt.design.scores import scores
from ldpopt.distribution import Array

if TYPE_CHECKING:
    from ldpopt.design.fisher import FisherInformation

STEPS = 400


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The distribution `prior` with criterion `value`; nowhere in the set is it above `upper`."""

    prior: Array
    value: float
    upper: float


def worst_case(utility: FisherInformation, matrix: Array, accuracy: float = 1e-7) -> WorstCase:
    """The worst case of a channel's matrix (k, m) over the utility's neighbourhood, to a relative `accuracy`."""
    from scipy.optimize import minimize_scalar

    assert utility.neighbourhood is not None
    pilot, criterion = utility.prior, utility.criterion
    p = 0.999 * pilot + 0.001 * utility.neighbourhood.highest(-pilot, pilot)
    value, gradient = slope(criterion, matrix, p)
    best = WorstCase(p, value, math.inf)
    if math.isinf(value):
        return best
    corners = [p]
    weights = np.ones(1)
    for _ in range(STEPS):
        corner = utility.neighbourhood.highest(gradient, pilot)
        upper = min(best.upper, value + float(gradient @ (corner - p)))
        best = WorstCase(p, value, max(upper, value)) if value >= best.value else WorstCase(
            best.prior, best.value, max(upper, best.value)
        )  # fmt: skip
        if best.upper - best.value <= accuracy * max(abs(best.value), 1e-12):
            break
        # Pairwise steps: weight moves from the worst corner held to the best one, which zigzags less.
        scores = [float(gradient @ c) for c in corners]
        away = int(np.argmin(scores))
        move = corner - corners[away]
        reach = float(weights[away])

        def along(t: float, p: Array = p, move: Array = move) -> float:
            return -slope(criterion, matrix, p + t * move)[0]

        step = float(minimize_scalar(along, bounds=(0.0, reach), method="bounded", options={"xatol": 1e-9}).x)
        if -along(reach) >= -along(step):
            step = reach
        known = next((i for i, c in enumerate(corners) if np.abs(c - corner).max() < 1e-12), -1)
        if known < 0:
            corners.append(corner)
            weights, known = np.append(weights, 0.0), len(corners) - 1
        weights[away] -= step
        weights[known] += step
        kept = np.flatnonzero(weights > 1e-15)
        corners, weights = [corners[i] for i in kept], weights[kept] / weights[kept].sum()
        p = np.asarray(weights @ np.array(corners))
        value, gradient = slope(criterion, matrix, p)
    return best


def slope(criterion: Criterion, matrix: Array, prior: Array) -> tuple[float, Array]:
    """The criterion at `prior` and its gradient there.

    With the influence l_y = F^T p + h_y of report y on what is estimated, it is, as the estimate is the best one,
    d/dp_x = sum_y Q[x,y] |l_y|^2 - 2 (F F^T p)_x.
    """
    found = criterion.influence(scores(matrix, prior))
    mass = prior @ matrix
    mean = found.factor.T @ prior
    each = mean[:, None] + found.loadings / np.sqrt(np.where(mass > 0, mass, 1.0))
    return found.value, np.asarray(matrix @ (each**2).sum(axis=0) - 2 * found.factor @ mean)
