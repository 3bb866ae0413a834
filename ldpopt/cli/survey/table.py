"""``ldpopt survey table``: the joint distribution of two answers."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.console import progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.survey.files import PlanArgument, ReportsArgument, UnlabelledOption, read_plan, spoken
from ldpopt.cli.survey.sample import NO_FLAGS, SampleFlags, with_sample_flags
from ldpopt.cli.survey.shown import FormatOption, OutOption, chosen, show


@with_sample_flags
def table(
    plan: PlanArgument,
    data: ReportsArgument,
    row: Annotated[
        str, typer.Argument(metavar="ROW", help="A question or a public column, for the rows.", show_default=False)
    ],
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="Another one, for the columns.", show_default=False)],
    percent: Annotated[str, typer.Option(help="Shares within all, row or column.")] = "all",
    format: FormatOption = None,
    out: OutOption = None,
    sample: SampleFlags = NO_FLAGS,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """Cross two questions, or a question and a public column: shares with intervals, and a test of independence.

    ldpopt survey table plan.json reports.csv drug evade --percent row
    """
    from ldpopt.reports.analyses import two_way_rows
    from ldpopt.survey.sample.respondents import Respondents

    kind, made = chosen(format, out, force), read_plan(plan)
    asked = sample.analysis(made)
    with progress("estimating"):
        people = Respondents.read(made, data, asked, (row, column), unlabelled)
        found = people.two_way(row, column)
        notes = tuple(said for said in (spoken(people.rows.counts), str(asked)) if said)
        title = f"{row} by {column}, {people.n:,} respondents"
        shown = two_way_rows(title, found, (row, column), percent, sample.level, notes)
    show(shown, kind, out, force)
