"""Mending a matrix that is nearly a channel, or a channel that is nearly private enough, and listing the changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.base import Constraint, within
from ldpopt.design.constraints.repair import Unrepairable, repair
from ldpopt.distribution import Array
from ldpopt.errors import Phrase, invalid
from ldpopt.studio.pasted import Parts
from ldpopt.tolerances import ROW_SUM

SLIP = 1e-6
"""A negative entry down to minus this number counts as a rounded zero."""


@dataclass(frozen=True, eq=False)
class Mended:
    """A channel that was made from a matrix that is not a channel, or not private enough.

    steps : the changes, one sentence each. moved : the largest total variation between a row before, divided by its
        sum, and the row afterwards.
    """

    channel: Channel
    steps: tuple[str, ...]
    moved: float


def mended(parts: Parts, limits: Sequence[Constraint] = ()) -> Mended:
    """A channel near the matrix: rows are divided by their sums, and the package's repair brings them within `limits`.

    If the repair alone is not enough, the channel is first mixed with its mean row, with the least weight that lets the
    repair succeed. `InvalidInput` for a matrix whose rows cannot be divided by their sums, such as a negative one.

    >>> from ldpopt.design import LocalDP
    >>> made = mended((np.array([[3.0, 1.0], [1.0, 3.0]]), None, None), [LocalDP(1.0)])
    >>> made.channel.matrix.round(4).tolist(), len(made.steps)
    ([[0.7311, 0.2689], [0.2689, 0.7311]], 2)
    """
    matrix, inputs, outputs = parts
    whole, steps = _rows_that_sum(matrix)
    channel = Channel(whole, inputs, outputs)
    if limits and not within(channel, limits):
        matrix, said = _within(whole, limits, channel)
        channel = Channel(matrix, channel.inputs, channel.outputs)
        steps.append(said)
    return Mended(channel, tuple(steps), float(np.abs(channel.matrix - whole).sum(axis=1).max() / 2))


def _rows_that_sum(matrix: Array) -> tuple[Array, list[str]]:
    steps = []
    lowest = float(matrix.min())
    if not lowest >= -SLIP:
        x, y = (int(at) for at in np.unravel_index(int(matrix.argmin()), matrix.shape))
        raise invalid("mend", "non-negative entries (no division mends a negative one)", lowest, f"row {x}, column {y}")
    if lowest < 0:
        matrix = np.maximum(matrix, 0.0)
        steps.append(f"Entries down to {lowest:g} became zero.")
    # Rows are first scaled by powers of two, without rounding, so that no sum overflows.
    top = matrix.max(axis=1)
    if not top.min() > 0:
        raise invalid("mend", "a positive entry in each row", Phrase("a row of zeros"), f"row {int(top.argmin())}")
    powers = np.frexp(top)[1]
    scaled = np.ldexp(matrix, -powers[:, None])
    sums = np.array([math.fsum(row) for row in scaled.tolist()])
    with np.errstate(over="ignore"):
        true = np.ldexp(sums, powers)
    off = ~(np.abs(true - 1) <= ROW_SUM)
    if off.any():
        matrix = np.where(off[:, None], scaled / sums[:, None], matrix)
        low, high = float(true[off].min()), float(true[off].max())
        between = f"from {low:.12g} to {high:.12g}" if low < high else f"{low:.12g}"
        count = int(off.sum())
        steps.append(
            f"{count} row{'s' * (count > 1)} of {len(matrix)}, whose sums were {between}, divided by "
            f"{'their sums' if count > 1 else 'its sum'}."
        )
    return matrix, steps


def _within(matrix: Array, limits: Sequence[Constraint], channel: Channel) -> tuple[Array, str]:
    said = " and ".join(f"{type(one).__name__}({one.bound!r})" for one in limits)
    made = _repaired(matrix, limits, channel)
    if made is not None:
        return made, f"Brought within {said} by the repair that every design passes."
    mean = matrix.mean(axis=0)
    low, high, best = 0.0, 1.0, _repaired(np.tile(mean, (len(matrix), 1)), limits, channel)
    if best is None:
        raise invalid("mend", "limits that a channel without any information keeps", Phrase(said))
    for _ in range(30):
        middle = (low + high) / 2
        found = _repaired((1 - middle) * matrix + middle * mean, limits, channel)
        low, high, best = (middle, high, best) if found is None else (low, middle, found)
        if not high - low > 1e-4 * high:
            break
    return best, f"Mixed with its mean row, by a share of {high:.4g}, and brought within {said} by the repair."


def _repaired(matrix: Array, limits: Sequence[Constraint], channel: Channel) -> Array | None:
    try:
        return np.asarray(repair(matrix, limits, channel.inputs))
    except Unrepairable:
        return None
