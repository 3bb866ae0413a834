"""Products of matrices of intervals, by four products of plain matrices."""

from __future__ import annotations

import numpy as np

from ldpopt.enclosures.base import Array
from ldpopt.rounding import SUBNORMAL, ULP

INF = float("inf")


def product(low_a: Array, high_a: Array, low_b: Array, high_b: Array) -> tuple[Array, Array]:
    """Ends of the product of two matrices, each given by its ends, from midpoints and radii.

    (A + R)(B + S), |R| <= r, |S| <= s, is within |A| s + r (|B| + s) of A B. The computed A B is within n u / (1 - n u)
    |A| |B| of it, and n/2 times the smallest float where products underflow [HIG, section 3.5]. The products of the
    bound, of non-negative matrices, are too small by the same errors at most, which the factor on the bound makes good.
    """
    count = low_a.shape[1]
    open_row = np.asarray(~(np.isfinite(low_a) & np.isfinite(high_a)).all(axis=1))
    open_column = np.asarray(~(np.isfinite(low_b) & np.isfinite(high_b)).all(axis=0))
    unknown = open_row[:, None] | open_column
    if unknown.any():
        low_a, high_a = (np.where(open_row[:, None], 0.0, end) for end in (low_a, high_a))
        low_b, high_b = (np.where(open_column, 0.0, end) for end in (low_b, high_b))
    with np.errstate(all="ignore"):
        (a, r), (b, s) = _halves(low_a, high_a), _halves(low_b, high_b)
        size = np.abs(a) @ np.abs(b)
        error = size * ((count + 2) * ULP)
        if s is not None:
            error = error + np.abs(a) @ s
        if r is not None:
            error = error + r @ (np.abs(b) if s is None else np.abs(b) + s)
        error = error * (1 + 4 * (count + 8) * ULP) + 8 * (count + 1) * SUBNORMAL
        middle = a @ b
        low, high = np.nextafter(middle - error, -INF), np.nextafter(middle + error, INF)
    if (low_a >= 0).all() and (low_b >= 0).all():
        low = np.maximum(low, 0.0)
    if (size == 0).any():  # exactly zero where no product has two factors that may differ from zero
        used = [((one != 0) | (two != 0)).astype(np.float64) for one, two in ((low_a, high_a), (low_b, high_b))]
        nothing = np.asarray(used[0] @ used[1] == 0)
        low, high = np.where(nothing, 0.0, low), np.where(nothing, 0.0, high)
    return np.where(unknown, -INF, low), np.where(unknown, INF, high)


def _halves(low: Array, high: Array) -> tuple[Array, Array | None]:
    """Midpoints and radii, which together cover the ends; no radii where all ends meet."""
    if low is high or np.array_equal(low, high):
        return low, None
    middle = low / 2 + high / 2
    radius = np.nextafter(np.maximum(high - middle, middle - low), INF)
    return np.where(low == high, low, middle), np.where(low == high, 0.0, radius)
