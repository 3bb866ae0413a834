"""Total variation of a channel: its Dobrushin coefficient."""

from __future__ import annotations

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, Index
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.policy import Policy, ordered_pairs
from ldpopt.rounding import ULP, down, up

REFERENCE = "[GI, Def 7]"

_ENTRIES = 1 << 21
"""How many entries of pairs nearly as far apart as the farthest are compared exactly."""


def total_variation(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """The smallest eta in [0, 1] for which the channel is eta-TV: max over pairs of rows of their distance.

    This is the Dobrushin coefficient of the channel [GI, Def 7]. With a policy `graph`, only adjacent inputs
    are compared. O(k^2 m) time, O(k^2 + k m) memory, with k the number of distinct rows.

    >>> g = total_variation([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(g), 9), g.witness
    (0.5, Witness(inputs=(0, 1), outputs=(0,)))
    """
    channel = as_channel(channel)
    q = channel.matrix
    if graph is None:
        i, j, missed = _candidates(q)
    else:
        (i, j), missed = ordered_pairs(channel, graph), 0.0
        if len(i) == 0:
            return Guarantee("total_variation", 0.0, 0.0, None, True, REFERENCE)
    # Rows sum to one only within a tolerance, so the two one-sided sums may differ.
    sides = [
        np.array([np.maximum(q[a] - q[b], 0.0).sum() for a, b in zip(x, y, strict=True)]) for x, y in ((i, j), (j, i))
    ]
    at = int(np.argmax(np.maximum(*sides)))
    x, other = (int(i[at]), int(j[at])) if sides[0][at] >= sides[1][at] else (int(j[at]), int(i[at]))
    difference, above = q[x] - q[other], float(max(sides[0][at], sides[1][at]))
    if above == 0:
        return Guarantee("total_variation", missed, 0.0, None, True, REFERENCE)
    # An output whose two probabilities differ by rounding alone is no part of the event.
    event = tuple(channel.outputs[y] for y in np.flatnonzero(difference > 4 * ULP * q[x]))
    ulps = q.shape[1] + 4.0
    witness = Witness((channel.inputs[x], channel.inputs[other]), event)
    return Guarantee(
        "total_variation", min(1.0, up(above, 2 * ulps) + missed), min(1.0, down(above, ulps)), witness, True, REFERENCE
    )


def _candidates(q: Array) -> tuple[Index, Index, float]:
    """Pairs of rows, one of which is the farthest, and how much farther a pair that is left out may be.

    Twice the larger one-sided sum of a pair is the distance of its rows plus the difference of their sums.
    """
    from scipy.spatial.distance import cdist

    k, m = q.shape
    first: dict[bytes, int] = {}
    for x in range(k):
        first.setdefault(q[x].tobytes(), x)
    rows = np.fromiter(first.values(), np.intp)
    sums = q[rows].sum(axis=1, dtype=np.longdouble) - 1
    distance = cdist(q[rows], q[rows], "cityblock") + np.abs(sums[:, None] - sums).astype(np.float64)
    distance[np.tril_indices(len(rows))] = 0.0
    farthest = float(distance.max())
    if farthest == 0:
        return rows[:1], rows[:1], 0.0
    # Differences of sums are right to an absolute error only, all else to a relative one.
    error = 2 * (m + 2) * float(np.finfo(np.longdouble).eps)
    near = distance >= farthest * (1 - 2 * (m + 8) * ULP) - error
    i, j = np.divmod(np.flatnonzero(np.triu(near, 1)), len(rows))
    if len(i) * m > _ENTRIES:
        i, j = (np.array([part]) for part in np.unravel_index(int(distance.argmax()), distance.shape))
        return rows[i], rows[j], error
    return rows[i], rows[j], 0.0
