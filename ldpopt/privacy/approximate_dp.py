"""Approximate local differential privacy: the smallest epsilon at a given delta."""

from __future__ import annotations

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, unit_interval
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.hockey_stick import screen
from ldpopt.privacy.pairs import stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.rounding import ULP

REFERENCE = "[GI, Def 1]"


def approximate_dp(channel: ChannelLike, delta: float, graph: Policy = None) -> Guarantee:
    """The smallest epsilon, in nats, for which the channel is (epsilon, delta)-LDP, for delta in [0, 1].

    Exact: delta is a maximum of lines in e^epsilon, one for each event that a likelihood-ratio test accepts
    [GI, Thm 1]. inf if no epsilon does. `delta = 0` is pure LDP.

    >>> g = approximate_dp([[0.75, 0.25], [0.25, 0.75]], 0.25)
    >>> round(float(g), 9)
    0.693147181
    """
    channel = as_channel(channel)
    level = unit_interval(delta, "delta")
    return worst_pair(
        "approximate_dp", channel, graph, lambda p, q: epsilon_of_pairs(p, q, level), REFERENCE,
        parameters={"delta": level}, event=lambda p, q: _event(p, q, level),
        screen=lambda matrix: _screen(matrix, level),
    )  # fmt: skip


def epsilon_of_pairs(p: Array, q: Array, delta: float) -> tuple[Array, Array]:
    """Bounds below and above on the epsilon at `delta` of each stacked pair, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    level = unit_interval(delta, "delta")
    identical = (p == q).all(axis=1)
    kept, lost = _events(p, q)
    error = (p.shape[1] + 4) * ULP
    bounds = []
    for sign in (-1, 1):
        # delta(t) = max_n P_n - t Q_n <= delta  iff  t >= (P_n - delta)/Q_n for every n.
        excess = kept * (1 + sign * error) - level
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logs = np.log(np.maximum(excess, 5e-324)) - np.log(lost)
            # Near t = 1 the logarithm of the quotient loses what the difference keeps.
            t = (excess - lost) / lost
            logs = np.where(np.abs(t) < 0.5, np.log1p(np.clip(t, -0.5, 0.5)), logs)
            logs += sign * (2 * error + 4 * ULP * np.abs(np.log(lost)) + 4 * ULP * np.abs(logs))
        logs = np.where(excess > 0, np.where(lost > 0, logs, np.inf), -np.inf)
        bounds.append(np.where(identical, 0.0, np.maximum(logs.max(axis=1), 0.0)))
    return bounds[0], bounds[1]


def _events(p: Array, q: Array) -> tuple[Array, Array]:
    """Probabilities under p and q of the likelihood-ratio events, the likeliest outputs first."""
    with np.errstate(divide="ignore", invalid="ignore"):  # scaled: infinite for impossible outputs alone
        ratio = np.where(p > 0, p / (q * 2.0**60), -1.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    return np.cumsum(np.take_along_axis(p, order, 1), axis=1), np.cumsum(np.take_along_axis(q, order, 1), axis=1)


def _event(p: Array, q: Array, level: float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    t = np.exp(np.minimum(epsilon_of_pairs(p, q, level)[0], 700.0))
    return np.asarray(p > t[:, None] * q)


def _screen(matrix: Array, level: float) -> tuple[Array, Array]:
    """Newton's method on the worst pair: bounds that single out the pairs that may exceed its answer."""
    epsilon, k = 0.0, len(matrix)
    while True:
        low, high = screen(matrix, epsilon)
        np.fill_diagonal(high, 0.0)
        x, other = np.unravel_index(int(low.argmax()), low.shape)
        step = float(epsilon_of_pairs(matrix[[x]], matrix[[other]], level)[0][0])
        if not step > epsilon or step == np.inf:
            break
        epsilon = step
    if step == np.inf:
        bound = np.zeros((k, k))
        bound[x, other] = np.inf
        return bound, bound
    # A pair whose delta at some epsilon is within the level needs no more than that epsilon.
    later = epsilon * (1 + 1e-9) + 1e-9
    upper = np.where(high <= level, epsilon, np.where(screen(matrix, later)[1] <= level, later, np.inf))
    return np.full((k, k), epsilon), upper
