"""The scores of reports: how the likelihood of each of them changes with the proportions."""

from __future__ import annotations

import numpy as np

from ldpopt.design.utilities.criteria import Criterion
from ldpopt.distribution import Array


def criterion_at(criterion: Criterion, matrix: Array, prior: Array) -> float:
    """The criterion of a channel's matrix (k, m) at `prior` (k,); inf where the channel cannot estimate its target."""
    return criterion.influence(scores(matrix, prior)).value


def scores(matrix: Array, prior: Array) -> Array:
    """sqrt(m_y) T^T u_y, (k-1, m), with m = p Q, u_y = q_y / m_y - 1; zero for reports that never occur.

    They are about differences of the proportions, so that they are accurate for channels that say little, unlike J.
    """
    mass = prior @ matrix
    root = np.sqrt(np.where(mass > 0, mass, 1.0))
    return np.asarray(np.where(mass > 0, (matrix[:-1] - matrix[-1]) / root, 0.0))
