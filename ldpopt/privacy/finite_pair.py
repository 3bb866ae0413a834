"""The finite pair: two distributions on one finite set, with every measure of how well they can be distinguished."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.privacy.approximate_dp import approximate_dp as approximate_dp_of
from ldpopt.privacy.approximate_dp import hockey_stick as hockey_stick_of
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs
from ldpopt.privacy.approximate_dp import total_variation as total_variation_of
from ldpopt.privacy.concentrated import approximate_zcdp as approximate_zcdp_of
from ldpopt.privacy.concentrated import mcdp as mcdp_of
from ldpopt.privacy.concentrated import zcdp as zcdp_of
from ldpopt.privacy.least_pair import checked, kept_mass, least_pair, pair_through
from ldpopt.privacy.local_dp import local_dp as local_dp_of
from ldpopt.privacy.loss import log_ratios, shift
from ldpopt.privacy.pairs import Policy, ordered_pairs
from ldpopt.privacy.renyi import renyi as renyi_of
from ldpopt.privacy.trade_off import trade_off as trade_off_of
from ldpopt.values.distribution import Array, distribution, unit_interval
from ldpopt.values.labels import aligned, distinct_labels
from ldpopt.values.results import Pictured


@dataclass(frozen=True, eq=False, repr=False)
class FinitePair(Pictured):
    """Two distributions p, q on one finite set: those of the report for two inputs.

    p, q : probability vectors of one length m. outputs : m distinct labels, 0..m-1 by default. Raises `InvalidInput`
    for anything else. The measures of `privacy` are methods, those of `channel`, which has the rows p and q: they cover
    both directions. Every function that takes a channel also takes a pair.

    One pair *dominates* another if every test of the other pair has a test of this pair with no larger errors of either
    type. So a pair that dominates all pairs of rows of a channel bounds every measure of the channel.

    >>> pair = FinitePair([0.25, 0.75], [0.5, 0.5])
    >>> pair.losses.round(6)
    array([-0.693147,  0.405465])
    >>> round(float(pair.renyi(2)), 6), round(float(pair.total_variation()), 6)
    (0.287682, 0.25)
    """

    p: Any
    q: Any
    outputs: tuple[Label, ...] | None = None

    _picture, _heads = "trade_off", 1

    def _columns(self) -> dict[str, list[Any]]:
        labels = range(len(self.p)) if self.outputs is None else self.outputs
        columns = {"p": self.p.tolist(), "q": self.q.tolist(), "loss": self.losses.tolist()}
        return {"outcome": list(labels), **columns}

    def __post_init__(self) -> None:
        (p, q), outputs = aligned([("p", self.p), ("q", self.q)], self.outputs)
        p = distribution(p, "p")
        q = distribution(q, "q", size=len(p))
        if np.array_equal(p, q) and not np.array_equal(self.p, self.q):
            # If only rounding made p and q equal, they keep a difference of an ulp, so that error bounds apply.
            q = q.copy()
            q[q.argmax()] = np.nextafter(q.max(), 0.0)
            q.setflags(write=False)
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "q", q)
        object.__setattr__(self, "outputs", distinct_labels(outputs, len(p), "outputs"))

    @classmethod
    def of_parameters(cls, epsilon: Any, delta: Any = 0.0, eta: Any = None) -> FinitePair:
        """Build the pair that dominates every (epsilon, delta)-DP and eta-TV mechanism.

        epsilon is in nats; delta and eta lie in [0, 1]. The pair is that of [GI, eq. 7-8, 70-71]. With e = exp(epsilon)
        and an a that follows from eta,

            p = (delta, (1-delta)(1-a) e/(1+e), a (1-delta), (1-delta)(1-a)/(1+e), 0),

        and q is p reversed. `mechanisms.dominating_pair` also covers the rounding of its parameters.

        >>> FinitePair.of_parameters(1.0, eta=0.25).p.round(6)
        array([0.      , 0.395494, 0.459012, 0.145494, 0.      ])
        """
        epsilon, delta, eta = checked(epsilon, delta, eta)
        delta, randomized_share = kept_mass(epsilon, delta, eta)
        randomized_mass, lie_probability = (1 - delta) * randomized_share, 1 / (1 + math.exp(epsilon))
        p = np.array(
            [
                delta,
                randomized_mass / (1 + math.exp(-epsilon)),
                (1 - delta) * (1 - randomized_share),
                randomized_mass * lie_probability,
                0.0,
            ]
        )
        return cls(p, p[::-1], ("p only", "p", "erased", "q", "q only"))

    @classmethod
    def of_channel(cls, channel: ChannelLike, graph: Policy = None) -> FinitePair:
        """Build the tightest pair that dominates every compared ordered pair of rows.

        With a policy `graph`, only adjacent inputs are compared. The pair's test curve is the concave hull of the
        curves of the rows, so its composition bounds every adaptive choice of inputs.
        """
        channel = as_channel(channel)
        i, j = ordered_pairs(channel, graph)
        pairs = [cls(channel.matrix[a], channel.matrix[b]).ordered for a, b in zip(i, j, strict=True)]
        return cls.tightest_dominating(pairs) if pairs else cls(np.ones(1), np.ones(1))

    @classmethod
    def tightest_dominating(cls, pairs: Iterable[FinitePair]) -> FinitePair:
        """Build the tightest pair that dominates all of `pairs`."""
        distinct_pairs = list(dict.fromkeys(pair.ordered for pair in pairs))
        if not distinct_pairs:
            raise invalid("pairs", "at least one pair", Phrase("an empty list"))
        if len(distinct_pairs) == 1:
            return distinct_pairs[0]
        return cls(*least_pair([(pair.p, pair.q) for pair in distinct_pairs])).ordered

    @classmethod
    def through(
        cls, epsilons: Array, deltas: Array, back_epsilons: Array | None = None, back_deltas: Array | None = None
    ) -> FinitePair:
        """Return the pair whose delta, as a function of epsilon, is the lower convex hull of given points.

        Parameters
        ----------
        epsilons : (n,), in nats, increasing from 0 to at most 700.
        deltas : (n,), in [0, 1], non-increasing: the delta of p from q.
        back_epsilons, back_deltas : (m,), the same for q from p; without them the pair is symmetric.

        The pair dominates every mechanism whose delta at these epsilons is at most that of the points, in the same
        directions [GI, Thm 1].
        """
        back = None if back_epsilons is None or back_deltas is None else (back_epsilons, back_deltas)
        return cls(*pair_through(epsilons, deltas, back)).ordered

    def both_ways(self) -> FinitePair:
        """Build the tightest pair that dominates this one in both directions."""
        return self if self.symmetric else FinitePair.tightest_dominating([self, self.swapped])

    def subsampled(self, rate: float) -> FinitePair:
        """Build a pair that dominates r p + (1 - r) q against q, after Poisson sampling [ZDW].

        Each person takes part with probability r = `rate`; p is the release with a person's answer, q without it. To
        cover rounding, the rate is raised until the rounded pair dominates, usually by a few units in the last place.

        >>> round(float(FinitePair.of_parameters(1.0).subsampled(0.1).local_dp()), 9)  # log(1 + (e - 1)/10)
        0.158565079
        """
        checked_rate = unit_interval(rate, "rate")
        if checked_rate == 0 or np.array_equal(self.p, self.q):
            return FinitePair(self.q, self.q, self.outputs)
        step = 2.0**-46
        while (raised_rate := checked_rate * (1 + step)) < 1:
            sampled_pair = FinitePair(self.q + raised_rate * (self.p - self.q), self.q, self.outputs)
            if _covers(sampled_pair, self, checked_rate):
                return sampled_pair
            step *= 4
        return self  # the rate 1, which dominates every smaller one

    @cached_property
    def channel(self) -> Channel:
        """The channel with rows p and q."""
        return Channel(np.stack([self.p, self.q]), ("p", "q"), self.outputs)

    @cached_property
    def losses(self) -> Array:
        """The privacy losses log p/q, shape (m,): inf where only q is 0, -inf where only p is 0, 0 where both are 0."""
        is_in_both = (self.p > 0) & (self.q > 0)
        finite_losses = log_ratios(np.where(is_in_both, self.p, 1.0), np.where(is_in_both, self.q, 1.0))
        return np.select([is_in_both, self.p > 0, self.q > 0], [finite_losses, np.inf, -np.inf], 0.0)

    @property
    def infinite(self) -> float:
        """The probability of an infinite privacy loss under p."""
        return float(self.p[self.q == 0].sum())

    @property
    def swapped(self) -> FinitePair:
        """The same pair in the other direction."""
        return FinitePair(self.q, self.p, self.outputs)

    @cached_property
    def ordered(self) -> FinitePair:
        """The same pair sorted by falling loss, without labels and impossible outcomes; equal for relabelled pairs."""
        order = np.argsort(-self.losses, kind="stable")
        order = order[(self.p[order] > 0) | (self.q[order] > 0)]
        sorted_pair = FinitePair(self.p[order], self.q[order])
        return self if sorted_pair == self else sorted_pair

    @property
    def symmetric(self) -> bool:
        """Symmetry: exchanging p and q gives the same pair up to relabelling, exactly."""
        return np.array_equal(self.ordered.p, self.ordered.q[::-1])

    local_dp = local_dp_of
    total_variation = total_variation_of
    hockey_stick = hockey_stick_of
    approximate_dp = approximate_dp_of
    trade_off = trade_off_of
    renyi = renyi_of
    zcdp = zcdp_of
    approximate_zcdp = approximate_zcdp_of
    mcdp = mcdp_of

    def __repr__(self) -> str:
        return f"FinitePair({len(self.p)} outcomes, largest loss {self.losses.max():.6g})"


def _covers(sampled_pair: FinitePair, pair: FinitePair, rate: float) -> bool:
    """True if the hockey stick of `sampled_pair` is at least that of the sampled `pair`, in both directions.

    The sampled pair is rate p + (1 - rate) q against q. Both hockey sticks are convex in e^epsilon, and that of
    `sampled_pair` is linear between its losses, so they are compared there.
    """
    # Also a little beyond each loss: past the largest one, the hockey stick may be zero.
    absolute_losses = np.abs(sampled_pair.losses - shift(sampled_pair.p[None], sampled_pair.q[None]).value[0])
    absolute_losses = absolute_losses[np.isfinite(absolute_losses)]
    for epsilon in np.unique(np.concatenate([[0.0], absolute_losses, absolute_losses * (1 + 16 * ULP)])).tolist():
        growth, backward_upper = math.expm1(epsilon), 0.0
        # Forward: r p + (1 - r) q - E q = r (p - (1 + (E - 1)/r) q). Back: q - E (r p + (1 - r) q) = c (q - (E r/c) p).
        pair_epsilon = math.log1p(growth / rate) * (1 - 16 * ULP)
        forward_upper = rate * float(hockey_stick_of_pairs(pair.p, pair.q, pair_epsilon)[1][0]) * (1 + 8 * ULP)
        scale = rate * math.exp(epsilon)
        if growth < scale:
            complement = 1 - growth / scale
            pair_epsilon = (
                -math.log(complement) - 16 * ULP / complement if complement < 0.5 else -math.log1p(-growth / scale)
            )
            pair_epsilon = max(pair_epsilon, 0.0) * (1 - 16 * ULP)
            backward_upper = (scale - growth + 4 * ULP * scale) * float(
                hockey_stick_of_pairs(pair.q, pair.p, pair_epsilon)[1][0]
            )
        sampled_lowers = (
            hockey_stick_of_pairs(a, b, epsilon)[0][0]
            for a, b in ((sampled_pair.p, sampled_pair.q), (sampled_pair.q, sampled_pair.p))
        )
        if not all(low >= high for low, high in zip(sampled_lowers, (forward_upper, backward_upper), strict=True)):
            return False
    impossible_mass = pair.p[pair.q == 0].sum()
    return bool(impossible_mass == 0 or sampled_pair.p[sampled_pair.q == 0].sum() >= rate * impossible_mass)
