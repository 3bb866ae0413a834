"""The most that a channel can gain beyond its price, where multipliers fall short of the gains of some columns."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT, Enclosure

STEPS = 60


def enclosed_residual(
    reduced: Enclosure, sums: Enclosure, spread: Enclosure | None, variation: Enclosure | None = None
) -> float:
    """An upper bound on sum_i reduced_i . q_i over all channels with columns q_i.

    reduced : (labels, k), gains less prices. sums : (labels,) their sums over the inputs. spread : a cap D on the
    log-ratio of two entries of a column, None where there is none. variation : a cap on the total variation between any
    two rows, or None.

    Without any cap, columns gain at most sum_x max_i (reduced_ix)_+. With a cap D every column is a multiple of t + a,
    t = 1/(e^D - 1) and 0 <= a <= 1. Row multipliers that are all higher by s cover every gain as soon as, for every
    label,

        t (R_i - k s) + sum_x (reduced_ix - s)_+ <= 0,      R_i the sum of reduced_i.

    They cost k s. R_i is given separately, because t may be large, and the terms of the sum then nearly cancel.

    With a cap V on the variation, subtract from every column its smallest entry. The smallest entries sum to at most
    one, and gain at most the largest R_i. In the rest, a row sums to at most its variations from the k - 1 other rows
    together, (k - 1) V.
    """
    top, total = np.asarray(reduced.upper), np.asarray(sums.upper)
    if not (top < math.inf).all():
        return math.inf
    unpaid = FLOAT.of(np.maximum(top.max(axis=0), 0.0)).sum()
    free = float(unpaid.upper)
    if variation is not None and (total < math.inf).all():
        rest = unpaid * FLOAT.between(variation.lower, variation.upper) * (top.shape[1] - 1)
        near = float((rest + max(float(total.max()), 0.0)).upper)
        free = near if near < free else free
    if spread is None or not (total < math.inf).all():
        return free
    exponent = FLOAT.of(spread)
    level = (-exponent).exp() / -(-exponent).expm1()
    if not level.upper < math.inf:
        return free
    inputs, t = top.shape[1], float(level.midpoint)
    shift = _least_shift(top, total, t)
    for _ in range(STEPS):
        left = level * (total - FLOAT.of(shift) * inputs) + (FLOAT.of(top) - shift[:, None]).positive().sum(axis=1)
        over = np.asarray(left.upper)
        if (over <= 0).all():
            return min(free, float((FLOAT.of(float(shift.max())) * inputs).upper))
        above = (top > shift[:, None]).sum(axis=1)
        with np.errstate(all="ignore"):
            step = np.maximum(over, 0.0) / (inputs * t + above)
        shift = np.where(over > 0, np.nextafter((shift + 1.25 * step) * (1 + 2.0**-50), math.inf), shift)
        if not np.isfinite(shift).all():
            break
    return free


def _least_shift(top: Array, total: Array, t: float) -> Array:
    """(labels,) the least s >= 0 for each label, up to rounding, by Newton's method on a convex, falling function."""
    shift, inputs = np.zeros(len(top)), top.shape[1]
    for _ in range(STEPS):
        over = top > shift[:, None]
        with np.errstate(all="ignore"):
            new = (t * total + np.where(over, top, 0.0).sum(axis=1)) / (inputs * t + over.sum(axis=1))
        new = np.where(np.isfinite(new), new, 0.0)
        if not (new > shift).any():
            break
        shift = np.maximum(shift, new)
    return shift


def residual(reduced: Array, ratio: float) -> float:
    """An upper bound on sum_i reduced_i . q_i over matrices with rows summing to one and columns in [m, ratio m]."""
    above = np.maximum(reduced.max(axis=0), 0.0)
    free = float(above.sum())
    if math.isinf(ratio):
        return free
    # Columns scaled to m = 1 have mass at least 1 under any prior, so that no gain per unit of mass is larger.
    gain = reduced.sum(axis=1) + (ratio - 1) * np.maximum(reduced, 0.0).sum(axis=1)
    return min(free, max(0.0, float(gain.max())))
