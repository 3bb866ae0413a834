"""Numbers reported by a window: likely values near the answer, and all others with one low density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import Array, finite_array, positive_epsilon, positive_integer
from ldpopt.errors import Phrase, invalid
from ldpopt.mechanisms.additive import answers, plain
from ldpopt.mechanisms.frequency_oracle import check_size
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import ULP, toward_privacy, up


@dataclass(frozen=True)
class Window(ABC):
    """A report y in an interval: density high inside a window of fixed width that moves with the answer, low outside.

    high / low = e^epsilon at most, and every answer has the same two densities, so any report is at most e^epsilon
    times likelier under one answer than under another: that is the whole proof. Subclasses say where the window is.

    epsilon in nats. The reports of `sample` are floats, to simulate with; `channel` is the same with reports in cells,
    which can be released exactly.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))
        if self.epsilon > 20:
            raise invalid("epsilon", "at most 20 nats for a window", self.epsilon)

    @property
    @abstractmethod
    def domain(self) -> tuple[float, float]:
        """The answers: lowest and highest."""

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The reports: lowest and highest."""

    @property
    @abstractmethod
    def width(self) -> float:
        """How wide the window is."""

    @abstractmethod
    def _starts(self, x: Array) -> Array:
        """Where the window of each answer begins."""

    @property
    def _inner(self) -> float:
        """The epsilon that the densities are made of: a little below, so that rounding keeps the claim."""
        return toward_privacy(self.epsilon)

    @property
    def densities(self) -> tuple[float, float]:
        """High and low."""
        low = 1 / ((self.range[1] - self.range[0] - self.width) + self.width * np.exp(self._inner))
        return float(low * np.exp(self._inner)), float(low)

    @property
    def eta(self) -> float:
        """The total variation of the two answers at the ends of the domain, whose windows do not meet, rounded up.

        With room for the ends of a window, which are floats: the channel in cells keeps it, too.
        """
        high, low = self.densities
        rounding = 8 * ULP * (1 + high * max(map(abs, self.range)))
        return min(1.0, up(low * float(np.expm1(self._inner)) * self.width, 64) + rounding)

    def local_dp(self) -> Guarantee:
        """The guarantee: log(high/low)."""
        return Guarantee("local_dp", self.epsilon, self._inner * (1 - 1e-12), None, True, self._source)

    _source = "[PM]"

    def density(self, x: Any, y: Any) -> Array:
        """The density of reports y under answers x, broadcast."""
        x, y = self._answers(x), np.asarray(y, dtype=np.float64)
        start = self._starts(x)
        high, low = self.densities
        inside = (y >= start) & (y <= start + self.width)
        seen = (y >= self.range[0]) & (y <= self.range[1])
        return np.asarray(np.where(seen, np.where(inside, high, low), 0.0))

    def sample(self, x: Any, rng: np.random.Generator) -> Any:
        """Simulated reports for an answer or an array of answers."""
        x = self._answers(answers(x, rng))
        start, (bottom, top) = self._starts(x), self.range
        near = rng.random(x.shape) < self.densities[0] * self.width
        inside = start + self.width * rng.random(x.shape)
        other = bottom + (top - bottom - self.width) * rng.random(x.shape)
        outside = np.where(other < start, other, other + self.width)
        return plain(np.where(near, inside, outside))

    def channel(self, points: Any, cells: int) -> Channel:
        """The channel from k answers to reports in `cells` equal cells, whose middles are its outputs.

        points : (k,) answers within the domain, increasing. Raises `InvalidInput` otherwise.
        """
        x = finite_array(points, "points", 1)
        if len(x) < 2 or not (np.diff(x) > 0).all():
            raise invalid("points", "at least two increasing numbers", Phrase("others"))
        x = self._answers(x)
        cells = positive_integer(cells, "cells", 2)
        check_size(len(x), cells)
        edges = np.linspace(*self.range, cells + 1)
        start = self._starts(x)[:, None]
        high, low = self.densities
        covered = np.clip(np.minimum(edges[1:], start + self.width) - np.maximum(edges[:-1], start), 0.0, None)
        share = np.clip(covered / np.diff(edges), 0.0, 1.0)
        raw = low + (high - low) * share
        # The rows have one sum but for rounding, for which `toward_privacy` leaves room.
        middles = (edges[1:] + edges[:-1]) / 2
        return Channel(raw / raw.sum(axis=1, keepdims=True), x.tolist(), middles.tolist())

    def _answers(self, x: Any) -> Array:
        made = np.asarray(x, dtype=np.float64)
        low, high = self.domain
        if made.size and not (low <= made.min() and made.max() <= high):
            raise invalid("answers", f"numbers from {low:g} to {high:g}", Phrase("others"))
        return made
