"""The design: a channel, its utility, what it guarantees, and the proof of how close it is to the best.

Whether a gap between value and bound counts as certified is decided here and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.base import Constraint
from ldpopt.design.kernel.certificate import Certificate, Unbounded, Verification, believed, taken_on_trust
from ldpopt.design.kernel.numbers import Unproved, expect, expect_each, require
from ldpopt.files.atomic import write_text
from ldpopt.numbers.rounding import ceil_digits, floor_digits
from ldpopt.numbers.tolerances import COARSE_GAP
from ldpopt.privacy import Guarantee
from ldpopt.values.distribution import Array
from ldpopt.values.results import Pictured

if TYPE_CHECKING:
    from os import PathLike


CHECKED = frozenset({
    "utility", "constraints", "channel", "value", "lower_bound", "upper_bound", "guarantees", "certificate",
    "certified", "tolerance", "edges",
})  # fmt: skip
"""The parts of a design that `Design.verify` recomputes or computes with."""


def claims_beside_the_value(stated: Guarantee, measured: Guarantee) -> list[str]:
    """The fields of a guarantee, other than its value, that claim more than was measured."""
    holds = {
        "lower": stated.lower <= measured.lower,
        "witness": stated.witness in (None, measured.witness),
        "exact": measured.exact or not stated.exact,
        "reference": stated.reference in ("", measured.reference),
    }
    return [name for name, one in holds.items() if not one]


def gap_between(value: float, bound: float) -> float:
    """|bound - value|; inf where one of them is not finite."""
    return abs(bound - value) if math.isfinite(bound) and math.isfinite(value) else math.inf


def relative_gap(value: float, bound: float, logarithmic: bool = False) -> float:
    """The gap over |value|; 0 where value and bound agree, and inf where only the value is 0. logarithmic : the utility
    is a logarithm, of which the gap itself is the relative gap.
    """
    gap = gap_between(value, bound)
    if logarithmic or gap in (0.0, math.inf):
        return gap
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.divide(gap, abs(value))) if value else math.inf


def is_certified(value: float, bound: float, tolerance: float, error: bool, logarithmic: bool) -> bool:
    """Return True if a proved bound is finite, on its side of the value, and within the relative tolerance of it.

    error : less is better, so that the bound belongs below the value, not above it. logarithmic : the utility is a
    logarithm, of which the gap itself is the relative gap.

    >>> is_certified(1.0, 1.0 + 1e-9, 1e-6, error=False, logarithmic=False)
    True
    >>> is_certified(1.0, 1.0 - 1e-9, 1e-6, error=False, logarithmic=False)
    False
    """
    if not (math.isfinite(value) and math.isfinite(bound)):
        return False
    if not (bound <= value if error else value <= bound):
        return False
    return relative_gap(value, bound, logarithmic) <= tolerance


@dataclass(frozen=True, eq=False, repr=False)
class Design(Pictured):
    """A channel with what it keeps and guarantees, and a proof of how close it is to the best.

    utility, constraints : the problem.
    channel : the mechanism. Its rows are in the order of the inputs, or of the intervals of continuous hypotheses.
    value : the utility of this very channel, or its error, measured after all repairs and rounded to the worse side.
    lower_bound, upper_bound : the optimum over all channels within the constraints lies between them. One of them is
        the value itself; the other is proved by the certificate, and infinite where nothing is proved. Where more is
        better, no channel exceeds `upper_bound`; where less is better, no channel is below `lower_bound`.
    guarantees : what was measured of this very channel, one measure for each constraint, each within its cap.
    method : how the channel was found, in words.
    certificate : what proves the bound; `certificate.verify()` recomputes it from scratch.
    certified : whether the proved bound is finite and within `tolerance` of the value, relative to it. `note` says why
        not, and whatever else a reader should know, such as a cap that does not bind.
    edges : for continuous hypotheses, the interior cut points; ``channel.inputs[np.digitize(x, edges, right=True)]``
        is the interval of x.
    reference : the keys of the papers of the method that found it, for `cite`.
    """

    utility: Any
    constraints: tuple[Constraint, ...]
    channel: Channel
    value: float
    lower_bound: float
    upper_bound: float
    guarantees: tuple[Guarantee, ...]
    method: str
    certificate: Certificate | None
    certified: bool
    tolerance: float
    note: str
    edges: Array | None = None
    reference: str = ""
    _picture = "channel"

    @property
    def bound(self) -> float:
        """The proved one of the two bounds: upper where more is better, lower where less is."""
        return self.lower_bound if self.utility.error else self.upper_bound

    @property
    def gap(self) -> float:
        """The distance from the value to the proved bound, at least 0; inf where nothing is proved."""
        return gap_between(self.value, self.bound)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the value; for a utility that is a logarithm, the gap itself."""
        return relative_gap(self.value, self.bound, self.utility.logarithmic)

    def verify(self, exact: bool = False, budget: float = 1.0) -> Verification:
        """Recompute all that the design claims, without any solver. The result's `outcome` says whether it is proved.

        The numbers of the certificate are checked as a proof about the design's own utility, constraints and channel,
        whatever the certificate says it was for. Then the value, both bounds, the guarantees and `certified` must be as
        stated. exact : compute in ball arithmetic of 256 bits, not in outward rounded float64 (`Certificate.verify`).
        budget : a check that takes more than this many times ten seconds or 2 GB is not begun. `InvalidInput` unless it
        is positive.

        The outcome is "refuted" where a claim does not hold. `failures` names each such claim, and a value or a
        guarantee that they do not name holds. A design with a part of the wrong kind, such as text for a number, is
        refuted, too. The outcome is "not checked" where no claim was found false, and one was not checked: the budget
        does not allow it, this arithmetic cannot compute it, or there is no certificate, so that nothing about the
        optimum is proved.

        >>> from ldpopt import LocalDP, optimal_channel
        >>> from ldpopt.design import Divergence
        >>> from ldpopt.divergences import KL
        >>> bool(optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)).verify())
        True
        """
        problem = (self.utility, self.constraints, self.channel)
        try:
            given = Unbounded(*problem) if self.certificate is None else self.certificate
            checked: Certificate = expect(given, Certificate, "the certificate")
            proof = checked.of(*problem, self.edges)
            proof.check_claim()
            self._stated()
        except Unproved as error:
            return Verification(math.nan, math.nan, math.nan, math.nan, (str(error),))
        verified = proof.verify(exact, budget)
        return replace(verified, failures=(*verified.failures, *self._broken(verified)))

    @property
    def unchecked_parts(self) -> tuple[str, ...]:
        """The names of the parts that say something which `verify` does not check."""
        return tuple(part.name for part in fields(self) if part.name not in CHECKED and getattr(self, part.name))

    def _stated(self) -> None:
        """Raise `Unproved` unless every claim has the type it should have, so that it can be compared."""
        for name in ("value", "lower_bound", "upper_bound", "tolerance"):
            expect(getattr(self, name), float, name)
        expect(self.certified, bool, "certified")
        require(self.edges is None or self.utility.continuous, "cut points are stated, and answers are no real numbers")
        for guarantee in expect_each(self.guarantees, Guarantee, "the guarantees"):
            expect(guarantee.notion, str, "the notion of a guarantee")
            for parameter in guarantee.parameters.values():
                expect(parameter, float, "a parameter of a guarantee")

    def _broken(self, verified: Verification) -> list[str]:
        """The claims that the recomputed numbers do not confirm."""
        error, broken = self.utility.error, []
        # Where a number could not be computed, the failures that were found say why.
        told = bool(verified.reasons)
        if not (verified.value <= self.value if error else verified.value >= self.value) and not (
            told and math.isnan(verified.value)
        ):
            broken.append(f"the value is {verified.value!r}, not {self.value!r}")
        if self.certificate is None:
            if self.bound != (-math.inf if error else math.inf):
                broken.append(f"a bound of {self.bound!r} is stated, and no certificate proves it")
        elif not (verified.bound >= self.bound if error else verified.bound <= self.bound) and not (
            told and math.isnan(verified.bound)
        ):
            broken.append(f"the bound proved is {verified.bound!r}, not {self.bound!r}")
        if (self.upper_bound if error else self.lower_bound) != self.value:
            broken.append("the value is not one of the two bounds")
        stated = [guarantee.value for guarantee in self.guarantees]
        measured = [guarantee.value for guarantee in verified.guarantees]
        if not verified.guarantees and math.isnan(verified.epsilon):
            return broken  # nothing was measured
        notions = [[(g.notion, g.parameters) for g in each.guarantees] for each in (self, verified)]
        if notions[0] != notions[1]:
            broken.append("the guarantees stated are of other notions than the constraints")
        if len(stated) != len(measured) or not all(a <= b for a, b in zip(measured, stated, strict=True)):
            broken.append(f"the guarantees measured are {measured}, not {stated}")
        broken += [
            f"the {name} of a guarantee is not that of the channel: {getattr(claim, name)!r}"
            for claim, found in zip(self.guarantees, verified.guarantees, strict=False)
            for name in claims_beside_the_value(claim, found)
        ]
        if not all(a <= c.bound for a, c in zip(stated, self.constraints, strict=False)):
            broken.append("a guarantee is stated that exceeds its cap")
        honest = is_certified(self.value, self.bound, self.tolerance, error, self.utility.logarithmic)
        honest = honest and 0 < self.tolerance <= COARSE_GAP
        if self.certified is not honest:
            said = "certified" if self.certified else "not certified"
            broken.append(f"the relative gap is {self.relative_gap:.3g}, and the design is said to be {said}")
        return broken

    def save(self, path: str | PathLike[str], force: bool = False) -> None:
        """Write the design with its certificate to a file to be checked (docs/reference/formats/design-file.md).

        `load_design` reads it back, number for number. Raises `InvalidInput` for a utility or a constraint that you
        wrote, as a file holds no code, and for an existing file unless `force`.
        """
        write_text(path, self.to_json(), force)

    def to_json(self) -> str:
        """Return the contents of the file that `save` writes; `parse_design` reads them back, number for number."""
        from ldpopt.design.files import design_text

        return design_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the channel's matrix and the certificate's numbers as JSON-ready values."""
        proved = math.isfinite(self.bound)
        side = "lower_bound" if self.utility.error else "upper_bound"
        return {
            "criterion" if self.utility.error else "utility": self.utility.name,
            "value": self.value,
            side: self.bound if proved else None,
            "relative_gap": self.relative_gap if proved else None,
            "certified": self.certified,
            "method": self.method,
            "certificate": self.certificate.argument if self.certificate else None,
            "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
            "note": self.note,
            "inputs": self.channel.shape[0],
            "outputs": self.channel.shape[1],
        }

    @property
    def _trusted(self) -> str:
        """What a proof of this design takes on trust, as the end of a sentence; empty where nothing is proved."""
        return taken_on_trust(believed(self.utility, self.constraints)) if self.certificate is not None else ""

    def _lines(self) -> list[tuple[str, str]]:
        """The lines of the printed design: a name and a text each."""
        value = f"{self.value:.9g}" + " for one respondent" * self.utility.error
        digits = floor_digits if self.utility.error else ceil_digits
        proved = f"{digits(self.bound, 9)} (relative gap {self.relative_gap:.2g})"
        scale = "" if self.utility.logarithmic else " relative"
        told = [
            (self.utility.name, value),
            ("lower bound" if self.utility.error else "upper bound", proved if math.isfinite(self.bound) else "none"),
            ("certified", f"{'yes' if self.certified else 'no'}, to {self.tolerance:g}{scale}{self._trusted}"),
            *((g.title, g.limit) for g in self.guarantees),
            ("channel", f"{self.channel.shape[0]} inputs -> {self.channel.shape[1]} outputs"),
            ("method", self.method),
        ]
        return [*told, ("note", self.note)] if self.note else told

    def __repr__(self) -> str:
        told = self._lines()
        width = max(len(name) for name, _ in told)
        return "Design\n" + "\n".join(f"  {name:<{width}} {said}" for name, said in told)

    def _columns(self) -> dict[str, list[Any]]:
        flat = {name: value for name, value in self.to_dict().items() if name != "guarantees"}
        return {name: [value] for name, value in flat.items()} | {g.title: [g.value] for g in self.guarantees}

    def _cells(self) -> list[tuple[str, list[str]]]:
        told = self._lines()
        return [("", [name for name, _ in told]), ("", [said for _, said in told])]

    def _html(self, limit: int | None) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(said)}</td></tr>" for name, said in self._lines())
        return f"<table><caption>Design</caption>{rows}</table>{self.channel._html(limit)}"
