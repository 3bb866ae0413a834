"""The view "Any channel": the guarantees of a matrix or a file, its proof, and its distance from the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import Constraint, Design, Divergence, LocalDP, TotalVariation, optimal_channel, verify_design
from ldpopt.divergences import KL
from ldpopt.errors import CertificateError, LdpoptError, Phrase
from ldpopt.exact import ExactChannel
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON, MINIMUM_EPSILON
from ldpopt.privacy import Guarantee, audit, local_dp, proved, total_variation
from ldpopt.values.distribution import distribution, positive_epsilon, unit_interval
from ldpopt.values.labels import as_text
from ldpopt.words import guarantee_in_words, proof_in_words, recomputed_in
from ldpopt_studio.fields import Report, State, field, field_error, flag, numbers, take, to_json_types
from ldpopt_studio.pasted import (
    DEFAULT_NAME,
    Pasted,
    RepairedMatrix,
    file_name,
    file_text,
    parse_labeled_matrix,
    parse_pasted,
    recorded_guarantees,
    repair_matrix,
)
from ldpopt_studio.tell import proof_view, read_divergence

MAX_AUDIT_SIZE = 10_000_000
"""Largest k^2 m, for k inputs and m outputs, with a full audit, which takes half a minute."""


def view(state: State, report: Report = lambda share: None) -> dict[str, Any]:
    """Compute the content of the page for a channel or a design.

    A text that cannot be read raises `FieldError`.

    Parameters
    ----------
    state : mapping
        - ``text``: the content of the file, and ``name``, its name.
        - ``mend``: whether to repair the channel first, to the caps ``epsilon`` (nats) and ``eta`` if present.
        - ``p0``, ``p1``, ``divergence``: the comparison, as in `hypotheses`.
    report : function
        Called with the progress, from 0 to 1.
    """
    try:
        inspection = read_inspection(state)
    except CertificateError as error:
        name = take(state, "name", file_name, DEFAULT_NAME)
        return {"kind": "exact channel", "name": name, "badge": _badge("red", "The proof fails", [str(error)])}
    report(0.05)
    document = {"name": inspection.name, **_document(inspection, state, report)}
    if inspection.repair is not None:
        document["mended"] = {"steps": list(inspection.repair.steps), "moved": inspection.repair.max_row_change}
    return document


@dataclass(frozen=True, eq=False)
class Inspection:
    """The inspected design or channel.

    Attributes
    ----------
    name, text : str
        The file's name and content.
    content : Design, Channel or ExactChannel
        The content, after the repair if there was one.
    repair : RepairedMatrix or None
        The changes by the repair.
    claims : mapping
        Epsilon and eta that a channel file records, by privacy definition. They are never trusted.
    """

    name: str
    text: str
    content: Pasted
    repair: RepairedMatrix | None
    claims: Mapping[str, float]

    @property
    def channel(self) -> Channel:
        """The channel in float64."""
        channel = self.content.channel if isinstance(self.content, Design) else self.content
        if isinstance(channel, ExactChannel):
            return Channel(channel.matrix, channel.inputs, channel.outputs)
        return channel

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Epsilon and eta, measured on the channel or proved by an exact one."""
        if isinstance(self.content, ExactChannel):
            return proved(self.content)
        return local_dp(self.channel), total_variation(self.channel)


def read_inspection(state: State) -> Inspection:
    """Read the channel or design in a state, and repair it if ``mend`` is true.

    `CertificateError` is raised if the proof of an exact channel fails.
    """
    text, name = take(state, "text", file_text), take(state, "name", file_name, DEFAULT_NAME)
    if not take(state, "mend", flag, False):
        with field("text"):
            content = parse_pasted(text, name)
        claims = {} if isinstance(content, Design) else recorded_guarantees(text, name)
        return Inspection(name, text, content, None, claims)
    caps = cap_constraints(take(state, "epsilon", positive_epsilon, None), take(state, "eta", unit_interval, None))
    with field("text"):
        labeled_matrix = parse_labeled_matrix(text, name)
    with field("mend"):
        repair = repair_matrix(labeled_matrix, caps)
    return Inspection(name, text, repair.channel, repair, {})


def cap_constraints(epsilon: float | None, eta: float | None) -> list[Constraint]:
    """Return the caps as constraints; an infinite epsilon gives none."""
    limits: list[Constraint] = [LocalDP(epsilon)] if epsilon is not None and epsilon <= MAXIMUM_EPSILON else []
    return limits if eta is None else [*limits, TotalVariation(eta)]


def _document(inspection: Inspection, state: State, report: Report) -> dict[str, Any]:
    content, channel, guarantees = inspection.content, inspection.channel, inspection.guarantees
    k, m = channel.shape
    kind_names = {Design: "design", ExactChannel: "exact channel", Channel: "channel"}
    document: dict[str, Any] = {
        "kind": kind_names[type(content)],
        "inputs": [as_text(label) for label in channel.inputs],
        "outputs": [as_text(label) for label in channel.outputs],
        "matrix": channel.matrix,
        "epsilon": guarantees[0].value,
        "eta": guarantees[1].value,
        "promise": [guarantee_in_words(guarantee) for guarantee in guarantees],
        "channel_file": channel.to_json(guarantees),
    }
    document |= _proof(content, guarantees, inspection.claims)
    report(0.15)
    document["comparison"], document["no_comparison"] = _comparison(inspection, state)
    report(0.25)
    is_auditable = k * k * m <= MAX_AUDIT_SIZE
    audit_table = audit(channel, progress=lambda share: report(0.25 + 0.75 * share)) if is_auditable else None
    document["guarantees"] = [
        _guarantee_row(guarantee) for guarantee in (audit_table.guarantees if audit_table else guarantees)
    ]
    document["trade_off"] = audit_table.curve.knots if audit_table else None
    document["unmeasured"] = (
        "" if is_auditable else "Only epsilon and eta are measured here, because the channel is large."
    )
    json_document: dict[str, Any] = to_json_types(document)
    return json_document


def _badge(colour: str, text: str, reasons: list[str]) -> dict[str, Any]:
    return {"colour": colour, "text": text, "reasons": reasons}


def _proof(content: Pasted, guarantees: tuple[Guarantee, ...], claims: Mapping[str, float]) -> dict[str, Any]:
    """Return the badge and the sentences of the proof.

    The badge is green only if a proof was recomputed and holds.
    """
    if isinstance(content, Design):
        return _design_proof(content)
    if isinstance(content, ExactChannel):
        badge = _badge("green", "The proof holds", ["Proved in integer arithmetic, from the weights in the file."])
    elif false_claims := [
        f"The file claims a {guarantee.title} of {claims[guarantee.notion]!r}; it is {ceil_digits(guarantee.lower)}."
        for guarantee in guarantees
        if guarantee.notion in claims and not guarantee.lower <= claims[guarantee.notion]
    ]:
        badge = _badge("red", "A claim in the file is false", false_claims)
    else:
        reason = "A matrix contains no proof of optimality. Its guarantees are measured here, not taken from a file."
        badge = _badge("grey", "No proof to check", [reason])
    return {"badge": badge, "proof": []}


def _design_proof(design: Design) -> dict[str, Any]:
    verification, exact = verify_design(design)
    sentences = proof_in_words(design, verification)
    if verification.proved:
        qualification = "" if design.certified else ", but its bound is not tight"
        recomputed = f"Every claim in the file was recomputed in {recomputed_in(design, exact)}."
        return {"badge": _badge("green", f"The proof holds{qualification}", [recomputed]), "proof": sentences}
    if verification.outcome == "not checked":
        text = "The design contains no proof" if design.certificate is None else "The proof was not checked"
        return {"badge": _badge("grey", text, list(verification.unchecked)), "proof": []}
    return {"badge": _badge("red", "The proof fails", sentences), "proof": []}


def _comparison(inspection: Inspection, state: State) -> tuple[dict[str, Any] | None, str]:
    """Compare the channel with the optimum for its epsilon and eta, or return None and the reason."""
    channel, (epsilon, eta) = inspection.channel, (guarantee.value for guarantee in inspection.guarantees)
    if channel.shape[0] < 2:
        return None, "With one answer there is nothing to compare."
    utility, source = hypotheses(inspection, state)
    if utility is None:
        reason = "The design does not maximize a divergence between two populations. Compare it with its own bound."
        return None, reason
    if not epsilon >= MINIMUM_EPSILON:
        return None, "The reports carry no information, and no channel within the same limits does better."
    value = float(utility.value(channel))
    try:
        optimum = optimal_channel(utility, cap_constraints(epsilon, min(eta, 1.0)))
    except LdpoptError as error:
        return None, f"The optimum could not be computed ({error})."
    verification, _ = verify_design(optimum)
    return {
        "whose": source,
        "divergence": utility.name,
        "p0": utility.p0,
        "p1": utility.p1,
        "m0": channel.push(utility.p0),
        "m1": channel.push(utility.p1),
        "value": value,
        "optimum": optimum.value,
        "bound": optimum.bound,
        "share": value / optimum.value if 0 < optimum.value < math.inf and math.isfinite(value) else None,
        "limits": [str(limit) for limit in optimum.guarantees],
        **proof_view(optimum, verification),
        "matrix": optimum.channel.matrix,
        "outputs": [as_text(label) for label in optimum.channel.outputs],
        "design_file": optimum.to_json(),
    }, ""


def hypotheses(inspection: Inspection, state: State) -> tuple[Divergence | None, str]:
    """Choose the comparison, and describe the origin of its populations.

    Populations in the state come first, then those of the design, then two invented ones. The comparison is None for a
    design with another utility.
    """
    content, channel = inspection.content, inspection.channel
    k = channel.shape[0]
    f = take(state, "divergence", read_divergence, None)
    p0, p1 = (
        take(state, name, lambda value, field_name: distribution(numbers(value, field_name), field_name, k), None)
        for name in ("p0", "p1")
    )
    if (p0 is None) != (p1 is None):
        raise field_error(
            "p0" if p0 is None else "p1", "a distribution, because the other population has one", Phrase("nothing")
        )
    design_utility = content.utility if isinstance(content, Design) else None
    if p0 is None and isinstance(design_utility, Divergence) and not design_utility.continuous:
        return (
            design_utility if f is None else Divergence(f, design_utility.p0, design_utility.p1, design_utility.inputs)
        ), "the populations of the file"
    if p0 is None and design_utility is not None:
        return None, ""
    source = "your populations"
    if p0 is None or p1 is None:
        p0 = np.arange(k, 0, -1.0) / (k * (k + 1) / 2)
        p1 = p0[::-1]
        source = "two example populations: proportions fall from the first answer to the last in P0, and rise in P1"
    with field("p1"):
        return Divergence(KL if f is None else f, p0, p1, channel.inputs), source


def _guarantee_row(guarantee: Guarantee) -> dict[str, Any]:
    sign, printed = guarantee.printed
    return {
        "title": guarantee.title,
        "sign": sign,
        "value": printed,
        "witness": str(guarantee.witness) if guarantee.witness else "",
        "reference": guarantee.reference,
    }
