"""The certificate of a problem with fewer constraints, whose optimum is not smaller."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.design.certificates.base import Certificate, Verification
from ldpopt.design.certificates.intervals import verify_measured
from ldpopt.design.constraints.base import Constraint


@dataclass(frozen=True, eq=False, repr=False)
class Relaxed(Certificate):
    """The certificate of a problem with fewer constraints, whose optimum is not smaller.

    relaxation : the certificate. constraints : all of them, re-measured by `verify`.
    """

    constraints: tuple[Constraint, ...]
    relaxation: Certificate

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        return f"the optimum without the constraints on the outputs: {self.relaxation.argument}"

    @property
    def upper_bound(self) -> float:
        """The relaxation's bound, recomputed."""
        return self.relaxation.upper_bound

    def verify(self) -> Verification:
        """Recompute the guarantees, the utility and the bound from scratch."""
        return verify_measured(self, self.constraints)
