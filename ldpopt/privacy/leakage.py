"""Leakage and contraction of a whole channel: Doeblin's coefficient, maximal leakage, information, contraction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.numbers.rounding import SUBNORMAL, ULP, down, up
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs, positive_event
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.loss import centred, excess, log_ratios, shift
from ldpopt.privacy.pairs import MAX_UNSCREENED_ENTRIES, Policy, larger, normalised, ordered_pairs, worst_pair
from ldpopt.values.distribution import Array, distribution, number


def doeblin(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """Compute the Doeblin coefficient, sum over outputs of min_x Q[x, y], in [0, 1].

    With this probability the report can be drawn independently of the input. So one minus it bounds the total variation
    of the channel [Dobrushin].

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx). The result is then the smallest coefficient over maximal cliques,
        the sets of inputs that are all compared with each other.

    Returns
    -------
    Guarantee
        The coefficient. A larger value is more private here, so `lower` is the guarantee.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph does not fit the inputs.

    Examples
    --------
    >>> round(float(doeblin([[0.75, 0.25], [0.25, 0.75]])), 9)
    0.5
    """
    channel = as_channel(channel)
    rows = normalised(channel.matrix)
    overlaps = [float(rows[clique].min(axis=0).sum()) for clique in _cliques(channel, graph)]
    value, ulps = min(1.0, *overlaps), channel.shape[1] + 8.0
    return Guarantee("doeblin", min(1.0, up(value, ulps)), down(value, ulps), None, True, "[Dobrushin]")


def maximal_leakage(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """Compute the maximal leakage, log of the sum over outputs of max_x Q[x, y], in nats.

    A report multiplies the chance of guessing any function of the input by at most e^leakage [IWK, Thm 1].

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx). The result is then the largest leakage over maximal cliques, the
        sets of inputs that are all compared with each other.

    Returns
    -------
    Guarantee
        The leakage, in nats.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph does not fit the inputs.

    Examples
    --------
    >>> round(float(maximal_leakage([[0.75, 0.25], [0.25, 0.75]])), 9)  # log 1.5
    0.405465108
    """
    channel = as_channel(channel)
    m, low, high = channel.shape[1], 0.0, 0.0
    for clique in _cliques(channel, graph):
        rows = channel.matrix[clique]
        if (rows == rows[0]).all():
            continue
        _, deviation, deviation_error = centred(rows)
        # The sum of maxima minus one: how much it exceeds the sum of the clique's first row.
        gain = float((deviation - deviation[0]).max(axis=0).sum())
        error = (m + 8) * ULP * (gain + float(np.abs(deviation).max(axis=0).sum())) + 2 * float(
            deviation_error.max()
        ) * len(rows)
        low, high = max(low, gain - error), max(high, gain + error)
    bounds = down(math.log1p(low), 8), up(math.log1p(high), 8)
    return Guarantee("maximal_leakage", bounds[1], bounds[0], None, True, "[IWK, Thm 1]")


def mutual_information(channel: ChannelLike, prior: Any) -> Guarantee:
    """Compute the mutual information (nats) of the report and an answer.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    prior : Array (k,), the distribution of the answer [CT, section 2.3].

    Returns
    -------
    Guarantee
        The mutual information, in nats.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or `prior` is not a distribution of its inputs.

    Examples
    --------
    >>> round(float(mutual_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])), 9)
    0.130812036
    """
    channel = as_channel(channel)
    weights = distribution(prior, "prior", size=channel.shape[0], labels=channel.inputs)
    is_used = weights > 0
    rows = channel.matrix[is_used]
    rows = rows[:, rows.max(axis=0) > 0]
    if (rows == rows[0]).all():
        return Guarantee("mutual_information", 0.0, 0.0, None, True, "[GI, section VII]")
    extended_prior = weights[is_used].astype(np.longdouble)
    extended_prior /= extended_prior.sum()
    _, deviation, deviation_error = centred(rows)
    q, weights = normalised(rows), extended_prior.astype(np.float64)
    mixture = np.asarray(extended_prior @ q.astype(np.longdouble), dtype=np.float64)
    difference = deviation - np.asarray(extended_prior @ deviation, dtype=np.float64)  # of each row from the mixture
    is_positive = q > 0
    relative_difference = difference / mixture
    is_close = is_positive & (np.abs(relative_difference) <= 0.25)
    log_ratio = log_ratios(np.where(is_positive, q, 1.0), np.broadcast_to(mixture, q.shape))
    loss = np.where(
        is_close, np.log1p(np.where(is_close, relative_difference, 0.0)), np.where(is_positive, log_ratio, 0.0)
    )
    # KL of each row to the mixture, as sums of non-negative terms (see `loss.privacy_loss`)
    terms = np.where(is_close, q * excess(np.where(is_close, -loss, 0.0)), mixture - q + q * loss)
    terms = np.where(is_positive, terms, mixture)
    value = float((weights[:, None] * terms).sum())
    # An error of a difference changes its term by the error times the loss, and by the square of the error.
    difference_scale = np.abs(deviation) + np.asarray(weights @ np.abs(deviation))
    deviation_bound = np.where(is_close, 4 * ULP * difference_scale + 2 * float(deviation_error.max()) * q, 0.0)
    term_error = np.where(
        is_close,
        2 * np.abs(loss) * deviation_bound + 2 * deviation_bound * (deviation_bound / mixture),
        ULP * (4 * mixture + q * (4 + 16 * np.abs(loss))),
    )
    error = 40 * ULP * value + float((weights[:, None] * term_error).sum()) + 16 * q.size * SUBNORMAL
    return Guarantee("mutual_information", value + error, max(value - error, 0.0), None, True, "[GI, section VII]")


def _cliques(channel: Channel, graph: Policy) -> Iterator[npt.NDArray[np.intp]]:
    """Positions of the inputs of each maximal clique of the policy graph; all of them without a graph."""
    if graph is None:
        yield np.arange(channel.shape[0])
        return
    import networkx

    i, j = ordered_pairs(channel, graph)
    comparison_graph = networkx.Graph()
    comparison_graph.add_nodes_from(range(channel.shape[0]))
    comparison_graph.add_edges_from(zip(i.tolist(), j.tolist(), strict=True))
    for clique in networkx.find_cliques(comparison_graph):
        yield np.array(sorted(clique))


_BISECTION_STEPS, _SCREENING_STEPS = 60, 4


def chi_squared_contraction(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """Bound the contraction coefficient in [0, 1] of chi-squared, equal to that of KL.

    D(M0 || M1) <= value D(P0 || P1), where M0 and M1 are the distributions of the report if the answer has the
    distribution P0 or P1. Two inputs attain the value [OP, Thm 1]. It is the max over pairs of rows p, q and b in [0,
    1] of b (1-b) sum (p-q)^2/(b p + (1-b) q). For an epsilon-LDP channel it is at most tanh(epsilon/2)^2 [AZ].

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        The coefficient, between `lower` and `value`.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph does not fit the inputs.

    Examples
    --------
    >>> round(float(chi_squared_contraction([[0.75, 0.25], [0.25, 0.75]])), 9)
    0.25
    """
    channel = as_channel(channel)
    return worst_pair(
        "chi_squared_contraction", channel, graph, _worst_chi_squared, "[OP, Thm 1]", event=larger,
        screen=_screen_chi_squared, limit=MAX_UNSCREENED_ENTRIES,
    )  # fmt: skip


def _screen_chi_squared(matrix: Array) -> tuple[Array, Array]:
    """Bounds 1 - s and 1 - s^2 on the coefficient of all pairs of rows, with s = sum sqrt(p q) [OP].

    The coefficient is 1 - min over b of sum p q/(b p + (1-b) q). The sum is at least s^2, by Cauchy and Schwarz, and at
    b = 1/2 at most s. The two orders of a pair have the same value, so only one is computed.
    """
    row_roots = np.sqrt(normalised(matrix))
    affinity, error = row_roots @ row_roots.T, 8 * (matrix.shape[1] + 8) * ULP
    upper = np.triu(np.clip(1 - affinity**2 + 2 * error, 0.0, 1.0))
    return np.triu(np.maximum(1 - affinity - error, 0.0)), upper


def _worst_chi_squared(p: Array, q: Array) -> tuple[Array, Array]:
    """`chi_squared_of_pairs`, with all steps only for pairs that a few steps do not show to be below another one."""
    lower, upper = chi_squared_of_pairs(p, q, _SCREENING_STEPS)
    is_candidate = upper >= lower.max()
    lower[is_candidate], upper[is_candidate] = chi_squared_of_pairs(p[is_candidate], q[is_candidate])
    return lower, upper


def hockey_stick_contraction(channel: ChannelLike, gamma: float, graph: Policy = None) -> Guarantee:
    """Bound the contraction coefficient in [0, 1] of the hockey-stick divergence E_gamma.

    It is the largest E_gamma between two rows [ADC, Thm 2]. At gamma = 1 it is the Dobrushin coefficient, the total
    variation of the channel. At gamma = e^epsilon it is zero exactly for epsilon-LDP channels.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    gamma : At least 1.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        The coefficient, between `lower` and `value`.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, gamma is below 1, or the graph does not fit the inputs.

    Examples
    --------
    >>> round(float(hockey_stick_contraction([[0.75, 0.25], [0.25, 0.75]], 1.0)), 6)
    0.5
    """
    ratio, channel = number(gamma, "gamma", "a number of at least 1", 1.0), as_channel(channel)
    return worst_pair(
        "hockey_stick_contraction", channel, graph, lambda p, q: _e_gamma(p, q, ratio), "[ADC, Thm 2]",
        parameters={"gamma": ratio}, event=lambda p, q: positive_event(p, q, math.log(ratio)),
    )  # fmt: skip


def _e_gamma(p: Array, q: Array, gamma: float) -> tuple[Array, Array]:
    # The logarithm may be off by a unit in the last place, so its two neighbours are used.
    epsilon_above, epsilon_below = (
        math.nextafter(math.log(gamma), math.inf),
        max(math.nextafter(math.log(gamma), -math.inf), 0.0),
    )
    return hockey_stick_of_pairs(p, q, epsilon_above)[0], hockey_stick_of_pairs(p, q, epsilon_below)[1]


def chi_squared_of_pairs(p: Array, q: Array, steps: int = _BISECTION_STEPS) -> tuple[Array, Array]:
    """Bound max over b of b (1-b) sum (p-q)^2/(b p + (1-b) q), (n, m) -> (n,), (n,)."""
    p, q = np.atleast_2d(p, q)
    is_identical = (p == q).all(axis=1)
    row_shift = shift(p, q)
    correction = np.expm1(row_shift.value)[:, None] * q
    d = ((p - q) - correction) / (1 + row_shift.defect)[:, None]
    difference_error = 4 * ULP * (np.abs(p - q) + np.abs(correction)) + 2 * row_shift.error[:, None] * q
    p, q = normalised(p), normalised(q)

    def value(b: Array) -> tuple[Array, Array, Array]:
        """Compute the concave function of b, its derivative, and a bound on its subnormal rounding error."""
        b = b[:, None]
        mixture = b * p + (1 - b) * q
        positive_mixture = np.where(mixture > 0, mixture, 1.0)
        ratio = d / positive_mixture  # at most 1/b and 1/(1 - b), where d squared might leave the range of floats
        term = d * ratio
        slope_terms = term * (1 - 2 * b - b * (1 - b) * ratio)
        slack = 8 * SUBNORMAL * (b * (1 - b) * ratio**2).sum(axis=1)
        return (b * (1 - b) * term).sum(axis=1), slope_terms.sum(axis=1), slack

    # At b = 0 or 1 the function is the mass of one row outside the support of the other.
    lower_b, upper_b = np.full(len(p), 2.0**-30), np.full(len(p), 1 - 2.0**-30)
    best_value = np.where(p > 0, 0.0, q).sum(axis=1)
    best_value = np.maximum(best_value, np.where(q > 0, 0.0, p).sum(axis=1))
    for _ in range(steps):
        middle_b = (lower_b + upper_b) / 2
        middle_value, slope, slack = value(middle_b)
        best_value = np.maximum(best_value, middle_value - slack)
        lower_b, upper_b = np.where(slope > 0, middle_b, lower_b), np.where(slope > 0, upper_b, middle_b)
    (lower_b_value, slope, lower_b_error), (upper_b_value, upper_b_slope, upper_b_error) = (
        value(lower_b),
        value(upper_b),
    )
    # A concave function lies below its tangents, also where the maximum lies beyond the ends of the bracket.
    outside_margin = np.maximum(np.maximum(-slope, 0.0) * lower_b, np.maximum(upper_b_slope, 0.0) * (1 - upper_b))
    upper_bound = np.maximum(
        np.maximum(lower_b_value, upper_b_value) + np.maximum(slope, 0.0) * (upper_b - lower_b) + outside_margin,
        best_value,
    )
    # b (1 - b)/(b p + (1 - b) q) is at most 1/(sqrt p + sqrt q)^2 for every b.
    larger_entry = np.maximum(np.maximum(p, q), SUBNORMAL)
    rounding = ((2 * np.abs(d) + difference_error) * (difference_error / larger_entry) + 8 * SUBNORMAL).sum(axis=1)
    error = (64 + p.shape[1]) * ULP * upper_bound + rounding + 8 * np.maximum(lower_b_error, upper_b_error)
    lower, upper = np.maximum(best_value - error, 0.0), np.minimum(upper_bound + error, 1.0)
    return np.where(is_identical, 0.0, lower), np.where(is_identical, 0.0, upper)
