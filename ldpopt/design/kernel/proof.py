"""Bounds from the bounds of other problems: fewer constraints, parts, dominating points.

`Contraction` needs no other problem. Divergences contract by a coefficient of the channel, and the constraints bound
the coefficient. For operator convex f this is the coefficient of chi-squared [CRS]. It is the largest value over two
rows p, q and 0 < l < 1 of l (1-l) sum (p-q)^2 / (l p + (1-l) q) [OP]. It falls under post-processing. Under epsilon-LDP
and eta-TV any two rows are a post-processing of binary randomized response, erased with probability 1 - a, where a =
eta / tanh(epsilon/2) [GI, eq. 7-8]. The coefficient of that pair is a times that of randomized response, which is
largest at l = 1/2: in all a tanh^2(epsilon/2) = eta tanh(epsilon/2).

`Dominated`: if (A0, A1) dominates (P0, P1) in Blackwell's order, some stochastic T makes P_v = A_v T. A channel Q of
the inputs then gives the channel T Q of the points. It has the same marginals, and its rows are mixtures of rows of Q.
So it meets every constraint that holds between all pairs of rows and is jointly convex in them. The optimum for the
points is therefore not smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import ColumnConstraint, plain_caps, tanh_of_half, variation_cap
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import dominance_work, require_dominance
from ldpopt.design.kernel.numbers import Unproved, expect, expect_each, require
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.work import Work, count_numbers
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False, repr=False)
class Contraction(Certificate):
    """A bound from the channel's contraction coefficient, times the utility of full disclosure [Dobrushin; OP].

    For every f-divergence this is the Dobrushin coefficient, the largest total variation between two rows. Every
    constraint implies a cap on it: eta itself under `TotalVariation`, tanh(epsilon/2) under epsilon-LDP [GI, Prop 2],
    and so on. For operator convex f and for mutual information epsilon-LDP contracts once more. The coefficient is then
    at most tanh(epsilon/2) times that cap. Sums and the worst of several utilities are bounded part by part.
    """

    argument = "divergences contract by a coefficient of the channel, which its limits bound"
    tight = False

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the allowed coefficient, times the utility of full disclosure."""
        if not self.utility.contracts or self.utility.continuous:
            raise Unproved(f"{self.utility.name} is not known to contract")
        variation = variation_cap(self.constraints, arithmetic)
        if float(variation.upper) == 0:  # Equal rows preserve nothing, even of an infinite utility.
            return variation
        epsilon, _ = plain_caps(self.constraints)
        twice_contracted = variation * tanh_of_half(arithmetic.of(epsilon)) if epsilon < math.inf else variation
        return _shared(self.utility, variation, twice_contracted, arithmetic)


def _shared(
    utility: Utility, once_contracted: Enclosure, twice_contracted: Enclosure, arithmetic: Arithmetic
) -> Enclosure:
    """Bound a utility by contraction; `twice_contracted` : the coefficient for operator convex f."""
    if parts := utility.parts():
        bounds = [float(_shared(part, once_contracted, twice_contracted, arithmetic).upper) for part in parts]
        return utility.from_parts(bounds, arithmetic)
    contracts_twice = utility.information or (isinstance(utility, Divergence) and utility.f.operator_convex)
    return (twice_contracted if contracts_twice else once_contracted) * utility.enclosed_value_without_privacy(
        arithmetic
    )


def argument_of(certificate: Any) -> str:
    """Return the reason why the bound of a certificate within another one holds."""
    return certificate.argument if isinstance(certificate, Certificate) else "nothing is proved"


@dataclass(frozen=True, eq=False, repr=False)
class Relaxed(Certificate):
    """A bound from some of the constraints alone; the optimum under these is at least as large.

    - `relaxation` : the certificate for the same utility under some of the same constraints.
    """

    relaxation: Certificate
    tight = False

    @property
    def argument(self) -> str:
        """The reason why the bound holds."""
        return f"the optimum under some of the constraints alone: {argument_of(self.relaxation)}"

    def work(self) -> Work:
        """Bound the work of the relaxation."""
        return self.work_within(self.relaxation, constraints=getattr(self.relaxation, "constraints", ()))

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the relaxation's bound for this utility."""
        relaxation: Certificate = expect(self.relaxation, Certificate, "the relaxation")
        relaxation_constraints = expect(relaxation.constraints, tuple, "the constraints of the relaxation")
        if not relaxation_constraints or not all(
            any(limit is constraint or limit == constraint for constraint in self.constraints)
            for limit in relaxation_constraints
        ):
            raise Unproved("the relaxation has a constraint that the problem has not")
        return arithmetic.of(
            relaxation.rebind(self.utility, relaxation_constraints, self.channel, self.edges).proved(arithmetic)
        )


@dataclass(frozen=True, eq=False, repr=False)
class PartsBound(Certificate):
    """The combined bounds of the parts: the smallest for the worst of several, the weighted sum for a sum.

    each : one certificate for each part, under the same constraints.
    """

    each: tuple[Certificate, ...]
    argument = "the optimum of each part alone"
    tight = False

    def work(self) -> Work:
        """Bound the total work of the parts."""
        certificates = self.each if isinstance(self.each, tuple) else ()
        pairs = zip(self.utility.parts(), certificates, strict=False)
        return sum((self.work_within(proof, part) for part, proof in pairs), Work())

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Combine the bounds of the parts."""
        parts = self.utility.parts()
        certificates = expect_each(self.each, Certificate, "the certificates of the parts")
        if not parts or len(parts) != len(certificates):
            raise Unproved(f"{self.utility.name} has {len(parts)} parts, the certificate {len(certificates)}")
        bounds = [
            certificate.rebind(part, self.constraints, self.channel).bound_in(arithmetic)
            for part, certificate in zip(parts, certificates, strict=True)
        ]
        combined_bound: Enclosure = self.utility.from_parts([bound.value for bound in bounds], arithmetic)
        if not math.isfinite(combined_bound.lower if self.utility.error else combined_bound.upper):
            reasons = [
                f"{part.name}: {bound.reason}" for part, bound in zip(parts, bounds, strict=True) if bound.reason
            ]
            raise Unproved("; ".join(reasons) or "the parts prove no finite bound")
        return combined_bound


@dataclass(frozen=True, eq=False, repr=False)
class Dominated(Certificate):
    """A bound from a pair on few points that dominates the hypotheses: it is more informative in Blackwell's order.

    points : (n, 2) masses (A0, A1).
    of_points : a certificate for the points, under some of the same constraints.
    """

    proves = Divergence
    tight = False
    points: Array
    of_points: Certificate

    @property
    def argument(self) -> str:
        """The reason why the bound holds."""
        return f"points that dominate the hypotheses: {argument_of(self.of_points)}"

    def work(self) -> Work:
        """Bound the work to prove dominance, and that of the certificate for the points."""
        dominance_check = dominance_work(count_numbers(self.points) // 2, self.answers)
        try:
            utility = Divergence(self.utility.f, *np.asarray(self.points, dtype=np.float64).T)
        except (InvalidInput, TypeError, ValueError):
            return dominance_check  # Nothing else will be computed.
        return dominance_check + self.work_within(self.of_points, utility)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the bound for the points."""
        if self.utility.continuous:
            raise Unproved("the answers are real numbers, and points are checked against finite hypotheses only")
        points_certificate: Certificate = expect(self.of_points, Certificate, "the certificate of the points")
        a0, a1 = require_dominance(self.points, *self.utility.pair)
        symmetric_constraints = tuple(
            limit for limit in self.constraints if isinstance(limit, ColumnConstraint) and limit.symmetric
        )
        require(symmetric_constraints, "no constraint holds between all pairs of inputs alike")
        utility = Divergence(self.utility.f, a0, a1)
        # `Divergence` may normalize its floats, and would then represent distributions that were not checked.
        require(np.array_equal(utility.p0, a0) and np.array_equal(utility.p1, a1), "the points are not two laws")
        return arithmetic.of(
            points_certificate.rebind(utility, symmetric_constraints, points_certificate.channel).proved(arithmetic)
        )
