"""The design: a channel, what it keeps, what it guarantees, and the proof of how close it is to the best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design.certificates.base import Certificate, Verification
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.constraints import Constraint
from ldpopt.design.utilities.criteria import DOptimal
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput
from ldpopt.privacy import Guarantee
from ldpopt.tolerances import VERIFY


def record(design: Design | EstimationDesign, kind: str, bound: str) -> dict[str, Any]:
    """Everything but the channel's matrix as JSON-ready values; `kind` names the utility, `bound` the bound."""
    proved = design.certificate is not None
    return {
        kind: design.utility.name,
        "value": design.value,
        bound: getattr(design, bound) if proved else None,
        "relative_gap": design.relative_gap if proved else None,
        "certified": design.certified,
        "method": design.method,
        "certificate": design.certificate.argument if design.certificate else None,
        "guarantees": [guarantee.to_dict() for guarantee in design.guarantees],
        "note": design.note,
        "inputs": design.channel.shape[0],
        "outputs": design.channel.shape[1],
    }


def lines(
    design: Design | EstimationDesign, value: tuple[str, str], bound: str, tolerance: str
) -> list[tuple[str, str]]:
    """What a reader should know of the design, a name and a text each; `bound` is the name of its field."""
    gap = f"{getattr(design, bound):.9g} (relative gap {design.relative_gap:.2g})"
    told = [
        value,
        (bound.replace("_", " "), gap if design.certificate else "not asked for"),
        ("certified", f"{'yes' if design.certified else 'no'}, to {tolerance}"),
        *((g.notion.replace("_", " "), str(g)) for g in design.guarantees),
        ("channel", f"{design.channel.shape[0]} inputs -> {design.channel.shape[1]} outputs"),
        ("method", design.method),
    ]
    return [*told, ("note", design.note)] if design.note else told


def text(head: str, told: list[tuple[str, str]], width: int) -> str:
    """The lines below a heading, names padded to `width`."""
    return f"{head}\n" + "\n".join(f"  {name:<{width}} {said}" for name, said in told)


def html(design: Design | EstimationDesign, told: list[tuple[str, str]]) -> str:
    """The lines as a table, and the channel's own picture below."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(said)}</td></tr>" for name, said in told)
    return f"<table>{rows}</table>{design.channel._repr_html_()}"


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


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """The result of `optimal_channel`.

    channel : the mechanism, rows in the order of the caller's inputs (of intervals, for continuous hypotheses).
    value : the utility of this very channel, re-measured after repair.
    upper_bound : no channel that meets the constraints exceeds it; inf when no certificate was asked for.
    guarantees : the measures of this very channel, one for each constraint, each within its cap.
    method : how the channel was found, and why so.
    certificate : what proves `upper_bound`; `certificate.verify()` recomputes it from scratch.
    certified : whether the bound is within `tolerance` (relative) of the value; `note` says why not, and whatever
        else a reader should know, such as a cap that does not bind.
    edges : for continuous hypotheses, the interior cut points; ``channel.inputs[np.digitize(x, edges, right=True)]``
        is the interval of x.
    """

    utility: Any
    constraints: tuple[Constraint, ...]
    channel: Channel
    value: float
    upper_bound: float
    guarantees: tuple[Guarantee, ...]
    method: str
    certificate: Certificate | None
    certified: bool
    tolerance: float
    note: str
    edges: Array | None = None

    @property
    def gap(self) -> float:
        """upper_bound - value, at least 0."""
        return max(0.0, self.upper_bound - self.value)

    @property
    def relative_gap(self) -> float:
        """gap / upper_bound; 0 when the bound is 0."""
        if self.gap == 0:
            return 0.0
        return self.gap / abs(self.upper_bound) if self.upper_bound < float("inf") else float("inf")

    def verify(self) -> Verification:
        """Recompute all that the design claims, without any solver; false where a claim does not hold.

        Beyond `certificate.verify()`: the value and the bound are as good as stated, so that multipliers that prove
        less than the design says do not pass. `InvalidInput` for a design without a certificate.

        >>> from ldpopt import LocalDP, optimal_channel
        >>> from ldpopt.design import Divergence
        >>> from ldpopt.divergences import KL
        >>> bool(optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)).verify())
        True
        """
        if self.certificate is None:
            raise InvalidInput(
                "design: expected one with a certificate, got one made with certify=False, or a relaxation"
            )
        found = self.certificate.verify()
        failures = list(found.failures)
        slack = VERIFY * abs(self.upper_bound) + 1e-15
        if not found.upper_bound <= self.upper_bound + slack:
            failures.append(f"the bound proved is {found.upper_bound!r}, not {self.upper_bound!r}")
        if not found.value >= self.value - slack:
            failures.append(f"the value is {found.value!r}, not {self.value!r}")
        return replace(found, failures=tuple(failures))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the channel's matrix as JSON-ready values."""
        return record(self, "utility", "upper_bound")

    def _lines(self) -> list[tuple[str, str]]:
        value = (self.utility.name, f"{self.value:.9g}")
        return lines(self, value, "upper_bound", f"{self.tolerance:g} relative")

    def __repr__(self) -> str:
        return text("Design", self._lines(), 22)

    def _repr_html_(self) -> str:
        return html(self, self._lines())
