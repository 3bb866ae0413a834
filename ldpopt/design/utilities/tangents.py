"""Linear utilities that touch a divergence at given outputs, and lie below it."""

from __future__ import annotations

import numpy as np

from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence


def tangents(f: FDivergence, p0: Array, p1: Array, matrix: Array) -> Array:
    """(n, k) gradients of mu at the columns of `matrix`: linear utilities that touch it there and lie below it."""
    return tangents_at(f, p0, p1, p0 @ matrix, p1 @ matrix)


def tangents_at(f: FDivergence, p0: Array, p1: Array, a: Array, b: Array) -> Array:
    """(n, k) gradients of mu at outputs with marginals `a` and `b`, shape (n,) each."""
    ratio = np.clip(a, 1e-12, None) / np.clip(b, 1e-12, None)
    slope = f.derivative(ratio) - f.derivative(1.0)
    level = f.excess(ratio, np.ones_like(ratio)) - ratio * slope
    return np.asarray(slope[:, None] * p0 + level[:, None] * p1)


def tangents_apart(f: FDivergence, apart: Array, p1: Array, matrix: Array) -> Array:
    """The same from `apart` = P0 - P1, which keeps what the difference of two hypotheses that nearly agree would lose."""
    b = np.clip(p1 @ matrix, 1e-300, None)
    d = np.clip(apart @ matrix / b, 1e-12 - 1, 1e12)
    slope = np.asarray(f.derivative(1 + d) - f.derivative(1.0))
    rest = np.asarray(f.excess_of(d, np.ones_like(d))) - d * slope
    return np.asarray(slope[:, None] * apart + rest[:, None] * p1)
