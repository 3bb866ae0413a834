"""The proof for sets of hypotheses: one pair of their members bounds what a channel keeps for the worst pair."""

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

SHARE = 2.0**-46
"""How far a float64 law may be from the member of a set that it stands for, per number that goes into it."""


@dataclass(frozen=True, eq=False, repr=False)
class SaddlePoint(Certificate):
    """A least favourable pair of the two sets, with the certificate of its own optimum and a proof of the value.

    No channel keeps more for the worst pair of the sets than for any one pair, so that a bound for one pair is enough.

    p0, p1 : the pair, (k,) each. mixtures : for each of the two sets, the proof that it has a member near that law
    (`HypothesisSet.member_near`). pair : the certificate that bounds the divergence of this pair for every channel.
    support : the linear function below the divergence that proves the value.

    The exact members m0, m1 may differ from the laws p0, p1 by rounding. Then m = (1 - s) p + s r for laws r and a
    small share s. The divergence is jointly convex in the pair, so that the members' is at most 1 - s times that of p0,
    p1 plus s times that of r0, r1, which contracts under the channel.
    """

    proves = AgainstSet
    p0: Array
    p1: Array
    mixtures: tuple[Array | None, Array | None]
    pair: Certificate
    support: LowerLine
    argument = "the optimum for one pair of the sets, which is least favourable"

    def work(self) -> Work:
        """That of the certificate for the pair, and products with the members of the sets."""
        shown = Work.on(count_numbers(self) + self.answers, 500.0)
        if not isinstance(self.utility, AgainstSet):
            return shown
        try:
            posed = as_given(self.utility.f, self.p0, self.p1, self.utility.inputs)
        except Unproved:
            return shown
        return shown + self.work_within(self.pair, posed)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound for the pair, and what the pair's rounding may add."""
        utility = self.utility
        pair: Certificate = expect(self.pair, Certificate, "the certificate of the pair")
        posed = as_given(utility.f, self.p0, self.p1, utility.inputs)
        bound = pair.of(posed, self.constraints, self.channel).checked_bound(arithmetic)
        mixtures: tuple[Any, ...] = expect(self.mixtures, tuple, "what shows that the pair is of the sets")
        require(len(mixtures) == 2, "the certificate does not say which members of the two sets the pair is")
        laws = [law(p, arithmetic) for p in (posed.p0, posed.p1)]
        members = [
            convex_set.member_near(p, mixture, arithmetic)
            for convex_set, p, mixture in zip(utility.sets, (posed.p0, posed.p1), mixtures, strict=True)
        ]
        if all(member is None for member in members):
            return bound
        share = SHARE * (8 + sum(np.size(np.asarray(mixture)) for mixture in mixtures))
        rests = [
            own * share if member is None else member - own * (1 - share)
            for own, member in zip(laws, members, strict=True)
        ]
        if not all((np.asarray(rest.lower) >= 0).all() for rest in rests):
            raise Unproved("the pair is not that of the members of the sets")
        hidden = enclosed_excess(utility.f, rests[0] - rests[1], rests[1], rests[0]).sum()
        whole: Enclosure = bound * (1 - share) + variation_cap(self.constraints, arithmetic) * hidden
        return whole

    def enclosed_value(self, arithmetic: Arithmetic) -> Enclosure:
        """The least of a linear function below the divergence, over both sets."""
        utility: AgainstSet = expect(self.utility, AgainstSet, "the utility")
        support: LowerLine = expect(self.support, LowerLine, "the linear function below the divergence")
        return support.enclosed_bound(utility.f, utility.sets, self.check_claim(), arithmetic)


def as_given(f: FDivergence, p0: Array, p1: Array, inputs: tuple[object, ...] | None) -> Divergence:
    """The divergence of two hypotheses whose floats are kept as they are, not divided by their sum once more."""
    try:
        utility = Divergence(f, p0, p1, inputs)
    except InvalidInput as error:
        raise Unproved(str(error)) from None
    for name, p in (("p0", p0), ("p1", p1)):
        object.__setattr__(utility, name, nonnegative_array(p, (utility.size,), name))
    return utility
