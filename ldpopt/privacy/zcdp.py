"""Zero-concentrated local differential privacy: the supremum of the Rényi divergences over their orders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, number
from ldpopt.errors import invalid
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.loss import PrivacyLoss, privacy_loss
from ldpopt.privacy.pairs import SCREENED, larger, stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.privacy.renyi import Moments
from ldpopt.privacy.supremum import Rows, supremum
from ldpopt.rounding import ULP

REFERENCE = "[BS, Def 1.1]"


def zcdp(channel: ChannelLike, xi: float = 0.0, max_order: float = math.inf, graph: Policy = None) -> Guarantee:
    """The smallest rho >= 0 for which the channel is (xi, rho)-zCDP: sup over orders of (D_alpha - xi)/alpha.

    D_alpha is the Rényi divergence of two rows, in nats, of an order 1 < alpha < max_order. A finite `max_order` gives
    the bounded notion [BS, Def 1.1 and 8.4]. `lower` and `value` enclose the supremum with a relative width of 1e-10,
    by branch and bound on the convex function (alpha - 1) D_alpha. With a policy `graph`, only adjacent inputs are
    compared.

    >>> round(float(zcdp([[0.75, 0.25], [0.25, 0.75]])), 9)  # epsilon tanh(epsilon/2)
    0.549306144
    """
    channel = as_channel(channel)
    shift, top = number(xi, "xi"), bounded_order(max_order)
    parameters = {"xi": shift} if math.isinf(top) else {"xi": shift, "max_order": top}
    return worst_pair(
        "zcdp", channel, graph, lambda p, q: zcdp_of_pairs(p, q, shift, top), REFERENCE,
        parameters=parameters, event=larger, screen=lambda matrix: _screen(matrix, shift, top), limit=SCREENED,
    )  # fmt: skip


def _screen(matrix: Array, xi: float, top: float) -> tuple[Array, Array]:
    """Bounds on rho of every ordered pair, from a grid of orders.

    D_alpha does not fall as alpha grows. So between two orders of the grid, D_alpha/alpha is at most D at the larger
    order divided by the smaller order.
    """
    moments, pure = Moments.of(matrix), local_dp(matrix).value
    low, high = moments.mean[0] - xi, np.full(moments.outside.shape, -np.inf)
    order = 1.0
    while order < top and not np.isinf(pure):
        if (rest := max(pure - xi, 0.0) / order) <= max(float(low.max()), 0.0) or order > 1e12:
            high = np.maximum(high, rest)  # whatever the larger orders give
            break
        following = min(order * 1.03, top)
        below, above = (bound - xi for bound in moments.divergence(following - 1))
        low = np.maximum(low, below / following)
        high = np.maximum(high, above / np.where(above > 0, order, following))
        order = following
    low, high = np.maximum(low, 0.0) * (1 - 1e-9), np.maximum(high, 0.0) * (1 + 1e-9)
    return np.where(moments.outside, np.inf, low), np.where(moments.outside, np.inf, high)


def bounded_order(max_order: Any) -> float:
    """`max_order`, the upper bound on the orders, as a float in (1, inf]."""
    top = math.inf if isinstance(max_order, float) and math.isinf(max_order) else number(max_order, "max_order")
    if not top > 1:
        raise invalid("max_order", "a number in (1, inf]", top)
    return top


def zcdp_of_pairs(
    p: Array, q: Array, xi: float = 0.0, max_order: float = math.inf, off: Array | float = 0.0
) -> tuple[Array, Array]:
    """Lower and upper bounds on rho of n pairs of rows, arrays (n, m) -> (n,), (n,); `off` as in `privacy_loss`."""
    p, q = stacked(p, q)
    loss = privacy_loss(p, q, off)
    span = bounded_order(max_order) - 1
    lower = np.where(loss.infinite, np.inf, 0.0)
    upper = lower.copy()
    finite = np.flatnonzero(~(loss.infinite | loss.identical))
    if not len(finite):
        return lower, upper
    loss = loss.rows(finite)
    start = np.minimum(2.0**-38 / (1 + loss.top_upper), span / 4)
    best, above = supremum(loss, 1.0, _Slope(loss, xi), start, np.full(len(finite), span))
    # Orders between 1 and 1 + start: D is non-decreasing, and tends to KL.
    head = loss.divergence(start)[1] - xi
    best = np.maximum(best, loss.mean_lower - xi)
    lower[finite] = np.maximum(best * (1 - 8 * ULP), 0.0)
    upper[finite] = np.maximum(np.maximum(above, head) * (1 + 16 * ULP), 0.0)
    return lower, upper


@dataclass(frozen=True)
class _Slope:
    """(D_alpha - xi)/alpha with alpha = 1 + s and D_alpha = E Z + K(s)/s."""

    loss: PrivacyLoss
    xi: float

    def below(self, rows: Rows, k: Array, s: Array) -> Array:
        constant = self.loss.mean_lower[rows] - self.xi
        return np.asarray((constant - 4 * ULP * np.abs(constant) + k / s) / (1 + s))

    def above(self, rows: Rows, k: Array, s: Array) -> Array:
        constant = self.loss.mean_upper[rows] - self.xi
        return np.asarray((constant + k / s + 4 * ULP * np.abs(constant)) / (1 + s))

    def peak(self, rows: Rows, c0: Array, c1: Array) -> Array:
        a, b = np.maximum(-c0, 0.0), c1 + self.loss.mean_upper[rows] - self.xi
        return np.asarray(np.where(b > 0, (a + np.sqrt(a * a + a * b)) / b, 0.0))

    def curved(self, rows: Rows, left: Array, right: Array, c0: Array, c1: Array) -> Array:
        constant = self.loss.mean_upper[rows] - self.xi
        turn = np.where(c1 < 0, np.sqrt(np.maximum(1 - (c0 - 2 * constant) / c1, 1.0)) - 1, left)
        values = [self.above(rows, s * s * (c0 + c1 * s) / 2, s) for s in (left, right, np.clip(turn, left, right))]
        return np.asarray(np.maximum.reduce(values))

    def tail(self, rows: Rows, s: Array) -> Array:
        return np.asarray(np.maximum(self.loss.top_upper[rows] - self.xi, 0.0) / (1 + s))
