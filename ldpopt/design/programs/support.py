"""Fewer weights with the same moments: at most as many as there are moments (Caratheodory)."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ldpopt.distribution import Array


def fewer_columns(columns: Array, weights: Array) -> Array:
    """(n,) new weights with the same information, at most k (k + 1)/2 positive, of `columns` (n, k) with S.p = 1.

    The products of their entries give the information, and, as p.S = 1, the row sums as well.
    """
    x, other = np.triu_indices(columns.shape[1])
    return fewer_weights(columns[:, x] * columns[:, other], weights)


def fewer_weights(moments: Array, weights: Array) -> Array:
    """(n,) weights >= 0 with `moments`.T @ weights unchanged, of which at most r are positive, for (n, r) `moments`.

    Of twice as many columns as moments, half can go. The weights move along a combination that changes no moment, until
    one weight is zero. That weight is then eliminated from the other such combinations. If there are more columns, they
    are put into twice as many groups as there are moments, and half of the groups go at once.

    >>> fewer = fewer_weights(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0, 1.0]))
    >>> int((fewer > 0).sum()) <= 2, round(float(fewer.sum()), 6), round(float(fewer @ [0.0, 1.0, 2.0]), 6)
    (True, 3.0, 3.0)
    """
    w = np.array(weights)
    r = moments.shape[1]
    size = np.abs(moments).max(axis=0)
    scaled = moments / np.where(size > 0, size, 1.0)
    while True:
        used = np.flatnonzero(w > 0)
        group = np.arange(len(used)) % (2 * r)
        count = min(len(used), 2 * r)
        total: Array = np.bincount(group, w[used], count).astype(np.float64)
        means = scaled[used] if count == len(used) else _means(scaled[used], w[used], count) / total[:, None]
        left = _fewer(means, total)
        if left is None:
            return w
        w[used] *= (left / total)[group]


def _means(rows: Array, weights: Array, count: int) -> Array:
    """(count, r) the weighted sums of every `count`-th row."""
    summed = np.zeros((count, rows.shape[1]))
    for at in range(0, len(rows), count):
        part = rows[at : at + count] * weights[at : at + count, None]
        summed[: len(part)] += part
    return summed


def _fewer(rows: Array, weights: Array) -> Array | None:
    """(n,) weights with the same sum of `rows`, as many of them 0 as there are relations; None if there are none."""
    q, triangle, _ = scipy.linalg.qr(rows, pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > 1e-13 * diagonal.max(initial=0.0) * len(rows)).sum())
    if rank == len(rows):
        return None
    free, left, least = np.asfortranarray(q[:, rank:]), weights, 1e-15 * float(weights.max())
    for last in range(free.shape[1] - 1, -1, -1):
        along = free[:, last]
        if not along.max() > 0:
            along = -along
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(along > 1e-12 * np.abs(along).max(), left / along, np.inf)
        at = int(reach.argmin())
        left = left - reach[at] * along
        left[left < least] = 0.0
        left[at] = 0.0
        if last:
            free = scipy.linalg.blas.dger(-1.0, along / along[at], free[at, :last], a=free[:, :last], overwrite_a=True)
            free[at] = 0.0
    return np.asarray(left)
