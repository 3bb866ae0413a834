"""The result of a design for estimation: a channel, its error, and the proof of how close that is to the least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design.constraints import Constraint
from ldpopt.design.criteria import DOptimal
from ldpopt.design.estimation_certificate import EquivalenceDual
from ldpopt.design.fisher import FisherInformation
from ldpopt.design.shown import html, lines, record, text
from ldpopt.privacy import Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class EstimationDesign:
    """The result of a design for estimation. Its criterion is an error: smaller is better.

    channel : the mechanism, rows in the order of the categories.
    value : the criterion of this very channel, re-measured after repair (the proven worst case, with a neighbourhood).
    lower_bound : no channel that meets the constraints is below it; -inf when no certificate was asked for.
    guarantees : the measures of this very channel, one for each constraint, each within its cap.
    certified : whether the bound is within `tolerance` of the value: relative to it, and absolute for a
        criterion that is a logarithm. `note` says why not.
    """

    utility: FisherInformation
    constraints: tuple[Constraint, ...]
    channel: Channel
    value: float
    lower_bound: float
    guarantees: tuple[Guarantee, ...]
    method: str
    certificate: EquivalenceDual | None
    certified: bool
    tolerance: float
    note: str

    @property
    def gap(self) -> float:
        """value - lower_bound, at least 0."""
        return max(0.0, self.value - self.lower_bound)

    @property
    def relative_gap(self) -> float:
        """gap / value: the share of respondents that a better channel might save at most; for a logarithm, the gap."""
        return self.gap if isinstance(self.utility.criterion, DOptimal) else self.gap / self.value

    def to_dict(self) -> dict[str, Any]:
        """Everything but the channel's matrix as JSON-ready values."""
        return record(self, "criterion", "lower_bound")

    def _lines(self) -> list[tuple[str, str]]:
        value = (self.utility.criterion.name, f"{self.value:.9g} for one respondent")
        return lines(self, value, "lower_bound", f"{self.tolerance:g}")

    def __repr__(self) -> str:
        return text("EstimationDesign", self._lines(), 26)

    def _repr_html_(self) -> str:
        return html(self, self._lines())
