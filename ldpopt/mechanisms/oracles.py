"""Frequency oracles: how frequent each answer is, from reports too many for a table; here bits for every answer.

A unary encoding reports one bit for every possible answer, each randomized independently.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.errors import invalid
from ldpopt.exact import log_up
from ldpopt.numbers.rounding import toward_privacy, up
from ldpopt.values.distribution import (
    Array,
    Checked,
    at_least_two,
    finite_array,
    positive_epsilon,
    positive_integer,
    unit_interval,
)
from ldpopt.values.simulation import Rng, generator

Answers = npt.NDArray[np.intp]
Reports = npt.NDArray[Any]

MAXIMUM_ENTRIES = 2**24


@dataclass(frozen=True)
class FrequencyOracle(Checked, ABC, k=at_least_two, epsilon=positive_epsilon):
    """A mechanism on answers 0..k-1, k >= 2, in which every report *supports* some of the answers; epsilon in nats.

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
        """Simulated reports for an array of answers 0..k-1, one row for each report."""

    @abstractmethod
    def support_counts(self, reports: Any) -> Array:
        """How many of the reports support each answer, shape (k,)."""

    @abstractmethod
    def channel(self) -> Channel:
        """The whole channel, for small parameters. Raises `InvalidInput` if it has more than 2**24 entries."""

    def estimate(self, support_counts: Any, n: int) -> Array:
        """Unbiased estimates of the frequencies, shape (k,), from the support counts of n reports; any reals."""
        own, other = self.support
        return np.asarray((counted(support_counts, self.k) / positive_integer(n, "n") - other) / (own - other))

    def variance(self, frequency: float, n: int) -> float:
        """The variance of the estimate of one frequency f from n independent respondents [LH].

        It is s (1 - s)/(n (own - other)^2) with own, other = `support` and s = f own + (1 - f) other.
        """
        f, (own, other) = unit_interval(frequency, "frequency"), self.support
        s = f * own + (1 - f) * other
        return s * (1 - s) / (positive_integer(n, "n") * (own - other) ** 2)

    def _answers(self, x: Any) -> Answers:
        answers = np.atleast_1d(np.asarray(x))
        listed = answers.ndim == 1 and answers.dtype.kind in "iu"
        if not listed or (answers.size and not 0 <= answers.min() <= answers.max() < self.k):
            raise invalid("answers", f"integers 0 to {self.k - 1} in one dimension", x)
        return answers.astype(np.intp)


def counted(support_counts: Any, k: int) -> Array:
    """Support counts of k answers as an array (k,)."""
    counts = finite_array(support_counts, "support counts", 1)
    if len(counts) != k:
        raise invalid("support counts", f"{k} entries", len(counts))
    return counts


def check_size(rows: int, columns: int, what: str = "channel") -> None:
    """Refuse to tabulate a matrix of more than `MAXIMUM_ENTRIES` entries."""
    if rows * columns > MAXIMUM_ENTRIES:
        raise invalid(what, f"a matrix of at most {MAXIMUM_ENTRIES} entries", f"{rows} x {columns:.3g}")


def check_reports(reports: Any, columns: int | None, limits: int | tuple[int, ...]) -> Reports:
    """`reports` as an integer array of `columns` columns (one dimension when None), entries from 0 below `limits`."""
    checked = np.asarray(reports)
    shape_fits = checked.ndim == 1 if columns is None else checked.ndim == 2 and checked.shape[1] == columns
    if not shape_fits or checked.dtype.kind not in "iub":
        expected = "a one-dimensional array" if columns is None else f"{columns} columns"
        raise invalid("reports", f"integers, {expected}", f"{checked.dtype} of shape {checked.shape}")
    if checked.size and (np.any(checked < 0) or np.any(checked >= np.asarray(limits))):
        raise invalid("reports", f"entries from 0 to below {limits}", "others")
    return checked


_CHUNK = 1 << 18


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
        own, other = Fraction(self.own), Fraction(self.other)
        true = log_up(own * (1 - other) / (other * (1 - own)))
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
        """Simulated reports: a boolean array (n, k)."""
        x = self._answers(x)
        rng = generator(rng)
        bits = np.empty((len(x), self.k), bool)
        rows = max(1, _CHUNK // self.k)
        for start in range(0, len(x), rows):
            part, answers = bits[start : start + rows], x[start : start + rows]
            _toss(part.reshape(-1), self.other, rng)
            part[np.arange(len(part)), answers] = rng.random(len(part)) < self.own
        return bits

    def support_counts(self, reports: Any) -> Array:
        """How often each bit is set, shape (k,)."""
        return np.asarray(check_reports(reports, self.k, 2).sum(axis=0, dtype=np.float64))

    def channel(self) -> Channel:
        """The (k, 2^k) channel; outputs are tuples of bits."""
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
    drawn = words.view(np.uint8)[: len(bits)]
    np.less(drawn, np.uint8(first), out=bits)
    equal = np.flatnonzero(drawn == np.uint8(first))
    bits[equal] = rng.random(len(equal)) < rest


def unary_encoding(k: int, epsilon: float) -> UnaryEncoding:
    """The symmetric unary encoding (basic RAPPOR): every bit is kept with odds e^(epsilon/2) [RAPPOR].

    k >= 2; epsilon in nats. Its total variation eta is tanh(epsilon/4). Raises `InvalidInput` for values out of range.

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
    """The optimised unary encoding: own bit set with probability 1/2, others with 1/(1 + e^epsilon) [LH].

    k >= 2; epsilon in nats. Its total variation eta is tanh(epsilon/2)/2, and its variance at frequency 0 is
    4e/(n (e-1)^2) with e = exp(epsilon).
    Raises `InvalidInput` for values out of range.

    >>> m = optimized_unary_encoding(10, 1.0)
    >>> round(m.other, 4), round(m.eta, 4), round(m.variance(0.0, 1), 4)
    (0.2689, 0.2311, 3.6827)
    """
    epsilon = positive_epsilon(epsilon)
    return UnaryEncoding(k, epsilon, 0.5, 1 / (1 + math.exp(toward_privacy(epsilon))))
