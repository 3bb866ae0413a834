"""``ldpopt survey report``: a page with estimates, channels and guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.outputs import claim, write_all
from ldpopt.cli.survey.files import DataArgument, PlanArgument, UnlabelledOption, read_plan, read_reports
from ldpopt.cli.survey.sample import NO_FLAGS, ByOption, SampleFlags, with_sample_flags


@with_sample_flags
def report(
    plan: PlanArgument,
    data: DataArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page (HTML).")] = Path("report.html"),
    by: ByOption = None,
    sample: SampleFlags = NO_FLAGS,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """Write one HTML page: estimates with intervals, channels, guarantees in plain words, design effects."""
    from ldpopt.reports.survey import survey_report
    from ldpopt.survey.plan.survey import Survey

    claim([out], force)
    made = read_plan(plan)
    asked = sample.analysis(made, by)
    with progress("estimating and drawing"):
        found, counts = Survey(made).findings(read_reports(data, made, unlabelled), asked, unlabelled)
        page = survey_report(made, found, counts, analysis=asked)
    write_all({out: page.encode()}, force)
    output().print(f"wrote {out}", markup=False)
