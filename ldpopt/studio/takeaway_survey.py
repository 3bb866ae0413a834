""" "Take away" for a survey: its plan, the designs of its questions, and code that plans it again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ldpopt.design.files import design_text
from ldpopt.studio import ask
from ldpopt.studio.fields import State
from ldpopt.studio.files import Taken, channel_files
from ldpopt.studio.question import Asked, Together, designed, wishes
from ldpopt.studio.source_survey import Planned, limits_of, survey_code, survey_command, survey_file
from ldpopt.survey.plan.plan import make_plan
from ldpopt.survey.plan.precision import HalfWidth
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

SURVEY = "survey"
"""The name of a survey from the page."""


def taken(state: State) -> Taken:
    """The plan of the survey, with the design of every question."""
    told, planned = asked_designs(state)
    files = {}
    for at, (_, design, _) in enumerate(planned):
        stem = "" if len(planned) == 1 else f"-{at + 1}"
        files[f"design{stem}.json"] = design_text(design)
        files |= channel_files(design.channel, design.guarantees, f"channel{stem}")
    questions = []
    for name, design, width in planned:
        caps, pilot = limits_of(design), design.utility.prior
        made = QuestionSpec(name, design.channel.inputs, pilot=pilot, half_width=width, epsilon=caps["epsilon"])
        questions.append(replace(made, eta=caps.get("eta")))
    plan = make_plan(SurveySpec(SURVEY, tuple(questions)), {name: design.channel for name, design, _ in planned})
    files = {"plan.json": plan.to_json(), "survey.toml": survey_file(SURVEY, planned), **files}
    return Taken(survey_code(SURVEY, planned), survey_command(SURVEY, planned, told["respondents"]), files, "survey.py")


def asked_designs(state: State) -> tuple[dict[str, Any], list[Planned]]:
    """The content of the survey's view, and the name, the design and the target half-width of each question.

    >>> told, planned = asked_designs({"questions": [{"pilot": [0.3, 0.7]}], "epsilon": 1.0})
    >>> planned[0][0], planned[0][1].certified
    ('question', True)
    """
    shown = ask.told(state)
    _, _, eta = wishes(state)
    planned: list[Planned] = []
    for one in shown["questions"]:
        target = (Together if shown["aim"] == "together" else HalfWidth)(one["wanted"], shown["level"])
        question = Asked(one["name"], tuple(one["labels"]), one["pilot"], target)
        name, taken = one["name"], {name for name, _, _ in planned}
        name = next(n for n in (name, *(f"{name} {at}" for at in range(2, 99))) if n not in taken)
        planned.append((name, designed(question, one["epsilon"], eta).design, one["wanted"]))
    return shown, planned
