"""A design: a channel, its utility, its measured guarantees, and the proof of how close it is to the optimum.

This module alone decides whether a gap between value and bound counts as certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.base import Constraint
from ldpopt.design.kernel.certificate import Certificate, Unbounded, Verification, trust_suffix, unproved_assumptions
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


def unsupported_fields(stated_guarantee: Guarantee, measured_guarantee: Guarantee) -> list[str]:
    """List the fields of a guarantee, other than its value, that claim more than was measured."""
    is_supported_by_name = {
        "lower": stated_guarantee.lower <= measured_guarantee.lower,
        "witness": stated_guarantee.witness in (None, measured_guarantee.witness),
        "exact": measured_guarantee.exact or not stated_guarantee.exact,
        "reference": stated_guarantee.reference in ("", measured_guarantee.reference),
    }
    return [name for name, is_supported in is_supported_by_name.items() if not is_supported]


def gap_between(value: float, bound: float) -> float:
    """Return |bound - value|; inf if one of them is not finite."""
    return abs(bound - value) if math.isfinite(bound) and math.isfinite(value) else math.inf


def relative_gap(value: float, bound: float, logarithmic: bool = False) -> float:
    """Compute the gap relative to |value|: 0 if value and bound agree, inf if only the value is 0.

    logarithmic : the utility is a logarithm, so the gap itself is the relative gap.
    """
    gap = gap_between(value, bound)
    if logarithmic or gap in (0.0, math.inf):
        return gap
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.divide(gap, abs(value))) if value else math.inf


def is_certified(value: float, bound: float, tolerance: float, error: bool, logarithmic: bool) -> bool:
    """Return True if a proved bound certifies a value.

    The bound must be finite, on its side of the value, and within the relative tolerance of it.

    Parameters
    ----------
    value : The value of the design.
    bound : The proved bound, in the unit of the value.
    tolerance : The largest relative gap.
    error : True if less is better, so that the bound must be below the value.
    logarithmic : True if the utility is a logarithm, so that the gap itself is the relative gap.

    Examples
    --------
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
    """A channel with its utility and guarantees, and a proof of how close it is to the optimum.

    - `utility`, `constraints` : the problem.
    - `channel` : the mechanism. Its rows are in the order of the inputs, or of the intervals of continuous hypotheses.
    - `value` : the utility of this channel, or its error, measured after all repairs and rounded to the worse side.
    - `lower_bound`, `upper_bound` : bounds on the optimum over all channels within the constraints. One of them is the
      value itself. The certificate proves the other, which is infinite if nothing is proved. If more is better, no
      channel exceeds `upper_bound`; if less is better, no channel is below `lower_bound`.
    - `guarantees` : the guarantees measured on this channel, one per constraint, each within its cap.
    - `method` : a description of the search.
    - `certificate` : the proof of the bound; `certificate.verify()` recomputes it from scratch.
    - `certified` : True if the proved bound is finite and within `tolerance` of the value, relative to the value.
    - `note` : the reason why the design is not certified, and other remarks, such as a cap that does not bind.
    - `edges` : for continuous hypotheses, the interior cut points; ``channel.inputs[np.digitize(x, edges,
      right=True)]`` is the interval of x.
    - `reference` : the keys of the papers of the method that found the channel, for `cite`.
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
        """The proved one of the two bounds: upper if more is better, lower if less is."""
        return self.lower_bound if self.utility.error else self.upper_bound

    @property
    def gap(self) -> float:
        """The distance from the value to the proved bound, at least 0; inf if nothing is proved."""
        return gap_between(self.value, self.bound)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the value; for a utility that is a logarithm, the gap itself."""
        return relative_gap(self.value, self.bound, self.utility.logarithmic)

    def verify(self, exact: bool = False, budget: float = 1.0) -> Verification:
        """Recompute all claims of the design without any solver.

        The certificate is checked as a proof about the utility, constraints and channel of this design, even if it was
        made for others. Then the value, both bounds, the guarantees and `certified` must be as stated.

        Parameters
        ----------
        exact : Use 256-bit ball arithmetic instead of outward-rounded float64 (`Certificate.verify`).
        budget : The largest work, in multiples of ten seconds or 2 GB; a larger check is not started.
            Raises `InvalidInput` unless it is positive.

        Returns
        -------
        Verification
            Its outcome is "refuted" if a claim does not hold. `failures` names each such claim; a value or a guarantee
            that they do not name holds. A design with a part of the wrong type, such as text for a number, is refuted,
            too. The outcome is "not checked" if no claim was refuted, and one was not checked. Then the budget does not
            allow it, this arithmetic cannot compute it, or the certificate is missing, so that nothing is proved about
            the optimum.

        >>> from ldpopt import LocalDP, optimal_channel
        >>> from ldpopt.design import Divergence
        >>> from ldpopt.divergences import KL
        >>> bool(optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)).verify())
        True
        """
        problem = (self.utility, self.constraints, self.channel)
        try:
            certificate = Unbounded(*problem) if self.certificate is None else self.certificate
            own_certificate: Certificate = expect(certificate, Certificate, "the certificate")
            proof = own_certificate.rebind(*problem, self.edges)
            proof.check_claim()
            self._check_types()
        except Unproved as error:
            return Verification(math.nan, math.nan, math.nan, math.nan, (str(error),))
        verification = proof.verify(exact, budget)
        return replace(verification, failures=(*verification.failures, *self._refuted_claims(verification)))

    @property
    def unchecked_parts(self) -> tuple[str, ...]:
        """The names of the parts with statements that `verify` does not check."""
        return tuple(part.name for part in fields(self) if part.name not in CHECKED and getattr(self, part.name))

    def _check_types(self) -> None:
        """Raise `Unproved` unless every claim has the right type, so that it can be compared."""
        for name in ("value", "lower_bound", "upper_bound", "tolerance"):
            expect(getattr(self, name), float, name)
        expect(self.certified, bool, "certified")
        require(self.edges is None or self.utility.continuous, "cut points are stated, and answers are no real numbers")
        for guarantee in expect_each(self.guarantees, Guarantee, "the guarantees"):
            expect(guarantee.notion, str, "the notion of a guarantee")
            for parameter in guarantee.parameters.values():
                expect(parameter, float, "a parameter of a guarantee")

    def _refuted_claims(self, verification: Verification) -> list[str]:
        """List the claims that the recomputed numbers do not confirm."""
        error, failures = self.utility.error, []
        # Where a number could not be computed, the failures that were found say why.
        is_explained = bool(verification.reasons)
        if not (verification.value <= self.value if error else verification.value >= self.value) and not (
            is_explained and math.isnan(verification.value)
        ):
            failures.append(f"the value is {verification.value!r}, not {self.value!r}")
        if self.certificate is None:
            if self.bound != (-math.inf if error else math.inf):
                failures.append(f"a bound of {self.bound!r} is stated, and no certificate proves it")
        elif not (verification.bound >= self.bound if error else verification.bound <= self.bound) and not (
            is_explained and math.isnan(verification.bound)
        ):
            failures.append(f"the bound proved is {verification.bound!r}, not {self.bound!r}")
        if (self.upper_bound if error else self.lower_bound) != self.value:
            failures.append("the value is not one of the two bounds")
        stated_values = [guarantee.value for guarantee in self.guarantees]
        measured_values = [guarantee.value for guarantee in verification.guarantees]
        if not verification.guarantees and math.isnan(verification.epsilon):
            return failures  # nothing was measured
        notions = [[(g.notion, g.parameters) for g in source.guarantees] for source in (self, verification)]
        if notions[0] != notions[1]:
            failures.append("the guarantees stated are of other notions than the constraints")
        if len(stated_values) != len(measured_values) or not all(
            a <= b for a, b in zip(measured_values, stated_values, strict=True)
        ):
            failures.append(f"the guarantees measured are {measured_values}, not {stated_values}")
        failures += [
            f"the {name} of a guarantee is not that of the channel: {getattr(stated_guarantee, name)!r}"
            for stated_guarantee, measured_guarantee in zip(self.guarantees, verification.guarantees, strict=False)
            for name in unsupported_fields(stated_guarantee, measured_guarantee)
        ]
        if not all(a <= c.bound for a, c in zip(stated_values, self.constraints, strict=False)):
            failures.append("a guarantee is stated that exceeds its cap")
        deserves_certified = is_certified(self.value, self.bound, self.tolerance, error, self.utility.logarithmic)
        deserves_certified = deserves_certified and 0 < self.tolerance <= COARSE_GAP
        if self.certified is not deserves_certified:
            statement = "certified" if self.certified else "not certified"
            failures.append(f"the relative gap is {self.relative_gap:.3g}, and the design is said to be {statement}")
        return failures

    def save(self, path: str | PathLike[str], force: bool = False) -> None:
        """Write the design with its certificate to a file to be checked (docs/reference/formats/design-file.md).

        `load_design` reads it back, number for number. Raises `InvalidInput` for a user-defined utility or constraint,
        because a file contains no code, and for an existing file unless `force`.
        """
        write_text(path, self.to_json(), force)

    def to_json(self) -> str:
        """Return the contents of the file that `save` writes; `parse_design` reads them back, number for number."""
        from ldpopt.design.files import design_text

        return design_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the channel's matrix and the certificate's numbers as JSON-ready values."""
        is_bounded = math.isfinite(self.bound)
        side = "lower_bound" if self.utility.error else "upper_bound"
        return {
            "criterion" if self.utility.error else "utility": self.utility.name,
            "value": self.value,
            side: self.bound if is_bounded else None,
            "relative_gap": self.relative_gap if is_bounded else None,
            "certified": self.certified,
            "method": self.method,
            "certificate": self.certificate.argument if self.certificate else None,
            "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
            "note": self.note,
            "inputs": self.channel.shape[0],
            "outputs": self.channel.shape[1],
        }

    @property
    def _assumptions(self) -> str:
        """The assumptions of the proof of this design, as the end of a sentence; empty if nothing is proved."""
        return (
            trust_suffix(unproved_assumptions(self.utility, self.constraints)) if self.certificate is not None else ""
        )

    def _lines(self) -> list[tuple[str, str]]:
        """List the lines of the printed design: a name and a text each."""
        value = f"{self.value:.9g}" + " for one respondent" * self.utility.error
        digits = floor_digits if self.utility.error else ceil_digits
        bound = f"{digits(self.bound, 9)} (relative gap {self.relative_gap:.2g})"
        scale = "" if self.utility.logarithmic else " relative"
        lines = [
            (self.utility.name, value),
            ("lower bound" if self.utility.error else "upper bound", bound if math.isfinite(self.bound) else "none"),
            ("certified", f"{'yes' if self.certified else 'no'}, to {self.tolerance:g}{scale}{self._assumptions}"),
            *((g.title, g.limit) for g in self.guarantees),
            ("channel", f"{self.channel.shape[0]} inputs -> {self.channel.shape[1]} outputs"),
            ("method", self.method),
        ]
        return [*lines, ("note", self.note)] if self.note else lines

    def __repr__(self) -> str:
        lines = self._lines()
        width = max(len(name) for name, _ in lines)
        return "Design\n" + "\n".join(f"  {name:<{width}} {text}" for name, text in lines)

    def _columns(self) -> dict[str, list[Any]]:
        flat = {name: value for name, value in self.to_dict().items() if name != "guarantees"}
        return {name: [value] for name, value in flat.items()} | {g.title: [g.value] for g in self.guarantees}

    def _cells(self) -> list[tuple[str, list[str]]]:
        lines = self._lines()
        return [("", [name for name, _ in lines]), ("", [text for _, text in lines])]

    def _html(self, limit: int | None) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._lines())
        return f"<table><caption>Design</caption>{rows}</table>{self.channel._html(limit)}"
