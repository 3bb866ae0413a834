"""The law of the total privacy loss, and the (epsilon, delta) curve it gives.

Both laws answer for an upper bound: losses are never rounded down. `slack` and `relative` are what epsilon and log
delta must be raised by for the rounding of the losses and masses themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.composition.window import Window
from ldpopt.distribution import Array
from ldpopt.results import ByValue
from ldpopt.rounding import ULP

UNDERFLOW = 1e-300
"""More than products and sums of masses lose where they underflow."""


class LossLaw(Protocol):
    """A law of total privacy losses: what both ways of composing offer."""

    @property
    def slack(self) -> float:
        """What epsilon must be raised by."""

    @property
    def relative(self) -> float:
        """What log delta must be raised by."""

    def delta(self, epsilon: float) -> tuple[float, float]:
        """(E (1 - e^(epsilon - L))_+ over finite losses, a bound on its absolute error)."""

    def bulk(self, epsilon: float) -> tuple[float, float]:
        """The same to absolute accuracy only, cheaply for many epsilons."""

    def atoms(self) -> tuple[Array, Array]:
        """The losses and their masses."""

    def epsilon(self, delta: float) -> float:
        """An epsilon at which `delta` of it is not exceeded, near the smallest; -inf if any will do."""


@dataclass(frozen=True, eq=False)
class AtomLaw(ByValue):
    """Finitely many losses with their masses, sorted, largest first."""

    losses: Array
    masses: Array
    slack: float
    relative: float = 0.0

    def delta(self, epsilon: float) -> tuple[float, float]:
        """As in `LossLaw`: a sum of positive terms."""
        over = self.losses > epsilon
        value = math.fsum((-self.masses[over] * np.expm1(epsilon - self.losses[over])).tolist())
        return value, 8 * ULP * value + (UNDERFLOW if over.any() else 0.0)

    bulk = delta

    def atoms(self) -> tuple[Array, Array]:
        """As in `LossLaw`."""
        return self.losses, self.masses

    def epsilon(self, delta: float) -> float:
        """As in `LossLaw`, by a search for the linear piece in e^epsilon, then in closed form."""
        low, high = 0, len(self.losses)  # delta(losses[low - 1]) <= delta < delta(losses[high])
        while low < high:
            middle = (low + high) // 2
            if sum(self.delta(float(self.losses[middle]))) <= delta:
                low = middle + 1
            else:
                high = middle
        return _solve_piece(self.losses[:low], self.masses[:low], delta)


def _solve_piece(losses: Array, masses: Array, delta: float) -> float:
    """The epsilon with sum of masses (1 - e^(epsilon - loss)) = delta, all these losses above epsilon."""
    if len(losses) == 0:
        return -math.inf
    anchor = float(losses[-1])
    at_anchor = math.fsum((-masses * np.expm1(anchor - losses)).tolist())
    slope = math.fsum((masses * np.exp(anchor - losses)).tolist())
    if slope < UNDERFLOW:  # no digits are left of the masses: the end of the piece is on the safe side
        return anchor
    inside = (delta - at_anchor) / slope  # e^(epsilon - anchor) = 1 - inside
    return anchor + math.log1p(-inside) if inside < 1 else -math.inf


@dataclass(frozen=True, eq=False)
class LatticeLaw(ByValue):
    """Sums of independent losses on a lattice: `parts` holds (positions, masses, count), losses positions * spacing.

    A question about epsilon tilts the law so that its mean lies there, where one fast Fourier transform of a
    window of a few dozen standard deviations gives the masses to nearly full relative accuracy: deep tails are
    as exact as the bulk, and the cost does not grow with the number of compositions but with its square root.
    """

    spacing: float
    parts: tuple[tuple[npt.NDArray[np.int64], Array, int], ...]
    slack: float
    relative: float = 0.0
    _windows: dict[float, Window] = field(default_factory=dict, repr=False)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest position of the sum."""
        return (
            sum(int(at.min()) * count for at, _, count in self.parts),
            sum(int(at.max()) * count for at, _, count in self.parts),
        )

    def cumulant(self, tilt: float) -> tuple[float, float, float]:
        """(log E e^(tilt L), its first and second derivative): the last two are mean and variance when tilted."""
        value = mean = variance = 0.0
        for at, masses, count in self.parts:
            # A place without mass must not set the scale: under a strong tilt nothing would be left of the others.
            there = masses > 0
            losses = at[there] * self.spacing
            exponents = tilt * losses
            top = float(exponents.max())
            weights = masses[there] * np.exp(exponents - top)
            total = float(weights.sum())
            m = float(weights @ losses) / total
            value += count * (top + math.log(total))
            mean += count * m
            variance += count * float(weights @ (losses - m) ** 2) / total
        return value, mean, variance

    def tilt_to(self, epsilon: float) -> float:
        """The tilt >= 0 that moves the mean to `epsilon`; 0 when the mean is there or beyond."""
        if self.cumulant(0.0)[1] >= epsilon:
            return 0.0
        high = 1.0
        while self.cumulant(high)[1] < epsilon and high < 1e6 / self.spacing:
            high *= 2
        low = 0.0
        for _ in range(60):
            middle = (low + high) / 2
            if self.cumulant(middle)[1] < epsilon:
                low = middle
            else:
                high = middle
        return low

    def window(self, tilt: float) -> Window:
        """The masses of the tilted law around its mean, kept for the next question."""
        if tilt not in self._windows:
            if len(self._windows) > 16:
                self._windows.clear()
            self._windows[tilt] = Window.of(self, tilt)
        return self._windows[tilt]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """As in `LossLaw`, from the window whose mean is at `epsilon`."""
        if epsilon >= self.ends[1] * self.spacing:
            return 0.0, 0.0
        return self.window(self.tilt_to(epsilon)).delta(epsilon)

    def bulk(self, epsilon: float) -> tuple[float, float]:
        """As in `LossLaw`, from the window that is not tilted."""
        return self.window(0.0).delta(epsilon)

    def atoms(self) -> tuple[Array, Array]:
        """As in `LossLaw`: those within a window of the bulk."""
        window = self.window(0.0)
        at = window.first + np.arange(len(window.masses))
        return np.asarray(at * self.spacing, dtype=np.float64), window.masses * math.exp(window.cumulant)

    def epsilon(self, delta: float) -> float:
        """As in `LossLaw`: search of the lattice through tilted windows, then in closed form between two points."""
        low, high = self.ends  # delta is at most the given one at position `high`, and above it at `low`
        low -= 1
        middle = self._chernoff(delta)
        while high - low > 1:
            middle = min(max(middle, low + 1), high - 1)
            window = self.window(self.tilt_to(middle * self.spacing))
            inside, outside = window.straddle(delta, low, high)
            if (inside, outside) == (low, high):  # the window cannot reach there: ask for the very point
                above = sum(self.delta(middle * self.spacing)) > delta
                inside, outside = (middle, high) if above else (low, middle)
                middle = (inside + outside) // 2
            else:
                step = math.ceil(9 * window.deviation / self.spacing) + 1
                middle = inside + step if inside > low else outside - step
            low, high = inside, outside
        value, error = self.delta(high * self.spacing)
        before, error_before = self.delta((high - 1) * self.spacing)
        value, before = value + error, before + error_before
        if value > delta or before <= value:
            return high * self.spacing
        part = min(1.0, (delta - value) / (before - value))
        return high * self.spacing + math.log1p(part * math.expm1(-self.spacing))

    def _chernoff(self, delta: float) -> int:
        """The position where Chernoff's bound is `delta`: a first guess at the answer."""
        if delta <= 0:
            return self.ends[1]
        low, high = 0.0, 1.0
        target = math.log(delta)

        def exponent(tilt: float) -> float:
            value, mean, _ = self.cumulant(tilt)
            return value - tilt * mean

        while exponent(high) > target and high < 1e6 / self.spacing:
            high *= 2
        for _ in range(50):
            middle = (low + high) / 2
            if exponent(middle) > target:
                low = middle
            else:
                high = middle
        return math.floor(self.cumulant(low)[1] / self.spacing)
