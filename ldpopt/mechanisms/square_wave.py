"""The square wave: a number is reported, probably, near its true value, to estimate the distribution of the numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.distribution import Array
from ldpopt.mechanisms.continuous_pair import expm2
from ldpopt.mechanisms.window import Window


@dataclass(frozen=True)
class SquareWave(Window):
    """The square wave: answers in [0, 1], reports in [-b, 1 + b], likely within b of the answer [SW].

    b = (epsilon e^epsilon - e^epsilon + 1)/(2 e^epsilon (e^epsilon - 1 - epsilon)), which keeps the most mutual
    information. The mean of the reports is biased. So estimate the distribution by maximum likelihood with `channel`,
    and take the mean or quantiles of that. epsilon in nats, at most 20; raises `InvalidInput` otherwise.

    >>> m = square_wave(1.0)
    >>> round(m.reach, 4), [round(d, 4) for d in m.densities]
    (0.2561, [1.1363, 0.418])
    """

    _source = "[SW]"

    @property
    def reach(self) -> float:
        """b, half the width of the window."""
        return expm2(-self._inner) / (2 * expm2(self._inner))

    @property
    def domain(self) -> tuple[float, float]:
        """The interval of the answers, [0, 1]."""
        return 0.0, 1.0

    @property
    def range(self) -> tuple[float, float]:
        """The interval of the reports, [-b, 1 + b]."""
        return -self.reach, 1 + self.reach

    @property
    def width(self) -> float:
        """The width of the window, 2 b."""
        return 2 * self.reach

    def _starts(self, x: Array) -> Array:
        return x - self.reach


square_wave = SquareWave
