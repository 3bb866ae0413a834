"""Approximate zCDP: zero-concentrated privacy after an event of small probability is set aside."""

from __future__ import annotations

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, number, unit_interval
from ldpopt.privacy.approximate_dp import epsilon_of_pairs
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.pairs import larger, stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.privacy.zcdp import zcdp_of_pairs

REFERENCE = "[BS, Def 8.1]"


def approximate_zcdp(channel: ChannelLike, delta: float, xi: float = 0.0, graph: Policy = None) -> Guarantee:
    """The smallest rho for which the channel is delta-approximate (xi, rho)-zCDP [BS, Def 8.1].

    The definition asks, for each pair of rows, for events of probability at least 1 - delta on which the
    conditional laws are (xi, rho)-zCDP in both directions. Conditioning turns p into any p' <= p/(1 - delta),
    and among those the pair min(p, t q)/(1 - delta), min(q, t' p)/(1 - delta), with t and t' such that each
    loses delta, is least favourable: for every test of their likelihood ratio it has the largest error
    probabilities, so it minimises every Rényi divergence at once [HS, Thm 4.1]. The value is therefore exact, up
    to the bracket of `zcdp`. With a directed policy graph both directions of an edge still count, as defined.

    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(float(approximate_zcdp(q, 0.0)), 6), round(float(approximate_zcdp(q, 0.25)), 6)
    (0.549306, 0.231049)
    """
    channel = as_channel(channel)
    level, shift = unit_interval(delta, "delta"), number(xi, "xi")
    return worst_pair(
        "approximate_zcdp", channel, graph, lambda p, q: approximate_zcdp_of_pairs(p, q, level, shift), REFERENCE,
        parameters={"delta": level, "xi": shift}, event=larger,
    )  # fmt: skip


def approximate_zcdp_of_pairs(p: Array, q: Array, delta: float, xi: float = 0.0) -> tuple[Array, Array]:
    """Bounds below and above on rho of each stacked pair, the worse direction, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    level = unit_interval(delta, "delta")
    bounds = []
    for side in (0, 1):  # a cut slightly too high loses less than delta, so its pair bounds rho above; and back
        cut_p, cut_q = epsilon_of_pairs(p, q, level)[side], epsilon_of_pairs(q, p, level)[side]
        left, right = _cut(p, q, cut_p), _cut(q, p, cut_q)
        none = (cut_p == 0) | (cut_q == 0)  # delta reaches the total variation: the conditional laws can agree
        left, right = np.where(none[:, None], p, left), np.where(none[:, None], p, right)
        low, high = np.maximum(zcdp_of_pairs(left, right, xi), zcdp_of_pairs(right, left, xi))
        bounds.append((low, high))
    return bounds[0][0], bounds[1][1]


def _cut(p: Array, q: Array, epsilon: Array) -> Array:
    """min(p, e^epsilon q); p itself where epsilon is infinite."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near = np.exp(np.minimum(epsilon, 700.0))[:, None] * q
        far = np.exp(np.minimum(epsilon[:, None] + np.log(q), 1.0))  # a factor beyond the range of doubles
    limit = np.where(np.isinf(epsilon)[:, None], np.inf, np.where(epsilon[:, None] > 700, far, near))
    return np.asarray(np.minimum(p, limit))
