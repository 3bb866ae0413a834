"""An unbiased estimate, which may have negative entries -> a distribution near it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldpopt.channel import Label
from ldpopt.distribution import Array, finite_array
from ldpopt.errors import invalid
from ldpopt.results import Result


def simplex_projection(p: ArrayLike) -> Array:
    """The distribution nearest to `p` in Euclidean distance; (k,), or (..., k) row by row [DSSC].

    It is max(p - tau, 0), with the tau that makes the sum 1.

    >>> simplex_projection([0.7, 0.5, -0.2])
    array([0.6, 0.4, 0. ])
    """
    rows = _rows(p)
    down = -np.sort(-rows, axis=-1)
    k = rows.shape[-1]
    excess = (np.cumsum(down, axis=-1) - 1) / np.arange(1, k + 1)
    last = np.sum(down > excess, axis=-1, keepdims=True) - 1  # the first entry always qualifies
    return _normalised(np.maximum(rows - np.take_along_axis(excess, last, axis=-1), 0.0))


def norm_sub(p: ArrayLike) -> Array:
    """Norm-sub: set negative entries to 0 and shift the positive ones equally, until the entries are a distribution.

    p : (k,) or (..., k) row by row [Consistency]; `InvalidInput` if a row has no positive entry. If it sums to 1 or
    more, the result is the simplex projection, which for a smaller sum would lift all entries.

    >>> norm_sub([0.7, 0.5, -0.2]), norm_sub([0.4, 0.5, -0.2])
    (array([0.6, 0.4, 0. ]), array([0.45, 0.55, 0.  ]))
    """
    rows = _rows(p)
    if np.any(rows.max(axis=-1) <= 0):
        raise invalid("estimate", "a positive entry", float(rows.max()))
    positive = rows > 0
    while True:
        count = positive.sum(axis=-1, keepdims=True)
        shift = (1 - np.where(positive, rows, 0.0).sum(axis=-1, keepdims=True)) / count
        kept = positive & (rows + shift > 0)
        if np.array_equal(kept, positive):
            return _normalised(np.where(positive, rows + shift, 0.0))
        positive = kept


@dataclass(frozen=True, eq=False)
class Projection(Result):
    """A distribution made from an unbiased estimate by a named step. It is no longer unbiased and has no intervals.

    >>> from ldpopt.survey import estimate, simplex_projection
    >>> estimate({0: 10, 1: 90}, [[0.8, 0.2], [0.2, 0.8]]).project(simplex_projection).values
    array([0., 1.])
    """

    values: Array
    labels: tuple[Label, ...]
    step: str
    estimator: str


def _rows(p: ArrayLike) -> Array:
    array = finite_array(p, "estimate", np.ndim(p) or 1)
    if array.shape[-1] == 0:
        raise invalid("estimate", "at least one entry", "none")
    return array


def _normalised(rows: Array) -> Array:
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))
