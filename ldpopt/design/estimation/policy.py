"""The columns within `LocalDP` constraints along policy graphs: listed where extreme ones are few, else searched.

A search works with logarithms h, whose limits are  h_x - h_x' <= L[x,x'].  A step moves the h of a set of inputs, all
by the same amount, up or down until a limit stops it. The set is a single input, all inputs above a level, or a part
that is connected by limits that hold with equality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.base import plain_caps
from ldpopt.design.estimation.branches import Branches
from ldpopt.design.estimation.prices import COLUMNS_PER_BLOCK, MAX_INPUTS_ALL_PRICED, Charges, Prices
from ldpopt.design.estimation.relaxation import LIMIT_RTOL, MAX_PRODUCTS, PolicyRelaxation
from ldpopt.design.estimation.staircase import (
    MAX_COLUMNS_PER_ROUND,
    MAX_INPUTS_PRICED_SINGLY,
    AnyRelaxation,
    Columns,
    StaircaseColumns,
)
from ldpopt.design.estimation.thresholds import Thresholds
from ldpopt.design.patterns.policy import (
    MAX_LABELED_COLUMNS,
    ListedColumns,
    equality_slack,
    has_policy_graph,
    listing_work,
    policy_limits,
    too_many,
)  # fmt: skip
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.work import Work
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.values.distribution import Array

UNLIMITED_LOG_RATIO = 35.0  # Represents no limit, in nats: entries of exp(-35) are as good as 0.
MAX_STARTS = 64  # Columns that a search starts from.
COLUMNS_MOVED_AT_ONCE = 32


def first_columns(limits: Array) -> Array:
    """List logarithms (n, k) of the constant column and of simple columns.

    These have a peak or a valley at an input or a random set.
    """
    k = len(limits)
    finite = finite_limits(limits)
    rng = np.random.default_rng(k)
    sets = [rng.random((4 * k, k)) < inclusion_probability for inclusion_probability in (0.2, 0.5)]
    members = np.vstack([np.eye(k, dtype=bool), *sets])
    members = members[members.any(axis=1)]
    # The highest column that is 0 on a set, and the lowest.
    peaks = np.array([-finite[is_member].min(axis=0) for is_member in members])
    valleys = np.array([finite[:, is_member].min(axis=1) for is_member in members])
    return np.unique(_shift_to_zero(np.vstack([np.zeros((1, k)), peaks, valleys])), axis=0)


def climb(limits: Array, prices: Prices, starts: Array, count: int, min_gain: float) -> Array:
    """Find logarithms (n, k) of up to `count` columns that gain more than `min_gain`.

    They are visited during a local search from `starts`.
    """
    finite = finite_limits(limits)
    heights = np.unique(starts, axis=0)
    if len(heights) > MAX_STARTS:
        heights = heights[np.random.default_rng(len(heights)).choice(len(heights), MAX_STARTS, replace=False)]
    value = prices.gains(np.exp(heights))
    visited_heights, visited_values = heights, value
    for _ in range(4 * len(limits)):
        moves = [
            _best_move(finite, prices, part)
            for part in np.array_split(heights, 1 + len(heights) // COLUMNS_MOVED_AT_ONCE)
        ]
        moved_heights, gains = np.vstack([part[0] for part in moves]), np.concatenate([part[1] for part in moves])
        is_better = gains > value + 1e-13 * np.abs(gains)
        if not is_better.any():
            break
        heights, value = moved_heights[is_better], gains[is_better]
        visited_heights, visited_values = np.vstack([visited_heights, heights]), np.append(visited_values, value)
    visited_heights, index = np.unique(visited_heights, axis=0, return_index=True)
    visited_values = visited_values[index]
    order = np.argsort(-visited_values)[:count]
    return np.asarray(visited_heights[order[visited_values[order] > min_gain]])


def finite_limits(limits: Array) -> Array:
    """Replace infinite limits (k, k) by a large number."""
    finite = np.isfinite(limits)
    return np.where(finite, limits, max(UNLIMITED_LOG_RATIO, float(limits[finite].max())))


def _best_move(limits: Array, prices: Prices, heights: Array) -> tuple[Array, Array]:
    n, k = heights.shape
    slacks = limits - (heights[:, :, None] - heights[:, None, :])
    moved_sets = np.concatenate(
        [
            np.broadcast_to(np.eye(k, dtype=bool), (n, k, k)),
            heights[:, None, :] >= heights[:, :, None],
            np.array([_subtree_inputs(gaps, equality_slack(limits)) for gaps in slacks]),
        ],
        axis=1,
    )
    is_between = moved_sets[:, :, :, None] & ~moved_sets[:, :, None, :]
    upward_step = np.where(is_between, slacks[:, None], np.inf).min(axis=(2, 3))
    downward_step = np.where(is_between, slacks.transpose(0, 2, 1)[:, None], np.inf).min(axis=(2, 3))
    shifts = np.concatenate([upward_step, -downward_step], axis=1)
    shifts[~np.isfinite(shifts)] = 0.0
    moved_heights = _shift_to_zero(
        heights[:, None, :] + shifts[:, :, None] * np.concatenate([moved_sets, moved_sets], axis=1)
    )
    gains = prices.gains(np.exp(moved_heights).reshape(-1, k)).reshape(n, -1)
    best = gains.argmax(axis=1)
    row = np.arange(n)
    return moved_heights[row, best], gains[row, best]


def _subtree_inputs(slacks: Array, slack: float) -> npt.NDArray[np.bool_]:
    """List (k, k) the inputs below each input in a tree of limits that hold with equality.

    The tree is rooted at the first input.
    """
    from scipy.sparse.csgraph import breadth_first_order

    is_tight = (slacks <= slack) | (slack >= slacks.T)
    order, parent = breadth_first_order(is_tight, 0, directed=False)
    descendants = np.eye(len(slacks), dtype=bool)
    for x in order[:0:-1]:
        descendants[parent[x]] |= descendants[x]
    return descendants


def _shift_to_zero(heights: Array) -> Array:
    return np.asarray(np.round(heights - heights.max(axis=-1, keepdims=True), 12) + 0.0)


MAX_INITIAL_COLUMNS = 400  # Up to this many extreme columns, all of them are in the first program.


class PolicyColumns(ListedColumns, Columns):
    """The extreme columns under limits (k, k) of the log-ratios between inputs."""

    def start(self) -> Array:
        """List the first columns.

        They are all of a short list. Otherwise they are `MAX_INITIAL_COLUMNS` at random, and the columns where an input
        is most extreme.
        """
        if len(self.heights) <= MAX_INITIAL_COLUMNS:
            return self.heights
        random_columns = np.random.default_rng(len(self.heights)).choice(
            len(self.heights), MAX_INITIAL_COLUMNS, replace=False
        )
        values = self.values(self.heights)
        share = values / values.sum(axis=1, keepdims=True)
        extreme_columns = np.concatenate(
            [np.argsort(-share, axis=0)[:4].ravel(), np.argsort(share, axis=0)[:4].ravel()]
        )
        # The constant column, if it is listed: without it, channels may be unable to meet a cap on total variation.
        constant = np.flatnonzero(np.ptp(self.steps, axis=1) == 0)
        return np.asarray(self.heights[np.unique(np.concatenate([random_columns, extreme_columns, constant]))])

    def best(self, prices: Prices, count: int, min_gain: float) -> Array:
        """List the best columns of the whole list that gain more than `min_gain`."""
        parts = np.array_split(self.heights, 1 + len(self.heights) // COLUMNS_PER_BLOCK)
        gains = np.concatenate([prices.gains(self.values(part)) for part in parts])
        best = np.argsort(-gains)[:count]
        return np.asarray(self.heights[best[gains[best] > min_gain]])

    def paying(self, prices: Prices, columns_in_use: Array, min_gain: float) -> Array:
        """List the best columns of the whole list that gain more than `min_gain`."""
        return self.best(prices, MAX_COLUMNS_PER_ROUND, min_gain)

    exact = True  # The list is complete.

    def gain_bound(self, charges: Charges, relaxation: AnyRelaxation | None) -> float:
        """Bound the largest gain of the listed columns.

        Their logarithms are exact multiples of a unit.
        """
        if charges.pairs.any() and not self.ordered:
            return math.inf
        if not charges.arithmetic.exact:
            return charges.gain_bound(*self.enclosed(FLOAT))
        # Enclosures in floats show which columns may have the largest gain; only these are computed exactly.
        kernel, prior = (FLOAT.between(part.lower, part.upper) for part in (charges.kernel, charges.prior))
        floats, (base, rise) = Charges(kernel, prior, charges.rows, charges.pairs), self.enclosed(FLOAT)
        blocks = [slice(start, start + COLUMNS_PER_BLOCK) for start in range(0, len(base), COLUMNS_PER_BLOCK)]
        block_gains = [floats.prices(base[part], rise[part]) for part in blocks]
        low, high = (
            np.concatenate([np.asarray(getattr(part, end)) for part in block_gains]) for end in ("lower", "upper")
        )
        return charges.gain_bound(*self.enclosed(charges.arithmetic, np.flatnonzero(high >= low.max())))


class SearchedColumns(Columns):
    """The columns under limits (k, k) of the log-ratios between inputs, whose extreme ones are too many to list."""

    kind = name = "columns of the policy graph"

    def __init__(self, limits: Array) -> None:
        self.limits = limits
        self.epsilon = float(limits.max())

    def start(self) -> Array:
        """List the constant column, and columns with peaks and valleys."""
        return first_columns(self.limits)

    def paying(self, prices: Prices, columns_in_use: Array, min_gain: float) -> Array:
        """Find columns by local search from the columns in use, or else from those of `start`."""
        columns = climb(self.limits, prices, columns_in_use, MAX_COLUMNS_PER_ROUND, min_gain)
        return columns if len(columns) else climb(self.limits, prices, self.start(), MAX_COLUMNS_PER_ROUND, min_gain)

    exact = False  # The columns cannot all be priced.

    def gain_bound(self, charges: Charges, relaxation: AnyRelaxation | None) -> float:
        """Bound the gain of every column, by a relaxation with products of two limits."""
        return relaxation.gain_bound(charges, self.limits) if isinstance(relaxation, PolicyRelaxation) else math.inf


def pricing(k: int, rows: float, constraints: Sequence[Any], relaxation: Any) -> Work:
    """Bound the work of `Columns.most` for a kernel (rows, k)."""
    form = Work.on(float(k) ** 2, 2.0 * rows + 4.0 * k)
    if has_policy_graph(constraints):
        faces = float(min(k * k, 2 * MAX_PRODUCTS)) + k if isinstance(relaxation, PolicyRelaxation) else 0.0
        products = Work.on(faces**2, 20.0 + k / 4, faces**2 * (1 + k / 50))
        list_work = Work.on(MAX_LABELED_COLUMNS, 3.0 * k * (rows + 4), COLUMNS_PER_BLOCK * k * (rows + 4))
        return form + listing_work(k, constraints) + list_work.in_floats + products
    if k <= MAX_INPUTS_PRICED_SINGLY:
        return form + Work.on(2.0**k, 40.0 + 4.0 * k * (rows + 4), 2.0**k * (rows + k + 4))
    if isinstance(relaxation, Branches | Thresholds):
        search_work = (
            relaxation.work(k * rows)
            if isinstance(relaxation, Thresholds)
            else relaxation.work(k) + 0.5 * float(k) ** 4
        )
        return form + Work(search_work, 2e8 + 100.0 * float(k) ** 2 + 3.0 * float(k) ** 3).in_floats
    if relaxation is not None:
        return form
    return form + Work(12.0 * 2.0 ** min(k, MAX_INPUTS_ALL_PRICED), 2e8).in_floats


def columns_for(
    utility: FisherInformation, constraints: Sequence[Any], has_pair_prices: bool = False
) -> tuple[Columns, float | None]:
    """Return the columns within `constraints`, and the cap on total variation.

    The cap is None if it cannot bind. Raises `InvalidInput` if two inputs have no path, so that entries may be 0, and a
    category's proportion may be 0, too. has_pair_prices : True if pairs have prices even if the cap cannot bind.
    """
    k = len(utility.prior)
    limits = policy_limits(constraints, tuple(utility.inputs or range(k)))
    off_diagonal = limits[~np.eye(k, dtype=bool)]
    largest_limit = float(off_diagonal.max())
    _, eta = plain_caps(constraints)
    is_capped = eta < math.tanh(largest_limit / 2)  # [GI, Prop 2], of every two inputs
    if math.isinf(largest_limit) and (utility.prior.min() <= 0 or utility.neighbourhood is not None):
        raise InvalidInput(
            "policy graph: expected a path between any two inputs where the share of a category may be 0, got none"
        )
    if math.isfinite(largest_limit) and largest_limit == off_diagonal.min():
        # Limits along a graph are rounded products and sums, so that a little is added to be safe.
        if has_policy_graph(constraints):
            largest_limit *= 1 + LIMIT_RTOL
        # True for the variance of one contrast, whose kernel has one row.
        single_row = getattr(utility.criterion, "additive", False) and utility.criterion.kernel_rows(k) == 1
        is_line = bool(single_row and not is_capped and utility.prior.min() > 0 and utility.neighbourhood is None)
        return StaircaseColumns(k, largest_limit, is_line), eta if is_capped else None
    has_order_cuts = is_capped or has_pair_prices
    if too_many(np.ascontiguousarray(limits).tobytes(), k, has_order_cuts):
        return SearchedColumns(limits), eta if is_capped else None
    return PolicyColumns(limits, has_order_cuts), eta if is_capped else None
