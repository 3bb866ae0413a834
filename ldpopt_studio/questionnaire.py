"""The questions of the view "Ask" as a questionnaire: who is asked what, and the people that each way needs.

Everybody may be asked everything, with a part of epsilon for each question, or one booklet each with all of it.
"""

from __future__ import annotations

from typing import Any

from ldpopt.values.distribution import positive_epsilon
from ldpopt_studio import fields
from ldpopt_studio.ask import Asked, questions_of, wishes
from ldpopt_studio.fields import Report, State, field, take
from ldpopt_studio.source import booklets_file
from ldpopt_survey import PlannedSurvey, QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.estimate.intervals import two_sided

GROWN = (1, 2, 3, 5, 8, 12, 20, 30)
"""Numbers of questions at which the people are computed, for questionnaires of questions like the shown one."""


def questionnaire(state: State, questions: list[Asked]) -> SurveySpec:
    """The survey of these questions under the budget of a state, with distinct names."""
    _, level, eta = wishes(state)
    widths = two_sided(0.95) / two_sided(level)  # plans have targets for intervals of 95 %
    names: list[str] = []
    for number, question in enumerate(questions, start=1):
        names.append(question.name if question.name not in names else f"{question.name} {number}")
    with field("level"):
        asked = tuple(
            QuestionSpec(name, posed.labels, pilot=posed.pilot, half_width=posed.target.width * widths)
            for name, posed in zip(names, questions, strict=True)
        )
    return SurveySpec("survey", asked, epsilon=take(state, "epsilon", positive_epsilon), eta=None if eta == 1 else eta)


def planned_of(state: State, report: Report = lambda share: None) -> tuple[SurveySpec, PlannedSurvey]:
    """The description of a state's questions, and their plan."""
    spec = questionnaire(state, questions_of(state))
    return spec, plan_survey(spec, progress=report)


def way_of(survey: PlannedSurvey) -> str:
    """How a plan asks."""
    joint = any(len(asked.answers) > 1 for asked in survey.plan.questions)
    return "booklets" if joint else "one question each" if survey.plan.booklets else "a split of ε"


def ways_of(survey: PlannedSurvey) -> dict[str, float]:
    """The people whom each way of asking needs."""
    ways = {"one question each": survey.one_question, "a split of ε": survey.split}
    return ways | ({"booklets": survey.respondents} if way_of(survey) == "booklets" else {})


def planned(state: State, report: Report) -> dict[str, Any]:
    """The plan for the questions of a state: the people that each way of asking needs, the fewest first, its booklets.

    least : no private survey of fewer people reaches the half-widths if the answers are independent.
    file : a description that plans the same.
    """
    spec, survey = planned_of(state, report)
    booklets = {tuple(part.name for part in asked.answers): asked.probability for asked in survey.plan.questions}
    return {
        "ways": [
            {"name": name, "needed": needed, "optimal": name == way_of(survey)}
            for name, needed in sorted(ways_of(survey).items(), key=lambda way: way[1])
        ],
        "least": survey.least,
        "respondents": survey.respondents,
        "epsilon": spec.epsilon,
        "booklets": [{"questions": names, "share": str(share)} for names, share in booklets.items()],
        "file": booklets_file(spec),
    }


def growth(state: State, report: Report) -> dict[str, Any]:
    """The people for 1 to 30 questions like the shown one, and the lower bound for any private survey."""
    questions = questions_of(state)
    shown = questions[take(state, "at", fields.position(len(questions)), 0)]
    counts = []
    for number, m in enumerate(GROWN):
        survey = plan_survey(questionnaire(state, [shown] * m))
        people = {"planned": survey.respondents, "one_question": survey.one_question, "split": survey.split}
        if m == 1:  # there is no other way of asking
            people = dict.fromkeys(people, survey.respondents)
        counts.append({"questions": m, "least": survey.least, **people})
        report((number + 1) / len(GROWN))
    return {"counts": counts}
