"""Answers to a survey.toml (``ldpopt survey new``), and a survey.toml to the plan with its channels (``plan``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.options import ForceOption, TimeLimitOption, seconds
from ldpopt.cli.outputs import claim, kind_of, output, progress, write_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldpopt.datafiles.profile import FileProfile
    from ldpopt.survey.plan.propose import Proposal, Wishes


_WRITTEN = "How a text file is written (guessed where not given)"
_COLUMNS = "What the columns are"


def new(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Answers, a row for each respondent: CSV in any encoding, Excel, Parquet, SPSS, Stata or SAS.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the survey's description.")] = Path("survey.toml"),
    consent: Annotated[Path, typer.Option(help="File for a draft of the consent paragraph.")] = Path("consent.md"),
    name: Annotated[str, typer.Option(help="Name of the survey.", show_default="the file's")] = "",
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="Budget of each respondent, in nats.", show_default="2")
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to ask; may be repeated.", rich_help_panel=_COLUMNS),
    ] = None,
    respondent: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column of respondents' ids.", rich_help_panel=_COLUMNS)
    ] = "",
    carry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A public column that goes into the reports unchanged.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=5|10,20,30",
            help="Bins of a column of numbers: their number, or their edges.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    missing_code: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COLUMN=]CODE", help="A code for 'no answer', in one column or in all.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="Missing answers: a protected `category`, `left-out` (seen by everybody), or `refuse` the file.",
            rich_help_panel=_COLUMNS,
        ),
    ] = "category",
    half_width: Annotated[float, typer.Option(help="Target half-width of every question's 95 % interval.")] = 0.05,
    delimiter: Annotated[
        str, typer.Option(help='Delimiter of the file: "," ";" "tab" or "|".', rich_help_panel=_WRITTEN)
    ] = "",
    encoding: Annotated[
        str, typer.Option(help="Encoding of the file: utf-8, cp1252, cp1250, ...", rich_help_panel=_WRITTEN)
    ] = "",
    decimal: Annotated[str, typer.Option(help='Decimal sign of the file: "." or ",".', rich_help_panel=_WRITTEN)] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask no questions on a terminal.")] = False,
    force: ForceOption = False,
) -> None:
    """Read a file of answers, and write a survey.toml that can be planned at once and a draft of the consent form.

    ldpopt survey new people.csv
    """
    from ldpopt.datafiles.profile import profile
    from ldpopt.reports.for_respondents import consent_paragraph
    from ldpopt.survey.plan.budget import EPSILONS, respondents_needed
    from ldpopt.survey.plan.draft import EPSILON, asked_first, draft, draft_spec, table_lines
    from ldpopt.survey.plan.propose import Wishes, propose
    from ldpopt.survey.plan.spec import SurveySpec
    from ldpopt.survey.plan.survey import plan_survey

    claim([out, consent], force)
    wishes = Wishes(
        tuple(question or ()), respondent, tuple(carry or ()), _bins(bins or []), _codes(missing_code or []),
        _policy(missing), half_width,
    )  # fmt: skip
    with progress("reading"):
        found = profile(file, {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter), encoding, decimal)
        made = propose(found, wishes)
    console = output()
    asking = not yes and not question and sys.stdin.isatty() and sys.stdout.isatty()
    lines = _seen(found, made)
    if asking:
        console.print("\n".join(lines), markup=False)
        made = _chosen(found, made, wishes)
    _require_questions(made, file)
    title = name or " ".join(file.stem.split()) or "Survey"
    with progress("counting respondents", shares=True) as step:
        table = respondents_needed(draft_spec(found, made, title, epsilon or EPSILON), EPSILONS, progress=step)
    needs = ["\nRespondents for the widths asked for, against the budget:"]
    needs += [f"  {line}" for line in table_lines(table, found.rows)]
    if asking:
        console.print("\n".join(needs), markup=False)
        epsilon = typer.prompt("Budget epsilon", default=EPSILON, type=float) if epsilon is None else epsilon
    spec = draft_spec(found, made, title, EPSILON if epsilon is None else epsilon)
    text = draft(found, made, spec, table)
    with progress("designing", shares=True) as step:
        planned = plan_survey(SurveySpec.from_toml(text), progress=step).plan
    write_all({out: text.encode(), consent: consent_paragraph(planned).encode()}, force)
    if not asking:  # a refusal prints only its own line
        console.print("\n".join([*lines, *needs]), markup=False)
    left = len(made.questions) - len(asked_first(made))
    more = f"; {left} more stand in comments" if left else ""
    console.print(f"\nwrote {out} ({_counted(len(spec.questions), 'question')}{more}) and {consent}", markup=False)
    console.print(f"Read both. Then: ldpopt survey plan {out}", markup=False)


def _seen(found: FileProfile, made: Proposal) -> list[str]:
    """Lines about the content of the file, for the holder of the answers."""
    from ldpopt.datafiles.delimited import delimiter_in_words

    written = (
        found.kind if found.kind != "delimited" else f"cells between {delimiter_in_words(found.dialect.delimiter)}"
    )
    if found.kind == "delimited":
        comma = ", decimal comma" if found.dialect.decimal == "," else ""
        written += f", {found.dialect.encoding}{comma}"
    lines = [f"{found.path.name}: {found.rows:,} rows, {_counted(len(found.columns), 'column')} ({written})"]
    if made.respondent is not None:
        lines.append(f"  {made.respondent}: ids of respondents")
    sample = () if made.sample is None else made.sample.columns
    lines += [f"  {name}: how respondents were drawn; carried into the reports as it is" for name in sample]
    lines += [f"  {name}: carried into the reports as it is" for name in made.carry]
    for question in made.questions[:30]:
        asked = question.spec
        shown = ", ".join(str(label) for label in asked.categories[:8]) + (", ..." if len(asked.categories) > 8 else "")
        codes = asked.reading.missing_codes
        missing = f"; no answer: {', '.join(codes)}" if codes else ""
        lines.append(f"  {asked.name}: {len(asked.categories)} answers ({shown}){missing}")
        lines += [f"    {remark}" for remark in question.remarks if remark.startswith("Seen once")]
    if len(made.questions) > 30:
        lines.append(f"  ... and {len(made.questions) - 30} more columns that could be asked")
    lines += [f"  {name}: not asked, {why}" for name, why in made.aside[:30]]
    if len(made.aside) > 30:
        lines.append(f"  ... and {len(made.aside) - 30} more columns that are not asked")
    return lines


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _chosen(found: FileProfile, made: Proposal, wishes: Wishes) -> Proposal:
    """The proposal with the questions that the person at the terminal picks."""
    from dataclasses import replace

    from ldpopt.survey.plan.propose import propose

    picked = [one.spec.name for one in made.questions if typer.confirm(f"Ask {one.spec.name}?", default=True)]
    if not picked:
        raise typer.Abort
    missing = any(one.spec.reading.missing_answers != "refuse" for one in made.questions if one.spec.name in picked)
    policy = wishes.missing_answers
    if missing:
        hidden = typer.confirm("Hide who did not answer (costs some precision)?", default=True)
        policy = "category" if hidden else "left out"
    return propose(found, replace(wishes, questions=tuple(picked), carry=made.carry, missing_answers=policy))


def _require_questions(made: Proposal, file: Path) -> None:
    from ldpopt.errors import Phrase, invalid

    if not made.questions:
        why = "; ".join(f"{name}: {why}" for name, why in made.aside[:3]) or "only ids and carried columns"
        raise invalid("file", "a column of few different answers, or of numbers", Phrase(f"none ({why})"), str(file))


def _policy(word: str) -> str:
    from ldpopt.errors import invalid

    policies = {"category": "category", "left-out": "left out", "left out": "left out", "refuse": "refuse"}
    if word not in policies:
        raise invalid("--missing", "category, left-out or refuse", word)
    return policies[word]


def _bins(given: Sequence[str]) -> dict[str, int | list[float]]:
    from ldpopt.cli.options import numbers
    from ldpopt.errors import invalid

    made: dict[str, int | list[float]] = {}
    for one in given:
        name, sign, said = one.rpartition("=")
        if not sign or not name:
            raise invalid("--bins", "COLUMN=HOW MANY or COLUMN=EDGE,EDGE", one)
        made[name] = int(said) if said.isdecimal() and len(said) < 4 else numbers(said, f"--bins {name}")
    return made


def _codes(given: Sequence[str]) -> dict[str, list[str]]:
    """The codes by column, or under "" for all columns. A code that contains an equals sign needs its column."""
    made: dict[str, list[str]] = {}
    for one in given:
        name, sign, code = one.partition("=")
        made.setdefault(name if sign else "", []).append(code if sign else one)
    return made


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
    from ldpopt.plots.planning import survey_picture
    from ldpopt.survey.plan.spec import SurveySpec
    from ldpopt.survey.plan.survey import plan_survey

    claim([out] if picture is None else [out, picture], force)
    kind = "png" if picture is None else kind_of(picture)
    limit = seconds(time_limit)
    if stages and respondents is None:
        raise invalid("--stages", "the number of respondents, by -n", Phrase("none"))
    spec = SurveySpec.from_toml(read_text(survey))
    if after is not None:
        from ldpopt.cli.survey.arguments import read_counts, read_plan
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
