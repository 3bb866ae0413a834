"""The questions of the view "Ask a question" as a questionnaire, with the respondents that each method needs.

Each respondent answers all questions with a part of epsilon each, or one booklet with all of epsilon.
"""

from __future__ import annotations

from typing import Any

from ldpopt.values.distribution import positive_epsilon
from ldpopt_studio import fields
from ldpopt_studio.ask import Question, read_options, read_questions
from ldpopt_studio.fields import Report, State, field, take
from ldpopt_studio.source import booklets_file
from ldpopt_survey import PlannedSurvey, QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.estimate.intervals import two_sided

QUESTION_COUNTS = (1, 2, 3, 5, 8, 12, 20, 30)
"""Numbers of copies of a question for which the respondents are computed."""


def survey_spec(state: State, questions: list[Question]) -> SurveySpec:
    """Build the survey of these questions under the state's budget, with distinct names."""
    _, level, eta = read_options(state)
    width_factor = two_sided(0.95) / two_sided(level)  # plans have targets for intervals of 95 %
    names: list[str] = []
    for number, question in enumerate(questions, start=1):
        is_duplicate = question.name in names
        names.append(f"{question.name} {number}" if is_duplicate else question.name)
    with field("level"):
        specs = tuple(
            QuestionSpec(name, question.labels, pilot=question.pilot, half_width=question.target.width * width_factor)
            for name, question in zip(names, questions, strict=True)
        )
    return SurveySpec("survey", specs, epsilon=take(state, "epsilon", positive_epsilon), eta=None if eta == 1 else eta)


def plan_questions(state: State, report: Report = lambda share: None) -> tuple[SurveySpec, PlannedSurvey]:
    """Return the specification of a state's questions, and their plan."""
    spec = survey_spec(state, read_questions(state))
    return spec, plan_survey(spec, progress=report)


def chosen_method(survey: PlannedSurvey) -> str:
    """Return the name of the method that a plan uses."""
    has_joint_booklet = any(len(booklet.answers) > 1 for booklet in survey.plan.questions)
    return "booklets" if has_joint_booklet else "one question each" if survey.plan.booklets else "a split of ε"


def respondents_by_method(survey: PlannedSurvey) -> dict[str, float]:
    """Return the respondents that each method needs."""
    counts = {"one question each": survey.one_question, "a split of ε": survey.split}
    return counts | ({"booklets": survey.respondents} if chosen_method(survey) == "booklets" else {})


def plan_view(state: State, report: Report) -> dict[str, Any]:
    """Plan the questions of a state.

    Returns
    -------
    dict
        - ``ways``: the respondents that each method needs, fewest first.
        - ``least``: no private survey of fewer respondents reaches the half-widths if the answers are independent.
        - ``respondents``, ``booklets``: those of the plan.
        - ``file``: a survey.toml with the same plan.
    """
    spec, survey = plan_questions(state, report)
    booklets = {
        tuple(question.name for question in booklet.answers): booklet.probability for booklet in survey.plan.questions
    }
    return {
        "ways": [
            {"name": method_name, "needed": needed, "optimal": method_name == chosen_method(survey)}
            for method_name, needed in sorted(respondents_by_method(survey).items(), key=lambda way: way[1])
        ],
        "least": survey.least,
        "respondents": survey.respondents,
        "epsilon": spec.epsilon,
        "booklets": [
            {"questions": question_names, "share": str(probability)} for question_names, probability in booklets.items()
        ],
        "file": booklets_file(spec),
    }


def growth(state: State, report: Report) -> dict[str, Any]:
    """Compute the respondents for 1 to 30 copies of a question, and the lower bound.

    The bound holds for any private survey.
    """
    questions = read_questions(state)
    question = questions[take(state, "at", fields.position(len(questions)), 0)]
    counts = []
    for position, m in enumerate(QUESTION_COUNTS):
        survey = plan_survey(survey_spec(state, [question] * m))
        respondents = {"planned": survey.respondents, "one_question": survey.one_question, "split": survey.split}
        if m == 1:  # all methods coincide
            respondents = dict.fromkeys(respondents, survey.respondents)
        counts.append({"questions": m, "least": survey.least, **respondents})
        report((position + 1) / len(QUESTION_COUNTS))
    return {"counts": counts}
