"""How the result of a design is written: as a record, as text, as HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpopt.design.design import Design
    from ldpopt.design.estimation_result import EstimationDesign


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
