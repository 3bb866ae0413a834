"""``ldpopt survey export``: collected reports as files that can be handed over."""

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
    """Write collected reports as Parquet, with the manifest that privatized reports carry; without ids and days."""
    from ldpopt.survey.server import export_reports

    made = read_plan(plan)
    with progress("exporting"):
        rows = export_reports(made, db, out)
    output().print(f"{rows:,} reports in {out}", markup=False)
