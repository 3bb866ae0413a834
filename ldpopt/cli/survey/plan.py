"""``ldpopt survey plan``: from the questions to the channels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.outputs import claim, write_all


def plan(
    survey: Annotated[Path, typer.Argument(metavar="SURVEY", help="survey.toml", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Plan file.")] = Path("plan.json"),
    respondents: Annotated[
        int | None, typer.Option("--respondents", "-n", help="Respondents at hand: says what they reach.")
    ] = None,
    after: Annotated[
        tuple[Path, str] | None,
        typer.Option(
            metavar="PLAN REPORTS",
            help="An earlier wave of other respondents: its estimates are what the channels are designed for.",
            show_default=False,
        ),
    ] = None,
    stages: Annotated[
        bool,
        typer.Option("--stages", help="Say whether a pilot wave pays, and of how many of the respondents (with -n)."),
    ] = False,
    force: ForceOption = False,
) -> None:
    """Design the channel of every question that needs the fewest respondents, and write the plan.

    ldpopt survey plan survey.toml -o plan.json
    """
    from ldpopt.errors import Phrase, invalid
    from ldpopt.files import read_text
    from ldpopt.survey.plan.spec import SurveySpec
    from ldpopt.survey.plan.survey import plan_survey

    claim([out], force)
    if stages and respondents is None:
        raise invalid("--stages", "the number of respondents, by -n", Phrase("none"))
    spec = SurveySpec.from_toml(read_text(survey))
    if after is not None:
        from ldpopt.cli.survey.files import read_counts, read_plan
        from ldpopt.survey.plan.survey import Survey
        from ldpopt.survey.plan.two_stage import second_spec

        earlier = read_plan(after[0])
        spec = second_spec(spec, Survey(earlier).estimates(read_counts(str(after[1]), earlier, False)), earlier.round)
    with progress("designing", len(spec.questions)) as step:
        made = plan_survey(spec, respondents, step)
    write_all({out: made.plan.to_json().encode()}, force)
    console = output()
    console.print(repr(made), markup=False)
    for name, design in made.designs.items():
        if design.note:
            console.print(f"  {name}: {design.note}", markup=False)
    if stages and respondents is not None:
        from ldpopt.survey.plan.two_stage import advise_stages

        for question in made.plan.questions:
            console.print(f"  {question.name}: {advise_stages(question, respondents)}", markup=False)
    console.print(f"wrote {out}, checksum {made.plan.checksum[:16]}", markup=False)
