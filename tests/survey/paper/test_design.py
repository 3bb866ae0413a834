"""Plans on paper: their integers are within every question's epsilon, and their tables give those integers."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from ldpopt import Channel, LocalDP, optimal_channel
from ldpopt.design import FisherInformation
from ldpopt.errors import InvalidInput
from ldpopt.exact import exp_lower, largest_distance
from ldpopt.numbers.rounding import ceil_digits
from ldpopt_survey import Plan, QuestionSpec, SurveySpec, paper_survey, plan_survey
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.paper.design import DICE, TWO_D10, TWO_DICE, _cheapest_merges, design_sheet, device_named
from ldpopt_survey.plan.number_question import NumberSpec
from ldpopt_survey.plan.reported_precision import precision_of, tables_of
from ldpopt_survey.reports.sheets import sheet_text


@pytest.fixture(scope="module")
def plan():
    questions = (
        QuestionSpec("smokes", ("no", "yes"), epsilon=1.0),
        QuestionSpec("drinks", ("never", "sometimes", "daily"), epsilon=0.8, pilot=(0.5, 0.3, 0.2)),
    )
    return plan_survey(SurveySpec("habits", questions, carry=("region",))).plan


@pytest.fixture(scope="module")
def dice(plan):
    return paper_survey(plan, TWO_D10)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", ["dice", "two-d10", "coins"])
def test_every_sheet_is_within_the_epsilon_of_its_question_in_rational_arithmetic(plan, dice, name):
    """Integers add up to D, ratios are at most a rational below e^epsilon, the table of outcomes has these integers."""
    device = device_named(name)
    made = dice if device is TWO_D10 else paper_survey(plan, device)
    for question, asked in zip(made.plan.questions, plan.questions, strict=True):
        weights = question.channel.weights.tolist()
        ratio = exp_lower(asked.epsilon)
        assert question.channel.denominator == device.denominator
        assert all(Fraction(a) <= ratio * b for column in zip(*weights, strict=True) for a in column for b in column)
        assert question.epsilon <= asked.epsilon
        for at, row in enumerate(weights):
            counted = Counter(made.table(question.name, at))
            assert [counted[letter] for letter in question.reports] == row
        assert made.plan.carry == ("region",)
        assert question.categories == asked.categories


def test_letters_are_never_shared_by_two_questions(dice):
    made = dice.plan
    letters = [letter for question in made.questions for letter in question.reports]
    assert len(set(letters)) == len(letters)
    assert not set("IO") & set("".join(letters))


def test_the_plan_on_paper_is_a_plan_like_any_other(dice):
    made = dice.plan
    assert Plan.from_json(made.to_json()).checksum == made.checksum


def test_the_loss_is_that_against_the_best_channel_without_a_denominator():
    """At two ten-sided dice and epsilon 1 it is below 5 % for up to 4 answers; here for 3, by the criterion itself."""
    utility = FisherInformation([1 / 3] * 3)
    sheet = design_sheet(np.full(3, 1 / 3), 1.0, 100)
    best = optimal_channel(utility, LocalDP(1.0)).value
    assert sheet.loss == pytest.approx(utility.value(sheet.weights / 100) / best - 1, rel=1e-9)
    assert sheet.least <= sheet.loss <= (1 + sheet.least) * 1.01 - 1 + 1e-12
    assert sheet.loss < 0.05


def test_fewer_letters_cost_no_more_than_was_allowed():
    all_of_them, few = (design_sheet(np.array([0.5, 0.5]), 1.0, 36, simpler) for simpler in (0.0, 0.01))
    assert few.weights.shape[1] < all_of_them.weights.shape[1]
    assert 1 + few.loss <= (1 + all_of_them.loss) * 1.01


@pytest.mark.full
def test_equal_questions_get_the_sheet_of_a_single_one():
    """Same pilot and epsilon, same integers, under letters of their own; another pilot or epsilon, another sheet."""
    yes = ("no", "yes")
    asked = [QuestionSpec("a", yes, epsilon=1.0), QuestionSpec("b", yes, epsilon=1.0)]
    asked += [QuestionSpec("c", yes, epsilon=2.0), QuestionSpec("d", ("x", "y", "z"), epsilon=1.0)]
    device = device_named("two-d10")
    together = paper_survey(plan_survey(SurveySpec("s", tuple(asked))).plan, device)
    sheets = {question.name: question.channel.weights.tolist() for question in together.plan.questions}
    for one in (asked[0], *asked[2:]):
        alone = paper_survey(plan_survey(SurveySpec("s", (one,))).plan, device)
        assert alone.plan.questions[0].channel.weights.tolist() == sheets[one.name]
        assert alone.losses[one.name] == together.losses[one.name]
    assert sheets["a"] == sheets["b"] != sheets["c"]
    assert not {*together.plan.questions[0].reports} & {*together.plan.questions[1].reports}


def test_a_device_that_is_too_coarse_is_refused_in_one_line():
    questions = (QuestionSpec("party", tuple("abcdef"), epsilon=0.3),)
    plan = plan_survey(SurveySpec("vote", questions)).plan
    with pytest.raises(InvalidInput, match="a device with more outcomes than the 6 of one die"):
        paper_survey(plan, DICE)


def test_a_question_named_as_the_column_of_sheets_is_refused():
    plan = plan_survey(SurveySpec("s", (QuestionSpec("sheet", ("no", "yes"), epsilon=1.0),))).plan
    with pytest.raises(InvalidInput, match="not called 'sheet'"):
        paper_survey(plan, TWO_DICE)


def test_an_epsilon_of_log_two_is_compared_in_rationals():
    """The float log 2 is below log 2: 2 to 1 is not allowed, although the floats' ratio would be within rounding."""
    sheet = design_sheet(np.array([0.5, 0.5]), math.log(2), TWO_D10.denominator, 0.0)
    assert Fraction(int(sheet.weights[:, 0].max()), int(sheet.weights[:, 0].min())) < 2


def test_questions_that_share_a_report_share_a_card():
    """A booklet of two questions has a card for each pair of answers, and reports that are counted as such."""
    asked = (QuestionSpec("a", ("no", "yes")), QuestionSpec("b", ("no", "yes")))
    plan = plan_survey(SurveySpec("s", asked, epsilon=2.0, together=(("a", "b"),))).plan
    made = paper_survey(plan, DICE)
    (question,) = [one for one in made.plan.questions if one.parts]
    assert question.categories == (("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes"))
    assert question.probability == plan.question(question.name).probability
    assert Plan.from_json(made.plan.to_json()).checksum == made.plan.checksum


@pytest.mark.parametrize(("device", "most"), [(TWO_D10, 1.08), (TWO_DICE, 1.13)])
def test_a_booklet_on_paper_has_the_planned_precision(device, most):
    """Sheets for all cells alike widened the second question by 21 % with two ten-sided dice; its table stays, too."""
    asked = (
        QuestionSpec("a", ("no", "yes"), pilot=[0.405, 0.595]),
        QuestionSpec("b", ("x", "y", "z"), pilot=[0.168, 0.06, 0.772]),
    )
    planned = plan_survey(SurveySpec("s", asked, epsilon=2.0))
    plan, n = planned.plan, planned.respondents
    assert any(question.parts for question in plan.questions)
    paper = paper_survey(plan, device)
    for name in ("a", "b"):
        assert precision_of(paper.plan, name, n).half_width <= most * precision_of(plan, name, n).half_width
    [planned_table], [table] = tables_of(plan, n), tables_of(paper.plan, n)
    assert table.half_width <= most * planned_table.half_width
    told = {question.name: question for question in plan.questions}
    for question in paper.plan.questions:
        if question.parts:
            grown = max(
                (variances_of(question, part.name) / variances_of(told[question.name], part.name)).max()
                for part in question.parts
            )
            assert paper.losses[question.name] == pytest.approx(grown - 1, rel=1e-9)


def variances_of(question, name):
    """The variances of the shares of a part of a booklet, for one report."""
    return contrast_variances(Channel(question.channel.matrix), question.shares, question.members(name))


@pytest.mark.parametrize("seed", range(3))
def test_the_pairs_that_lose_least_are_among_those_that_are_tried(seed):
    """The merge of least error, by a look at all pairs, is one of the few that are valued exactly."""
    rng = np.random.default_rng(seed)
    utility = FisherInformation(rng.dirichlet(np.ones(4)) * 0.9 + 0.025)
    weights = rng.integers(5, 30, (4, 7))
    total = int(weights.sum(axis=1).max()) + 7
    weights[:, -1] += total - weights.sum(axis=1)

    def value(pair):
        merged = np.delete(weights, pair[1], axis=1)
        merged[:, pair[0]] += weights[:, pair[1]]
        return utility.value(merged / total)

    tried = _cheapest_merges(weights, utility)
    assert min(map(value, combinations(range(7), 2))) == min(map(value, tried))
    assert len(tried) < 21


@pytest.mark.parametrize("asked", [1, 3])
@pytest.mark.parametrize("device", [TWO_D10, TWO_DICE])
def test_a_sheet_keeps_the_cap_on_eta_of_its_plan(asked, device):
    """The best sheets for epsilon 2 alone have an eta of about 0.6."""
    shares = [0.94, 0.03, 0.03]
    questions = tuple(QuestionSpec(name, ("x", "y", "z"), pilot=shares) for name in "abc"[:asked])
    plan = plan_survey(SurveySpec("s", questions, epsilon=2.0, eta=0.4)).plan
    paper = paper_survey(plan, device)
    assert paper.exceeded == {}
    assert max(paper.plan.eta, plan.eta) <= 0.4
    for question, planned in zip(paper.plan.questions, plan.questions, strict=True):
        proof = question.channel.proof()
        assert proof.epsilon <= planned.epsilon
        assert proof.eta <= planned.eta_cap


def test_a_sheet_that_exceeds_eta_is_named_with_both_numbers():
    """Sheets for ten even answers within the eta of the best channel need many more respondents."""
    plan = plan_survey(SurveySpec("s", (QuestionSpec("q", tuple("abcdefghij")),), epsilon=1.0)).plan
    paper = paper_survey(plan, TWO_D10)
    eta, intended = paper.exceeded["q"]
    assert (eta, intended) == (paper.plan.question("q").eta, plan.question("q").eta)
    assert intended < eta <= 1.1 * intended
    [exceeded] = [text for text in sheet_text("promises", paper, paper.plan.question("q")) if "η" in text]
    assert "MORE than" in exceeded
    assert ceil_digits(intended, 4) in exceeded


def test_a_requested_cap_on_eta_is_recorded_and_kept_on_paper():
    """The sheet of the test above exceeds an eta that nobody requested; a requested one is in the plan's file."""
    question = QuestionSpec("q", tuple("abcdefghij"))
    free = plan_survey(SurveySpec("s", (question,), epsilon=1.0)).plan
    assert "eta_cap" not in free.to_json()
    cap = free.question("q").eta
    for spec in (
        SurveySpec("s", (question,), epsilon=1.0, eta=cap),
        SurveySpec("s", (replace(question, eta=cap),), epsilon=1.0),
    ):
        plan = Plan.from_json(plan_survey(spec).plan.to_json())
        assert plan.question("q").eta_cap == cap
        paper = paper_survey(plan, TWO_D10)
        assert paper.exceeded == {}
        assert paper.plan.eta <= cap
        assert paper.plan.question("q").eta_cap == cap


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("high", "epsilon", "eta", "most"), [(4, 1.0, None, 0.02), (10, 3.0, None, 0.06), (21, 4.5, 0.2128, 4)]
)
def test_a_number_on_paper_loses_what_is_stated_of_its_mean(high, epsilon, eta, most):
    """The best sheet for the shares of 5 numbers needs 78 % more respondents for their mean, and 4.8 % were stated."""
    plan = plan_survey(SurveySpec("s", (NumberSpec("hours", low=0, high=high),), epsilon=epsilon, eta=eta)).plan
    paper = paper_survey(plan, TWO_D10)
    scores, shares = np.arange(high + 1), np.full(high + 1, 1 / (high + 1))

    def variance(q):
        reports = shares @ q
        information = (q / reports) @ q.T
        loadings = scores @ np.linalg.pinv(information, rcond=1e-10) @ (q / reports)
        return loadings**2 @ reports - (loadings @ reports) ** 2

    planned, actual = (variance(of.question("hours").channel.matrix) for of in (plan, paper.plan))
    assert paper.losses["hours"] == pytest.approx(actual / planned - 1, abs=1e-6)
    assert paper.losses["hours"] < most
    assert eta is None or paper.plan.eta <= eta


def test_channels_of_many_answers_count_as_determining_them():
    """The scaled determinant of the information of 24 answers is below 1e-30, and its eigenvalues are not small."""
    sheet = design_sheet(np.full(24, 1 / 24), 1.0, 100)
    assert sheet.error < 0.5 * design_sheet(np.full(24, 1 / 24), math.log(2), 100).error


@pytest.mark.parametrize(("eta", "least"), [(0.4, 40), (0.405, 40), (0.3, 28), (0.4 - 1e-12, 38), (1.0, 60)])
def test_a_sheet_uses_its_whole_cap_on_eta(eta: float, least: int) -> None:
    """The float 0.3 is below 30/100; no sheet exceeds the cap by a rounding error, or stays below it for one."""
    sheet = design_sheet(np.array([0.5, 0.3, 0.2]), 2.0, 100, eta=eta)
    assert sheet is not None
    distance = int(largest_distance(sheet.weights)[0])
    assert distance >= least
    assert Fraction(distance, 100) <= Fraction(eta)
    assert design_sheet(np.array([0.5, 0.3, 0.2]), 2.0, 100, eta=0.001) is None
