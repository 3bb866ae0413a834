"""The proof for sets of hypotheses: one pair of their members bounds the utility of a channel for the worst pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import variation_cap
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.numbers import Unproved, expect, nonnegative_array, require
from ldpopt.design.utilities.against_set import AgainstSet, LowerLine
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import law
from ldpopt.design.work import Work, count_numbers
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array

ROUNDING_PER_NUMBER = 2.0**-46
"""The distance of a float64 distribution from the member of a set that it represents, per number in its proof."""


@dataclass(frozen=True, eq=False, repr=False)
class SaddlePoint(Certificate):
    """A least favourable pair of the two sets, with the certificate of its own optimum and a proof of the value.

    No channel has a larger divergence for the worst pair of the sets than for any one pair, so that a bound for one
    pair is enough.

    - `p0`, `p1` : the pair, (k,) each.
    - `mixtures` : for each of the two sets, the proof that it has a member near that distribution
      (`HypothesisSet.member_near`).
    - `pair` : the certificate that bounds the divergence of this pair for every channel.
    - `support` : the linear function below the divergence that proves the value.

    The exact members m0, m1 may differ from the distributions p0, p1 by rounding. Then m = (1 - s) p + s r for
    distributions r and a small weight s. The divergence is jointly convex in the pair. So the members' is at most 1 - s
    times that of p0, p1 plus s times that of r0, r1, which contracts under the channel.
    """

    proves = AgainstSet
    p0: Array
    p1: Array
    mixtures: tuple[Array | None, Array | None]
    pair: Certificate
    support: LowerLine
    argument = "the optimum for one pair of the sets, which is least favourable"

    def work(self) -> Work:
        """Bound the work of the certificate for the pair, and of products with the sets' members."""
        membership_check = Work.on(count_numbers(self) + self.answers, 500.0)
        if not isinstance(self.utility, AgainstSet):
            return membership_check
        try:
            pair_utility = unnormalized_divergence(self.utility.f, self.p0, self.p1, self.utility.inputs)
        except Unproved:
            return membership_check
        return membership_check + self.work_within(self.pair, pair_utility)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the bound for the pair, plus the effect of the pair's rounding."""
        utility = self.utility
        pair: Certificate = expect(self.pair, Certificate, "the certificate of the pair")
        pair_utility = unnormalized_divergence(utility.f, self.p0, self.p1, utility.inputs)
        bound = pair.rebind(pair_utility, self.constraints, self.channel).checked_bound(arithmetic)
        mixtures: tuple[Any, ...] = expect(self.mixtures, tuple, "what shows that the pair is of the sets")
        require(len(mixtures) == 2, "the certificate does not say which members of the two sets the pair is")
        laws = [law(p, arithmetic) for p in (pair_utility.p0, pair_utility.p1)]
        members = [
            convex_set.member_near(p, mixture, arithmetic)
            for convex_set, p, mixture in zip(utility.sets, (pair_utility.p0, pair_utility.p1), mixtures, strict=True)
        ]
        if all(member is None for member in members):
            return bound
        rounding = ROUNDING_PER_NUMBER * (8 + sum(np.size(np.asarray(mixture)) for mixture in mixtures))
        rests = [
            distribution * rounding if member is None else member - distribution * (1 - rounding)
            for distribution, member in zip(laws, members, strict=True)
        ]
        if not all((np.asarray(rest.lower) >= 0).all() for rest in rests):
            raise Unproved("the pair is not that of the members of the sets")
        rounding_divergence = enclosed_excess(utility.f, rests[0] - rests[1], rests[1], rests[0]).sum()
        total: Enclosure = bound * (1 - rounding) + variation_cap(self.constraints, arithmetic) * rounding_divergence
        return total

    def enclosed_value(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the minimum of a linear function below the divergence, over both sets."""
        utility: AgainstSet = expect(self.utility, AgainstSet, "the utility")
        support: LowerLine = expect(self.support, LowerLine, "the linear function below the divergence")
        return support.enclosed_bound(utility.f, utility.sets, self.check_claim(), arithmetic)


def unnormalized_divergence(f: FDivergence, p0: Array, p1: Array, inputs: tuple[object, ...] | None) -> Divergence:
    """Build the divergence of two hypotheses without normalizing their floats again."""
    try:
        utility = Divergence(f, p0, p1, inputs)
    except InvalidInput as error:
        raise Unproved(str(error)) from None
    for name, p in (("p0", p0), ("p1", p1)):
        object.__setattr__(utility, name, nonnegative_array(p, (utility.size,), name))
    return utility
