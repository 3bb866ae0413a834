"""Pure local differential privacy: the largest log-likelihood ratio between two rows."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.policy import Policy, ordered_pairs
from ldpopt.rounding import down, up

REFERENCE = "[GI, Def 6]"


def local_dp(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """The smallest epsilon, in nats, for which the channel is epsilon-LDP; inf if supports differ [GI, Def 6].

    epsilon = max over pairs of inputs and outputs of log Q[x, y] / Q[x', y]. With a policy `graph`, only
    adjacent inputs are compared. O(k m) without a graph, O(edges m) with one.

    >>> g = local_dp([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(g), 9), g.witness.inputs
    (1.098612289, (0, 1))
    """
    channel = as_channel(channel)
    q = channel.matrix
    if graph is None:
        y = _argmax_ratio(q.max(axis=0), q.min(axis=0))
        x, other = int(q[:, y].argmax()), int(q[:, y].argmin())
    else:
        i, j = ordered_pairs(channel, graph)
        if len(i) == 0:
            return Guarantee("local_dp", 0.0, 0.0, None, True, REFERENCE)
        best = [_argmax_ratio(q[a], q[b]) for a, b in zip(i, j, strict=True)]
        at = _argmax_ratio(q[i, best], q[j, best])
        x, other, y = int(i[at]), int(j[at]), best[at]
    numerator, denominator = float(q[x, y]), float(q[other, y])
    if numerator <= denominator:  # below it: a directed graph, and rows that differ by the rounding of their sums
        return Guarantee("local_dp", 0.0, 0.0, None, True, REFERENCE)
    witness = Witness((channel.inputs[x], channel.inputs[other]), (channel.outputs[y],))
    if denominator == 0:
        return Guarantee("local_dp", math.inf, math.inf, witness, True, REFERENCE)
    epsilon = log_ratio(numerator, denominator)
    return Guarantee("local_dp", up(epsilon), down(epsilon), witness, True, REFERENCE)


def log_ratio(p: float, q: float) -> float:
    """log(p/q) for p > q > 0 to a few units in the last place, near p = q and for subnormal q too."""
    if p <= 2 * q:
        return math.log1p((p - q) / q)  # p - q is exact [Sterbenz]
    (p, p_exponent), (q, q_exponent) = math.frexp(p), math.frexp(q)
    return math.log(p / q) + (p_exponent - q_exponent) * math.log(2)


def _argmax_ratio(p: Array, q: Array) -> int:
    """Position of the largest p/q, with 0/0 as 1; exact ties aside, decided to a unit in the last place."""
    unbounded = (q == 0) & (p > 0)
    if unbounded.any():
        return int(np.argmax(unbounded))
    neither = (p == 0) & (q == 0)
    p, q = np.where(neither, 1.0, p), np.where(neither, 1.0, q)
    with np.errstate(over="ignore"):
        ratio = p / q
    # Near one, the quotient's rounding hides the order; the exact difference shows it.
    if ratio.max() <= 2:
        return int(np.argmax((p - q) / q))
    if np.isinf(ratio).any():  # a subnormal denominator: scaling by a power of two is exact
        ratio = p / (q * 2.0**200)
    return int(np.argmax(ratio))
