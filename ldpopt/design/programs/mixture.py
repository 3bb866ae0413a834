"""The best mixture of given columns for tr(W J^-1), by entropic mirror descent with exact rows.

Columns Y = S / (S.p) with probabilities w have rows that sum to one where sum w Y = 1, and the information is
J = sum w Y Y^T. With W = F F^T, the derivative of tr(W J^-1) by w_y is -|F^T J^-1 Y_y|^2. A step multiplies each w_y by
the exponential of that, with a correction that keeps sum w Y where it is. What remains, r = sum w Y - 1, is removed by
w_y (1 - Y_y.J^-1 r), which makes the rows exact.
"""

from __future__ import annotations

import numpy as np

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.distribution import Array

BALANCED = 12
"""The number of first steps, which only bring the rows near to one."""

PATIENCE = 5
"""The number of steps between two looks at the value reached."""

PACE = 1.5
"""The length of a step, in units of the inverse of the columns' average slope."""


HEAVY = 0.85
"""How much of the last step is taken again: a fifth of the steps are enough."""


def mixture(
    columns: Array, factor: Array, steps: int, gain: float, enough: float = 0.0, deadline: Deadline = UNLIMITED
) -> Array | None:
    """(n,) probabilities of `columns` (n, k), each with S.p = 1; None where their rows cannot be made one.

    factor : (k,) the diagonal of F. steps : the most steps. It ends earlier if the relative progress between two looks
    is less than `gain`, or if tr(W J^-1) is at most `enough`.
    """
    n = len(columns)
    logs, best = np.full(n, -np.log(n)), np.inf
    found: Array | None = None
    for _ in range(BALANCED):
        w = np.exp(logs)
        off = columns.T @ w - 1
        if np.abs(off).max() < 1e-9:
            break
        move = columns @ np.linalg.lstsq((columns * w[:, None]).T @ columns, off, rcond=1e-13)[0]
        logs = logs - min(1.0, 2 / float(np.abs(move).max())) * move
    pace, moved = PACE, np.zeros(n)
    for step in deadline.rounds(range(steps)):
        w = np.exp(logs)
        inverse = _inverse(_information(columns, w))
        if inverse is None:
            break
        off = columns.T @ w - 1
        if step % PATIENCE == 0:
            exact = w * (1 - columns @ (inverse @ off))
            reached = _reached(columns, exact, factor)
            if reached < best * (1 - gain):
                best, found, at = reached, np.asarray(exact), logs
                if best <= enough:
                    break
            elif reached < best:
                return np.asarray(exact)
            elif found is not None:  # too far: back, and slower
                logs, pace, moved = at, pace / 2, np.zeros(n)
                if pace < 0.1:
                    break
                continue
        scored = columns @ inverse * factor
        worth = np.einsum("ij,ij->i", scored, scored)
        stride = pace / float(w @ worth)
        kept = inverse @ (columns.T @ (w * stride * worth) + off)
        moved = np.clip(stride * worth - columns @ kept, -1.0, 1.0) + HEAVY * moved
        logs = logs + moved
    return found


def _reached(columns: Array, weights: Array, factor: Array) -> float:
    if not weights.min() >= 0:
        return np.inf
    inverse = _inverse(_information(columns, weights))
    return np.inf if inverse is None else float((np.diag(inverse) * factor**2).sum())


def _information(columns: Array, weights: Array) -> Array:
    """sum w Y Y^T, as a square: half of the work."""
    rooted = columns * np.sqrt(weights)[:, None]
    return np.asarray(rooted.T @ rooted)


def _inverse(information: Array) -> Array | None:
    try:
        found = np.linalg.inv(information)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(found, dtype=np.float64) if np.isfinite(found).all() and np.diag(found).min() > 0 else None
