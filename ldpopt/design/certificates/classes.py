"""Classes of inputs with equal likelihood ratios, which a certificate takes as one input."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.numbers import positions
from ldpopt.design.constraints.scatter import scatter
from ldpopt.design.utilities.laws import Laws
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import Arithmetic


@dataclass(frozen=True, eq=False)
class Classes:
    """A partition of the inputs into classes of equal likelihood ratio; inputs that never occur may be in any class.

    Both hypotheses give the inputs of a class the same shares. The average of a channel over a class, by these shares,
    has the same marginals, and is as private under every constraint that treats all inputs alike. So merging the inputs
    of a class keeps the optimum under such constraints. number : (k,) the class of every input, 0..count-1.
    """

    number: Index
    count: int

    @classmethod
    def checked(cls, given: Any, p0: Array, p1: Array) -> Classes:
        """The classes. Raises `Unproved` unless the ratios in each are equal, which exact products decide."""
        number = positions(given, len(p0), len(p0), "the classes of the inputs")
        count = int(number.max()) + 1
        if not np.array_equal(np.unique(number), np.arange(count)):
            raise Unproved("the classes are not numbered 0, 1, 2, ...")
        used = np.flatnonzero((p0 > 0) | (p1 > 0))
        first = np.full(count, -1, dtype=np.intp)
        first[number[used][::-1]] = used[::-1]
        for x, y in zip(used.tolist(), first[number[used]].tolist(), strict=True):
            if x != y and Fraction(float(p0[x])) * Fraction(float(p1[y])) != (
                Fraction(float(p0[y])) * Fraction(float(p1[x]))
            ):
                raise Unproved("inputs of one class differ in their likelihood ratio")
        return cls(number, count)

    @property
    def trivial(self) -> bool:
        """Whether each input is its own class, in order."""
        return np.array_equal(self.number, np.arange(len(self.number)))

    def laws(self, p0: Array, p1: Array, arithmetic: Arithmetic) -> Laws:
        """The hypotheses on the classes."""
        laws = Laws.of(p0, p1, arithmetic)
        if self.trivial:
            return laws
        return Laws(*(scatter(part, self.number, self.count) for part in (laws.p0, laws.p1, laws.apart)))
