"""Total variation of a channel: its Dobrushin coefficient."""

from __future__ import annotations

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.policy import Policy, ordered_pairs
from ldpopt.rounding import ULP, down, up

REFERENCE = "[GI, Def 7]"


def total_variation(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """The smallest eta in [0, 1] for which the channel is eta-TV: max over pairs of rows of their distance.

    This is the Dobrushin coefficient of the channel [GI, Def 7]. With a policy `graph`, only adjacent inputs
    are compared. O(k^2 m) time, O(k^2 + k m) memory, with k the number of distinct rows.

    >>> g = total_variation([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(g), 9), g.witness
    (0.5, Witness(inputs=(0, 1), outputs=(0,)))
    """
    from scipy.spatial.distance import cdist

    channel = as_channel(channel)
    q = channel.matrix
    # Rows sum to one only within a tolerance: twice the larger one-sided sum is the distance plus the difference.
    excess = q.sum(axis=1) - 1.0
    if graph is None:
        rows = np.arange(len(q)) if len(q) <= 1000 else np.unique(q, axis=0, return_index=True)[1]
        distance = cdist(q[rows], q[rows], "cityblock") + np.abs(excess[rows, None] - excess[rows])
        x, other = (int(rows[i]) for i in np.unravel_index(int(distance.argmax()), distance.shape))
    else:
        i, j = ordered_pairs(channel, graph)
        if len(i) == 0:
            return Guarantee("total_variation", 0.0, 0.0, None, True, REFERENCE)
        distance = np.array([np.abs(q[a] - q[b]).sum() for a, b in zip(i, j, strict=True)])
        at = int(np.argmax(distance + np.abs(excess[i] - excess[j])))
        x, other = int(i[at]), int(j[at])
    difference = q[x] - q[other]
    above, below = float(difference[difference > 0].sum()), float(-difference[difference < 0].sum())
    if below > above:
        x, other, difference, above = other, x, -difference, below
    if above == 0:
        return Guarantee("total_variation", 0.0, 0.0, None, True, REFERENCE)
    # An output whose two probabilities differ by rounding alone is no part of the event.
    event = tuple(channel.outputs[y] for y in np.flatnonzero(difference > 4 * ULP * q[x]))
    ulps = q.shape[1] + 4.0
    witness = Witness((channel.inputs[x], channel.inputs[other]), event)
    # The distance matrix chose the pair up to its own rounding; the margin covers the runner-up too.
    return Guarantee(
        "total_variation", min(1.0, up(above, 2 * ulps)), min(1.0, down(above, ulps)), witness, True, REFERENCE
    )
