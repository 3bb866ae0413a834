"""Propose a survey.toml from answers (``ldpopt survey new``), and design its plan with the channels (``plan``)."""

from __future__ import annotations

import shlex
import sys
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import typer

from ldpopt.cli import bins as binned
from ldpopt.cli import claim, kind_of, note, number, options, progress, say, seconds, write_all
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import naming, read_text
from ldpopt_survey.cli.arguments import read_counts, read_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldpopt_survey.collect.remaining import RemainingBudget
    from ldpopt_survey.datafiles.columns import FileProfile
    from ldpopt_survey.plan.planned_survey import PlannedSurvey
    from ldpopt_survey.plan.propose import Proposal, ProposalOptions
    from ldpopt_survey.plan.spec import QuestionSpec, Revealed, SurveySpec


@options("""
    file: FILE | Answers, one row per respondent: CSV, Excel, Parquet, SPSS, Stata or SAS.
    out: --out -o | File for the survey's description.
    consent: --consent | File for a draft of the consent paragraph.
    name: --name | Name of the survey. [default: the file's]
    epsilon: --epsilon -e | Budget of each respondent, in nats. [default: 2]
    half_width: --half-width | Target half-width of every question's 95 % interval.
    yes: --yes -y | Accept the proposal without questions, even if it merges or drops answers.
    # What the columns are
    question: --question COLUMN | Column to use as a question; may be repeated.
    respondent: --respondent COLUMN | Column of respondents' ids.
    carry: --carry COLUMN | Public column to copy unchanged into the reports.
    bins: --bins COLUMN=5|10,20,30 | Bins of a numeric column: their number, or their edges.
    missing_code: --missing-code [COLUMN=]CODE | Missing-value code, in one column or in all.
    answer: --answer COLUMN=CODE | Entry that is an answer although it looks like a missing-value code.
    merge: --merge COLUMN | Merge answers that differ only in case and blanks.
    keep_apart: --keep-apart COLUMN | Keep answers that differ only in case and blanks as different.
    blank_is_no: --blank-is-no QUESTION | Count an empty box as not ticked.
    blank_is_missing: --blank-is-missing QUESTION | Count an empty box as a missing answer, not as "not ticked".
    missing: --missing WORD | Missing answers: a protected `category`, `left-out` (visible to everyone), or `refuse` the
      file.
    accept: --accept QUESTION=COLUMN | Accept the publication of a column, or of another question's empty reports, that
      discloses answers.
    # How a text file is written (guessed where not given)
    delimiter: --delimiter | Delimiter of the file: "," ";" "tab" or "|".
    encoding: --encoding | Encoding of the file: utf-8, cp1252, cp1250, ...
    decimal: --decimal | Decimal sign of the file: "." or ",".
    header_rows: --header-rows 0.. | Number of rows above the first respondent: 1; 3 as in Qualtrics; 0 without names.
    """)
def new(
    file: Path, out: Path = Path("survey.toml"), consent: Path = Path("consent.md"), name: str = "",
    epsilon: float | None = None, question: list[str] | None = None, respondent: str = "",
    carry: list[str] | None = None, bins: list[str] | None = None, missing_code: list[str] | None = None,
    missing: str = "category", accept: list[str] | None = None,
    half_width: float = 0.05, delimiter: str = "", encoding: str = "", decimal: str = "",
    header_rows: int | None = None, answer: list[str] | None = None, merge: list[str] | None = None,
    keep_apart: list[str] | None = None, blank_is_no: list[str] | None = None,
    blank_is_missing: list[str] | None = None, time_limit: str = "",
    yes: bool = False, force: bool = False,
) -> None:  # fmt: skip
    """Propose a survey.toml and a draft of the consent form from a file of answers.

    --accept publishes a column, the empty reports of another question or the 'row order', which disclose answers;
    'respondent=COLUMN' accepts a column that identifies people. The consent form states it.

    ldpopt survey new people.csv
    """
    from ldpopt_survey.datafiles.columns import profile
    from ldpopt_survey.plan.budget import TABULATED_EPSILONS
    from ldpopt_survey.plan.draft import DEFAULT_EPSILON, draft, draft_spec, drafted_questions, table_lines
    from ldpopt_survey.plan.propose import ProposalOptions, propose
    from ldpopt_survey.plan.survey import plan_survey, respondents_needed
    from ldpopt_survey.reports.promises import consent_paragraph

    claim([out, consent], force)
    limit = seconds(time_limit)
    if missing not in ("category", "left-out", "left out", "refuse"):
        raise invalid("--missing", "category, left-out or refuse", missing)
    proposal_options = ProposalOptions(
        tuple(question or ()), respondent, tuple(carry or ()), _parse_bins(bins or []),
        _parse_codes(missing_code or []),
        missing.replace("-", " "), half_width, _parse_codes(answer or []), tuple(merge or ()), tuple(keep_apart or ()),
        tuple(blank_is_no or ()), tuple(blank_is_missing or ()),
    )  # fmt: skip
    with progress("reading"):
        delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
        file_profile = profile(file, delimiter, encoding, decimal, header_rows)
        proposal = propose(file_profile, proposal_options)
    is_terminal = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    is_interactive = is_terminal and not question
    lines = _file_lines(file_profile, proposal)
    if is_interactive:
        say(*lines)
    if not yes:
        proposal, proposal_options = _confirm_merges(file_profile, proposal, proposal_options, is_terminal)
    if is_interactive:
        proposal = _choose_questions(file_profile, proposal, proposal_options)
    if not proposal.questions:
        reason = "; ".join(f"{name}: {reason}" for name, reason in proposal.aside[:3]) or "only ids and carried columns"
        raise invalid("file", "a column of few different answers, or of numbers", Phrase(f"none ({reason})"), str(file))
    title, revealed = name or " ".join(file.stem.split()) or "Survey", _parse_accepted(accept or [])
    with progress("looking for leaks"):
        proposal, leak_lines = _without_leaks(file_profile, proposal, title, revealed)

    def design_plan() -> tuple[SurveySpec, PlannedSurvey]:
        chosen_epsilon = DEFAULT_EPSILON if epsilon is None else epsilon
        spec = draft_spec(file_profile, proposal, title, chosen_epsilon, revealed)
        with progress("designing", shares=True) as step:
            return spec, plan_survey(spec, time_limit=limit, progress=step)

    designed = None if is_interactive else design_plan()
    known_respondents = {} if designed is None else {designed[0].epsilon or DEFAULT_EPSILON: designed[1].respondents}
    with progress("counting respondents", shares=True) as step:
        sample_spec = draft_spec(file_profile, proposal, title, epsilon or DEFAULT_EPSILON)
        needs_table = respondents_needed(
            sample_spec, TABULATED_EPSILONS, known_respondents=known_respondents, time_limit=limit, progress=step
        )
    need_lines = ["\nRespondents for the widths asked for, against the budget:"]
    need_lines += [f"  {line}" for line in table_lines(needs_table, file_profile.rows)]
    if is_interactive:
        say(*need_lines)
        epsilon = typer.prompt("Budget epsilon", default=DEFAULT_EPSILON, type=float) if epsilon is None else epsilon
    spec, planned = designed or design_plan()
    text = draft(file_profile, proposal, spec, needs_table)
    write_all({out: text.encode(), consent: consent_paragraph(planned.plan).encode()}, force)
    if not is_interactive:  # a refusal prints only its own line
        say(*lines, *need_lines)
    say(*leak_lines)
    remaining = len(proposal.questions) - len(drafted_questions(proposal))
    suffix = f"; {remaining} more stand in comments" if remaining else ""
    say(f"\nwrote {out} ({_count_text(len(spec.questions), 'question')}{suffix}) and {consent}")
    say(f"Read both. Then: ldpopt survey plan {out}")


def _without_leaks(file: FileProfile, proposal: Proposal, title: str, revealed: Revealed) -> tuple[Proposal, list[str]]:
    """The proposal with its routes, and without the columns of a sample that were taken from their names and leak.

    Lines about these columns are for the person at the terminal. `InvalidInput` for leaks of requested columns.
    """
    from dataclasses import replace

    from ldpopt_survey.collect.answers import partitions
    from ldpopt_survey.collect.leaks import add_routes, find_leaks, list_unaccepted_leaks, refuse_leaks, sample_rows
    from ldpopt_survey.plan.draft import SAMPLE_KEYS, draft_spec
    from ldpopt_survey.sample.spec import SampleSpec

    ids = [] if proposal.respondent is None else [proposal.respondent]
    sample = {role: name for role in SAMPLE_KEYS if (name := getattr(proposal.sample, role, None)) is not None}
    columns = [*proposal.columns, *proposal.carry, *sample.values(), *ids]
    table = sample_rows(partitions([file.path], file.dialect, trim_empty=True), list(dict.fromkeys(columns)))
    proposal, lines = add_routes(proposal, table), []
    spec = draft_spec(file, proposal, title, revealed=revealed)
    leaks = list_unaccepted_leaks(find_leaks(spec, table), spec.revealed)
    for leak in leaks:
        for role in [role for role, column in sample.items() if column in leak.sources]:
            lines.append(f"  {sample.pop(role)}: not carried as {role}, {str(leak).partition(', ')[2]}")
            lines.append(
                f"    (to publish it, as the consent form says then: --accept {leak.subject}={','.join(leak.sources)})"
            )
    if lines:
        proposal = replace(proposal, sample=SampleSpec(**sample) if sample else None)
        leaks = find_leaks(draft_spec(file, proposal, title, revealed=revealed), table)
    refuse_leaks(leaks, spec.revealed)
    return proposal, lines


def _confirm_merges(
    file: FileProfile, proposal: Proposal, proposal_options: ProposalOptions, is_terminal: bool
) -> tuple[Proposal, ProposalOptions]:
    """The proposal after a person confirmed guesses that merge or drop answers, by options or at the terminal.

    `InvalidInput` with the options of each guess without a terminal.
    """
    from ldpopt_survey.plan.propose import propose

    while merges := proposal.merges:
        if not is_terminal:
            guesses = [
                f"{merging.question}: {merging.change} ({shlex.join(merging.accept)}, or {shlex.join(merging.decline)})"
                for merging in merges[:MAX_GUESSES_LISTED]
            ]
            guesses += [f"and {len(merges) - MAX_GUESSES_LISTED} more"] if len(merges) > MAX_GUESSES_LISTED else []
            raise InvalidInput(
                f"{file.path}: the proposal would merge or drop answers; pass --yes to accept all of it, or one option "
                f"for each: {'; '.join(guesses)}"
            )
        for merging in merges:
            is_accepted = typer.confirm(f"{merging.question}: {merging.change}. Is that right?", default=True)
            option, value = merging.accept if is_accepted else merging.decline
            proposal_options = _with_option(proposal_options, option, value, merging.question)
        revised = propose(file, proposal_options)
        if len(revised.merges) >= len(merges):
            break
        proposal = revised
    return proposal, proposal_options


MAX_GUESSES_LISTED = 12
"""The largest number of guesses in an error message."""


def _with_option(proposal_options: ProposalOptions, option: str, value: str, question: str) -> ProposalOptions:
    """The wishes with one more option of the command line."""
    from dataclasses import replace

    code = value.removeprefix(f"{question}=")
    match option:
        case "--missing-code":
            codes = {
                **proposal_options.missing_codes,
                question: [*proposal_options.missing_codes.get(question, ()), code],
            }
            return replace(proposal_options, missing_codes=codes)
        case "--answer":
            return replace(
                proposal_options,
                answers={**proposal_options.answers, question: [*proposal_options.answers.get(question, ()), code]},
            )
        case "--merge":
            return replace(proposal_options, merge=(*proposal_options.merge, value))
        case "--keep-apart":
            return replace(proposal_options, keep_apart=(*proposal_options.keep_apart, value))
        case "--blank-is-no":
            return replace(proposal_options, blank_is_no=(*proposal_options.blank_is_no, value))
    return replace(proposal_options, blank_is_missing=(*proposal_options.blank_is_missing, value))


def _parse_accepted(options: Sequence[str]) -> Revealed:
    accepted_sources: dict[str, list[str]] = {}
    for option in options:
        name, sign, sources = option.partition("=")
        if not (name and sign and sources):
            raise invalid("--accept", "QUESTION=COLUMN", option)
        accepted_sources.setdefault(name, []).extend(sources.split(","))
    return tuple((name, tuple(sources)) for name, sources in accepted_sources.items())


def _file_lines(file: FileProfile, proposal: Proposal) -> list[str]:
    """Lines about the content of the file, for the holder of the answers."""
    from ldpopt.files.delimited import delimiter_in_words

    format_text, dialect = file.kind, file.dialect
    if format_text == "delimited":
        comma = ", decimal comma" if dialect.decimal == "," else ""
        format_text = f"cells between {delimiter_in_words(dialect.delimiter)}, {dialect.encoding}{comma}"
    lines = [f"{file.path.name}: {file.rows:,} rows, {_count_text(len(file.columns), 'column')} ({format_text})"]
    if file.empty_rows:
        lines.append(f"  {_count_text(file.empty_rows, 'empty row')} at the end: nobody, and left out")
    if proposal.respondent is not None:
        lines.append(f"  {proposal.respondent}: ids of respondents")
    sample = () if proposal.sample is None else proposal.sample.columns
    lines += [f"  {name}: how respondents were drawn; carried into the reports as it is" for name in sample]
    lines += [f"  {name}: carried into the reports as it is" for name in proposal.carry]
    for question in proposal.questions[:30]:
        spec = question.spec
        labels = getattr(spec, "options", ()) or spec.categories
        answer_text = ", ".join(str(label) for label in labels[:8]) + (", ..." if len(labels) > 8 else "")
        missing_note = f"; no answer: {', '.join(codes)}" if (codes := spec.reading.missing_codes) else ""
        lines.append(f"  {spec.name}: {len(labels)} {_kind_of(spec)} ({answer_text}){missing_note}")
        lines += [f"    {remark}" for remark in question.observations]
    if len(proposal.questions) > 30:
        lines.append(f"  ... and {len(proposal.questions) - 30} more columns that could be asked")
    lines += [f"  {name}: not asked, {reason}" for name, reason in proposal.aside[:30]]
    if len(proposal.aside) > 30:
        lines.append(f"  ... and {len(proposal.aside) - 30} more columns that are not asked")
    return lines


def _kind_of(spec: QuestionSpec) -> str:
    return "options, any of which may be chosen" if spec.type_name == "any of" else "answers"


def _count_text(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _choose_questions(file: FileProfile, proposal: Proposal, proposal_options: ProposalOptions) -> Proposal:
    """The proposal with the questions that the person at the terminal picks."""
    from dataclasses import replace

    from ldpopt_survey.plan.propose import propose

    chosen_names = [
        question.spec.name
        for question in proposal.questions
        if typer.confirm(f"Ask {question.spec.name}?", default=True)
    ]
    if not chosen_names:
        raise typer.Abort
    policy = proposal_options.missing_answers
    if any(
        question.spec.reading.missing_answers != "refuse"
        for question in proposal.questions
        if question.spec.name in chosen_names
    ):
        hides_nonresponse = typer.confirm("Hide who did not answer (costs some precision)?", default=True)
        policy = "category" if hides_nonresponse else "left out"
    return propose(
        file, replace(proposal_options, questions=tuple(chosen_names), carry=proposal.carry, missing_answers=policy)
    )


def _parse_bins(options: Sequence[str]) -> dict[str, int | list[float]]:
    bins: dict[str, int | list[float]] = {}
    for option in options:
        name, sign, text = option.rpartition("=")
        if not sign or not name:
            raise invalid("--bins", "COLUMN=HOW MANY or COLUMN=EDGE,EDGE", option)
        bins[name] = binned(text, f"--bins {name}")
    return bins


def _parse_codes(options: Sequence[str]) -> dict[str, list[str]]:
    """The codes by column, or under "" for all columns. A code that contains an equals sign needs its column."""
    codes: dict[str, list[str]] = {}
    for option in options:
        name, sign, code = option.partition("=")
        codes.setdefault(name if sign else "", []).append(code if sign else option)
    return codes


def _within_promises(
    spec: SurveySpec, out: Path, ledger: Path | None, respondents_are_new: bool
) -> tuple[SurveySpec, RemainingBudget | None, list[str]]:
    """Limit the description to the promises of earlier rounds; return it with the remaining budget and messages.

    Without `--ledger`, the ledger in the plan's folder counts if the survey declares its rounds. With
    `respondents_are_new`, the respondents are other people, and it does not count.
    """
    from ldpopt_survey.collect.ledger import ledger_of
    from ldpopt_survey.collect.remaining import within_promises

    if ledger is not None and not ledger.is_file():
        raise invalid("--ledger", "the ledger of earlier rounds", Phrase("no file"), str(ledger))
    if spec.respondent is None or spec.round < 2:
        if ledger is not None:
            raise invalid("--ledger", "a respondent column and a round from 2 in survey.toml", Phrase("none of these"))
        return spec, None, []
    if ledger is None and (spec.rounds is None or respondents_are_new):
        return spec, None, []
    limited_spec, budget = within_promises(spec, ledger or ledger_of(out, spec))
    if not budget.people:
        return spec, None, []
    lines = [f"{repr(budget)[:1].upper()}{repr(budget)[1:]}."]
    for name in ("epsilon", "eta"):
        if getattr(limited_spec, name) != getattr(spec, name):
            requested = getattr(spec, name)
            instead = "" if requested is None else f", not {requested:g}"
            lines.append(
                f"Planned with {name} at most {getattr(limited_spec, name):.6g}{instead}: no more was promised."
            )
    return limited_spec, budget, lines


@options("""
    survey: SURVEY | The survey's description (survey.toml).
    out: --out -o | File for the plan.
    respondents: --respondents -n | Number of available respondents; the plan then states the precision they give.
    after: --after PLAN REPORTS | Design the channels for the estimates of an earlier wave of other respondents.
    ledger: --ledger FILE | Ledger of earlier rounds, whose announced limits are respected. [default: in the plan's
      folder]
    stages: --stages | Advise whether a pilot wave saves respondents, and how large it should be (requires -n).
    nonresponse: --nonresponse | Fraction of invited people who will not answer. [default: from survey.toml]
    design_effect: --design-effect | Factor by which clusters and weights increase the sample size. [default: from
      survey.toml]
    picture: --picture | File for the figure of budget, widths and power (png, svg, pdf, pgf).
    shuffled: --shuffled RESPONDENTS 1.. | Also state the central (epsilon, delta) guarantee if a shuffler hides the
      senders.
    delta: --delta DELTA | Delta of that guarantee, in [0, 1].
    prove: --prove | Prove a tighter lower bound on the respondents needed, which takes up to minutes.
    proof: --proof | File for the proved lower bound on the respondents that any survey needs.
    """)
def plan(
    survey: Path, out: Path = Path("plan.json"), respondents: int | None = None,
    after: tuple[Path, str] | None = None, stages: bool = False, nonresponse: float | None = None,
    design_effect: float | None = None, shuffled: int | None = None, delta: str = "1e-6", picture: Path | None = None,
    prove: bool = False, proof: Path | None = None, time_limit: str = "", json: bool = False, force: bool = False,
    ledger: Path | None = None,
) -> None:  # fmt: skip
    """Design for every question the channel that needs the fewest respondents.

    The plan is written to --out.

    ldpopt survey plan survey.toml -o plan.json --picture plan.png
    """
    from dataclasses import replace

    from ldpopt_survey.plan.public_question import combinations_warning
    from ldpopt_survey.plan.spec import SurveySpec
    from ldpopt_survey.plan.survey import plan_survey

    claim([path for path in (out, picture, proof) if path is not None], force)
    picture_format = "png" if picture is None else kind_of(picture)
    seconds_limit = seconds(time_limit)
    if stages and respondents is None:
        raise InvalidInput("--stages requires the number of respondents: pass -n")
    text = read_text(survey)
    with naming(survey):
        try:
            spec = SurveySpec.from_toml(text)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace("survey.toml", str(survey))) from None
    if after is not None:
        from ldpopt_survey.plan.two_stage import second_spec
        from ldpopt_survey.survey import Survey

        earlier_plan = read_plan(after[0])
        spec = second_spec(
            spec, Survey(earlier_plan).estimates(read_counts(str(after[1]), earlier_plan, False)), earlier_plan.round
        )
    spec = replace(
        spec,
        nonresponse=spec.nonresponse if nonresponse is None else nonresponse,
        design_effect=spec.design_effect if design_effect is None else design_effect,
    )
    spec, budget, lines = _within_promises(spec, out, ledger, after is not None)
    start_time = monotonic()
    with progress("designing", shares=True) as step:
        planned_survey = plan_survey(spec, respondents, time_limit=seconds_limit, progress=step)
    if budget is not None:
        budget.require(planned_survey.plan)
    if prove:
        planned_survey = _prove(
            planned_survey,
            spec,
            None if seconds_limit is None else max(seconds_limit - (monotonic() - start_time), 1e-9),
        )
    shuffling_note = ""
    if shuffled is not None:
        from ldpopt_survey.reports.promises import after_shuffling_in_words

        shuffling_note = after_shuffling_in_words(planned_survey.plan, shuffled, number(delta, "--delta"))
    files = {out: planned_survey.plan.to_json().encode()}
    if picture is not None:
        from ldpopt_survey.pictures import survey_picture

        files[picture] = survey_picture(planned_survey.plan, spec, picture_format)
    if proof is not None and planned_survey.proof is not None:
        files[proof] = planned_survey.proof.to_json().encode()
    write_all(files, force)
    if json:
        result = planned_survey.to_dict()
        if budget is not None:
            result["remaining"] = {
                "epsilon": budget.epsilon if budget.epsilon < inf else None, "people": budget.people,
                "exhausted": budget.exhausted,
            }  # fmt: skip
        print(strict.json_text(result), end="")
        return
    say(*lines)
    if spec.sample is not None and spec.sample.columns and spec.design_effect == 1:
        sample_columns_text = ", ".join(spec.sample.columns)
        say(f"Widths are those of a simple sample: {sample_columns_text} may widen them (see --design-effect).")
    say(
        repr(planned_survey),
        *(f"  {name}: {design.note}" for name, design in planned_survey.designs.items() if design.note),
    )
    if stages and respondents is not None:
        from ldpopt_survey.plan.two_stage import advise_stages

        for question in planned_survey.plan.questions:
            if question.parts or question.measure == "mean":
                say(f"  {question.name}: no advice on stages for a mean, or for several questions in one report")
                continue
            question_respondents = max(1, int(respondents * question.probability))
            with progress("simulating", shares=True) as step:
                advice = advise_stages(question, question_respondents, time_limit=seconds_limit, progress=step)
            say(f"  {question.name}: {advice}")
    people = planned_survey.respondents if respondents is None else respondents
    say(*filter(None, [shuffling_note, combinations_warning(spec.public, people)]))
    if picture is not None:
        say(f"wrote {picture}")
    say(f"wrote {out}, checksum {planned_survey.plan.checksum[:16]}")


def _prove(planned_survey: PlannedSurvey, spec: SurveySpec, limit: float | None) -> PlannedSurvey:
    """The plan with the best bound that is proved until the time is over, or Ctrl-C is pressed.

    Each better bound is shown on standard error. After an interruption, the result is the plan with the best bound.
    """
    from ldpopt_survey.plan.survey import closer_bounds

    start_time, stop_reason = monotonic(), ""

    def so_far() -> None:
        bound = f"any survey needs {planned_survey.least:,} respondents if the answers are independent"
        note(f"proving, {monotonic() - start_time:.0f} s: {bound}, so far")

    try:
        with progress("proving", shares=True) as step:
            so_far()
            for improved_survey in closer_bounds(planned_survey, spec, time_limit=limit, progress=step):
                planned_survey = improved_survey
                so_far()
    except KeyboardInterrupt:
        stop_reason = "by Ctrl-C"
    if limit is not None and monotonic() - start_time >= limit:
        stop_reason = "by the time limit"
    if stop_reason:
        note(
            f"the proof was stopped {stop_reason}: {planned_survey.least:,} is the best bound so far; the least may be "
            "larger"
        )
    return planned_survey


@options("""
    out: --out -o | File for the consent form.
    shuffled: --shuffled RESPONDENTS 1.. | Also state the central guarantee if a shuffler hides the senders of
      RESPONDENTS reports.
    delta: --delta DELTA | Delta of that guarantee, in [0, 1].
    language: --language | Language of the form: en, de or ar.
    texts: --texts FILE | Texts of the survey in one language (JSON), with sentences of the form under "consent".
    """)
def consent(
    plan: Path, out: Path = Path("consent.md"), shuffled: int | None = None, delta: str = "1e-6", force: bool = False,
    language: str = "en", texts: Path | None = None,
) -> None:  # fmt: skip
    """Write a draft of the consent form: how answers are processed, and which are protected.

    Its last line names the plan, so that `ldpopt survey verify` refuses it with another one.
    """
    from ldpopt_survey.reports.promises import consent_paragraph, words_of

    claim([out], force)
    shuffling = None if shuffled is None else (shuffled, number(delta, "--delta"))
    survey_plan = read_plan(plan)
    words = words_of(survey_plan, "consent", language, None if texts is None else read_text(texts))
    write_all({out: consent_paragraph(survey_plan, shuffling, words).encode()}, force)
    say(f"wrote {out}; read it, and write it again whenever the plan changes")
