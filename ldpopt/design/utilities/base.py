"""What a design can keep: the shape of a utility."""

from __future__ import annotations

from typing import Protocol

from ldpopt.channel import ChannelLike


class Utility(Protocol):
    """What a design can maximise."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def value(self, channel: ChannelLike) -> float:
        """The utility of a channel."""
        ...
