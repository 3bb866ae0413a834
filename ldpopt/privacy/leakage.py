"""Leakage of a whole channel: its Doeblin coefficient, maximal leakage and mutual information."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.distribution import distribution
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.laws import centred
from ldpopt.privacy.loss import excess, log_ratios
from ldpopt.privacy.pairs import normalised
from ldpopt.privacy.policy import Policy, ordered_pairs
from ldpopt.rounding import SUBNORMAL, ULP, down, up


def doeblin(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """The Doeblin coefficient, sum over outputs of min_x Q[x, y], in [0, 1]: the probability that ignores the input.

    With this probability the report can be drawn without looking at the input. So one minus it bounds the total
    variation of the channel. More is more private here, so `lower` is the guarantee. With a policy `graph` it is the
    least coefficient over maximal cliques, the sets of inputs that are all compared with each other [Dobrushin].

    >>> round(float(doeblin([[0.75, 0.25], [0.25, 0.75]])), 9)
    0.5
    """
    channel = as_channel(channel)
    rows = normalised(channel.matrix)
    sums = [float(rows[clique].min(axis=0).sum()) for clique in _cliques(channel, graph)]
    value, ulps = min(1.0, *sums), channel.shape[1] + 8.0
    return Guarantee("doeblin", min(1.0, up(value, ulps)), down(value, ulps), None, True, "[Dobrushin]")


def maximal_leakage(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """Maximal leakage, log of the sum over outputs of max_x Q[x, y], in nats [IWK, Thm 1].

    It is the log of the largest factor by which a report raises the chance of guessing any function of the input.
    With a policy `graph` it is the largest over maximal cliques, the sets of inputs all compared with each other.

    >>> round(float(maximal_leakage([[0.75, 0.25], [0.25, 0.75]])), 9)  # log 1.5
    0.405465108
    """
    channel = as_channel(channel)
    m, low, high = channel.shape[1], 0.0, 0.0
    for clique in _cliques(channel, graph):
        rows = channel.matrix[clique]
        if (rows == rows[0]).all():
            continue
        _, away, lost = centred(rows)
        # The sum of maxima minus one: how much it exceeds the sum of the clique's first row.
        gain = float((away - away[0]).max(axis=0).sum())
        off = (m + 8) * ULP * (gain + float(np.abs(away).max(axis=0).sum())) + 2 * float(lost.max()) * len(rows)
        low, high = max(low, gain - off), max(high, gain + off)
    bounds = down(math.log1p(low), 8), up(math.log1p(high), 8)
    return Guarantee("maximal_leakage", bounds[1], bounds[0], None, True, "[IWK, Thm 1]")


def mutual_information(channel: ChannelLike, prior: Any) -> Guarantee:
    """The mutual information, in nats, of the report and an answer with law `prior`, shape (k,) [CT, section 2.3].

    >>> round(float(mutual_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])), 9)
    0.130812036
    """
    channel = as_channel(channel)
    weights = distribution(prior, "prior", size=channel.shape[0], labels=channel.inputs)
    used = weights > 0
    rows = channel.matrix[used]
    rows = rows[:, rows.max(axis=0) > 0]
    if (rows == rows[0]).all():
        return Guarantee("mutual_information", 0.0, 0.0, None, True, "[GI, section VII]")
    wide = weights[used].astype(np.longdouble)
    wide /= wide.sum()
    _, away, lost = centred(rows)
    q, weights = normalised(rows), wide.astype(np.float64)
    mixture = np.asarray(wide @ q.astype(np.longdouble), dtype=np.float64)
    difference = away - np.asarray(wide @ away, dtype=np.float64)  # of each row from the mixture
    inside = q > 0
    part = difference / mixture
    near = inside & (np.abs(part) <= 0.25)
    far = log_ratios(np.where(inside, q, 1.0), np.broadcast_to(mixture, q.shape))
    loss = np.where(near, np.log1p(np.where(near, part, 0.0)), np.where(inside, far, 0.0))
    # KL of each row to the mixture, as sums of non-negative terms (see `loss.privacy_loss`)
    terms = np.where(near, q * excess(np.where(near, -loss, 0.0)), mixture - q + q * loss)
    terms = np.where(inside, terms, mixture)
    value = float((weights[:, None] * terms).sum())
    # An error of a difference changes its term by the error times the loss, and by the square of the error.
    size = np.abs(away) + np.asarray(weights @ np.abs(away))
    off = np.where(near, 4 * ULP * size + 2 * float(lost.max()) * q, 0.0)
    moved = np.where(
        near, 2 * np.abs(loss) * off + 2 * off * (off / mixture), ULP * (4 * mixture + q * (4 + 16 * np.abs(loss)))
    )
    error = 40 * ULP * value + float((weights[:, None] * moved).sum()) + 16 * q.size * SUBNORMAL
    return Guarantee("mutual_information", value + error, max(value - error, 0.0), None, True, "[GI, section VII]")


def _cliques(channel: Channel, graph: Policy) -> Iterator[npt.NDArray[np.intp]]:
    """Positions of the inputs of each maximal clique of the policy graph; all of them without a graph."""
    if graph is None:
        yield np.arange(channel.shape[0])
        return
    import networkx

    i, j = ordered_pairs(channel, graph)
    compared = networkx.Graph()
    compared.add_nodes_from(range(channel.shape[0]))
    compared.add_edges_from(zip(i.tolist(), j.tolist(), strict=True))
    for clique in networkx.find_cliques(compared):
        yield np.array(sorted(clique))
