"""Frequency oracles: how frequent each answer is, from reports too many for a table.

A unary encoding reports one bit for every possible answer, each randomized independently. Hadamard response and local
hashing have short reports.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.errors import invalid
from ldpopt.exact import log_up
from ldpopt.numbers.rounding import float_up, toward_privacy, up
from ldpopt.values.distribution import (
    Array,
    Checked,
    Rng,
    at_least_two,
    finite_array,
    generator,
    positive_epsilon,
    positive_integer,
    unit_interval,
)

Answers = npt.NDArray[np.intp]
Reports = npt.NDArray[Any]

MAXIMUM_ENTRIES = 2**24


@dataclass(frozen=True)
class FrequencyOracle(Checked, ABC, k=at_least_two, epsilon=positive_epsilon):
    """A mechanism on answers 0..k-1, k >= 2; every report *supports* some of the answers; epsilon in nats.

    A report supports the respondent's own answer with probability `support[0]`, and any other with probability
    `support[1]`. The expected number of supporting reports is linear in an answer's frequency; `estimate` solves for
    it, unbiased [LH].

    >>> from ldpopt.mechanisms import unary_encoding
    >>> round(unary_encoding(3, 1.0).variance(0.0, 100), 6)
    0.039177
    """

    k: int
    epsilon: float

    @property
    @abstractmethod
    def eta(self) -> float:
        """The largest total variation distance between the reports of two answers, rounded up."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The probabilities that a report supports its own answer, and that it supports another one."""

    @abstractmethod
    def sample(self, x: Any, rng: Rng = None) -> Reports:
        """Simulate reports for an array of answers 0..k-1, one row for each report."""

    @abstractmethod
    def support_counts(self, reports: Any) -> Array:
        """Count the reports that support each answer, shape (k,)."""

    @abstractmethod
    def channel(self) -> Channel:
        """Build the channel, for small parameters."""

    def estimate(self, support_counts: Any, n: int) -> Array:
        """Estimate the frequencies without bias, shape (k,), from the support counts of n reports."""
        own_probability, other = self.support
        support_rate = counted(support_counts, self.k) / positive_integer(n, "n")
        return np.asarray((support_rate - other) / (own_probability - other))

    def variance(self, frequency: float, n: int) -> float:
        """Compute the variance of the estimate of one frequency from n respondents [LH].

        For the frequency f it is s (1 - s)/(n (own - other)^2) with own, other = `support` and s = f own + (1 - f)
        other.
        """
        f, (own_probability, other) = unit_interval(frequency, "frequency"), self.support
        s = f * own_probability + (1 - f) * other
        return s * (1 - s) / (positive_integer(n, "n") * (own_probability - other) ** 2)

    def _answers(self, x: Any) -> Answers:
        answers = np.atleast_1d(np.asarray(x))
        is_list = answers.ndim == 1 and answers.dtype.kind in "iu"
        if not is_list or (answers.size and not 0 <= answers.min() <= answers.max() < self.k):
            raise invalid("answers", f"integers 0 to {self.k - 1} in one dimension", x)
        return answers.astype(np.intp)


def counted(support_counts: Any, k: int) -> Array:
    """Check support counts of k answers, and return them as an array (k,)."""
    counts = finite_array(support_counts, "support counts", 1)
    if len(counts) != k:
        raise invalid("support counts", f"{k} entries", len(counts))
    return counts


def check_size(rows: int, columns: int, name: str = "channel") -> None:
    """Refuse to tabulate a matrix of more than `MAXIMUM_ENTRIES` entries."""
    if rows * columns > MAXIMUM_ENTRIES:
        raise invalid(name, f"a matrix of at most {MAXIMUM_ENTRIES} entries", f"{rows} x {columns:.3g}")


def check_reports(reports: Any, columns: int | None, limits: int | tuple[int, ...]) -> Reports:
    """Return `reports` as an integer array of `columns` columns, or one dimension for None."""
    # Entries lie from 0 to below `limits`.
    report_array = np.asarray(reports)
    shape_fits = (
        report_array.ndim == 1 if columns is None else report_array.ndim == 2 and report_array.shape[1] == columns
    )
    if not shape_fits or report_array.dtype.kind not in "iub":
        expected = "a one-dimensional array" if columns is None else f"{columns} columns"
        raise invalid("reports", f"integers, {expected}", f"{report_array.dtype} of shape {report_array.shape}")
    if report_array.size and (np.any(report_array < 0) or np.any(report_array >= np.asarray(limits))):
        raise invalid("reports", f"entries from 0 to below {limits}", "others")
    return report_array


_MAX_BLOCK_BITS = 1 << 18


@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle, own=unit_interval, other=unit_interval):
    """A vector of k bits: the answer's own is set with probability `own`, every other one with probability `other`.

    0 < other < own < 1. They give the epsilon log own (1 - other) / (other (1 - own)) in nats, and the total variation
    own - other over all 2^k reports. `unary_encoding` (the symmetric one) and `optimized_unary_encoding` choose them
    for an epsilon. Raises `InvalidInput` for values out of range, and for an `epsilon` below the one that they give.

    >>> from ldpopt.mechanisms import unary_encoding
    >>> unary_encoding(3, 1.0).channel().shape
    (3, 8)
    """

    own: float
    other: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.other < self.own < 1:
            raise invalid("own and other", "probabilities with 0 < other < own < 1", (self.own, self.other))
        own_probability, other = Fraction(self.own), Fraction(self.other)
        true = log_up(own_probability * (1 - other) / (other * (1 - own_probability)))
        if not true <= self.epsilon:
            raise invalid("epsilon", f"at least {true!r}, what these probabilities give", self.epsilon)

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities that the answer's bit, and that another bit, is set."""
        return self.own, self.other

    @property
    def eta(self) -> float:
        """The total variation own - other, rounded up: two answers differ only in the laws of their own two bits."""
        return up(self.own - self.other)

    def sample(self, x: Any, rng: Rng = None) -> Reports:
        """Simulate reports: a boolean array (n, k)."""
        x = self._answers(x)
        rng = generator(rng)
        bits = np.empty((len(x), self.k), bool)
        rows = max(1, _MAX_BLOCK_BITS // self.k)
        for start in range(0, len(x), rows):
            part, answers = bits[start : start + rows], x[start : start + rows]
            _toss(part.reshape(-1), self.other, rng)
            part[np.arange(len(part)), answers] = rng.random(len(part)) < self.own
        return bits

    def support_counts(self, reports: Any) -> Array:
        """Count how often each bit is set, shape (k,)."""
        return np.asarray(check_reports(reports, self.k, 2).sum(axis=0, dtype=np.float64))

    def channel(self) -> Channel:
        """Build the (k, 2^k) channel; outputs are tuples of bits."""
        check_size(self.k, 2**self.k)
        vectors = tuple(product((0, 1), repeat=self.k))
        bits = np.array(vectors, dtype=bool)
        factors = np.where(bits, self.other, 1 - self.other)
        matrix = np.empty((self.k, len(bits)))
        for x in range(self.k):
            rest = np.prod(np.delete(factors, x, axis=1), axis=1)
            matrix[x] = rest * np.where(bits[:, x], self.own, 1 - self.own)
        return Channel(matrix, tuple(range(self.k)), vectors)


def _toss(bits: npt.NDArray[np.bool_], chance: float, rng: np.random.Generator) -> None:
    """Set every bit with probability `chance`, to 2**-61, by a random byte, and a float where it does not decide."""
    first, rest = divmod(chance * 256, 1.0)
    words = rng.integers(0, 2**64, size=-(-len(bits) // 8), dtype=np.uint64)
    random_bytes = words.view(np.uint8)[: len(bits)]
    np.less(random_bytes, np.uint8(first), out=bits)
    equal = np.flatnonzero(random_bytes == np.uint8(first))
    bits[equal] = rng.random(len(equal)) < rest


def unary_encoding(k: int, epsilon: float) -> UnaryEncoding:
    """Build the symmetric unary encoding (basic RAPPOR) [RAPPOR].

    Every bit is reported truthfully with odds e^(epsilon/2). Its total variation eta is tanh(epsilon/4).

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats.

    Returns
    -------
    UnaryEncoding
        The frequency oracle.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> m = unary_encoding(10, 1.0)
    >>> round(m.own, 4), round(m.eta, 4), round(m.variance(0.0, 1), 4)
    (0.6225, 0.2449, 3.9177)
    """
    epsilon = positive_epsilon(epsilon)
    other = 1 / (1 + math.exp(toward_privacy(epsilon) / 2))
    # Rounded up to a multiple of 2**-53, so that 1 - other is exact, and own and other exactly add up to one.
    other = math.ceil(other * 2.0**53) * 2.0**-53
    return UnaryEncoding(k, epsilon, 1 - other, other)


def optimized_unary_encoding(k: int, epsilon: float) -> UnaryEncoding:
    """Build the optimized unary encoding [LH].

    The answer's bit is set with probability 1/2, others with 1/(1 + e^epsilon). The total variation eta is
    tanh(epsilon/2)/2, and the variance at frequency 0 is 4e/(n (e-1)^2) with e = exp(epsilon).

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats.

    Returns
    -------
    UnaryEncoding
        The frequency oracle.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> m = optimized_unary_encoding(10, 1.0)
    >>> round(m.other, 4), round(m.eta, 4), round(m.variance(0.0, 1), 4)
    (0.2689, 0.2311, 3.6827)
    """
    epsilon = positive_epsilon(epsilon)
    return UnaryEncoding(k, epsilon, 0.5, 1 / (1 + math.exp(toward_privacy(epsilon))))


Integers = npt.NDArray[np.int64]


def _power(value: Any, name: str) -> int:
    result = positive_integer(value, name, 1 + (name == "width"))
    if result & (result - 1):
        raise invalid(name, "a power of two", result)
    return result


@dataclass(frozen=True)
class HadamardResponse(Checked, k=at_least_two, epsilon=positive_epsilon, blocks=_power, width=_power):
    """Reports 0..K-1 in `blocks` blocks of `width` positions, K = blocks * width, both powers of two [HR].

    Answer x has its own row, not the constant one, of the Hadamard matrix of size `width`, whose orthogonal rows hold
    +1 and -1, in block x mod blocks. The width/2 positions of that block where the row is +1 have the weight e^epsilon,
    all other positions of all blocks the weight 1. `hadamard_response` chooses `blocks` and `width`. Raises
    `InvalidInput` for numbers that are not powers of two, or too small to give each of k answers a row.

    >>> hadamard_response(3, 1.0).channel().shape
    (3, 8)
    """

    k: int
    epsilon: float
    blocks: int
    width: int

    def __post_init__(self) -> None:
        super().__post_init__()
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
        """The total variation eta, of `sample` and of `channel`, rounded up: `signal`, or half of it for one block."""
        share = Fraction(1, 2) if self.blocks == 1 else Fraction(1)
        low, high = Fraction(self._low), Fraction(self._high)
        half = self.width // 2
        floats = share * half * (high - low) / (half * high + (self.reports - half) * low)
        return max(up(self.signal * float(share), 32), float_up(floats))

    def sign(self, x: Any, y: Any) -> Integers:
        """Return the support of answer x by report y: +1, -1, or 0 outside its block (broadcast)."""
        # The entry of the row of x within its block.
        x, y = np.asarray(x, np.int64), np.asarray(y, np.int64)
        odd = _odd((x // self.blocks + 1) & (y % self.width))
        return np.where(x % self.blocks == y // self.width, 1 - 2 * odd, 0)

    def sample(self, x: Any, rng: Rng = None) -> Reports:
        """Simulate reports for an array of answers 0..k-1, shape (n,)."""
        x, rng = check_reports(x, None, self.k).astype(np.int64), generator(rng)
        half = self.width // 2
        # A mixture: uniform over everything, or uniform over the preferred half-block of the answer.
        y = rng.integers(0, self.reports, size=len(x))
        preferring = np.flatnonzero(rng.random(len(x)) < half * math.expm1(toward_privacy(self.epsilon)) * self._low)
        row, place = x[preferring] // self.blocks + 1, rng.integers(0, self.width, size=len(preferring))
        # Where the row is -1, flipping one bit of the position (the row's lowest set bit) leads to a +1: so every +1 is
        # equally likely.
        is_unpreferred = _odd(row & place) == 1
        y[preferring] = x[preferring] % self.blocks * self.width + np.where(is_unpreferred, place ^ (row & -row), place)
        return y

    def support_counts(self, reports: Any) -> Array:
        """Sum `sign` over the reports for each answer, (k,), by a fast Hadamard transform."""
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
        """Estimate the frequencies without bias, (k,), from the support counts of n reports."""
        return np.asarray(counted(support_counts, self.k) / (positive_integer(n, "n") * self.signal))

    def variance(self, frequency: float, n: int, block_frequency: float = 1.0) -> float:
        """Compute the variance of the estimate of one frequency from n respondents.

        block_frequency : the total frequency of all answers in its block, at least `frequency`; 1 with one block.
        """
        f, share = unit_interval(frequency, "frequency"), unit_interval(block_frequency, "block_frequency")
        if share < f or (self.blocks == 1 and share != 1):
            raise invalid("block_frequency", "at least the frequency, and 1 with one block", share)
        square = self.width * self._low + share * self.signal  # the probability of a report in the block
        return (square / self.signal**2 - f**2) / positive_integer(n, "n")

    def channel(self) -> Channel:
        """Build the (k, K) channel."""
        check_size(self.k, self.reports)
        is_preferred = self.sign(np.arange(self.k)[:, None], np.arange(self.reports)) > 0
        return Channel(np.where(is_preferred, self._high, self._low), tuple(range(self.k)), tuple(range(self.reports)))


def hadamard_response(k: int, epsilon: float) -> HadamardResponse:
    """Build the Hadamard response with the block structure of the paper [HR, section 5].

    The number of blocks is the largest power of two up to min(e^epsilon, 2k); below epsilon = log 2 there is one block.
    The width is the smallest power of two above k/blocks.

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats.

    Returns
    -------
    HadamardResponse
        The frequency oracle.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> m = hadamard_response(10, 1.0)
    >>> m.blocks, m.width, round(m.eta, 4), round(m.variance(0.1, 1, 0.5), 3)
    (2, 8, 0.3005, 5.527)
    """
    k, epsilon = at_least_two(k), positive_epsilon(epsilon)
    largest = 2 * k if epsilon > math.log(2 * k) else math.floor(math.exp(epsilon))
    blocks = 1 << (largest.bit_length() - 1)
    width = 1 << (-(-k // blocks)).bit_length()
    return HadamardResponse(k, epsilon, blocks, width)


def _odd(bits: Integers) -> Integers:
    """1 where a non-negative number has an odd number of set bits, else 0."""
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ (bits >> shift)
    return bits & 1


Words = npt.NDArray[np.uint32]

MERSENNE_31 = 2**31 - 1
_REPORTS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class LocalHashing(FrequencyOracle, buckets=at_least_two, prime=at_least_two):
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
        if not max(self.k, self.buckets) <= self.prime <= MERSENNE_31 or not is_prime(self.prime):
            expected = f"a prime from max(k, buckets) = {max(self.k, self.buckets)} to {MERSENNE_31}"
            raise invalid("prime", expected, self.prime)

    @property
    def collision(self) -> float:
        """The probability that two answers share a bucket; it differs from 1/buckets by less than 1/prime."""
        size, larger = divmod(self.prime, self.buckets)
        return (larger * (size + 1) ** 2 + (self.buckets - larger) * size**2) / self.prime**2

    @property
    def keep_probability(self) -> float:
        """The probability that the reported bucket is that of the answer."""
        return 1 / (1 + (self.buckets - 1) * self._odds)

    @property
    def _odds(self) -> float:
        return math.exp(-toward_privacy(self.epsilon))

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities that the reported bucket is that of the true answer, and that of any given other answer."""
        moved_probability = self.keep_probability * self._odds
        return self.keep_probability, moved_probability + (self.keep_probability - moved_probability) * self.collision

    @property
    def eta(self) -> float:
        """The total variation (1 - collision)(e - 1)/(e + buckets - 1), e = exp(epsilon), rounded up."""
        return up((1 - self.collision) * self.keep_probability * -math.expm1(-self.epsilon), 16)

    def buckets_of(self, a: Any, b: Any, v: Any) -> Reports:
        """Compute the bucket of answer v under the hash (a, b)."""
        return np.asarray((np.asarray(a, np.int64) * np.asarray(v, np.int64) + b) % self.prime % self.buckets)

    def sample(self, x: Any, rng: Rng = None) -> Reports:
        """Simulate reports: an integer array (n, 3) of a, b and bucket."""
        x, rng = self._answers(x), generator(rng)
        a, b = rng.integers(0, self.prime, size=(2, len(x)))
        y = self.buckets_of(a, b, x)
        move = rng.random(len(x)) >= self.keep_probability
        y[move] = (y[move] + rng.integers(1, self.buckets, size=int(move.sum()))) % self.buckets
        return np.stack([a, b, y], axis=1)

    def support_counts(self, reports: Any) -> Array:
        """Count the reported buckets that are the bucket of each answer, (k,), in O(n k) time."""
        reports = check_reports(reports, 3, (self.prime, self.prime, self.buckets))
        counts = np.zeros(self.k)
        for start in range(0, len(reports), _REPORTS_AT_ONCE):
            a, b, y = np.ascontiguousarray(reports[start : start + _REPORTS_AT_ONCE].T, dtype=np.uint32)
            counts += self._supported(a, b, y)
        return counts

    def _supported(self, a: Words, b: Words, y: Words) -> Array:
        """The support counts of a few reports, in 32-bit words that stay in the processor's cache.

        The hash of the next answer is the last one plus a, reduced by the minimum of itself and itself less the prime,
        which wraps around. Whether it differs from the report by a multiple of the buckets is tested by the inverse of
        their odd part.
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
        """Build the channel with all reports (a, b, bucket) as outputs, for a small prime."""
        # `InvalidInput` for a large prime.
        check_size(self.k, self.prime**2 * self.buckets)
        a, b, y = (part.ravel() for part in np.indices((self.prime, self.prime, self.buckets)))
        is_hit = self.buckets_of(a, b, np.arange(self.k)[:, None]) == y
        matrix = np.where(is_hit, self.keep_probability, self.keep_probability * self._odds) / self.prime**2
        outputs = tuple(zip(a.tolist(), b.tolist(), y.tolist(), strict=True))
        return Channel(matrix, tuple(range(self.k)), outputs)


def local_hashing(k: int, epsilon: float, buckets: int = 2, prime: int = MERSENNE_31) -> LocalHashing:
    """Build local hashing to a number of `buckets` (2: binary local hashing) [LH].

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats.
    buckets : At least 2.
    prime : The modulus of the hash functions, a prime of at least k and `buckets`, at most 2**31 - 1.

    Returns
    -------
    LocalHashing
        The frequency oracle.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> m = local_hashing(100, 1.0)
    >>> round(m.eta, 6), round(m.variance(0.0, 1), 4)
    (0.231059, 4.6827)
    """
    return LocalHashing(k, epsilon, buckets, prime)


def optimized_local_hashing(k: int, epsilon: float, prime: int = MERSENNE_31) -> LocalHashing:
    """Build local hashing to the integer of buckets nearest to e^epsilon + 1, at least 2 [LH].

    With e = exp(epsilon), its variance at frequency 0 is close to 4e/(n (e-1)^2) for every k.

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats, at most 20, since more would need more buckets than there are hash values.
    prime : The modulus of the hash functions, as for `local_hashing`.

    Returns
    -------
    LocalHashing
        The frequency oracle.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> m = optimized_local_hashing(1000, 1.0)
    >>> m.buckets, round(m.variance(0.0, 1), 4)
    (4, 3.6917)
    """
    two_buckets = LocalHashing(k, epsilon, 2, prime)
    if two_buckets.epsilon > 20:
        raise invalid("epsilon", "at most 20 nats for optimized local hashing", two_buckets.epsilon)
    return LocalHashing(two_buckets.k, two_buckets.epsilon, max(2, round(math.exp(two_buckets.epsilon)) + 1), prime)


@cache
def is_prime(number: int) -> bool:
    """Return True if a number is prime, by trial division."""
    return number >= 2 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
