"""The constraint that a channel be eta-TV."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.channel import Channel
from ldpopt.distribution import unit_interval
from ldpopt.privacy import Guarantee, total_variation


@dataclass(frozen=True)
class TotalVariation:
    """Any two rows of the channel are within total variation eta, in [0, 1] [GI, Def 7].

    >>> TotalVariation(0.4).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= TotalVariation(0.41).bound
    True
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", unit_interval(self.eta, "eta"))

    @property
    def bound(self) -> float:
        """The largest eta allowed."""
        return self.eta

    def measure(self, channel: Channel) -> Guarantee:
        """The channel's own Dobrushin coefficient."""
        return total_variation(channel)
