"""A proposal as a ``survey.toml``. It can be planned at once, and its comments say what to check."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ldpopt.datafiles.delimited import PLAIN, delimiter_in_words
from ldpopt.datafiles.profile import FileProfile
from ldpopt.survey.plan.budget import EPSILONS, Needed, respondents_needed
from ldpopt.survey.plan.propose import Proposal, ProposedQuestion
from ldpopt.survey.plan.spec import SurveySpec

MOST_QUESTIONS = 10
"""The most questions that the draft asks. With each further question, all have less of the budget."""

EPSILON = 2.0
DESIGN = ("weights", "strata", "clusters")

_POLICIES = {
    "category": "Missing answers are a category of their own, protected like the others; the estimates are also given "
    "among those who answered.",
    "left out": "Missing answers are left out: WHO DID NOT ANSWER IS SEEN BY EVERYBODY. Answers stay protected. The "
    "estimates are among those who answered.",
    "refuse": "Missing answers are refused.",
    "counted": "Missing answers count as the category `missing`.",
}


def asked_first(proposal: Proposal) -> tuple[ProposedQuestion, ...]:
    """The questions that the draft asks. The other questions are in its comments."""
    return proposal.questions[:MOST_QUESTIONS]


def draft_spec(
    found: FileProfile, proposal: Proposal, name: str, epsilon: float = EPSILON, first_of_duplicates: bool = False
) -> SurveySpec:
    """The survey that the draft describes; `InvalidInput` if no column could be a question."""
    return SurveySpec(
        name,
        tuple(question.spec for question in asked_first(proposal)),
        epsilon=epsilon,
        respondent=proposal.respondent,
        first_of_duplicates=first_of_duplicates,
        carry=proposal.carry,
        sample=proposal.sample,
        file=found.dialect,
    )


def draft(found: FileProfile, proposal: Proposal, spec: SurveySpec, table: Sequence[Needed] | None = None) -> str:
    """The text of ``survey.toml`` for `spec`, with the rest of the proposal in comments.

    table : the respondents needed for each budget; computed if None. `SurveySpec.from_toml` reads the text back.

    >>> from collections import Counter
    >>> from pathlib import Path
    >>> from ldpopt.datafiles.profile import ColumnProfile
    >>> from ldpopt.survey.plan.propose import propose
    >>> column = ColumnProfile("vote", 60, 0, Counter({"no": 40, "yes": 20}))
    >>> found = FileProfile(Path("people.csv"), "delimited", PLAIN, 60, (column,))
    >>> made = propose(found)
    >>> text = draft(found, made, draft_spec(found, made, "Vote"))
    >>> SurveySpec.from_toml(text).questions[0].categories
    ('no', 'yes')
    """
    table = respondents_needed(spec, sorted({*EPSILONS, spec.epsilon or EPSILON})) if table is None else table
    lines = [
        f"# A survey over {_quoted(found.path.name)}: {found.rows:,} rows, {len(found.columns)} columns.",
        "# Read it, mend it, then:  ldpopt survey plan survey.toml",
        "#",
        "# Answers, bins and codes below were found in the file. Whoever reads the plan learns which answers occur:",
        "# delete what gives somebody away. No shares were taken from the file.",
        "",
        "[survey]",
        f"name = {_quoted(spec.name)}",
        "round = 1  # a new round of the same survey is new privacy loss",
    ]
    if spec.respondent is not None:
        kept = '"first"' if spec.first_of_duplicates else '"refuse"'
        lines += [
            f"respondent = {_quoted(spec.respondent)}  # the column of ids: a repeated run then repeats every report",
            f'duplicates = {kept}  # a second row of a respondent: "refuse" the file, or keep the "first"',
        ]
    else:
        lines += ['# respondent = "id"  # the column of ids, if there is one: a repeated run then repeats every report']
    sample = {} if spec.sample is None else {what: getattr(spec.sample, what) for what in DESIGN}
    carry = [name for name in spec.carry if name not in sample.values()]
    if carry:
        lines += [f"carry = {_list(carry)}  # public: these columns stand in the reports as they are"]
    if sample:
        lines += ["", "[sample]  # how respondents were drawn; these columns are public and stand in the reports, too"]
        lines += [f"{what} = {_quoted(column)}" for what, column in sample.items() if column is not None]
    lines += [""]
    if found.dialect != PLAIN:
        lines += [
            f"[file]  # cells between {delimiter_in_words(found.dialect.delimiter)}; guessed, so look at the answers",
            f"delimiter = {_quoted(found.dialect.delimiter)}",
            f"encoding = {_quoted(found.dialect.encoding)}",
            f"decimal = {_quoted(found.dialect.decimal)}",
            "",
        ]
    lines += [
        "[budget]",
        f"epsilon = {spec.epsilon or EPSILON:g}  # nats, for all answers of one respondent; smaller is more private",
        "",
        f"# Respondents for intervals of ±{_points(spec)} percentage points at 95 %, all questions together:",
        *(f"#   {line}" for line in table_lines(table, found.rows)),
        "",
        "[planning]",
        "nonresponse = 0.0  # the share of those invited who will not answer",
        "design_effect = 1.0  # of the sample: above 1 for clusters and unequal weights",
        "",
    ]
    for question in asked_first(proposal):
        lines += [*_question(question, spec), ""]
    rest = proposal.questions[len(asked_first(proposal)) :]
    if rest:
        lines += [f"# {len(rest)} more columns could be asked. Each one leaves less of the budget to the others.", ""]
        for question in rest:
            lines += [f"# {line}" for line in _question(question, spec)] + [""]
    if proposal.aside:
        lines += ["# Not asked:"] + [f"#   {_quoted(name)}: {why}" for name, why in proposal.aside]
    return "\n".join(lines).rstrip("\n") + "\n"


def table_lines(table: Sequence[Needed], rows: int | None = None) -> list[str]:
    """The respondents needed against epsilon, as lines of text."""
    if not table:
        return ["no budget up to 8 is enough for so many questions"]
    made = [f"{'epsilon':>8}  {'respondents':>12}"]
    for one in table:
        enough = "" if rows is None else "  enough rows in the file" if one.invited <= rows else ""
        made.append(f"{one.epsilon:>8g}  {one.respondents:>12,}{enough}")
    return made


def _question(question: ProposedQuestion, spec: SurveySpec) -> list[str]:
    asked, reading = question.spec, question.spec.reading
    lines = [f"# {line}" for line in question.remarks]
    lines += ["[[questions]]", f"name = {_quoted(asked.name)}"]
    lines += [f"categories = {_list(asked.categories)}"]
    if reading.bins:
        edges = "below the first edge, from edge to edge, from the last edge on"
        lines += [f"bins = {_list(reading.bins)}  # {edges}"]
    if reading.missing_codes:
        lines += [f"missing_codes = {_list(reading.missing_codes)}  # these stand for no answer, like an empty cell"]
    if asked.missing is not None:
        lines += [f"missing = {_quoted(asked.missing)}"]
    if reading.missing_answers != "refuse":
        lines += [f"# {_POLICIES[reading.missing_answers]}", f"missing_answers = {_quoted(reading.missing_answers)}"]
    lines += [f"half_width = {asked.half_width:g}"] if asked.half_width is not None else []
    return lines


def _points(spec: SurveySpec) -> str:
    widths = sorted({100 * (question.half_width or 0.05) for question in spec.questions})
    return f"{widths[0]:g}" + (f" to {widths[-1]:g}" if len(widths) > 1 else "")


def _quoted(value: Any) -> str:
    """A text or number in the syntax of TOML."""
    if isinstance(value, float):
        return repr(value) if value != int(value) else str(int(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(values: Sequence[Any]) -> str:
    return f"[{', '.join(map(_quoted, values))}]"
