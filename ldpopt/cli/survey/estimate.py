"""``ldpopt survey estimate``: from reports or counts to shares with intervals."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.survey.files import (
    DataArgument,
    PlanArgument,
    UnlabelledOption,
    read_counts,
    read_plan,
    spoken,
)


def estimate(
    plan: PlanArgument,
    data: DataArgument,
    unlabelled: UnlabelledOption = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Estimate the share of every answer, with 95 % score intervals."""
    from ldpopt import strictjson
    from ldpopt.reports.missing import among_those_who_answered, missing_of
    from ldpopt.reports.results import results
    from ldpopt.survey.plan.survey import Survey

    made = read_plan(plan)
    with progress("estimating"):
        counts = read_counts(data, made, unlabelled)
        found = Survey(made).estimates(counts)
    if json:
        print(strictjson.dumps(results(found, counts, among_those_who_answered(made, found))), end="")
        return
    console = output()
    if said := spoken(counts):
        console.print(f"{said}\n", markup=False)
    answered, words = among_those_who_answered(made, found), missing_of(made, counts)
    for name, one in found.items():
        console.print(f"{name}\n{one!r}\n", markup=False)
        if name in words:
            console.print(f"{words[name]}\n", markup=False)
        if name in answered:
            console.print(f"{name}, among those who answered\n{answered[name]!r}\n", markup=False)
