"""A question with several options is one report, from which the share of each option is estimated."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    AnyOfSpec,
    Simulated,
    Survey,
    SurveySpec,
    estimate,
    multi_select,
    pilot_shares,
    plan_survey,
    privatize_frame,
    second_spec,
)
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.plan import Plan

OPTIONS = ("cash", "card", "phone", "cheque")
TOML = """
[survey]
name = "payments"
[budget]
epsilon = {}
[[questions]]
name = "paid"
type = "any of"
options = ["cash", "card", "phone", "cheque"]
"""


def plan_of(epsilon):
    return Plan.from_json(plan_survey(SurveySpec.from_toml(TOML.format(epsilon))).plan.to_json())


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_each_share_is_estimated_as_precisely_as_the_best_way_allows(epsilon):
    """One report within epsilon for the whole set; the standard error is that of `multi_select`; the shares hold."""
    plan = plan_of(epsilon)
    (question,) = plan.questions
    assert (question.name, plan.epsilon <= epsilon) == ("paid", True)
    assert list(plan.answers) == [f"paid: {option}" for option in OPTIONS]
    rng, n, shares = np.random.default_rng(3), 20_000, (0.5, 0.7, 0.2, 0.05)
    answers = {f"paid: {one}": (rng.random(n) < p).astype(int) for one, p in zip(OPTIONS, shares, strict=True)}
    reports = privatize_frame(plan, pa.table(answers), Simulated(rng))[0]
    least = math.sqrt(multi_select(OPTIONS, epsilon).best.variance / n)
    for name, truth in answers.items():
        found = Survey(plan).estimate(name, reports)
        assert found.labels == ("no", "yes")
        assert abs(found.values[1] - truth.mean()) < 4.5 * found.standard_errors[1]
        assert found.standard_errors[1] < 1.02 * least


def test_other_spellings_columns_and_blanks():
    """Columns may be named; yes, no, 1, 0, true and false are read; an empty cell is refused or counted as declared."""
    spec = AnyOfSpec("paid", options=("cash", "card"), columns=("p1", "p2"), missing="no", epsilon=2.0)
    plan = plan_survey(SurveySpec("payments", (spec,))).plan
    table = pa.table({"p1": pa.array(["yes", "1", "true", None]), "p2": pa.array([True, False, None, True])})
    reports, tally = privatize_frame(plan, table, Simulated(np.random.default_rng(1)))
    assert (reports.num_rows, tally.missing) == (4, {"paid: cash": 1, "paid: card": 1})
    strict = plan_survey(SurveySpec("payments", (AnyOfSpec("paid", options=("cash", "card"), epsilon=2.0),))).plan
    renamed = table.rename_columns(["paid: cash", "paid: card"])
    with pytest.raises(InvalidInput, match="no answer"):
        privatize_frame(strict, renamed, Simulated(np.random.default_rng(1)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": ("cash",)}, {"options": ("a", "a")}, {"options": tuple("abcdefghi")}, {"columns": ("x",)},
        {"pilot": [0.5]}, {"pilot": {"cash": 0.5}}, {"pilot": [0.5, 0.0, 0.5]}, {"pilot": [0.5, math.nan, 0.5]},
        {"pilot": [0.5, 1, 0.5]}, {"pilot": "x"}, {"column": "x"}, {"categories": ("a", "b")},
        {"alternative": [0.1, 0.9]},
        {"missing": "perhaps"},
    ],
)  # fmt: skip
def test_invalid_options_are_refused(wrong):
    """Too few options and too many, two alike, and keys of other questions."""
    with pytest.raises(InvalidInput):
        AnyOfSpec("paid", **{"options": ("cash", "card")} | wrong)


def test_names_of_options_are_names_of_questions():
    """An option cannot have the name of another question."""
    with pytest.raises(InvalidInput, match="distinct"):
        SurveySpec.from_toml(TOML.format(2) + '[[questions]]\nname = "paid: cash"\ncategories = ["no", "yes"]\n')


PILOTS = ([0.05, 0.1], [0.3, 0.1, 0.05], [0.6, 0.05, 0.2, 0.1], [0.1] * 6)


@pytest.mark.parametrize("pilot", PILOTS)
@pytest.mark.parametrize("epsilon", [0.8, 2.0])
def test_expected_shares_of_options_save_respondents(pilot, epsilon):
    """Rare options need fewer respondents, whom the exact channel serves at these shares."""
    options = tuple("abcdef"[: len(pilot)])
    even, rare = (
        plan_survey(SurveySpec("s", (AnyOfSpec("p", options=options, pilot=given),), epsilon=epsilon))
        for given in (None, pilot)
    )
    (planned,) = rare.plan.questions
    sets = np.array(list(itertools.product((0, 1), repeat=len(pilot))))
    law = np.prod(np.where(sets, pilot, 1 - np.array(pilot)), axis=1)
    variances = contrast_variances(Channel(planned.channel.matrix), law, sets.T)
    assert planned.shares == pytest.approx(law)
    assert 1.96 * math.sqrt(variances.max() / rare.respondents) == pytest.approx(0.05, rel=2e-3)
    assert rare.least <= rare.respondents < even.respondents


def test_a_table_of_shares_is_in_the_order_of_the_options():
    """In a file a table or a list; a second wave has the estimates of the first one."""
    text = """
[survey]
name = "s"
[budget]
epsilon = 2.0
[[questions]]
name = "paid"
type = "any of"
options = ["cash", "card"]
pilot = { card = 0.2, cash = 0.6 }
"""
    spec = SurveySpec.from_toml(text)
    listed = replace(spec.questions[0], pilot=[0.6, 0.2])
    assert [list(one.shares) for one in spec.questions[0].answers] == [list(one.shares) for one in listed.answers]
    assert [one.shares[1] for one in listed.answers] == [0.6, 0.2]
    first = {f"paid: {name}": replace(estimate([700, 300], [[0.8, 0.2], [0.2, 0.8]]), labels=("no", "yes"))
             for name in ("cash", "card")}  # fmt: skip
    assert second_spec(spec, first).questions[0].pilot == pytest.approx([pilot_shares(first["paid: cash"])[1]] * 2)
