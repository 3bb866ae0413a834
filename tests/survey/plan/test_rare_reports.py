"""Plans whose best channels tell of rare answers by rare reports: enough respondents to trust every interval."""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.estimate.linear import are_estimable, contrast_moments, reports_to_estimate
from ldpopt_survey.plan.budget import Budget, split_budget
from ldpopt_survey.plan.precision import HalfWidth
from ldpopt_survey.plan.survey import respondents_needed


def yes_no(names: str, shares: list[float]) -> tuple[QuestionSpec, ...]:
    return tuple(QuestionSpec(name, ("no", "yes"), pilot=shares) for name in names)


def four(small: float) -> QuestionSpec:
    return QuestionSpec("v", ("a", "b", "c", "d"), pilot=[0.5, 0.5 - 2 * small, small, small])


@pytest.mark.parametrize(("names", "least", "epsilon"), [("abc", 0.06, 4.0), ("ab", 0.06, 6.0), ("abc", 0.01, 3.0)])
def test_planned_respondents_make_every_share_estimable(names: str, least: float, epsilon: float) -> None:
    planned = plan_survey(SurveySpec("rare", yes_no(names, [1 - least, least]), epsilon=epsilon))
    assert all(precise.estimable and precise.half_width <= 0.05 for precise in planned.precision)
    assert "not estimable" not in re.sub(r".* x .*", "", repr(planned))
    assert planned.one_question >= planned.for_targets


def test_the_plan_says_why_it_has_more_respondents_than_its_widths_need() -> None:
    planned = plan_survey(SurveySpec("rare", yes_no("abc", [0.94, 0.06]), epsilon=4.0))
    assert planned.for_targets == 183 < planned.respondents
    assert "with 183 standard errors would be small enough" in repr(planned)
    assert math.isnan(planned.joint)  # its estimate knows only standard errors
    fewer = plan_survey(SurveySpec("rare", yes_no("abc", [0.94, 0.06]), epsilon=4.0), n=planned.respondents - 1)
    assert not all(precise.estimable for precise in fewer.precision)


def test_common_answers_need_no_more_than_their_targets() -> None:
    planned = plan_survey(SurveySpec("usual", yes_no("abc", [0.7, 0.3]), epsilon=2.0))
    assert planned.respondents == planned.for_targets
    assert "rare reports" not in repr(planned)


def test_the_respondents_of_one_question_and_of_the_table_count_its_rare_reports() -> None:
    spec = SurveySpec("rare", yes_no("v", [0.99, 0.01]), epsilon=5.0)
    planned = plan_survey(spec)
    assert planned.plan.question("v").expected == planned.plan.question("v").expected | {
        "respondents": float(planned.respondents)
    }
    assert planned.respondents > planned.for_targets
    assert respondents_needed(spec, [5.0])[0].respondents == planned.respondents


@pytest.mark.parametrize(
    "small", [1e-12, 0.0, *(pytest.param(small, marks=pytest.mark.full) for small in (1e-6, 1e-100, 1e-300))]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 12.0, 20.0, 50.0])
def test_shares_near_zero_are_planned_for_or_refused_with_the_remedy(small: float, epsilon: float) -> None:
    questions = [four(small)] + ([QuestionSpec("v", ("no", "yes"), pilot=[1 - small, small])] if small else [])
    for question in questions:
        try:
            planned = plan_survey(SurveySpec("rare", (question,), epsilon=epsilon))
        except InvalidInput as error:
            assert epsilon >= 12
            assert "question 'v': pilot: expected larger shares" in str(error)
            assert "lower epsilon" in str(error)
        else:
            assert planned.precision[0].half_width <= 0.05
            assert planned.respondents >= planned.for_targets > 0


@pytest.mark.parametrize(("small", "design"), list(product([1e-12, 0.0], ["split", "one question", "booklets", None])))
def test_shares_near_zero_in_several_questions(small: float, design: str | None) -> None:
    questions = (four(small), QuestionSpec("w", ("no", "yes")))
    for epsilon in (5.0, 20.0):
        try:
            planned = plan_survey(SurveySpec("rare", questions, epsilon=epsilon, design=design))
        except InvalidInput as error:
            assert epsilon == 20
            assert "pilot" in str(error)
        else:
            assert all(precise.half_width <= 0.05 for precise in planned.precision)


def test_a_channel_near_the_best_one_can_be_trusted_with_fewer_respondents() -> None:
    # The channel of least variance needs 135,932 respondents before its intervals can be trusted.
    assert plan_survey(SurveySpec("rare", (four(0.0),), epsilon=5.0)).respondents < 4_000


def test_a_split_of_the_budget_survives_shares_near_zero() -> None:
    question = [0.5, 0.5, 0.0, 0.0], HalfWidth(0.05)
    assert sum(split_budget({"a": question, "b": question}, Budget(20.0)).epsilons.values()) == pytest.approx(20)


def test_the_fewest_reports_are_the_threshold_of_estimability() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        channel = Channel(rng.dirichlet(np.full(5, 0.5), size=3))
        moments = contrast_moments(channel, rng.dirichlet(np.ones(3)), np.eye(3))
        needed = reports_to_estimate(*moments)
        for place, n in enumerate(needed):
            if math.isfinite(n):
                assert are_estimable(*moments, n)[place]
                assert not are_estimable(*moments, n * (1 - 1e-9))[place]
