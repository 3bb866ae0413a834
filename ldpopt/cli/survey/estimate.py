"""``ldpopt survey estimate``: from reports or counts to shares with intervals."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.survey.files import DataArgument, PlanArgument, estimates, read_counts, read_plan


def estimate(
    plan: PlanArgument,
    data: DataArgument,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Estimate the share of every answer, with 95 % score intervals."""
    from ldpopt import strictjson

    made = read_plan(plan)
    with progress("estimating"):
        found = estimates(made, read_counts(data, made))
    if json:
        print(strictjson.dumps({name: one.to_dict() for name, one in found.items()}), end="")
        return
    console = output()
    for name, one in found.items():
        console.print(f"{name}\n{one!r}\n", markup=False)
