"""Answers to a survey.toml (``ldpopt survey new``), and a survey.toml to the plan with its channels (``plan``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.options import ForceOption, TimeLimitOption, argument, numbers, option, seconds
from ldpopt.cli.outputs import claim, kind_of, progress, say, write_all
from ldpopt.cli.survey.arguments import read_counts, read_plan
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldpopt.datafiles.columns import FileProfile
    from ldpopt.survey.plan.propose import Proposal, Wishes


_WRITTEN = "How a text file is written (guessed where not given)"
_COLUMNS = "What the columns are"


def new(
    file: Annotated[
        Path,
        argument(
            "FILE", "Answers, a row for each respondent: CSV in any encoding, Excel, Parquet, SPSS, Stata or SAS."
        ),
    ],
    out: Annotated[Path, option("--out", "-o", "File for the survey's description.")] = Path("survey.toml"),
    consent: Annotated[Path, option("File for a draft of the consent paragraph.")] = Path("consent.md"),
    name: Annotated[str, option("Name of the survey.", default="the file's")] = "",
    epsilon: Annotated[
        float | None, option("--epsilon", "-e", "Budget of each respondent, in nats.", default="2")
    ] = None,
    question: Annotated[
        list[str] | None, option("A column to ask; may be repeated.", metavar="COLUMN", panel=_COLUMNS)
    ] = None,
    respondent: Annotated[str, option("The column of respondents' ids.", metavar="COLUMN", panel=_COLUMNS)] = "",
    carry: Annotated[
        list[str] | None,
        option("A public column that goes into the reports unchanged.", metavar="COLUMN", panel=_COLUMNS),
    ] = None,
    bins: Annotated[
        list[str] | None,
        option(
            "Bins of a column of numbers: their number, or their edges.", metavar="COLUMN=5|10,20,30", panel=_COLUMNS
        ),
    ] = None,
    missing_code: Annotated[
        list[str] | None,
        option("A code for 'no answer', in one column or in all.", metavar="[COLUMN=]CODE", panel=_COLUMNS),
    ] = None,
    missing: Annotated[
        str,
        option(
            "Missing answers: a protected `category`, `left-out` (seen by everybody), or `refuse` the file.",
            metavar="WORD",
            panel=_COLUMNS,
        ),
    ] = "category",
    half_width: Annotated[float, option("Target half-width of every question's 95 % interval.")] = 0.05,
    delimiter: Annotated[str, option('Delimiter of the file: "," ";" "tab" or "|".', panel=_WRITTEN)] = "",
    encoding: Annotated[str, option("Encoding of the file: utf-8, cp1252, cp1250, ...", panel=_WRITTEN)] = "",
    decimal: Annotated[str, option('Decimal sign of the file: "." or ",".', panel=_WRITTEN)] = "",
    yes: Annotated[bool, option("--yes", "-y", "Ask no questions on a terminal.")] = False,
    force: ForceOption = False,
) -> None:
    """Read a file of answers, and write a survey.toml that can be planned at once and a draft of the consent form.

    ldpopt survey new people.csv
    """
    from ldpopt.datafiles.columns import profile
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
    asking = not yes and not question and sys.stdin.isatty() and sys.stdout.isatty()
    lines = _seen(found, made)
    if asking:
        say(*lines)
        made = _chosen(found, made, wishes)
    _require_questions(made, file)
    title = name or " ".join(file.stem.split()) or "Survey"
    with progress("counting respondents", shares=True) as step:
        table = respondents_needed(draft_spec(found, made, title, epsilon or EPSILON), EPSILONS, progress=step)
    needs = ["\nRespondents for the widths asked for, against the budget:"]
    needs += [f"  {line}" for line in table_lines(table, found.rows)]
    if asking:
        say(*needs)
        epsilon = typer.prompt("Budget epsilon", default=EPSILON, type=float) if epsilon is None else epsilon
    spec = draft_spec(found, made, title, EPSILON if epsilon is None else epsilon)
    text = draft(found, made, spec, table)
    with progress("designing", shares=True) as step:
        planned = plan_survey(SurveySpec.from_toml(text), progress=step).plan
    write_all({out: text.encode(), consent: consent_paragraph(planned).encode()}, force)
    if not asking:  # a refusal prints only its own line
        say(*lines, *needs)
    left = len(made.questions) - len(asked_first(made))
    more = f"; {left} more stand in comments" if left else ""
    say(f"\nwrote {out} ({_counted(len(spec.questions), 'question')}{more}) and {consent}")
    say(f"Read both. Then: ldpopt survey plan {out}")


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
    if not made.questions:
        why = "; ".join(f"{name}: {why}" for name, why in made.aside[:3]) or "only ids and carried columns"
        raise invalid("file", "a column of few different answers, or of numbers", Phrase(f"none ({why})"), str(file))


def _policy(word: str) -> str:
    policies = {"category": "category", "left-out": "left out", "left out": "left out", "refuse": "refuse"}
    if word not in policies:
        raise invalid("--missing", "category, left-out or refuse", word)
    return policies[word]


def _bins(given: Sequence[str]) -> dict[str, int | list[float]]:
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
    survey: Annotated[Path, argument("SURVEY", "The survey's description (survey.toml).")],
    out: Annotated[Path, option("--out", "-o", "File for the plan.")] = Path("plan.json"),
    respondents: Annotated[
        int | None,
        option("--respondents", "-n", "Number of available people; the plan then says the precision that they reach."),
    ] = None,
    after: Annotated[
        tuple[Path, str] | None,
        option(
            "An earlier wave of other respondents; the channels are designed for its estimates.",
            metavar="PLAN REPORTS",
            default=False,
        ),
    ] = None,
    stages: Annotated[
        bool, option("--stages", "Say whether a pilot wave saves respondents, and how large it should be (needs -n).")
    ] = False,
    nonresponse: Annotated[
        float | None, option("Share of invited people who will not answer.", default="survey.toml's")
    ] = None,
    design_effect: Annotated[
        float | None,
        option("Factor by which clusters and weights raise the number of respondents needed.", default="survey.toml's"),
    ] = None,
    picture: Annotated[
        Path | None,
        option("Picture (png, svg, pdf) of the budget's split, and of widths and power against respondents."),
    ] = None,
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """For every question design the channel that needs the fewest respondents, and write the plan.

    ldpopt survey plan survey.toml -o plan.json --picture plan.png
    """
    from dataclasses import replace

    from ldpopt.plots.planning import survey_picture
    from ldpopt.survey.plan.spec import SurveySpec
    from ldpopt.survey.plan.survey import plan_survey

    claim([out] if picture is None else [out, picture], force)
    kind = "png" if picture is None else kind_of(picture)
    limit = seconds(time_limit)
    if stages and respondents is None:
        raise invalid("--stages", "the number of respondents, by -n", Phrase("none"))
    try:
        spec = SurveySpec.from_toml(read_text(survey))
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("survey.toml", str(survey))) from None
    if after is not None:
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
    say(repr(made), *(f"  {name}: {design.note}" for name, design in made.designs.items() if design.note))
    if stages and respondents is not None:
        from ldpopt.survey.plan.two_stage import advise_stages

        for question in made.plan.questions:
            with progress("simulating", shares=True) as step:
                advice = advise_stages(question, respondents, time_limit=limit, progress=step)
            say(f"  {question.name}: {advice}")
    if picture is not None:
        say(f"wrote {picture}")
    say(f"wrote {out}, checksum {made.plan.checksum[:16]}")
