"""Several populations and limits of privacy -> how fast they are all told apart, and the channel that does it.

With M hypotheses the largest error falls like exp(-n C), C the least Chernoff information of two of them. Let
H = 1 - sum_y sqrt(M_i M_j) for each pair. Choosing between channels by a public coin averages H, so that the best
least H is the value of a game: weights on the pairs against channels, each answer an optimum of a weighted sum.

No report is more than e^epsilon times likelier under one hypothesis than under another. For such laws
1 - sum_y M_i^s M_j^(1-s) <= kappa H for every s: with f_s(t) = s t + 1 - s - t^s, which is 0 and flat at t = 1, the
quotient of the second derivatives of f_s and f_(1/2) is 4 s (1 - s) t^(s - 1/2), monotone in t, and so is f_s/f_(1/2).
At t = e^epsilon it is largest, because f_s is concave in s, where t^s log t = t - 1. So C <= -log(1 - kappa H).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ldpopt.bounds.comparison import limits_of
from ldpopt.channel import Channel
from ldpopt.design import Divergence, WeightedSum, optimal_channel
from ldpopt.design.solve import solve_real
from ldpopt.divergences.named import alpha as alpha_divergence
from ldpopt.errors import Phrase, invalid
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.values.deadline import watched
from ldpopt.values.distribution import Array, number
from ldpopt.values.labels import vectors
from ldpopt.values.results import Result

_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class SeveralExponent(Result):
    """The rate at which all hypotheses are told apart by the best channel, in nats a respondent.

    lower, upper : the best rate of a channel, chosen with or without a public coin, lies between them. channel : one
    that reaches `lower`; each of its reports is a pair (which channel the coin chose, the report). guarantees : its
    own epsilon and eta, measured.
    """

    lower: float
    upper: float
    channel: Channel
    guarantees: tuple[Guarantee, ...]


def chernoff_of_several(
    hypotheses: Any,
    epsilon: float,
    eta: float | None = None,
    *,
    tolerance: float = 1e-4,
    time_limit: float | None = None,
) -> SeveralExponent:
    """The best Chernoff exponent of a decision between several populations: that of the two hardest to tell [Chernoff].

    hypotheses : 2 or more distributions of the answers, shape (M, k). epsilon : nats. eta : cap on the total variation,
    in [0, 1]. tolerance : of the game, relative. time_limit : in seconds; the bracket that is known then is returned.

    The two ends differ by a factor of about kappa besides: 1.007, 1.03, 1.06 at epsilon = 1, 2, 3. Every respondent
    uses one channel, fixed in advance.

    >>> found = chernoff_of_several([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], 1.0)
    >>> round(found.lower, 4), round(found.upper, 4)
    (0.0456, 0.0459)
    """
    laws = vectors(hypotheses)
    if len(laws) < 2:
        raise invalid("hypotheses", "at least two distributions", Phrase(f"{len(laws)}"))
    slack = number(tolerance, "tolerance")
    if not 0 < slack < 1:
        raise invalid("tolerance", "a number between 0 and 1", tolerance)
    limits = limits_of(epsilon, eta)
    parts = [Divergence(_HELLINGER, p, q) for p, q in itertools.combinations(laws, 2)]
    weights, upper, channels, values = np.full(len(parts), 1 / len(parts)), math.inf, [], []
    with watched(time_limit, False) as deadline:
        for _ in deadline.rounds(range(_ROUNDS)):
            design = optimal_channel(WeightedSum(weights.tolist(), parts), limits)
            upper = min(upper, design.upper_bound)
            channels.append(design.channel)
            values.append([part.value(design.channel) for part in parts])
            table = np.array(values)
            coin, weights = _mixed(table), _mixed(-table.T)
            if upper <= float((coin @ table).min()) * (1 + slack):
                break
    channel = _by_coin(channels, coin)
    lower = min(_information(part, channel) for part in parts)
    most = min(1.0, _kappa(epsilon) * upper / 4) * (1 + 1e-13)
    guarantees = (local_dp(channel), total_variation(channel))
    return SeveralExponent(lower, max(lower, -math.log1p(-most) if most < 1 else math.inf), channel, guarantees)


_HELLINGER = alpha_divergence(0.5)
"""4 H, as a divergence."""


def _kappa(epsilon: float) -> float:
    """The largest quotient f_s(t)/f_(1/2)(t) for 1 <= t <= e^epsilon and all s, rounded up; 1 at epsilon = 0."""
    if epsilon < 1e-3:  # 1 + epsilon^2/144 + ...
        return 1 + epsilon**2 / 100
    t = math.exp(min(epsilon, 600.0))
    s = math.log((t - 1) / epsilon) / epsilon
    return (s * t + 1 - s - t**s) / (0.5 * (math.sqrt(t) - 1) ** 2) * (1 + 1e-8) if epsilon <= 600 else 2.0


def _mixed(gains: Array) -> Array:
    """The probabilities of the rows, in a game of which they want much, that do best against the worst column."""
    n, columns = gains.shape
    above = np.hstack([-gains.T / max(float(np.abs(gains).max()), 1e-300), np.ones((columns, 1))])
    wanted, total = np.append(np.zeros(n), 1.0), np.append(np.ones(n), 0.0)[None]
    weights, *_ = solve_real(wanted, total, np.ones(1), above, np.zeros(columns), "the game of hypotheses")
    shares = np.maximum(weights[:n], 0.0)
    return np.asarray(shares / shares.sum())


def _by_coin(channels: list[Channel], coin: Array) -> Channel:
    """The channel that announces which channel a coin chose, and its report."""
    kept = [(number, c) for number, c in enumerate(coin.tolist()) if c > 1e-12]
    total = math.fsum(c for _, c in kept)
    matrix = np.hstack([channels[number].matrix * (c / total) for number, c in kept])
    outputs = tuple((turn, y) for turn, (number, _) in enumerate(kept) for y in channels[number].outputs)
    return Channel(matrix, channels[0].inputs, outputs)


def _information(part: Divergence, channel: Channel) -> float:
    """The Chernoff information that a channel leaves of two hypotheses, from below: any order s gives a bound."""

    def rate(s: float) -> float:
        kept = Divergence(alpha_divergence(s), part.p0, part.p1).value(channel)
        return -math.log1p(-min(s * (1 - s) * kept, 1.0)) if s * (1 - s) * kept < 1 else math.inf

    best = minimize_scalar(lambda s: -rate(float(s)), bounds=(0.02, 0.98), method="bounded", options={"xatol": 1e-4})
    return max(rate(float(best.x)), rate(0.5)) * (1 - 1e-12)
