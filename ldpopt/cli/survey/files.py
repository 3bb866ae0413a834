"""Plans, counts and reports, as arguments of the survey commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.plan.plan import Plan

SIMULATION = "SIMULATION: these reports are simulated, nobody was asked."
"""The line above all numbers from simulated reports."""

PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (plan.json).", show_default=False)]
DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="REPORTS",
        help="Reports (a CSV or Parquet file, a folder, or a collector's database), or counts (*.json).",
        show_default=False,
    ),
]

ReportsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="REPORTS",
        help="Reports: a CSV or Parquet file, or a folder. Counts are not enough.",
        show_default=False,
    ),
]


def read_plan(path: Path) -> Plan:
    """The plan in a file. Its guarantees are proved again."""
    from ldpopt.files import read_text
    from ldpopt.survey.plan.plan import Plan

    return Plan.from_json(read_text(path))


UnlabelledOption = Annotated[
    bool,
    typer.Option(
        "--unlabelled",
        help="Also accept reports without a manifest, written by hand or by another program. Nothing then shows "
        "whether they are reports of this plan.",
    ),
]


def read_counts(path: str, plan: Plan, unlabelled: bool) -> Counts:
    """The counts in a file, or of the reports at `path`, which may be a database."""
    from ldpopt.errors import Phrase, invalid
    from ldpopt.files import read_text
    from ldpopt.survey.collect.aggregate import Counts, aggregate

    if not path.endswith(".json"):
        return aggregate(plan, path, unlabelled=unlabelled)
    counts = Counts.from_json(read_text(path), plan)
    if counts.unlabelled and not unlabelled:
        expected = "counts of reports with manifests (--unlabelled takes others, too)"
        raise invalid("counts", expected, Phrase("others"), path)
    return counts


def read_reports(path: str, plan: Plan, unlabelled: bool) -> Counts | str:
    """The counts in a file of counts; for reports the path itself, which is read later."""
    return read_counts(path, plan, unlabelled) if path.endswith(".json") else path


def spoken(counts: Counts) -> str:
    """The warning above all numbers from these counts; empty for real reports with manifests."""
    if counts.simulation:
        return SIMULATION
    return (
        "These reports came without a manifest: nothing shows that they are of this plan." if counts.unlabelled else ""
    )
