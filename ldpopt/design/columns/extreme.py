"""The columns that a policy graph leaves to a channel, as sums of finitely many: its extreme rays.

The columns of a channel within  Q[x,y] <= exp(L[x,x']) Q[x',y]  form a cone. In logarithms h = log s on the support
of a column, a ray is extreme when the constraints that hold with equality, h_x - h_x' = L[x,x'], connect the support: a
system of difference constraints has its vertices at spanning trees of potentials. Every convex, homogeneous function
of the column is largest, for a given sum of columns, on such rays [KOV14, Thm 2]. Where total variation counts too, the
cone is first cut by all orders of the coordinates, in each of which (s_x - s_x')_+ is linear: then equalities
h_x = h_x' connect as well. Between all inputs at one L they are the staircase patterns.

The list is exact: limits are first rounded up to whole numbers of a small unit, so that equalities are equalities of
integers. The cone is a little wider then, by 2^-41 of a limit where all are simple multiples of the least one, and what
is proved of its columns holds for those within the limits themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.labelings import TooManyColumns, extreme_labelings, too_many
from ldpopt.design.constraints.policy import shortest_paths
from ldpopt.distribution import Array

MOST, LABELED = 2**16, 2**18
"""The most extreme columns that are listed, one by one, and as labelings, all at once."""


STEPS = 2**20
"""The most steps of their search."""


TIGHT = 1e-9
"""How near to equality, relative to the largest limit, a constraint holds with equality, where nothing is proved."""


BITS = 36
"""The least limit is 2^36 units; fewer where the largest sum would not be an integer of float64."""


OUTWARD = 2.0**-41
"""By how much more than a unit a unit counts in proofs: for the rounding of limits, products and sums along paths."""


def direct_limits(shortest: Array, slack: float | None = None) -> npt.NDArray[np.bool_]:
    """(k, k) whether two inputs are compared, and not through inputs between them alone; `shortest` is closed."""
    k, room = len(shortest), slack_of(shortest) if slack is None else slack
    through = np.full((k, k), np.inf)
    for y in range(k):
        others = np.arange(k) != y
        between = shortest[:, y, None] + shortest[None, y]
        through = np.where(others[:, None] & others, np.minimum(through, between), through)
    return np.asarray(np.isfinite(shortest) & (through > shortest + room) & ~np.eye(k, dtype=bool))


def slack_of(limits: Array) -> float:
    """How near to equality a constraint holds with equality."""
    return TIGHT * max(float(limits[np.isfinite(limits)].max()), 1e-300)


@dataclass(frozen=True, eq=False)
class Grid:
    """Limits (k, k) as whole numbers of `unit`, closed along paths; `direct` (k, k): which of them count."""

    limits: Array
    unit: float
    direct: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, limits: Array) -> Grid:
        """The limits rounded up. Those that paths imply up to a few units are left out, which widens the cone."""
        shortest = shortest_paths(limits)
        k, apart = len(shortest), np.isfinite(shortest) & ~np.eye(len(shortest), dtype=bool)
        if not apart.any():
            return cls(shortest, 1.0, apart)
        least, most = float(shortest[apart].min()), float(shortest[apart].max())
        bits = min(BITS, 51 - math.ceil(math.log2(k * most / least)))
        if bits < 20:
            raise TooManyColumns("policy graph: expected weights within a factor of a million, got others")
        # A multiple of the least limit, but for rounding, is that multiple: the outward unit makes up for it.
        steps = np.where(apart, np.ceil(shortest / least * 2.0**bits * (1 - 2.0**-43)), np.inf)
        np.fill_diagonal(steps, 0.0)
        direct = direct_limits(shortest_paths(steps), k + 1.0)
        return cls(shortest_paths(np.where(direct, steps, np.inf)), least * 2.0**-bits, direct)


def extreme_steps(grid: Grid, ordered: bool = False) -> Array:
    """The extreme columns as whole numbers of the grid's unit (n, k), the largest entry 0, -inf where a column is 0.

    ordered : whether orders of the entries cut the cone, as total variation needs. Raises `TooManyColumns` when there
    are more than `MOST`, or `LABELED` where all limits are small multiples of one.
    """
    labeled = extreme_labelings(grid.limits, grid.direct, ordered, LABELED)
    if labeled is not None:
        return labeled
    columns: list[Array] = []
    for support in _supports(np.isfinite(grid.limits)):
        for heights in _Growth(grid, support, ordered).all():
            columns.append(heights)
            if len(columns) > MOST:
                raise too_many(MOST)
    return np.array(sorted(columns, key=lambda heights: tuple(heights)))


def extreme_columns(limits: Array, ordered: bool = False) -> Array:
    """Logarithms (n, k) of the extreme columns, the largest entry 0, -inf where a column is 0.

    limits : (k, k) largest log s_x / s_x', inf where there is none.

    >>> path = np.array([[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]])
    >>> extreme_columns(path)
    array([[-2., -1.,  0.],
           [-1.,  0., -1.],
           [ 0., -1., -2.],
           [ 0., -1.,  0.]])
    """
    grid = Grid.of(limits)
    return extreme_steps(grid, ordered) * grid.unit


def _supports(reach: Array) -> list[tuple[int, ...]]:
    """Sets that hold with every x all x' for which s_x <= exp(L) s_x': where a column may be positive."""
    single = {frozenset(np.flatnonzero(row).tolist()) for row in reach}
    found = set(single)
    fresh = list(single)
    while fresh:
        fresh = [s for s in {a | b for a in fresh for b in single} if s not in found]
        found.update(fresh)
        if len(found) > MOST:
            raise too_many(MOST)
    return sorted(tuple(sorted(s)) for s in found)


class _Growth:
    """Potentials grown from the first input of a support along constraints that hold with equality.

    Inputs are taken up in a breadth-first order: for each, its neighbours are tight with it or not, which is kept to,
    so that every ray comes once.
    """

    def __init__(self, grid: Grid, support: tuple[int, ...], ordered: bool) -> None:
        self.shortest, self.support, self.steps = grid.limits, support, 0
        shortest, direct = grid.limits, grid.direct
        self.rises: dict[int, dict[int, list[float]]] = {u: {} for u in support}
        for u in support:
            for v in support:
                # What v may be above u where a constraint is tight: L[v,u], or -L[u,v], or nothing.
                rises = [sign * shortest[a, b] for sign, a, b in ((1.0, v, u), (-1.0, u, v)) if direct[a, b]]
                if u != v and (rises or ordered):
                    self.rises[u][v] = [*rises, 0.0] if ordered else rises

    def all(self) -> Iterator[Array]:
        """Every extreme ray with exactly this support."""
        heights = np.full(len(self.shortest), np.nan)
        heights[self.support[0]] = 0.0
        for grown in self._grow(heights, (self.support[0],), ()):
            made = np.full(len(heights), -np.inf)
            made[list(self.support)] = grown[list(self.support)] - np.nanmax(grown)
            yield made + 0.0

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
            raise too_many(MOST)
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
        """Whether v would be tight with one of these, which have decided against it."""
        return any(height - heights[w] == rise for w in inputs for rise in self.rises[w].get(v, ()))
