"""Approximate local differential privacy: the smallest epsilon at a given delta."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, unit_interval
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.hockey_stick import positive_event, screen
from ldpopt.privacy.laws import shift
from ldpopt.privacy.loss import log_ratios
from ldpopt.privacy.pairs import stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.rounding import SUBNORMAL, ULP, exact_sum, first_largest
from ldpopt.tolerances import TIE

REFERENCE = "[GI, Def 1]"


def approximate_dp(channel: ChannelLike, delta: float, graph: Policy = None) -> Guarantee:
    """The smallest epsilon, in nats, for which the channel is (epsilon, delta)-LDP, for delta in [0, 1].

    It is inf if no epsilon suffices; `delta = 0` gives pure LDP. The value is exact: delta is the maximum of finitely
    many lines in e^epsilon, one for each event that a likelihood-ratio test can accept [GI, Thm 1]. With a policy
    `graph`, only adjacent inputs are compared.

    Where a row sums to one up to rounding, its entries are not divided by the sum if the other row has a zero there.
    So (0.1, 0, 0.9) against (0, 0.1, 0.9) is (0, 0.1)-LDP.

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
    """Lower and upper bounds on the epsilon at `delta` of n pairs of rows, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    level = unit_interval(delta, "delta")
    identical = (p == q).all(axis=1)
    by = shift(p, q)
    kept, lost, gained, size = _events(p, q)
    error = (p.shape[1] + 4) * ULP
    allowed = level * (1 + by.above)[:, None]
    growth = np.expm1(by.value)[:, None]
    bounds = []
    for sign in (-1, 1):
        # delta(t) = max_n P_n/P - t Q_n/Q <= delta  iff  t P/Q >= (P_n - delta P)/Q_n for every n.
        excess = kept * (1 + sign * error) - allowed * (1 - sign * 2 * ULP) + sign * 8 * SUBNORMAL
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logs = np.log(np.maximum(excess, 5e-324)) - np.log(lost) - by.value[:, None]
            logs += sign * (2 * error + 4 * ULP * np.abs(np.log(lost)) + 4 * ULP * np.abs(logs) + by.error[:, None])
            # Near t = 1 the logarithm of the quotient loses digits, which the difference keeps.
            off = error * size + 4 * ULP * (allowed + lost * np.abs(growth)) + 2 * lost * by.error[:, None]
            part = (gained - allowed - lost * growth + sign * (off + 8 * SUBNORMAL)) / (lost * (1 + growth))
            near = np.log1p(np.clip(part * (1 + sign * np.sign(part) * (error + 8 * ULP)), -0.5, 1.0))
            logs = np.where(np.abs(part) < 0.5, near * (1 + sign * 4 * ULP), logs)
        logs = np.where(excess > 0, np.where(lost > 0, logs, np.inf), -np.inf)
        bounds.append(logs)
    for at, n in np.argwhere((lost == 0) & (bounds[0] < bounds[1])):  # rounding hides whether epsilon is infinite
        bounds[0][at, n] = bounds[1][at, n] = np.inf if _exceeds(p[at], q[at], level) else -np.inf
    low, high = (np.where(identical, 0.0, np.maximum(logs.max(axis=1), 0.0)) for logs in bounds)
    return low, high


def _exceeds(p: Array, q: Array, level: float) -> bool:
    """Whether the outputs that are impossible under q have a probability above `level` under p, computed exactly.

    A row whose entries sum to one up to their rounding is not divided by its sum: 1 - d and d, both rounded, need not
    sum to exactly one.
    """
    lost = exact_sum(p[(q == 0) & (p > 0)])
    total = exact_sum(p)
    short = abs(total - 1) <= Fraction(1, 2**53)
    return lost > Fraction(level) * (1 if short else total)


def _events(p: Array, q: Array) -> tuple[Array, Array, Array, Array]:
    """Running sums of p, q, p - q and |p - q| over the outputs, sorted by falling likelihood ratio p/q."""
    inside = (p > 0) & (q > 0)
    ratio = log_ratios(np.where(inside, p, 1.0), np.where(inside, q, 1.0))
    order = np.argsort(-np.select([inside, p > 0], [ratio, np.inf], -np.inf), axis=1, kind="stable")
    p, q = np.take_along_axis(p, order, 1), np.take_along_axis(q, order, 1)
    d = p - q
    return p.cumsum(axis=1), q.cumsum(axis=1), d.cumsum(axis=1), np.abs(d).cumsum(axis=1)


def _event(p: Array, q: Array, level: float) -> npt.NDArray[np.bool_]:
    # Outputs whose ratio is e^epsilon up to rounding belong to the event.
    epsilon = min(float(epsilon_of_pairs(p, q, level)[0][0]), 1e6)
    return positive_event(p, q, max(0.0, epsilon - max(16 * TIE * epsilon, 64 * ULP)))


def _screen(matrix: Array, level: float) -> tuple[Array, Array]:
    """Bounds on the epsilon of every pair, from Newton's method on the worst pair; few pairs can exceed its answer."""
    epsilon, k = 0.0, len(matrix)
    while True:
        low, high = screen(matrix, epsilon)
        np.fill_diagonal(high, 0.0)
        x, other = np.unravel_index(first_largest(low.ravel()), low.shape)
        step = float(epsilon_of_pairs(matrix[[x]], matrix[[other]], level)[0][0])
        if not step > epsilon or step == np.inf:
            break
        epsilon = step
    if step == np.inf:
        bound = np.zeros((k, k))
        bound[x, other] = np.inf
        return bound, bound
    # If the delta of a pair at some epsilon is at most the level, this epsilon is large enough for the pair.
    later = epsilon * (1 + 1e-9) + 1e-15
    upper = np.where(high <= level, epsilon, np.where(screen(matrix, later)[1] <= level, later, np.inf))
    tied = screen(matrix, epsilon * (1 - TIE))[0] > level
    lower = np.where(tied, epsilon * (1 - TIE), -np.inf)
    lower[x, other] = epsilon
    return lower, upper
