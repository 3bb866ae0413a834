"""A least favourable pair with the certificate of its own optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.least_pair import LowerLine
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class SaddlePoint(Certificate):
    """A least favourable pair with the certificate of its own optimum, and a support of the channel's worst case.

    p0, p1 : the pair, in the two sets (up to 1e-12 of rounding). pair : the `Certificate` that bounds the divergence of
    this pair for every channel, so that of the sets too. support : the linear function that proves the value.
    """

    p0: Array
    p1: Array
    pair: Certificate
    support: LowerLine

    argument = "the optimum for one pair of the sets, which is least favourable"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound of the pair; inf if it is not one of the sets, or the bound is another pair's."""
        return arithmetic.of(self._bound())

    def _bound(self) -> float:
        """The bound in floats."""
        inside = all(s.contains(p) for s, p in zip(self.utility.sets, (self.p0, self.p1), strict=True))
        posed = Divergence(self.utility.f, self.p0, self.p1, self.utility.inputs)
        return self.pair.of(posed, self.constraints, self.channel).bound if inside else math.inf

    def enclosed_value(self, arithmetic: Arithmetic) -> Enclosure:
        """The least of a linear function below the divergence, over both sets."""
        return arithmetic.of(self.support.bound(self.utility.f, self.utility.sets, self.channel.matrix))
