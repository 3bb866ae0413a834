"""Every f-divergence contracts by the Dobrushin coefficient of the channel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldpopt.design.certificates.base import Certificate


@dataclass(frozen=True, eq=False, repr=False)
class Contraction(Certificate):
    """D_f(M0 || M1) <= eta D_f(P0 || P1): every f-divergence contracts by the Dobrushin coefficient [Dobrushin]."""

    argument = "every f-divergence contracts by the Dobrushin coefficient of the channel"

    @property
    def upper_bound(self) -> float:
        """eta D_f(P0 || P1), with eta capped by (e^epsilon - 1)/(e^epsilon + 1) [GI, Prop 2]."""
        eta = min(self.eta, math.tanh(self.epsilon / 2))
        return eta * self.utility.unprivate if eta else 0.0
