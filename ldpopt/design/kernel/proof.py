"""Bounds from the bounds of other problems: fewer constraints, parts, dominating points.

`Contraction` needs no other problem: divergences contract by a coefficient of the channel, which its limits bound.
For operator convex f this is the coefficient of chi-squared [CRS], the largest over two rows p, q and 0 < l < 1 of
l (1-l) sum (p-q)^2 / (l p + (1-l) q) [OP]. It falls under post-processing. Under epsilon-LDP and eta-TV any two rows
are a post-processing of binary randomized response, erased with probability 1 - a, a = eta / tanh(epsilon/2) [GI, eq.
7-8]. The coefficient of that pair is a times that of randomized response, which is largest at l = 1/2: in all
a tanh^2(epsilon/2) = eta tanh(epsilon/2).

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

from ldpopt.design.constraints.base import ColumnConstraint, plain_caps, tanh_of_half, variation_cap
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import dominance, dominating
from ldpopt.design.kernel.numbers import Unproved, expect, expect_each, require
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.work import Work, count_numbers
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False, repr=False)
class Contraction(Certificate):
    """A channel keeps at most a share of what full disclosure keeps: its contraction coefficient [Dobrushin; OP].

    For every f-divergence this is the Dobrushin coefficient, the largest total variation between two rows. Every
    constraint implies a cap on it: eta itself under `TotalVariation`, tanh(epsilon/2) under epsilon-LDP [GI, Prop 2],
    and so on. For operator convex f and for mutual information epsilon-LDP contracts once more: the share is at most
    tanh(epsilon/2) times that cap. Sums and the worst of several utilities are bounded part by part.
    """

    argument = "divergences contract by a coefficient of the channel, which its limits bound"
    tight = False

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The coefficient that the constraints allow, times the utility of full disclosure."""
        if not self.utility.contracts or self.utility.continuous:
            raise Unproved(f"{self.utility.name} is not known to contract")
        variation = variation_cap(self.constraints, arithmetic)
        if float(variation.upper) == 0:  # equal rows keep nothing, even of infinitely much
            return variation
        epsilon, _ = plain_caps(self.constraints)
        squared = variation * tanh_of_half(arithmetic.of(epsilon)) if epsilon < math.inf else variation
        return _shared(self.utility, variation, squared, arithmetic)


def _shared(utility: Utility, variation: Enclosure, squared: Enclosure, arithmetic: Arithmetic) -> Enclosure:
    """What is left of the utility of full disclosure; `squared` : the coefficient for operator convex f."""
    if parts := utility.parts():
        bounds = [float(_shared(part, variation, squared, arithmetic).upper) for part in parts]
        return utility.from_parts(bounds, arithmetic)
    smooth = utility.information or (isinstance(utility, Divergence) and utility.f.operator_convex)
    return (squared if smooth else variation) * utility.enclosed_value_without_privacy(arithmetic)


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
        shown = dominance(count_numbers(self.points) // 2, self.answers)
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
