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

    While there are more columns than moments, the weights move along a combination that changes no moment, until one
    weight is zero. That weight is then eliminated from the other such combinations.

    >>> fewer = fewer_weights(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0, 1.0]))
    >>> int((fewer > 0).sum()) <= 2, round(float(fewer.sum()), 6), round(float(fewer @ [0.0, 1.0, 2.0]), 6)
    (True, 3.0, 3.0)
    """
    w = np.array(weights)
    r = moments.shape[1]
    size = np.abs(moments).max(axis=0)
    scaled = moments / np.where(size > 0, size, 1.0)
    while True:
        used = np.flatnonzero(w > 0)[: 2 * r]
        q, triangle, _ = scipy.linalg.qr(scaled[used], pivoting=True)
        diagonal = np.abs(np.diag(triangle))
        rank = int((diagonal > 1e-13 * diagonal.max(initial=0.0) * len(used)).sum())
        free = q[:, rank:]
        if free.shape[1] == 0:
            return w
        left = w[used]
        while free.shape[1]:
            along, free = free[:, -1], free[:, :-1]
            if not along.max() > 0:
                along = -along
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(along > 1e-12 * np.abs(along).max(), left / along, np.inf)
            at = int(reach.argmin())
            left = left - reach[at] * along
            left[left < 1e-15 * w[used].max()] = 0.0
            left[at] = 0.0
            free = free - np.outer(along / along[at], free[at])
            free[at] = 0.0
        w[used] = left
