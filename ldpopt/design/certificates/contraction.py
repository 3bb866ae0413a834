"""The bound that needs no multipliers: f-divergences contract by the Dobrushin coefficient of the channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.constraints.base import variation_of
from ldpopt.enclosures import Arithmetic, Enclosure


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
        caps = [variation_of(constraint, arithmetic) for constraint in self.constraints]
        least = reduce(lambda a, b: a.minimum(b), caps, arithmetic.of(1.0))
        if float(least.upper) == 0:  # equal rows keep nothing, even of infinitely much
            return least
        whole: Enclosure = self.utility.enclosed_unprivate(arithmetic)
        return least * whole
