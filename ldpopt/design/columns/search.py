"""Columns of a policy graph by local search, where its extreme columns are too many to list.

In logarithms h the limits are  h_x - h_x' <= L[x,x'].  A step moves the h of a set of inputs, all by the same amount,
up or down until a limit stops it. The set is a single input, all inputs above a level, or a part that is connected by
limits that hold with equality.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.extreme import slack_of
from ldpopt.design.columns.prices import Prices
from ldpopt.distribution import Array

APART = 35.0
"""The log-ratio that stands for no limit, in nats: entries of exp(-35) are as good as 0."""


STARTS = 64
"""The most columns from which a search starts."""


BLOCK = 32
"""The number of columns moved at a time."""


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
    found, worth = heights, value
    for _ in range(4 * len(limits)):
        parts = [_best_move(finite, prices, part) for part in np.array_split(heights, 1 + len(heights) // BLOCK)]
        near, gains = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        better = gains > value + 1e-13 * np.abs(gains)
        if not better.any():
            break
        heights, value = near[better], gains[better]
        found, worth = np.vstack([found, heights]), np.append(worth, value)
    found, index = np.unique(found, axis=0, return_index=True)
    worth = worth[index]
    order = np.argsort(-worth)[:count]
    return np.asarray(found[order[worth[order] > above]])


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
            np.array([_hanging(one, slack_of(limits)) for one in room]),
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
    at = gains.argmax(axis=1)
    row = np.arange(n)
    return near[row, at], gains[row, at]


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
