"""Weight given reports, each with a minimal probability, so that the fewest respondents meet all targets.

A channel has columns w_j s_j. The shape s_j has mean 1 under the pilot, and w_j is the probability of the report. For
given shapes the largest scaled variance is convex in w. So reports that are too rare are dropped and the weights of the
others are optimized again. This loses less than merging each rare report with another one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel
from ldpopt.privacy import total_variation
from ldpopt.values.distribution import Array
from ldpopt_survey.plan.units import Target

MAX_REPORTS = 600
"""The most reports whose weights are searched for."""

MIN_POOL_PROBABILITY = 1e-9
"""The least probability of a report in the pool; below, its shape is rounding."""

MIN_WEIGHT_FACTOR = 1.02
"""The solver's least weight, as a multiple of the one that is wanted: its weights are exact to about 1e-6."""

ETA_MARGIN = 1e-6
"""The share by which the solver's cap on the total variation is smaller, as its weights are not exact."""

DROP_THRESHOLDS = (0.3, 3.0)
"""Reports are left out whose best weight is below so many times the least probability; the best of these is taken."""


def reweighed_channel(
    pool: Sequence[Channel],
    response: Channel,
    pilot: Array,
    targets: Sequence[Target],
    min_probability: float,
    eta: float | None = None,
) -> Channel | None:
    """Return the best channel of those reports whose probability is large enough.

    None if no such channel is computed.

    pool : channels of the K cells; their columns, each with any weight, are the reports that may be used.
    response : a channel that distinguishes all cells. Its reports stay, so that no target depends on dropped reports.
    pilot : (K,) the shares of the cells.
    targets : the targets, with the variances of one respondent's report.
    eta : the cap on total variation, if there is one. It is linear in the weights.
    """
    columns = np.hstack([channel.matrix for channel in pool])
    columns = columns[:, pilot @ columns >= MIN_POOL_PROBABILITY]
    shapes = columns / (pilot @ columns)
    shapes = shapes[:, np.sort(np.unique(np.round(shapes, 9), axis=1, return_index=True)[1])]
    response_shapes = response.matrix / (pilot @ response.matrix)
    free_weights = _weights(shapes, pilot, targets, 0.0, eta) if shapes.shape[1] <= MAX_REPORTS else None
    candidates: list[tuple[float, Channel]] = []
    for threshold in DROP_THRESHOLDS if free_weights is not None else ():
        assert free_weights is not None
        kept_shapes = np.hstack([shapes[:, free_weights[0] >= threshold * min_probability], response_shapes])
        solution = _weights(kept_shapes, pilot, targets, min_probability * MIN_WEIGHT_FACTOR, eta)
        if solution is None:
            continue
        # The solver's rows sum to 1 nearly; the nearest weights do so exactly where the columns allow it.
        weights = solution[0] - np.linalg.pinv(kept_shapes, rcond=1e-10) @ (kept_shapes @ solution[0] - 1)
        if (weights >= min_probability).all() and np.abs(kept_shapes @ weights - 1).max() <= 1e-9:
            matrix = kept_shapes * weights
            channel = Channel(matrix / matrix.sum(axis=1, keepdims=True))
            if eta is None or float(total_variation(channel)) <= eta:
                candidates.append((solution[1], channel))
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def _weights(
    shapes: Array, pilot: Array, targets: Sequence[Target], min_weight: float, eta: float | None
) -> tuple[Array, float] | None:
    """Return the weights (m,), at least `min_weight`, with the smallest maximal scaled variance, and that variance.

    An unbiased estimate adds the number u_y / w_y for a report y, where sum_y u_y s_y is the row of the target. Its
    variance is least for the best u, and sum_y u_y^2 / w_y is convex in both.
    """
    import cvxpy as cp

    scaled_rows = np.array([(target.row - target.row @ pilot) / np.sqrt(target.variance) for target in targets])
    scaled_rows /= np.abs(scaled_rows).max()
    m, n = shapes.shape[1], len(scaled_rows)
    weights, largest = cp.Variable(m), cp.Variable()
    numbers, parts = cp.Variable(n * m), cp.Variable(n * m)  # numbers^2 <= parts w, for each target and report
    repeated = np.tile(np.eye(m), (n, 1)) @ weights
    cone = cp.SOC(repeated + parts, cp.vstack([repeated - parts, 2 * numbers]), axis=0)
    sums = cp.sum(cp.reshape(parts, (n, m), order="C"), axis=1)
    limits = [cone, sums <= largest, cp.reshape(numbers, (n, m), order="C") @ shapes.T == scaled_rows]
    if eta is not None:
        first, second = np.triu_indices(len(shapes), 1)
        limits.append(np.abs(shapes[first] - shapes[second]) / 2 @ weights <= eta * (1 - ETA_MARGIN))
    problem = cp.Problem(cp.Minimize(largest), [*limits, weights >= min_weight, shapes @ weights == 1])
    with warnings.catch_warnings():  # the channel of inaccurate weights is checked afterwards
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return None
    is_solved = weights.value is not None
    return (np.asarray(weights.value, dtype=np.float64), float(largest.value)) if is_solved else None
