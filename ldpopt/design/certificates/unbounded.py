"""The certificate that proves nothing: what a design without a bound is checked by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class Unbounded(Certificate):
    """No bound at all: the channel's guarantees and its utility are recomputed, and nothing else."""

    argument = "nothing is proved"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Infinitely far."""
        return arithmetic.of(-np.inf if self.utility.error else np.inf)
