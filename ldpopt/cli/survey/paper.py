"""``ldpopt survey paper`` and ``ldpopt survey enter``: sheets to randomize with by hand, and entry of the letters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import ForceOption, TimeLimitOption, seconds
from ldpopt.cli.outputs import claim_folder, write_folder
from ldpopt.cli.survey.files import PlanArgument, read_plan


def paper(
    plan: PlanArgument,
    device: Annotated[
        str,
        typer.Option(
            help="Randomizing device: dice, two-dice, d10, two-d10, cards, spinner or coins.", show_default=False
        ),
    ],
    tosses: Annotated[int, typer.Option(help="Number of tosses, for --device coins.")] = 5,
    size: Annotated[str, typer.Option("--paper", help="Paper size: a4 or letter.")] = "a4",
    simpler: Annotated[
        float, typer.Option(help="Merge letters as long as the error grows by at most this share.")
    ] = 0.01,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the sheets and their plan.")] = Path("paper"),
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """Print sheets with which people randomize by hand: cards, instructions, the interviewer's form, the guarantees.

    ldpopt survey paper plan.json --device two-dice
    """
    from ldpopt.errors import invalid
    from ldpopt.reports.sheets import PAPERS, paper_sheets
    from ldpopt.survey.paper.design import paper_files, paper_survey
    from ldpopt.survey.paper.devices import device_named

    if size not in PAPERS:
        raise invalid("--paper", f"one of {', '.join(PAPERS)}", size)
    thing = device_named(device, tosses)
    claim_folder(out, force)
    limit = seconds(time_limit)
    made = read_plan(plan)
    with progress("designing", shares=True) as step:
        survey = paper_survey(made, thing, simpler, time_limit=limit, progress=step)
    sheets = paper_sheets(survey, size)
    write_folder(out, {"sheets.pdf": sheets.pdf, **paper_files(survey)}, force)
    console = output()
    for number, question in enumerate(survey.plan.questions, 1):
        k, m = question.channel.shape
        told = f"{k} answers -> {m} letters, epsilon {question.epsilon:.4g} of {survey.intended[question.name]:.4g}"
        loss = f"{100 * survey.losses[question.name]:.1f} % more respondents than without the device"
        console.print(f"  {question.name}: {told}, {loss} (channel-{number}.json)", markup=False)
    for warning in sheets.warnings:
        console.print(f"  warning: {warning}", markup=False)
    console.print(f"wrote {out}: sheets.pdf, and the plan of its reports in plan.json", markup=False)


def enter(
    plan: PlanArgument,
    codes: Annotated[
        Path, typer.Argument(metavar="CODES", help="CSV file of the letters, with a row for each person.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the reports: *.csv or *.parquet.")] = Path(
        "reports.csv"
    ),
    leave_out_incomplete: Annotated[
        bool,
        typer.Option(
            "--leave-out-incomplete", help="Leave out and count rows without a letter, instead of refusing the file."
        ),
    ] = False,
) -> None:
    """Check the letters that were typed from paper, and write them as reports for aggregate, estimate and report.

    ldpopt survey enter paper/plan.json codes.csv
    """
    from ldpopt.survey.paper.entry import enter_reports

    made = read_plan(plan)
    found = enter_reports(made, codes, out, leave_out_incomplete)
    console = output()
    left = f"; {found.left_out:,} incomplete rows left out" if found.left_out else ""
    console.print(f"{found.rows:,} reports in {out}{left}", markup=False)
