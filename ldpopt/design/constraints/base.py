"""The shape of a privacy constraint."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ldpopt.channel import Channel
from ldpopt.privacy import Guarantee


@runtime_checkable
class Constraint(Protocol):
    """A cap on one measure of a channel."""

    @property
    def bound(self) -> float:
        """The cap."""
        ...

    def measure(self, channel: Channel) -> Guarantee:
        """The namesake measure of a channel; the constraint holds when its value is at most `bound`."""
        ...
