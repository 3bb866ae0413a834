"""The columns under a policy graph: its extreme columns, which are listed, or searched where they are too many."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ldpopt.design.columns.base import BATCH, AnyRelaxation, Columns
from ldpopt.design.columns.charges import ROWS, Charges
from ldpopt.design.columns.extreme import OUTWARD, Grid, direct_limits, extreme_steps
from ldpopt.design.columns.labelings import common_unit
from ldpopt.design.columns.policy_relaxation import PolicyRelaxation
from ldpopt.design.columns.prices import Prices
from ldpopt.design.columns.search import climb, first_columns
from ldpopt.design.constraints.local_dp import shortest_paths
from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure

FEW = 400
"""Up to this many extreme columns, all of them are there from the start."""

ANY, SPARSE = 8, 14
"""The most inputs of any graph that is tried, and of a graph with no more edges than inputs: a tree, or one cycle.

This is for graphs with weights. Graphs whose limits are small multiples of one unit are always tried.
"""


def listable(limits: Array) -> bool:
    """Whether to try to list the extreme columns under limits (k, k). Finding out that they are too many takes long."""
    k = len(limits)
    if common_unit(Grid.of(limits).limits) is not None:
        return True
    return k <= ANY or (k <= SPARSE and int(direct_limits(shortest_paths(limits)).sum()) <= 2 * k)


class PolicyColumns(Columns):
    """The extreme columns under limits (k, k) of the log-ratios between inputs."""

    kind = "extreme columns of the policy graph"

    def __init__(self, limits: Array, ordered: bool) -> None:
        self.steps, self.unit = _listed(np.ascontiguousarray(limits).tobytes(), len(limits), ordered)
        self.heights = self.steps * self.unit
        self.epsilon = float(limits.max())
        self.ordered = ordered

    @property
    def name(self) -> str:
        """The name of the columns in printed texts, with their number."""
        return f"{len(self.heights)} {self.kind}"

    def start(self) -> Array:
        """All of a short list; else `FEW` at random, and the columns in which some input stands out the most."""
        if len(self.heights) <= FEW:
            return self.heights
        spread = np.random.default_rng(len(self.heights)).choice(len(self.heights), FEW, replace=False)
        values = self.values(self.heights)
        share = values / values.sum(axis=1, keepdims=True)
        outstanding = np.concatenate([np.argsort(-share, axis=0)[:4].ravel(), np.argsort(share, axis=0)[:4].ravel()])
        # The constant column, if it is listed: without it, channels may be unable to meet a cap on total variation.
        flat = np.flatnonzero(np.ptp(self.steps, axis=1) == 0)
        return np.asarray(self.heights[np.unique(np.concatenate([spread, outstanding, flat]))])

    def complete(self, heights: Array) -> bool:
        """Whether the whole list is there."""
        return len(heights) >= len(self.heights)

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """The best columns of the whole list."""
        gains = self._gains(prices)
        best = np.argsort(-gains)[:BATCH]
        return np.asarray(self.heights[best[gains[best] > least]])

    @property
    def exact(self) -> bool:
        """True: the list is complete."""
        return True

    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """The largest gain of the listed columns, whose logarithms are exact multiples of a unit."""
        if charges.pairs.any() and not self.ordered:
            return math.inf
        if not charges.arithmetic.exact:
            return charges.most(*self.enclosed(FLOAT))
        # Enclosures in floats tell which columns may have the largest gain; only these are computed exactly.
        floats, (base, rise) = charges.in_floats(), self.enclosed(FLOAT)
        parts = [slice(at, at + ROWS) for at in range(0, len(base), ROWS)]
        each = [floats.prices(base[part], rise[part]) for part in parts]
        low, high = (np.concatenate([np.asarray(getattr(one, end)) for one in each]) for end in ("lower", "upper"))
        return charges.most(*self.enclosed(charges.arithmetic, np.flatnonzero(high >= low.max())))

    def enclosed(self, arithmetic: Arithmetic, at: Any = slice(None)) -> tuple[Enclosure, Enclosure]:
        """Least entries (n,) and rises above them (n, k) of listed columns, with the unit enlarged by `OUTWARD`."""
        unit, steps = arithmetic.of(self.unit) * (1 + arithmetic.of(OUTWARD)), self.steps[at]
        lowest, none = steps.min(axis=1), np.isneginf(steps)
        silent = np.isneginf(lowest)
        lowest = np.where(silent, 0.0, lowest)
        base = arithmetic.where(silent, 0.0, (unit * lowest).exp())
        entry = arithmetic.where(none, 0.0, (unit * np.where(none, 0.0, steps)).exp())
        # The rise is computed without cancellation; where the least entry is 0, it is the entry itself.
        above = np.where(none, 0.0, steps - lowest[:, None])
        rise = entry * -(-(unit * above)).expm1()
        return base, arithmetic.where(silent[:, None], entry, rise) if silent.any() else rise

    def _gains(self, prices: Prices) -> Array:
        parts = np.array_split(self.heights, 1 + len(self.heights) // 4096)
        return np.asarray(np.concatenate([prices.gains(self.values(part)) for part in parts]))


class SearchedColumns(Columns):
    """The columns under limits (k, k) of the log-ratios between inputs, whose extreme ones are too many to list."""

    kind = "columns of the policy graph"

    def __init__(self, limits: Array) -> None:
        self.limits = limits
        self.epsilon = float(limits.max())

    @property
    def name(self) -> str:
        """The name of the columns in printed texts, without a number."""
        return self.kind

    def start(self) -> Array:
        """The constant column, and columns with peaks and valleys."""
        return first_columns(self.limits)

    def complete(self, heights: Array) -> bool:
        """False: there are too many columns to have all."""
        return False

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """The columns that local search finds from `used`, or else from the columns of `start`."""
        found = climb(self.limits, prices, used, BATCH, least)
        return found if len(found) else climb(self.limits, prices, self.start(), BATCH, least)

    @property
    def exact(self) -> bool:
        """False: the columns cannot all be priced."""
        return False

    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """An upper bound on the gain of every column, by a relaxation with products of two limits."""
        return relaxed.most(charges, self.limits) if isinstance(relaxed, PolicyRelaxation) else math.inf


@lru_cache(maxsize=4)
def _listed(raw: bytes, k: int, ordered: bool) -> tuple[Array, float]:
    grid = Grid.of(np.frombuffer(raw).reshape(k, k))
    steps = extreme_steps(grid, ordered)
    steps.flags.writeable = False
    return steps, grid.unit
