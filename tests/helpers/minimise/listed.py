"""The attack on lists of columns: a linear program over the list gives the numbers with the least bound.

The optimum comes from another program: over the extreme rays of the arrangement, enumerated in exact rationals
(`truth.rays`), with worths in high precision (`truth.utilities`). Its weights are a channel within the constraints.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import mpmath
import networkx as nx
import numpy as np
from mpmath import mpf
from scipy.optimize import linprog
from truth.objects import built
from truth.problems import FIXED
from truth.rays import compared, rays, unit
from truth.utilities import Kept, Pair, Prior

from ldpopt import LocalDP, TotalVariation
from ldpopt import design as ld
from ldpopt.design.estimation.policy import PolicyColumns
from ldpopt.design.patterns import policy
from ldpopt.design.patterns import proof_levels as kernel_levels
from ldpopt.design.patterns.policy import policy_limits
from ldpopt.design.patterns.proof import PatternDual, PolicyDual
from ldpopt.design.patterns.proof_levels import level_columns
from ldpopt.design.utilities.base import gradients_of
from ldpopt_check import proofs

OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LISTED = ("PatternDual", "PolicyDual", "LevelDual", "LevelVariationDual", "InformationDual", "MarginalDual")
LARGE = 1e5
"""The largest multiplier that is tried: a bound that falls without end stops there."""


@dataclass(frozen=True)
class Problem:
    """A problem whose columns can be listed.

    ratio : E, rational. limits : {(x, x'): w} for c_x <= E^w c_x'. cuts : (E^w, cap, whether it counts in the class's
    `pairs` or `spreads`) for each cap on sums of (c_x - E^w c_x')_+.
    """

    kind: str
    kept: Kept
    utility: Any
    constraints: tuple[Any, ...]
    ratio: Fraction
    limits: tuple[tuple[int, int, int], ...]
    caps: tuple[tuple[int, float], ...]

    @property
    def size(self) -> int:
        return self.kept.size


@cache
def exact_rays(k: int, ratio: Fraction, limits: tuple[tuple[int, int, int], ...], cuts: tuple[int, ...]) -> np.ndarray:
    """(n, k) the extreme rays of the cone, cut by c_x = E^w c_x' for every ordered pair and each w of `cuts`."""
    inside = [unit(k, x) for x in range(k)] + [compared(k, x, y, ratio**w) for x, y, w in limits]
    planes = [compared(k, x, y, ratio**w) for x, y in itertools.permutations(range(k), 2) for w in cuts]
    return np.array([[float(x) for x in ray] for ray in sorted(rays(k, inside, planes))])


# -- problems --------------------------------------------------------------------------------------------------------


def some_law(rng: np.random.Generator, k: int, other: np.ndarray | None = None) -> np.ndarray:
    """A law: with ties, with an answer of no mass, with ratios to another law that are tied, or any."""
    p, way = rng.dirichlet(np.ones(k)), rng.integers(5)
    if way == 0:
        p = np.round(p * 4) + 1
    elif way == 1 and k > 2:
        p[rng.integers(k)] = 0.0
    elif way == 2 and other is not None:
        p = other * rng.choice([0.5, 1.0, 2.0], k)
    return p / p.sum()


def some_kept(rng: np.random.Generator, k: int, kind: str) -> Kept:
    """A utility in plain numbers, finite on every channel."""
    finite = [("total-variation",), ("squared-hellinger",), ("jensen-shannon",), ("le-cam",), ("hockey-stick", 1.5)]

    def pair(p: np.ndarray) -> Pair:
        for _ in range(100):
            q = some_law(rng, k, p)
            if np.abs(p - q).max() > 1e-3:
                break
        whole = p.min() > 0 and q.min() > 0
        f = (str(rng.choice(FIXED)),) if whole and rng.random() < 0.6 else finite[rng.integers(len(finite))]
        return Pair(f, tuple(map(float, p)), tuple(map(float, q)))

    way = 1 if kind == "InformationDual" else int(rng.integers(4))
    if kind == "MarginalDual":
        way = int(rng.choice([0, 2]))
    p = some_law(rng, k)
    if way == 0:
        return Kept((((1.0, pair(p)),),))
    if way == 1:
        return Kept((((1.0, Prior(tuple(map(float, p)))),),))
    if way == 2:
        first = pair(p)
        other = [Pair(first.f, first.p0, pair(p).p1) for _ in range(2)]
        fine = first.f in finite or all(min(one.p1) > 0 for one in other)
        return Kept(tuple(((1.0, one),) for one in ([first, *other] if fine else [first, first])))
    return Kept((((1.0, Prior(tuple(map(float, p)))), (0.5, pair(p))),))


def problem(kind: str, rng: np.random.Generator, k: int | None = None) -> Problem:
    """A problem for a class of certificates: slack, tight and zero caps, zero masses, ties, disconnected graphs."""
    k = int(rng.choice([2, 3, 4], p=[0.45, 0.45, 0.1])) if k is None else k
    ratio = Fraction(int(rng.choice([2, 3, 6])))
    epsilon = math.log(ratio)
    eta = float(rng.choice([0.0, 0.02, 0.1, 0.3, 0.7, 1.0], p=[0.05, 0.2, 0.25, 0.25, 0.15, 0.1]))
    delta = float(rng.choice([1e-4, 0.01, 0.1, 0.4, 1.0]))
    every = tuple(itertools.permutations(range(k), 2))
    capped = [TotalVariation(eta)] if eta < 1 else []
    limits: tuple[tuple[int, int, int], ...] = ()
    if kind in ("LevelDual", "LevelVariationDual"):
        constraints: list[Any] = [ld.ApproximateLDP(epsilon, delta)]
        caps: tuple[tuple[int, float], ...] = ((1, delta),)
        if kind == "LevelVariationDual":
            constraints, caps = [*constraints, TotalVariation(eta)], ((1, delta), (0, eta))
    elif kind == "PolicyDual":
        directed = bool(rng.random() < 0.5)
        graph = nx.DiGraph() if directed else nx.Graph()
        graph.add_nodes_from(range(k))
        while not graph.edges:
            for x, y in every:
                if (directed or x < y) and rng.random() < rng.choice([0.3, 0.6, 0.9]):
                    graph.add_edge(x, y, weight=float(rng.choice([1, 2])))
        constraints, caps = [LocalDP(epsilon, graph), *capped], ((0, eta),) if eta < 1 else ()
        limits = tuple((a, b, int(w)) for a, b, w in graph.edges(data="weight"))
        limits += () if directed else tuple((b, a, w) for a, b, w in limits)
    else:
        constraints = [LocalDP(epsilon), *capped]
        caps, limits = ((0, min(eta, float((ratio - 1) / (ratio + 1)))),), tuple((x, y, 1) for x, y in every)
    while True:
        kept = some_kept(rng, k, kind)
        try:
            utility = built(kept, ())[0]
        except Exception:
            continue
        worths = worth(kept, np.array([[1.0 + (x == y) for x in range(k)] for y in range(k)]))
        full = worth(kept, np.eye(k))
        if np.isfinite(full).all() and worths.max() > 1e-9:
            return Problem(kind, kept, utility, tuple(constraints), ratio, limits, caps)


# -- the truth -------------------------------------------------------------------------------------------------------


def worth(kept: Kept, columns: np.ndarray) -> np.ndarray:
    """(criteria, n) what columns (n, k) are worth, from 40 digits."""
    with mpmath.workdps(40):
        return np.array([[float(x) for x in row] for row in kept.columns([[mpf(v) for v in c] for c in columns])])


def excesses(columns: np.ndarray, ratio: float) -> np.ndarray:
    """(n, pairs) the excess (c_x - ratio c_x')_+ of every ordered pair."""
    k = columns.shape[1]
    pairs = list(itertools.permutations(range(k), 2))
    return np.stack([np.maximum(columns[:, x] - ratio * columns[:, y], 0.0) for x, y in pairs], axis=1)


def optimum(problem: Problem) -> tuple[float, np.ndarray]:
    """The optimum over the exact rays, and the columns that attain it (k, m)."""
    cuts = tuple(w for w, _ in problem.caps)
    columns = exact_rays(problem.size, problem.ratio, problem.limits, cuts)
    worths = worth(problem.kept, columns)
    (n, k), criteria = columns.shape, len(worths)
    tables = [excesses(columns, float(problem.ratio) ** w) for w, _ in problem.caps]
    room = np.concatenate([np.zeros(criteria), charges(problem, tables)])
    above = np.hstack([np.vstack([-worths, *[t.T for t in tables]]), (np.arange(len(room)) < criteria)[:, None] * 1.0])
    scale = float(worths.max()) or 1.0
    above[:criteria, :n] /= scale
    found = linprog(np.append(np.zeros(n), -1.0), above, room, np.hstack([columns.T, np.zeros((k, 1))]), np.ones(k),
                    bounds=[(0, None)] * n + [(None, None)], method="highs-ds", options=OPTIONS)  # fmt: skip
    assert found.status == 0, found.message
    weights = feasible(np.maximum(found.x[:n], 0.0), columns, tables, [cap for _, cap in problem.caps])
    used = weights > 0
    return float((worths @ weights).min()), (columns[used] * weights[used, None]).T


def charges(problem: Problem, tables: list[np.ndarray]) -> np.ndarray:
    """The cap of every pair of every table."""
    caps = [np.full(table.shape[1], cap) for table, (_, cap) in zip(tables, problem.caps, strict=True)]
    return np.concatenate([np.zeros(0), *caps])


def feasible(weights: np.ndarray, columns: np.ndarray, tables: list[np.ndarray], caps: list[float]) -> np.ndarray:
    """Weights near these, of which the rows sum to one and the caps hold to the last digits."""
    used = np.flatnonzero(weights > 1e-9)
    equal, right = [columns[used].T], [np.ones(columns.shape[1])]
    for table, cap in zip(tables, caps, strict=True):
        tight = weights @ table > cap - 1e-8
        equal.append(table[used][:, tight].T)
        right.append(np.full(int(tight.sum()), cap))
    fixed = (
        weights[used]
        + np.linalg.lstsq(np.vstack(equal), np.concatenate(right) - np.vstack(equal) @ weights[used], rcond=None)[0]
    )
    made = np.zeros(len(weights))
    made[used] = np.maximum(fixed, 0.0)
    over = max([0.0, *(float((made @ t).max() - cap) for t, cap in zip(tables, caps, strict=True))])
    off = float(np.abs(columns.T @ made - 1).max())
    assert over < 1e-12, over
    assert off < 1e-12, off
    return made


# -- the attack ------------------------------------------------------------------------------------------------------


def own_columns(problem: Problem) -> np.ndarray:
    """(n, k) the columns that the class itself lists."""
    k, e = problem.size, float(problem.ratio)
    if problem.kind in ("LevelDual", "LevelVariationDual"):
        listed = level_columns(k, problem.kind == "LevelVariationDual")
        columns = np.where(listed >= 0, e ** np.maximum(listed, 0).astype(float), 0.0)
    elif problem.kind == "PolicyDual":
        limits = policy_limits(problem.constraints, tuple(range(k)))
        columns = np.exp(PolicyColumns(limits, bool(problem.caps)).heights)
    else:
        columns = np.array(
            [[1 / (e - 1) + a for a in s[::-1]] for s in itertools.product((0, 1), repeat=k) if not all(s)]
        )
    return columns / columns.max(axis=1, keepdims=True)


def least_numbers(problem: Problem, columns: np.ndarray) -> dict[str, np.ndarray] | None:
    """The multipliers with the least bound of which every one of `columns` pays; None where there are none."""
    k, worths = problem.size, worth(problem.kept, columns)
    tangents = gradients_of(problem.utility, np.ones((k, 1)))[:, 0]
    worths = worths - tangents @ columns.T
    scale = float(np.abs(worths).max()) or 1.0
    criteria = len(worths)
    tables = [excesses(columns, float(problem.ratio) ** w) for w, _ in problem.caps]
    paid = np.hstack([columns, *tables]) if tables else columns
    q = paid.shape[1] - k
    above = np.vstack([np.hstack([-paid, worths.T / scale]), np.hstack([-paid, np.zeros((len(columns), criteria))])])
    charge = np.concatenate(
        [np.ones(k), *[np.full(t.shape[1], cap) for t, (_, cap) in zip(tables, problem.caps, strict=True)]]
    )
    found = linprog(
        np.append(charge, np.zeros(criteria)), above, np.zeros(len(above)),
        np.concatenate([np.zeros(k + q), np.ones(criteria)])[None], [1.0],
        bounds=[(-LARGE, LARGE)] * k + [(0, LARGE)] * q + [(0, 1)] * criteria, method="highs-ds", options=OPTIONS,
    )  # fmt: skip
    if found.status != 0:
        return None
    # Rows that are higher by a little, so that rounding refuses nothing.
    size = max(1.0, float(np.abs(found.x[: k + q]).max()))
    made = {"rows": (found.x[:k] + 2e-11 * size) * scale, "weights": np.maximum(found.x[k + q :], 0.0)}
    for at, name in enumerate(("pairs", "spreads")[: max(1, len(tables))]):
        matrix = np.zeros((k, k))
        if tables:
            size = k * (k - 1)
            for (x, y), price in zip(itertools.permutations(range(k), 2), found.x[k + at * size :], strict=False):
                matrix[x, y] = max(price, 0.0) * scale
        made[name] = matrix
    return made


def certificate(problem: Problem, numbers: dict[str, np.ndarray], channel: Any = None) -> Any:
    """The certificate of the class with these numbers."""
    posed = (problem.utility, problem.constraints, channel)
    if problem.kind == "InformationDual":
        k = problem.size
        rows, pairs = np.append(numbers["rows"], 0.0), np.zeros((k + 1, k + 1))
        pairs[:k, :k] = numbers["pairs"]
        return ld.InformationDual(*posed, np.arange(k), rows, pairs)
    made = {"PatternDual": PatternDual, "PolicyDual": PolicyDual, "LevelDual": ld.LevelDual,
            "LevelVariationDual": ld.LevelVariationDual, "MarginalDual": ld.MarginalDual}[problem.kind]  # fmt: skip
    numbers = {
        name: part for name, part in numbers.items() if name != "spreads" or problem.kind == "LevelVariationDual"
    }
    return made(*posed, **numbers)


# -- lists without one column ----------------------------------------------------------------------------------------


def without(columns: np.ndarray, gone: int) -> np.ndarray:
    """The columns but one."""
    return np.delete(columns, gone, axis=0)


@contextlib.contextmanager
def lacking(kind: str, gone: int) -> Iterator[None]:
    """Both programs with a list that lacks the column in place `gone`."""
    with contextlib.ExitStack() as stack:
        for target, name, other in _patched(kind, gone):
            stack.enter_context(mock.patch.object(target, name, other))
        yield


def _patched(kind: str, gone: int) -> Iterator[tuple[Any, str, Any]]:
    if kind in ("LevelDual", "LevelVariationDual"):
        yield from _levels(kind == "LevelVariationDual", gone)
    elif kind == "PolicyDual":
        yield from _graphs(gone)
    elif kind == "PatternDual":
        yield from _stairs(gone)


def _levels(capped: bool, gone: int) -> Iterator[tuple[Any, str, Any]]:
    whole, other = level_columns, proofs.levels
    yield kernel_levels, "level_columns", lambda k, flat=False: np.delete(whole(k, flat), gone, axis=0)

    def fewer(k: int, e: Any, flat: bool) -> Iterator[Any]:
        """The second checker lists the same columns in another order."""
        left_out = whole(k, capped)[gone].tolist()
        return (column for column in other(k, e, flat) if [_level(x, e) for x in column] != left_out)

    yield proofs, "levels", fewer


def _graphs(gone: int) -> Iterator[tuple[Any, str, Any]]:
    whole, linked = policy._cached_steps, proofs.linked

    def few(raw: bytes, k: int, ordered: bool) -> Any:
        steps, step = whole(raw, k, ordered)
        return np.delete(steps, gone, axis=0), step

    yield policy, "_cached_steps", few

    def some(d: Any, allowed: Any, flat: Any) -> Iterator[Any]:
        graphs = [LocalDP(float(cap.epsilon), _graph(cap, d.k)) for cap in d.caps if cap.notion == "local_dp"]
        limits = np.ascontiguousarray(policy_limits(graphs, tuple(range(d.k))))
        steps, step = whole(limits.tobytes(), d.k, bool(flat))
        left_out = np.exp(steps[gone] * step) if gone < len(steps) else np.full(d.k, np.nan)
        for one in linked(d, allowed, flat):
            if not np.abs(np.array([float(x / max(one)) for x in one]) - left_out).max() < 1e-9:
                yield one

    yield proofs, "linked", some


def _stairs(gone: int) -> Iterator[tuple[Any, str, Any]]:
    patterns, stairs = PatternDual._patterns, proofs.staircases

    def fewer(self: Any, caps: Any, arithmetic: Any) -> Iterator[Any]:
        for one in patterns(self, caps, arithmetic):
            kept = np.delete(np.arange(len(one.base)), gone)
            yield type(one)(one.base[kept], one.rise[:, kept], None if one.charged is None else one.charged[kept])

    yield PatternDual, "_patterns", fewer

    def other(k: int, e: Any) -> Iterator[Any]:
        """Here the first input is the fastest, there the last one."""
        place = int(f"{gone:0{k}b}"[::-1], 2)
        return (one for number, one in enumerate(stairs(k, e)) if number != place)

    yield proofs, "staircases", other


def _level(entry: Any, e: Any) -> int:
    return -1 if entry == 0 else round(math.log(entry) / math.log(e))


def _graph(cap: Any, k: int) -> Any:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(k))
    graph.add_edges_from((x, y, {"weight": float(w)}) for (x, y), w in cap.edges.items())
    return graph
