"""The constraint that a channel have few outputs: a communication budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.distribution import Index, positive_integer
from ldpopt.privacy import Guarantee


@dataclass(frozen=True)
class Outputs(AlphabetConstraint):
    """At most m >= 1 different reports, log2(m) bits each: a budget of communication.

    Outputs cannot be split at will, so that staircase patterns do not suffice; the optimum is bounded by branching on
    the outputs' likelihood ratios. Where the optimum without the budget has at most m outputs, it is the answer
    [KOV14, Thm 2].

    >>> Outputs(2).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value
    2.0
    """

    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", positive_integer(self.m, "m"))

    @property
    def labelled(self) -> bool:
        """False: exchanging two outputs changes nothing."""
        return False

    @property
    def bound(self) -> float:
        """The largest number of outputs."""
        return float(self.m)

    def measure(self, channel: Channel) -> Guarantee:
        """The number of outputs that occur."""
        used = float((channel.matrix.max(axis=0) > 0).sum())
        return Guarantee("outputs", used, used, None, True, "[KOV14, Thm 2]")

    def outputs(self, inputs: int) -> int:
        """m, whatever the number of inputs."""
        return self.m

    def kinds(self, outputs: int) -> Index:
        """Zeros: all outputs are alike."""
        return np.zeros(outputs, dtype=np.intp)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """No constraint, as the shape of the matrix says it all."""
        return [], lambda: None
