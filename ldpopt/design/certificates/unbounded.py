"""The certificate that proves no bound, with which a design without a bound is checked."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class Unbounded(Certificate):
    """No bound at all: the channel's guarantees and its utility are recomputed, and nothing else."""

    argument = "nothing is proved"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Raises `Unproved`, as there is no bound."""
        raise Unproved(
            "there is no certificate, so that nothing about the optimum is proved; what is said of the channel itself "
            "is recomputed, and holds unless another failure names it"
        )
