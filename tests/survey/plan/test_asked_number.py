"""A number that only some answers to another question lead to: planned, privatized, and its mean estimated."""

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    Binomial,
    NumberSpec,
    Plan,
    QuestionSpec,
    Simulated,
    Survey,
    SurveySpec,
    TargetSpec,
    Wald,
    difference,
    plan_survey,
    population_total,
)
from ldpopt_survey.estimate.conditional_mean import ConditionalMean
from ldpopt_survey.plan.number_points import points_of, points_of_part
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, Part
from ldpopt_survey.plan.units import units_of
from ldpopt_survey.sample.analysis import estimate_counts
from ldpopt_survey.sample.respondents import Respondents

WORKS = QuestionSpec("works", ("no", "yes"), pilot=(0.5, 0.5))
HOURS = NumberSpec("hours", low=0, high=40, half_width=4, asked_if={"works": ["yes"]})


def survey_of(*questions, epsilon=2.0, **more):
    return plan_survey(SurveySpec("work", questions, epsilon=epsilon, **more))


@pytest.fixture(scope="module")
def planned():
    return survey_of(WORKS, HOURS)


def people(n, share, rng, skewed=False):
    """Answers of n people, of whom a share works, and a region that goes with both."""
    works = rng.random(n) < share
    hours = np.clip(np.rint(rng.exponential(6, n) if skewed else rng.normal(25, 5, n)), 0, 40).astype(int)
    region = np.where(rng.random(n) < 0.5 + 0.1 * works, "north", "south")
    answers = {
        "works": np.where(works, "yes", "no"),
        "hours": [str(h) if w else None for h, w in zip(hours, works, strict=False)],
    }
    return pd.DataFrame({**answers, "region": region}), hours[works].mean()


def test_the_report_on_both_keeps_epsilon_for_every_pair_of_answers(planned):
    """Measured from the integers, also between people who are skipped and people with any number."""
    (question,) = planned.plan.questions
    weights = [[int(weight) for weight in row] for row in question.channel.weights.tolist()]
    ratio = max(a / b for one, other in product(weights, weights) for a, b in zip(one, other, strict=True) if b or a)
    assert len(weights) == 42
    assert question.categories[0] == ("no", NOT_APPLICABLE)
    assert math.log(ratio) <= question.epsilon <= 2.0
    assert math.log(ratio) > 1.99  # and the budget is used


def test_mean_and_interval_from_a_frame(planned):
    """Who is skipped has no number and no influence but on the share; the estimate is near the truth."""
    answers, truth = people(20_000, 0.4, np.random.default_rng(1))
    survey = Survey(planned.plan)
    reports = survey.privatize(answers, Simulated(2))
    made = survey.estimate("hours", reports)
    assert isinstance(made, ConditionalMean)
    assert made.labels == ("mean",)
    assert made.estimable
    assert abs(made.values[0] - truth) < 4 * made.standard_errors[0] < 3.0
    assert made.intervals().contains([truth])[0]
    share, error = made.share_asked
    assert abs(share - 0.4) < 4 * error
    assert made.intervals(Wald()).width == pytest.approx(2 * 1.96 * made.standard_errors, rel=0.05)
    total, one = population_total(made, 1000.0), made.contrast([2.0])
    assert total.values[0] == pytest.approx(1000 * share * made.values[0])
    assert one.intervals().upper == pytest.approx(2 * made.intervals().upper)
    assert made.to_dict()["estimable"]


def test_the_plan_reaches_the_half_width_that_it_promises():
    """The spread of the estimates is that of the plan, for common and rare filters, and for two epsilons."""
    for epsilon, share in ((1.0, 0.5), (4.0, 0.05)):
        works = replace(WORKS, pilot=(1 - share, share))
        made = survey_of(works, HOURS, epsilon=epsilon)
        assert {p.questions[0]: p.half_width for p in made.precision}["hours"] <= 4 * (1 + 1e-9)
        (question,), rng = made.plan.questions, np.random.default_rng(3)
        law = np.array([1 - share, *np.full(41, share / 41)]) @ question.channel.matrix
        counts = rng.multinomial(made.respondents, law, size=400)
        means = [estimate_counts(made.plan, "hours", {question.name: row}).values[0] for row in counts]
        assert np.nanstd(means) == pytest.approx(4 / 1.96, rel=0.15)
        assert np.isnan(means).mean() < 0.05


def coverage(plan, share, numbers, n, surveys, rng):
    """The share of surveys without an estimate, and of the others those whose interval covers."""
    (question,) = plan.questions
    law = np.array([1 - share, *(share * numbers)]) @ question.channel.matrix
    truth, covered = float(numbers @ np.arange(41)), []
    for row in rng.multinomial(n, law, size=surveys):
        made = estimate_counts(plan, "hours", {question.name: row})
        covered += [bool(made.intervals().contains([truth])[0])] if made.estimable else []
    return 1 - len(covered) / surveys, np.mean(covered) if covered else 1.0


NUMBERS = {
    "even": np.full(41, 1 / 41),
    "skewed": np.exp(-np.arange(41) / 4) / np.exp(-np.arange(41) / 4).sum(),
    "all at the end": np.eye(41)[40],
}


@pytest.mark.full
@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_intervals_cover_or_nothing_is_said(planned, numbers, epsilon):
    """At several shares of the asked, also tiny ones: 93 to 97 % up to the simulation's error, or refused."""
    plan, rng = (planned if epsilon == 2 else survey_of(WORKS, HOURS, epsilon=epsilon)).plan, np.random.default_rng(5)
    for share in (1.0, 0.3, 0.05, 0.01, 0.0):
        refused, covered = coverage(plan, share, NUMBERS[numbers], 3000, 900, rng)
        assert refused > 0.5 or 0.91 <= covered <= 0.99, (share, refused, covered)
        assert (1 - refused) * (1 - covered) <= 0.09, (share, refused, covered)
    assert refused == 1


def test_nothing_is_said_of_a_mean_whose_share_is_noise(planned):
    """Nobody is asked: no number, the whole range as interval, null in JSON, and the reason in words."""
    survey, n = Survey(planned.plan), 4000
    reports = survey.privatize(pd.DataFrame({"works": ["no"] * n, "hours": [None] * n}), Simulated(1))
    made = survey.estimate("hours", reports)
    assert not made.estimable
    assert np.isnan(made.values).all()
    assert np.isnan(made.standard_errors).all()
    assert (made.intervals().lower[0], made.intervals().upper[0]) == (0, 40)
    assert made.to_dict()["values"] == [None]
    assert "not estimable" in repr(made)
    assert "standard errors" in made.caveat
    assert abs(population_total(made, 100.0).values[0]) < 4 * population_total(made, 100.0).standard_errors[0]
    with pytest.raises(InvalidInput, match="not estimable"):
        difference(made, made)


def test_everybody_is_asked(planned):
    """Then the mean is that of all, and the share is near 1."""
    survey, n = Survey(planned.plan), 4000
    reports = survey.privatize(pd.DataFrame({"works": ["yes"] * n, "hours": ["30"] * n}), Simulated(1))
    made = survey.estimate("hours", reports)
    assert abs(made.values[0] - 30) < 4 * made.standard_errors[0]
    assert abs(made.share_asked[0] - 1) < 0.1


def test_answers_that_do_not_fit_are_refused(planned):
    """An unknown filter, a number outside the range, a missing number; a number of who is skipped is not read."""
    survey = Survey(planned.plan)
    for works, hours in (("maybe", "3"), ("yes", "41"), ("yes", None), ("yes", "x")):
        with pytest.raises(InvalidInput):
            survey.privatize(pd.DataFrame({"works": [works, "no"], "hours": [hours, None]}), Simulated(1))
    given, none = (
        survey.privatize(pd.DataFrame({"works": ["no"] * 50, "hours": [hours] * 50}), Simulated(1))
        for hours in ("39", None)
    )
    assert given.to_pydict() == none.to_pydict()


@pytest.mark.full
def test_filters_of_filters_two_numbers_and_many_points():
    """A chain of filters, and numbers beside each other, however many combinations of points there are."""
    region = QuestionSpec("region", ("north", "south"))
    works = replace(WORKS, asked_if={"region": ["south"]}, pilot=None)
    pay = NumberSpec("pay", low=0, high=10, step=0.5, half_width=1, asked_if={"works": ["yes"]})
    for questions in (
        (region, works, HOURS),
        (WORKS, HOURS, pay),
        (WORKS, *(replace(pay, name=f"n{i}") for i in "ab")),
    ):
        made = survey_of(*questions, epsilon=3.0)
        (question,), rng = made.plan.questions, np.random.default_rng(1)
        assert question.epsilon <= 3
        assert all(p.estimable for p in made.precision)
        names = [question.name for question in questions if question.scores is not None]
        widths = {p.questions[0]: p.half_width for p in made.precision}
        assert all(widths[name] <= {"hours": 4}.get(name, 1) * (1 + 1e-9) for name in names)
        counts = rng.multinomial(10 * made.respondents, question.shares @ question.channel.matrix)
        for name in names:
            mean = estimate_counts(made.plan, name, {question.name: counts})
            middle = 20 if name == "hours" else 5
            assert abs(mean.values[0] - middle) < 5 * mean.standard_errors[0]


def test_points_leave_linear_rows_as_they_are():
    """Cells of points are reached with probability 1, and targets that are linear in numbers have the same values."""
    (unit,) = units_of((WORKS, HOURS, NumberSpec("pay", low=-3, high=2, asked_if={"works": ["yes"]})))
    for cells in (100, 40, 10):
        points = points_of(unit, cells)
        assert points.moves.shape[1] <= cells
        assert points.moves.sum(axis=1) == pytest.approx(1)
        for target in unit.targets:
            assert points.moves @ points.rows(target.row[None])[0] == pytest.approx(target.row, abs=1e-9)
    assert points_of(unit, 4) is None
    single = points_of_part(unit.parts[1])
    assert single.moves.shape == (42, 10)
    assert single.ends[-1, -1] == 1


def test_targets_of_groups_and_relative_targets():
    """A public group and a coefficient of variation count for the mean among those who are asked."""
    alone = survey_of(WORKS, HOURS)
    target = TargetSpec(by="region", groups={"north": 0.25, "south": 0.75}, half_width=4 / 40)
    grouped = survey_of(WORKS, HOURS, targets=(target,), carry=("region",))
    assert grouped.respondents > 2 * alone.respondents
    relative = replace(HOURS, half_width=None, coefficient_of_variation=0.05)
    made = survey_of(WORKS, relative)
    widths = {p.questions[0]: p.half_width for p in made.precision}
    assert widths["hours"] / 1.96 / 20 == pytest.approx(0.05, rel=0.02)


def test_a_filter_that_nobody_is_expected_to_pass_is_refused():
    """The mean would be of nobody."""
    works = QuestionSpec("works", ("no", "at times", "yes"), pilot=(0.5, 0.5, 0))
    with pytest.raises(InvalidInput, match="nobody gives"):
        survey_of(works, HOURS)


def test_plans_are_read_again_and_altered_ones_are_refused(planned, tmp_path):
    """A plan with a number among its parts survives its file; a part without numbers cannot claim a mean."""
    text = planned.plan.to_json()
    again = Plan.from_json(text)
    assert again.checksum == planned.plan.checksum
    assert again.part("hours").measure == "mean"
    assert again.part("hours").measured == (0, 40, NOT_APPLICABLE)
    with pytest.raises(InvalidInput, match="checksum"):
        Plan.from_json(text.replace('"measure": "mean"', '"measure": "shares"'))
    with pytest.raises(InvalidInput, match="numbers"):
        Part("works", "works", ("no", "yes"), measure="mean")
    assert (
        "measure" not in survey_of(WORKS, QuestionSpec("why", ("a", "b"), asked_if={"works": ["yes"]})).plan.to_json()
    )


def rows_of(plan, answers, folder):
    """Respondents with their reports and regions, read from a file."""
    from ldpopt_survey.collect.privatize import privatize

    answers.to_csv(folder / "answers.csv", index=False)
    privatize(plan, folder / "answers.csv", folder / "reports.csv", Simulated(np.random.default_rng(3)))
    return lambda **settings: Respondents.read(plan, folder / "reports.csv", Analysis(**settings), ["region"])


def test_groups_regressions_weights_and_tables(tmp_path):
    """By a public column the mean agrees with the regression; tables and functions of the number are refused."""
    plan = survey_of(WORKS, HOURS, epsilon=4.0, carry=("region",)).plan
    answers, _ = people(8000, 0.5, np.random.default_rng(4))
    read = rows_of(plan, answers, tmp_path)
    respondents = read()
    by = read(by=("region",)).analysis.estimates(plan, respondents.rows)["hours"].groups
    fit = respondents.linear("hours ~ region")
    assert fit.values.ravel() == pytest.approx(
        [by["north"].values[0], by["south"].values[0] - by["north"].values[0]], rel=0.02
    )
    assert fit.standard_errors.ravel()[0] == pytest.approx(by["north"].standard_errors[0], rel=0.05)
    for refused in (lambda: respondents.two_way("hours", "region"), lambda: respondents.compare("region", ["hours"]),
                    lambda: respondents.linear("log(hours + 1) ~ region"), lambda: respondents.logit("works ~ hours"),
                    lambda: respondents.linear("hours ~ region", scores=[1, 2])):  # fmt: skip
        with pytest.raises(InvalidInput):
            refused()
    assert "hours" not in {name for name, *_ in respondents.compare("region")[0]}
    answered = read(answered=True).analysis.estimates(plan, respondents.rows)["hours"].whole
    assert answered.values == pytest.approx(read().estimate("hours").values)
    looks = read(anytime=True).estimate("hours").intervals(Binomial())
    assert looks.method == "confidence sequence"
    assert looks.width[0] > read().estimate("hours").intervals().width[0]


def test_weights_and_clusters_follow_the_design(tmp_path):
    """With equal weights and units of one, the mean and its error are those of a simple sample."""
    from ldpopt_survey import SampleSpec

    plan = survey_of(WORKS, HOURS, epsilon=4.0, carry=("region", "w", "unit")).plan
    answers, truth = people(3000, 0.5, np.random.default_rng(6))
    answers["w"], answers["unit"] = "2", [str(i // 20) for i in range(3000)]
    respondents = rows_of(plan, answers, tmp_path)
    rows = {}
    for name, sample in (("simple", SampleSpec()), ("weights", SampleSpec(weights="w")),
                         ("clusters", SampleSpec(weights="w", clusters="unit"))):  # fmt: skip
        rows[name] = respondents(sample=sample).estimate("hours")
    for name in ("weights", "clusters"):
        assert rows[name].values == pytest.approx(rows["simple"].values, rel=1e-6)
        assert rows[name].standard_errors == pytest.approx(rows["simple"].standard_errors, rel=0.2)
        assert rows[name].intervals().width == pytest.approx(rows["simple"].intervals().width, rel=0.25)
        assert rows[name].intervals().contains([truth])[0]


def test_two_numbers_alone_share_a_budget():
    """Two questions for numbers, neither of which can share a report, are booklets of one."""
    made = survey_of(*(NumberSpec(name, low=0, high=8) for name in "ab"), epsilon=1.0)
    assert [q.name for q in made.plan.questions] == ["a", "b"]


def test_unequal_targets_of_a_skip_pattern_are_balanced():
    """A target that needs few respondents does not take the channel from one that needs many."""
    which = QuestionSpec("which", ("a", "b", "c"), half_width=0.15, asked_if={"drug": ["yes"]})
    drug = QuestionSpec("drug", ("no", "yes"), pilot=(0.8, 0.2))
    respondents = [survey_of(drug, which, epsilon=epsilon).respondents for epsilon in (1.0, 2.0, 3.0)]
    assert respondents[0] <= 6200
    assert respondents[1] <= 1040
    assert all(one > other for one, other in pairwise(respondents))


@pytest.mark.parametrize("high", [3, 6, 7, 13])
def test_a_number_at_a_point_moves_nowhere_at_a_large_epsilon(high):
    """Rounding errors make no probability negative, so that the report keeps an epsilon of 20 and the plan is made."""
    hours = NumberSpec("hours", low=0, high=high, half_width=high / 10, asked_if={"works": ["yes"]})
    (question,) = survey_of(WORKS, hours, epsilon=20.0).plan.questions
    assert 19 < question.epsilon <= 20
    assert points_of_part(question.parts[1]).moves.min() >= 0
