"""``ldpopt survey plan``: from the questions to the channels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import ForceOption, TimeLimitOption, seconds
from ldpopt.cli.outputs import claim, kind_of, write_all


def plan(
    survey: Annotated[
        Path, typer.Argument(metavar="SURVEY", help="The survey's description (survey.toml).", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the plan.")] = Path("plan.json"),
    respondents: Annotated[
        int | None,
        typer.Option(
            "--respondents", "-n", help="Number of available people; the plan then says the precision that they reach."
        ),
    ] = None,
    after: Annotated[
        tuple[Path, str] | None,
        typer.Option(
            metavar="PLAN REPORTS",
            help="An earlier wave of other respondents; the channels are designed for its estimates.",
            show_default=False,
        ),
    ] = None,
    stages: Annotated[
        bool,
        typer.Option(
            "--stages", help="Say whether a pilot wave saves respondents, and how large it should be (needs -n)."
        ),
    ] = False,
    nonresponse: Annotated[
        float | None, typer.Option(help="Share of invited people who will not answer.", show_default="survey.toml's")
    ] = None,
    design_effect: Annotated[
        float | None,
        typer.Option(
            help="Factor by which clusters and weights raise the number of respondents needed.",
            show_default="survey.toml's",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Picture (png, svg, pdf) of the budget's split, and of widths and power against respondents."
        ),
    ] = None,
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """For every question design the channel that needs the fewest respondents, and write the plan.

    ldpopt survey plan survey.toml -o plan.json --picture plan.png
    """
    from dataclasses import replace

    from ldpopt.errors import Phrase, invalid
    from ldpopt.files import read_text
    from ldpopt.reports.pictures import survey_picture
    from ldpopt.survey.plan.spec import SurveySpec
    from ldpopt.survey.plan.survey import plan_survey

    claim([out] if picture is None else [out, picture], force)
    kind = "png" if picture is None else kind_of(picture)
    limit = seconds(time_limit)
    if stages and respondents is None:
        raise invalid("--stages", "the number of respondents, by -n", Phrase("none"))
    spec = SurveySpec.from_toml(read_text(survey))
    if after is not None:
        from ldpopt.cli.survey.files import read_counts, read_plan
        from ldpopt.survey.plan.survey import Survey
        from ldpopt.survey.plan.two_stage import second_spec

        earlier = read_plan(after[0])
        spec = second_spec(spec, Survey(earlier).estimates(read_counts(str(after[1]), earlier, False)), earlier.round)
    spec = replace(
        spec,
        nonresponse=spec.nonresponse if nonresponse is None else nonresponse,
        design_effect=spec.design_effect if design_effect is None else design_effect,
    )
    with progress("designing", shares=True) as step:
        made = plan_survey(spec, respondents, time_limit=limit, progress=step)
    files = {out: made.plan.to_json().encode()}
    if picture is not None:
        files[picture] = survey_picture(made.plan, spec, kind)
    write_all(files, force)
    console = output()
    console.print(repr(made), markup=False)
    for name, design in made.designs.items():
        if design.note:
            console.print(f"  {name}: {design.note}", markup=False)
    if stages and respondents is not None:
        from ldpopt.survey.plan.two_stage import advise_stages

        for question in made.plan.questions:
            with progress("simulating", shares=True) as step:
                advice = advise_stages(question, respondents, time_limit=limit, progress=step)
            console.print(f"  {question.name}: {advice}", markup=False)
    if picture is not None:
        console.print(f"wrote {picture}", markup=False)
    console.print(f"wrote {out}, checksum {made.plan.checksum[:16]}", markup=False)
