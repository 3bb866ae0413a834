"""The optimum under epsilon-LDP by listing every partition into blocks, for searches over the two populations.

By [SPR] an optimal channel sorts inputs by ratio, cuts them into m blocks, and reports the block by m-ary randomized
response. For few inputs all partitions fit in one small matrix, so thousands of pairs are solved in one call.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence


@cache
def _partitions(k: int) -> tuple[Array, Array, Array]:
    """Intervals as indicator rows (intervals, k), partitions as rows of intervals, and each partition's block count."""
    intervals = [(i, j) for i in range(k) for j in range(i + 1, k + 1)]
    place = {interval: at for at, interval in enumerate(intervals)}
    inside = np.array([[i <= x < j for x in range(k)] for i, j in intervals], dtype=np.float64)
    rows = []
    for cuts in range(2 ** (k - 1)):
        ends = [0, *(x + 1 for x in range(k - 1) if cuts >> x & 1), k]
        row = np.zeros(len(intervals))
        row[[place[pair] for pair in pairwise(ends)]] = 1
        rows.append(row)
    made = np.array(rows)
    return inside, made, made.sum(axis=1)


def block_values(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """V_m of [SPR] for m = 1..k: the largest utility of m blocks, before division by e^epsilon + m - 1.

    p0, p1 : pairs (..., k) with positive masses. Returns (..., k).

    >>> from ldpopt.divergences import KL
    >>> v = block_values(KL, np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6]), 2.0)
    >>> round(float((v / (np.exp(2.0) + np.arange(3))).max()), 6)
    0.367979
    """
    order = np.argsort(-p0 / p1, axis=-1, kind="stable")
    a, b = (np.take_along_axis(p, order, -1) for p in (p0, p1))
    k, gain = a.shape[-1], np.expm1(epsilon)
    inside, partitions, counts = _partitions(k)
    worth = f.excess(1 + gain * (a @ inside.T), 1 + gain * (b @ inside.T))
    values = worth @ partitions.T
    return np.stack([values[..., counts == m].max(axis=-1) for m in range(1, k + 1)], axis=-1)


def binary_value(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """The utility of the binary mechanism for pairs (..., k). It reports whether P0 >= P1 by randomized response."""
    gain, likelier = np.expm1(epsilon), p0 >= p1
    total = np.zeros(p0.shape[:-1])
    for side in (likelier, ~likelier):
        total = total + f.excess(1 + gain * (p0 * side).sum(-1), 1 + gain * (p1 * side).sum(-1))
    return np.asarray(total / (np.exp(epsilon) + 1))


def optimum(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """The optimum under epsilon-LDP of pairs (..., k)."""
    values = block_values(f, p0, p1, epsilon)
    return np.asarray((values / (np.exp(epsilon) + np.arange(values.shape[-1]))).max(axis=-1))
