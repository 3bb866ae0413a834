"""``ldpopt check``: the guarantees of a channel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.console import output, progress, promise

if TYPE_CHECKING:
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
