"""``ldpopt survey export``: collected reports as files for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.survey.files import PlanArgument, read_plan


def export(
    plan: PlanArgument,
    db: Annotated[
        str,
        typer.Argument(metavar="DATABASE", help="reports.db, sqlite:///path or postgresql://...", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A file *.parquet, or a folder of such files.")] = Path(
        "reports.parquet"
    ),
) -> None:
    """Write collected reports as Parquet, without ids and days, with a manifest (their plan and number)."""
    from ldpopt.survey.server import export_reports

    made = read_plan(plan)
    with progress("exporting"):
        rows = export_reports(made, db, out)
    output().print(f"{rows:,} reports in {out}", markup=False)
