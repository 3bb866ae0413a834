"""``ldpopt check``: a channel to its guarantees; ``ldpopt verify``: a design file to whether its proof holds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt import strictjson
from ldpopt.cli.options import JsonOption, argument, option
from ldpopt.cli.outputs import progress, promise, say
from ldpopt.errors import Phrase, invalid

if TYPE_CHECKING:
    from ldpopt.design import Design, Verification
    from ldpopt.exact import ExactChannel


def check(
    channel: Annotated[Path, argument("CHANNEL", "Channel file, or any matrix whose rows sum to 1: CSV, or JSON.")],
    every: Annotated[
        bool, option("--all", "Measure every notion of privacy. It is slow from about 100 inputs on.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure the guarantees of a channel, whatever its file claims.

    For an exact channel the proof is computed again from its integers. If the integers do not prove the claims of the
    file, the exit code is 1.
    """
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
    say(f"{channel}: {made!r}")
    if isinstance(made, ExactChannel):
        say("Proved in integer arithmetic from the weights in the file.")
    say(*(f"\n{guarantee} {guarantee.reference}{promise(guarantee)}" for guarantee in found))
    if report is not None:
        say("", report)


def _proved(made: ExactChannel) -> dict[str, int]:
    """The common denominator of the integers, as JSON-ready values."""
    whole = made.denominator
    return {"proved_bits": made.bits} if whole & (whole - 1) == 0 else {"proved_denominator": whole}


def verify(
    file: Annotated[Path, argument("FILE", "Design file, written by `Design.save` or --save-design.")],
    exact: Annotated[
        bool, option("--exact", "Compute in balls of 256 bits instead of float64 rounded outward.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check the proof in a design file: recompute every claim, without any solver.

    Exit code 0: every claim holds. 1: one does not hold, and the output says which. 2: not a design file.
    """
    from ldpopt.design import load_design
    from ldpopt.design.files import checked

    with progress("verifying"):
        design = load_design(file)
        found, exact = checked(design, exact)
    if json:
        print(strictjson.dumps(_as_json(design, found, exact)), end="")
    else:
        say(*_lines(design, found, exact))
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


def _lines(design: Design, found: Verification, exact: bool) -> list[str]:
    from ldpopt.reports.words import proof_in_words

    if not found:
        stated = f"The file states a value of {design.value!r} and a bound of {design.bound!r}, which is not proved:"
        return [stated, *(f"- {failure}" for failure in found.failures), f"Computed in {_arithmetic(exact)}."]
    return [*proof_in_words(design, found), f"Every claim was recomputed in {_arithmetic(exact)}, and the proof holds."]
