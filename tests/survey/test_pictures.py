"""The picture of a plan: the split adds up to the budget, and the curves pass through the targets."""

from __future__ import annotations

import numpy as np
import pytest

from ldpopt.plots import picture
from ldpopt_survey import Plan, QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.pictures import budget_split, half_widths, planning, power_curves

SPEC = SurveySpec(
    "demo",
    (
        QuestionSpec("a $ b", ("no", "yes"), half_width=0.04),
        QuestionSpec("c", (1, 2, 3), pilot=[0.7, 0.2, 0.1], alternative=[0.6, 0.25, 0.15], half_width=0.06),
    ),
    epsilon=3.0,
    design="split",
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_survey(SPEC).plan


def test_the_bars_are_the_budget(plan: Plan) -> None:
    """One bar a question, as long as its epsilon."""
    bars = budget_split(plan).patches
    assert [bar.get_width() for bar in bars] == [question.epsilon for question in plan.questions]
    assert sum(bar.get_width() for bar in bars) == pytest.approx(3.0)


@pytest.mark.full
def test_the_curves_pass_through_the_targets(plan: Plan) -> None:
    """At the respondents that a question needs its width is the target, and its power too."""
    for ax, what, need in (
        (half_widths(plan), "half_width", "respondents"),
        (power_curves(plan, {"c": [0.6, 0.25, 0.15]}), "power", "respondents_for_power"),
    ):
        dots = [line for line in ax.lines if line.get_marker() == "o"]
        asked = [question for question in plan.questions if what in question.expected]
        assert len(dots) == len(asked) > 0
        for dot, question in zip(dots, asked, strict=True):
            assert dot.get_xdata()[0] == pytest.approx(question.expected[need], rel=0.001)
            curve = next(line for line in ax.lines if line.get_color() == dot.get_color() and line is not dot)
            there = np.interp(np.log(dot.get_xdata()[0]), np.log(curve.get_xdata()), curve.get_ydata())
            assert there == pytest.approx(dot.get_ydata()[0], rel=0.02)


@pytest.mark.full
def test_it_is_drawn_in_every_format(plan: Plan) -> None:
    """Labels with a dollar sign are text, and the bytes are the same twice."""
    one, other = (planning(plan, {"c": [0.6, 0.25, 0.15]}) for _ in range(2))
    for kind in ("png", "svg", "pdf"):
        assert picture(one, kind) == picture(other, kind)
