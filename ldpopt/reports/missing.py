"""Missing answers in reports: estimates among the people who answered, and sentences about the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput
from ldpopt.survey.estimate.numbers import among_answered
from ldpopt.survey.sample.analysis import Findings

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.estimate.estimate import Estimate
    from ldpopt.survey.plan.plan import Plan, PlannedQuestion


def among_those_who_answered(plan: Plan, found: Mapping[str, Estimate | Findings]) -> dict[str, Findings]:
    """Estimates among the people who answered, for the questions whose missing answers have a category of their own.

    found : the estimates of all shares, perhaps with groups. A question that nearly nobody answered has no entry.

    >>> import numpy as np
    >>> from ldpopt.survey import Counts, QuestionSpec, Reading, Survey, SurveySpec, make_plan
    >>> reading = Reading(missing_answers="category")
    >>> asked = QuestionSpec("vote", ("no", "yes", "none"), missing="none", reading=reading)
    >>> channel = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> survey = Survey(make_plan(SurveySpec("demo", (asked,)), {"vote": channel}))
    >>> counts = Counts(survey.plan.checksum, 100, {("vote",): np.array([31, 38, 31])})
    >>> among_those_who_answered(survey.plan, survey.estimates(counts))["vote"].whole.values.round(4)
    array([0.4286, 0.5714])
    """
    made = {}
    for question in plan.questions:
        if not question.reading.own_category or question.missing is None or question.name not in found:
            continue
        one = found[question.name]
        whole, groups = (one.whole, one.groups) if isinstance(one, Findings) else (one, {})
        among = {"": _among(whole, question.missing)}
        among |= {name: _among(inside, question.missing) for name, inside in groups.items()}
        answered = {name: inside for name, inside in among.items() if inside is not None}
        if "" in answered:
            made[question.name] = Findings(answered.pop(""), answered)
    return made


def _among(found: Estimate, missing: Label) -> Estimate | None:
    try:
        return among_answered(found, missing)
    except InvalidInput:
        return None


def missing_in_words(question: PlannedQuestion, answered: int, rows: int) -> str:
    """How missing answers were treated, and what this means for the guarantee; empty if they were refused.

    answered : the number of reports that are not empty. rows : the number of all reports.
    """
    reading = question.reading
    if reading.left_out:
        return (
            f"{rows - answered:,} of {rows:,} reports are empty: who did not answer is seen by everybody who has the "
            f"reports, and is not protected. The shares are among the {answered:,} who answered, whose answers are."
        )
    if reading.own_category:
        return (
            f"Missing answers are the category {question.missing!s}: whether somebody answered is protected like the "
            "answer itself."
        )
    if reading.missing_answers == "counted":
        return f"Missing answers were counted as {question.missing!s}, as if that had been answered."
    return ""


def missing_of(plan: Plan, counts: Counts) -> dict[str, str]:
    """`missing_in_words` by question, without the questions for which it is empty."""
    said = {one.name: missing_in_words(one, int(counts[one.name].sum()), counts.rows) for one in plan.questions}
    return {name: words for name, words in said.items() if words}
