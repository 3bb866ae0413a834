"""Linear functions of a column that touch a divergence at given columns, and lie below it everywhere."""

from __future__ import annotations

import numpy as np

from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence


def tangents(f: FDivergence, p0: Array, p1: Array, matrix: Array) -> Array:
    """(n, k) gradients of mu at the columns of `matrix` (k, n): linear functions that touch mu there from below."""
    # Both laws sum to one, so that both marginals of a constant column are the constant itself, without rounding.
    base = matrix.min(axis=0)
    above = matrix - base
    return tangents_at(f, p0, p1, base + p0 @ above, base + p1 @ above)


def tangents_at(f: FDivergence, p0: Array, p1: Array, a: Array, b: Array) -> Array:
    """(n, k) gradients of mu at outputs with marginals `a` and `b`, shape (n,) each."""
    ratio = np.clip(a, 1e-12, None) / np.clip(b, 1e-12, None)
    slope = f.derivative(ratio) - f.derivative(1.0)
    level = f.excess(ratio, np.ones_like(ratio)) - ratio * slope
    return np.asarray(slope[:, None] * p0 + level[:, None] * p1)


def tangents_apart(f: FDivergence, apart: Array, p1: Array, matrix: Array) -> Array:
    """The same from `apart` = P0 - P1 (k,), which keeps the digits of hypotheses that nearly agree."""
    d, b = apart @ matrix, p1 @ matrix
    ratio = np.clip(np.maximum(b + d, 1e-200) / np.maximum(b, 1e-200), 1e-100, 1e100)
    near = np.abs(d) < b / 2
    off = np.where(near, d / np.where(near, b, 1.0), ratio - 1)
    slope = np.asarray(f.derivative(ratio) - f.derivative(1.0))
    one = np.ones_like(off)
    height = np.where(near, f.excess_of(np.where(near, off, 0.0), one), f.excess(ratio, one))
    # At a/b = 1 + x the plane is slope (a - b) + (height - x slope) b.
    return np.asarray(slope[:, None] * apart + (height - off * slope)[:, None] * p1)
