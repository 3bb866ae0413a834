"""Write a proposal as a ``survey.toml`` that can be planned at once, with comments on the points to check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ldpopt.files.delimited import PLAIN, delimiter_in_words
from ldpopt_survey.datafiles.columns import FileProfile
from ldpopt_survey.plan.budget import TABULATED_EPSILONS, BudgetRequirement
from ldpopt_survey.plan.options_question import AnyOfSpec
from ldpopt_survey.plan.propose import Proposal, ProposedQuestion
from ldpopt_survey.plan.spec import DEFAULT_WIDTH, QuestionSpec, Revealed, SurveySpec
from ldpopt_survey.plan.survey import respondents_needed
from ldpopt_survey.records import dump

MAX_QUESTIONS = 10
"""The most questions that the draft asks. With each further question, all have less of the budget."""

DEFAULT_EPSILON = 2.0
SAMPLE_KEYS = ("weights", "strata", "clusters")

_COMMENTS = {
    "round": "a new round of the same survey is new privacy loss",
    "respondent": "the column of ids: a repeated run then repeats every report",
    "duplicates": 'a second row of a respondent: "refuse" the file, or keep the "first"',
    "carry": "public: these columns stand in the reports as they are",
    "revealed": "accepted: what is named tells these answers, and the consent form says so",
    "asked_if": "only after these answers",
    "epsilon": "nats, for all answers of one respondent; smaller is more private",
    "nonresponse": "the share of those invited who will not answer",
    "design_effect": "of the sample: that of the weights in the file, if any; clusters raise it further",
    "codes": "these spellings count as that answer",
    "bins": "below the first edge, from edge to edge, from the last edge on",
    "header_rows": "rows above the first respondent",
    "separator": "each cell is a list of entries",
    "missing_codes": "these stand for no answer, like an empty cell",
}

_POLICIES = {
    "category": "Missing answers are a category of their own, protected like the others; the estimates are also given "
    "among those who answered.",
    "left out": "Missing answers are left out: WHO DID NOT ANSWER IS SEEN BY EVERYBODY. Answers stay protected. The "
    "estimates are among those who answered.",
    "refuse": "Missing answers are refused.",
    "counted": "Missing answers count as the category `missing`.",
}


def drafted_questions(proposal: Proposal) -> tuple[ProposedQuestion, ...]:
    """Return the questions that the draft asks; the other questions are in its comments."""
    return proposal.questions[:MAX_QUESTIONS]


def draft_spec(
    profile: FileProfile, proposal: Proposal, name: str, epsilon: float = DEFAULT_EPSILON, revealed: Revealed = ()
) -> SurveySpec:
    """Build the survey of the draft; `InvalidInput` if no column could be a question."""
    return SurveySpec(
        name,
        tuple(question.spec for question in drafted_questions(proposal)),
        epsilon=epsilon,
        respondent=proposal.respondent,
        carry=proposal.carry,
        sample=proposal.sample,
        file=profile.dialect,
        revealed=revealed,
        design_effect=_effect_of_weights(profile, proposal),
    )


def _effect_of_weights(profile: FileProfile, proposal: Proposal) -> float:
    """Return 1 + the squared coefficient of variation of the weights, their factor on variances [Kish]."""
    name = None if proposal.sample is None else proposal.sample.weights
    weights = next((column.numbers for column in profile.columns if column.name == name), np.empty(0))
    total = float(weights.sum())
    return 1.0 if not total > 0 else max(1.0, round(len(weights) * float(weights @ weights) / total**2, 2))


def draft(
    profile: FileProfile, proposal: Proposal, spec: SurveySpec, table: Sequence[BudgetRequirement] | None = None
) -> str:
    """Write the text of ``survey.toml`` for `spec`, with the rest of the proposal in comments.

    table : the respondents needed for each budget; computed if None. `SurveySpec.from_toml` reads the text back.

    >>> from collections import Counter
    >>> from pathlib import Path
    >>> from ldpopt_survey.datafiles.columns import ColumnProfile
    >>> from ldpopt_survey.plan.propose import propose
    >>> column = ColumnProfile("vote", 60, 0, Counter({"no": 40, "yes": 20}))
    >>> found = FileProfile(Path("people.csv"), "delimited", PLAIN, 60, (column,))
    >>> made = propose(found)
    >>> text = draft(found, made, draft_spec(found, made, "Vote"))
    >>> SurveySpec.from_toml(text).questions[0].categories
    ('no', 'yes')
    """
    table = (
        respondents_needed(spec, sorted({*TABULATED_EPSILONS, spec.epsilon or DEFAULT_EPSILON}))
        if table is None
        else table
    )
    values = dump(replace(spec, epsilon=spec.epsilon or DEFAULT_EPSILON))
    survey = values["survey"]
    sample = {} if spec.sample is None else {name: getattr(spec.sample, name) for name in SAMPLE_KEYS}
    survey["carry"] = [name for name in spec.carry if name not in sample.values()]
    lines = [
        f"# A survey over {_toml(profile.path.name)}: {profile.rows:,} rows, {len(profile.columns)} columns.",
        "# Read it, mend it, then:  ldpopt survey plan survey.toml",
        "#",
        "# Answers, bins and codes below were found in the file. Whoever reads the plan learns which answers occur:",
        "# delete what gives somebody away. No counts of answers and no extremes stand here.",
        "",
        "[survey]",
        *_keys(survey, "name", "round"),
    ]
    if spec.respondent is None:
        lines += ['# respondent = "id"  # the column of ids, if there is one: a repeated run then repeats every report']
    lines += _keys(survey, *(["respondent", "duplicates"] if spec.respondent else []), "carry", "revealed")
    if sample:
        lines += ["", "[sample]  # how respondents were drawn; these columns are public and stand in the reports, too"]
        lines += _keys(sample, *SAMPLE_KEYS)
    lines += [""]
    if profile.dialect != PLAIN:
        delimiter = delimiter_in_words(profile.dialect.delimiter)
        title = f"[file]  # cells between {delimiter}; guessed, so look at the answers"
        file_values = dump(profile.dialect)
        if profile.dialect.header_rows == 1:
            file_values.pop("header_rows")
        lines += [title, *_keys(file_values), ""]
    lines += [
        "[budget]",
        *_keys(values["budget"], "epsilon"),
        "",
        f"# Respondents for intervals of ±{_points(spec)} percentage points at 95 %, all questions together:",
        *(f"#   {line}" for line in table_lines(table, profile.rows)),
        "",
        "[planning]",
        *_keys(values["planning"]),
        "",
    ]
    drafted = drafted_questions(proposal)
    for question in drafted:
        lines += [*_question(question), ""]
    if remaining_questions := proposal.questions[len(drafted) :]:
        lines += [
            f"# {len(remaining_questions)} more columns could be asked. Each one leaves less of the budget to the "
            "others.",
            "",
        ]
        for question in remaining_questions:
            lines += [f"# {line}" for line in _question(question)] + [""]
    if proposal.aside:
        lines += ["# Not asked:"] + [f"#   {_toml(name)}: {reason}" for name, reason in proposal.aside]
    example = f'# {_toml(drafted[0].spec.name)} = "The words in which it is asked?"' if drafted else "# none is asked"
    lines += ["", "# [wording]  # what people read in place of a question's name", example]
    return "\n".join(lines).rstrip("\n") + "\n"


def table_lines(table: Sequence[BudgetRequirement], rows: int | None = None) -> list[str]:
    """Format the respondents needed against epsilon as lines of text."""
    if not table:
        return ["no budget up to 8 is enough for so many questions"]
    lines = [f"{'epsilon':>8}  {'respondents':>12}"]
    for requirement in table:
        remark = "" if rows is None else "  enough rows in the file" if requirement.invited <= rows else ""
        lines.append(f"{requirement.epsilon:>8g}  {requirement.respondents:>12,}{remark}")
    return lines


def _question(question: ProposedQuestion) -> list[str]:
    spec, values = question.spec, {"type": question.spec.type_name, **dump(question.spec)}
    values["asked_if"] = dict(values["asked_if"])
    lines = [f"# {line}" for line in question.remarks]
    lines += [
        "[[questions]]",
        *_keys(values, "name", *_type_keys(spec), "asked_if"),
        *(() if isinstance(spec, AnyOfSpec) else _keys(values, "answers")),
        *_keys(values, "codes", "separator", "bins", "missing_codes", "missing"),
    ]
    policy = spec.reading.missing_answers or "refuse"
    if policy == "counted":
        lines += [
            "# An empty cell counts as `missing`, as if that had been answered.",
            *_keys(values, "missing_answers"),
        ]
    elif policy != "refuse":
        lines += [f"# {_POLICIES[policy]}", *_keys(values, "missing_answers")]
    return lines + _keys(values, "half_width")


def _type_keys(question: QuestionSpec) -> tuple[str, ...]:
    """Return the keys that only this type of question has."""
    return ("type", "answers", "columns") if isinstance(question, AnyOfSpec) else ()


def _points(spec: SurveySpec) -> str:
    widths = sorted({100 * (question.half_width or DEFAULT_WIDTH) for question in spec.questions})
    return f"{widths[0]:g}" + (f" to {widths[-1]:g}" if len(widths) > 1 else "")


def _keys(values: Mapping[str, Any], *names: str) -> list[str]:
    """Return lines of TOML with their comments, for these names or all; absent values give no line."""
    given_values = {name: values[name] for name in names or values if values.get(name) not in (None, [], {})}
    comments = {name: f"  # {_COMMENTS[name]}" if name in _COMMENTS else "" for name in given_values}
    return [f"{name} = {_toml(value)}{comments[name]}" for name, value in given_values.items()]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml(name)} = {_toml(entry)}' for name, entry in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
