"""Public questions are sent as they are: every promise says so, no private question hangs on them, many are told."""

import math

import numpy as np
import pyarrow as pa
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import SurveySpec, plan_survey
from ldpopt_survey.collect.leaks import find_leaks
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.public_question import MIN_RESPONDENTS_PER_CELL, PublicQuestion, combinations_warning
from ldpopt_survey.reports.promises import consent_paragraph, promises_in_words

TOML = """
[survey]
name = "Habits"
carry = ["village"]
[budget]
epsilon = 2
[[questions]]
name = "smokes"
categories = ["no", "yes"]
[[public]]
name = "age"
answers = ["18-39", "40 and more"]
[[public]]
name = "w"
answers = [0.8, 1.5]
invited = true
[sample]
weights = "w"
"""


def test_a_public_question_is_in_the_plan_and_its_promises():
    """It is carried, the file keeps it, and the limits of the consent form are said not to hold for it."""
    plan = Plan.from_json(plan_survey(SurveySpec.from_toml(TOML)).plan.to_json())
    assert plan.carry == ("village", "age", "w")
    assert [(one.name, one.texts, one.invited) for one in plan.public] == [
        ("age", ("18-39", "40 and more"), False),
        ("w", ("0.8", "1.5"), True),
    ]
    assert 1.999 < plan.epsilon <= 2
    said = "NOT PROTECTED: your answers to 'age', 'w'. They are sent and published as you give them, and no limit holds"
    said += " for them."
    assert said in promises_in_words(plan)
    assert "NOT PROTECTED" in consent_paragraph(plan)


def test_plans_without_public_questions_are_as_before():
    """Nothing new stands in their files."""
    plan = plan_survey(SurveySpec.from_toml(TOML.split("[[public]]")[0])).plan
    assert "public" not in plan.to_json()
    assert not any("sent and published" in one for one in promises_in_words(plan))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "age"', 'name = "smokes"'),  # a private question
        ('name = "w"\nanswers', 'name = "age"\nanswers'),  # twice
        ('answers = ["18-39", "40 and more"]', 'answers = ["18-39"]'),
        ('answers = ["18-39", "40 and more"]', 'answers = ["a", "A "]'),  # paper could not tell them apart
        ('answers = ["18-39", "40 and more"]', "answers = [true, false]"),
        ("invited = true", "invited = 1"),
        ("invited = true", "hidden = true"),
        ('categories = ["no", "yes"]', 'categories = ["no", "yes"]\nasked_if = { age = ["18-39"] }'),
        ('name = "Habits"', 'name = "Habits"\nrespondent = "age"'),
    ],
)
def test_invalid_public_questions_are_refused(old, new):
    """Names twice, a private question that only some public answers lead to, an id that is a public answer."""
    assert old in TOML
    with pytest.raises(InvalidInput):
        plan_survey(SurveySpec.from_toml(TOML.replace(old, new)))


def test_many_combinations_are_reported():
    """With fewer respondents than `FEW_PEOPLE` for each combination the plan is warned, and not with as many."""
    asked = [PublicQuestion("age", tuple(range(10))), PublicQuestion("region", tuple("abcdef"))]
    cells = math.prod(len(one.answers) for one in asked)
    assert combinations_warning(asked, MIN_RESPONDENTS_PER_CELL * cells) == ""
    assert "60 combinations for 1,199 respondents" in combinations_warning(asked, MIN_RESPONDENTS_PER_CELL * cells - 1)
    assert combinations_warning([], 1) == ""


def test_a_public_answer_that_discloses_a_private_one_is_found():
    """A copy of the answer under another name is a leak like any carried column's."""
    spec = TOML.split("[[public]]")[0].replace('carry = ["village"]', "")
    spec += '[[public]]\nname = "copy"\nanswers = ["a", "b"]\n'
    plan = plan_survey(SurveySpec.from_toml(spec)).plan
    smokes = np.random.default_rng(2).choice(["no", "yes"], 200)
    (leak,) = find_leaks(plan, pa.table({"smokes": smokes, "copy": np.where(smokes == "no", "a", "b")}))
    assert (leak.subject, leak.sources) == ("smokes", ("copy",))
    assert find_leaks(plan, pa.table({"smokes": smokes, "copy": ["a", "b"] * 100})) == []
