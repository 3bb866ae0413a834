"""Utilities of the marginals alone: weighted sums of divergences between the masses of a column under a few laws.

    mu_j(s) = sum over terms of criterion j of  weight f-divergence(P_i.s, P_l.s)

With n laws P_i, the masses of a column s are P_i.s. The utility is a convex and homogeneous function of these n
numbers, however many inputs there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence


@dataclass(frozen=True, eq=False)
class Comparison:
    """One term: `weight` times the divergence `f` of law number `first` from law number `second`."""

    criterion: int
    weight: float
    f: FDivergence
    first: int
    second: int


@dataclass(frozen=True, eq=False)
class Compared:
    """A utility with that many `criteria`, which compares the marginals of `laws`: arrays (k,), no two of them alike.

    terms : the comparisons that the criteria are sums of.
    """

    laws: tuple[Array, ...]
    terms: tuple[Comparison, ...]
    criteria: int

    @classmethod
    def of(cls, given: Iterable[tuple[int, float, FDivergence, Array, Array]]) -> Compared:
        """Made of terms (criterion, weight, f, first law, second law); terms of weight zero are left out."""
        laws: dict[bytes, int] = {}
        kept: list[Array] = []
        terms: list[Comparison] = []
        criteria = 0
        for criterion, weight, f, *pair in given:
            criteria = max(criteria, criterion + 1)
            if weight == 0:
                continue
            numbers = []
            for law in pair:
                own = np.asarray(law, dtype=np.float64) + 0.0
                number = laws.setdefault(own.tobytes(), len(kept))
                if number == len(kept):
                    kept.append(own)
                numbers.append(number)
            terms.append(Comparison(criterion, weight, f, *numbers))
        return cls(tuple(kept), tuple(terms), criteria)
