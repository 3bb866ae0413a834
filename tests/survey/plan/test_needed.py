"""Respondents against the budget, power targets, and what nonresponse and the design of the sample cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import subset_selection
from ldpopt.survey import (
    HalfWidth,
    QuestionPlanner,
    QuestionSpec,
    SurveySpec,
    TestPower,
    Together,
    asymptotic_covariance,
    goodness_of_fit_power,
    plan_survey,
    respondents_needed,
)
from ldpopt.survey.plan.budget import variance_at_uniform

YES_NO = ("no", "yes")


@pytest.mark.parametrize("k", [2, 3, 5, 9])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 5.0, 40.0])
def test_equal_shares_are_closed_form(k: int, epsilon: float) -> None:
    """The variance at equal shares is that of the optimal channel, which is subset selection of the best size [YB]."""
    pilot = np.full(k, 1 / k)
    designed = np.diag(asymptotic_covariance(QuestionPlanner(pilot).channel(epsilon), pilot)).max()
    sizes = [np.diag(asymptotic_covariance(subset_selection(k, epsilon, size), pilot)).max() for size in range(1, k)]
    assert variance_at_uniform(k, epsilon) == pytest.approx(min(sizes), rel=1e-7 if epsilon < 0.1 else 1e-10)
    assert variance_at_uniform(k, epsilon) == pytest.approx(designed, rel=1e-4)  # found by a solver at k = 9


def test_the_table_is_what_the_plans_need() -> None:
    """The respondents of the table are those of the plan that is made with the same budget, to 1 %."""
    spec = SurveySpec(
        "demo", (QuestionSpec("a", YES_NO), QuestionSpec("b", (1, 2, 3, 4), half_width=0.04)), epsilon=2.0
    )
    (found,) = respondents_needed(spec, [2.0])
    planned = [question.expected["respondents"] for question in plan_survey(spec).plan.questions]
    assert max(planned) == pytest.approx(found.respondents, rel=0.01)
    assert [one.respondents for one in respondents_needed(spec)] == sorted(
        (one.respondents for one in respondents_needed(spec)), reverse=True
    )


def test_nonresponse_and_design_effect_inflate() -> None:
    """n deff / (1 - nonresponse) people are invited, and as many at hand are worth so many fewer."""
    asked = (QuestionSpec("a", YES_NO, epsilon=1.0),)
    plain = plan_survey(SurveySpec("demo", asked), 1000).plan.questions[0].expected
    inflated = (
        plan_survey(SurveySpec("demo", asked, nonresponse=0.2, design_effect=1.6), 1000).plan.questions[0].expected
    )
    assert inflated["invited"] == math.ceil(plain["respondents"] * 2)
    assert "invited" not in plain
    assert inflated["half_width_at_hand"] == pytest.approx(plain["half_width_at_hand"] * math.sqrt(2))
    for fields in ({"nonresponse": 1.0}, {"nonresponse": -0.1}, {"design_effect": 0.9}, {"design_effect": math.nan}):
        with pytest.raises(InvalidInput):
            SurveySpec("demo", asked, **fields)


def test_a_power_target_is_reached_and_no_more() -> None:
    """At the respondents that the plan says the test has its power, and one fewer per cent does not."""
    alternative = np.array([0.6, 0.25, 0.15])
    asked = QuestionSpec("a", (1, 2, 3), pilot=[0.7, 0.2, 0.1], alternative=alternative, power=0.9)
    planned = plan_survey(SurveySpec("demo", (asked,), epsilon=1.0)).plan.questions[0]
    n = int(planned.expected["respondents_for_power"])
    channel = planned.channel.matrix
    assert float(goodness_of_fit_power(channel, asked.pilot, alternative, n)) >= 0.9
    assert float(goodness_of_fit_power(channel, asked.pilot, alternative, int(0.97 * n))) < 0.9
    assert "half_width" not in planned.expected


def test_widths_and_powers_share_one_budget() -> None:
    """Questions with a width, a power or both are split so that all need about the same number of people."""
    shares = {"pilot": [0.5, 0.5], "alternative": [0.4, 0.6]}
    spec = SurveySpec(
        "demo",
        (
            QuestionSpec("w", YES_NO),
            QuestionSpec("p", YES_NO, **shares),
            QuestionSpec("b", YES_NO, half_width=0.1, **shares),
        ),
        epsilon=3.0,
    )
    needs = []
    for question in plan_survey(spec).plan.questions:
        expected = question.expected
        needs.append(max(expected.get("respondents", 0), expected.get("respondents_for_power", 0)))
    assert max(needs) <= 1.02 * min(needs)


def test_together_is_the_larger() -> None:
    """Of two targets the one that needs more people counts."""
    planner, parts = QuestionPlanner([0.5, 0.5]), (HalfWidth(0.2), TestPower([0.48, 0.52]))
    assert planner.respondents(Together(parts), 1.0) == max(planner.respondents(one, 1.0) for one in parts)


@pytest.mark.parametrize("fields", [{"power": 0.8}, {"alternative": [0.5, 0.5], "power": 0.01}, {"alternative": [1.0]}])
def test_what_is_no_power_target(fields: dict[str, object]) -> None:
    """A power needs an alternative, as many shares as categories, and more than the level."""
    with pytest.raises(InvalidInput):
        QuestionSpec("a", YES_NO, **fields)
