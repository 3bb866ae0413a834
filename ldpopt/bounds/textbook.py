"""Divergences preserved by the textbook mechanisms of this package, as lower bounds on the optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import Divergence
from ldpopt.errors import InvalidInput, invalid
from ldpopt.mechanisms import (
    ForcedResponse,
    Kuk,
    UnaryEncoding,
    UnrelatedQuestion,
    binary,
    hadamard_response,
    local_hashing,
    optimized_local_hashing,
    optimized_unary_encoding,
    randomized_response,
    subset_selection,
    truncated_geometric,
    unary_encoding,
)
from ldpopt.mechanisms.oracles import is_prime
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.rounding import down
from ldpopt.privacy import total_variation

LISTED_REPORTS = 4096
"""The most reports of a mechanism in a comparison: those of subset selection, unary encoding and hashing grow fast."""


class Kept(NamedTuple):
    """The divergence that a textbook mechanism preserves, rounded down, and its total variation, rounded up."""

    name: str
    value: float
    total_variation: float

    def under(self, eta: float) -> float:
        """Return its value after erasure to eta-TV, rounded down."""
        # Erasure preserves the fraction min(1, eta / total variation).
        return self.value if eta >= self.total_variation else down(self.value * (eta / self.total_variation))


def textbook(question: Divergence, epsilon: float) -> Iterator[Kept]:
    """Iterate over the textbook mechanisms at `epsilon` nats, those of one name together.

    Mechanisms with more than `LISTED_REPORTS` reports, and those that do not exist at this epsilon, are omitted.
    Hashing takes the smallest prime that its hash functions allow.
    """
    for name, makers in _named(question, epsilon).items():
        for make in makers:
            try:
                channel = Channel(make().matrix)  # without the mechanism's own labels of the answers
            except InvalidInput:  # there is none at this size or epsilon
                continue
            value = float(np.asarray(question.enclosed_value(channel, FLOAT).lower))
            yield Kept(name, max(value, 0.0), total_variation(channel).value)


def _named(question: Divergence, epsilon: float) -> dict[str, list[Callable[[], Channel]]]:
    """Functions that build the mechanisms, by the names in tables. Each may raise `InvalidInput`."""
    k = question.size
    sizes = [size for size in range(1, k) if math.comb(k, size) <= LISTED_REPORTS]
    builders: dict[str, list[Callable[[], Channel]]] = {
        "binary mechanism": [partial(binary, question.p0, question.p1, epsilon)],
        "randomized response": [partial(randomized_response, k, epsilon)],
        "subset selection, best size [YB]": [partial(subset_selection, k, epsilon, size) for size in sizes],
        "truncated geometric [Geometric]": [partial(truncated_geometric, k, epsilon)],
        "symmetric unary encoding [RAPPOR]": [partial(_bits, unary_encoding, k, epsilon)],
        "optimized unary encoding [LH]": [partial(_bits, optimized_unary_encoding, k, epsilon)],
        "binary local hashing [LH]": [partial(_hashed, k, epsilon)],
        "optimized local hashing [LH]": [lambda: _hashed(k, epsilon, optimized_local_hashing(k, epsilon).buckets)],
        "Hadamard response [HR]": [lambda: hadamard_response(k, epsilon).channel()],
    }
    if k == 2:
        builders |= {
            "forced response [Forced]": [lambda: ForcedResponse.for_epsilon(epsilon).channel],
            "unrelated question [Unrelated]": [lambda: UnrelatedQuestion.for_epsilon(epsilon, 0.5).channel],
            "cards [Kuk]": [lambda: Kuk.for_epsilon(epsilon).channel],
        }
    return builders


def _bits(encoding: Callable[[int, float], UnaryEncoding], k: int, epsilon: float) -> Channel:
    """A unary encoding as a table."""
    _check_reports(2.0**k)
    return encoding(k, epsilon).channel()


def _hashed(k: int, epsilon: float, buckets: int = 2) -> Channel:
    """Local hashing with the smallest prime, as a table."""
    _check_reports(float(max(k, buckets)) ** 2 * buckets)
    prime = next(n for n in count(max(k, buckets)) if is_prime(n))
    _check_reports(float(prime) ** 2 * buckets)
    return local_hashing(k, epsilon, buckets, prime).channel()


def _check_reports(reports: float) -> None:
    if reports > LISTED_REPORTS:
        raise invalid("mechanism", f"at most {LISTED_REPORTS} reports", reports)
