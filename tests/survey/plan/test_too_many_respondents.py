"""Plans that need more respondents than there are people: the message names the cause, and a remedy that serves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.values.deadline import UNLIMITED
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.plan import booklet_channels
from ldpopt_survey.plan.booklet import channel_for_targets
from ldpopt_survey.plan.number_question import NumberSpec
from ldpopt_survey.plan.precision import limits
from ldpopt_survey.plan.targets import TargetSpec
from ldpopt_survey.plan.too_many import TooManyRespondents
from ldpopt_survey.plan.units import unit_bound, units_of


def drug(share: float) -> QuestionSpec:
    return QuestionSpec("drug", ("no", "yes"), pilot=[1 - share, share])


@pytest.mark.parametrize(
    "question",
    [
        NumberSpec("hours", low=0, high=8, asked_if={"drug": ["yes"]}),
        QuestionSpec("kind", ("a", "b", "c"), asked_if={"drug": ["yes"]}),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_the_share_of_a_filter_is_named(question: QuestionSpec, epsilon: float) -> None:
    with pytest.raises(InvalidInput, match=r"asked_if: expected more respondents who are asked .* a share of 1e-06"):
        plan_survey(SurveySpec("few", (drug(1e-6), question), epsilon=epsilon))
    assert plan_survey(SurveySpec("few", (drug(1e-2), question), epsilon=epsilon)).respondents < 1e9  # the remedy


def test_a_budget_that_is_too_small_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"budget epsilon: expected less precise targets, or a larger epsilon, got"):
        plan_survey(SurveySpec("few", (drug(0.2),), epsilon=1e-5))


def test_a_target_that_needs_too_many_is_not_said_to_have_no_reports() -> None:
    other = QuestionSpec("place", ("here", "there"))
    target = TargetSpec(("place",), by="drug", half_width=0.1)
    spec = SurveySpec("few", (drug(1e-6), other), epsilon=5.0, targets=(target,))
    with pytest.raises(
        InvalidInput, match=r"'drug': pilot: expected larger shares .* share of 1e-06 \([\d.]+e\+12 respondents"
    ):
        plan_survey(spec)
    assert plan_survey(replace(spec, questions=(drug(1e-2), other))).targets[0].estimable  # the remedy


def test_a_design_that_serves_is_named() -> None:
    questions = tuple(QuestionSpec(name, ("no", "yes"), half_width=1e-5) for name in "ab")
    with pytest.raises(InvalidInput, match=r'; design = "split" in \[budget\] needs 9,6\d\d,\d{3},\d{3} respondents'):
        plan_survey(SurveySpec("few", questions, epsilon=20.0, design="one question"))
    assert plan_survey(SurveySpec("few", questions, epsilon=20.0, design="split")).respondents < 1e10


def test_a_split_is_planned_where_booklets_need_too_many() -> None:
    questions = tuple(
        NumberSpec(name, low=0, high=1, half_width=1e-5, pilot=[0.5, 0.5]) for name in "ab"
    )  # numbers share no report
    planned = plan_survey(SurveySpec("few", questions, epsilon=20.0))
    assert not planned.plan.booklets
    assert planned.respondents < 1e10


def test_a_cap_on_eta_that_fixed_questions_exceed_is_named() -> None:
    questions = (QuestionSpec("a", ("no", "yes"), epsilon=0.5), QuestionSpec("b", ("no", "yes")))
    with pytest.raises(InvalidInput, match=r"budget eta: .* a smaller eta of 'a' in \[\[questions\]\], got 0.15"):
        plan_survey(SurveySpec("few", questions, epsilon=2.0, eta=0.15))
    remedied = (QuestionSpec("a", ("no", "yes"), epsilon=0.5, eta=0.1), questions[1])
    assert plan_survey(SurveySpec("few", remedied, epsilon=2.0, eta=0.15)).plan.eta <= 0.15


def test_together_names_the_question_that_shares_no_budget() -> None:
    questions = (QuestionSpec("a", ("no", "yes")), QuestionSpec("b", ("no", "yes"), epsilon=0.5))
    with pytest.raises(InvalidInput, match=r"needs no `together`.*got 'b'"):
        plan_survey(SurveySpec("few", questions, epsilon=2.0, together=(("a", "b"),)))
    with pytest.raises(InvalidInput, match=r"got no \[budget\] epsilon"):
        plan_survey(SurveySpec("few", (questions[1], drug(0.5)), together=(("b", "drug"),)))
    assert plan_survey(SurveySpec("few", questions, epsilon=2.0)).respondents > 0  # the remedy


def chain(share: float, epsilon: float) -> SurveySpec:
    """Describe a question that a share of respondents is asked, by a filter of three answers."""
    return SurveySpec.from_toml(
        f"""
        [survey]
        name = "chain"
        [budget]
        epsilon = {epsilon}
        [[questions]]
        name = "filter"
        categories = ["yes", "no", "other"]
        pilot = [{share!r}, 0.5, {0.5 - share!r}]
        [[questions]]
        name = "detail"
        categories = ["a", "b", "c"]
        pilot = [0.2, 0.3, 0.5]
        asked_if = {{ filter = ["yes"] }}
        """
    )


@pytest.mark.parametrize(("share", "epsilon"), [(1e-7, 0.3), (1e-9, 4.0), (1e-5, 0.1)])
def test_a_plan_out_of_reach_is_refused_before_a_channel_is_designed(
    share: float, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_called(*_: object) -> None:
        raise AssertionError("a channel is designed")

    monkeypatch.setattr(booklet_channels.BookletDesigner, "booklet", not_called)
    with pytest.raises(TooManyRespondents, match="more respondents who are asked"):
        plan_survey(chain(share, epsilon))


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0, 9.0])
@pytest.mark.parametrize("share", [0.4, 0.03, 1e-4])
def test_no_channel_needs_fewer_than_the_least_number(share: float, epsilon: float) -> None:
    """The best channel of a unit, and randomized response, need more; a narrow bound would refuse plans in vain."""
    (unit,) = units_of(chain(share, epsilon).questions)
    bound = unit_bound(unit, epsilon)
    designer = booklet_channels.BookletDesigner(epsilon, None, search_joint=False, certify=False)
    best, response = (
        designer._attempt((unit,), channel).for_targets
        for channel in (
            channel_for_targets(unit.targets, unit.pilot, limits(epsilon, None), UNLIMITED, 1e-3),
            designer.response((unit,)),
        )
    )
    assert 0.01 * best < bound <= best <= response * 1.01


def test_the_least_number_does_not_overflow() -> None:
    (unit,) = units_of(chain(0.1, 1.0).questions)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert 0 < unit_bound(unit, 700.0) < math.inf
        assert unit_bound(unit, 1e-9) > 1e15
