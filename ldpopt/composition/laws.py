"""The law of the total privacy loss, and the (epsilon, delta) curve it gives.

Both laws answer for an upper bound: losses are never rounded down. `slack` is what epsilon and log delta must
be raised by for the rounding of the losses and masses themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.rounding import ULP

UNDERFLOW = 1e-300
"""More than products and sums of masses lose where they underflow."""


class LossLaw(Protocol):
    """A law of total privacy losses: what both ways of composing offer."""

    slack: float

    def delta(self, epsilon: float) -> tuple[float, float]:
        """(E (1 - e^(epsilon - L))_+ over finite losses, a bound on its absolute error)."""

    def atoms(self) -> tuple[Array, Array]:
        """The losses and their masses."""

    def epsilon(self, delta: float) -> float:
        """An epsilon at which `delta` of it is not exceeded, near the smallest; -inf if any will do."""


@dataclass(frozen=True, eq=False)
class AtomLaw:
    """Finitely many losses with their masses, sorted, largest first."""

    losses: Array
    masses: Array
    slack: float

    def delta(self, epsilon: float) -> tuple[float, float]:
        """As in `LossLaw`: a sum of positive terms."""
        over = self.losses > epsilon
        value = math.fsum((-self.masses[over] * np.expm1(epsilon - self.losses[over])).tolist())
        return value, 8 * ULP * value + (UNDERFLOW if over.any() else 0.0)

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
class LatticeLaw:
    """Sums of independent losses on a lattice: `parts` holds (positions, masses, count), losses positions * spacing.

    A question about epsilon tilts the law so that its mean lies there, where one fast Fourier transform of a
    window of a few dozen standard deviations gives the masses to nearly full relative accuracy: deep tails are
    as exact as the bulk, and the cost does not grow with the number of compositions but with its square root.
    """

    spacing: float
    parts: tuple[tuple[npt.NDArray[np.int64], Array, int], ...]
    slack: float
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
            losses = at * self.spacing
            exponents = tilt * losses
            top = float(exponents.max())
            weights = masses * np.exp(exponents - top)
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


@dataclass(frozen=True, eq=False)
class Window:
    """A stretch of the tilted law: masses at positions first, first + 1, ..., each off by at most `error`."""

    spacing: float
    tilt: float
    cumulant: float
    mean: float
    deviation: float
    first: int
    masses: Array
    error: float

    @classmethod
    def of(cls, law: LatticeLaw, tilt: float) -> Window:
        """Transform, raise to the counts, transform back."""
        s = law.spacing
        value, mean, variance = law.cumulant(tilt)
        low, high = law.ends
        half = max(16.0, 13 * math.sqrt(variance) / s)
        while True:
            size = 1 << math.ceil(math.log2(2 * half + 2))
            outside = 0.0 if size > high - low else _outside(law, tilt, value, mean, size * s / 2)
            if outside < 1e-22:
                break
            half *= 1.5
        center = round(mean / s)
        first = min(max(low, center - size // 2), max(low, high - size + 1))
        log_transform = np.zeros(size // 2 + 1, dtype=np.complex128)
        shift, ulps = 0, math.log2(size)
        for at, masses, count in law.parts:
            exponents = tilt * s * at
            weights = masses * np.exp(exponents - exponents.max())
            weights /= weights.sum()
            middle = round(float(weights @ at))
            shift += middle * count
            direct = len(at) * size <= _DIRECT
            log_transform += count * (_log_sum if direct else _log_fft)(at - middle, weights, size)
            ulps += math.sqrt(count) if direct else count * math.log2(size)
        transform = np.exp(log_transform)
        masses = np.roll(np.fft.irfft(transform, size), (shift - first) % size)
        # The mean error of a frequency bounds the error of a mass.
        noise = 8 * ULP * ulps * float(np.abs(transform).mean())
        reach = min(size, high - first + 1)
        return cls(s, tilt, value, mean, math.sqrt(variance), first, np.maximum(masses[:reach], 0.0), noise + outside)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """(sum over losses above epsilon, bound on its error)."""
        values = (self.first + np.arange(len(self.masses))) * self.spacing - epsilon
        start = int(np.searchsorted(values, 0.0, side="right"))
        values, masses = values[start:], self.masses[start:]
        with np.errstate(over="ignore"):
            terms = -np.expm1(-values) * np.exp(-self.tilt * values)
        scale = math.exp(min(700.0, self.cumulant - self.tilt * epsilon))
        total = float(masses @ terms)
        return scale * total, scale * (self.error * float(terms.sum()) + 64 * ULP * total + 1e-22) + 1e-300

    def straddle(self, delta: float, low: int, high: int) -> tuple[int, int]:
        """Positions (inside, outside) known to have the delta above, and at most, the given one; low and high else."""
        reach = 5 * self.deviation / self.spacing + 2
        center = round(self.mean / self.spacing)
        left = max(low + 1, self.first, math.floor(center - reach))
        right = min(high - 1, self.first + len(self.masses) - 1, math.ceil(center + reach))
        inside, outside = low, high
        while left <= right:
            middle = (left + right) // 2
            value, error = self.delta(middle * self.spacing)
            if value + error > delta:
                inside, left = middle, middle + 1
            else:
                outside, right = middle, middle - 1
        return inside, outside


_DIRECT = 4_000_000
"""Up to so many terms, a transform is summed directly, which loses less than a fast transform of raw masses."""


def _outside(law: LatticeLaw, tilt: float, value: float, mean: float, distance: float) -> float:
    """Chernoff's bound on the tilted probability farther than `distance` from the mean."""
    bound = 0.0
    _, _, variance = law.cumulant(tilt)
    for sign in (1.0, -1.0):
        best = 0.0
        for factor in (0.25, 0.5, 1.0, 2.0, 4.0):
            u = sign * factor * distance / max(variance, 1e-300)
            if abs(u) * law.spacing * 1e-3 > 1e6:
                continue
            shifted = law.cumulant(tilt + u)[0]
            best = min(best, shifted - value - u * mean - abs(u) * distance)
        bound += math.exp(best)
    return bound


def _log_sum(at: npt.NDArray[np.int64], weights: Array, size: int) -> npt.NDArray[np.complex128]:
    """log of the Fourier transform of centred weights at the frequencies of `numpy.fft.rfft`.

    Summed as log(1 - (1 - phi)), so that a large power of phi keeps its accuracy near frequency zero.
    """
    frequency = np.arange(size // 2 + 1)
    real, imaginary = np.zeros(len(frequency)), np.zeros(len(frequency))
    for position, weight in zip(at.tolist(), weights.tolist(), strict=True):
        angle = 2 * np.pi / size * ((position * frequency) % size)
        real -= 2 * weight * np.sin(angle / 2) ** 2
        imaginary -= weight * np.sin(angle)
    with np.errstate(divide="ignore"):
        modulus = np.log1p(np.maximum(2 * real + real**2 + imaginary**2, -1.0)) / 2
    return np.asarray(np.maximum(modulus, -1e6) + 1j * np.arctan2(imaginary, 1 + real))


def _log_fft(at: npt.NDArray[np.int64], weights: Array, size: int) -> npt.NDArray[np.complex128]:
    """The same by a fast transform, for pairs of many outcomes."""
    placed = np.zeros(size)
    np.add.at(placed, at % size, weights)
    transform = np.fft.rfft(placed)
    return np.asarray(np.log(np.where(transform == 0, 1e-300, transform)))
