"""Two hypotheses as exact laws.

Floats that sum to one only up to rounding stand for the law that is proportional to them. Differences of the two laws
are computed without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.distribution import Array, Index
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.rounding import exact_sum


@dataclass(frozen=True, eq=False)
class Laws:
    """Two laws on k inputs, enclosed: `p0`, `p1` and `apart` = p0 - p1, shape (k,) each."""

    p0: Enclosure
    p1: Enclosure
    apart: Enclosure

    @classmethod
    def of(cls, p0: Array, p1: Array, arithmetic: Arithmetic) -> Laws:
        """The laws proportional to two arrays of floats."""
        first, second = arithmetic.of(p0), arithmetic.of(p1)
        # p / T = p - p (T - 1)/T, with T - 1 exact: a difference of 1e-9 keeps its digits.
        off = [arithmetic.of(1 - 1 / exact_sum(p)) for p in (p0, p1)]
        law0, law1 = first - first * off[0], second - second * off[1]
        return cls(law0, law1, first - second - (first * off[0] - second * off[1]))

    def take(self, order: Index) -> Laws:
        """The masses of the inputs in `order`, in this order."""
        return Laws(self.p0[order], self.p1[order], self.apart[order])


def law(p: Array, arithmetic: Arithmetic) -> Enclosure:
    """The law proportional to an array (k,) of floats, enclosed."""
    return arithmetic.of(p) * arithmetic.of(1 / exact_sum(p))
