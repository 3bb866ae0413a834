"""Unary encodings: a report has one bit for every possible answer, and each bit is randomized independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.distribution import Array, positive_epsilon, unit_interval
from ldpopt.errors import invalid
from ldpopt.exact import log_up
from ldpopt.mechanisms.frequency_oracle import FrequencyOracle, Reports, check_reports, check_size
from ldpopt.rounding import toward_privacy, up

_CHUNK = 1 << 18


@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
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
        for name in ("own", "other"):
            object.__setattr__(self, name, unit_interval(getattr(self, name), name))
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

    def sample(self, x: Any, rng: np.random.Generator) -> Reports:
        """Simulated reports: a boolean array (n, k)."""
        x = self._answers(x, rng)
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
    """Set every bit with probability `chance`, within 2**-61, at little more than one random byte for each.

    A random byte below the first eight bits of `chance` sets its bit. If the byte equals them, a random float decides.
    """
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
