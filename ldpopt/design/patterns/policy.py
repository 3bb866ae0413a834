"""The extreme columns within `LocalDP` constraints along policy graphs, listed with enclosures of their entries.

Limits of a policy graph -> its extreme columns: every column that the graph allows is a sum of these [KOV14, Thm 2].

The columns of a channel within  Q[x,y] <= exp(L[x,x']) Q[x',y]  form a cone. Let h = log s on the support of a column.
The column is extreme when the constraints that hold with equality, h_x - h_x' = L[x,x'], connect its support, because
the vertices of a system of difference constraints are at spanning trees of potentials. Splitting a column into extreme
ones never lowers a convex, homogeneous function of the column. Where total variation is capped, too, the cone is first
cut by all orders of the coordinates, in each of which (s_x - s_x')_+ is linear; then equalities h_x = h_x' connect as
well. Between all inputs at one L, the extreme columns are the staircase patterns.

The list is exact: limits are first rounded up to whole multiples of a small unit, so that equalities are equalities of
integers. This makes the cone slightly wider, by 2^-41 of a limit where all limits are simple multiples of the least
one. A bound for its columns holds for the columns within the limits themselves.

*Labelings.* On a connected graph whose limits are multiples of one unit, inputs get their labels one after the other,
in all labelings at the same time. Inputs that equalities connect form a part. A labeling is dropped when one of its
parts cannot be connected to any later input. On other graphs, columns are grown from one input along equalities.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.constraints.local_dp import LocalDP, direct_limits, shortest_paths
from ldpopt.design.kernel.listed import Arrangement, in_order
from ldpopt.design.work import Work
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.tolerances import TIGHT_LIMIT
from ldpopt.values.distribution import Array

ANY, SPARSE = 8, 14
"""The most inputs of any graph that is tried, and of a graph with no more edges than inputs: a tree, or one cycle.

This is for graphs with weights. Graphs whose limits are small multiples of one unit are always tried.
"""


def listable(limits: Array) -> bool:
    """Whether to try to list the extreme columns under limits (k, k). Finding out that they are too many takes long."""
    k = len(limits)
    if common_unit(Grid.of(limits).limits) is not None:
        return True
    shortest = shortest_paths(limits)
    return k <= ANY or (k <= SPARSE and int(direct_limits(shortest, slack_of(shortest)).sum()) <= 2 * k)


class ListedColumns:
    """The extreme columns under limits (k, k) of the log-ratios between inputs."""

    kind = "extreme columns of the policy graph"
    count: float

    def __init__(self, limits: Array, ordered: bool) -> None:
        self.steps, self.unit = _listed(np.ascontiguousarray(limits).tobytes(), len(limits), ordered)
        self.heights = self.steps * self.unit
        self.epsilon = float(limits.max())
        self.ordered, self.count = ordered, len(self.heights)
        self.name = f"{self.count} {self.kind}"
        self._limits = limits

    @property
    def arrangement(self) -> Arrangement:
        """That of the graph's limits, for the ratio E = e^unit of the grid; cut by c_x = c_x' if `ordered`."""
        limits = Grid.of(self._limits).limits
        k, finite = len(limits), np.isfinite(limits)
        bounded = ((x, y, int(limits[x, y])) for x, y in np.argwhere(finite & ~np.eye(k, dtype=bool)).tolist())
        return Arrangement(k, tuple(bounded), in_order(k) if self.ordered else ())

    def enclosed(self, arithmetic: Arithmetic, chosen: Any = slice(None)) -> tuple[Enclosure, Enclosure]:
        """Least entries (n,) and rises above them (n, k) of listed columns, with the unit enlarged by `OUTWARD`."""
        unit, steps = arithmetic.of(self.unit) * (1 + arithmetic.of(OUTWARD)), self.steps[chosen]
        lowest, none = steps.min(axis=1), np.isneginf(steps)
        silent = np.isneginf(lowest)
        lowest = np.where(silent, 0.0, lowest)
        base = arithmetic.where(silent, 0.0, (unit * lowest).exp())
        entry = arithmetic.where(none, 0.0, (unit * np.where(none, 0.0, steps)).exp())
        # The rise is computed without cancellation; where the least entry is 0, it is the entry itself.
        above = np.where(none, 0.0, steps - lowest[:, None])
        rise = entry * -(-(unit * above)).expm1()
        return base, arithmetic.where(silent[:, None], entry, rise) if silent.any() else rise


@lru_cache(maxsize=4)
def _listed(raw: bytes, k: int, ordered: bool) -> tuple[Array, float]:
    grid = Grid.of(np.frombuffer(raw).reshape(k, k))
    steps = extreme_steps(grid, ordered)
    steps.flags.writeable = False
    return steps, grid.unit


@lru_cache(maxsize=64)
def too_many(raw: bytes, k: int, ordered: bool) -> bool:
    """Return True if the extreme columns are too many to list; raw : the bytes of the limits (k, k)."""
    try:
        _listed(raw, k, ordered)
    except TooManyColumns:
        return True
    return False


def policy_limits(constraints: Sequence[Any], inputs: Sequence[Label]) -> Array:
    """(k, k) the largest log-ratios, in nats, that all `LocalDP` in `constraints` together allow every two inputs."""
    limits = np.full((len(inputs), len(inputs)), np.inf)
    for constraint in constraints:
        own = constraint.log_limits(inputs) if isinstance(constraint, ColumnConstraint) else None
        limits = limits if own is None else np.minimum(limits, own)
    np.fill_diagonal(limits, 0.0)
    return shortest_paths(limits) if along_graphs(constraints) else limits  # no path is shorter


def along_graphs(constraints: Sequence[Any]) -> bool:
    """Whether some constraint is along the edges of a policy graph."""
    return any(getattr(constraint, "listed", None) is not None for constraint in constraints)


def listing(k: int, constraints: Sequence[Any]) -> Work:
    """What it takes at most to list extreme columns of policy graphs, or to find that they are too many."""
    edges = sum(len(c.listed.listed) for c in constraints if isinstance(c, LocalDP) and c.listed is not None)
    if not edges:
        return Work()
    steps = 30.0 * float(k) ** 3 + (2000.0 * STEPS if k <= SPARSE else 0.0)
    if k <= MAX_INPUTS:
        return Work(steps + 0.5 * PARTIAL * (k + min(edges, k * k)), 5.0 * PARTIAL * k + 100.0 * k * k).in_floats
    return Work(steps, 100.0 * float(k) ** 2).in_floats


def most_columns(k: int, constraints: Sequence[Any], flat: bool) -> float:
    """A number of extreme columns that is not exceeded, up to `LABELED`, of which no more are listed.

    The support of such a column is connected by a tree of pairs that are at their limit, one way or the other, on edges
    of the graphs. flat : whether pairs of equal entries connect it, too; then any pair may do so.
    """
    if any(isinstance(c, LocalDP) and c.listed is None for c in constraints) or flat:
        pairs, ways = k * (k - 1) // 2, 3 if flat else 2
    else:
        listed = (c.listed.listed for c in constraints if isinstance(c, LocalDP) and c.listed is not None)
        pairs, ways = len({frozenset(edge[:2]) for edges in listed for edge in edges}), 2
    most = float(k)
    for edges in range(1, min(k, pairs + 1)):
        most += math.comb(pairs, edges) * float(ways) ** edges
        if most >= LABELED:
            return float(LABELED)
    return most


PARTIAL = 2**21  # The most labelings of the inputs labeled so far.
FARTHEST, MAX_INPUTS = 60, 100
"""The largest limit in units, and the most inputs: labels, their sums and numbers of parts are small integers."""
Labels = npt.NDArray[np.int8]
Direct = npt.NDArray[np.bool_]


def extreme_labelings(limits: Array, direct: Direct, ordered: bool, most: int) -> Array | None:
    """(n, k) the extreme columns in units of `limits` (k, k), largest label 0, in lexicographic order. limits : whole
    numbers as float64, the lengths of shortest paths, inf for none. direct : (k, k) booleans, True for limits that no
    path of others implies. ordered : whether equal labels connect inputs. None where the limits are not multiples of
    one unit, or some are infinite. Raises `TooManyColumns` for more than `PARTIAL` labelings on the way, or more than
    `most` in the end.
    """
    k, unit = len(limits), common_unit(limits)
    if unit is None:
        return None
    apart = (limits / unit).astype(np.int8)
    joined = direct | direct.T
    done: list[int] = []
    labels, parts = np.zeros((1, k), dtype=np.int8), np.arange(k, dtype=np.int8)[None]
    for v in _order(joined):
        if done:
            labels, start = _grown(labels, apart, done, v)
            parts = parts[start]
        for u in done:
            if ordered or joined[u, v]:
                parts = _merged(labels, parts, apart, direct, ordered, u, v)
        done.append(v)
        rest = [w for w in range(k) if w not in done]
        if rest and not ordered:
            kept = _open(parts, done, [w for w in done if joined[w, rest].any()])
            labels, parts = labels[kept], parts[kept]
    labels = labels[(parts == parts[:, :1]).all(axis=1)]
    if len(labels) > most:
        raise too_many_columns(most)
    labels = labels - labels.max(axis=1, keepdims=True)
    return np.asarray(labels[np.lexsort(labels.T[::-1])].astype(np.float64) * unit + 0.0)


def common_unit(limits: Array) -> int | None:
    """The largest whole number that all limits are small multiples of; None where there is none."""
    k = len(limits)
    if not 1 < k <= MAX_INPUTS or not np.isfinite(limits).all():
        return None
    whole = limits.astype(np.int64)
    unit = int(np.gcd.reduce(whole[~np.eye(k, dtype=bool)]))
    return unit if 0 < whole.max() <= FARTHEST * unit else None


class TooManyColumns(InvalidInput):
    """Raised where there are more extreme columns than can be listed."""


def too_many_columns(most: int) -> TooManyColumns:
    """The error for more than `most` columns."""
    return TooManyColumns(f"policy graph: expected at most {most} extreme columns, got more; merge inputs")


def _grown(labels: Labels, apart: Labels, done: list[int], v: int) -> tuple[Labels, npt.NDArray[np.intp]]:
    """All labelings with the further input v, and the position of the labeling that each extends."""
    known = labels[:, done]
    high = (known + apart[v, done]).min(axis=1).astype(np.int64)
    low = (known - apart[done, v]).max(axis=1).astype(np.int64)
    count = np.maximum(high - low + 1, 0)
    total = int(count.sum())
    if total > PARTIAL:
        raise too_many_columns(PARTIAL)
    start = np.repeat(np.arange(len(labels)), count)
    first = np.cumsum(count) - count
    extended = labels[start]
    extended[:, v] = low[start] + np.arange(total) - first[start]
    return extended, start


def _merged(labels: Labels, parts: Labels, apart: Labels, direct: Direct, ordered: bool, u: int, v: int) -> Labels:
    """The parts after u and v are connected in the labelings where an equality between them holds."""
    rise = labels[:, v] - labels[:, u]
    equal = np.full(len(labels), False) if not ordered else rise == 0
    if direct[v, u]:
        equal |= rise == apart[v, u]
    if direct[u, v]:
        equal |= -rise == apart[u, v]
    of_u, of_v = parts[:, u, None], parts[:, v, None]
    less, more = np.minimum(of_u, of_v), np.maximum(of_u, of_v)
    return np.where(equal[:, None] & (parts == more), less, parts)


def _open(parts: Labels, done: list[int], open_: list[int]) -> npt.NDArray[np.bool_]:
    """The labelings whose every part has one of the inputs `open_`, which later inputs may be connected to."""
    kept = np.full(len(parts), True)
    for w in done:
        if w not in open_:
            kept &= (parts[:, open_] == parts[:, w, None]).any(axis=1)
    return kept


def _order(joined: Direct) -> list[int]:
    """An order in which few labeled inputs have neighbours that are not labeled yet. It affects only the time."""
    k = len(joined)
    best: tuple[float, list[int]] | None = None
    for start in range(k):
        order, cost = [start], 0.0
        while len(order) < k:
            rest = [v for v in range(k) if v not in order]
            # The labeled inputs that would have neighbours without a label.
            after = {v: int(joined[np.ix_([*order, v], [w for w in rest if w != v])].any(axis=1).sum()) for v in rest}
            v = min(rest, key=lambda v: (after[v], -int(joined[v, order].sum())))
            order.append(v)
            cost += 2.0 ** after[v]
        if best is None or cost < best[0]:
            best = cost, order
    assert best is not None
    return best[1]


MAX_COLUMNS, LABELED = 2**16, 2**18  # The most extreme columns that are listed: one by one, and as integer labelings.
STEPS = 2**18  # The most steps of the search for them, in about five seconds.
BITS = 36  # The least limit is 2^36 units; fewer where the largest sum would not be an integer of float64.
OUTWARD = 2.0**-41
"""The share by which proofs enlarge the unit, for the rounding of limits, of products and of sums along paths."""


def slack_of(limits: Array) -> float:
    """The distance at which floats count as equal, for these limits."""
    return TIGHT_LIMIT * max(float(limits[np.isfinite(limits)].max()), 1e-300)


@dataclass(frozen=True, eq=False)
class Grid:
    """Limits (k, k) as whole multiples of `unit`, all of them shortest paths; direct : (k, k) which are no path's."""

    limits: Array
    unit: float
    direct: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, limits: Array) -> Grid:
        """The limits rounded up. A limit that paths imply up to a few units is left out, which widens the cone."""
        shortest = shortest_paths(limits)
        k, apart = len(shortest), np.isfinite(shortest) & ~np.eye(len(shortest), dtype=bool)
        if not apart.any():
            return cls(shortest, 1.0, apart)
        least, most = float(shortest[apart].min()), float(shortest[apart].max())
        bits = min(BITS, 51 - math.ceil(math.log2(k * most / least)))
        if bits < 20:
            raise TooManyColumns("policy graph: expected weights within a factor of a million, got others")
        # A limit that is a multiple of the least one up to rounding becomes that multiple: `OUTWARD` covers the rest.
        steps = np.where(apart, np.ceil(shortest / least * 2.0**bits * (1 - 2.0**-43)), np.inf)
        np.fill_diagonal(steps, 0.0)
        direct = direct_limits(shortest_paths(steps), k + 1.0)
        return cls(shortest_paths(np.where(direct, steps, np.inf)), least * 2.0**-bits, direct)


def extreme_steps(grid: Grid, ordered: bool = False) -> Array:
    """(n, k) logarithms of the extreme columns in the grid's unit, the largest entry 0, -inf where a column is 0.
    ordered : whether the cone is also cut by the orders of the entries, as a cap on total variation needs. Raises
    `TooManyColumns` for more than `MAX_COLUMNS`, or more than `LABELED` where limits are small multiples of one unit.
    """
    labeled = extreme_labelings(grid.limits, grid.direct, ordered, LABELED)
    if labeled is not None:
        return labeled
    columns: list[Array] = []
    for support in _supports(np.isfinite(grid.limits)):
        for heights in _Growth(grid, support, ordered).all():
            columns.append(heights)
            if len(columns) > MAX_COLUMNS:
                raise too_many_columns(MAX_COLUMNS)
    return np.array(sorted(columns, key=lambda heights: tuple(heights)))


def _supports(reach: Array) -> list[tuple[int, ...]]:
    """The sets on which a column may be positive: with every x they hold all x' for which s_x <= exp(L) s_x'."""
    single = {frozenset(np.flatnonzero(row).tolist()) for row in reach}
    supports = set(single)
    fresh = list(single)
    while fresh:
        fresh = [s for s in {a | b for a in fresh for b in single} if s not in supports]
        supports.update(fresh)
        if len(supports) > MAX_COLUMNS:
            raise too_many_columns(MAX_COLUMNS)
    return sorted(tuple(sorted(s)) for s in supports)


class _Growth:
    """Logarithms grown from the first input of a support along constraints that hold with equality (tight ones). Inputs
    are visited in breadth-first order. For each it is decided which neighbours are tight with it, and later steps keep
    to that decision, so that every ray comes once.
    """

    def __init__(self, grid: Grid, support: tuple[int, ...], ordered: bool) -> None:
        self.shortest, self.support, self.steps = grid.limits, support, 0
        shortest, direct = grid.limits, grid.direct
        self.rises: dict[int, dict[int, list[float]]] = {u: {} for u in support}
        for u in support:
            for v in support:
                # How far v may be above u where a constraint is tight: L[v,u], or -L[u,v], or 0.
                rises = [sign * shortest[a, b] for sign, a, b in ((1.0, v, u), (-1.0, u, v)) if direct[a, b]]
                if u != v and (rises or ordered):
                    self.rises[u][v] = [*rises, 0.0] if ordered else rises

    def all(self) -> Iterator[Array]:
        """Every extreme ray with exactly this support."""
        heights = np.full(len(self.shortest), np.nan)
        heights[self.support[0]] = 0.0
        for grown in self._grow(heights, (self.support[0],), ()):
            ray = np.full(len(heights), -np.inf)
            ray[list(self.support)] = grown[list(self.support)] - np.nanmax(grown)
            yield ray + 0.0

    def _grow(self, heights: Array, waiting: tuple[int, ...], done: tuple[int, ...]) -> Iterator[Array]:
        if not waiting:
            if len(done) == len(self.support):
                yield heights
            return
        u, left = waiting[0], waiting[1:]
        free = [v for v in self.rises[u] if math.isnan(heights[v])]
        yield from self._choose(heights, u, free, left, (*done, u))

    def _choose(
        self, heights: Array, u: int, free: list[int], waiting: tuple[int, ...], done: tuple[int, ...]
    ) -> Iterator[Array]:
        if not free:
            yield from self._grow(heights, waiting, done)
            return
        self.steps += 1
        if self.steps > STEPS:
            raise too_many_columns(MAX_COLUMNS)
        v, rest = free[0], free[1:]
        if any(other not in done for other in self.rises[v]):
            yield from self._choose(heights, u, rest, waiting, done)
        for rise in self.rises[u][v]:
            height = float(heights[u]) + rise
            if self._fits(heights, v, height) and not self._tight(heights, v, height, done[:-1]):
                grown = heights.copy()
                grown[v] = height
                yield from self._choose(grown, u, rest, (*waiting, v), done)

    def _fits(self, heights: Array, v: int, height: float) -> bool:
        known = ~np.isnan(heights)
        above = height - heights[known] <= self.shortest[v, known]
        below = heights[known] - height <= self.shortest[known, v]
        return bool(above.all() and below.all())

    def _tight(self, heights: Array, v: int, height: float, inputs: tuple[int, ...]) -> bool:
        """Whether v would be tight with one of `inputs`, for which it was decided that v is not."""
        return any(height - heights[w] == rise for w in inputs for rise in self.rises[w].get(v, ()))
