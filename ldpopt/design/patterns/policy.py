"""The extreme columns within `LocalDP` constraints along policy graphs, listed with enclosures of their entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.constraints.local_dp import LocalDP, direct_limits, shortest_paths
from ldpopt.design.kernel.arrangement import Arrangement, in_order
from ldpopt.design.patterns.extreme import (
    LABELED,
    MAX_INPUTS,
    OUTWARD,
    PARTIAL,
    STEPS,
    Grid,
    TooManyColumns,
    common_unit,
    extreme_steps,
    slack_of,
)
from ldpopt.design.work import Work
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
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
