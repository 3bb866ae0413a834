"""The staircase-pattern linear program, exact for every divergence, with and without a TV cap.

Primal, over weights theta_A >= 0 of the patterns S_A (E = exp(epsilon) on A, 1 elsewhere):

    max  sum_A theta_A mu(S_A.P0, S_A.P1)
    s.t. sum_A theta_A S_A = 1                                                    (lambda, one per input)
         (E-1) sum_{A with x, without x'} theta_A <= eta   for all x < x'         (nu >= 0, one per pair)

Dual:

    min  sum lambda + eta sum nu
    s.t. lambda.S_A + (E-1) sum_{x in A, x' not in A, x < x'} nu_{x,x'} >= mu(S_A.P0, S_A.P1)   for all A

This is the program of [KOV14, Thm 4] with the TV rows added. Columns are generated: the program over block patterns
is solved first, then all 2^k patterns are priced at its dual values, and those that pay join, until none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.design.reduction import Pair
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.errors import SolverError, invalid

LIMIT = 16
"""The most inputs, after reduction: 2^16 patterns are priced in milliseconds."""

Masks = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PatternSolution:
    """Weights `theta` of the patterns with bit masks `masks`, and the dual values of the full program."""

    masks: Masks
    theta: Array
    rows: Array
    pairs: Array


def members(masks: Masks, k: int) -> npt.NDArray[np.bool_]:
    """(patterns, k) membership of input x in the pattern whose bit mask has bit x."""
    return (masks[:, None] >> np.arange(k)) & 1 == 1


def pattern_lp(f: FDivergence, pair: Pair, ratio: float, eta: float | None) -> PatternSolution:
    """Solve the program for `pair` with E = `ratio` and a TV cap `eta`, or none.

    Raises `InvalidInput` above `LIMIT` inputs and `SolverError` when no solver is accurate.
    """
    k = len(pair)
    if k > LIMIT:
        raise invalid("pattern LP", f"at most {LIMIT} inputs of distinct likelihood ratio", k)
    every = np.arange(2**k - 1, dtype=np.int64)  # the full set is proportional to the empty one
    inside = members(every, k)
    columns = np.where(inside, ratio, 1.0)
    utility = f.excess(columns @ pair.p0, columns @ pair.p1)
    scale = float(utility.max()) or 1.0
    utility = utility / scale
    chosen = _blocks(k)
    for _ in range(200):
        # Central dual values: those of a vertex are too extreme to price with, and let in thousands of columns.
        _, rows, pairs = _master(columns[chosen], inside[chosen], utility[chosen], ratio, eta, INTERIOR)
        price = columns @ rows
        if eta is not None:
            price += (ratio - 1) * _cuts(inside, pairs)
        gain = utility - price
        new = np.setdiff1d(np.flatnonzero(gain > 1e-9), chosen)
        if len(new) == 0:
            theta, _, _ = _master(columns[chosen], inside[chosen], utility[chosen], ratio, eta, SIMPLEX)
            return PatternSolution(every[chosen], theta, rows * scale, pairs * scale)
        chosen = np.concatenate([chosen, new[np.argsort(-gain[new])[:400]]])
    raise SolverError("pattern LP: pricing did not settle; pass another method")


def _blocks(k: int) -> npt.NDArray[np.intp]:
    """Masks of the contiguous blocks of the sorted inputs, the empty one (erasure) included, the full one not."""
    full = [(1 << stop) - (1 << start) for start in range(k) for stop in range(start + 1, k + 1)]
    return np.array([0, *(mask for mask in full if mask != 2**k - 1)], dtype=np.intp)


def _cuts(inside: npt.NDArray[np.bool_], pairs: Array) -> Array:
    """sum over x < x' of nu[x, x'] [x in A][x' not in A], for every pattern A."""
    return np.asarray(np.einsum("ax,ax->a", inside @ pairs, ~inside, dtype=np.float64, optimize=True))


def _master(
    columns: Array,
    inside: npt.NDArray[np.bool_],
    utility: Array,
    ratio: float,
    eta: float | None,
    solvers: Sequence[str],
) -> tuple[Array, Array, Array]:
    import cvxpy as cp

    count, k = columns.shape
    theta = cp.Variable(count, nonneg=True)
    row = columns.T @ theta == np.ones(k)
    constraints = [row]
    above, below = np.triu_indices(k, 1)
    pairs = np.zeros((k, k))
    if eta is not None:
        split = (inside[:, above] & ~inside[:, below]).T * (ratio - 1)
        cap = split @ theta <= np.full(len(above), eta)
        constraints.append(cap)
    problem = cp.Problem(cp.Maximize(utility @ theta), constraints)
    solve(problem, "pattern LP", solvers)
    if eta is not None:
        pairs[above, below] = np.maximum(cap.dual_value, 0.0)
    return np.asarray(theta.value), np.asarray(row.dual_value), pairs
