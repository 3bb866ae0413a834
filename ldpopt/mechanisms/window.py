"""Mechanisms for numbers with a window: reports near the answer have a high density, all others one low density."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.errors import Phrase, invalid
from ldpopt.mechanisms.additive import answers
from ldpopt.mechanisms.continuous_pair import expm2
from ldpopt.mechanisms.oracles import check_size
from ldpopt.numbers.rounding import ULP, toward_privacy, up
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import (
    Array,
    Checked,
    Rng,
    finite_array,
    generator,
    positive_epsilon,
    positive_integer,
    unwrap_scalar,
)


def _limited(epsilon: Any, name: str) -> float:
    value = positive_epsilon(epsilon, name)
    if value > 20:
        raise invalid(name, "at most 20 nats for a window", value)
    return value


@dataclass(frozen=True)
class Window(Checked, ABC, epsilon=_limited):
    """A report in an interval: its density is high inside a window of fixed width around the answer, and low outside.

    Every answer has the same two densities, whose ratio is at most e^epsilon, which proves epsilon-LDP; epsilon in
    nats, at most 20. `sample` gives floats, for simulation; `channel` rounds reports to cells and can be released
    exactly.
    """

    epsilon: float

    domain: ClassVar[tuple[float, float]]
    """The lowest and the highest answer."""

    @property
    @abstractmethod
    def width(self) -> float:
        """The width of the window."""

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The lowest and the highest report."""

    @abstractmethod
    def _starts(self, x: Array) -> Array:
        """The start of the window of each answer."""

    @property
    def _inner(self) -> float:
        """The epsilon of the computed densities: slightly smaller, so that rounding keeps the claim."""
        return toward_privacy(self.epsilon)

    @property
    def densities(self) -> tuple[float, float]:
        """The densities of a report inside the window and outside of it."""
        low = 1 / ((self.range[1] - self.range[0] - self.width) + self.width * np.exp(self._inner))
        return float(low * np.exp(self._inner)), float(low)

    @property
    def eta(self) -> float:
        """The total variation eta, rounded up: that of the two answers at the ends, whose windows do not overlap.

        It includes the rounding of the windows' ends, so that `channel` keeps it, too.
        """
        high, low = self.densities
        rounding = 8 * ULP * (1 + high * max(map(abs, self.range)))
        return min(1.0, up(low * float(np.expm1(self._inner)) * self.width, 64) + rounding)

    def local_dp(self) -> Guarantee:
        """Return the guarantee of local differential privacy: epsilon bounds log(high/low)."""
        return Guarantee("local_dp", self.epsilon, self._inner * (1 - 1e-12), None, True, self._source)

    _source: ClassVar[str]

    def density(self, x: Any, y: Any) -> Array:
        """Compute the density of reports y under answers x, broadcast."""
        x, y = self._answers(x), np.asarray(y, dtype=np.float64)
        start = self._starts(x)
        high, low = self.densities
        in_window = (y >= start) & (y <= start + self.width)
        in_range = (y >= self.range[0]) & (y <= self.range[1])
        return np.asarray(np.where(in_range, np.where(in_window, high, low), 0.0))

    def sample(self, x: Any, rng: Rng = None) -> Any:
        """Simulate reports, never to be released: the possible floats depend on the answer."""
        x, rng = self._answers(answers(x)), generator(rng)
        start, (bottom, top) = self._starts(x), self.range
        in_window = rng.random(x.shape) < self.densities[0] * self.width
        window_report = start + self.width * rng.random(x.shape)
        other = bottom + (top - bottom - self.width) * rng.random(x.shape)
        other_report = np.where(other < start, other, other + self.width)
        return unwrap_scalar(np.where(in_window, window_report, other_report))

    def channel(self, points: Any, cells: int) -> Channel:
        """Build the channel from k answers to reports in `cells` cells of equal width.

        The outputs are the middles of the cells.

        points : the k answers, increasing numbers within the domain, shape (k,).
        cells : at least 2.

        Raises `InvalidInput` otherwise, and for more than 2**24 entries.
        """
        x = finite_array(points, "points", 1)
        if len(x) < 2 or not (np.diff(x) > 0).all():
            raise invalid("points", "at least two increasing numbers", Phrase("other numbers"))
        x = self._answers(x)
        cells = positive_integer(cells, "cells", 2)
        check_size(len(x), cells)
        edges = np.linspace(*self.range, cells + 1)
        start = self._starts(x)[:, None]
        high, low = self.densities
        overlap = np.clip(np.minimum(edges[1:], start + self.width) - np.maximum(edges[:-1], start), 0.0, None)
        share = np.clip(overlap / np.diff(edges), 0.0, 1.0)
        raw = low + (high - low) * share
        # All rows have the same sum up to rounding, which the margin of `toward_privacy` covers.
        middles = (edges[1:] + edges[:-1]) / 2
        return Channel(raw / raw.sum(axis=1, keepdims=True), x.tolist(), middles.tolist())

    def _answers(self, x: Any) -> Array:
        answers = np.asarray(x, dtype=np.float64)
        low, high = self.domain
        if answers.size and not (low <= answers.min() and answers.max() <= high):
            raise invalid("answers", f"numbers from {low:g} to {high:g}", Phrase("a number outside"))
        return answers


@dataclass(frozen=True)
class Piecewise(Window):
    """The piecewise mechanism: answers in [-1, 1], reports in [-c, c] whose mean is the answer [PM].

    The report is likely to fall into a window of width c - 1, whose middle is (c + 1) x/2 for the answer x. It has a
    low density elsewhere; c = (s + 1)/(s - 1) with s = e^{epsilon/2}. The mean of the reports is an unbiased estimate
    of the mean of the answers. epsilon in nats, at most 20; raises `InvalidInput` otherwise.

    >>> m = piecewise(1.0)
    >>> round(m.eta, 6), round(m.variance(0.0), 4), m.domain
    (0.393469, 3.6821, (-1.0, 1.0))
    """

    domain = (-1.0, 1.0)
    _source = "[PM]"

    @property
    def _root(self) -> float:
        return math.expm1(self._inner / 2)

    @property
    def reach(self) -> float:
        """c, the largest report."""
        return 1 + 2 / self._root

    @property
    def range(self) -> tuple[float, float]:
        """The interval of the reports, [-c, c]."""
        return -self.reach, self.reach

    @property
    def width(self) -> float:
        """The width of the window, c - 1."""
        return 2 / self._root

    def _starts(self, x: Array) -> Array:
        return np.asarray((self.reach + 1) / 2 * x - (self.reach - 1) / 2)

    def variance(self, x: Any) -> Any:
        """Compute the variance of the report of an answer x [PM, Lemma 1]."""
        # x^2/(s - 1) + (s + 3)/(3 (s - 1)^2)
        x = self._answers(x)
        return unwrap_scalar(x**2 / self._root + (self._root + 4) / (3 * self._root**2))


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

    domain = (0.0, 1.0)
    _source = "[SW]"

    @property
    def reach(self) -> float:
        """b, half the width of the window."""
        return expm2(-self._inner) / (2 * expm2(self._inner))

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


piecewise, square_wave = Piecewise, SquareWave
