"""Default plans: one question each or booklets by the rule; joint on request; what is not estimable is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp, total_variation
from ldpopt.values.deadline import UNLIMITED
from ldpopt_survey import Analysis, Counts, QuestionSpec, ReportRows, Respondents, SurveySpec, make_plan, plan_survey
from ldpopt_survey.estimate.linear import contrast_variances, estimable
from ldpopt_survey.plan.booklet import MIN_REPORT_PROBABILITY
from ldpopt_survey.plan.booklet_rules import questions_per_booklet, saving_at_uniform
from ldpopt_survey.plan.booklets import BookletPlanner
from ldpopt_survey.plan.precision import prior_for_search
from ldpopt_survey.plan.reported_precision import is_table_estimable, precision_of
from ldpopt_survey.plan.units import joint_design, product_of, units_of

UNEVEN = (QuestionSpec("a", ("x", "y", "z"), pilot=(0.2, 0.7, 0.1)), QuestionSpec("b", (1, 2, 3, 4, 5)))
YES_NO = tuple(QuestionSpec(f"q{i}", ("no", "yes"), pilot=(0.3, 0.7)) for i in range(4))


def test_the_default_plan_prints_no_invented_table() -> None:
    """Three and five answers at epsilon 2 have no report of both; 4.1 % for 20 % was printed once."""
    plan = plan_survey(SurveySpec("s", UNEVEN, epsilon=2.0)).plan
    assert all(not question.parts for question in plan.questions)
    reports = {question.name: np.full(400, -1) for question in plan.questions}
    reports["a"][:200], reports["b"][200:] = 0, 0
    rows = ReportRows(Counts(plan.checksum, 400, {}), reports, {})
    with pytest.raises(InvalidInput, match=r'together = \[\["a", "b"\]\]'):
        Respondents(plan, rows, Analysis()).two_way("a", "b")


@pytest.mark.full(but=1)
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("eta", [None, 0.4])
def test_no_report_of_several_questions_is_rare(epsilon: float, eta: float | None) -> None:
    """Joint or booklets, no report has less than the stated probability under the pilot, and the caps hold."""
    for design in ("joint", "booklets"):
        spec = SurveySpec("s", YES_NO[:3], epsilon=epsilon, eta=eta, design=design)
        for question in plan_survey(spec).plan.questions:
            channel = Channel(question.channel.matrix)
            assert (question.shares @ channel.matrix).min() >= MIN_REPORT_PROBABILITY * (1 - 1e-6)
            assert float(local_dp(channel)) <= epsilon * (1 + 1e-9)
            assert eta is None or float(total_variation(channel)) <= eta * (1 + 1e-9)


def test_a_table_from_traces_of_a_solver_is_refused() -> None:
    """A channel of full rank whose extra directions are reports of 1e-9 tells the margins and no cell."""
    p = np.full(4, 0.25)
    first, second = np.array([[0.8, 0.2]] * 2 + [[0.2, 0.8]] * 2), np.array([[0.8, 0.2], [0.2, 0.8]] * 2)
    traces = 1e-9 * np.array([[1.0, 2], [2, 1], [2, 1], [1, 2]])
    channel = Channel(np.hstack([(first - traces) / 2, second / 2, traces / 2]))
    assert np.linalg.matrix_rank(channel.matrix, tol=1e-13) == 4
    assert not estimable(channel, p, np.eye(4), 1e6).any()
    margins = np.array([[1.0, 1, 0, 0], [1, 0, 1, 0]])
    assert estimable(channel, p, margins, 1e3).all()


def test_estimable_is_by_the_number_of_reports() -> None:
    """The same channel tells more with more reports, and of a product what its parts tell."""
    channel = Channel([[0.52, 0.48], [0.48, 0.52]])
    even, cells = np.full(2, 0.5), np.eye(2)
    assert not estimable(channel, even, cells, 500).any()
    assert estimable(channel, even, cells, 5000).all()
    both = estimable((channel, channel), (even, even), (cells, cells), 5000)
    assert not both.any()
    product = channel.product(channel)
    for n in (1e5, 1e6, 1e7):
        several = estimable((channel, channel), (even, even), (cells, cells), n)
        assert np.all(several <= estimable(product, np.full(4, 0.25), np.eye(4), n))
    assert several.all()


def test_a_table_of_two_weak_reports_is_refused_and_of_strong_ones_is_not() -> None:
    """Everybody answers both: the product of the channels counts."""
    spec = SurveySpec("s", YES_NO[:2])
    for kept, known in ((0.52, False), (0.8, True)):
        q = [[kept, 1 - kept], [1 - kept, kept]]
        plan = make_plan(spec, {"q0": q, "q1": q})
        assert is_table_estimable(plan, ("q0", "q1"), 500) is known


def test_one_question_means_one_question() -> None:
    """Also above epsilon 1, where a joint report was added whatever was asked for."""
    planned = plan_survey(SurveySpec("s", YES_NO, epsilon=3.0, design="one question"))
    assert all(not question.parts for question in planned.plan.questions)
    assert planned.respondents == pytest.approx(planned.one_question, rel=1e-3)
    with pytest.raises(InvalidInput, match="together"):
        SurveySpec("s", YES_NO, epsilon=3.0, design="one question", together=(("q0", "q1"),))


def test_one_question_each_does_not_count_a_wanted_table() -> None:
    """A table needs a booklet of two questions, which is no part of a plan of one question each."""
    plain = plan_survey(SurveySpec("s", YES_NO, epsilon=2.0))
    with_table = plan_survey(SurveySpec("s", YES_NO, epsilon=2.0, together=(("q0", "q1"),)))
    assert with_table.one_question == plain.one_question


@pytest.mark.parametrize("power", [{"alternative": (0.5, 0.5)}, {"alternative": (0.5, 0.5), "half_width": 0.05}])
def test_a_joint_pair_is_kept_with_a_target_power(power: dict[str, object]) -> None:
    """A pair in `together` has a booklet and the precision of its table, whatever the targets of its questions."""
    asked = (QuestionSpec("a", ("no", "yes"), pilot=(0.3, 0.7), **power), *YES_NO[:2])
    plan = plan_survey(SurveySpec("s", asked, epsilon=2.0, together=(("a", "q0"),))).plan
    assert any({part.name for part in question.answers} == {"a", "q0"} for question in plan.questions)
    assert is_table_estimable(plan, ("a", "q0"))


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 3.0, 4.0])
def test_the_length_of_booklets_is_the_rule(epsilon: float) -> None:
    """Uneven yes/no questions come in booklets of at most as many as the rule gives, and save what it says."""
    planned = plan_survey(SurveySpec("s", YES_NO, epsilon=epsilon))
    longest = max(len(question.answers) for question in planned.plan.questions)
    assert longest <= min(questions_per_booklet(epsilon), 3)
    saved = 1 - planned.respondents / planned.one_question
    assert saved == pytest.approx(
        max(saving_at_uniform((2,) * longest, epsilon), 0.0) if longest > 1 else 0.0, abs=0.04
    )


def test_caps_on_eta_do_not_cut_epsilon() -> None:
    """Two and four answers, epsilon 2, eta .4: 1,939 respondents; 7,012 under a delta and 11,954 split, once."""
    asked = (QuestionSpec("a", ("x", "y")), QuestionSpec("b", (1, 2, 3, 4)))
    plain = plan_survey(SurveySpec("s", asked, epsilon=2.0, eta=0.4))
    relaxed = plan_survey(SurveySpec("s", asked, epsilon=2.0, eta=0.4, delta=1e-6))
    split = plan_survey(SurveySpec("s", asked, epsilon=2.0, eta=0.4, design="split"))
    assert plain.respondents <= 1939
    assert relaxed.respondents <= 1.01 * plain.respondents
    assert split.respondents <= 4254
    assert 0.39 < split.plan.eta <= 0.4
    assert plain.split == pytest.approx(split.respondents, rel=0.01)
    assert plan_survey(SurveySpec("s", asked, epsilon=2.0, eta=0.4), time_limit=30.0).split == plain.split


def test_eta_of_a_split_plan_is_that_of_the_composition() -> None:
    """It bounds the product channel, and is far below 1 - product of (1 - eta)."""
    plan = plan_survey(SurveySpec("s", YES_NO[:2], epsilon=2.0, design="split")).plan
    product = Channel(plan.questions[0].channel.matrix).product(plan.questions[1].channel.matrix).matrix
    whole = max(float(np.abs(p - q).sum() / 2) for p in product for q in product)
    assert whole <= plan.eta <= whole * 1.001
    assert plan.eta < 0.7 * (1 - math.prod(1 - question.eta for question in plan.questions))


def test_half_widths_at_hand_add_up_over_booklets() -> None:
    """A question in several booklets is as precise as all of its reports: at the plan's number, its target."""
    planned = plan_survey(SurveySpec("s", YES_NO, epsilon=2.0))
    again = plan_survey(SurveySpec("s", YES_NO, epsilon=2.0), n=planned.respondents)
    for precise in again.precision:
        assert precise.half_width <= 0.05 * (1 + 1e-6)
        assert precise.half_width > 0.045
    assert {tuple(one["questions"]) for one in again.to_dict()["precision"]} == {(q.name,) for q in YES_NO}
    single = plan_survey(SurveySpec("s", UNEVEN, epsilon=1.0), n=4000).plan
    for question in single.questions:
        told = (question.expected or {})["half_width_at_hand"]
        assert told == pytest.approx(precision_of(single, question.name, 4000).half_width, rel=1e-9)


@pytest.mark.parametrize(
    ("pilots", "epsilon", "most"),
    [(((0.5, 0.5),) * 3, 2.0, 1524 * 1.01), (((0.2, 0.5, 0.3), (0.6, 0.3, 0.1)), 1.5, None)],
)
def test_the_least_probability_of_a_joint_report_costs_one_percent(
    pilots: tuple[tuple[float, ...], ...], epsilon: float, most: float | None
) -> None:
    """Three even yes/no questions at epsilon 2 took 1,987 respondents jointly, and 1,524 as booklets."""
    asked = tuple(QuestionSpec(f"q{i}", tuple(range(len(p))), pilot=p) for i, p in enumerate(pilots))
    units = units_of(asked)
    unlimited = joint_design(units, epsilon, None)
    assert unlimited is not None
    pilot, targets = product_of(units)
    rows = np.array([target.row for target in targets])
    wanted = np.array([target.variance for target in targets])
    free = float((contrast_variances(unlimited.channel, pilot, rows) / wanted).max())
    planner = BookletPlanner(units, epsilon, None)
    joint = planner.plan("joint", UNLIMITED)
    assert joint.respondents <= 1.01 * free
    assert joint.respondents <= planner.plan("booklets", UNLIMITED).respondents * (1 + 1e-6)
    assert most is None or joint.respondents <= most
    [(booklet, _)] = joint.shares
    assert (booklet.pilot @ booklet.channel.matrix).min() >= MIN_REPORT_PROBABILITY
    assert float(local_dp(booklet.channel)) <= epsilon * (1 + 1e-9)


def test_the_search_at_even_shares_is_for_many_answers_within_eta_only() -> None:
    """Forty uneven answers at epsilon 1 and eta 0.2 were not planned in 75 s; the pilot decides what is expected."""
    shares = np.arange(1, 41) / 820
    assert np.array_equal(prior_for_search(shares, None), shares)
    assert np.array_equal(prior_for_search(shares[:20] / shares[:20].sum(), 0.2), shares[:20] / shares[:20].sum())
    assert np.array_equal(prior_for_search(shares, 0.2), np.full(40, 1 / 40))
    spec = SurveySpec(
        "s", (QuestionSpec("a", tuple(range(40)), pilot=tuple(shares), half_width=0.02),), epsilon=1.0, eta=0.2
    )
    planned = plan_survey(spec)
    [question] = planned.plan.questions
    channel = Channel(question.channel.matrix)
    assert float(total_variation(channel)) <= 0.2 + 1e-9
    assert float(local_dp(channel)) <= 1 + 1e-9
    assert not planned.designs  # no proof is shown that is one for other shares
    variance = contrast_variances(channel, shares, np.eye(40)).max()
    assert planned.respondents == math.ceil(variance * (1.959964 / 0.02) ** 2)


@pytest.mark.parametrize(
    "pilots", [((0.3, 0.7), (0.3, 0.1, 0.6)), ((0.4, 0.6), (0.2, 0.3, 0.5)), ((0.5, 0.5), (0.6, 0.4))]
)
def test_the_printed_precision_combines_all_booklets(pilots):
    """With the plan's respondents every question meets its target, also where a booklet is asked of 1 in 49 only."""
    spec = SurveySpec(
        "d", tuple(QuestionSpec(f"q{i}", tuple("abc"[: len(p)]), pilot=p) for i, p in enumerate(pilots)), epsilon=2.0
    )
    planned = plan_survey(spec)
    for precise in planned.precision:
        assert precise.half_width <= 0.05 * (1 + 1e-6), precise


def test_the_precision_of_a_filtered_question_is_that_among_those_who_are_asked() -> None:
    kind = QuestionSpec("kind", ("a", "b", "c"), pilot=[0.2, 0.3, 0.5], asked_if={"drug": ["yes"]})
    planned = plan_survey(
        SurveySpec("filter", (QuestionSpec("drug", ("no", "yes"), pilot=[0.7, 0.3]), kind), epsilon=3.0)
    )
    (question,), n = planned.plan.questions, planned.respondents
    cells = np.array([0.7, 0.06, 0.09, 0.15])
    q = question.channel.matrix
    inverse = np.linalg.inv(q / (cells @ q) @ q.T)  # the covariance of estimated cells is inverse - cells cells^T
    widths = []
    for cell in (1, 2, 3):
        share = cells[cell] / 0.3
        row = (np.eye(4)[cell] - share * np.array([0, 1, 1, 1])) / 0.3
        widths.append(1.959964 * math.sqrt((row @ inverse @ row - (row @ cells) ** 2) / n))
    assert question.categories == (("no", "not applicable"), ("yes", "a"), ("yes", "b"), ("yes", "c"))
    assert planned.precision[1].half_width == pytest.approx(max(widths), rel=1e-5)
    assert planned.precision[1].half_width == pytest.approx(0.05, rel=1e-3)  # its target
    assert "kind, among those who are asked: at most ±5 points" in repr(planned)
