"""Where the best channels of linear constraints are sought: extreme columns, and a linear program over them in floats.

Under (epsilon, delta)-LDP they are the unit vectors, and exp(epsilon level) on a support of two inputs or more whose
levels fill 0..h, h >= 1; on a policy graph that is a tree, every edge at one of its two limits; under pure LDP the
staircase patterns. The channel that is found is a start: it is worth what a measurement says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath
import numpy as np
from mpmath import mpf
from scipy.optimize import linprog

from truth.feasible import Told
from truth.utilities import Kept

LINEAR = {"local-dp", "total-variation", "approximate", "graph"}


def start(utility: Kept, constraints: Sequence[Told]) -> np.ndarray | None:
    """Nearly the best channel, for up to 4 inputs and constraints that are linear in the weights of columns."""
    columns = _columns(utility.size, constraints)
    if columns is None:
        return None
    with mpmath.workdps(utility.digits(1e-3)):
        gains = utility.columns([[mpf(float(v)) for v in column] for column in columns.T])
        scale = min(max(g for g in row if mpmath.isfinite(g)) for row in gains) or mpf(1)
        table = np.array([[min(float(g / scale), 1e12) for g in row] for row in gains])
    n = columns.shape[1]
    above, caps = [np.hstack([-row, 1.0]) for row in table], [0.0] * len(table)
    for kind, *given in constraints:
        if kind in ("total-variation", "approximate"):
            factor, cap = (1.0, given[0]) if kind == "total-variation" else (math.exp(given[0]), given[1])
            for x, z in itertools.permutations(range(utility.size), 2):
                above.append(np.append(np.maximum(columns[x] - factor * columns[z], 0.0), 0.0))
                caps.append(cap)
    equal = np.hstack([columns, np.zeros((utility.size, 1))])
    found = linprog(np.append(np.zeros(n), -1.0), np.array(above), caps, equal, np.ones(utility.size), method="highs")
    if found.status != 0:
        return None
    used = np.maximum(found.x[:n], 0.0)
    made = columns[:, used > 0] * used[used > 0]
    return made / made.sum(axis=1, keepdims=True)


def _columns(k: int, constraints: Sequence[Told]) -> np.ndarray | None:
    given = {told[0]: told for told in constraints}
    if k > 4 or set(given) - LINEAR or set(given) == {"total-variation"} or not given:
        return None
    if "local-dp" in given:
        low = math.exp(-given["local-dp"][1])
        made = [np.where(a, 1.0, low) for a in itertools.product((0, 1), repeat=k) if sum(a) < k]
    elif "graph" in given:
        _, epsilon, edges = given["graph"]
        tree = [(x, z, w) for x, z, w in edges if x < z]
        made = []
        for signs in itertools.product((-1, 1), repeat=len(tree)):
            logs = np.zeros(k)
            for sign, (x, z, w) in zip(signs, tree, strict=True):
                logs[z] = logs[x] + sign * w * epsilon
            made.append(np.exp(np.maximum(logs - logs.max(), -700.0)))
    else:
        epsilon = given["approximate"][1]
        made = [np.eye(k)[x] for x in range(k)] + [np.ones(k)]
        for levels in itertools.product(range(-1, k), repeat=k):
            used = {level for level in levels if level >= 0}
            if used and sum(level >= 0 for level in levels) >= 2 and used == set(range(max(used) + 1)) and max(used):
                logs = np.array([epsilon * (level - max(used)) if level >= 0 else -math.inf for level in levels])
                made.append(np.exp(np.where(np.isfinite(logs), np.maximum(logs, -700.0), -np.inf)))
    return np.array(made).T
