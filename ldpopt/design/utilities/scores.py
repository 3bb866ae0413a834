"""The scores of reports: what each of them says about the proportions."""

from __future__ import annotations

import numpy as np

from ldpopt.design.utilities.criteria import Criterion
from ldpopt.distribution import Array


def criterion_at(criterion: Criterion, matrix: Array, prior: Array) -> float:
    """The criterion of a channel's matrix (k, m) at `prior`; inf where what it asks for cannot be estimated."""
    return criterion.influence(scores(matrix, prior)).value


def scores(matrix: Array, prior: Array) -> Array:
    """sqrt(m_y) T^T u_y, (k-1, m), with m = p Q, u_y = q_y / m_y - 1; zero for reports that never occur.

    The scores of differences of the proportions: accurate for channels that say little, where J itself is not.
    """
    mass = prior @ matrix
    root = np.sqrt(np.where(mass > 0, mass, 1.0))
    return np.asarray(np.where(mass > 0, (matrix[:-1] - matrix[-1]) / root, 0.0))
