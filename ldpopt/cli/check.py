"""``ldpopt check``: what a channel guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.console import output, progress

if TYPE_CHECKING:
    from ldpopt.channel import Channel
    from ldpopt.privacy import Guarantee


def check(
    channel: Annotated[
        Path,
        typer.Argument(
            metavar="CHANNEL",
            help="Channel file, or any matrix whose rows sum to 1: CSV, or JSON.",
            show_default=False,
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Measure what a channel guarantees, whatever its file claims."""
    from ldpopt.io import read_channel
    from ldpopt.reports.words import guarantee_in_words

    with progress("measuring"):
        made = read_channel(channel)
        found = measures(made)
    if json:
        from ldpopt import strictjson

        k, m = made.shape
        print(strictjson.dumps({"inputs": k, "outputs": m, "guarantees": [one.to_dict() for one in found]}), end="")
        return
    console = output()
    console.print(f"{channel}: {made!r}", markup=False)
    for guarantee in found:
        console.print(f"\n{guarantee} {guarantee.reference}", markup=False)
        console.print(f"  {guarantee_in_words(guarantee)}", markup=False)


def measures(channel: Channel) -> tuple[Guarantee, ...]:
    """Every measure that the command reports."""
    from ldpopt.privacy import local_dp, total_variation

    return local_dp(channel), total_variation(channel)
