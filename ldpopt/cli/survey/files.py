"""Plans, counts and pairs of questions, as the survey commands are given them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.estimate.estimate import Estimate
    from ldpopt.survey.plan.plan import Plan

PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (plan.json).", show_default=False)]
DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="REPORTS", help="Reports (a CSV or Parquet file, or a folder), or counts (*.json).", show_default=False
    ),
]


def read_plan(path: Path) -> Plan:
    """The plan of a file, its guarantees proved again."""
    from ldpopt.files import read_text
    from ldpopt.survey.plan.plan import Plan

    return Plan.from_json(read_text(path))


def read_counts(path: Path, plan: Plan) -> Counts:
    """The counts of a file, or of the reports at `path`."""
    from ldpopt.files import read_text
    from ldpopt.survey.collect.aggregate import Counts, aggregate

    return Counts.from_json(read_text(path), plan) if path.suffix == ".json" else aggregate(path, plan)


def estimates(plan: Plan, counts: Counts) -> dict[str, Estimate]:
    """The estimate of every question, by name."""
    from ldpopt.survey.estimate.counts import CountTable
    from ldpopt.survey.estimate.estimate import estimate
    from ldpopt.survey.plan.survey import report_channel

    made = {}
    for question in plan.questions:
        channel = report_channel(question)
        made[question.name] = estimate(CountTable.from_counts(counts[question.name], channel.outputs), channel)
    return made
