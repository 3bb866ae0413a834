"""``ldpopt check``: a channel to its guarantees; ``ldpopt verify``: a design file to whether its proof holds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.outputs import output, progress, promise

if TYPE_CHECKING:
    from ldpopt.design import Design, Verification
    from ldpopt.exact import ExactChannel


def check(
    channel: Annotated[
        Path,
        typer.Argument(
            metavar="CHANNEL",
            help="Channel file, or any matrix whose rows sum to 1: CSV, or JSON.",
            show_default=False,
        ),
    ],
    every: Annotated[
        bool, typer.Option("--all", help="Measure every notion of privacy. It is slow from about 100 inputs on.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Measure the guarantees of a channel, whatever its file claims.

    For an exact channel the proof is computed again from its integers. If the integers do not prove the claims of the
    file, the exit code is 1.
    """
    from ldpopt import strictjson
    from ldpopt.errors import Phrase, invalid
    from ldpopt.exact import ExactChannel
    from ldpopt.io import read_released
    from ldpopt.privacy import audit, local_dp, proved, total_variation

    with progress("measuring"):
        made = read_released(channel)
        if isinstance(made, ExactChannel):
            if every:
                raise invalid("--all", "a channel of floats (an exact one proves epsilon and eta)", Phrase(made))
            found, report = proved(made), None
        else:
            found, report = (local_dp(made), total_variation(made)), audit(made) if every else None
    if json:
        k, m = made.shape
        exact = _proved(made) if isinstance(made, ExactChannel) else {}
        shown = {"inputs": k, "outputs": m, **exact, "guarantees": [guarantee.to_dict() for guarantee in found]}
        print(strictjson.dumps(shown if report is None else shown | report.to_dict()), end="")
        return
    console = output()
    console.print(f"{channel}: {made!r}", markup=False)
    if isinstance(made, ExactChannel):
        console.print("Proved in integer arithmetic from the weights in the file.", markup=False)
    for guarantee in found:
        console.print(f"\n{guarantee} {guarantee.reference}{promise(guarantee)}", markup=False)
    if report is not None:
        console.print("", report)


def _proved(made: ExactChannel) -> dict[str, int]:
    """The common denominator of the integers, as JSON-ready values."""
    whole = made.denominator
    return {"proved_bits": made.bits} if whole & (whole - 1) == 0 else {"proved_denominator": whole}


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
