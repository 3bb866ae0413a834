"""Privacy in high-precision arithmetic, from the definitions alone, and the channels on which floats have it hard."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
from mpmath import mpf

DIGITS = 60
Row = list[mpf]


def channels(rng: np.random.Generator) -> np.ndarray:
    """One random channel with 2 to 4 inputs, from one of eight families, most of them near-degenerate."""
    k, m = int(rng.integers(2, 5)), int(rng.integers(2, 7))
    made = FAMILIES[int(rng.integers(len(FAMILIES)))](rng, k, m)
    made = made / made.sum(axis=1, keepdims=True)
    # Rows may sum to one only within the tolerance of `Channel`.
    return made * (1 + rng.uniform(-9e-10, 9e-10, (len(made), 1))) if rng.random() < 0.1 else made


def _dense(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    return rng.dirichlet(np.full(m, 10.0 ** rng.uniform(-1, 2)), k)


def _nearly_equal(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    return rng.dirichlet(np.ones(m)) * (1 + 10.0 ** rng.uniform(-16, -1) * rng.random((k, m)))


def _tiny(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    return 10.0 ** rng.uniform(-300, 0, (k, m))


def _staircase(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    epsilon = 10.0 ** rng.uniform(-12, math.log10(700.0))
    return np.where(rng.random((k, m)) < 0.5, 1.0, math.exp(-epsilon)) * rng.dirichlet(np.ones(m))


def _supports_differ(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    made = rng.dirichlet(np.ones(m), k) * (rng.random((k, m)) < 0.8)
    made[:, 0] = np.maximum(made[:, 0], 10.0 ** rng.uniform(-300, 0))
    return made


def _subnormal(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    made = rng.dirichlet(np.ones(m), k)
    made[:, -1] = 5e-324 * rng.integers(1, 2**40, k)
    # Elsewhere too, beside impossible reports: ratios beyond the range of floats, which have an order all the same.
    rare = rng.random((k, m)) < rng.choice([0.0, 0.3])
    rare[:, 0] = False
    return np.where(rare, 5e-324 * (rng.integers(0, 2, (k, m)) * 2.0 ** rng.integers(0, 60, (k, m))), made)


def _one_telling_report(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    made = _nearly_equal(rng, k, m)
    made[int(rng.integers(k)), -1] *= math.exp(-rng.uniform(0, 700))
    return made


def _randomized_response(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    epsilon = 10.0 ** rng.uniform(-15, 2.5)
    made = np.full((k, k), math.exp(-epsilon))
    np.fill_diagonal(made, 1.0)
    erasure = rng.random() * 10.0 ** rng.uniform(-9, 0)
    return np.hstack([made / made.sum(axis=1, keepdims=True) * (1 - erasure), np.full((k, 1), erasure)])


FAMILIES = [_dense, _nearly_equal, _tiny, _staircase, _supports_differ, _subnormal, _one_telling_report,
            _randomized_response]  # fmt: skip


def digits(matrix: np.ndarray) -> int:
    """How many digits keep 60 of a difference of squares of entries: 1 - p is told from 1 - q, and so is its log."""
    return DIGITS + math.ceil(-2.2 * math.log10(matrix[matrix > 0].min()))


def rows(matrix: np.ndarray, proportional: bool = False) -> list[Row]:
    """The rows as exact numbers, divided by their exact sums if they are taken as `proportional` laws."""
    made = [[mpf(float(value)) for value in row] for row in matrix]
    return [[value / mpmath.fsum(row) for value in row] for row in made] if proportional else made


def ordered_pairs(made: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Every ordered pair of different positions."""
    for x, p in enumerate(made):
        for other, q in enumerate(made):
            if x != other:
                yield p, q


def worst(made: list[Row], measure: Callable[[Row, Row], mpf]) -> mpf:
    """The largest value of `measure` over ordered pairs."""
    return max(measure(p, q) for p, q in ordered_pairs(made))


def probability(value: mpf) -> mpf:
    """At most 1: float rows may sum to a little more than the laws that they stand for."""
    return min(value, mpf(1))


def local_dp(p: Row, q: Row) -> mpf:
    """max log p/q, at least 0."""
    if any(a > 0 and b == 0 for a, b in zip(p, q, strict=True)):
        return mpmath.inf
    return max([mpf(0), *(mpmath.log(a / b) for a, b in zip(p, q, strict=True) if a > b)])


def hockey_stick(p: Row, q: Row, epsilon: float | mpf) -> mpf:
    """sum (p - e^epsilon q)_+."""
    factor = mpmath.exp(mpf(epsilon))
    return probability(mpmath.fsum(max(a - factor * b, mpf(0)) for a, b in zip(p, q, strict=True)))


def kl(p: Row, q: Row) -> mpf:
    """sum p log p/q."""
    if any(a > 0 and b == 0 for a, b in zip(p, q, strict=True)):
        return mpmath.inf
    return mpmath.fsum(a * mpmath.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def renyi(p: Row, q: Row, order: float | mpf) -> mpf:
    """log sum p^a q^(1-a) / (a - 1) for a > 1, with digits enough for orders near 1."""
    if any(a > 0 and b == 0 for a, b in zip(p, q, strict=True)):
        return mpmath.inf
    s = mpf(order) - 1
    logs = [(a, mpmath.log(a / b)) for a, b in zip(p, q, strict=True) if a > 0]
    # Of two equal laws it is 0, which a sum in finite precision may miss on either side.
    return max(mpf(0), mpmath.log(mpmath.fsum(a * mpmath.exp(s * z) for a, z in logs)) / s)


def cumulant(p: Row, q: Row, s: float) -> mpf:
    """log E exp(s (Z - E Z)) of the privacy loss Z = log p/q under p."""
    logs = [(a, mpmath.log(a / b)) for a, b in zip(p, q, strict=True) if a > 0]
    mean = mpmath.fsum(a * z for a, z in logs)
    return mpmath.log(mpmath.fsum(a * mpmath.exp(mpf(s) * (z - mean)) for a, z in logs))


def cut(p: Row, q: Row, delta: float) -> Row | None:
    """min(p, t q) with the t at which it loses `delta` of p; p for no such t, None where that is all of p - q."""
    t, kept, lost = mpf(0), mpf(0), mpf(0)
    for a, b in sorted(zip(p, q, strict=True), key=lambda pair: pair[0] / pair[1] if pair[1] else mpmath.inf)[::-1]:
        kept, lost = kept + a, lost + b
        if kept > delta:
            t = max(t, (kept - mpf(delta)) / lost if lost else mpmath.inf)
    return None if t <= 1 else [a if mpmath.isinf(t) else min(a, t * b) for a, b in zip(p, q, strict=True)]


def product(p: Row, q: Row, times: int) -> tuple[Row, Row]:
    """The joint laws of `times` independent draws."""
    left, right = [mpf(1)], [mpf(1)]
    for _ in range(times):
        left = [a * b for a in left for b in p]
        right = [a * b for a in right for b in q]
    return left, right
