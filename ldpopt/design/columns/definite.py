"""A bound on the least eigenvalue of a symmetric matrix, by a Cholesky factorisation of floats [HIG, Thm 10.3]."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT, Enclosure
from ldpopt.rounding import ULP

TRIES = 12
"""The number of shifts that are tried, each sixteen times the one before."""


def least_eigenvalue(form: Enclosure) -> float:
    """A lower bound on the eigenvalues of the symmetric matrix in `form` (n, n); -inf where none is found.

    If the factorisation of a float matrix B runs to its end, B is positive semidefinite up to
    (n + 1) u / (1 - (2 n + 2) u) times its trace [HIG, Thm 10.3], here with room for any order of the sums. The
    uncertainty of the entries moves eigenvalues by at most its largest row sum.
    """
    lower, upper = (np.asarray(end) for end in (FLOAT.of(form).lower, FLOAT.of(form).upper))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return -math.inf
    middle = lower / 2 + upper / 2
    # The matrix is symmetric, so that its lower triangle is enough.
    middle = np.tril(middle) + np.tril(middle, -1).T
    radius = np.maximum(upper - middle, middle - lower) * (1 + 2 * ULP)
    radius = np.maximum(np.tril(radius), np.tril(radius).T)
    off = float(radius.sum(axis=1).max()) * (1 + 2 * len(radius) * ULP)
    n, size = len(middle), float(np.abs(middle).max())
    if size == 0:
        return -off * (1 + ULP)
    shift = max(0.0, -float(np.linalg.eigvalsh(middle)[0])) + n * ULP * size
    for _ in range(TRIES):
        shifted = middle + shift * np.eye(n)
        if _factors(shifted):
            trace = float(np.diag(shifted).sum())
            # The shifted diagonal is itself rounded, by half an ulp.
            lost = (4 * n + 32) * ULP * trace + n * n * 1e-300
            return -(shift + lost + off) * (1 + 8 * ULP)
        shift *= 16
    return -math.inf


def _factors(matrix: Array) -> bool:
    if not np.isfinite(matrix).all():
        return False
    try:
        return bool(np.isfinite(np.linalg.cholesky(matrix)).all())
    except np.linalg.LinAlgError:
        return False
