"""Total variation of a channel: its Dobrushin coefficient."""

from __future__ import annotations

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, Index
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.hockey_stick import hockey_stick_of_pairs, positive_event
from ldpopt.privacy.laws import centred
from ldpopt.privacy.pairs import ENTRIES
from ldpopt.privacy.policy import Policy, ordered_pairs
from ldpopt.rounding import ULP, first_largest
from ldpopt.tolerances import TIE

REFERENCE = "[GI, Def 7]"

_ENTRIES = 1 << 21
"""How many entries are compared exactly, of pairs that are nearly as far apart as the farthest pair."""


def total_variation(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """The smallest eta in [0, 1] for which the channel is eta-TV: the largest distance between two of its rows.

    The distance of two rows is half the sum of |Q[x, y] - Q[x', y]| over y, after both are divided by their sums. This
    is the Dobrushin coefficient of the channel [GI, Def 7]. With a policy `graph`, only adjacent inputs are compared.
    Takes O(k^2 m) time and O(k^2 + k m) memory, where k is the number of distinct rows.

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
    step = max(1, ENTRIES // q.shape[1])
    bounds = [hockey_stick_of_pairs(q[i[at : at + step]], q[j[at : at + step]], 0.0) for at in range(0, len(i), step)]
    below, above = (np.concatenate(side) for side in zip(*bounds, strict=True))
    low, high = float(below.max()), float(above.max())
    if high == 0:
        return Guarantee("total_variation", missed, 0.0, None, True, REFERENCE)
    x, other = (int(end[first_largest(above)]) for end in (i, j))
    event = positive_event(q[[x]], q[[other]], 0.0)[0]
    witness = Witness(
        (channel.inputs[x], channel.inputs[other]), tuple(channel.outputs[y] for y in np.flatnonzero(event))
    )
    return Guarantee("total_variation", min(1.0, high + missed), low, witness, missed <= 1e-9 * high, REFERENCE)


def _candidates(q: Array) -> tuple[Index, Index, float]:
    """Pairs of rows among which is a farthest one, and how much farther apart an omitted pair may be."""
    from scipy.spatial.distance import cdist

    k, m = q.shape
    first: dict[bytes, int] = {}
    for x in range(k):
        first.setdefault(q[x].tobytes(), x)
    rows = np.fromiter(first.values(), np.intp)
    _, away, lost = centred(q[rows])
    distance = cdist(away, away, "cityblock")
    distance[np.tril_indices(len(rows))] = 0.0
    farthest = float(distance.max())
    if farthest == 0:
        return rows[:1], rows[:1], float(lost.max()) if (q != q[0]).any() else 0.0
    error = 2 * float(lost.max())
    near = distance >= farthest * (1 - max(TIE, 2 * (m + 8) * ULP)) - 2 * error
    i, j = np.divmod(np.flatnonzero(np.triu(near, 1)), len(rows))
    if len(i) * m > _ENTRIES:
        flat = distance.ravel()
        i, j = np.divmod(np.unique([first_largest(flat), flat.argmax()]), len(rows))
        return rows[i], rows[j], error + (m + 8) * ULP * farthest
    return rows[i], rows[j], 0.0
