"""Local hashing: hash the answer to one of a few buckets, then apply randomized response to the bucket."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.distribution import Array, positive_integer
from ldpopt.errors import invalid
from ldpopt.mechanisms.frequency_oracle import FrequencyOracle, Reports, check_reports, check_size
from ldpopt.rounding import toward_privacy, up

Words = npt.NDArray[np.uint32]

MERSENNE_31 = 2**31 - 1
_CHUNK = 1 << 12


@dataclass(frozen=True)
class LocalHashing(FrequencyOracle):
    """A report (a, b, y): a public hash h(v) = ((a v + b) mod prime) mod buckets, and the noisy bucket of the answer.

    Each respondent draws a and b uniformly from 0..prime-1. Then the hashes of two answers are independent before they
    are reduced to buckets (Carter and Wegman), and the probabilities below are exact. `local_hashing` and
    `optimized_local_hashing` choose the number of buckets.

    >>> from ldpopt.mechanisms import local_hashing
    >>> local_hashing(100, 1.0).buckets
    2
    """

    buckets: int
    prime: int = MERSENNE_31

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "buckets", positive_integer(self.buckets, "buckets", 2))
        object.__setattr__(self, "prime", positive_integer(self.prime, "prime", 2))
        if not max(self.k, self.buckets) <= self.prime <= MERSENNE_31 or not _is_prime(self.prime):
            expected = f"a prime from max(k, buckets) = {max(self.k, self.buckets)} to {MERSENNE_31}"
            raise invalid("prime", expected, self.prime)

    @property
    def collision(self) -> float:
        """The probability that two answers share a bucket; it differs from 1/buckets by less than 1/prime."""
        size, larger = divmod(self.prime, self.buckets)
        return (larger * (size + 1) ** 2 + (self.buckets - larger) * size**2) / self.prime**2

    @property
    def kept(self) -> float:
        """The probability that the reported bucket is that of the answer."""
        return 1 / (1 + (self.buckets - 1) * self._odds)

    @property
    def _odds(self) -> float:
        return math.exp(-toward_privacy(self.epsilon))

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities that the reported bucket is that of the true answer, and that of any given other answer."""
        moved = self.kept * self._odds
        return self.kept, moved + (self.kept - moved) * self.collision

    @property
    def eta(self) -> float:
        """The total variation (1 - collision)(e - 1)/(e + buckets - 1), e = exp(epsilon), rounded up.

        The factor 1 - collision is there because two answers in one bucket cannot be told apart.
        """
        return up((1 - self.collision) * self.kept * -math.expm1(-self.epsilon), 16)

    def buckets_of(self, a: Any, b: Any, v: Any) -> Reports:
        """The bucket of answer v under the hash (a, b)."""
        return np.asarray((np.asarray(a, np.int64) * np.asarray(v, np.int64) + b) % self.prime % self.buckets)

    def sample(self, x: Any, rng: np.random.Generator) -> Reports:
        """Simulated reports: an integer array (n, 3) of a, b and bucket."""
        x = self._answers(x, rng)
        a, b = rng.integers(0, self.prime, size=(2, len(x)))
        y = self.buckets_of(a, b, x)
        move = rng.random(len(x)) >= self.kept
        y[move] = (y[move] + rng.integers(1, self.buckets, size=int(move.sum()))) % self.buckets
        return np.stack([a, b, y], axis=1)

    def support_counts(self, reports: Any) -> Array:
        """How many reported buckets are the bucket of each answer, shape (k,); takes O(n k) time."""
        reports = check_reports(reports, 3, (self.prime, self.prime, self.buckets))
        counts = np.zeros(self.k)
        for at in range(0, len(reports), _CHUNK):
            a, b, y = np.ascontiguousarray(reports[at : at + _CHUNK].T, dtype=np.uint32)
            counts += self._supported(a, b, y)
        return counts

    def _supported(self, a: Words, b: Words, y: Words) -> Array:
        """The support counts of a few reports, in 32-bit words that stay in the processor's cache.

        The hash value of the next answer is the last value plus a. It is reduced modulo the prime by the minimum of
        itself and itself less the prime, which wraps around to a large number where it would be negative. A value
        falls into the reported bucket if the two differ by a multiple of the number of buckets. This is tested by a
        multiplication with the inverse of the number's odd part, a rotation and a comparison.
        """
        twos = (self.buckets & -self.buckets).bit_length() - 1
        inverse = np.uint32(pow(self.buckets >> twos, -1, 2**32))
        limit, prime, shift = np.uint32((2**32 - 1) // self.buckets), np.uint32(self.prime), np.uint32(twos)
        back = np.uint32((32 - twos) % 32)
        value, other, high = b.copy(), np.empty_like(b), np.empty_like(b)
        offset = np.uint32(self.buckets) - y
        counts = np.zeros(self.k)
        for v in range(self.k):
            np.add(value, offset, out=other)
            np.multiply(other, inverse, out=other)
            if twos:
                np.left_shift(other, back, out=high)
                np.right_shift(other, shift, out=other)
                np.bitwise_or(other, high, out=other)
            counts[v] = np.count_nonzero(other <= limit)
            np.add(value, a, out=value)
            np.subtract(value, prime, out=other)
            np.minimum(value, other, out=value)
        return counts

    def channel(self) -> Channel:
        """The channel with all reports (a, b, bucket) as outputs. Raises `InvalidInput` unless the prime is small."""
        check_size(self.k, self.prime**2 * self.buckets)
        a, b, y = (part.ravel() for part in np.indices((self.prime, self.prime, self.buckets)))
        hit = self.buckets_of(a, b, np.arange(self.k)[:, None]) == y
        matrix = np.where(hit, self.kept, self.kept * self._odds) / self.prime**2
        outputs = tuple(zip(a.tolist(), b.tolist(), y.tolist(), strict=True))
        return Channel(matrix, tuple(range(self.k)), outputs)


def local_hashing(k: int, epsilon: float, buckets: int = 2, prime: int = MERSENNE_31) -> LocalHashing:
    """Local hashing to a number of `buckets` (2: binary local hashing) [LH].

    k : the number of answers, at least 2. epsilon : in nats. buckets : at least 2.
    prime : the modulus of the hash functions, a prime of at least k and `buckets`, at most 2**31 - 1.

    Raises `InvalidInput` for values out of range.

    >>> m = local_hashing(100, 1.0)
    >>> round(m.eta, 6), round(m.variance(0.0, 1), 4)
    (0.231059, 4.6827)
    """
    return LocalHashing(k, epsilon, buckets, prime)


def optimized_local_hashing(k: int, epsilon: float, prime: int = MERSENNE_31) -> LocalHashing:
    """Local hashing to the whole number of buckets nearest to e^epsilon + 1, at least 2 [LH].

    With e = exp(epsilon), its variance at frequency 0 is close to 4e/(n (e-1)^2) for every k. epsilon is at most 20
    nats, since more would need more buckets than there are hash values. Raises `InvalidInput` for values out of range.

    >>> m = optimized_local_hashing(1000, 1.0)
    >>> m.buckets, round(m.variance(0.0, 1), 4)
    (4, 3.6917)
    """
    checked = LocalHashing(k, epsilon, 2, prime)
    if checked.epsilon > 20:
        raise invalid("epsilon", "at most 20 nats for optimised local hashing", checked.epsilon)
    return LocalHashing(checked.k, checked.epsilon, max(2, round(math.exp(checked.epsilon)) + 1), prime)


def _is_prime(number: int) -> bool:
    return number >= 2 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
