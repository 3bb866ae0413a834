"""``ldpopt verify``: whether the proof in a design file holds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.console import output, progress

if TYPE_CHECKING:
    from ldpopt.design import Design, Verification


def verify(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Design file, written by `Design.save` or --save-design.", show_default=False
        ),
    ],
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute in balls of 256 bits instead of float64 rounded outward.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Check the proof in a design file: recompute every claim, without any solver.

    Exit code 0: every claim holds. 1: one does not hold, and the output says which. 2: not a design file.
    """
    from ldpopt import strictjson
    from ldpopt.design import load_design
    from ldpopt.design.load import checked

    with progress("verifying"):
        design = load_design(file)
        found, exact = checked(design, exact)
    if json:
        print(strictjson.dumps(_as_json(design, found, exact)), end="")
    else:
        console = output()
        for line in _told(design, found, exact):
            console.print(line, markup=False)
    if not found:
        raise typer.Exit(1)


def _arithmetic(exact: bool) -> str:
    return "balls of 256 bits" if exact else "float64, rounded outward"


def _as_json(design: Design, found: Verification, exact: bool) -> dict[str, object]:
    return {
        "verified": bool(found),
        "failures": list(found.failures),
        "arithmetic": _arithmetic(exact),
        "utility": design.utility.name,
        "value": _plain(design.value),
        "lower_bound": _plain(design.lower_bound),
        "upper_bound": _plain(design.upper_bound),
        "relative_gap": _plain(design.relative_gap),
        "certified": design.certified,
        "tolerance": _plain(design.tolerance),
        "recomputed": {"value": _plain(found.value), "bound": _plain(found.bound)},
        "guarantees": [guarantee.to_dict() for guarantee in found.guarantees],
        "argument": None if design.certificate is None else design.certificate.argument,
    }


def _plain(value: float) -> float | str | None:
    """A number for JSON; null if nothing was computed."""
    return None if math.isnan(value) else value if math.isfinite(value) else "inf" if value > 0 else "-inf"


def _told(design: Design, found: Verification, exact: bool) -> list[str]:
    from ldpopt.reports.words import proof_in_words

    if not found:
        stated = f"The file states a value of {design.value!r} and a bound of {design.bound!r}, which is not proved:"
        return [stated, *(f"- {failure}" for failure in found.failures), f"Computed in {_arithmetic(exact)}."]
    return [*proof_in_words(design, found), f"Every claim was recomputed in {_arithmetic(exact)}, and the proof holds."]
