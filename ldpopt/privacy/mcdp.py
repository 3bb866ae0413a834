"""Mean-concentrated local differential privacy: the privacy loss has a small mean, and is subgaussian around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.loss import privacy_loss
from ldpopt.privacy.pairs import SCREENED, larger, stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.privacy.renyi import Moments
from ldpopt.privacy.supremum import Rows, supremum
from ldpopt.results import Result
from ldpopt.rounding import SUBNORMAL, ULP

REFERENCE = "[DR, Def 3.3]"


@dataclass(frozen=True, eq=False)
class MeanConcentrated(Result):
    """(mu, tau)-mCDP: the guarantees on the mean of the privacy loss and on its subgaussian parameter, in nats.

    >>> from ldpopt.privacy import mcdp
    >>> found = mcdp([[0.75, 0.25], [0.25, 0.75]])
    >>> round(found.mu.value, 6), round(found.tau.value, 6)
    (0.549306, 1.048147)
    """

    mu: Guarantee
    tau: Guarantee

    def _columns(self) -> dict[str, list[Any]]:
        return {"mu": [self.mu.value], "tau": [self.tau.value]}

    def __str__(self) -> str:
        return f"{self.mu}\n{self.tau}"


def mcdp(channel: ChannelLike, graph: Policy = None) -> MeanConcentrated:
    """The smallest mu and tau, in nats, for which the channel is (mu, tau)-mCDP [DR, Def 3.3].

    The privacy loss of two rows p, q is log p/q under p. mu is its largest mean over pairs of rows, KL(p || q).
    tau^2 is the largest 2 K(s)/s^2 over pairs and over s != 0, where K is the log moment generating function of the
    loss minus its mean; `lower` and `value` enclose tau with a relative width of 1e-10. Post-processing can raise tau
    [BS, App A]. With a policy `graph`, only adjacent inputs are compared.

    >>> result = mcdp([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(result.mu), 6), round(float(result.tau) ** 2, 6)  # 2 epsilon tanh(epsilon/2)
    (0.549306, 1.098612)
    """
    channel = as_channel(channel)
    mu = worst_pair("mcdp_mu", channel, graph, _mean, REFERENCE, event=larger, screen=lambda q: Moments.of(q).mean)
    tau = worst_pair(
        "mcdp_tau", channel, graph, subgaussian_of_pairs, REFERENCE, event=larger, screen=_screen, limit=SCREENED
    )
    return MeanConcentrated(mu, tau)


def _screen(matrix: Array) -> tuple[Array, Array]:
    """Bounds on tau of every ordered pair from a grid of s; in between, the convex K lies below its chords."""
    moments = Moments.of(matrix)
    span = moments.span
    if span == 0 or moments.outside.any():
        bound = np.where(moments.outside, np.inf, 0.0)
        return bound, bound
    low, high = np.zeros(moments.outside.shape), np.zeros(moments.outside.shape)
    for sign in (1.0, -1.0):
        s = 2.0**-6 / span
        below, above = _cumulant(moments, sign * s)
        low = np.maximum(low, 2 * below / s**2)
        # 2 K/s^2 is a mean of variances of tilted laws; a tilt by s changes a variance by at most exp(s span).
        high = np.maximum(high, 2 * above / s**2 * np.exp(2 * s * span))
        while (rest := 2 * span / s) > float(low.max()) and s * span < 1e12:
            following, before = 1.2 * s, above
            below, above = _cumulant(moments, sign * following)
            low = np.maximum(low, 2 * below / following**2)
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = (above - before) / (following - s)
                start = before - slope * s
                inside = (start < 0) & (-2 * start >= slope * s) & (-2 * start <= slope * following)
                peak = np.where(inside, -(slope**2) / (2 * start), 0.0)
            ends = np.maximum(2 * before / s**2, 2 * above / following**2)
            high = np.maximum(high, np.nan_to_num(np.maximum(peak, ends), nan=np.inf, posinf=np.inf))
            s = following
        high = np.maximum(high, rest)
    return np.sqrt(low) * (1 - 1e-9), np.sqrt(high) * (1 + 1e-9)


def _cumulant(moments: Moments, s: float) -> tuple[Array, Array]:
    """Bounds on K(s) = log E exp(s (Z - E Z)) >= 0."""
    (low, high), (least, most) = moments.log_moment(s), moments.mean
    shift = np.sort([s * least, s * most], axis=0)
    return np.maximum(low - shift[1], 0.0), np.maximum(high - shift[0], 0.0)


def _mean(p: Array, q: Array) -> tuple[Array, Array]:
    loss = privacy_loss(p, q, 0.0)
    return loss.mean_lower, loss.mean_upper


def subgaussian_of_pairs(p: Array, q: Array) -> tuple[Array, Array]:
    """Lower and upper bounds on the subgaussian parameter tau of n pairs of rows, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    loss = privacy_loss(p, q, 0.0)
    lower = np.where(loss.infinite, np.inf, 0.0)
    upper = lower.copy()
    flat = np.ptp(loss.centred, axis=1) == 0
    # Where only rounding has made rows equal, tau is at most the largest deviation of the loss (Hoeffding).
    upper[flat & ~loss.identical & ~loss.infinite] = 2 * loss.slack.max(axis=1)[flat & ~loss.identical & ~loss.infinite]
    finite = np.flatnonzero(~(loss.infinite | loss.identical | flat))
    if not len(finite):
        return lower, upper
    loss = loss.rows(finite)
    reach = np.where(loss.p > 0, np.abs(loss.centred) + loss.slack, 0.0).max(axis=1)
    # K'' is a variance, and at most exp(2 reach |s|) times that at 0; this bounds tau^2 on the interval next to 0.
    variance = (loss.p * loss.centred**2).sum(axis=1)
    rounding = (loss.p * loss.slack * (2 * np.abs(loss.centred) + loss.slack)).sum(axis=1)
    error = 40 * ULP * variance + rounding + 16 * loss.p.shape[1] * SUBNORMAL
    start = 2.0**-38 / reach
    best, above = np.maximum(variance - error, 0.0), (variance + error) * (1 + 2.0**-36)
    for sign in (1.0, -1.0):
        low, high = supremum(loss, sign, _Spread(reach), start, np.full(len(finite), np.inf))
        best, above = np.maximum(best, low), np.maximum(above, high)
    lower[finite], upper[finite] = np.sqrt(best) * (1 - 8 * ULP), np.sqrt(above) * (1 + 8 * ULP)
    return lower, upper


@dataclass(frozen=True)
class _Spread:
    """2 K(s)/s^2, for a loss that stays within `reach` of its mean."""

    reach: Array

    def below(self, rows: Rows, k: Array, s: Array) -> Array:
        return np.asarray(2 * k / (s * s))

    above = below

    def peak(self, rows: Rows, c0: Array, c1: Array) -> Array:
        return np.asarray(2 * np.maximum(-c0, 0.0) / c1)

    def curved(self, rows: Rows, left: Array, right: Array, c0: Array, c1: Array) -> Array:
        return np.asarray(c0 + np.maximum(c1 * left, c1 * right))

    def tail(self, rows: Rows, s: Array) -> Array:
        return np.asarray(2 * self.reach[rows] / s)  # K(s) <= |s| max |Z - E Z|
