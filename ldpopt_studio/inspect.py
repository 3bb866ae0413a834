"""The view "Any channel": the guarantees of a pasted matrix or a file, its proof, and its distance from the optimum."""

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
from ldpopt_studio.fields import Report, State, field, flag, numbers, plain, take, wrong
from ldpopt_studio.pasted import NAMELESS, Mended, Pasted, claims, contents, file_name, mended, parts, pasted
from ldpopt_studio.tell import divergence, proof

AUDITED = 10_000_000
"""The largest k^2 m, for k inputs and m outputs, at which every notion is measured. It takes half a minute."""


def view(state: State, report: Report = lambda share: None) -> dict[str, Any]:
    """The content of the page for a pasted channel or design; `FieldError` if it cannot be read.

    text : the contents. name : of the file. mend : whether to repair it first, to the caps epsilon and eta if given.
    p0, p1, divergence : the comparison, as in `hypotheses`.
    """
    try:
        seen = looked(state)
    except CertificateError as error:
        name = take(state, "name", file_name, NAMELESS)
        return {"kind": "exact channel", "name": name, "badge": _badge("red", "The proof fails", [str(error)])}
    report(0.05)
    document = {"name": seen.name, **_document(seen, state, report)}
    if seen.mended is not None:
        document["mended"] = {"steps": list(seen.mended.steps), "moved": seen.mended.moved}
    return document


@dataclass(frozen=True, eq=False)
class Looked:
    """The inspected design or channel, how it was mended, and the epsilon and eta that its file claims, by notion."""

    name: str
    text: str
    content: Pasted
    mended: Mended | None
    stated: Mapping[str, float]

    @property
    def channel(self) -> Channel:
        """The channel of either kind as floats."""
        held = self.content.channel if isinstance(self.content, Design) else self.content
        return Channel(held.matrix, held.inputs, held.outputs) if isinstance(held, ExactChannel) else held

    @property
    def measured(self) -> tuple[Guarantee, ...]:
        """Its own epsilon and eta."""
        if isinstance(self.content, ExactChannel):
            return proved(self.content)
        return local_dp(self.channel), total_variation(self.channel)


def looked(state: State) -> Looked:
    """The channel or design in a state, mended if it says so; `CertificateError` if an exact channel's proof fails."""
    text, name = take(state, "text", contents), take(state, "name", file_name, NAMELESS)
    if not take(state, "mend", flag, False):
        with field("text"):
            read = pasted(text, name)
        return Looked(name, text, read, None, {} if isinstance(read, Design) else claims(text, name))
    caps = own_limits(take(state, "epsilon", positive_epsilon, None), take(state, "eta", unit_interval, None))
    with field("text"):
        given = parts(text, name)
    with field("mend"):
        content = mended(given, caps)
    return Looked(name, text, content.channel, content, {})


def own_limits(epsilon: float | None, eta: float | None) -> list[Constraint]:
    """The given caps as constraints; an infinite epsilon gives no constraint."""
    limits: list[Constraint] = [LocalDP(epsilon)] if epsilon is not None and epsilon <= MAXIMUM_EPSILON else []
    return limits if eta is None else [*limits, TotalVariation(eta)]


def _document(seen: Looked, state: State, report: Report) -> dict[str, Any]:
    content, channel, measured = seen.content, seen.channel, seen.measured
    k, m = channel.shape
    kinds = {Design: "design", ExactChannel: "exact channel", Channel: "channel"}
    document: dict[str, Any] = {
        "kind": kinds[type(content)],
        "inputs": [as_text(label) for label in channel.inputs],
        "outputs": [as_text(label) for label in channel.outputs],
        "matrix": channel.matrix,
        "epsilon": measured[0].value,
        "eta": measured[1].value,
        "promise": [guarantee_in_words(guarantee) for guarantee in measured],
        "channel_file": channel.to_json(measured),
    }
    document |= _proof(content, measured, seen.stated)
    report(0.15)
    document["comparison"], document["no_comparison"] = _comparison(seen, state)
    report(0.25)
    every = k * k * m <= AUDITED
    whole = audit(channel, progress=lambda share: report(0.25 + 0.75 * share)) if every else None
    document["guarantees"] = [_row(guarantee) for guarantee in (whole.guarantees if whole else measured)]
    document["trade_off"] = whole.curve.knots if whole else None
    document["unmeasured"] = "" if every else "The channel is so large that only epsilon and eta are measured here."
    shown: dict[str, Any] = plain(document)
    return shown


def _badge(colour: str, text: str, reasons: list[str]) -> dict[str, Any]:
    return {"colour": colour, "text": text, "reasons": reasons}


def _proof(pasted: Pasted, measured: tuple[Guarantee, ...], stated: Mapping[str, float]) -> dict[str, Any]:
    """The badge and the sentences of the proof. The badge is green only if a proof was recomputed and holds."""
    if isinstance(pasted, Design):
        return _checked(pasted)
    if isinstance(pasted, ExactChannel):
        badge = _badge("green", "The proof holds", ["Proved in integer arithmetic, from the weights in the file."])
    elif lies := [
        f"The file claims a {guarantee.title} of {stated[guarantee.notion]!r}; it is {ceil_digits(guarantee.lower)}."
        for guarantee in measured
        if guarantee.notion in stated and not guarantee.lower <= stated[guarantee.notion]
    ]:
        badge = _badge("red", "What the file claims is false", lies)
    else:
        said = (
            "A matrix proves nothing about the optimum; what it guarantees is measured here, whatever its file claims."
        )
        badge = _badge("grey", "No proof to check", [said])
    return {"badge": badge, "proof": []}


def _checked(design: Design) -> dict[str, Any]:
    check, exact = verify_design(design)
    said = proof_in_words(design, check)
    if check.proved:
        tight = "" if design.certified else ", of a bound that is not tight"
        recomputed = f"Every claim in the file was recomputed in {recomputed_in(design, exact)}."
        return {"badge": _badge("green", f"The proof holds{tight}", [recomputed]), "proof": said}
    if check.outcome == "not checked":
        text = "The design carries no proof" if design.certificate is None else "The proof was not checked"
        return {"badge": _badge("grey", text, list(check.unchecked)), "proof": []}
    return {"badge": _badge("red", "The proof fails", said), "proof": []}


def _comparison(seen: Looked, state: State) -> tuple[dict[str, Any] | None, str]:
    """The channel compared with the optimum for its own epsilon and eta, or the reason why there is no comparison."""
    channel, (epsilon, eta) = seen.channel, (measured.value for measured in seen.measured)
    if channel.shape[0] < 2:
        return None, "With one answer there is nothing to tell apart."
    utility, whose = hypotheses(seen, state)
    if utility is None:
        said = "The design keeps something else than what tells two populations apart; its own bound is the comparison."
        return None, said
    if not epsilon >= MINIMUM_EPSILON:
        return None, "The channel tells nothing about any answer, and nothing within its limits can."
    value = float(utility.value(channel))
    try:
        best = optimal_channel(utility, own_limits(epsilon, min(eta, 1.0)))
    except LdpoptError as error:
        return None, f"The optimum was not found ({error})."
    verified, _ = verify_design(best)
    return {
        "whose": whose,
        "divergence": utility.name,
        "p0": utility.p0,
        "p1": utility.p1,
        "m0": channel.push(utility.p0),
        "m1": channel.push(utility.p1),
        "value": value,
        "optimum": best.value,
        "bound": best.bound,
        "share": value / best.value if 0 < best.value < math.inf and math.isfinite(value) else None,
        "limits": [str(limit) for limit in best.guarantees],
        **proof(best, verified),
        "matrix": best.channel.matrix,
        "outputs": [as_text(label) for label in best.channel.outputs],
        "design_file": best.to_json(),
    }, ""


def hypotheses(seen: Looked, state: State) -> tuple[Divergence | None, str]:
    """The comparison: populations given, those of the design, or examples; None for a design with another utility."""
    content, channel = seen.content, seen.channel
    k = channel.shape[0]
    f = take(state, "divergence", divergence, None)
    p0, p1 = (
        take(state, name, lambda value, what: distribution(numbers(value, what), what, k), None)
        for name in ("p0", "p1")
    )
    if (p0 is None) != (p1 is None):
        raise wrong("p0" if p0 is None else "p1", "both populations or neither", Phrase("one"))
    own = content.utility if isinstance(content, Design) else None
    if p0 is None and isinstance(own, Divergence) and not own.continuous:
        return (own if f is None else Divergence(f, own.p0, own.p1, own.inputs)), "the populations of the file"
    if p0 is None and own is not None:
        return None, ""
    whose = "the populations given"
    if p0 is None or p1 is None:
        p0 = np.arange(k, 0, -1.0) / (k * (k + 1) / 2)
        p1 = p0[::-1]
        whose = "two invented populations, one that falls from the first answer to the last and one that rises"
    with field("p1"):
        return Divergence(KL if f is None else f, p0, p1, channel.inputs), whose


def _row(guarantee: Guarantee) -> dict[str, Any]:
    sign, printed = guarantee.printed
    return {
        "title": guarantee.title,
        "sign": sign,
        "value": printed,
        "witness": str(guarantee.witness) if guarantee.witness else "",
        "reference": guarantee.reference,
    }
