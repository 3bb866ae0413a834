"""The law of the total privacy loss, whole or in a window around a tilted mean, and the delta at an epsilon.

Losses are never rounded down, so delta is an upper bound.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue


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
    def from_law(cls, law: LatticeLaw, tilt: float) -> Window | None:
        """Compute the window of a distribution around its tilted mean by Fourier transforms.

        Each part is transformed, raised to its count, and transformed back. The result is None if it had more than
        `MAX_CELLS` cells.
        """
        s = law.spacing
        value, mean, variance = law.cumulant(tilt)
        low, high = law.ends
        half = max(16.0, 13 * math.sqrt(variance) / s)
        while True:
            if 2 * half + 2 > MAX_CELLS:
                return None
            size = 1 << math.ceil(math.log2(2 * half + 2))
            outside_mass = 0.0 if size > high - low else _outside_mass(law, tilt, value, mean, size * s / 2)
            if outside_mass < 1e-22:
                break
            half *= 1.5
        center = round(mean / s)
        first = min(max(low, center - size // 2), max(low, high - size + 1))
        log_transform = np.zeros(size // 2 + 1, dtype=np.complex128)
        shift, ulps = 0, math.log2(size)
        for positions, masses, count in law.parts:
            with np.errstate(divide="ignore"):  # in logarithms, since a factor may underflow where the product does not
                exponents = np.log(masses) + tilt * s * positions
            weights = np.exp(exponents - exponents.max())
            weights /= weights.sum()
            middle = round(float(weights @ positions))
            shift += middle * count
            direct = len(positions) * size <= _MAX_DIRECT_TERMS
            log_transform += count * (_log_sum if direct else _log_fft)(positions - middle, weights, size)
            ulps += math.sqrt(count) if direct else count * math.log2(size)
        transform = np.exp(log_transform)
        masses = np.roll(np.fft.irfft(transform, size), (shift - first) % size)
        # The error of a mass is at most the mean error over all frequencies.
        noise = 8 * ULP * ulps * float(np.abs(transform).mean())
        reach = min(size, high - first + 1)
        return cls(
            s, tilt, value, mean, math.sqrt(variance), first, np.maximum(masses[:reach], 0.0), noise + outside_mass
        )

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Compute E (1 - e^(epsilon - L))_+ over the losses in the window, and a bound on its error."""
        values = (self.first + np.arange(len(self.masses))) * self.spacing - epsilon
        start = int(np.searchsorted(values, 0.0, side="right"))
        values, masses = values[start:], self.masses[start:]
        with np.errstate(over="ignore"):
            terms = -np.expm1(-values) * np.exp(-self.tilt * values)
        scale = math.exp(min(700.0, self.cumulant - self.tilt * epsilon))
        total = float(masses @ terms)
        return scale * total, scale * (self.error * float(terms.sum()) + 64 * ULP * total + 1e-22) + 1e-300

    def chance(self, low: float, high: float) -> float:
        """Bound the probability, without the tilt, of a loss from `low` to `high` within the window."""
        first = max(math.floor(low / self.spacing) - self.first, 0)
        last = min(math.ceil(high / self.spacing) - self.first, len(self.masses) - 1)
        if last < first:
            return 1.0
        steps = np.arange(last - first + 1)
        with np.errstate(over="ignore"):
            terms = (self.masses[first : last + 1] + self.error) * np.exp(-self.tilt * self.spacing * steps)
        start = (self.first + first) * self.spacing
        return min(1.0, math.exp(min(700.0, self.cumulant - self.tilt * start)) * float(terms.sum()) * (1 + 1e-9))

    def straddle(self, delta: float, low: int, high: int) -> tuple[int, int]:
        """Find the nearest positions between low and high with delta above, and at most, `delta`."""
        reach = 5 * self.deviation / self.spacing + 2
        center = round(self.mean / self.spacing)
        left = max(low + 1, self.first, math.floor(center - reach))
        right = min(high - 1, self.first + len(self.masses) - 1, math.ceil(center + reach))
        too_small, sufficient = low, high
        while left <= right:
            middle = (left + right) // 2
            value, error = self.delta(middle * self.spacing)
            if value + error > delta:
                too_small, left = middle, middle + 1
            else:
                sufficient, right = middle, middle - 1
        return too_small, sufficient


MAX_CELLS = 2**25
"""More cells than a window may have would need gigabytes."""

_MAX_DIRECT_TERMS = 4_000_000
"""Largest number of terms of a direct sum, which is more accurate than the fast transform."""


def _outside_mass(law: LatticeLaw, tilt: float, value: float, mean: float, distance: float) -> float:
    """Chernoff's bound on the tilted probability of a loss farther than `distance` from the mean."""
    bound = 0.0
    _, _, variance = law.cumulant(tilt)
    jump = max(int(np.ptp(positions)) for positions, _, _ in law.parts) * law.spacing
    # The second are for sums of few large losses that are rare.
    steps = [factor * distance / max(variance, 1e-300) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
    steps += [factor / max(jump, 1e-300) for factor in (4.0, 8.0, 16.0, 32.0)]
    for sign in (1.0, -1.0):
        best = 0.0
        for u in (sign * step for step in steps if step * law.spacing * 1e-3 <= 1e6):
            shifted_cumulant = law.cumulant(tilt + u)[0]
            best = min(best, shifted_cumulant - value - u * mean - abs(u) * distance)
        bound += math.exp(best)
    return bound


@lru_cache(maxsize=2)
def _sines(size: int) -> tuple[Array, Array]:
    """sin^2 of half of every angle 2 pi t / size, and sin of it, both (size,)."""
    angles = 2 * np.pi / size * np.arange(size)
    return np.sin(angles / 2) ** 2, np.sin(angles)


def _log_sum(positions: npt.NDArray[np.int64], weights: Array, size: int) -> npt.NDArray[np.complex128]:
    """The log of the Fourier transform phi of centred weights at the frequencies of `rfft`, as log(1 - (1 - phi)).

    `size` is a power of two.
    """
    frequency = np.arange(size // 2 + 1)
    real, imaginary = np.zeros(len(frequency)), np.zeros(len(frequency))
    squares, sines = _sines(size)
    for position, weight in zip(positions.tolist(), weights.tolist(), strict=True):
        turn = (position * frequency) & (size - 1)
        real -= 2 * weight * squares[turn]
        imaginary -= weight * sines[turn]
    with np.errstate(divide="ignore"):
        modulus = np.log1p(np.maximum(2 * real + real**2 + imaginary**2, -1.0)) / 2
    return np.asarray(np.maximum(modulus, -1e6) + 1j * np.arctan2(imaginary, 1 + real))


def _log_fft(positions: npt.NDArray[np.int64], weights: Array, size: int) -> npt.NDArray[np.complex128]:
    """The result of `_log_sum` by a fast Fourier transform, for pairs with many outcomes."""
    padded_values = np.zeros(size)
    np.add.at(padded_values, positions % size, weights)
    transform = np.fft.rfft(padded_values)
    return np.asarray(np.log(np.where(transform == 0, 1e-300, transform)))


UNDERFLOW_ERROR = 1e-300
"""Bound on the errors of products and sums of masses where they underflow."""


@dataclass(frozen=True, eq=False)
class AtomLaw(ByValue):
    """Finitely many total privacy losses L, from the largest to the smallest, with their masses.

    Every law has these methods. slack, relative : how much epsilon and log delta must be raised to cover rounding.
    """

    losses: Array
    masses: Array
    slack: float
    relative: float = 0.0

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Compute E (1 - e^(epsilon - L))_+ over finite losses, and a bound on its absolute error."""
        over = self.losses > epsilon
        value = math.fsum((-self.masses[over] * np.expm1(epsilon - self.losses[over])).tolist())
        return value, 8 * ULP * value + (UNDERFLOW_ERROR if over.any() else 0.0)

    bulk = delta

    def atoms(self) -> tuple[Array, Array]:
        """Return the losses and their masses."""
        return self.losses, self.masses

    def epsilon(self, delta: float) -> float:
        """Find an epsilon, close to the smallest, with a delta of at most `delta`.

        The result is -inf if every epsilon suffices. delta is piecewise linear in e^epsilon; the right piece is solved
        in closed form.
        """
        pieces = bisect_right(self.losses.tolist(), delta, key=lambda loss: sum(self.delta(loss)))
        return _solve_piece(self.losses[:pieces], self.masses[:pieces], delta)


def _solve_piece(losses: Array, masses: Array, delta: float) -> float:
    """The epsilon below all these losses such that the sum of masses (1 - e^(epsilon - loss)) is delta."""
    if len(losses) == 0:
        return -math.inf
    anchor = float(losses[-1])
    at_anchor = math.fsum((-masses * np.expm1(anchor - losses)).tolist())
    slope = math.fsum((masses * np.exp(anchor - losses)).tolist())
    if slope < UNDERFLOW_ERROR:  # the masses have lost their digits: the end of the piece is a safe answer
        return anchor
    reduction = (delta - at_anchor) / slope  # e^(epsilon - anchor) = 1 - inside
    return anchor + math.log1p(-reduction) if reduction < 1 else -math.inf


@dataclass(frozen=True, eq=False)
class LatticeLaw(ByValue):
    """The law of a sum of losses on the multiples of `spacing`: `parts` holds (positions, masses, count) of each.

    For a question about epsilon, the law is tilted exponentially so that its mean lies at epsilon. There, one fast
    Fourier transform over a few dozen standard deviations gives the masses to nearly full relative accuracy, also in
    deep tails.
    """

    spacing: float
    parts: tuple[tuple[npt.NDArray[np.int64], Array, int], ...]
    slack: float
    relative: float = 0.0
    _windows: dict[float, Window] = field(default_factory=dict, repr=False)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest position of the sum."""
        low, high = (sum(int(end(positions)) * count for positions, _, count in self.parts) for end in (np.min, np.max))
        return low, high

    def cumulant(self, tilt: float) -> tuple[float, float, float]:
        """Compute log E e^(tilt L), and mean and variance of the tilted distribution."""
        value = mean = variance = 0.0
        for positions, masses, count in self.parts:
            # Positions without mass must not set the scale; under a strong tilt all others would underflow.
            has_mass = masses > 0
            losses = positions[has_mass] * self.spacing
            exponents = tilt * losses
            top = float(exponents.max())
            weights = masses[has_mass] * np.exp(exponents - top)
            total = float(weights.sum())
            m = float(weights @ losses) / total
            value += count * (top + math.log(total))
            mean += count * m
            variance += count * float(weights @ (losses - m) ** 2) / total
        return value, mean, variance

    def tilt_to(self, epsilon: float) -> float:
        """Find the tilt >= 0 that moves the mean to `epsilon`; 0 if the mean is at least that."""
        if self.cumulant(0.0)[1] >= epsilon:
            return 0.0
        return self._halved(lambda tilt: self.cumulant(tilt)[1] < epsilon, 60)

    def _halved(self, holds: Callable[[float], bool], steps: int) -> float:
        """The largest tilt that meets a monotone condition, by bisection."""
        low, high = 0.0, 1.0
        while holds(high) and high < 1e6 / self.spacing:
            high *= 2
        for _ in range(steps):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    def window(self, tilt: float) -> Window:
        """Compute the masses of the tilted distribution around its mean, and cache them."""
        if tilt not in self._windows:
            if len(self._windows) > 16:
                self._windows.clear()
            # Every tilt gives a bound, and a smaller one a narrower window where losses are large and rare.
            windows = (Window.from_law(self, share * tilt) for share in (1.0, 0.5, 0.25, 0.125, 0.0))
            window = next((window for window in windows if window is not None), None)
            if window is None:
                raise invalid("composition", "losses of similar sizes, or fewer of them", Phrase("too many cells"))
            self._windows[tilt] = window
        return self._windows[tilt]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Compute delta as `AtomLaw.delta`, from the window with mean `epsilon`."""
        if epsilon >= self.ends[1] * self.spacing:
            return 0.0, 0.0
        return self.window(self.tilt_to(epsilon)).delta(epsilon)

    def chance(self, low: float, high: float) -> float:
        """Bound the probability of a loss from `low` to `high`; 1 if a window does not hold both."""
        window = self.window(self.tilt_to((low + high) / 2))
        ends = window.first * window.spacing, (window.first + len(window.masses) - 1) * window.spacing
        lowest, highest = (end * window.spacing for end in self.ends)
        low, high = max(low, lowest), min(high, highest)
        return window.chance(low, high) if ends[0] <= low <= high <= ends[1] else 1.0

    def bulk(self, epsilon: float) -> tuple[float, float]:
        """Compute delta as `AtomLaw.bulk`, from the window without a tilt."""
        return self.window(0.0).delta(epsilon)

    def atoms(self) -> tuple[Array, Array]:
        """Return losses and masses as `AtomLaw.atoms`, but only within the window without a tilt."""
        window = self.window(0.0)
        positions = window.first + np.arange(len(window.masses))
        return np.asarray(positions * self.spacing, dtype=np.float64), window.masses * math.exp(window.cumulant)

    def epsilon(self, delta: float) -> float:
        """Search the lattice with tilted windows, then solve between two points in closed form."""
        low, high = self.ends  # at position `high` delta is small enough, at `low` it is too large
        low -= 1
        middle = self._chernoff(delta)
        while high - low > 1:
            middle = min(max(middle, low + 1), high - 1)
            window = self.window(self.tilt_to(middle * self.spacing))
            too_small, sufficient = window.straddle(delta, low, high)
            if (too_small, sufficient) == (low, high):  # the window decides nothing: compute the one point instead
                exceeds = sum(self.delta(middle * self.spacing)) > delta
                too_small, sufficient = (middle, high) if exceeds else (low, middle)
                middle = (too_small + sufficient) // 2
            else:
                step = math.ceil(9 * window.deviation / self.spacing) + 1
                middle = too_small + step if too_small > low else sufficient - step
            low, high = too_small, sufficient
        value, error = self.delta(high * self.spacing)
        delta_before, error_before = self.delta((high - 1) * self.spacing)
        value, delta_before = value + error, delta_before + error_before
        if value > delta or delta_before <= value:
            return high * self.spacing
        part = min(1.0, (delta - value) / (delta_before - value))
        return high * self.spacing + math.log1p(part * math.expm1(-self.spacing))

    def _chernoff(self, delta: float) -> int:
        """The position where Chernoff's bound is `delta`, as a first guess."""
        if delta <= 0:
            return self.ends[1]
        target = math.log(delta)

        def exceeds_target(tilt: float) -> bool:
            value, mean, _ = self.cumulant(tilt)
            return value - tilt * mean > target

        return math.floor(self.cumulant(self._halved(exceeds_target, 50))[1] / self.spacing)
