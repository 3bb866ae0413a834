"""Utilities in high precision, by definition: divergences, mutual information, sums, and the worst of several.

A utility here is `Kept`: the least of several criteria, each a weighted sum of parts, each part a sum over outputs of a
convex, homogeneous function mu of the column. Divergences are written as mu(a, b) - f'(1) (a - b), which sums to the
same over a channel and is never negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
from mpmath import mpf

Row = list[mpf]
Generator = tuple[str, *tuple[float, ...]]
DIGITS = 60


def law(values: Sequence[float]) -> Row:
    """The law that is proportional to some floats."""
    exact = [mpf(float(v)) for v in values]
    total = mpmath.fsum(exact)
    return [v / total for v in exact]


def digits(*numbers: float) -> int:
    """How many digits keep 60 of squares of differences that are as small as the least of these numbers."""
    least = min((abs(n) for n in numbers if n), default=1.0)
    return DIGITS + math.ceil(max(0.0, -2.2 * math.log10(least)))


def _kl(a: mpf, b: mpf) -> mpf:
    if a == 0:
        return b
    return mpmath.inf if b == 0 else a * mpmath.log(a / b) - (a - b)


def _over(top: mpf, bottom: mpf) -> mpf:
    if top == 0:
        return mpf(0)
    return mpmath.inf if bottom == 0 else top / bottom


def _jensen_shannon(a: mpf, b: mpf) -> mpf:
    half = (a + b) / 2
    return mpmath.fsum(v * mpmath.log(v / half) for v in (a, b) if v > 0) / 2


def _hockey_stick(a: mpf, b: mpf, gamma: float) -> mpf:
    g = mpf(gamma)
    return max(a - g * b, mpf(0)) if g >= 1 else max(g * b - a, mpf(0))


def _alpha(a: mpf, b: mpf, order: float) -> mpf:
    o = mpf(order)
    if o in (0, 1):
        return _kl(a, b) if o == 1 else _kl(b, a)
    if a == 0:
        return b / o if o > 0 else mpmath.inf
    if b == 0:
        return a / (1 - o) if o < 1 else mpmath.inf
    return (a**o * b ** (1 - o) - b - o * (a - b)) / (o * (o - 1))


EXCESS: dict[str, Callable[..., mpf]] = {
    "kl": _kl,
    "reverse-kl": lambda a, b: _kl(b, a),
    "jeffreys": lambda a, b: _kl(a, b) + _kl(b, a),
    "total-variation": lambda a, b: abs(a - b) / 2,
    "chi-squared": lambda a, b: _over((a - b) ** 2, b),
    "neyman-chi-squared": lambda a, b: _over((a - b) ** 2, a),
    "squared-hellinger": lambda a, b: (mpmath.sqrt(a) - mpmath.sqrt(b)) ** 2,
    "jensen-shannon": _jensen_shannon,
    "le-cam": lambda a, b: _over((a - b) ** 2, a + b),
    "hockey-stick": _hockey_stick,
    "alpha": _alpha,
}
"""mu(a, b) - f'(1) (a - b) of every named generator, with its limits at 0."""


def divergence(f: Generator, p: Row, q: Row) -> mpf:
    """D_f(p || q)."""
    return mpmath.fsum(EXCESS[f[0]](a, b, *f[1:]) for a, b in zip(p, q, strict=True) if a > 0 or b > 0)


def dot(p: Row, column: Row) -> mpf:
    return mpmath.fsum(a * b for a, b in zip(p, column, strict=True))


@dataclass(frozen=True)
class Pair:
    """D_f between the two marginals of a report."""

    f: Generator
    p0: tuple[float, ...]
    p1: tuple[float, ...]

    def floats(self) -> list[float]:
        differences = [a - b for a, b in zip(self.p0, self.p1, strict=True)]
        return [*self.p0, *self.p1, *differences, max(map(abs, differences)) ** 2]

    def columns(self, columns: list[Row]) -> list[mpf]:
        p0, p1 = law(self.p0), law(self.p1)
        made = [(dot(p0, c), dot(p1, c)) for c in columns]
        return [EXCESS[self.f[0]](a, b, *self.f[1:]) if a > 0 or b > 0 else mpf(0) for a, b in made]

    def size(self) -> int:
        return len(self.p0)


@dataclass(frozen=True)
class Prior:
    """The mutual information between an answer and its report."""

    prior: tuple[float, ...]

    def floats(self) -> list[float]:
        return list(self.prior)

    def columns(self, columns: list[Row]) -> list[mpf]:
        p = law(self.prior)
        made = []
        for column in columns:
            mean = dot(p, column)
            made.append(mpmath.fsum(w * s * mpmath.log(s / mean) for w, s in zip(p, column, strict=True) if w * s > 0))
        return made

    def size(self) -> int:
        return len(self.prior)


@dataclass(frozen=True)
class Kept:
    """min over criteria of a weighted sum of parts."""

    criteria: tuple[tuple[tuple[float, Pair | Prior], ...], ...]

    @property
    def size(self) -> int:
        return self.criteria[0][0][1].size()

    def digits(self, *others: float) -> int:
        """Digits for this utility, and columns whose differences are as small as `others`."""
        own = digits(*(v for criterion in self.criteria for _, part in criterion for v in part.floats()))
        return own + digits(*others) - DIGITS

    def columns(self, columns: list[Row]) -> list[list[mpf]]:
        """One list a criterion: mu of every column."""
        made = []
        for criterion in self.criteria:
            each = [(mpf(weight), part.columns(columns)) for weight, part in criterion if weight]
            made.append([mpmath.fsum(w * values[y] for w, values in each) for y in range(len(columns))])
        return made

    def value(self, rows: list[Row]) -> mpf:
        """What a channel keeps, given by its exact rows."""
        return min(mpmath.fsum(c) for c in self.columns([list(c) for c in zip(*rows, strict=True)]))

    def unprivate(self) -> mpf:
        """What full disclosure keeps."""
        k = self.size
        return self.value([[mpf(x == y) for y in range(k)] for x in range(k)])


def divergence_utility(f: Generator, p0: Sequence[float], p1: Sequence[float]) -> Kept:
    """The divergence of one pair."""
    return Kept((((1.0, Pair(f, tuple(map(float, p0)), tuple(map(float, p1)))),),))
