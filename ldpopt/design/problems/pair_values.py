"""Two hypotheses: the marginals of columns, their posteriors and what they contribute to a divergence.

Hypotheses that are nearly equal, and reports that say little, lose no digits.
"""

from __future__ import annotations

import numpy as np

from ldpopt.design.problems.reduction import Pair
from ldpopt.divergences import FDivergence
from ldpopt.values.distribution import Array


def excess_at(f: FDivergence, posterior: Array) -> Array:
    """The excess at (s, 1 - s) for posteriors s."""
    tilt = 2 * posterior - 1
    near = np.abs(tilt) < 0.5
    # The tilt is exact near one half, the posterior itself near the ends.
    inner = f.excess_of(np.where(near, tilt, 0.0), np.where(near, 1 - posterior, 1.0))
    outer = f.excess(np.where(near, 0.5, posterior), np.where(near, 0.5, 1 - posterior))
    return np.asarray(np.where(near, inner, outer))


def marginals(pair: Pair, matrix: Array) -> tuple[Array, Array, Array]:
    """(P0 - P1).Q, P0.Q and P1.Q of a matrix (k, n) whose rows have equal sums."""
    # The part that all rows share has equal masses under both hypotheses, and is left out before it is rounded.
    return pair.difference @ (matrix - matrix.min(axis=0)), pair.p0 @ matrix, pair.p1 @ matrix


def values_of(f: FDivergence, pair: Pair, matrix: Array) -> Array:
    """(n,) the divergence that each column of `matrix` (k, n) contributes."""
    return excess_apart(f, *marginals(pair, matrix))


def excess_apart(f: FDivergence, d: Array, a: Array, b: Array) -> Array:
    """The excess at marginals a = b + d, without cancellation."""
    far = np.abs(d) > 0.5 * b
    near = f.excess_of(np.where(far, 0.0, np.maximum(d, -b)), b)
    return np.asarray(np.where(far, f.excess(np.maximum(a, 0.0), np.maximum(b, 0.0)), near))


def value_of(f: FDivergence, pair: Pair, matrix: Array) -> float:
    """The divergence of the two marginals of a matrix (k, n)."""
    return float(values_of(f, pair, matrix).sum())


def posteriors(pair: Pair, matrix: Array) -> Array:
    """(n,) the posteriors a / (a + b) of the columns, one half where a column is zero."""
    d, a, b = marginals(pair, matrix)
    total = np.where(a + b > 0, a + b, 1.0)
    near = np.abs(d) < 0.5 * (a + b)
    return np.asarray(np.where(a + b > 0, np.where(near, 0.5 + d / total / 2, a / total), 0.5))
