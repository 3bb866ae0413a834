"""``ldpopt survey verify``: whether the files of a delivery fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.survey.files import SIMULATION


def verify(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder with the plan, the reports, and files that were made from them.",
            show_default=False,
        ),
    ],
    workers: Annotated[int, typer.Option(help="Number of threads.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Check a survey's delivery: prove the plan, compare reports with their manifests, recompute counts and estimates.

    FOLDER holds plan.json, reports, and perhaps counts.json, estimates.json (from ldpopt survey estimate --json) and
    pages. Exit code 0: everything holds. 1: something does not hold, and the output says what. 2: not a delivery.
    """
    from ldpopt import strictjson
    from ldpopt.reports.delivery import verify_delivery
    from ldpopt.survey.collect.runner import Threads

    with progress("verifying"):
        found = verify_delivery(folder, Threads(workers))
    if json:
        print(strictjson.dumps(found.to_dict()), end="")
    else:
        console = output()
        for one in found.findings:
            console.print(repr(one), markup=False)
        if found.simulation:
            console.print(SIMULATION, markup=False)
        console.print(
            "Everything that was checked holds." if found else "This delivery is not what it says.", markup=False
        )
    if not found:
        raise typer.Exit(1)
