"""``ldpopt check``: what a channel guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress


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
        bool, typer.Option("--all", help="Measure every notion of privacy; slow from about 100 inputs on.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Measure what a channel guarantees, whatever its file claims."""
    from ldpopt import strictjson
    from ldpopt.io import read_channel
    from ldpopt.privacy import audit, local_dp, total_variation
    from ldpopt.reports.words import guarantee_in_words

    with progress("measuring"):
        made = read_channel(channel)
        found = (local_dp(made), total_variation(made))
        report = audit(made) if every else None
    if json:
        k, m = made.shape
        shown = {"inputs": k, "outputs": m, "guarantees": [guarantee.to_dict() for guarantee in found]}
        print(strictjson.dumps(shown if report is None else shown | report.to_dict()), end="")
        return
    console = output()
    console.print(f"{channel}: {made!r}", markup=False)
    for guarantee in found:
        console.print(f"\n{guarantee} {guarantee.reference}", markup=False)
        console.print(f"  {guarantee_in_words(guarantee)}", markup=False)
    if report is not None:
        console.print("", report)
