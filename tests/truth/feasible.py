"""Whether a float channel meets constraints, in high precision; each of its rows is the law proportional to its floats.

A constraint is a tuple: ("local-dp", epsilon), ("graph", epsilon, edges (x, x', weight)), ("total-variation", eta),
("approximate", epsilon, delta), ("renyi", order, epsilon), ("zcdp", rho), ("trade-off", knots (type one, type two)),
("outputs", m), ("support", mask), ("invariant", p).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from truth import privacy
from truth.utilities import Row, digits, law

INVARIANT = mpf(10) ** -13
"""What the package allows of an equation."""
CURVE = mpf(10) ** -12
"""What the package takes as rounding in the lines of a trade-off curve."""
Told = tuple[Any, ...]
ORDERS = 1 + np.geomspace(1e-4, 1e4, 60)


def violations(matrix: np.ndarray, constraints: Iterable[Told], strict: bool = False) -> list[str]:
    """What does not hold, in words; `strict` leaves a trade-off curve no rounding."""
    found = []
    least = [v for v in matrix.ravel().tolist() if v > 0]
    with mpmath.workdps(digits(*least) + 20):
        rows = [law(row) for row in matrix.tolist()]
        for told in constraints:
            excess = _excess(rows, matrix, told)
            if told[0] == "trade-off" and not strict:
                excess -= CURVE
            if not excess <= 0:
                found.append(f"{told[0]}{told[1:3]} exceeded by {mpmath.nstr(excess, 5)}")
    return found


def _excess(rows: list[Row], matrix: np.ndarray, told: Told) -> mpf:
    """By how much the measure exceeds its cap; at most 0 where the constraint holds."""
    kind, *given = told
    pairs = list(privacy.ordered_pairs(rows))
    if kind == "local-dp":
        return max(privacy.local_dp(p, q) for p, q in pairs) - mpf(given[0])
    if kind == "graph":
        return max(privacy.local_dp(rows[x], rows[y]) - mpf(given[0]) * mpf(w) for x, y, w in given[1])
    if kind == "denominator":
        whole = [[round(v * given[0]) for v in row] for row in matrix.tolist()]
        away = [abs(v - n / given[0]) for row, of in zip(matrix.tolist(), whole, strict=True)
                for v, n in zip(row, of, strict=True)]  # fmt: skip
        return mpf(max(away)) if all(sum(of) == given[0] for of in whole) else mpmath.inf
    if kind == "total-variation":
        return max(privacy.hockey_stick(p, q, 0) for p, q in pairs) - mpf(given[0])
    if kind == "approximate":
        return max(privacy.hockey_stick(p, q, given[0]) for p, q in pairs) - mpf(given[1])
    if kind == "renyi":
        measure = privacy.kl if given[0] == 1 else lambda p, q: privacy.renyi(p, q, given[0])
        return max(measure(p, q) for p, q in pairs) - mpf(given[1])
    if kind == "zcdp":
        return _concentrated(pairs, matrix) - mpf(given[0])
    if kind == "trade-off":
        return max(_below(p, q, given[0]) for p, q in pairs)
    if kind == "outputs":
        return mpf(int((matrix.max(axis=0) > 0).sum()) - given[0])
    if kind == "support":
        outside = np.where(np.asarray(given[0]), 0.0, matrix) if np.shape(given[0]) == matrix.shape else np.ones(1)
        return mpf(float(outside.max()))
    if kind == "invariant":
        p = law(given[0])
        made = [mpmath.fsum(w * v for w, v in zip(p, column, strict=True)) for column in zip(*rows, strict=True)]
        return max(abs(a - b) for a, b in zip(p, made, strict=True)) - INVARIANT
    raise ValueError(kind)


def _concentrated(pairs: list[tuple[Row, Row]], matrix: np.ndarray) -> mpf:
    """sup over orders of D_a / a, found on a grid in floats and refined in digits for the pair that is worst there."""
    if any((a > 0) != (b > 0) for p, q in pairs for a, b in zip(p, q, strict=True)):
        return mpmath.inf
    worst = max(privacy.kl(p, q) for p, q in pairs)
    places = list(itertools.permutations(range(len(matrix)), 2))
    scores = [[_renyi_float(matrix[x], matrix[y], a) / a for x, y in places] for a in ORDERS]
    at, which = np.unravel_index(int(np.argmax(scores)), np.shape(scores))
    low, high = math.log(ORDERS[max(at - 1, 0)] - 1), math.log(ORDERS[min(at + 1, len(ORDERS) - 1)] - 1)
    x, y = places[which]
    for _ in range(40):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        values = [_renyi_float(matrix[x], matrix[y], 1 + math.exp(s)) / (1 + math.exp(s)) for s in (left, right)]
        low, high = (left, high) if values[0] < values[1] else (low, right)
    p, q = pairs[which]
    return max(worst, *(privacy.renyi(p, q, 1 + math.exp(s)) / (1 + mpf(math.exp(s))) for s in (low, high)))


def _renyi_float(p: np.ndarray, q: np.ndarray, order: float) -> float:
    used = p > 0
    logs = np.log(p[used] / p.sum()) * order + np.log(q[used] / q.sum()) * (1 - order)
    return float(np.logaddexp.reduce(logs)) / (order - 1)


def _below(p: Row, q: Row, knots: Sequence[tuple[float, float]]) -> mpf:
    """The most by which the trade-off curve of a pair lies below a convex one: reached at a knot of the pair's own."""
    order = sorted(
        range(len(p)), key=lambda y: q[y] / p[y] if p[y] > 0 else (mpmath.inf if q[y] > 0 else mpf(0)), reverse=True
    )
    one, two = mpf(0), mpf(1)
    worst = -mpmath.inf
    for y in [None, *order]:
        if y is not None:
            one, two = one + p[y], two - q[y]
        worst = max(worst, _line(knots, one) - two)
    return worst


def _line(knots: Sequence[tuple[float, float]], at: mpf) -> mpf:
    """The curve through the knots, 0 after the last."""
    for (a, f), (b, g) in itertools.pairwise(knots):
        if mpf(a) <= at <= mpf(b):
            return mpf(f) + (at - mpf(a)) / (mpf(b) - mpf(a)) * (mpf(g) - mpf(f))
    return mpf(knots[-1][1]) if at >= mpf(knots[-1][0]) else mpf(knots[0][1])


def quick(q: np.ndarray, constraints: Iterable[Told]) -> bool:
    """Whether a float channel seems to meet the constraints: to be proved by `violations`."""
    k = len(q)
    left, right = (np.array(side) for side in zip(*itertools.permutations(range(k), 2), strict=True))
    p, r = q[left], q[right]
    with np.errstate(all="ignore"):
        for kind, *given in constraints:
            if kind == "local-dp":
                ok = bool((p <= r * math.exp(min(given[0], 709))).all())
            elif kind == "graph":
                ok = all((q[x] <= q[y] * math.exp(min(given[0] * w, 709))).all() for x, y, w in given[1])
            elif kind == "total-variation":
                ok = bool(np.maximum(p - r, 0).sum(axis=1).max() <= given[0])
            elif kind == "approximate":
                ok = bool(np.maximum(p - math.exp(given[0]) * r, 0).sum(axis=1).max() <= given[1])
            elif kind == "renyi":
                ok = _all_orders(p, r, [given[0]], given[1], False)
            elif kind == "zcdp":
                ok = _all_orders(p, r, [1.0, *ORDERS[::3]], given[0], True)
            elif kind == "trade-off":
                ok = all(_below_float(q[x], q[y], np.array(given[0])) <= 0 for x, y in zip(left, right, strict=True))
            else:
                ok = not violations(q, [(kind, *given)])
            if not ok:
                return False
    return True


def _below_float(p: np.ndarray, q: np.ndarray, knots: np.ndarray) -> float:
    order = np.argsort(-np.where(p > 0, q / np.where(p > 0, p, 1.0), np.inf))
    one, two = np.append(0.0, np.cumsum(p[order])), np.append(1.0, 1 - np.cumsum(q[order]))
    return float((np.interp(one, knots[:, 0], knots[:, 1], right=0.0) - two).max())


def _all_orders(p: np.ndarray, r: np.ndarray, orders: Iterable[float], cap: float, times: bool) -> bool:
    for order in orders:
        logs = np.where(p > 0, np.log(np.where(p > 0, p, 1.0)) - np.log(r), -np.inf)
        if order == 1:
            measured = np.where(p > 0, p * np.where(p > 0, logs, 0.0) - p + r, r).sum(axis=1)
        elif order == math.inf:
            measured = logs.max(axis=1)
        else:
            weighed = np.where(p > 0, np.log(np.where(p > 0, p, 1.0)) + (order - 1) * logs, -np.inf)
            measured = np.logaddexp.reduce(weighed, axis=1) / (order - 1)
        if not measured.max() <= cap * (order if times else 1.0):
            return False
    return True
