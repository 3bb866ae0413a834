"""Plans, counts and pairs of questions, as the survey commands are given them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.plan.plan import Plan

SIMULATION = "SIMULATION: these reports are simulated, nobody was asked."
"""What is said before any number from simulated reports."""

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
    """The plan of a file, its guarantees proved again."""
    from ldpopt.files import read_text
    from ldpopt.survey.plan.plan import Plan

    return Plan.from_json(read_text(path))


UnlabelledOption = Annotated[
    bool,
    typer.Option(
        "--unlabelled",
        help="Also take reports without a manifest, written by hand or by another program: nothing then tells whether "
        "they are of this plan, or reports at all.",
    ),
]


def read_counts(path: str, plan: Plan, unlabelled: bool) -> Counts:
    """The counts of a file, or of the reports at `path`, which may be a database."""
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
    """The counts of a file of counts; reports are read by what needs them."""
    return read_counts(path, plan, unlabelled) if path.endswith(".json") else path


def spoken(counts: Counts) -> str:
    """What must be said before any number from these counts; empty for real reports with manifests."""
    if counts.simulation:
        return SIMULATION
    return (
        "These reports came without a manifest: nothing shows that they are of this plan." if counts.unlabelled else ""
    )
