"""Plans whose best channels tell of rare answers by rare reports: enough respondents to trust every interval."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import local_dp
from ldpopt.values.deadline import UNLIMITED
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.estimate.linear import are_estimable, contrast_moments, reports_to_estimate
from ldpopt_survey.plan import booklet_channels
from ldpopt_survey.plan.booklet import Booklet
from ldpopt_survey.plan.booklet_shares import rational_shares, respondents_for_shares, solve_shares
from ldpopt_survey.plan.budget import Budget, SharedNeeds, split_budget, split_within
from ldpopt_survey.plan.mixed_channels import mixture_of
from ldpopt_survey.plan.precision import HalfWidth
from ldpopt_survey.plan.rare_reports import attempt_of
from ldpopt_survey.plan.smaller_epsilon import Attempt, fewest, smaller_epsilons
from ldpopt_survey.plan.survey import respondents_needed
from ldpopt_survey.plan.units import Target, product_of, units_of


def yes_no(names: str, shares: list[float]) -> tuple[QuestionSpec, ...]:
    return tuple(QuestionSpec(name, ("no", "yes"), pilot=shares) for name in names)


def four(small: float) -> QuestionSpec:
    return QuestionSpec("v", ("a", "b", "c", "d"), pilot=[0.5, 0.5 - 2 * small, small, small])


@pytest.mark.full(but=1)
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


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("epsilon", "width"), [(2.0, 0.1), (6.0, 0.1), (10.0, 0.1)])
def test_a_question_with_rare_reports_is_asked_more_often_instead_of_all_questions(
    epsilon: float, width: float
) -> None:
    usual = QuestionSpec("usual", ("a", "b", "c"))
    rare = QuestionSpec("rare", ("a", "b", "c"), pilot=[0.97, 0.01, 0.02], half_width=width)
    alone = [plan_survey(SurveySpec("rare", (question,), epsilon=epsilon)) for question in (usual, rare)]
    (unit,) = units_of((rare,))
    (first,) = booklet_channels.BookletDesigner(epsilon, None)._start_of((unit,), UNLIMITED).attempts
    assert first.for_targets < first.to_estimate  # by the best channel of this epsilon
    together = plan_survey(SurveySpec("rare", (usual, rare), epsilon=epsilon, design="one question"))
    assert together.respondents <= 2 + sum(planned.respondents for planned in alone)


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
    assert planned.plan.epsilon < 4.0
    assert planned.respondents >= planned.for_targets
    assert respondents_needed(spec, [5.0])[0].respondents == planned.respondents


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    "small", [1e-12, 0.0, *(pytest.param(small, marks=pytest.mark.full) for small in (1e-6, 1e-100, 1e-300))]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 12.0, 20.0, 50.0])
def test_shares_near_zero_are_planned_for(small: float, epsilon: float) -> None:
    questions = [four(small)] + ([QuestionSpec("v", ("no", "yes"), pilot=[1 - small, small])] if small else [])
    for question in questions:
        planned = plan_survey(SurveySpec("rare", (question,), epsilon=epsilon))
        assert planned.precision[0].half_width <= 0.05
        assert planned.respondents >= planned.for_targets > 0


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("small", "design"), list(product([1e-12, 0.0], ["split", "one question", "booklets", None])))
def test_shares_near_zero_in_several_questions(small: float, design: str | None) -> None:
    questions = (four(small), QuestionSpec("w", ("no", "yes")))
    for epsilon in (5.0, 20.0):
        planned = plan_survey(SurveySpec("rare", questions, epsilon=epsilon, design=design))
        assert all(precise.half_width <= 0.05 for precise in planned.precision)


def test_a_channel_near_the_best_one_can_be_trusted_with_fewer_respondents() -> None:
    # The channel of least variance needs 135,932 respondents before its intervals can be trusted.
    assert plan_survey(SurveySpec("rare", (four(0.0),), epsilon=5.0)).respondents < 4_000


@pytest.mark.full
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


@pytest.mark.full(but=1)
@pytest.mark.parametrize("pilot", [[1e-5, 0.3, 0.3, 0.39999], [0.01, 0.99], [0.001, 0.009, 0.99], [*[0.02] * 5, 0.9]])
def test_a_larger_epsilon_needs_no_more_respondents(pilot: list[float]) -> None:
    # At epsilon 20, the channel of least variance of the first pilot needs 2,499,410 respondents for such intervals.
    question = QuestionSpec("v", tuple("abcdef"[: len(pilot)]), pilot=pilot)
    needed = [plan_survey(SurveySpec("rare", (question,), epsilon=e)).respondents for e in (2.0, 5.0, 20.0)]
    assert needed[1] <= needed[0]
    assert needed[2] <= 1.02 * needed[1]


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [5.0, 8.0, 20.0])
def test_the_default_design_needs_no_more_respondents_than_those_requested(epsilon: float) -> None:
    questions = (*yes_no("a", [0.998, 0.002]), *yes_no("b", [0.7, 0.3]), QuestionSpec("c", ("x", "y", "z")))
    planned = plan_survey(SurveySpec("rare", questions, epsilon=epsilon))
    for design in ("split", "one question", "booklets", "joint"):
        other = plan_survey(SurveySpec("rare", questions, epsilon=epsilon, design=design))
        assert planned.respondents <= 1.02 * other.respondents
        assert other.split >= 0.98 * planned.respondents  # the comparator, too, counts rare reports


def test_the_saving_of_a_joint_report_is_not_estimated_where_reports_would_be_rare() -> None:
    planned = plan_survey(SurveySpec("rare", yes_no("ab", [0.99, 0.01]), epsilon=6.0, design="one question"))
    joint = plan_survey(SurveySpec("rare", yes_no("ab", [0.99, 0.01]), epsilon=6.0, design="joint"))
    assert planned.respondents == joint.respondents
    assert "would save about" not in repr(planned)


@pytest.mark.parametrize("ratio", [1e-3, 1e-8, 1e-12])
def test_one_question_may_need_a_billion_times_the_respondents_of_another(ratio: float) -> None:
    units = units_of((QuestionSpec("v", ("no", "yes")), QuestionSpec("w", ("no", "yes"))))
    channel = Channel(np.eye(2))
    booklets = [
        Booklet((unit,), channel, None, {(unit.name,): rate})
        for unit, rate in zip(units, (0.01, 0.01 * ratio), strict=True)
    ]
    chosen, respondents = solve_shares(booklets)
    assert [n for _, n in chosen] == pytest.approx([100, 100 / ratio])
    shares = rational_shares(chosen, respondents)
    assert len(shares) == 2
    assert sum(share for _, share in shares) == 1
    assert respondents_for_shares(shares) == pytest.approx(respondents, rel=2e-3)


def test_a_channel_that_is_best_for_one_share_alone_is_replaced() -> None:
    pilot = [0.00019019, 0.51921326, 0.48059655]
    question = QuestionSpec("v", ("a", "b", "c"), pilot=pilot, coefficient_of_variation=0.333)
    planned = plan_survey(SurveySpec("rare", (question,), epsilon=3.0))
    assert planned.respondents < 1.01 * 13_794_500
    assert planned.precision[0].estimable


def test_a_mixture_of_channels_needs_fewer_than_each_of_them() -> None:
    """A precise channel with rare reports, and a noisy one without."""
    pilot = np.array([0.01, 0.5, 0.49])
    targets = [Target(("v", str(place)), row, 3e-4) for place, row in enumerate(np.eye(3))]
    channels = [randomized_response(3, epsilon) for epsilon in (6.0, 3.0)]
    needed = [attempt_of(6.0, channel, pilot, targets).required for channel in channels]
    mixture = mixture_of(channels, pilot, targets)
    assert mixture is not None
    assert attempt_of(6.0, mixture, pilot, targets).required < 0.99 * min(needed)
    assert float(local_dp(mixture)) <= 6.0 * (1 + 1e-12)
    assert mixture.matrix.sum(axis=1) == pytest.approx(np.ones(3))


def test_a_skip_pattern_with_rare_reports_is_planned_with_a_mixture() -> None:
    """Each searched channel alone needs 1,576 respondents or more."""
    questions = (
        QuestionSpec("u", tuple("abcdef"), half_width=0.1),
        QuestionSpec("v", ("a", "b"), pilot=[0.94, 0.06], asked_if={"u": ["b", "d"]}),
        QuestionSpec("w", tuple("abcdefg"), half_width=0.1, asked_if={"v": ["a"]}),
    )
    planned = plan_survey(SurveySpec("skips", questions, epsilon=7.884))
    assert planned.respondents < 1_100
    assert all(precise.estimable for precise in planned.precision)
    assert planned.plan.epsilon <= 7.884


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [50.0, 700.0])
def test_reports_of_an_answer_that_nobody_gives_are_compared(epsilon: float) -> None:
    pilot = np.array([0.0, 1e-3, 0.999])
    targets = [Target(("v", str(place)), row, 1e-3) for place, row in enumerate(np.eye(3))]
    channel = randomized_response(3, epsilon)
    attempt = attempt_of(epsilon, channel, pilot, targets)
    assert 0 < attempt.required < math.inf
    assert mixture_of([channel, attempt.channel], pilot, targets) is None


def test_channels_that_leave_a_share_unknown_are_not_mixed() -> None:
    pilot, targets = np.array([0.5, 0.5]), [Target(("v", "0"), np.array([1.0, 0.0]), 1e-3)]
    useless = Channel(np.full((2, 2), 0.5))
    assert mixture_of([useless, useless], pilot, targets) is None
    assert mixture_of([useless, randomized_response(2, 1.0)], pilot, targets) is None


@pytest.mark.parametrize("crossing", [0.2, 1.3, 2.9, 3.9])
@pytest.mark.parametrize("power", [0.7, 6.0])
def test_the_epsilon_where_rare_reports_stop_to_cost_is_found_in_a_few_designs(crossing: float, power: float) -> None:
    """The respondents for targets fall with epsilon, those for rare reports rise, and the least of both is sought."""

    def design_at(epsilon: float) -> Attempt:
        for_targets, to_estimate = 100 * (crossing / epsilon) ** 2, 100 * (epsilon / crossing) ** power
        return Attempt(epsilon, Channel(np.eye(2)), for_targets, to_estimate)

    start = design_at(4.0)
    tried = smaller_epsilons(design_at, 4.0, UNLIMITED, [start])
    assert fewest(tried) <= (100 if crossing < 3.5 else min(start.required, 103)) * 1.03
    assert len(tried) <= 8
    again = smaller_epsilons(design_at, 3.95, UNLIMITED, tried)
    assert [each for each in tried if each.epsilon <= 3.95] == again[: len(tried) - 1]
    assert len(again) == len(tried) - 1 or crossing > 3.5


def test_a_pilot_that_needs_more_respondents_is_left_after_one_design() -> None:
    def design_at(epsilon: float) -> Attempt:
        return Attempt(epsilon, Channel(np.eye(2)), 100 * (2 / epsilon) ** 2, 100 * (epsilon / 2) ** 3)

    rivals = smaller_epsilons(design_at, 4.0, UNLIMITED, [design_at(4.0)])
    assert fewest(rivals) == pytest.approx(100, rel=0.03)
    for factor, most in ((1.5, 1), (0.8, 3)):

        def other_design(epsilon: float, factor: float = factor) -> Attempt:
            tried = design_at(epsilon)
            return Attempt(epsilon, tried.channel, tried.for_targets * factor, tried.to_estimate * factor)

        others = smaller_epsilons(other_design, 4.0, UNLIMITED, rivals=rivals, first_epsilon=2.1)
        assert len(others) <= most
        assert (fewest(others) < fewest(rivals)) == (factor < 1)


def test_no_smaller_epsilon_is_taken_where_none_needs_fewer_respondents() -> None:
    channel = Channel(np.eye(2))
    start = Attempt(4.0, channel, 50.0, 100.0)
    rare = smaller_epsilons(lambda epsilon: Attempt(epsilon, channel, 50.0, 1e9), 4.0, UNLIMITED, [start])
    assert min(rare, key=lambda each: each.required) is start
    none = smaller_epsilons(lambda epsilon: Attempt(epsilon, channel, np.inf, np.inf), 4.0, UNLIMITED, [start])
    assert min(none, key=lambda each: each.required) is start
    assert smaller_epsilons(lambda _: None, 4.0, UNLIMITED, [start]) == [start]
    assert smaller_epsilons(lambda _: None, 4.0, UNLIMITED) == []


@pytest.mark.parametrize(
    ("pilot", "epsilon", "most"), [([0.998, *[0.00025] * 8], 6.0, 1_700), ([0.94, 0.06], 6.0, 180)]
)
def test_merged_reports_cost_fewer_respondents(pilot: list[float], epsilon: float, most: int) -> None:
    """Reports that tell hardly more than others are merged, so that the fewer ones are less rare."""
    question = QuestionSpec("v", tuple("abcdefghi"[: len(pilot)]), pilot=pilot)
    planned = plan_survey(SurveySpec("rare", (question,), epsilon=epsilon))
    assert planned.respondents <= most
    assert planned.precision[0].estimable


@pytest.mark.parametrize("step", [0.7, 1.7, 3.6])
def test_an_epsilon_beyond_which_reports_are_rare_at_once_is_found(step: float) -> None:
    def design_at(epsilon: float) -> Attempt:
        return Attempt(epsilon, Channel(np.eye(2)), 100 / epsilon, 1e4 if epsilon > step else 10.0)

    tried = smaller_epsilons(design_at, 4.0, UNLIMITED, [design_at(4.0)])
    assert fewest(tried) <= 1.25 * 100 / step


def test_the_report_on_which_an_estimate_rests_is_merged() -> None:
    """A trace of a report that only a rare answer has is merged, though others are as rare; no guarantee is weaker."""
    units = units_of((QuestionSpec("v", ("a", "b", "c"), pilot=[0.6, 0.39, 0.01]),))
    pilot, targets = product_of(units)
    matrix = np.array([[0.7, 0.2, 0.1, 0.0], [0.2, 0.7, 0.1, 0.0], [0.1, 0.1, 0.8, 0.0]])
    traced = matrix + np.array([[0, 0, -1e-6, 1e-6], [0, 0, -1e-6, 1e-6], [-0.015, 0, -0.015, 0.03]])
    attempt = attempt_of(9.0, Channel(traced), pilot, targets)
    plain = attempt_of(9.0, Channel(matrix[:, :3]), pilot, targets)
    assert attempt.channel.shape[1] <= 3
    assert attempt.required < reports_to_estimate(*contrast_moments(Channel(traced), pilot, np.eye(3))).max() / 2
    assert attempt.for_targets < 1.1 * plain.for_targets
    assert float(local_dp(attempt.channel)) <= float(local_dp(Channel(traced)))


def test_a_comparison_may_leave_out_slow_designs() -> None:
    designed = []

    def needs(name: str) -> SharedNeeds:
        def design(epsilon: float, eta: float | None) -> tuple[float, float]:
            designed.append(name)
            return epsilon, 300 / epsilon**2

        return SharedNeeds(4, name, design, (2.0, None, 75.0))

    both = {"slow": needs("slow"), "quick": needs("quick")}
    split = split_within(both, Budget(2.0), (), UNLIMITED, uncorrected={"slow"})
    assert set(designed) == {"quick"}
    assert split.respondents == pytest.approx(300, rel=0.2)


def test_one_design_is_enough_if_a_coin_with_randomized_response_makes_reports_frequent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first channel needs 40 million respondents so that its rare reports can be trusted."""
    questions = (
        QuestionSpec("u", ("a", "b", "c")),
        QuestionSpec("v", tuple("abcdefghij"), pilot=[0.94, *[0.06 / 9] * 9], asked_if={"u": ["b", "c"]}),
        QuestionSpec("w", ("a", "b"), asked_if={"v": ["g"]}),
    )
    attempts = list[Attempt]()

    def recorded(*arguments: Any) -> Attempt:
        attempts.append(attempt_of(*arguments))
        return attempts[-1]

    monkeypatch.setattr(booklet_channels, "attempt_of", recorded)
    planned = plan_survey(SurveySpec("skips", questions, epsilon=6.69, eta=0.5))
    first, mixed = attempts
    assert first.to_estimate > 20 * first.for_targets
    assert mixed.required < 1.03 * first.for_targets
    assert planned.respondents < 1.04 * first.for_targets
    assert planned.plan.epsilon <= 6.69
    assert planned.plan.eta <= 0.5
