"""Bounds from the bounds of other problems: fewer constraints, parts, dominating points.

`Contraction` needs no other problem: f-divergences contract by the Dobrushin coefficient of the channel.

`Dominated`: if (A0, A1) dominates (P0, P1) in Blackwell's order, some stochastic T makes P_v = A_v T. A channel Q of
the inputs then gives the channel T Q of the points: it has the same marginals, and its rows are mixtures of rows of Q,
so that it meets every constraint that holds between all pairs of rows and is jointly convex in them. The optimum for
the points is therefore not smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import ColumnConstraint, variation_cap
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import dominance, dominating
from ldpopt.design.kernel.numbers import Unproved, expect, expect_each, require
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.work import Work, size
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False, repr=False)
class Contraction(Certificate):
    """A channel keeps at most its Dobrushin coefficient times what full disclosure keeps [Dobrushin].

    This holds for every f-divergence and for mutual information. The Dobrushin coefficient is the largest total
    variation between two rows. Every constraint implies a cap on it: eta itself under `TotalVariation`,
    (e^epsilon - 1)/(e^epsilon + 1) under epsilon-LDP [GI, Prop 2], and so on.
    """

    argument = "every f-divergence contracts by the Dobrushin coefficient of the channel"
    tight = False

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The coefficient that the constraints allow, times the utility of full disclosure."""
        if not self.utility.contracts or self.utility.continuous:
            raise Unproved(f"{self.utility.name} is not known to contract")
        least = variation_cap(self.constraints, arithmetic)
        if float(least.upper) == 0:  # equal rows keep nothing, even of infinitely much
            return least
        whole: Enclosure = self.utility.enclosed_unprivate(arithmetic)
        return least * whole


def argument_of(certificate: Any) -> str:
    """Why the bound of a certificate within another one holds."""
    return certificate.argument if isinstance(certificate, Certificate) else "nothing is proved"


@dataclass(frozen=True, eq=False, repr=False)
class Relaxed(Certificate):
    """A bound from some of the constraints alone, whose optimum is at least that under all of them.

    relaxation : the certificate for the same utility under some of the same constraints.
    """

    relaxation: Certificate
    tight = False

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        return f"the optimum under some of the constraints alone: {argument_of(self.relaxation)}"

    def work(self) -> Work:
        """That of the relaxation."""
        return self.work_within(self.relaxation, constraints=getattr(self.relaxation, "constraints", ()))

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The relaxation's bound for this very utility."""
        relaxation: Certificate = expect(self.relaxation, Certificate, "the relaxation")
        kept = expect(relaxation.constraints, tuple, "the constraints of the relaxation")
        if not kept or not all(any(limit is own or limit == own for own in self.constraints) for limit in kept):
            raise Unproved("the relaxation has a constraint that the problem has not")
        return arithmetic.of(relaxation.of(self.utility, kept, self.channel, self.edges).proved(arithmetic))


@dataclass(frozen=True, eq=False, repr=False)
class PartsBound(Certificate):
    """The bounds of the parts put together: the least for the worst of several, the weighted sum for a sum.

    each : one certificate for each part, under the same constraints.
    """

    each: tuple[Certificate, ...]
    argument = "the optimum of each part alone"
    tight = False

    def work(self) -> Work:
        """That of the parts together."""
        each = self.each if isinstance(self.each, tuple) else ()
        pairs = zip(self.utility.parts(), each, strict=False)
        return sum((self.work_within(proof, part) for part, proof in pairs), Work())

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound that the utility makes of the bounds of its parts."""
        parts = self.utility.parts()
        each = expect_each(self.each, Certificate, "the certificates of the parts")
        if not parts or len(parts) != len(each):
            raise Unproved(f"{self.utility.name} has {len(parts)} parts, the certificate {len(each)}")
        bounds = [
            certificate.of(part, self.constraints, self.channel).bound_in(arithmetic)
            for part, certificate in zip(parts, each, strict=True)
        ]
        together: Enclosure = self.utility.from_parts([bound.value for bound in bounds], arithmetic)
        if not math.isfinite(together.lower if self.utility.error else together.upper):
            reasons = [f"{part.name}: {bound.why}" for part, bound in zip(parts, bounds, strict=True) if bound.why]
            raise Unproved("; ".join(reasons) or "the parts prove no finite bound")
        return together


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
        return f"points that dominate the hypotheses: {argument_of(self.of_points)}"

    def work(self) -> Work:
        """The points are shown to dominate, and that of the certificate for them."""
        shown = dominance(size(self.points) // 2, self.answers)
        try:
            utility = Divergence(self.utility.f, *np.asarray(self.points, dtype=np.float64).T)
        except (InvalidInput, TypeError, ValueError):
            return shown  # nothing else will be computed
        return shown + self.work_within(self.of_points, utility)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound for the points."""
        if self.utility.continuous:
            raise Unproved("the answers are real numbers, and points are checked against finite hypotheses only")
        inner: Certificate = expect(self.of_points, Certificate, "the certificate of the points")
        a0, a1 = dominating(self.points, *self.utility.pair)
        kept = tuple(limit for limit in self.constraints if isinstance(limit, ColumnConstraint) and limit.symmetric)
        require(kept, "no constraint holds between all pairs of inputs alike")
        utility = Divergence(self.utility.f, a0, a1)
        # `Divergence` may normalise its floats, and would then stand for laws that were not checked.
        require(np.array_equal(utility.p0, a0) and np.array_equal(utility.p1, a1), "the points are not two laws")
        return arithmetic.of(inner.of(utility, kept, inner.channel).proved(arithmetic))
