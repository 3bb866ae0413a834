"""Hadamard response: report a position at which the Hadamard row of the answer is probably +1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.distribution import Array, finite_array, positive_epsilon, positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.exact import float_up
from ldpopt.mechanisms.frequency_oracle import Reports, check_reports, check_size
from ldpopt.rounding import toward_privacy, up

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HadamardResponse:
    """Reports 0..K-1 in `blocks` blocks of `width` positions, K = blocks * width, both powers of two [HR].

    Rows of a Hadamard matrix have entries +1 and -1 and are orthogonal. Answer x has its own row of the matrix of size
    `width`, which is not the constant one, in block x mod blocks. The width/2 positions of that block where the row is
    +1 have the weight e^epsilon, and all other positions of all blocks have the weight 1.

    `hadamard_response` chooses `blocks` and `width`. Raises `InvalidInput` for numbers that are not powers of two, or
    too small to give each of k answers a row.

    >>> hadamard_response(3, 1.0).channel().shape
    (3, 8)
    """

    k: int
    epsilon: float
    blocks: int
    width: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive_integer(self.k, "k", 2))
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))
        for name, least in (("blocks", 1), ("width", 2)):
            value = positive_integer(getattr(self, name), name, least)
            if value & (value - 1):
                raise invalid(name, "a power of two", value)
            object.__setattr__(self, name, value)
        if self.blocks * (self.width - 1) < self.k:
            expected = f"blocks (width - 1) of at least k = {self.k}, a row for every answer"
            raise invalid("blocks and width", expected, (self.blocks, self.width))

    @property
    def reports(self) -> int:
        """The number of possible reports K."""
        return self.blocks * self.width

    @property
    def _low(self) -> float:
        """The probability of a position without preference."""
        half = self.width // 2
        return 1 / (half * math.exp(toward_privacy(self.epsilon)) + self.reports - half)

    @property
    def _high(self) -> float:
        """The probability of a preferred position."""
        return math.exp(toward_privacy(self.epsilon)) * self._low

    @property
    def signal(self) -> float:
        """The mean of `sign` of an answer over its own reports; over the reports of any other answer the mean is 0."""
        return self.width / 2 * math.expm1(toward_privacy(self.epsilon)) * self._low

    @property
    def eta(self) -> float:
        """The total variation eta, rounded up: `signal` if there are several blocks, half of it if there is one.

        It is the larger one of two values: for the probabilities that `sample` uses, and for the floats of `channel`.
        """
        share = Fraction(1, 2) if self.blocks == 1 else Fraction(1)
        low, high = Fraction(self._low), Fraction(self._high)
        half = self.width // 2
        floats = share * half * (high - low) / (half * high + (self.reports - half) * low)
        return max(up(self.signal * float(share), 32), float_up(floats))

    def sign(self, x: Any, y: Any) -> Integers:
        """How report y supports answer x: the entry +1 or -1 of its row within its block, 0 outside (broadcast)."""
        x, y = np.asarray(x, np.int64), np.asarray(y, np.int64)
        odd = _odd((x // self.blocks + 1) & (y % self.width))
        return np.where(x % self.blocks == y // self.width, 1 - 2 * odd, 0)

    def sample(self, x: Any, rng: np.random.Generator) -> Reports:
        """Simulated reports for an array of answers 0..k-1, shape (n,)."""
        if not isinstance(rng, np.random.Generator):
            raise invalid("rng", "a numpy.random.Generator", type(rng).__name__)
        x = check_reports(x, None, self.k).astype(np.int64)
        half = self.width // 2
        # A mixture: uniform over everything, or uniform over the preferred half-block of the answer.
        y = rng.integers(0, self.reports, size=len(x))
        own = np.flatnonzero(rng.random(len(x)) < half * math.expm1(toward_privacy(self.epsilon)) * self._low)
        row, place = x[own] // self.blocks + 1, rng.integers(0, self.width, size=len(own))
        # Where the row is -1, flipping one bit of the position (the row's lowest set bit) leads to a +1: so every +1 is
        # equally likely.
        wrong = _odd(row & place) == 1
        y[own] = x[own] % self.blocks * self.width + np.where(wrong, place ^ (row & -row), place)
        return y

    def support_counts(self, reports: Any) -> Array:
        """The sum of `sign` over the reports for each answer, shape (k,), by a fast Hadamard transform."""
        reports = check_reports(reports, None, self.reports)
        table = np.bincount(reports, minlength=self.reports).reshape(self.blocks, self.width).astype(np.float64)
        step = 1
        while step < self.width:
            pairs = table.reshape(self.blocks, -1, 2, step)
            table = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
            step *= 2
        x = np.arange(self.k)
        return np.asarray(table.reshape(self.blocks, self.width)[x % self.blocks, x // self.blocks + 1])

    def estimate(self, support_counts: Any, n: int) -> Array:
        """Unbiased estimates of the frequencies, shape (k,), from the support counts of n reports.

        They may lie outside [0, 1].
        """
        counts = finite_array(support_counts, "support counts", 1)
        if len(counts) != self.k:
            raise invalid("support counts", f"{self.k} entries", len(counts))
        return np.asarray(counts / (positive_integer(n, "n") * self.signal))

    def variance(self, frequency: float, n: int, block_frequency: float = 1.0) -> float:
        """The variance of the estimate of one frequency from n independent respondents.

        block_frequency : the total frequency of all answers in its block, at least `frequency`; 1 with one block.
        """
        f, share = unit_interval(frequency, "frequency"), unit_interval(block_frequency, "block_frequency")
        if share < f or (self.blocks == 1 and share != 1):
            raise invalid("block_frequency", "at least the frequency, and 1 with one block", share)
        square = self.width * self._low + share * self.signal  # the probability of a report in the block
        return (square / self.signal**2 - f**2) / positive_integer(n, "n")

    def channel(self) -> Channel:
        """The (k, K) channel."""
        check_size(self.k, self.reports)
        preferred = self.sign(np.arange(self.k)[:, None], np.arange(self.reports)) > 0
        return Channel(np.where(preferred, self._high, self._low), tuple(range(self.k)), tuple(range(self.reports)))


def hadamard_response(k: int, epsilon: float) -> HadamardResponse:
    """Hadamard response with the block structure of the paper [HR, section 5].

    k >= 2; epsilon in nats. The number of blocks is the largest power of two up to min(e^epsilon, 2k); below
    epsilon = log 2 there is one block. The width is the smallest power of two above k/blocks. Raises `InvalidInput`
    for values out of range.

    >>> m = hadamard_response(10, 1.0)
    >>> m.blocks, m.width, round(m.eta, 4), round(m.variance(0.1, 1, 0.5), 3)
    (2, 8, 0.3005, 5.527)
    """
    k, epsilon = positive_integer(k, "k", 2), positive_epsilon(epsilon)
    largest = 2 * k if epsilon > math.log(2 * k) else math.floor(math.exp(epsilon))
    blocks = 1 << (largest.bit_length() - 1)
    width = 1 << (-(-k // blocks)).bit_length()
    return HadamardResponse(k, epsilon, blocks, width)


def _odd(bits: Integers) -> Integers:
    """1 where a non-negative number has an odd number of set bits, else 0."""
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ (bits >> shift)
    return bits & 1
