"""The certificate of a problem with fewer constraints, whose optimum is not smaller."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import expect
from ldpopt.enclosures import Arithmetic, Enclosure


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
        relaxation = self.relaxation
        how = relaxation.argument if isinstance(relaxation, Certificate) else "nothing is proved"
        return f"the optimum under some of the constraints alone: {how}"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The relaxation's bound for this very utility."""
        relaxation: Certificate = expect(self.relaxation, Certificate, "the relaxation")
        kept = expect(relaxation.constraints, tuple, "the constraints of the relaxation")
        if not kept or not all(any(one is own or one == own for own in self.constraints) for one in kept):
            raise Unproved("the relaxation has a constraint that the problem has not")
        return arithmetic.of(relaxation.of(self.utility, kept, self.channel, self.edges).proved(arithmetic))
