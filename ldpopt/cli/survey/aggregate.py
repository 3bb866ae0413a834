"""``ldpopt survey aggregate``: from reports to counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.outputs import claim, write_all
from ldpopt.cli.survey.files import PlanArgument, UnlabelledOption, read_plan


def aggregate(
    plan: PlanArgument,
    reports: Annotated[
        list[str], typer.Argument(metavar="REPORTS...", help="Privatized or collected reports of one survey round.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the counts.")] = Path("counts.json"),
    pair: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Count two questions together, for a two-way table.")
    ] = None,
    unlabelled: UnlabelledOption = False,
    workers: Annotated[int, typer.Option(help="Number of threads.")] = 1,
    force: ForceOption = False,
) -> None:
    """Count the reports. Estimation needs only these counts."""
    from ldpopt.errors import invalid
    from ldpopt.survey.collect.aggregate import aggregate as run
    from ldpopt.survey.collect.runner import Threads

    claim([out], force)
    made = read_plan(plan)
    pairs = []
    for one in pair or []:
        names = tuple(name.strip() for name in one.split(","))
        if len(names) != 2:
            raise invalid("--pair", "two questions, A,B", one)
        pairs.append((names[0], names[1]))
    with progress("counting"):
        counts = run(made, list(reports), pairs, Threads(workers), unlabelled)
    write_all({out: counts.to_json().encode()}, force)
    what = "simulated reports" if counts.simulation else "reports"
    output().print(f"{counts.rows:,} {what} counted in {out}", markup=False)
