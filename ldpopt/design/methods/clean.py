"""Merging rare and nearly equal outputs of a solved channel without losing utility."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldpopt.design.constraints.repair import repair, stochastic
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.programs.gains import kept, posteriors, value_of
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.errors import SolverError

LEVELS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-13)
"""Shares of the utility that one merger may cost; the coarsest level that costs nothing in the end is taken."""


FREE = 1e-9

FINE = 1e-6
"""Where rows differ by less than this, columns are merged only with columns whose rows differ about as much."""


def cleanest(problem: Problem, matrix: Array, improve: Callable[[Array], Array]) -> Array:
    """The channel with the fewest outputs among those of `LEVELS` that keep the most utility once repaired.

    Merging keeps the sums of rows and every constraint that is a convex sum over outputs. improve : a function that may
    improve each merged channel before it is measured.
    """
    pair, f = problem.reduction.pair, problem.utility.f
    best, most, last = None, -np.inf, np.zeros(0)
    for level in LEVELS:
        q = merge(matrix, f, pair, level)
        if not problem.deadline.late:
            q = improve(q)
        q = merge(q, f, pair, 1e-13)
        if np.array_equal(q, last):
            continue
        last = q
        try:
            q = repair(q, problem.constraints, problem.inputs)
        except SolverError:
            continue
        value = value_of(f, pair, q)
        if value > most + FREE * abs(most) or best is None:
            best, most = q, value
    return matrix if best is None else best


def merge(matrix: Array, f: FDivergence, pair: Pair, share: float) -> Array:
    """The channel with outputs of neighbouring likelihood ratio merged, the cheapest first, for at most `share` each.

    A merger costs the utility that the two outputs lose by it, as a share of the whole utility. A frequent output that
    says nothing is not merged with rare ones that say something: their sum would lose the digits of these.
    """
    q = np.maximum(matrix, 0.0)
    q = q[:, q.max(axis=0) > 0]
    q = q[:, np.argsort(posteriors(pair, q), kind="stable")]
    worth = kept(f, pair, q)
    most = share * float(worth.sum())
    fine = float(np.ptp(q, axis=0).max(initial=0.0)) < FINE
    if q.shape[1] > 1:
        cost = _cost(f, pair, q, worth, fine)
    while q.shape[1] > 1:
        at = int(cost.argmin())
        if not cost[at] <= most:
            break
        q = np.hstack([q[:, :at], q[:, at : at + 1] + q[:, at + 1 : at + 2], q[:, at + 2 :]])
        near = q[:, max(at - 1, 0) : at + 2]
        own = kept(f, pair, near)
        worth = np.concatenate([worth[: max(at - 1, 0)], own, worth[at + 3 :]])
        cost = np.delete(cost, at)
        if near.shape[1] > 1:
            start = max(at - 1, 0)
            cost[start : start + near.shape[1] - 1] = _cost(f, pair, near, own, fine)
    return stochastic(q)


def _cost(f: FDivergence, pair: Pair, q: Array, worth: Array, fine: bool) -> Array:
    """The costs of merging neighbouring columns."""
    cost = worth[:-1] + worth[1:] - kept(f, pair, q[:, :-1] + q[:, 1:])
    if fine:
        spread = np.ptp(q, axis=0) / q.max(axis=0)
        least, most = np.minimum(spread[:-1], spread[1:]), np.maximum(spread[:-1], spread[1:])
        cost = np.where(1e3 * least < most, np.inf, cost)
    return np.asarray(cost)
