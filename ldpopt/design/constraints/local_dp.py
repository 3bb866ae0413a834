"""The constraint that a channel be epsilon-LDP."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.channel import Channel
from ldpopt.distribution import positive_epsilon
from ldpopt.privacy import Guarantee, local_dp


@dataclass(frozen=True)
class LocalDP:
    """Every likelihood ratio of the channel is at most exp(epsilon), epsilon > 0 in nats [GI, Def 6].

    >>> LocalDP(1.0).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= LocalDP(1.0).bound
    True
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))

    @property
    def bound(self) -> float:
        """The largest epsilon allowed."""
        return self.epsilon

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own epsilon."""
        return local_dp(channel)
