"""A bound on a utility that is made of others, from a bound on each of them alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import expect_each
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class PartsBound(Certificate):
    """The bounds of the parts put together: the least for the worst of several, the weighted sum for a sum.

    each : one certificate for each part, under the same constraints.
    """

    each: tuple[Certificate, ...]

    argument = "the optimum of each part alone"
    tight = False

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
