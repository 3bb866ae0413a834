"""The extreme columns of (epsilon, delta)-LDP: whole powers of e^epsilon on a support, zero elsewhere.

The cone of all columns q >= 0 is cut by the planes q_x = e^epsilon q_x'. Inside each piece every excess
(q_x - e^epsilon q_x')_+ is linear, so that a convex and homogeneous utility loses nothing when a column is split into
the extreme rays of its piece. On such a ray the equalities q_x = e^epsilon q_x' connect the whole support. So its
levels, the logarithms in units of epsilon, are whole numbers that take all values 0..h. A support of one input gives a
unit vector. A larger one has h >= 1, because inputs of the same level are connected only through another level. There
are 4, 21, 138, 1055, 9308 such columns for 2 to 6 inputs.

Where total variation is capped too, the cone is also cut by the planes q_x = q_x', which connect inputs of the same
level. Then the columns of h = 0 are extreme as well: constants on two inputs or more, but not on all.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import numpy.typing as npt

Levels = npt.NDArray[np.int64]
LIMIT = 6  # The most inputs whose columns are listed: 7 inputs have about 95 000.
ABSENT = -1  # The level of an input outside the support.
SHAPES = ("01", "10", "010", "120", "021", "0121", "1210")
"""Levels on blocks of neighbouring inputs, one digit for each block, that were enough in all cases seen."""


@cache
def level_columns(k: int, flat: bool = False) -> Levels:
    """(n, k) levels of all extreme columns of k <= `LIMIT` inputs, `ABSENT` outside the support.

    flat : whether to add the columns that are constant on some inputs, which a cap on total variation needs.

    >>> [len(level_columns(k)) for k in (2, 3, 4, 5)]
    [4, 21, 138, 1055]
    >>> [len(level_columns(k, flat=True)) for k in (2, 3, 4, 5)]
    [4, 24, 148, 1080]
    """
    found = []
    for size in range(1, k + 1):
        constant = [(0,) * size] if flat and 1 < size < k else []
        for filled in [*constant, *_filling(size)]:
            for support in itertools.combinations(range(k), size):
                column = np.full(k, ABSENT)
                column[list(support)] = filled
                found.append(column)
    made = np.array(found, dtype=np.int64)
    made.setflags(write=False)
    return made


def _filling(size: int) -> list[tuple[int, ...]]:
    """The possible levels of a support of this size: all values 0..h occur, with h >= 1 unless the size is 1."""
    if size == 1:
        return [(0,)]
    every = itertools.product(range(size), repeat=size)
    return [one for one in every if max(one) >= 1 and len(set(one)) == max(one) + 1]


def level_shapes(k: int) -> Levels:
    """(n, k) levels of the unit vectors and of the columns of the seven `SHAPES` on k sorted inputs.

    n = k + 2(k-1) + 3 C(k-1, 2) + 2 C(k-1, 3), which grows as k^3/3.

    >>> [len(level_shapes(k)) for k in (2, 3, 4, 5)]
    [4, 10, 21, 39]
    """
    units = np.where(np.eye(k, dtype=bool), 0, ABSENT).astype(np.int64)
    found = [units]
    for shape in SHAPES:
        digits = np.array([int(digit) for digit in shape], dtype=np.int64)
        cuts = np.array(list(itertools.combinations(range(1, k), len(shape) - 1)), dtype=np.int64)
        if len(cuts):
            blocks = (np.arange(k)[None, :, None] >= cuts[:, None, :]).sum(axis=2)
            found.append(digits[blocks])
    return np.concatenate(found)
