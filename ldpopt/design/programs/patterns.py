"""The staircase-pattern linear program, exact for every divergence, with and without a TV cap.

Primal, over weights theta_A >= 0 of the patterns S_A (E = exp(epsilon) on A, 1 elsewhere):

    max  sum_A theta_A mu(S_A.P0, S_A.P1)
    s.t. sum_A theta_A S_A = 1                                                    (lambda, one per input)
         (E-1) sum_{A with x, without x'} theta_A <= eta   for all x < x'         (nu >= 0, one per pair)

Dual:

    min  sum lambda + eta sum nu
    s.t. lambda.S_A + (E-1) sum_{x in A, x' not in A, x < x'} nu_{x,x'} >= mu(S_A.P0, S_A.P1)   for all A

This is the program of [KOV14, Thm 4] with the TV rows added. The solver sees it in an equivalent form with entries 0
and 1, well scaled for every epsilon and eta: all inputs lie in patterns of the same total weight N, and
sum_A theta_A + (E-1) N <= 1 (what is missing is erasure). Columns are generated: the program over block patterns is
solved first, then all 2^k patterns are priced at its dual values, and those that pay join, until none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.masks import Masks, members
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.errors import invalid

ROUNDS = 20
"""Pricing rounds; what is left unpriced then shows as a gap of the certificate, not as an error of the bound."""


LIMIT = 16
"""The most inputs, after reduction: 2^16 patterns are priced in milliseconds."""


@dataclass(frozen=True, eq=False)
class PatternSolution:
    """Weights `theta` of the patterns with bit masks `masks`, and the dual values of the full program."""

    masks: Masks
    theta: Array
    rows: Array
    pairs: Array


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
    scale = float(utility.max())
    if scale <= 0 or eta == 0:
        return PatternSolution(every[:1], np.ones(1), np.zeros(k), np.zeros((k, k)))
    utility = utility / scale
    chosen = _blocks(k)
    least, best = np.inf, (np.zeros(k), np.zeros((k, k)))
    for _ in range(ROUNDS):
        # Central dual values: those of a vertex are too extreme to price with, and let in thousands of columns.
        _, rows, pairs = _master(pair, inside[chosen], utility[chosen], ratio, eta, INTERIOR)
        gain = utility - rows.sum() - (ratio - 1) * (inside @ rows + _cuts(inside, pairs))
        if gain.max() < least:
            least, best = gain.max(), (rows, pairs)
        new = np.setdiff1d(np.flatnonzero(gain > 1e-9), chosen)
        if len(new) == 0:
            break
        chosen = np.concatenate([chosen, new[np.argsort(-gain[new])[:400]]])
    theta, _, _ = _master(pair, inside[chosen], utility[chosen], ratio, eta, SIMPLEX)
    return PatternSolution(every[chosen], theta, best[0] * scale, best[1] * scale)


def _blocks(k: int) -> npt.NDArray[np.intp]:
    """Masks of the contiguous blocks of the sorted inputs, the empty one (erasure) included, the full one not."""
    full = [(1 << stop) - (1 << start) for start in range(k) for stop in range(start + 1, k + 1)]
    return np.array([0, *(mask for mask in full if mask != 2**k - 1)], dtype=np.intp)


def _cuts(inside: npt.NDArray[np.bool_], pairs: Array) -> Array:
    """sum over x < x' of nu[x, x'] [x in A][x' not in A], for every pattern A."""
    return np.asarray(np.einsum("ax,ax->a", inside @ pairs, ~inside, dtype=np.float64, optimize=True))


def _master(
    pair: Pair,
    inside: npt.NDArray[np.bool_],
    utility: Array,
    ratio: float,
    eta: float | None,
    solvers: Sequence[str],
) -> tuple[Array, Array, Array]:
    """Weights, row multipliers lambda and pair multipliers nu of the program over the given patterns, erasure first."""
    import cvxpy as cp

    gain = ratio - 1
    # One unit of weight in the solver: what a binary mechanism puts on a pattern, erased to the cap.
    unit = (1.0 if eta is None else min(1.0, eta * (ratio + 1) / gain)) / (ratio + 1)
    size = max(1.0, gain)
    theta, level = cp.Variable(len(utility) - 1, nonneg=True), cp.Variable()
    member = inside[1:].T.astype(float)
    balance = member @ theta == level
    mass = (cp.sum(theta) + gain * level) / size <= 1 / (unit * size)
    constraints = [balance, mass]
    above, below = np.triu_indices(len(pair), 1)
    if eta is not None:
        cap = member[above] * (1 - member[below]) @ theta <= eta / (gain * unit)
        constraints.append(cap)
    solve(cp.Problem(cp.Maximize(utility[1:] @ theta), constraints), "pattern LP", solvers)

    weights = np.maximum(np.asarray(theta.value), 0.0) * unit
    erased = max(0.0, 1 - weights.sum() - gain * float((member @ weights).mean()))
    # balance has the dual value (E-1) lambda, mass the sum of lambda: made to agree to the last digit.
    total = max(0.0, float(mass.dual_value) / size)
    pairs = np.zeros((len(pair), len(pair)))
    if eta is not None:
        pairs[above, below] = np.maximum(cap.dual_value, 0.0) / gain
        if total < 1e-5 * eta * pairs.sum():
            total = 0.0  # with erasure to spare, mass costs nothing; what is left is the solver's accuracy
    rows = np.asarray(balance.dual_value) / gain
    rows += pair.p1 * (total - rows.sum())
    return np.append(erased, weights), rows, pairs
