"""A number is asked from survey.toml on, and its mean is estimated through a channel whose rows are the numbers."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table as write_parquet

from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    Counts,
    NumberSpec,
    QuestionSpec,
    Respondents,
    Simulated,
    Survey,
    SurveySpec,
    aggregate,
    numeric_question,
    plan_survey,
    privatize_frame,
    second_spec,
)
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.sample.respondents import against_wave

TOML = """
[survey]
name = "work"
carry = ["region"]
[budget]
epsilon = 1
[[questions]]
name = "hours"
type = "number"
low = 0
high = 80
half_width = 2
"""
PLAN = Plan.from_json(plan_survey(SurveySpec.from_toml(TOML)).plan.to_json())


def drawn(seed, n=4000):
    rng = np.random.default_rng(seed)
    answers = {"hours": rng.binomial(80, 0.3, n), "region": np.where(rng.random(n) < 0.5, "north", "south")}
    return answers, privatize_frame(PLAN, pa.table(answers), Simulated(rng))[0]


def test_the_integers_prove_the_guarantee_of_the_numbers_themselves():
    """Any two of the 81 rows are within e^1 in exact integers, and unbiased weights of reports give each number."""
    (question,) = PLAN.questions
    rows = question.channel.weights.astype(object)
    worst = max(max(col) / min(col) for col in rows.T.tolist())
    assert worst <= math.e * (1 + 1e-15)
    assert question.epsilon <= 1
    q = question.channel.matrix
    weights = np.linalg.lstsq(q, np.arange(81.0), rcond=None)[0]
    assert np.abs(q @ weights - np.arange(81)).max() < 1e-9


@pytest.mark.full
def test_the_mean_is_estimated_as_precisely_as_planned():
    """In 150 surveys of as many people as the plan wants, the interval holds the mean, and is as wide as planned."""
    n = int(PLAN.questions[0].expected["respondents"])
    held, widths = 0, []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        answers = rng.integers(0, 81, n)
        reports = privatize_frame(PLAN, pa.table({"hours": answers, "region": ["-"] * n}), Simulated(rng))[0]
        found = Survey(PLAN).estimate("hours", reports)
        limits = found.intervals()
        held += limits.lower[0] <= 40 <= limits.upper[0]
        widths.append(float(limits.upper[0] - limits.lower[0]) / 2)
    assert 0.92 <= held / 150 <= 0.985
    assert np.mean(widths) == pytest.approx(2, rel=0.05)


def test_it_needs_about_as_few_respondents_as_numbers_on_a_grid():
    """The channel of whole numbers is that of `numeric_question` at its own pilot."""
    grid = numeric_question(0, 80, 1.0, 2.0, pilot=np.arange(81.0))
    assert PLAN.questions[0].expected["respondents"] == pytest.approx(grid.rows[0].respondents, rel=1e-3)


def test_groups_and_regressions_are_about_means(tmp_path):
    """`by` gives a mean for each group and least squares explains it; what needs shares is refused."""
    answers, reports = drawn(5)
    write_parquet(reports, tmp_path / "reports.parquet")
    found, _ = Survey(PLAN).findings(tmp_path / "reports.parquet", Analysis(by=("region",)))
    for name, one in {"": found["hours"].whole, **found["hours"].groups}.items():
        assert one.labels == ("mean",)
        truth = answers["hours"][(answers["region"] == name) | (name == "")].mean()
        assert abs(one.values[0] - truth) < 4 * one.standard_errors[0]
    people = Respondents.read(PLAN, tmp_path / "reports.parquet", names=["region"])
    slope = people.linear("hours ~ region").coefficients[0, 1]
    assert slope == pytest.approx(
        float(found["hours"].groups["south"].values[0] - found["hours"].groups["north"].values[0]), rel=1e-9
    )
    for refused in (lambda: people.two_way("hours", "region"), lambda: people.logit("hours ~ region"),
                    lambda: people.compare("region", ["hours"])):  # fmt: skip
        with pytest.raises(InvalidInput, match="shares"):
            refused()


def test_estimates_may_be_looked_at_early():
    """The confidence sequence of a mean lies within the range, and around the truth."""
    answers, reports = drawn(6)
    found = Survey(PLAN).estimate("hours", reports["hours"], anytime=True).intervals()
    assert 0 <= found.lower[0] < answers["hours"].mean() < found.upper[0] <= 80


@pytest.mark.parametrize(
    "wrong",
    [
        {"high": 0}, {"low": None}, {"step": 0.3}, {"step": 0.01}, {"step": 1e-6, "high": 1e-5}, {"half_width": 80},
        {"high": 1e300}, {"low": float("nan")}, {"step": 0}, {"step": -1}, {"categories": ("a", "b")},
        {"power": 0.8}, {"missing": "none"}, {"high": float("inf")},
        {"high": 3, "pilot": [1, 0, 0, 0]},
    ],
)  # fmt: skip
def test_what_is_no_range_is_refused(wrong):
    """Empty ranges, steps that do not fit, too many numbers, and keys of other questions; no traceback."""
    with pytest.raises(InvalidInput):
        NumberSpec("hours", **{"low": 0, "high": 80} | wrong)


@pytest.mark.parametrize("pilot", [None, [0.5, 0.5] + [0] * 19, [0.5] + [0] * 19 + [0.5]])
def test_whatever_the_pilot_every_number_counts(pilot):
    """A pilot that rules numbers out makes no bias: the weights of reports give each number of the range."""
    number = NumberSpec("hours", low=0, high=20, pilot=pilot)
    q = plan_survey(SurveySpec("work", (number,), epsilon=1.0)).plan.questions[0].channel.matrix
    weights = np.linalg.lstsq(q, np.arange(21.0), rcond=None)[0]
    assert np.abs(q @ weights - np.arange(21)).max() < 1e-10


def test_decimal_steps_are_the_decimals_themselves():
    """0.1 three times is 0.3, as in a file and in a browser."""
    assert NumberSpec("share", low=0, high=1, step=0.1).categories[:5] == (0, 0.1, 0.2, 0.3, 0.4)
    assert NumberSpec("balance", low=-1, high=1, step=0.5).categories == (-1, -0.5, 0, 0.5, 1)


@pytest.mark.full
def test_no_question_hangs_on_a_number_and_none_joins_its_report():
    """Conditions on numbers are refused; a number has a booklet of its own."""
    number = NumberSpec("hours", low=0, high=80)
    other = QuestionSpec("overtime", ("no", "yes"), asked_if={"hours": [80]})
    with pytest.raises(InvalidInput, match="asked_if"):
        plan_survey(SurveySpec("work", (number, other), epsilon=2.0))
    spec = SurveySpec("work", (number, *(QuestionSpec(x, ("no", "yes")) for x in "abc")), epsilon=3.0)
    assert "hours" in [question.name for question in plan_survey(spec).plan.questions]


def test_waves_of_means(tmp_path):
    """A second wave is planned from the first; both together have a mean, and differences of shares leave it out."""
    more = '[[questions]]\nname = "vote"\ncategories = ["no", "yes"]\n'
    text = TOML.replace("[budget]\nepsilon = 1\n", "").replace("half_width = 2", "epsilon = 2") + more + "epsilon = 1\n"
    spec, rng, waves = SurveySpec.from_toml(text), np.random.default_rng(8), []
    for at in (1, 2):
        if at == 2:
            spec = second_spec(spec, waves[0].estimates(), 1)
        plan = plan_survey(spec).plan
        answers = {"hours": rng.integers(0, 81, 3000), "region": ["-"] * 3000, "vote": rng.choice(["no", "yes"], 3000)}
        write_parquet(privatize_frame(plan, pa.table(answers), Simulated(rng))[0], tmp_path / f"{at}.parquet")
        waves.append(Wave(plan, aggregate(plan, tmp_path / f"{at}.parquet"), tmp_path / f"{at}.parquet"))
    both = Survey(waves[1].plan).with_wave(waves[1].counts, Survey(waves[0].plan), waves[0].counts)
    assert abs(both["hours"].values[0] - 40) < 4 * both["hours"].standard_errors[0] < 4
    people = [Respondents.read(one.plan, one.path) for one in waves]
    changes, tests = against_wave(*people)
    assert {name for name, *_ in changes} == set(tests) == {"vote"}
    with pytest.raises(InvalidInput, match="both waves ask"):
        against_wave(*people, ["hours"])


class Wave(NamedTuple):
    """A plan with its reports."""

    plan: Plan
    counts: Counts
    path: Path

    def estimates(self):
        return Survey(self.plan).estimates(self.counts)
