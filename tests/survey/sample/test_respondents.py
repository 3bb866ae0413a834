"""Analyses of single respondents: when missing answers are left out, they are about those who answered."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldpopt.errors import InvalidInput, SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import (
    Analysis,
    AnyOfSpec,
    Condition,
    CountTable,
    QuestionSpec,
    Respondents,
    SampleDesign,
    SampleSpec,
    Simulated,
    Subsample,
    Survey,
    SurveySpec,
    difference,
    estimate,
    linear_regression,
    logit_by_moments,
    logit_regression,
    make_plan,
    plan_survey,
    privatize,
    two_way,
)
from ldpopt_survey.estimate.groups import Source
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.regress.moments import moment_regression
from ldpopt_survey.sample.analysis import no_joint_report

FLIP = [[0.9, 0.1], [0.1, 0.9]]
N = 1200


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Respondents, pd.DataFrame]:
    """A survey in which a third left each question out, and its reports as they stand in the file."""
    folder: Path = tmp_path_factory.mktemp("left_out")
    rng = np.random.default_rng(21)
    reading = Reading(missing_answers="left out")
    spec = SurveySpec(
        "demo", tuple(QuestionSpec(name, ("no", "yes"), reading=reading) for name in ("a", "b")), carry=("sex", "w")
    )
    plan = make_plan(spec, {"a": FLIP, "b": FLIP})
    columns = {name: np.where(rng.random(N) < 1 / 3, "", rng.choice(["no", "yes"], N)) for name in ("a", "b")}
    frame = pd.DataFrame({**columns, "sex": rng.choice(["f", "m"], N), "w": rng.uniform(1, 3, N).round(3)})
    frame.to_csv(folder / "answers.csv", index=False)
    privatize(plan, folder / "answers.csv", folder / "reports.csv", Simulated(rng))
    made = Respondents.read(plan, folder / "reports.csv", names=["sex", "w"])
    return made, pd.read_csv(folder / "reports.csv", dtype=str)


def codes(made: Respondents, column: pd.Series) -> np.ndarray:
    reports = made.plan.questions[0].reports
    return column.map({report: at for at, report in enumerate(reports)}).to_numpy(int)


def test_estimates_tables_and_comparisons_are_of_those_who_answered(people: tuple[Respondents, pd.DataFrame]) -> None:
    """Shares, tables, differences and regressions are those of the rows without an empty report, dropped by hand."""
    made, frame = people
    there = frame.dropna(subset=["a"])
    assert 0 < len(there) < N
    want = estimate(CountTable.from_reports(codes(made, there.a), FLIP), FLIP)
    assert np.allclose(made.estimate("a").values, want.values, atol=1e-12)
    groups = {sex: CountTable.from_reports(codes(made, rows.a), FLIP) for sex, rows in there.groupby("sex")}
    apart, tests = made.compare("sex", ["a"])
    by_hand = difference(estimate(groups["m"], FLIP), estimate(groups["f"], FLIP))
    assert np.allclose(apart["a", "m", "f"].values, by_hand.values, atol=1e-12)
    assert np.allclose(apart["a", "m", "f"].intervals().lower, by_hand.intervals().lower, atol=1e-12)
    both = frame.dropna(subset=["a", "b"])
    table = two_way(codes(made, both.a), codes(made, both.b), FLIP, FLIP)
    assert np.allclose(made.two_way("a", "b").proportions, table.proportions, atol=1e-12)
    assert made.two_way("a", "b").joint.n == len(both)
    test = two_way(codes(made, there.a), (there.sex == "m").to_numpy(int), FLIP, np.eye(2)).independence()
    assert np.isclose(tests["a"].p_value, test.p_value, atol=1e-12)


def test_a_group_without_reports_of_a_question_is_named(people: tuple[Respondents, pd.DataFrame]) -> None:
    """The message of a comparison names the group, the question, and the condition that leaves the group out."""
    made, _ = people
    answered, sex = made.answered("a"), made.rows.columns["sex"].copy()
    sex[np.flatnonzero(~answered)[:3]] = "x"
    lone = replace(made, rows=replace(made.rows, columns={**made.rows.columns, "sex": sex}))
    with pytest.raises(InvalidInput, match=r"the group 'x' has no report of 'a'\. .*--where \"sex != x\""):
        lone.compare("sex", ["a"])
    others = replace(lone, analysis=replace(lone.analysis, where=(Condition.parse("sex != x"),)))
    assert set(others.compare("sex", ["a"])[0]) == {("a", "m", "f")}


def test_regressions_are_of_those_who_answered_every_question_of_the_formula(
    people: tuple[Respondents, pd.DataFrame],
) -> None:
    made, frame = people
    both = frame.dropna(subset=["a", "b"])
    data = {"a": codes(made, both.a), "b": codes(made, both.b), "sex": both.sex.to_numpy()}
    channels = {"a": FLIP, "b": FLIP}
    for found, want in (
        (made.logit("a ~ sex"), None),
        (made.logit("a ~ b + sex"), logit_by_moments("a ~ b + sex", data, channels)),
        (made.logit_by_likelihood("a ~ b + sex"), logit_regression("a ~ b + sex", data, channels)),
        (made.linear("a ~ b + sex", scores=[0, 1]), linear_regression("a ~ b + sex", data, channels, scores=[0, 1])),
    ):
        assert found.n == (frame.a.notna().sum() if want is None else len(both))
        if want is not None:
            assert np.allclose(found.values, want.values, atol=1e-12)
            assert np.allclose(found.covariance, want.covariance, atol=1e-12)


def test_who_left_a_question_out_stays_in_the_design(people: tuple[Respondents, pd.DataFrame]) -> None:
    """With weights, those who answered are a subgroup of the sample, in estimates, tables and regressions."""
    made, frame = people
    people_ = Respondents(made.plan, made.rows, Analysis(SampleSpec(weights="w")))
    answered = frame.a.notna().to_numpy()
    design = SampleDesign(frame.w.astype(float).to_numpy())
    sub = Subsample(design, answered)
    data = {"a": codes(made, frame.a[answered]), "sex": frame.sex[answered].to_numpy()}
    for way, fit in ((people_.logit, logit_by_moments), (people_.logit_by_likelihood, logit_regression)):
        want = fit("a ~ sex", data, {"a": FLIP}, sample=sub)
        assert np.allclose(way("a ~ sex").covariance, want.covariance, atol=1e-12)
    assert people_.two_way("a", "sex").joint.n == answered.sum()
    assert people_.estimate("a").n == answered.sum()


def test_nobody_who_answered_is_an_error(people: tuple[Respondents, pd.DataFrame]) -> None:
    made, _ = people
    alone = Respondents(made.plan, made.rows, Analysis(where=(Condition.parse("w > 100"),)))
    with pytest.raises(InvalidInput, match="meets"):
        alone.estimate("a")


@pytest.mark.parametrize("sample", [SampleSpec(), SampleSpec(weights="w")])
def test_a_share_within_a_row_has_the_interval_of_the_group(
    people: tuple[Respondents, pd.DataFrame], sample: SampleSpec
) -> None:
    """The column of a table given a public value is the estimate among those with the value: errors, degrees, ends."""
    made, _ = people
    table = Respondents(made.plan, made.rows, Analysis(sample)).two_way("a", "sex").given_column("f")
    group = Respondents(made.plan, made.rows, Analysis(sample, where=(Condition.parse("sex = f"),))).estimate("a")
    assert np.allclose(table.values, group.values, atol=1e-12)
    assert np.allclose(table.covariance, group.covariance, atol=1e-12)
    assert table.degrees == group.degrees
    assert np.allclose(table.intervals().lower, group.intervals().lower, atol=1e-12)
    assert np.allclose(table.intervals().upper, group.intervals().upper, atol=1e-12)


def test_those_who_answered_are_the_same_in_every_analysis(tmp_path: Path) -> None:
    """Where missing answers are a category, estimates, tables, differences, logits and reports may be without it.

    Answers go through a nearly certain channel, so that each is compared with the answers of those who gave them.
    """
    rng, n = np.random.default_rng(5), 4000
    reading = Reading(missing_answers="category")
    questions = tuple(QuestionSpec(name, ("no", "yes", "none"), missing="none", reading=reading) for name in ("a", "b"))
    sure = np.full((3, 3), 2.0**-12) + (1 - 3 * 2.0**-12) * np.eye(3)
    plan = make_plan(SurveySpec("demo", questions, carry=("sex",)), {"a": sure, "b": sure})
    frame = pd.DataFrame({name: rng.choice(["no", "yes", ""], n, p=[0.5, 0.3, 0.2]) for name in ("a", "b")})
    frame["sex"] = rng.choice(["f", "m"], n)
    frame.to_csv(tmp_path / "answers.csv", index=False)
    privatize(plan, tmp_path / "answers.csv", tmp_path / "reports.csv", Simulated(rng))
    made = Respondents.read(plan, tmp_path / "reports.csv", Analysis(answered=True), names=["sex"])

    gave = frame[frame["a"] != ""]
    found = made.estimate("a")
    assert found.labels == ("no", "yes")
    assert found.values[1] == pytest.approx((gave["a"] == "yes").mean(), abs=0.005)
    both = frame[(frame["a"] != "") & (frame["b"] != "")]
    table = made.two_way("a", "b")
    assert table.proportions == pytest.approx(pd.crosstab(both["a"], both["b"], normalize=True).to_numpy(), abs=0.005)
    assert table.independence().degrees == 1
    sexes, tests = made.compare("sex", ["a"])
    rates = (gave["a"] == "yes").groupby(gave["sex"]).mean()
    assert sexes["a", "m", "f"].values[1] == pytest.approx(rates["m"] - rates["f"], abs=0.01)
    assert tests["a"].degrees == 1
    logit = made.logit("a ~ sex", reference="no")
    assert logit.equations == ("yes",)
    want = np.log(rates["m"] / (1 - rates["m"])) - np.log(rates["f"] / (1 - rates["f"]))
    assert logit.coefficients[0, 1] == pytest.approx(want, abs=0.03)
    pair = made.logit("a ~ b", reference="no")
    rates = (both["a"] == "yes").groupby(both["b"]).mean()
    want = np.log(rates["yes"] / (1 - rates["yes"])) - np.log(rates["no"] / (1 - rates["no"]))
    assert pair.coefficients[0, 1] == pytest.approx(want, abs=0.05)
    asked = Analysis.from_dict(made.analysis.to_dict())
    assert asked.answered
    assert "among those who answered" in str(asked)
    counts = Survey(plan).findings(tmp_path / "reports.csv", Analysis(answered=True))[0]["a"].whole
    assert counts.values == pytest.approx(found.values)


def test_moments_are_right_where_the_formula_is_not_the_law(people: tuple[Respondents, pd.DataFrame]) -> None:
    """Log-odds that are not linear in a private number: moments give the slope of the true answers' regression.

    The likelihood's slope depends on the channels then, here by many standard errors.
    """
    made, _ = people
    for formula in ("a ~ b + sex", "a ~ sex"):
        by_likelihood, by_moments = made.logit_by_likelihood(formula), made.logit(formula)
        assert (by_likelihood.method, by_moments.method) == ("likelihood", "moments")
        assert np.allclose(by_moments.values, by_likelihood.values, atol=3 * by_likelihood.standard_errors.max())
    rng, n = np.random.default_rng(17), 200_000
    x = rng.choice([0, 1, 2, 3], n, p=[0.1, 0.2, 0.3, 0.4])
    y = (rng.random(n) < np.array([0.1, 0.2, 0.9, 0.3])[x]).astype(int)
    true = logit_regression("y ~ x", {"x": x, "y": y}, {}).coefficients[0, 1]
    channels = {"x": randomized_response(4, 1.5, inputs=[0, 1, 2, 3]), "y": randomized_response(2, 1.5)}
    at = {"x": channels["x"].sample_indices(x, rng), "y": channels["y"].sample_indices(y, rng)}
    likelihood = logit_regression("y ~ x", at, channels)
    alone = logit_by_moments("y ~ x", at, channels)
    joint = channels["x"].product(channels["y"])
    source = Source("both", joint, at["x"] * 2 + at["y"], np.eye(8), np.full(8, 1 / 8))
    moments = moment_regression("y ~ x", {}, {"x": (0, 1, 2, 3), "y": (0, 1)}, [source])
    assert abs(moments.coefficients[0, 1] - true) < 3 * moments.standard_errors[0, 1]
    assert np.allclose(alone.values, moments.values, atol=1e-8)
    away, of = likelihood.difference_from(alone)
    assert (away > 3, of) == (True, "x")
    assert abs(likelihood.coefficients[0, 1] - true) > 3 * likelihood.standard_errors[0, 1]


def test_where_moments_have_no_solution_the_likelihood_stands_in_and_says_so(tmp_path: Path) -> None:
    """Four rare combinations in few reports of small epsilon: no finite moments, so a penalised likelihood."""
    rng, n = np.random.default_rng(1), 120
    questions = tuple(QuestionSpec(name, ("no", "yes")) for name in ("a", "b", "c"))
    flip = randomized_response(2, 0.5).matrix
    plan = make_plan(SurveySpec("demo", questions), dict.fromkeys("abc", flip))
    frame = pd.DataFrame({name: rng.choice(["no", "yes"], n, p=[0.9, 0.1]) for name in ("a", "b", "c")})
    frame.to_csv(tmp_path / "answers.csv", index=False)
    for seed in range(20):
        out = tmp_path / f"reports-{seed}.csv"
        privatize(plan, tmp_path / "answers.csv", out, Simulated(seed))
        people = Respondents.read(plan, out)
        found = people.logit("a ~ b + c")
        (said,) = people.against_moments(found) or [""]
        if found.method == "moments":
            assert found.estimand == "the limit of the same regression on true answers, whatever their distribution"
            continue
        assert found.method.endswith("likelihood")
        assert said.startswith("By moments no finite coefficients")
        assert "which depend on the channels" in found.estimand
        with pytest.raises(SolverError, match="no finite"):
            people.logit_by_moments("a ~ b + c")
        break
    else:
        pytest.fail("moments had a solution in every survey")


def test_tables_of_options_name_the_plan_that_serves() -> None:
    """A survey.toml names the question and not its options; the plan with that line tells the table."""
    boxes, other = AnyOfSpec("boxes", options=("x", "y", "z")), QuestionSpec("b", ("no", "yes"))
    plan = plan_survey(SurveySpec("s", (boxes, other), epsilon=2.0)).plan
    assert str(no_joint_report("table", ("boxes: x", "b"), plan)).count('together = [["boxes", "b"]] in [budget]') == 1
    serving = plan_survey(SurveySpec("s", (boxes, other), epsilon=2.0, together=(("boxes", "b"),)))
    assert all(table.estimable for table in serving.tables)
    assert "boxes: x" in {name for table in serving.tables for name in table.questions}
    assert "questions of two answers" in str(no_joint_report("table", ("boxes: x", "boxes: y"), plan))
    three = str(no_joint_report("table", ("boxes: x", "b", "c"), replace_part(plan, "c")))
    assert 'everyone = ["boxes", "b", "c"]' in three


def replace_part(plan, name):
    """The plan with one more question."""
    more = plan_survey(SurveySpec("s", (QuestionSpec(name, ("no", "yes"), epsilon=1.0),))).plan
    return replace(plan, questions=(*plan.questions, *more.questions))
