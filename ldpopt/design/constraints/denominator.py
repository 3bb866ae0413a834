"""The constraint that all probabilities be multiples of 1/D: what dice, cards and coins can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.base import Measured
from ldpopt.distribution import positive_integer
from ldpopt.errors import InvalidInput, invalid
from ldpopt.privacy import Guarantee
from ldpopt.privacy.guarantee import Witness

LARGEST = 10**6
REFERENCE = "[Warner]"


@dataclass(frozen=True)
class Denominator(Measured):
    """Every probability of the channel is n/D for an integer n. D is 36 for two dice, 52 for a deck, 2^c for c coins.

    D : from 2 to a million. A matrix of floats meets this when its entries are the floats nearest to such fractions,
    and the integers of each row add up to D. Nothing can be said here about whether the dice or coins are fair.

    >>> Denominator(4).measure(Channel([[0.75, 0.25], [0.25, 0.75]])).value
    0.0
    """

    D: int

    def __post_init__(self) -> None:
        made = positive_integer(self.D, "denominator", 2)
        if made > LARGEST:
            raise invalid("denominator", f"at most {LARGEST:,}", made)
        object.__setattr__(self, "D", made)

    @property
    def bound(self) -> float:
        """0: every entry must be the float nearest to a multiple of 1/D."""
        return 0.0

    def measure(self, channel: Channel) -> Guarantee:
        """How far the entries are from multiples of 1/D: 0 where each is the float nearest to one.

        Infinite where the multiples of a row do not add up to 1.
        """
        weights = np.rint(channel.matrix * self.D)
        away = np.abs(channel.matrix - weights / self.D)
        x, y = (int(at) for at in np.unravel_index(int(away.argmax()), away.shape))
        worst = float(away[x, y])
        if worst == 0 and not (weights.sum(axis=1) == self.D).all():
            worst = float("inf")
        witness = Witness((channel.inputs[x], channel.inputs[x]), (channel.outputs[y],)) if worst > 0 else None
        return Guarantee("denominator", worst, worst, witness, True, REFERENCE, {"D": float(self.D)})

    def expression(self, q: Any) -> Sequence[Any]:
        """Raises `InvalidInput`: a convex program cannot ask for integers."""
        raise InvalidInput("constraints: Denominator is for optimal_channel alone, as no convex program has integers")
