"""Contraction coefficients: how much a channel shrinks the divergence between two input distributions."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, number
from ldpopt.errors import invalid
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.hockey_stick import hockey_stick_of_pairs, positive_event
from ldpopt.privacy.laws import shift
from ldpopt.privacy.pairs import larger, normalised, stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.rounding import SUBNORMAL, ULP

_STEPS = 60


def chi_squared_contraction(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """The contraction coefficient in [0, 1] of chi-squared, equal to that of KL: D(M0 || M1) <= value D(P0 || P1).

    M0 and M1 are the distributions of the report if the answer has the distribution P0 or P1. Two inputs attain the
    value [OP, Thm 1]: it is the max over pairs of rows p, q and b in [0, 1] of
    b (1-b) sum (p-q)^2/(b p + (1-b) q). For an epsilon-LDP channel it is at most tanh(epsilon/2)^2 [AZ]. With a policy
    `graph`, only adjacent inputs are compared.

    >>> round(float(chi_squared_contraction([[0.75, 0.25], [0.25, 0.75]])), 9)
    0.25
    """
    channel = as_channel(channel)
    return worst_pair("chi_squared_contraction", channel, graph, chi_squared_of_pairs, "[OP, Thm 1]", event=larger)


def hockey_stick_contraction(channel: ChannelLike, gamma: float, graph: Policy = None) -> Guarantee:
    """The contraction coefficient in [0, 1] of the hockey-stick divergence E_gamma, gamma >= 1 [ADC, Thm 2].

    It is the largest E_gamma between two rows. gamma = 1 gives the Dobrushin coefficient, the total variation of the
    channel; gamma = e^epsilon gives zero exactly for epsilon-LDP channels. With a policy `graph`, only adjacent inputs
    are compared.

    >>> round(float(hockey_stick_contraction([[0.75, 0.25], [0.25, 0.75]], 1.0)), 6)
    0.5
    """
    ratio = number(gamma, "gamma")
    if ratio < 1:
        raise invalid("gamma", "a number of at least 1", ratio)
    channel = as_channel(channel)
    return worst_pair(
        "hockey_stick_contraction", channel, graph, lambda p, q: _e_gamma(p, q, ratio), "[ADC, Thm 2]",
        parameters={"gamma": ratio}, event=lambda p, q: positive_event(p, q, math.log(ratio)),
    )  # fmt: skip


def _e_gamma(p: Array, q: Array, gamma: float) -> tuple[Array, Array]:
    # The logarithm may be off by a unit in the last place, so its two neighbours are used.
    low, high = math.nextafter(math.log(gamma), math.inf), max(math.nextafter(math.log(gamma), -math.inf), 0.0)
    return hockey_stick_of_pairs(p, q, low)[0], hockey_stick_of_pairs(p, q, high)[1]


def chi_squared_of_pairs(p: Array, q: Array) -> tuple[Array, Array]:
    """Lower and upper bounds on max over b of b (1-b) sum (p-q)^2/(b p + (1-b) q), (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    identical = (p == q).all(axis=1)
    by = shift(p, q)
    correction = np.expm1(by.value)[:, None] * q
    d = ((p - q) - correction) / (1 + by.above)[:, None]
    off = 4 * ULP * (np.abs(p - q) + np.abs(correction)) + 2 * by.error[:, None] * q
    p, q = normalised(p), normalised(q)

    def value(b: Array) -> tuple[Array, Array, Array]:
        """The concave function of b, its derivative, and a bound on the error from rounding subnormal mixtures."""
        b = b[:, None]
        mixed = b * p + (1 - b) * q
        safe = np.where(mixed > 0, mixed, 1.0)
        ratio = d / safe  # at most 1/b and 1/(1 - b), where d squared might leave the range of floats
        term = d * ratio
        bend = term * (1 - 2 * b - b * (1 - b) * ratio)
        slack = 8 * SUBNORMAL * (b * (1 - b) * ratio**2).sum(axis=1)
        return (b * (1 - b) * term).sum(axis=1), bend.sum(axis=1), slack

    # At b = 0 or 1 the function is the mass of one row outside the support of the other.
    left, right = np.full(len(p), 2.0**-30), np.full(len(p), 1 - 2.0**-30)
    best = np.where(p > 0, 0.0, q).sum(axis=1)
    best = np.maximum(best, np.where(q > 0, 0.0, p).sum(axis=1))
    for _ in range(_STEPS):
        middle = (left + right) / 2
        at, slope, slack = value(middle)
        best = np.maximum(best, at - slack)
        left, right = np.where(slope > 0, middle, left), np.where(slope > 0, right, middle)
    (f, slope, first), (g, fall, last) = value(left), value(right)
    # A concave function lies below its tangents, also where the maximum lies beyond the ends of the bracket.
    edge = np.maximum(np.maximum(-slope, 0.0) * left, np.maximum(fall, 0.0) * (1 - right))
    above = np.maximum(np.maximum(f, g) + np.maximum(slope, 0.0) * (right - left) + edge, best)
    # b (1 - b)/(b p + (1 - b) q) is at most 1/(sqrt p + sqrt q)^2 for every b.
    larger_entry = np.maximum(np.maximum(p, q), SUBNORMAL)
    rounding = ((2 * np.abs(d) + off) * (off / larger_entry) + 8 * SUBNORMAL).sum(axis=1)
    error = (64 + p.shape[1]) * ULP * above + rounding + 8 * np.maximum(first, last)
    lower, upper = np.maximum(best - error, 0.0), np.minimum(above + error, 1.0)
    return np.where(identical, 0.0, lower), np.where(identical, 0.0, upper)
