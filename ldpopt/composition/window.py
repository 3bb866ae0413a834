"""A window of a law of privacy losses: its masses around a tilted mean, by one fast Fourier transform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.rounding import ULP


class Lattice(Protocol):
    """What a window needs to know of a law on a lattice."""

    @property
    def spacing(self) -> float:
        """The distance between two losses."""

    @property
    def parts(self) -> tuple[tuple[npt.NDArray[np.int64], Array, int], ...]:
        """(positions, masses, count) of the summands."""

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest position of the sum."""

    def cumulant(self, tilt: float) -> tuple[float, float, float]:
        """(log E e^(tilt L), its first and second derivative)."""


@dataclass(frozen=True, eq=False)
class Window:
    """A part of the tilted law: masses at positions first, first + 1, ..., each with an error of at most `error`."""

    spacing: float
    tilt: float
    cumulant: float
    mean: float
    deviation: float
    first: int
    masses: Array
    error: float

    @classmethod
    def of(cls, law: Lattice, tilt: float) -> Window:
        """The window of a law around its tilted mean: transform each part, raise to its count, and transform back."""
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
            with np.errstate(divide="ignore"):  # in logarithms, since a factor may underflow where the product does not
                exponents = np.log(masses) + tilt * s * at
            weights = np.exp(exponents - exponents.max())
            weights /= weights.sum()
            middle = round(float(weights @ at))
            shift += middle * count
            direct = len(at) * size <= _DIRECT
            log_transform += count * (_log_sum if direct else _log_fft)(at - middle, weights, size)
            ulps += math.sqrt(count) if direct else count * math.log2(size)
        transform = np.exp(log_transform)
        masses = np.roll(np.fft.irfft(transform, size), (shift - first) % size)
        # The error of a mass is at most the mean error over all frequencies.
        noise = 8 * ULP * ulps * float(np.abs(transform).mean())
        reach = min(size, high - first + 1)
        return cls(s, tilt, value, mean, math.sqrt(variance), first, np.maximum(masses[:reach], 0.0), noise + outside)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """(E (1 - e^(epsilon - L))_+ over the losses in the window, a bound on its error)."""
        values = (self.first + np.arange(len(self.masses))) * self.spacing - epsilon
        start = int(np.searchsorted(values, 0.0, side="right"))
        values, masses = values[start:], self.masses[start:]
        with np.errstate(over="ignore"):
            terms = -np.expm1(-values) * np.exp(-self.tilt * values)
        scale = math.exp(min(700.0, self.cumulant - self.tilt * epsilon))
        total = float(masses @ terms)
        return scale * total, scale * (self.error * float(terms.sum()) + 64 * ULP * total + 1e-22) + 1e-300

    def straddle(self, delta: float, low: int, high: int) -> tuple[int, int]:
        """The nearest positions (inside, outside) between low and high with delta above, and at most, the given one.

        Only positions are tried at which the window is accurate.
        """
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
"""Up to this many terms, a transform is summed directly, which is more accurate than the fast transform."""


def _outside(law: Lattice, tilt: float, value: float, mean: float, distance: float) -> float:
    """Chernoff's bound on the tilted law's probability of a loss farther than `distance` from the mean."""
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
    """The log of the Fourier transform phi of centred weights, at the frequencies of `numpy.fft.rfft`.

    It is computed as log(1 - (1 - phi)), so that a large power of phi keeps its accuracy near frequency zero.
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
    """The result of `_log_sum` by a fast Fourier transform, for pairs with many outcomes."""
    placed = np.zeros(size)
    np.add.at(placed, at % size, weights)
    transform = np.fft.rfft(placed)
    return np.asarray(np.log(np.where(transform == 0, 1e-300, transform)))
