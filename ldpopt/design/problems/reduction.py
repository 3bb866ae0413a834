"""The alphabet sorted by likelihood ratio, with inputs of equal ratio merged.

Replacing a channel by its average over a class of inputs with one ratio P0/P1 (weights Pr(x | class), equal under
both hypotheses) keeps both marginals and never raises a constraint that is jointly convex in pairs of rows, so the
reduced problem has the same optimum. Inputs that never occur need only some feasible row.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.rounding import exact_sum

NEAR = 2.0**-50
"""Floats of quotients that are equal in exact numbers differ by at most this share of themselves."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two hypotheses on inputs in increasing order of likelihood ratio: masses `p0` and `p1`, shape (k,).

    apart : (k,) p0 - p1 of the laws that the floats stand for, computed without cancellation.
    """

    p0: Array
    p1: Array
    apart: Array

    def __len__(self) -> int:
        return len(self.p0)

    @cached_property
    def prefix(self) -> tuple[Array, Array]:
        """The prefix sums of p0 and of p1, shape (k + 1,) each."""
        return np.concatenate([[0.0], np.cumsum(self.p0)]), np.concatenate([[0.0], np.cumsum(self.p1)])

    @classmethod
    def plain(cls, p0: Array, p1: Array) -> Pair:
        """The pair of the masses as they are given, not normalised."""
        return cls(p0, p1, p0 - p1)

    @classmethod
    def of(cls, p0: Array, p1: Array) -> Pair:
        """The pair of the two laws that are proportional to floats which sum to one up to rounding."""
        # p / T = p - p (T - 1) / T, with T - 1 free of rounding.
        off0, off1 = (float(1 - 1 / summed) if (summed := exact_sum(p)) else 0.0 for p in (p0, p1))
        return cls(p0, p1, (p0 - p1) - (p0 * off0 - p1 * off1))

    @cached_property
    def posterior(self) -> Array:
        """p0 / (p0 + p1), shape (k,), in [0, 1]: the likelihood ratio on a scale without infinities."""
        return self.p0 / (self.p0 + self.p1)

    def merge(self, starts: npt.NDArray[np.intp]) -> Pair:
        """The pair in which each run of inputs that begins at one of `starts` is a single input."""
        return Pair(*(np.add.reduceat(part, starts) for part in (self.p0, self.p1, self.apart)))


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced pair, and for every original input the position of its class in it."""

    pair: Pair
    classes: npt.NDArray[np.intp]


def tied(p0: Array, p1: Array, x: int, y: int) -> bool:
    """Whether p0/p1 is exactly the same at the inputs x and y."""
    a, b, c, d = (Fraction(float(one)) for one in (p0[x], p1[y], p0[y], p1[x]))
    return a * b == c * d


def _equal(a: Array, b: Array, ratio: Array) -> npt.NDArray[np.bool_]:
    """Whether each ratio a/b equals the one before it; fractions decide where floats cannot."""
    same = (a[1:] == a[:-1]) & (b[1:] == b[:-1])
    with np.errstate(invalid="ignore"):
        apart = ratio[1:] > ratio[:-1] * (1 + NEAR)
    for i in np.flatnonzero(~same & ~apart).tolist():
        same[i] = Fraction(a[i]) * Fraction(b[i + 1]) == Fraction(a[i + 1]) * Fraction(b[i])
    return np.asarray(same)


def reduce(p0: Array, p1: Array) -> Reduction:
    """Sort by likelihood ratio p0/p1 and merge inputs whose ratios are equal.

    >>> r = reduce(np.array([0.2, 0.4, 0.4, 0.0]), np.array([0.4, 0.2, 0.4, 0.0]))
    >>> r.classes, r.pair.p0
    (array([0, 2, 1, 1]), array([0.2, 0.4, 0.4]))
    """
    occurs = np.flatnonzero((p0 > 0) | (p1 > 0))
    whole = Pair.of(p0, p1)
    a, b = p0[occurs], p1[occurs]
    with np.errstate(divide="ignore", over="ignore"):
        ratio = a / b
    order = np.argsort(ratio, kind="stable")
    a, b, ratio, occurs = a[order], b[order], ratio[order], occurs[order]
    new = np.concatenate([[True], ~_equal(a, b, ratio)])
    position = np.cumsum(new) - 1
    classes = np.full(len(p0), -1, dtype=np.intp)
    classes[occurs] = position
    # An input that never occurs takes the class of the nearest earlier input that does, else of the first.
    seen = np.where(classes >= 0, np.arange(len(p0)), -1)
    last = np.maximum.accumulate(seen)
    classes = classes[np.where(last >= 0, last, int(np.argmax(classes >= 0)))]
    return Reduction(Pair(a, b, whole.apart[occurs]).merge(np.flatnonzero(new)), classes)
