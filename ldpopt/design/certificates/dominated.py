"""The bound of a smaller pair of hypotheses that dominates the given pair, under constraints that treat inputs alike.

If (A0, A1) dominates (P0, P1) in Blackwell's order, some stochastic T makes P_v = A_v T. A channel Q of the inputs then
gives the channel T Q of the points: it has the same marginals, and its rows are mixtures of rows of Q, so that it meets
every constraint that holds between all pairs of rows and is jointly convex in them. The optimum for the points is
therefore not smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.hypotheses import dominates
from ldpopt.design.certificates.numbers import expect, nonnegative_array
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class Dominated(Certificate):
    """A bound from a pair on few points that dominates the hypotheses: it is more informative in Blackwell's order.

    points : (n, 2) masses (A0, A1). of_points : a certificate for them, under some of the same constraints.
    """

    proves = Divergence
    tight = False

    points: Array
    of_points: Certificate

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        how = self.of_points.argument if isinstance(self.of_points, Certificate) else "nothing is proved"
        return f"points that dominate the hypotheses: {how}"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound for the points."""
        if self.utility.continuous:
            raise Unproved("the answers are real numbers, and points are checked against finite hypotheses only")
        inner: Certificate = expect(self.of_points, Certificate, "the certificate of the points")
        a0, a1 = nonnegative_array(self.points, (-1, 2), "points").T
        p0, p1 = self.utility.pair
        if not (a0.sum() > 0 and a1.sum() > 0) or not dominates(a0, a1, np.asarray(p0), np.asarray(p1)):
            raise Unproved("the points do not dominate the hypotheses")
        kept = tuple(one for one in self.constraints if isinstance(one, ColumnConstraint) and one.symmetric)
        if not kept:
            raise Unproved("no constraint holds between all pairs of inputs alike")
        utility = Divergence(self.utility.f, a0, a1)
        # `Divergence` may normalise its floats, and would then stand for laws that were not checked.
        if not (np.array_equal(utility.p0, a0) and np.array_equal(utility.p1, a1)):
            raise Unproved("the points are not two laws")
        return arithmetic.of(inner.of(utility, kept, inner.channel).proved(arithmetic))
