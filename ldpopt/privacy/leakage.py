"""Leakage of a whole channel: its Doeblin coefficient, maximal leakage and mutual information."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.distribution import distribution
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.loss import excess, log_ratios
from ldpopt.privacy.pairs import normalised
from ldpopt.privacy.policy import Policy, ordered_pairs
from ldpopt.rounding import ULP, down, up


def doeblin(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """The Doeblin coefficient, sum over outputs of min_x Q[x, y], in [0, 1]: the mass that ignores the input.

    The channel erases its input with this probability, so its Dobrushin coefficient is at most one minus it. More
    is more private: `lower` is the safe end. With a policy `graph` the least over its maximal cliques, the sets
    of inputs that are all compared with each other [Dobrushin].

    >>> round(float(doeblin([[0.75, 0.25], [0.25, 0.75]])), 9)
    0.5
    """
    channel = as_channel(channel)
    sums = [float(channel.matrix[clique].min(axis=0).sum()) for clique in _cliques(channel, graph)]
    value, ulps = min(1.0, *sums), channel.shape[1] + 4.0
    return Guarantee("doeblin", min(1.0, up(value, ulps)), down(value, ulps), None, True, "[Dobrushin]")


def maximal_leakage(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """Maximal leakage, log of the sum over outputs of max_x Q[x, y], in nats [IWK, Thm 1].

    With a policy `graph` the most over its maximal cliques, the sets of inputs all compared with each other.

    >>> round(float(maximal_leakage([[0.75, 0.25], [0.25, 0.75]])), 9)  # log 1.5
    0.405465108
    """
    channel = as_channel(channel)
    best = 0.0
    for clique in _cliques(channel, graph):
        rows = channel.matrix[clique]
        # sum of maxima minus one, as the gain over the clique's first row
        best = max(best, float((rows.max(axis=0) - rows[0]).sum()))
    if best == 0:
        return Guarantee("maximal_leakage", 0.0, 0.0, None, True, "[IWK, Thm 1]")
    ulps = channel.shape[1] + 8.0
    value = float(np.log1p(best))
    return Guarantee("maximal_leakage", up(value, ulps), down(value, ulps), None, True, "[IWK, Thm 1]")


def mutual_information(channel: ChannelLike, prior: Any) -> Guarantee:
    """The mutual information, in nats, between an answer with law `prior`, shape (k,), and its report.

    >>> round(float(mutual_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])), 9)
    0.130812036
    """
    channel = as_channel(channel)
    weights = distribution(prior, "prior", size=channel.shape[0])
    used = weights > 0
    weights, q = weights[used], normalised(channel.matrix[used])
    q = q[:, q.max(axis=0) > 0]
    mixture = weights @ q
    inside = q > 0
    loss = np.where(inside, log_ratios(np.where(inside, q, 1.0), np.broadcast_to(mixture, q.shape)), 0.0)
    difference = np.abs(q - mixture)
    small = np.abs(loss) <= 0.5
    # KL of each row to the mixture, as sums of non-negative terms (see `loss.privacy_loss`)
    terms = np.where(small, q * excess(np.where(small, -loss, 0.0)), mixture - q + q * loss)
    terms = weights[:, None] * np.where(inside, terms, mixture)
    if (q == q[0]).all():
        return Guarantee("mutual_information", 0.0, 0.0, None, True, "[GI, section VII]")
    value = float(terms.sum())
    slack = ULP * ((len(weights) + 20) * (1 + np.abs(loss)))
    error = 40 * ULP * value + float((weights[:, None] * difference * slack).sum())
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
