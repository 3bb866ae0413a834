"""``ldpopt survey compare``: groups of respondents, or waves of a survey."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.survey.files import PlanArgument, ReportsArgument, UnlabelledOption, read_plan, spoken
from ldpopt.cli.survey.sample import NO_FLAGS, SampleFlags, with_sample_flags
from ldpopt.cli.survey.shown import FormatOption, OutOption, chosen, show


@with_sample_flags
def compare(
    plan: PlanArgument,
    data: ReportsArgument,
    questions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUESTION]...", help="Questions to compare; by default all.", show_default=False),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Compare the groups of a public column.", show_default=False)
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="The group with which the others are compared; by default the first."),
    ] = None,
    wave: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="PLAN REPORTS", help="Compare with another wave: its plan and its reports.", show_default=False
        ),
    ] = None,
    format: FormatOption = None,
    out: OutOption = None,
    sample: SampleFlags = NO_FLAGS,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """Compare groups or waves: differences of shares with intervals, and tests of no difference.

    ldpopt survey compare plan.json reports.csv --by region

    ldpopt survey compare plan-1.json reports-1.csv --wave plan-2.json reports-2.csv
    """
    from ldpopt.errors import Phrase, invalid
    from ldpopt.reports.analyses import difference_table
    from ldpopt.survey.sample.respondents import Respondents, against_wave

    kind = chosen(format, out, force)
    if (by is None) == (wave is None):
        raise invalid("compare", "--by COLUMN, or --wave PLAN REPORTS", Phrase("neither" if by is None else "both"))
    if against is not None and by is None:
        raise invalid("--against", "a group of --by", Phrase(against))
    made = read_plan(plan)
    asked = sample.analysis(made)
    names = tuple(questions or ())
    with progress("estimating"):
        people = Respondents.read(made, data, asked, () if by is None else (by,), unlabelled)
        warned = [spoken(people.rows.counts)]
        if by is not None:
            found, tests = people.compare(by, names, against)
            title = f"Groups of {by}, {people.n:,} respondents"
        else:
            assert wave is not None
            other = read_plan(wave[0])
            again = sample.analysis(other)
            second = Respondents.read(other, wave[1], again, (), unlabelled)
            warned += [spoken(second.rows.counts)]
            found, tests = against_wave(people, second, names)
            title = f"Two waves, {people.n:,} and {second.n:,} respondents"
            warned.append(
                "The waves are taken to be of different people; of the same people, whose answers agree from wave to "
                "wave, the intervals are too long."
            )
        notes = tuple(dict.fromkeys(said for said in (*warned, str(asked)) if said))
    show(difference_table(title, found, tests, sample.level, notes), kind, out, force)
