"""The extreme columns within `LocalDP` constraints along policy graphs, listed with enclosures of their entries.

Every column within the limits of a policy graph is a sum of its extreme columns [KOV14, Thm 2].

The columns of a channel within Q[x,y] <= exp(L[x,x']) Q[x',y] form a cone. Let h = log s on the support of a column. A
constraint is tight if h_x - h_x' = L[x,x']. A column is extreme if the tight constraints connect its support, because
the vertices of a system of difference constraints are at spanning trees of potentials. Splitting a column into extreme
ones never lowers a convex, homogeneous function of the column. If total variation is capped, too, the cone is first cut
by all orders of the coordinates. For each order (s_x - s_x')_+ is linear, and equalities h_x = h_x' connect as well.
Between all inputs at one L, the extreme columns are the staircase patterns.

The list is exact: limits are first rounded up to integer multiples of a small unit, so that equalities are equalities
of integers. This makes the cone slightly wider, by 2^-41 of a limit where all limits are simple multiples of the least
one. A bound for its columns holds for the columns within the limits themselves.

*Labelings.* On a connected graph with limits that are multiples of one unit, inputs get their labels one after the
other, in all labelings at the same time. Inputs that equalities connect form a part. A labeling is dropped when one of
its parts cannot be connected to any later input. On other graphs, columns are grown from one input along equalities.
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

MAX_INPUTS_ANY_GRAPH, MAX_INPUTS_SPARSE_GRAPH = 8, 14
"""The largest numbers of inputs: of any graph, and of one with at most as many edges as inputs (a tree or one cycle).

This is for graphs with weights. Graphs whose limits are small multiples of one unit are always tried.
"""


def is_listable(limits: Array) -> bool:
    """Return True if listing the extreme columns under limits (k, k) is attempted.

    Finding out that there are too many takes long.
    """
    k = len(limits)
    if common_unit(Grid.round_up(limits).limits) is not None:
        return True
    shortest = shortest_paths(limits)
    return k <= MAX_INPUTS_ANY_GRAPH or (
        k <= MAX_INPUTS_SPARSE_GRAPH and int(direct_limits(shortest, equality_slack(shortest)).sum()) <= 2 * k
    )


class ListedColumns:
    """The extreme columns under limits (k, k) of the log-ratios between inputs."""

    kind = "extreme columns of the policy graph"
    count: float

    def __init__(self, limits: Array, has_order_cuts: bool) -> None:
        self.steps, self.unit = _cached_steps(np.ascontiguousarray(limits).tobytes(), len(limits), has_order_cuts)
        self.heights = self.steps * self.unit
        self.epsilon = float(limits.max())
        self.ordered, self.count = has_order_cuts, len(self.heights)
        self.name = f"{self.count} {self.kind}"
        self._limits = limits

    @property
    def arrangement(self) -> Arrangement:
        """The arrangement of the graph's limits for the ratio E = e^unit, cut by c_x = c_x' if `ordered`."""
        limits = Grid.round_up(self._limits).limits
        k, finite = len(limits), np.isfinite(limits)
        limited_pairs = ((x, y, int(limits[x, y])) for x, y in np.argwhere(finite & ~np.eye(k, dtype=bool)).tolist())
        return Arrangement(k, tuple(limited_pairs), in_order(k) if self.ordered else ())

    def enclosed(self, arithmetic: Arithmetic, indices: Any = slice(None)) -> tuple[Enclosure, Enclosure]:
        """Enclose least entries (n,) and rises above them (n, k) of listed columns.

        The unit is enlarged by the fraction `UNIT_ENLARGEMENT`.
        """
        unit, steps = arithmetic.of(self.unit) * (1 + arithmetic.of(UNIT_ENLARGEMENT)), self.steps[indices]
        lowest, is_zero = steps.min(axis=1), np.isneginf(steps)
        has_zero = np.isneginf(lowest)
        lowest = np.where(has_zero, 0.0, lowest)
        base = arithmetic.where(has_zero, 0.0, (unit * lowest).exp())
        entry = arithmetic.where(is_zero, 0.0, (unit * np.where(is_zero, 0.0, steps)).exp())
        # The rise is computed without cancellation; where the least entry is 0, it is the entry itself.
        steps_above = np.where(is_zero, 0.0, steps - lowest[:, None])
        rise = entry * -(-(unit * steps_above)).expm1()
        return base, arithmetic.where(has_zero[:, None], entry, rise) if has_zero.any() else rise


@lru_cache(maxsize=4)
def _cached_steps(raw: bytes, k: int, has_order_cuts: bool) -> tuple[Array, float]:
    grid = Grid.round_up(np.frombuffer(raw).reshape(k, k))
    steps = extreme_steps(grid, has_order_cuts)
    steps.flags.writeable = False
    return steps, grid.unit


@lru_cache(maxsize=64)
def too_many(raw: bytes, k: int, has_order_cuts: bool) -> bool:
    """Return True if the extreme columns are too many to list; raw : the bytes of the limits (k, k)."""
    try:
        _cached_steps(raw, k, has_order_cuts)
    except TooManyColumns:
        return True
    return False


def policy_limits(constraints: Sequence[Any], inputs: Sequence[Label]) -> Array:
    """Return the largest log-ratios (k, k), in nats, that all `LocalDP` in `constraints` jointly allow."""
    limits = np.full((len(inputs), len(inputs)), np.inf)
    for constraint in constraints:
        constraint_limits = constraint.log_limits(inputs) if isinstance(constraint, ColumnConstraint) else None
        limits = limits if constraint_limits is None else np.minimum(limits, constraint_limits)
    np.fill_diagonal(limits, 0.0)
    return shortest_paths(limits) if has_policy_graph(constraints) else limits  # otherwise no path is shorter


def has_policy_graph(constraints: Sequence[Any]) -> bool:
    """Return True if a constraint is along the edges of a policy graph."""
    return any(getattr(constraint, "listed", None) is not None for constraint in constraints)


def listing_work(k: int, constraints: Sequence[Any]) -> Work:
    """Bound the work to list extreme columns of policy graphs, or to find that there are too many."""
    edges = sum(len(c.listed.listed) for c in constraints if isinstance(c, LocalDP) and c.listed is not None)
    if not edges:
        return Work()
    steps = 30.0 * float(k) ** 3 + (2000.0 * MAX_SEARCH_STEPS if k <= MAX_INPUTS_SPARSE_GRAPH else 0.0)
    if k <= MAX_INPUTS:
        return Work(
            steps + 0.5 * MAX_PARTIAL_LABELINGS * (k + min(edges, k * k)),
            5.0 * MAX_PARTIAL_LABELINGS * k + 100.0 * k * k,
        ).in_floats
    return Work(steps, 100.0 * float(k) ** 2).in_floats


def max_column_count(k: int, constraints: Sequence[Any], flat: bool) -> float:
    """Bound the number of extreme columns, by at most `MAX_LABELED_COLUMNS`.

    A tree of pairs at their limit, in one of two directions, connects the support of such a column. The pairs are edges
    of the graphs. flat : True if pairs of equal entries connect it, too; then any pair may do so.
    """
    if any(isinstance(c, LocalDP) and c.listed is None for c in constraints) or flat:
        pairs, ways = k * (k - 1) // 2, 3 if flat else 2
    else:
        edge_lists = (c.listed.listed for c in constraints if isinstance(c, LocalDP) and c.listed is not None)
        pairs, ways = len({frozenset(edge[:2]) for edges in edge_lists for edge in edges}), 2
    count = float(k)
    for edges in range(1, min(k, pairs + 1)):
        count += math.comb(pairs, edges) * float(ways) ** edges
        if count >= MAX_LABELED_COLUMNS:
            return float(MAX_LABELED_COLUMNS)
    return count


MAX_PARTIAL_LABELINGS = 2**21  # Labelings of the inputs labeled so far.
MAX_LIMIT_IN_UNITS, MAX_INPUTS = 60, 100
"""The largest limit in units, and the most inputs: labels, their sums and numbers of parts are small integers."""
Labels = npt.NDArray[np.int8]
Direct = npt.NDArray[np.bool_]


def extreme_labelings(limits: Array, direct: Direct, has_order_cuts: bool, max_columns: int) -> Array | None:
    """List the extreme columns in units of `limits` (k, k) in lexicographic order, (n, k), largest label 0.

    limits : integers as float64, the lengths of shortest paths, inf for none.
    direct : (k, k) booleans, True for limits that no path of others implies.
    has_order_cuts : True if equal labels connect inputs.

    Returns None if the limits are not multiples of one unit, or some are infinite. Raises `TooManyColumns` for more
    than `MAX_PARTIAL_LABELINGS` labelings during the search, or more than `max_columns` columns.
    """
    k, unit = len(limits), common_unit(limits)
    if unit is None:
        return None
    unit_limits = (limits / unit).astype(np.int8)
    is_edge = direct | direct.T
    labeled_inputs: list[int] = []
    labels, parts = np.zeros((1, k), dtype=np.int8), np.arange(k, dtype=np.int8)[None]
    for v in _labeling_order(is_edge):
        if labeled_inputs:
            labels, start = _extend_labelings(labels, unit_limits, labeled_inputs, v)
            parts = parts[start]
        for u in labeled_inputs:
            if has_order_cuts or is_edge[u, v]:
                parts = _merge_parts(labels, parts, unit_limits, direct, has_order_cuts, u, v)
        labeled_inputs.append(v)
        unlabeled_inputs = [w for w in range(k) if w not in labeled_inputs]
        if unlabeled_inputs and not has_order_cuts:
            can_connect = _can_connect(
                parts, labeled_inputs, [w for w in labeled_inputs if is_edge[w, unlabeled_inputs].any()]
            )
            labels, parts = labels[can_connect], parts[can_connect]
    labels = labels[(parts == parts[:, :1]).all(axis=1)]
    if len(labels) > max_columns:
        raise too_many_columns(max_columns)
    labels = labels - labels.max(axis=1, keepdims=True)
    return np.asarray(labels[np.lexsort(labels.T[::-1])].astype(np.float64) * unit + 0.0)


def common_unit(limits: Array) -> int | None:
    """Return the largest integer that divides all limits, as small multiples; None if none does."""
    k = len(limits)
    if not 1 < k <= MAX_INPUTS or not np.isfinite(limits).all():
        return None
    integer_limits = limits.astype(np.int64)
    unit = int(np.gcd.reduce(integer_limits[~np.eye(k, dtype=bool)]))
    return unit if 0 < integer_limits.max() <= MAX_LIMIT_IN_UNITS * unit else None


class TooManyColumns(InvalidInput):
    """The error that there are more extreme columns than can be listed."""


def too_many_columns(max_columns: int) -> TooManyColumns:
    """Return the error for more than `max_columns` columns."""
    return TooManyColumns(f"policy graph: expected at most {max_columns} extreme columns, got more; merge inputs")


def _extend_labelings(
    labels: Labels, unit_limits: Labels, labeled_inputs: list[int], v: int
) -> tuple[Labels, npt.NDArray[np.intp]]:
    """Return all labelings with the further input v, and the position of the labeling that each extends."""
    known_labels = labels[:, labeled_inputs]
    high = (known_labels + unit_limits[v, labeled_inputs]).min(axis=1).astype(np.int64)
    low = (known_labels - unit_limits[labeled_inputs, v]).max(axis=1).astype(np.int64)
    count = np.maximum(high - low + 1, 0)
    total = int(count.sum())
    if total > MAX_PARTIAL_LABELINGS:
        raise too_many_columns(MAX_PARTIAL_LABELINGS)
    parent = np.repeat(np.arange(len(labels)), count)
    offset = np.cumsum(count) - count
    extended_labels = labels[parent]
    extended_labels[:, v] = low[parent] + np.arange(total) - offset[parent]
    return extended_labels, parent


def _merge_parts(
    labels: Labels, parts: Labels, unit_limits: Labels, direct: Direct, has_order_cuts: bool, u: int, v: int
) -> Labels:
    """Return the parts after u and v are connected in the labelings with a tight constraint between them."""
    rise = labels[:, v] - labels[:, u]
    is_tight = np.full(len(labels), False) if not has_order_cuts else rise == 0
    if direct[v, u]:
        is_tight |= rise == unit_limits[v, u]
    if direct[u, v]:
        is_tight |= -rise == unit_limits[u, v]
    of_u, of_v = parts[:, u, None], parts[:, v, None]
    smaller_part, larger_part = np.minimum(of_u, of_v), np.maximum(of_u, of_v)
    return np.where(is_tight[:, None] & (parts == larger_part), smaller_part, parts)


def _can_connect(parts: Labels, labeled_inputs: list[int], open_inputs: list[int]) -> npt.NDArray[np.bool_]:
    """Return True for labelings whose every part has an input of `open_inputs`, which later inputs may join."""
    can_connect = np.full(len(parts), True)
    for w in labeled_inputs:
        if w not in open_inputs:
            can_connect &= (parts[:, open_inputs] == parts[:, w, None]).any(axis=1)
    return can_connect


def _labeling_order(is_edge: Direct) -> list[int]:
    """Return an order of inputs that leaves few labeled inputs with unlabeled neighbors. It affects only the time."""
    k = len(is_edge)
    best: tuple[float, list[int]] | None = None
    for start in range(k):
        order, cost = [start], 0.0
        while len(order) < k:
            rest = [v for v in range(k) if v not in order]
            # The labeled inputs that would have neighbors without a label.
            after = {v: int(is_edge[np.ix_([*order, v], [w for w in rest if w != v])].any(axis=1).sum()) for v in rest}
            v = min(rest, key=lambda v: (after[v], -int(is_edge[v, order].sum())))
            order.append(v)
            cost += 2.0 ** after[v]
        if best is None or cost < best[0]:
            best = cost, order
    assert best is not None
    return best[1]


MAX_COLUMNS, MAX_LABELED_COLUMNS = (
    2**16,
    2**18,
)  # Extreme columns that are listed: one by one, and as integer labelings.
MAX_SEARCH_STEPS = 2**18  # Steps of the search for extreme columns, in about five seconds.
LEAST_LIMIT_BITS = 36  # The least limit is 2^36 units; fewer where the largest sum would not be an integer of float64.
UNIT_ENLARGEMENT = 2.0**-41
"""The fraction by which proofs enlarge the unit, for the rounding of limits, of products and of sums along paths."""


def equality_slack(limits: Array) -> float:
    """Return the distance below which floats count as equal, for these limits."""
    return TIGHT_LIMIT * max(float(limits[np.isfinite(limits)].max()), 1e-300)


@dataclass(frozen=True, eq=False)
class Grid:
    """Limits (k, k) as integer multiples of `unit`, all of them shortest paths.

    direct : (k, k) True for limits that no path implies.
    """

    limits: Array
    unit: float
    direct: npt.NDArray[np.bool_]

    @classmethod
    def round_up(cls, limits: Array) -> Grid:
        """Round the limits up to a grid.

        A limit that paths imply up to a few units is left out, which widens the cone.
        """
        shortest = shortest_paths(limits)
        k, is_finite_pair = len(shortest), np.isfinite(shortest) & ~np.eye(len(shortest), dtype=bool)
        if not is_finite_pair.any():
            return cls(shortest, 1.0, is_finite_pair)
        smallest_limit, largest_limit = float(shortest[is_finite_pair].min()), float(shortest[is_finite_pair].max())
        bits = min(LEAST_LIMIT_BITS, 51 - math.ceil(math.log2(k * largest_limit / smallest_limit)))
        if bits < 20:
            raise TooManyColumns("policy graph: expected weights within a factor of a million, got others")
        # A multiple of the least limit up to rounding becomes that multiple: `UNIT_ENLARGEMENT` covers the rest.
        steps = np.where(is_finite_pair, np.ceil(shortest / smallest_limit * 2.0**bits * (1 - 2.0**-43)), np.inf)
        np.fill_diagonal(steps, 0.0)
        direct = direct_limits(shortest_paths(steps), k + 1.0)
        return cls(shortest_paths(np.where(direct, steps, np.inf)), smallest_limit * 2.0**-bits, direct)


def extreme_steps(grid: Grid, has_order_cuts: bool = False) -> Array:
    """List logarithms of the extreme columns in the grid's unit, (n, k), the largest entry 0, -inf for zeros.

    has_order_cuts : True if the cone is also cut by the orders of the entries, as a cap on total variation needs.

    Raises `TooManyColumns` for more than `MAX_COLUMNS`, or more than `MAX_LABELED_COLUMNS` if limits are small
    multiples of one unit.
    """
    labelings = extreme_labelings(grid.limits, grid.direct, has_order_cuts, MAX_LABELED_COLUMNS)
    if labelings is not None:
        return labelings
    columns: list[Array] = []
    for support in _supports(np.isfinite(grid.limits)):
        for heights in _Growth(grid, support, has_order_cuts).all():
            columns.append(heights)
            if len(columns) > MAX_COLUMNS:
                raise too_many_columns(MAX_COLUMNS)
    return np.array(sorted(columns, key=lambda heights: tuple(heights)))


def _supports(reach: Array) -> list[tuple[int, ...]]:
    """List the possible supports of a column: with every x they contain all x' such that s_x <= exp(L) s_x'."""
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
    """Logarithms grown from the first input of a support along tight constraints, which hold with equality.

    Inputs are visited in breadth-first order. For each of them the search decides which neighbors are tight with it.
    Later steps must not contradict that decision, so every ray is generated once.
    """

    def __init__(self, grid: Grid, support: tuple[int, ...], has_order_cuts: bool) -> None:
        self.shortest, self.support, self.steps = grid.limits, support, 0
        shortest, direct = grid.limits, grid.direct
        self.rises: dict[int, dict[int, list[float]]] = {u: {} for u in support}
        for u in support:
            for v in support:
                # How far v may be above u where a constraint is tight: L[v,u], or -L[u,v], or 0.
                rises = [sign * shortest[a, b] for sign, a, b in ((1.0, v, u), (-1.0, u, v)) if direct[a, b]]
                if u != v and (rises or has_order_cuts):
                    self.rises[u][v] = [*rises, 0.0] if has_order_cuts else rises

    def all(self) -> Iterator[Array]:
        """Generate every extreme ray with exactly this support."""
        heights = np.full(len(self.shortest), np.nan)
        heights[self.support[0]] = 0.0
        for new_heights in self._grow(heights, (self.support[0],), ()):
            ray = np.full(len(heights), -np.inf)
            ray[list(self.support)] = new_heights[list(self.support)] - np.nanmax(new_heights)
            yield ray + 0.0

    def _grow(self, heights: Array, queue: tuple[int, ...], visited_inputs: tuple[int, ...]) -> Iterator[Array]:
        if not queue:
            if len(visited_inputs) == len(self.support):
                yield heights
            return
        u, remaining_queue = queue[0], queue[1:]
        unplaced_inputs = [v for v in self.rises[u] if math.isnan(heights[v])]
        yield from self._choose(heights, u, unplaced_inputs, remaining_queue, (*visited_inputs, u))

    def _choose(
        self,
        heights: Array,
        u: int,
        unplaced_inputs: list[int],
        queue: tuple[int, ...],
        visited_inputs: tuple[int, ...],
    ) -> Iterator[Array]:
        if not unplaced_inputs:
            yield from self._grow(heights, queue, visited_inputs)
            return
        self.steps += 1
        if self.steps > MAX_SEARCH_STEPS:
            raise too_many_columns(MAX_COLUMNS)
        v, rest = unplaced_inputs[0], unplaced_inputs[1:]
        if any(other not in visited_inputs for other in self.rises[v]):
            yield from self._choose(heights, u, rest, queue, visited_inputs)
        for rise in self.rises[u][v]:
            height = float(heights[u]) + rise
            if self._fits(heights, v, height) and not self._tight(heights, v, height, visited_inputs[:-1]):
                new_heights = heights.copy()
                new_heights[v] = height
                yield from self._choose(new_heights, u, rest, (*queue, v), visited_inputs)

    def _fits(self, heights: Array, v: int, height: float) -> bool:
        is_placed = ~np.isnan(heights)
        fits_above = height - heights[is_placed] <= self.shortest[v, is_placed]
        fits_below = heights[is_placed] - height <= self.shortest[is_placed, v]
        return bool(fits_above.all() and fits_below.all())

    def _tight(self, heights: Array, v: int, height: float, inputs: tuple[int, ...]) -> bool:
        """Return True if v would be tight with an input in `inputs`, contradicting an earlier decision."""
        return any(height - heights[w] == rise for w in inputs for rise in self.rises[w].get(v, ()))
