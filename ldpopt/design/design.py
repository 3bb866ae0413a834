"""The design: a channel, what it keeps, what it guarantees, and the proof of how close it is to the best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design.certificate import Certificate, Verification
from ldpopt.design.constraints import Constraint
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput
from ldpopt.privacy import Guarantee
from ldpopt.tolerances import VERIFY


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
        return {
            "utility": self.utility.name,
            "value": self.value,
            "upper_bound": self.upper_bound if self.certificate else None,
            "relative_gap": self.relative_gap if self.certificate else None,
            "certified": self.certified,
            "method": self.method,
            "certificate": self.certificate.argument if self.certificate else None,
            "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
            "note": self.note,
            "inputs": self.channel.shape[0],
            "outputs": self.channel.shape[1],
        }

    def _lines(self) -> list[tuple[str, str]]:
        bound = (
            f"{self.upper_bound:.9g} (relative gap {self.relative_gap:.2g})" if self.certificate else "not asked for"
        )
        lines = [
            (self.utility.name, f"{self.value:.9g}"),
            ("upper bound", bound),
            ("certified", f"{'yes' if self.certified else 'no'}, to {self.tolerance:g} relative"),
            *((g.notion.replace("_", " "), str(g)) for g in self.guarantees),
            ("channel", f"{self.channel.shape[0]} inputs -> {self.channel.shape[1]} outputs"),
            ("method", self.method),
        ]
        return [*lines, ("note", self.note)] if self.note else lines

    def __repr__(self) -> str:
        return "Design\n" + "\n".join(f"  {name:<22} {text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._lines())
        return f"<table>{rows}</table>{self.channel._repr_html_()}"
