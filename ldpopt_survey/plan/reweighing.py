"""Weights of given reports, each with a least probability, that need the fewest respondents for all targets.

A channel has columns w_j s_j, where s_j has the mean 1 under the pilot and w_j is the probability of the report. For
given s_j the largest scaled variance is convex in w. So reports that are too rare are left out and the weights of the
others are found again, which loses less than joining each rare report with another one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel
from ldpopt.values.distribution import Array
from ldpopt_survey.plan.units import Target

MAX_REPORTS = 600
"""The most reports whose weights are searched for."""

TRACE = 1e-9
"""The least probability of a report in the pool; below, its shape is rounding."""

MARGIN = 1.02
"""The solver's least weight, as a multiple of the one that is wanted: its weights are exact to about 1e-6."""

DROPPED = (0.3, 3.0)
"""Reports are left out whose best weight is below so many times the least probability; the best of these is taken."""


def reweighed(
    pool: Sequence[Channel], plain: Channel, pilot: Array, targets: Sequence[Target], least: float
) -> Channel | None:
    """The channel of the pool's reports that have a probability of `least` or more; None where none is found.

    pool : channels of the K cells; their columns, each with any weight, are the reports that may be used.
    plain : a channel that tells all cells apart. Its reports are kept, so that no target rests on reports left out.
    pilot : (K,) the shares of the cells. targets : what is wanted, with the variances of one respondent's report.
    """
    columns = np.hstack([channel.matrix for channel in pool])
    columns = columns[:, pilot @ columns >= TRACE]
    shapes = columns / (pilot @ columns)
    shapes = shapes[:, np.sort(np.unique(np.round(shapes, 9), axis=1, return_index=True)[1])]
    each = plain.matrix / (pilot @ plain.matrix)
    first = _weights(shapes, pilot, targets, 0.0) if shapes.shape[1] <= MAX_REPORTS else None
    found: list[tuple[float, Channel]] = []
    for share in DROPPED if first is not None else ():
        assert first is not None
        used = np.hstack([shapes[:, first[0] >= share * least], each])
        solved = _weights(used, pilot, targets, least * MARGIN)
        if solved is None:
            continue
        # The solver's rows sum to 1 nearly; the nearest weights do so exactly where the columns allow it.
        weights = solved[0] - np.linalg.pinv(used, rcond=1e-10) @ (used @ solved[0] - 1)
        if (weights >= least).all() and np.abs(used @ weights - 1).max() <= 1e-9:
            matrix = used * weights
            found.append((solved[1], Channel(matrix / matrix.sum(axis=1, keepdims=True))))
    return min(found, key=lambda each: each[0])[1] if found else None


def _weights(shapes: Array, pilot: Array, targets: Sequence[Target], least: float) -> tuple[Array, float] | None:
    """(m,) the weights, each at least `least`, with the smallest largest scaled variance, and that variance."""
    import cvxpy as cp

    weights, most = cp.Variable(shapes.shape[1]), cp.Variable()
    information = shapes @ cp.diag(weights) @ shapes.T
    wanted = np.array([(target.row - target.row @ pilot) / np.sqrt(target.variance) for target in targets])
    scale = np.abs(wanted).max()
    bounds = [cp.matrix_frac(row / scale, information) <= most for row in wanted]
    problem = cp.Problem(cp.Minimize(most), [*bounds, weights >= least, shapes @ weights == 1])
    with warnings.catch_warnings():  # weights of low accuracy are checked by what they lead to
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return None
    known = weights.value is not None
    return (np.asarray(weights.value, dtype=np.float64), float(most.value)) if known else None
