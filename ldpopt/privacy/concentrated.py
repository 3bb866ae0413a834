"""Concentrated privacy of a channel: zCDP, approximate zCDP and mean-concentrated privacy [BS, DR].

zCDP is a supremum of Rényi divergences over their orders. Approximate zCDP sets events of small probability aside.
Mean-concentrated privacy bounds the mean of the privacy loss and its spread around the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import SUBNORMAL, ULP, first_largest
from ldpopt.privacy.approximate_dp import epsilon_of_pairs
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.loss import privacy_loss, scaled, shift
from ldpopt.privacy.pairs import MAX_UNSCREENED_ENTRIES, Policy, in_blocks, larger, worst_pair
from ldpopt.privacy.renyi import Moments
from ldpopt.privacy.supremum import largest_slope, largest_spread
from ldpopt.values.distribution import Array, number, unit_interval
from ldpopt.values.results import Result

REFERENCE = "[BS, Def 1.1]"


def zcdp(channel: ChannelLike, xi: float = 0.0, max_order: float = math.inf, graph: Policy = None) -> Guarantee:
    """Bound the smallest rho >= 0 such that the channel is (xi, rho)-zCDP.

    rho is the largest (D_alpha - xi)/alpha over pairs of rows and orders alpha between 1 and `max_order`. D_alpha is
    the Rényi divergence of two rows, in nats. A finite `max_order` gives the bounded definition [BS, Def 1.1 and 8.4].
    The bounds come from branch and bound on the convex function (alpha - 1) D_alpha.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    xi : In nats.
    max_order : Above 1; inf for all orders.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        rho, in nats. `lower` and `value` enclose the supremum with a relative width of 1e-10.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, a number is out of range, or the graph does not fit the inputs.

    Examples
    --------
    >>> round(float(zcdp([[0.75, 0.25], [0.25, 0.75]])), 9)  # epsilon tanh(epsilon/2)
    0.549306144
    """
    channel = as_channel(channel)
    shift, top = number(xi, "xi"), bounded_order(max_order)
    parameters = {"xi": shift} if math.isinf(top) else {"xi": shift, "max_order": top}
    return worst_pair(
        "zcdp", channel, graph, lambda p, q: zcdp_of_pairs(p, q, shift, top), REFERENCE,
        parameters=parameters, event=larger, screen=lambda matrix: _screen(matrix, shift, top),
        limit=MAX_UNSCREENED_ENTRIES,
    )  # fmt: skip


def _screen(matrix: Array, xi: float, max_order: float) -> tuple[Array, Array]:
    """Bounds on rho of every ordered pair from a grid: between two orders, D/alpha <= later D/earlier order."""
    moments, pure = Moments.from_matrix(matrix), local_dp(matrix).value
    low, high = moments.mean[0] - xi, np.full(moments.infinite_losses.shape, -np.inf)
    order = 1.0
    while order < max_order and not np.isinf(pure):
        if (later_bound := max(pure - xi, 0.0) / order) <= max(float(low.max()), 0.0) or order > 1e12:
            high = np.maximum(high, later_bound)  # covers all larger orders
            break
        next_order = min(order * 1.03, max_order)
        lower, upper = (bound - xi for bound in moments.divergence(next_order - 1))
        low = np.maximum(low, lower / next_order)
        high = np.maximum(high, upper / np.where(upper > 0, order, next_order))
        order = next_order
    low, high = np.maximum(low, 0.0) * (1 - 1e-9), np.maximum(high, 0.0) * (1 + 1e-9)
    return np.where(moments.infinite_losses, np.inf, low), np.where(moments.infinite_losses, np.inf, high)


def bounded_order(max_order: Any) -> float:
    """Return `max_order`, the upper bound on the orders, as a float in (1, inf]."""
    top = math.inf if isinstance(max_order, float) and math.isinf(max_order) else number(max_order, "max_order")
    if not top > 1:
        raise invalid("max_order", "a number in (1, inf]", top)
    return top


def zcdp_of_pairs(
    p: Array, q: Array, xi: float = 0.0, max_order: float = math.inf, entry_error: Array | float = 0.0
) -> tuple[Array, Array]:
    """Bound rho of n pairs of rows, arrays (n, m) -> (n,), (n,)."""
    p, q = np.atleast_2d(p, q)
    loss = privacy_loss(p, q, entry_error)
    lower = np.where(loss.infinite, np.inf, 0.0)
    upper = lower.copy()
    finite_pairs = np.flatnonzero(~(loss.infinite | loss.identical))
    if not len(finite_pairs):
        return lower, upper
    loss = loss.rows(finite_pairs)
    mean_bounds = loss.mean_lower, loss.mean_upper
    lower[finite_pairs], upper[finite_pairs] = largest_slope(
        loss.cumulant_at, mean_bounds, loss.top_upper, xi, max_order - 1, loss.spread
    )
    return lower, upper


APPROXIMATE_REFERENCE = "[BS, Def 8.1]"


def approximate_zcdp(channel: ChannelLike, delta: float, xi: float = 0.0, graph: Policy = None) -> Guarantee:
    """Bound the smallest rho such that the channel is delta-approximate (xi, rho)-zCDP.

    For each pair of rows p and q, the definition [BS, Def 8.1] requires events of probability at least 1 - delta. The
    distributions conditional on them must be (xi, rho)-zCDP in both directions.

    Conditioning can turn p into any distribution p' <= p/(1 - delta). The best choice is min(p, t q)/(1 - delta) and
    min(q, t' p)/(1 - delta), where t and t' remove the probability delta from each. These two distributions are the
    hardest to distinguish, and minimize every Rényi divergence at once [HS, Thm 4.1]. So the value is exact, up to the
    width of the bounds of `zcdp`.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    delta : In [0, 1].
    xi : In nats.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. Both directions of a directed
        edge count, as defined. None compares all.

    Returns
    -------
    Guarantee
        rho, in nats, between `lower` and `value`.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, a number is out of range, or the graph does not fit the inputs.

    Examples
    --------
    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(float(approximate_zcdp(q, 0.0)), 6), round(float(approximate_zcdp(q, 0.25)), 6)
    (0.549306, 0.231049)
    """
    channel = as_channel(channel)
    level, shift = unit_interval(delta, "delta"), number(xi, "xi")
    return worst_pair(
        "approximate_zcdp", channel, graph, lambda p, q: approximate_zcdp_of_pairs(p, q, level, shift),
        APPROXIMATE_REFERENCE, parameters={"delta": level, "xi": shift}, event=larger,
        screen=lambda matrix: _screen_approximate(matrix, level, shift), limit=MAX_UNSCREENED_ENTRIES,
    )  # fmt: skip


def approximate_zcdp_of_pairs(p: Array, q: Array, delta: float, xi: float = 0.0) -> tuple[Array, Array]:
    """Bound rho of n pairs of rows, in the worse direction, (n, m) -> (n,), (n,)."""
    p, q = np.atleast_2d(p, q)
    rho_bounds = []
    for side in (0, 1):  # a cut slightly too low removes more than delta and bounds rho below; too high, above
        conditional_p, conditional_q, entry_error = _conditioned(p, q, delta, side)
        forward, backward = (
            zcdp_of_pairs(*pair, xi, entry_error=entry_error)
            for pair in ((conditional_p, conditional_q), (conditional_q, conditional_p))
        )
        rho_bounds.append(np.maximum(forward, backward)[side])
    return rho_bounds[0], rho_bounds[1]


def _conditioned(p: Array, q: Array, level: float, side: int) -> tuple[Array, Array, Array]:
    """The best conditional distributions up to scale, cut too low (side 0) or high (side 1), and their error (n,)."""
    log_shift = shift(p, q).value
    cut_p, cut_q = epsilon_of_pairs(p, q, level)[side], epsilon_of_pairs(q, p, level)[side]
    can_be_equal = ((cut_p == 0) | (cut_q == 0))[
        :, None
    ]  # delta is at least the total variation: the laws can be made equal
    conditional_p, conditional_q = (
        np.where(can_be_equal, p, _cut(p, q, cut_p, log_shift)),
        np.where(can_be_equal, p, _cut(q, p, cut_q, -log_shift)),
    )
    factors = np.where(np.isinf(cut_p), 0.0, cut_p) + np.where(np.isinf(cut_q), 0.0, cut_q)
    return conditional_p, conditional_q, ULP * (16 + 4 * factors)


def _screen_approximate(matrix: Array, level: float, xi: float) -> tuple[Array, Array]:
    """Upper bounds on every pair of inputs, in one order of the two, and a lower bound on the worst-looking pair."""
    k, m = matrix.shape
    low, high = np.full((k, k), -np.inf), np.full((k, k), -np.inf)
    for i, j in in_blocks(*np.triu_indices(k, 1), m):
        conditional_p, conditional_q, entry_error = _conditioned(matrix[i], matrix[j], level, 1)
        high[i, j] = np.maximum(
            _rho_upper(conditional_p, conditional_q, xi, entry_error),
            _rho_upper(conditional_q, conditional_p, xi, entry_error),
        )
    x, other = np.unravel_index(first_largest(high.ravel()), high.shape)
    low[x, other] = approximate_zcdp_of_pairs(matrix[[x]], matrix[[other]], level, xi)[0][0]
    return low, high


def _rho_upper(p: Array, q: Array, xi: float, entry_error: Array) -> Array:
    """Upper bounds on rho from a grid of orders: between two, D/alpha is at most the later D over the earlier order."""
    loss = privacy_loss(p, q, entry_error)
    losses = loss.centred + loss.mean_upper[:, None]
    error = (loss.slack.max(axis=1) + 8 * ULP * (1 + np.abs(losses).max(axis=1))) * 4
    bound, order = np.zeros(len(p)), 1.0
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        while True:
            later_bound = (loss.top_upper - xi) / order
            if order > 1e12 or later_bound.max() <= 0.9 * bound.max():
                break
            s = order * 1.03 - 1
            max_exponent = s * losses.max(axis=1)
            total = (loss.p * np.exp(s * losses - max_exponent[:, None])).sum(axis=1)
            divergence = (max_exponent + np.log(total) + (p.shape[1] + 64) * ULP) / s + error - xi
            bound = np.maximum(bound, np.fmin(divergence, loss.top_upper - xi) / np.where(divergence > 0, order, 1 + s))
            order = 1 + s
    bound = np.maximum(bound, later_bound) * (1 + 1e-9)
    return np.asarray(np.where(loss.infinite, np.inf, np.maximum(bound, 0.0)))


def _cut(p: Array, q: Array, epsilon: Array, log_shift: Array) -> Array:
    """min(p, e^(epsilon + log_shift) q); p itself where epsilon is infinite."""
    limit = scaled(q, np.where(np.isinf(epsilon), 0.0, epsilon + log_shift))
    return np.asarray(np.minimum(p, np.where(np.isinf(epsilon)[:, None], np.inf, limit)))


MEAN_REFERENCE = "[DR, Def 3.3]"


@dataclass(frozen=True, eq=False)
class MeanConcentrated(Result):
    """The guarantee of (mu, tau)-mCDP: the mean and the subgaussian parameter of the privacy loss, in nats.

    >>> from ldpopt.privacy import mcdp
    >>> guarantee = mcdp([[0.75, 0.25], [0.25, 0.75]])
    >>> round(guarantee.mu.value, 6), round(guarantee.tau.value, 6)
    (0.549306, 1.048147)
    """

    mu: Guarantee
    tau: Guarantee

    def _columns(self) -> dict[str, list[Any]]:
        return {"mu": [self.mu.value], "tau": [self.tau.value]}

    def __str__(self) -> str:
        return f"{self.mu}\n{self.tau}"


def mcdp(channel: ChannelLike, graph: Policy = None) -> MeanConcentrated:
    """Bound the smallest mu and tau (nats) such that the channel is (mu, tau)-mCDP.

    See [DR, Def 3.3]. The privacy loss of two rows p, q is log p/q under p. Its largest mean over pairs of rows, KL(p
    || q), is mu. Let K be the log moment generating function of the loss minus its mean. The largest 2 K(s)/s^2 over
    pairs and over s != 0 is tau^2. Post-processing can raise tau [BS, App A].

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    MeanConcentrated
        `mu` and `tau`, in nats. `lower` and `value` enclose tau with a relative width of 1e-10.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph does not fit the inputs.

    Examples
    --------
    >>> result = mcdp([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(result.mu), 6), round(float(result.tau) ** 2, 6)  # 2 epsilon tanh(epsilon/2)
    (0.549306, 1.098612)
    """
    channel = as_channel(channel)
    mu = worst_pair(
        "mcdp_mu", channel, graph, _mean, MEAN_REFERENCE, event=larger, screen=lambda q: Moments.from_matrix(q).mean
    )
    tau = worst_pair(
        "mcdp_tau", channel, graph, subgaussian_of_pairs, MEAN_REFERENCE,
        event=larger, screen=_screen_mcdp, limit=MAX_UNSCREENED_ENTRIES,
    )  # fmt: skip
    return MeanConcentrated(mu, tau)


def _screen_mcdp(matrix: Array) -> tuple[Array, Array]:
    """Bounds on tau of every ordered pair from a grid of s; in between, the convex K lies below its chords."""
    moments = Moments.from_matrix(matrix)
    span = moments.span
    if span == 0 or moments.infinite_losses.any():
        bound = np.where(moments.infinite_losses, np.inf, 0.0)
        return bound, bound
    low, high = np.zeros(moments.infinite_losses.shape), np.zeros(moments.infinite_losses.shape)
    for sign in (1.0, -1.0):
        s = 2.0**-6 / span
        cumulant_lower, cumulant_upper = _cumulant(moments, sign * s)
        low = np.maximum(low, 2 * cumulant_lower / s**2)
        # 2 K/s^2 is a mean of variances of tilted laws; a tilt by s changes a variance by at most exp(s span).
        high = np.maximum(high, 2 * cumulant_upper / s**2 * np.exp(2 * s * span))
        while (later_bound := 2 * span / s) > float(low.max()) and s * span < 1e12:
            next_s, previous_upper = 1.2 * s, cumulant_upper
            cumulant_lower, cumulant_upper = _cumulant(moments, sign * next_s)
            low = np.maximum(low, 2 * cumulant_lower / next_s**2)
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = (cumulant_upper - previous_upper) / (next_s - s)
                intercept = previous_upper - slope * s
                has_peak = (intercept < 0) & (-2 * intercept >= slope * s) & (-2 * intercept <= slope * next_s)
                peak = np.where(has_peak, -(slope**2) / (2 * intercept), 0.0)
            end_bounds = np.maximum(2 * previous_upper / s**2, 2 * cumulant_upper / next_s**2)
            high = np.maximum(high, np.nan_to_num(np.maximum(peak, end_bounds), nan=np.inf, posinf=np.inf))
            s = next_s
        high = np.maximum(high, later_bound)
    return np.sqrt(low) * (1 - 1e-9), np.sqrt(high) * (1 + 1e-9)


def _cumulant(moments: Moments, s: float) -> tuple[Array, Array]:
    """Bounds on K(s) = log E exp(s (Z - E Z)) >= 0."""
    (low, high), (mean_low, mean_high) = moments.log_moment(s), moments.mean
    shift = np.sort([s * mean_low, s * mean_high], axis=0)
    return np.maximum(low - shift[1], 0.0), np.maximum(high - shift[0], 0.0)


def _mean(p: Array, q: Array) -> tuple[Array, Array]:
    loss = privacy_loss(p, q, 0.0)
    return loss.mean_lower, loss.mean_upper


def subgaussian_of_pairs(p: Array, q: Array) -> tuple[Array, Array]:
    """Bound the subgaussian parameter tau of n pairs of rows, arrays (n, m) -> (n,), (n,)."""
    p, q = np.atleast_2d(p, q)
    loss = privacy_loss(p, q, 0.0)
    lower = np.where(loss.infinite, np.inf, 0.0)
    upper = lower.copy()
    is_flat = np.ptp(loss.centred, axis=1) == 0
    # Where only rounding has made rows equal, tau is at most the largest deviation of the loss (Hoeffding).
    upper[is_flat & ~loss.identical & ~loss.infinite] = (
        2 * loss.slack.max(axis=1)[is_flat & ~loss.identical & ~loss.infinite]
    )
    finite_pairs = np.flatnonzero(~(loss.infinite | loss.identical | is_flat))
    if not len(finite_pairs):
        return lower, upper
    loss = loss.rows(finite_pairs)
    largest_deviation = np.where(loss.p > 0, np.abs(loss.centred) + loss.slack, 0.0).max(axis=1)
    loss_variance = (loss.p * loss.centred**2).sum(axis=1)
    rounding = (loss.p * loss.slack * (2 * np.abs(loss.centred) + loss.slack)).sum(axis=1)
    error = 40 * ULP * loss_variance + rounding + 16 * loss.p.shape[1] * SUBNORMAL
    variance_bounds = np.maximum(loss_variance - error, 0.0), loss_variance + error
    lower[finite_pairs], upper[finite_pairs] = largest_spread(
        loss.cumulant_at, variance_bounds, largest_deviation, loss.spread
    )
    return lower, upper
