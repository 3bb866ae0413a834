"""The envelope and the optimum by two short programs that share nothing with each other or with `ldpopt.design`.

`envelope_at` goes through all partitions of the sorted inputs, one by one. `pattern_optimum` is the linear program over
all sets of inputs, in any order, and does not use partitions. It uses that columns of epsilon-LDP channels are sums of
staircases S_A = 1 + (E-1) 1_A [KOV14, Thm 2], and that differences between rows add up over such sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

import numpy as np

from ldpopt.distribution import Array
from ldpopt.errors import SolverError

Worth = Callable[[Array, Array], Array]
"""The utility of reports with masses M0 and M1, element by element: homogeneous, convex, and 0 if M0 = M1."""


def partition_points(worth: Worth, p0: Array, p1: Array, gain: float) -> list[tuple[float, float]]:
    """((E-1)/(E+m-1), V_m/(E+m-1)) for m = 2..k, for inputs in increasing order of p0/p1 and `gain` = E - 1."""
    k = len(p0)
    before = np.concatenate([[[0.0, 0.0]], np.cumsum([p0, p1], axis=1).T])
    value = np.zeros((k + 1, k + 1))
    for i, j in combinations(range(k + 1), 2):
        inside = before[j] - before[i]
        value[i, j] = worth(p0.sum() + gain * inside[:1], p1.sum() + gain * inside[1:])[0]
    points = []
    for m in range(2, k + 1):
        cuts = [(0, *inner, k) for inner in combinations(range(1, k), m - 1)]
        best = max(sum(value[i, j] for i, j in pairwise(cut)) for cut in cuts)
        points.append((gain / (gain + m), best / (gain + m)))
    return points


def envelope_at(points: Sequence[tuple[float, float]], eta: float) -> float:
    """The least non-decreasing concave majorant of the origin and the points, at eta, over all pairs of points."""
    reached = [(0.0, 0.0), *points]
    best = max(height for x, height in reached if x <= eta)
    for x, height in reached:
        for z, other in reached:
            if x <= eta < z:
                best = max(best, height + (other - height) * (eta - x) / (z - x))
    return best


def pattern_optimum(worth: Worth, p0: Array, p1: Array, gain: float, eta: float, share: float | None = None) -> float:
    """The optimum over all channels under LocalDP(log(1 + gain)) and a total variation of at most eta > 0.

    With a `share`, only channels count whose staircases have at least this share of their weight, without erasure, on
    sets of inputs that are not neighbours.

    phi_A = theta_A (E-1)/eta are the weights of the sets A. They have the same total n for all inputs:

        max (eta/(E-1)) sum phi_A worth(S_A)   s.t.   sum_{A with x} phi_A = n,   sum_{A with x, without x'} phi_A <= 1,
                                                       (eta/(E-1)) sum phi_A + eta n <= 1.
    """
    from scipy.optimize import linprog

    k = len(p0)
    inside = (np.arange(1, 2**k)[:, None] >> np.arange(k)) & 1
    values = worth(p0.sum() + gain * (inside @ p0), p1.sum() + gain * (inside @ p1))
    scale = float(values.max())
    if scale <= 0:
        return 0.0
    rows = np.column_stack([inside.T, np.full(k, -1.0)])
    apart = [np.append(inside[:, x] * (1 - inside[:, y]), 0.0) for x in range(k) for y in range(k) if x != y]
    whole = np.append(np.full(len(inside), eta / gain), eta)
    limits, bounds = np.ones(len(apart) + 1), [*apart, whole]
    if share is not None:
        others = np.abs(np.diff(inside, axis=1, prepend=0, append=0)).sum(axis=1) > 2
        limits, bounds = np.append(limits, 0.0), [*bounds, np.append(share - others, 0.0)]
    found = linprog(
        np.append(-values / scale, 0.0), np.vstack(bounds), limits, rows, np.zeros(k),
        method="highs", options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if found.status != 0:
        raise SolverError(f"the pattern program was not solved: {found.message}")
    return float(-found.fun * scale * eta / gain)
