"""The constraint that a channel be eta-TV: no two rows are farther apart than eta in total variation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.constraints.hockey_stick import every_pair
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.distribution import unit_interval
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.privacy import Guarantee, total_variation


@dataclass(frozen=True)
class TotalVariation(ColumnConstraint):
    """sum_y |Q[x, y] - Q[x', y]| / 2 <= eta for any two inputs, eta in [0, 1] [GI, Def 7].

    >>> TotalVariation(0.4).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value <= TotalVariation(0.41).bound
    True
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", unit_interval(self.eta, "eta"))

    @property
    def plain(self) -> tuple[float, float] | None:
        """(inf, eta)."""
        return math.inf, self.eta

    @property
    def bound(self) -> float:
        """The largest eta allowed."""
        return self.eta

    def measure(self, channel: Channel) -> Guarantee:
        """The largest total variation between two rows, the channel's Dobrushin coefficient."""
        return total_variation(channel)

    def centred(self) -> TotalVariation:
        """The same with half of eta."""
        return replace(self, eta=self.eta / 2)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """eta."""
        return arithmetic.of(self.eta)

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """sum_y (Q[x, y] - Q[x', y])_+ <= eta for every two inputs."""
        return (every_pair(len(inputs), 0.0, self.eta),)

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """eta, which caps the excess at reach 0; a larger reach only lowers the excess."""
        return arithmetic.of(self.eta)
