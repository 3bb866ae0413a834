"""The columns within `LocalDP` constraints along policy graphs: listed where extreme ones are few, else searched.

A search works with logarithms h, whose limits are  h_x - h_x' <= L[x,x'].  A step moves the h of a set of inputs, all
by the same amount, up or down until a limit stops it. The set is a single input, all inputs above a level, or a part
that is connected by limits that hold with equality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.base import plain_caps
from ldpopt.design.estimation.branches import Branches
from ldpopt.design.estimation.prices import EXACT_LIMIT, ROWS, Charges, Prices
from ldpopt.design.estimation.relaxation import PRODUCTS, ROUNDING, PolicyRelaxation
from ldpopt.design.estimation.staircase import BATCH, LISTED, AnyRelaxation, Columns, StaircaseColumns
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

if TYPE_CHECKING:
    pass

APART = 35.0  # The log-ratio that stands for no limit, in nats: entries of exp(-35) are as good as 0.
STARTS = 64  # The most columns from which a search starts.
BLOCK = 32  # The number of columns moved at a time.


def first_columns(limits: Array) -> Array:
    """Logarithms (n, k) of the constant column, and of columns with a peak or a valley at an input or a random set."""
    k = len(limits)
    finite = finite_limits(limits)
    rng = np.random.default_rng(k)
    sets = [rng.random((4 * k, k)) < share for share in (0.2, 0.5)]
    members = np.vstack([np.eye(k, dtype=bool), *sets])
    members = members[members.any(axis=1)]
    # The highest column that is 0 on a set, and the lowest.
    peaks = np.array([-finite[inside].min(axis=0) for inside in members])
    valleys = np.array([finite[:, inside].min(axis=1) for inside in members])
    return np.unique(_topped(np.vstack([np.zeros((1, k)), peaks, valleys])), axis=0)


def climb(limits: Array, prices: Prices, starts: Array, count: int, above: float) -> Array:
    """Logarithms (n, k) of up to `count` columns that gain more than `above`, met on the way up from `starts`."""
    finite = finite_limits(limits)
    heights = np.unique(starts, axis=0)
    if len(heights) > STARTS:
        heights = heights[np.random.default_rng(len(heights)).choice(len(heights), STARTS, replace=False)]
    value = prices.gains(np.exp(heights))
    met, worth = heights, value
    for _ in range(4 * len(limits)):
        parts = [_best_move(finite, prices, part) for part in np.array_split(heights, 1 + len(heights) // BLOCK)]
        near, gains = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        better = gains > value + 1e-13 * np.abs(gains)
        if not better.any():
            break
        heights, value = near[better], gains[better]
        met, worth = np.vstack([met, heights]), np.append(worth, value)
    met, index = np.unique(met, axis=0, return_index=True)
    worth = worth[index]
    order = np.argsort(-worth)[:count]
    return np.asarray(met[order[worth[order] > above]])


def finite_limits(limits: Array) -> Array:
    """The limits (k, k), with a large number in place of inf."""
    finite = np.isfinite(limits)
    return np.where(finite, limits, max(APART, float(limits[finite].max())))


def _best_move(limits: Array, prices: Prices, heights: Array) -> tuple[Array, Array]:
    n, k = heights.shape
    room = limits - (heights[:, :, None] - heights[:, None, :])
    moved = np.concatenate(
        [
            np.broadcast_to(np.eye(k, dtype=bool), (n, k, k)),
            heights[:, None, :] >= heights[:, :, None],
            np.array([_hanging(gaps, equality_slack(limits)) for gaps in room]),
        ],
        axis=1,
    )
    apart = moved[:, :, :, None] & ~moved[:, :, None, :]
    up = np.where(apart, room[:, None], np.inf).min(axis=(2, 3))
    down = np.where(apart, room.transpose(0, 2, 1)[:, None], np.inf).min(axis=(2, 3))
    shifts = np.concatenate([up, -down], axis=1)
    shifts[~np.isfinite(shifts)] = 0.0
    near = _topped(heights[:, None, :] + shifts[:, :, None] * np.concatenate([moved, moved], axis=1))
    gains = prices.gains(np.exp(near).reshape(-1, k)).reshape(n, -1)
    best = gains.argmax(axis=1)
    row = np.arange(n)
    return near[row, best], gains[row, best]


def _hanging(room: Array, slack: float) -> npt.NDArray[np.bool_]:
    """(k, k) the inputs below each input in a tree, rooted at the first input, of limits that hold with equality."""
    from scipy.sparse.csgraph import breadth_first_order

    tight = (room <= slack) | (slack >= room.T)
    order, above = breadth_first_order(tight, 0, directed=False)
    below = np.eye(len(room), dtype=bool)
    for x in order[:0:-1]:
        below[above[x]] |= below[x]
    return below


def _topped(heights: Array) -> Array:
    return np.asarray(np.round(heights - heights.max(axis=-1, keepdims=True), 12) + 0.0)


MAX_START = 400  # Up to this many extreme columns, all of them are there from the start.


class PolicyColumns(ListedColumns, Columns):
    """The extreme columns under limits (k, k) of the log-ratios between inputs."""

    def start(self) -> Array:
        """All of a short list; else `MAX_START` at random, and the columns in which some input stands out the most."""
        if len(self.heights) <= MAX_START:
            return self.heights
        spread = np.random.default_rng(len(self.heights)).choice(len(self.heights), MAX_START, replace=False)
        values = self.values(self.heights)
        share = values / values.sum(axis=1, keepdims=True)
        outstanding = np.concatenate([np.argsort(-share, axis=0)[:4].ravel(), np.argsort(share, axis=0)[:4].ravel()])
        # The constant column, if it is listed: without it, channels may be unable to meet a cap on total variation.
        flat = np.flatnonzero(np.ptp(self.steps, axis=1) == 0)
        return np.asarray(self.heights[np.unique(np.concatenate([spread, outstanding, flat]))])

    def best(self, prices: Prices, count: int, least: float) -> Array:
        """The best columns of the whole list, up to `count` that gain more than `least`."""
        parts = np.array_split(self.heights, 1 + len(self.heights) // ROWS)
        gains = np.concatenate([prices.gains(self.values(part)) for part in parts])
        best = np.argsort(-gains)[:count]
        return np.asarray(self.heights[best[gains[best] > least]])

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """The best columns of the whole list."""
        return self.best(prices, BATCH, least)

    exact = True  # the list is complete

    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """The largest gain of the listed columns, whose logarithms are exact multiples of a unit."""
        if charges.pairs.any() and not self.ordered:
            return math.inf
        if not charges.arithmetic.exact:
            return charges.most(*self.enclosed(FLOAT))
        # Enclosures in floats tell which columns may have the largest gain; only these are computed exactly.
        kernel, prior = (FLOAT.between(part.lower, part.upper) for part in (charges.kernel, charges.prior))
        floats, (base, rise) = Charges(kernel, prior, charges.rows, charges.pairs), self.enclosed(FLOAT)
        parts = [slice(start, start + ROWS) for start in range(0, len(base), ROWS)]
        each = [floats.prices(base[part], rise[part]) for part in parts]
        low, high = (np.concatenate([np.asarray(getattr(part, end)) for part in each]) for end in ("lower", "upper"))
        return charges.most(*self.enclosed(charges.arithmetic, np.flatnonzero(high >= low.max())))


class SearchedColumns(Columns):
    """The columns under limits (k, k) of the log-ratios between inputs, whose extreme ones are too many to list."""

    kind = name = "columns of the policy graph"

    def __init__(self, limits: Array) -> None:
        self.limits = limits
        self.epsilon = float(limits.max())

    def start(self) -> Array:
        """The constant column, and columns with peaks and valleys."""
        return first_columns(self.limits)

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """The columns that local search finds from `used`, or else from the columns of `start`."""
        climbed = climb(self.limits, prices, used, BATCH, least)
        return climbed if len(climbed) else climb(self.limits, prices, self.start(), BATCH, least)

    exact = False  # the columns cannot all be priced

    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """An upper bound on the gain of every column, by a relaxation with products of two limits."""
        return relaxed.most(charges, self.limits) if isinstance(relaxed, PolicyRelaxation) else math.inf


def pricing(k: int, rows: float, constraints: Sequence[Any], relaxed: Any) -> Work:
    """What `Columns.most` takes at most for a kernel (rows, k), as it is limited in what it looks at."""
    form = Work.on(float(k) ** 2, 2.0 * rows + 4.0 * k)
    if has_policy_graph(constraints):
        faces = float(min(k * k, 2 * PRODUCTS)) + k if isinstance(relaxed, PolicyRelaxation) else 0.0
        products = Work.on(faces**2, 20.0 + k / 4, faces**2 * (1 + k / 50))
        listed = Work.on(MAX_LABELED_COLUMNS, 3.0 * k * (rows + 4), ROWS * k * (rows + 4))
        return form + listing_work(k, constraints) + listed.in_floats + products
    if k <= LISTED:
        return form + Work.on(2.0**k, 40.0 + 4.0 * k * (rows + 4), 2.0**k * (rows + k + 4))
    if isinstance(relaxed, Branches | Thresholds):
        searched = relaxed.work(k * rows) if isinstance(relaxed, Thresholds) else relaxed.work(k) + 0.5 * float(k) ** 4
        return form + Work(searched, 2e8 + 100.0 * float(k) ** 2 + 3.0 * float(k) ** 3).in_floats
    if relaxed is not None:
        return form
    return form + Work(12.0 * 2.0 ** min(k, EXACT_LIMIT), 2e8).in_floats


def columns_for(
    utility: FisherInformation, constraints: Sequence[Any], priced: bool = False
) -> tuple[Columns, float | None]:
    """The columns within `constraints`, and the cap on total variation, None if it cannot bind. Raises `InvalidInput`
    where two inputs have no path, so that entries may be 0, and a category's share may be 0, too. priced : whether
    pairs have prices even if the cap cannot bind.
    """
    k = len(utility.prior)
    limits = policy_limits(constraints, tuple(utility.inputs or range(k)))
    apart = limits[~np.eye(k, dtype=bool)]
    widest = float(apart.max())
    _, eta = plain_caps(constraints)
    capped = eta < math.tanh(widest / 2)  # [GI, Prop 2], of every two inputs
    if math.isinf(widest) and (utility.prior.min() <= 0 or utility.neighbourhood is not None):
        raise InvalidInput(
            "policy graph: expected a path between any two inputs where the share of a category may be 0, got none"
        )
    if math.isfinite(widest) and widest == apart.min():
        # Limits along a graph are rounded products and sums, so that a little is added to be safe.
        if has_policy_graph(constraints):
            widest *= 1 + ROUNDING
        # True for the variance of one contrast, whose kernel has one row.
        single_row = getattr(utility.criterion, "additive", False) and utility.criterion.kernel_rows(k) == 1
        line = bool(single_row and not capped and utility.prior.min() > 0 and utility.neighbourhood is None)
        return StaircaseColumns(k, widest, line), eta if capped else None
    ordered = capped or priced
    if too_many(np.ascontiguousarray(limits).tobytes(), k, ordered):
        return SearchedColumns(limits), eta if capped else None
    return PolicyColumns(limits, ordered), eta if capped else None
