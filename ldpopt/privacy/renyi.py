"""Rényi local differential privacy: the Rényi divergence of every order from one to infinity."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array
from ldpopt.errors import invalid
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.loss import privacy_loss
from ldpopt.privacy.pairs import larger, stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.rounding import ULP

REFERENCE = "[M, Def 3]"


@overload
def renyi(channel: ChannelLike, order: float, graph: Policy = None) -> Guarantee: ...
@overload
def renyi(
    channel: ChannelLike, order: list[float] | tuple[float, ...] | Array, graph: Policy = None
) -> tuple[Guarantee, ...]: ...


def renyi(channel: ChannelLike, order: Any, graph: Policy = None) -> Guarantee | tuple[Guarantee, ...]:
    """The largest Rényi divergence of `order` in [1, inf] between two rows, in nats [M, Def 3; BS, Def 2.1].

    Order 1 is the KL divergence, order inf is pure LDP. A one-dimensional array of orders gives a tuple of
    guarantees. inf where an output that one input can give is impossible for the other.

    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> [round(float(g), 6) for g in renyi(q, [1, 2, float("inf")])]
    [0.549306, 0.847298, 1.098612]
    """
    channel = as_channel(channel)
    if np.ndim(order) == 1:
        return tuple(renyi(channel, one, graph) for one in order)
    alpha = renyi_order(order)
    if math.isinf(alpha):
        pure = local_dp(channel, graph)
        return Guarantee("renyi", pure.value, pure.lower, pure.witness, True, REFERENCE, {"order": alpha})
    return worst_pair(
        "renyi", channel, graph, lambda p, q: renyi_of_pairs(p, q, alpha), REFERENCE,
        parameters={"order": alpha}, event=larger, screen=lambda matrix: _screen(matrix, alpha),
    )  # fmt: skip


def renyi_order(order: Any, what: str = "order") -> float:
    """An order in [1, inf] as a float."""
    try:
        if isinstance(order, (str, bytes, bool)):
            raise TypeError
        alpha = float(order)
    except (TypeError, ValueError, OverflowError):
        raise invalid(what, "a number in [1, inf]", order) from None
    if not alpha >= 1:
        raise invalid(what, "a number in [1, inf]", alpha)
    return alpha


def renyi_of_pairs(p: Array, q: Array, order: float) -> tuple[Array, Array]:
    """Bounds below and above on the Rényi divergence of each stacked pair, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    alpha = renyi_order(order)
    loss = privacy_loss(p, q)
    if alpha == 1:
        return loss.mean_lower, loss.mean_upper
    if math.isinf(alpha):
        return loss.top_lower, loss.top_upper
    return loss.divergence(np.full(len(p), alpha - 1))


def _screen(matrix: Array, alpha: float) -> tuple[Array, Array]:
    """Bounds on every ordered pair at once, from one matrix product."""
    used = matrix.max(axis=0) > 0
    q = matrix[:, used]
    k, m = q.shape
    if q.min() == 0:  # a column that only some inputs can give: infinite exactly where supports differ
        outside = (q > 0).astype(np.float64) @ (q == 0).astype(np.float64).T > 0
        bound = np.where(outside, np.inf, 0.0)
        return bound, bound
    log = np.log(q)
    centre = log.mean(axis=0)
    tilt = log - centre
    defect = float(np.abs(q.sum(axis=1) - 1).max()) + 4 * m * ULP
    spread = float(np.abs(tilt).max())
    if alpha == 1:
        inner = q @ tilt.T
        value = np.diag(inner)[:, None] - inner
        error = np.full((k, k), (2 * m + 32) * ULP * (spread + np.abs(centre).max() / 8) + 2 * defect * (1 + spread))
        return value - error, value + error
    left, right = alpha * tilt + centre, (1 - alpha) * tilt
    tops, others = left.max(axis=1), right.max(axis=1)
    total = np.exp(left - tops[:, None]) @ np.exp(right - others[:, None]).T
    relative = ULP * (m + 64 + 8 * (alpha * spread + np.abs(centre).max()))
    with np.errstate(under="ignore"):
        value = (np.log(np.maximum(total, 5e-324)) + tops[:, None] + others) / (alpha - 1)
    # Sums so small that underflow may have taken part of them say nothing.
    trusted = total > 1e-280
    error = 2 * (relative + 2 * alpha * defect) / (alpha - 1) + 8 * ULP * np.abs(value)
    return np.where(trusted, value - error, 0.0), np.where(trusted, value + error, np.inf)
