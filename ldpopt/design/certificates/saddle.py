"""A least favourable pair with the certificate of its own optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Verification
from ldpopt.design.constraints import Constraint
from ldpopt.design.utilities.least_pair import LowerLine
from ldpopt.distribution import Array
from ldpopt.privacy import local_dp, total_variation
from ldpopt.tolerances import VERIFY


@dataclass(frozen=True, eq=False, repr=False)
class SaddlePoint(Certificate):
    """A least favourable pair with the certificate of its own optimum, and a support of the channel's worst case.

    p0, p1 : the pair, in the two sets (up to 1e-12 of rounding). pair : the `Certificate` that bounds the divergence of
    this pair for every channel, so that of the sets too. support : the linear function that proves the value.
    """

    constraints: tuple[Constraint, ...]
    p0: Array
    p1: Array
    pair: Certificate
    support: LowerLine

    argument = "the optimum for one pair of the sets, which is least favourable"

    @property
    def upper_bound(self) -> float:
        """The bound of the pair; inf if it is not one of the sets, or the bound is another pair's."""
        stated = self.pair.utility
        same = np.array_equal(stated.p0, self.p0) and np.array_equal(stated.p1, self.p1) and stated.f is self.utility.f
        inside = all(s.contains(p) for s, p in zip(self.utility.sets, (self.p0, self.p1), strict=True))
        capped = (self.pair.epsilon, self.pair.eta) == (self.epsilon, self.eta)
        limited = getattr(self.pair, "constraints", self.constraints) == self.constraints
        return self.pair.upper_bound if same and inside and capped and limited else math.inf

    def verify(self) -> Verification:
        """Recompute the guarantees, the channel's worst case by its support, and the bound from scratch."""
        measured = tuple(constraint.measure(self.channel) for constraint in self.constraints)
        value, bound = self.support.bound(self.utility.f, self.utility.sets, self.channel.matrix), self.upper_bound
        failures = [
            f"{guarantee.notion} is {guarantee.value!r}, not {constraint.bound!r}"
            for guarantee, constraint in zip(measured, self.constraints, strict=True)
            if not guarantee.value <= constraint.bound
        ]
        if not value <= bound * (1 + VERIFY) + 1e-15:
            failures.append(f"the value {value!r} is above the bound {bound!r}")
        epsilon, eta = float(local_dp(self.channel)), float(total_variation(self.channel))
        return Verification(value, bound, epsilon, eta, tuple(failures), measured)
