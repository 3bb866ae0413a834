"""Dual multipliers for pure LDP, by exchange over likelihood-ratio labels.

Label every output by its ratio r = M0/M1. The tangent of mu at r is linear in the column, so for fixed labels the best
channel is a linear program, and its dual is

    min  sum_x lambda_x
    s.t. sum_x (g_x(r) - lambda_x) + (E-1) sum_x (g_x(r) - lambda_x)_+ <= 0   for every label r,
         g_x(r) = P0[x] f'(r) + P1[x] (f(r) - r f'(r)),

with one constraint for each label, because the best column for fixed r is a staircase pattern. Labels where the left
side is positive are added until there are none. An interior-point solution is used on purpose: it lies away from the
boundary of the optimal face, so that few labels settle it. `certificates.ratios.RatioDual` computes what it proves.
"""

from __future__ import annotations

import numpy as np

from ldpopt.design.problems.reduction import Pair
from ldpopt.design.solve import INTERIOR, solve
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence

GRID = 2001


ROUNDS = 12


def dual_multipliers(f: FDivergence, pair: Pair, ratio: float, value: float, labels: Array, accuracy: float) -> Array:
    """lambda (k,), starting from `labels`, the ratios of a good channel, and the channel's `value`; ratio : E.

    Stops when no ratio violates the dual by more than `accuracy * value`, or after `ROUNDS` rounds.
    """
    low, high = ratio_range(pair, ratio)
    grid = np.geomspace(low, high, GRID)
    fine = (grid[1] / grid[0]) ** np.linspace(-1, 1, 41)
    tangents = _tangents(f, pair, grid) / value
    at = np.concatenate([np.clip(labels, low, high), np.geomspace(low, high, 24)])
    active = _tangents(f, pair, np.unique(at)) / value
    best, least = np.zeros(len(pair)), np.inf
    for _ in range(ROUNDS):
        multipliers = _program(active, pair, ratio)
        violation = _violation(tangents, multipliers, ratio)
        padded = np.concatenate([[-np.inf], violation, [-np.inf]])
        peaks = np.flatnonzero((violation >= padded[:-2]) & (violation >= padded[2:]) & (violation > -1e-3))
        near = np.clip(grid[peaks, None] * fine, low, high)
        zoomed = _tangents(f, pair, near.ravel()) / value
        sharp = _violation(zoomed, multipliers, ratio).reshape(near.shape)
        worst = float(sharp.max(initial=0.0))
        if worst < least:
            best, least = multipliers, worst
        new = np.flatnonzero(sharp.max(axis=1) > accuracy)
        if len(new) == 0:
            break
        active = np.concatenate([active, zoomed[new * len(fine) + sharp[new].argmax(axis=1)]])
    return best * value


def _violation(tangents: Array, multipliers: Array, ratio: float) -> Array:
    """(labels,) the amounts by which the dual constraints are violated."""
    slack = tangents - multipliers
    return np.asarray(slack.sum(axis=1) + (ratio - 1) * np.maximum(slack, 0.0).sum(axis=1))


def ratio_range(pair: Pair, ratio: float) -> tuple[float, float]:
    """The least and the largest ratio M0/M1 of an output, from the inputs' ratios and [1/E, E]."""
    with np.errstate(divide="ignore"):
        ends = pair.p0[[0, -1]] / pair.p1[[0, -1]]
    return max(float(ends[0]), 1 / ratio) * (1 - 1e-12), min(float(ends[1]), ratio) * (1 + 1e-12)


def _tangents(f: FDivergence, pair: Pair, r: Array) -> Array:
    """g_x(r) - f'(1) (P0 - P1)[x] for every label r (rows) and input x (columns)."""
    slope = np.asarray(f.derivative(r))
    lift = np.asarray(f.excess(r, np.ones_like(r))) - r * (slope - f.derivative(1.0))
    return np.asarray((slope - f.derivative(1.0))[:, None] * pair.p0 + lift[:, None] * pair.p1)


def _program(tangents: Array, pair: Pair, ratio: float) -> Array:
    """The dual program for the given labels, in the variables (E-1) lambda, well scaled for every epsilon."""
    import cvxpy as cp

    labels, k = tangents.shape
    gain = ratio - 1
    slopes, total = cp.Variable(k), cp.Variable()
    above = cp.Variable((labels, k), nonneg=True)
    every = np.ones((labels, 1)) @ cp.reshape(slopes, (1, k), order="C")
    constraints = [
        above >= gain * tangents - every,
        tangents.sum(axis=1) - total + cp.sum(above, axis=1) <= 0,
        cp.sum(slopes) / max(1.0, gain) == min(1.0, gain) * total,
    ]
    solve(cp.Problem(cp.Minimize(total), constraints), "label dual", INTERIOR)
    multipliers = np.asarray(slopes.value) / gain
    return np.asarray(multipliers + pair.p1 * (float(total.value) - multipliers.sum()))
