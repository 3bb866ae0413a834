"""Approximate zCDP: zero-concentrated privacy, after events of small probability are set aside."""

from __future__ import annotations

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, number, unit_interval
from ldpopt.privacy.approximate_dp import epsilon_of_pairs
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.laws import scaled, shift
from ldpopt.privacy.loss import privacy_loss
from ldpopt.privacy.pairs import ENTRIES, SCREENED, larger, stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.privacy.zcdp import zcdp_of_pairs
from ldpopt.rounding import ULP, first_largest

REFERENCE = "[BS, Def 8.1]"


def approximate_zcdp(channel: ChannelLike, delta: float, xi: float = 0.0, graph: Policy = None) -> Guarantee:
    """The smallest rho for which the channel is delta-approximate (xi, rho)-zCDP [BS, Def 8.1].

    For each pair of rows p and q, the definition asks for events of probability at least 1 - delta, such that the laws
    conditional on them are (xi, rho)-zCDP in both directions.

    Conditioning can turn p into any law p' <= p/(1 - delta). The best choice is min(p, t q)/(1 - delta) and
    min(q, t' p)/(1 - delta), where t and t' remove the probability delta from each: these two laws are the hardest to
    tell apart, and minimise every Rényi divergence at once [HS, Thm 4.1]. So the value is exact, up to the
    width of the bounds of `zcdp`. With a directed policy graph, both directions of an edge count, as defined.

    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(float(approximate_zcdp(q, 0.0)), 6), round(float(approximate_zcdp(q, 0.25)), 6)
    (0.549306, 0.231049)
    """
    channel = as_channel(channel)
    level, shift = unit_interval(delta, "delta"), number(xi, "xi")
    return worst_pair(
        "approximate_zcdp", channel, graph, lambda p, q: approximate_zcdp_of_pairs(p, q, level, shift), REFERENCE,
        parameters={"delta": level, "xi": shift}, event=larger, screen=lambda matrix: _screen(matrix, level, shift),
        limit=SCREENED,
    )  # fmt: skip


def approximate_zcdp_of_pairs(p: Array, q: Array, delta: float, xi: float = 0.0) -> tuple[Array, Array]:
    """Lower and upper bounds on rho of n pairs of rows, in the worse direction, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    level = unit_interval(delta, "delta")
    sides = []
    for side in (0, 1):  # a cut slightly too low removes more than delta and bounds rho below; too high, above
        left, right, off = _conditioned(p, q, level, side)
        forward, back = (zcdp_of_pairs(*pair, xi, off=off) for pair in ((left, right), (right, left)))
        sides.append(np.maximum(forward, back)[side])
    return sides[0], sides[1]


def _conditioned(p: Array, q: Array, level: float, side: int) -> tuple[Array, Array, Array]:
    """The best conditional laws up to their scale, cut a little too low (side 0) or too high (side 1), (n, m) each.

    The third result is a bound on the relative error of their entries, (n,).
    """
    by = shift(p, q).value
    cut_p, cut_q = epsilon_of_pairs(p, q, level)[side], epsilon_of_pairs(q, p, level)[side]
    none = ((cut_p == 0) | (cut_q == 0))[:, None]  # delta is at least the total variation: the laws can be made equal
    left, right = np.where(none, p, _cut(p, q, cut_p, by)), np.where(none, p, _cut(q, p, cut_q, -by))
    factors = np.where(np.isinf(cut_p), 0.0, cut_p) + np.where(np.isinf(cut_q), 0.0, cut_q)
    return left, right, ULP * (16 + 4 * factors)


def _screen(matrix: Array, level: float, xi: float) -> tuple[Array, Array]:
    """Upper bounds on every pair of inputs, in one order of the two, and a lower bound on the worst-looking pair."""
    k, m = matrix.shape
    low, high = np.full((k, k), -np.inf), np.full((k, k), -np.inf)
    i, j = np.triu_indices(k, 1)
    step = max(1, ENTRIES // m)
    for at in range(0, len(i), step):
        rows = slice(at, at + step)
        left, right, off = _conditioned(matrix[i[rows]], matrix[j[rows]], level, 1)
        high[i[rows], j[rows]] = np.maximum(_at_most(left, right, xi, off), _at_most(right, left, xi, off))
    x, other = np.unravel_index(first_largest(high.ravel()), high.shape)
    low[x, other] = approximate_zcdp_of_pairs(matrix[[x]], matrix[[other]], level, xi)[0][0]
    return low, high


def _at_most(p: Array, q: Array, xi: float, off: Array) -> Array:
    """Upper bounds on rho from a grid of orders: between two, D/alpha is at most the later D over the earlier order."""
    loss = privacy_loss(p, q, off)
    size = loss.centred + loss.mean_upper[:, None]
    error = (loss.slack.max(axis=1) + 8 * ULP * (1 + np.abs(size).max(axis=1))) * 4
    bound, order = np.zeros(len(p)), 1.0
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        while True:
            rest = (loss.top_upper - xi) / order
            if order > 1e12 or rest.max() <= 0.9 * bound.max():
                break
            s = order * 1.03 - 1
            top = s * size.max(axis=1)
            total = (loss.p * np.exp(s * size - top[:, None])).sum(axis=1)
            above = (top + np.log(total) + (p.shape[1] + 64) * ULP) / s + error - xi
            bound = np.maximum(bound, np.fmin(above, loss.top_upper - xi) / np.where(above > 0, order, 1 + s))
            order = 1 + s
    bound = np.maximum(bound, rest) * (1 + 1e-9)
    return np.asarray(np.where(loss.infinite, np.inf, np.maximum(bound, 0.0)))


def _cut(p: Array, q: Array, epsilon: Array, by: Array) -> Array:
    """min(p, e^(epsilon + by) q); p itself where epsilon is infinite."""
    limit = scaled(q, np.where(np.isinf(epsilon), 0.0, epsilon + by))
    return np.asarray(np.minimum(p, np.where(np.isinf(epsilon)[:, None], np.inf, limit)))
