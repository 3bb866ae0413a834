"""Estimates over booklets: unbiased, with the errors that they say, for every analysis that takes them."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import QuestionSpec, Reading, Simulated, Survey, SurveySpec, plan_survey
from ldpopt_survey.collect.aggregate import aggregate, read_rows
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Memoized, booklet_steps
from ldpopt_survey.collect.words import Respondents as WordsOf
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.kit.folder import public_plan
from ldpopt_survey.sample.analysis import Analysis
from ldpopt_survey.sample.respondents import Respondents
from ldpopt_survey.sample.spec import SampleSpec

YES_NO = ("no", "yes")
EXPERIMENTS = Path(__file__).parents[3] / "experiments" / "surveys"
SHARES = {"drug": [0.7, 0.3], "smokes": [0.68, 0.32], "party": [0.5, 0.3, 0.2]}


def people(n: int, seed: int) -> pd.DataFrame:
    """A population in which smoking hangs on drugs, drawn in clusters of ten."""
    rng = np.random.default_rng(seed)
    drug = rng.random(n) < 0.3
    smokes = rng.random(n) < np.where(drug, 0.6, 0.2)
    return pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(n)],
            "drug": np.where(drug, "yes", "no"),
            "smokes": np.where(smokes, "yes", "no"),
            "which": np.where(drug, rng.choice(["a", "b"], n), None),
            "party": rng.choice(["x", "y", "z"], n, p=SHARES["party"]),
            "sex": rng.choice(["f", "m"], n),
            "w": rng.uniform(0.5, 2, n).round(3),
            "c": np.arange(n) // 10,
        }
    )


def survey(epsilon: float, asked: tuple[str, ...] = ("drug", "smokes", "party"), **more: object) -> Survey:
    """A planned survey of some of the questions."""
    specs = {
        "drug": QuestionSpec("drug", YES_NO),
        "smokes": QuestionSpec("smokes", YES_NO),
        "which": QuestionSpec("which", ("a", "b"), asked_if={"drug": ["yes"]}),
        "party": QuestionSpec("party", ("x", "y", "z")),
    }
    spec = SurveySpec("s", tuple(specs[name] for name in asked), epsilon=epsilon, **more)
    return Survey(plan_survey(spec).plan)


@pytest.fixture(scope="module", params=["one", "pairs", "together", "everyone"])
def planned(request: pytest.FixtureRequest) -> Survey:
    """Booklets of one question, of two that overlap, of a pair that is wanted together, and beside one for all."""
    made = {
        "one": lambda: survey(1.0),
        "pairs": lambda: survey(2.5),
        "together": lambda: survey(1.5, together=(("drug", "smokes"),)),
        "everyone": lambda: survey(3.0, everyone=("party",)),
    }
    return made[request.param]()


@pytest.mark.full(but=1)
def test_estimates_are_unbiased_and_their_errors_true(planned: Survey) -> None:
    """Over 50 surveys of the same people the mean is the truth, and the errors are the spread."""
    frame = people(1500, 3)
    truth = {
        name: frame[name].value_counts(normalize=True)[list(planned.plan.part(name).categories)].to_numpy()
        for name in SHARES
    }
    values: dict[str, list[np.ndarray]] = {name: [] for name in SHARES}
    errors: dict[str, list[np.ndarray]] = {name: [] for name in SHARES}
    for seed in range(50):
        table = planned.privatize(frame, Simulated(seed))
        counts = {
            q.name: np.bincount(table[q.name].combine_chunks().indices.drop_null().to_numpy(), minlength=len(q.reports))
            for q in planned.plan.questions
        }
        found = planned.estimates(_counts(planned, counts, len(frame)))
        for name, one in found.items():
            values[name].append(one.values)
            errors[name].append(one.standard_errors)
    for name in SHARES:
        spread, said = np.std(values[name], axis=0), np.mean(errors[name], axis=0)
        assert np.abs(np.mean(values[name], axis=0) - truth[name]).max() <= 4.5 * spread.max() / 50**0.5
        assert np.all(np.abs(spread / said - 1) < 0.3)


def _counts(planned: Survey, counts: dict[str, np.ndarray], rows: int):
    from ldpopt_survey import Counts

    return Counts(planned.plan.checksum, rows, {(name,): table for name, table in counts.items()})


def test_files_counts_and_rows_agree(planned: Survey, tmp_path: Path) -> None:
    """The estimates from counts are those from rows; every respondent has one booklet and its report alone."""
    people(3000, 1).to_csv(tmp_path / "a.csv", index=False)
    privatize(planned.plan, tmp_path / "a.csv", tmp_path / "r.csv", Simulated(2))
    reports = pd.read_csv(tmp_path / "r.csv", dtype=str)
    if planned.plan.booklets:
        drawn = reports[[q.name for q in planned.plan.booklets]]
        assert (drawn.notna().sum(axis=1) == 1).all()
        assert (drawn.notna().idxmax(axis=1) == reports["booklet"]).all()
        shares = reports["booklet"].value_counts(normalize=True)
        for question in planned.plan.booklets:
            assert abs(shares[question.name] - float(question.probability)) < 5 * np.sqrt(0.25 / 3000)
    found, _ = planned.findings(aggregate(planned.plan, tmp_path / "r.csv"))
    rows, _ = planned.findings(tmp_path / "r.csv", Analysis(level=0.95, by=()))
    for name in SHARES:
        np.testing.assert_allclose(found[name].whole.values, rows[name].whole.values, atol=1e-12)
        np.testing.assert_allclose(found[name].whole.covariance, rows[name].whole.covariance, atol=1e-12)


def test_a_frame_gives_the_estimate_of_its_file(planned: Survey, tmp_path: Path) -> None:
    """One question from a table or a data frame: the same estimate, over all booklets that ask it."""
    frame = people(2000, 4)
    table = planned.privatize(frame, Simulated(5))
    table.to_pandas().to_csv(tmp_path / "r.csv", index=False)
    for name in SHARES:
        one = planned.estimate(name, table)
        again = planned.estimate(name, pd.read_csv(tmp_path / "r.csv", dtype=str))
        np.testing.assert_allclose(one.values, again.values, atol=1e-12)
        np.testing.assert_allclose(one.covariance, again.covariance, atol=1e-12)


def test_a_report_of_another_booklet_is_refused(tmp_path: Path) -> None:
    """Rows that do not fit their booklet are no reports of the plan."""
    planned = survey(1.0)
    people(50, 1).to_csv(tmp_path / "a.csv", index=False)
    privatize(planned.plan, tmp_path / "a.csv", tmp_path / "r.csv", Simulated(2))
    reports = pd.read_csv(tmp_path / "r.csv", dtype=str)
    reports.loc[7, ["drug", "smokes", "party"]] = "0"
    reports.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(InvalidInput, match="must have a report if this is the row"):
        aggregate(planned.plan, tmp_path / "bad.csv", unlabelled=True)


def test_answers_that_are_tuples_are_not_parts() -> None:
    """A question whose own answers are tuples has a public plan and a device beside booklets, like any other."""
    asked = (QuestionSpec("t", (("a", "b"), ("a", "c"))), QuestionSpec("u", YES_NO))
    plan = plan_survey(SurveySpec("s", asked, epsilon=1.0)).plan
    public = public_plan(plan)
    assert [question["cells"] for question in public["questions"]] == [None, None]
    assert plan.question("t").members("t").tolist() == [[1, 0], [0, 1]]


def test_the_booklet_of_a_respondent_stays(tmp_path: Path) -> None:
    """With a key booklet and report hang on the id, in any order of rows; other answers keep the booklet."""
    planned = survey(1.0, respondent="id")
    create_key(tmp_path / "k")
    frame = people(300, 5)
    first = planned.privatize(frame, Memoized(tmp_path / "k")).to_pandas()
    again = planned.privatize(frame.iloc[::-1], Memoized(tmp_path / "k")).to_pandas().iloc[::-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(first.astype(str), again.astype(str))
    other = planned.privatize(frame.assign(drug="yes", smokes="no", party="x"), Memoized(tmp_path / "k")).to_pandas()
    assert (other["booklet"].astype(str) == first["booklet"].astype(str)).all()


def test_not_asked_is_not_missing() -> None:
    """A blank answer to a question that was not drawn is never read, so it is not refused."""
    planned = survey(1.0)
    frame = people(200, 5)
    booklets = planned.privatize(frame, Simulated(1)).to_pandas()["booklet"].astype(str)
    for name in SHARES:
        frame[name] = frame[name].where(booklets == name)
    again = planned.privatize(frame, Simulated(1)).to_pandas()
    assert (again["booklet"].astype(str) == booklets).all()


def test_routing_hides_who_was_asked() -> None:
    """Both questions share a report; blanks of those who are not asked are an answer, and its share is estimated."""
    planned = survey(3.0, ("drug", "which"))
    frame = people(6000, 6)
    table = planned.privatize(frame, Simulated(4))
    assert table.column_names == ["drug + which"]
    assert table["drug + which"].null_count == 0
    counts = np.bincount(
        table["drug + which"].combine_chunks().indices.to_numpy(), minlength=len(planned.plan.questions[0].reports)
    )
    found = planned.estimates(_counts(planned, {"drug + which": counts}, len(frame)))
    truth = [(frame["which"] == "a").mean(), (frame["which"] == "b").mean(), (frame["drug"] == "no").mean()]
    assert np.abs(found["which"].values - truth).max() < 4.5 * found["which"].standard_errors.max()
    assert found["which"].labels == ("a", "b", "not applicable")


@pytest.mark.full(but=2)
def test_tables_come_from_the_booklets_that_hold_the_pair(planned: Survey, tmp_path: Path) -> None:
    """Pairs that a booklet holds have a table with true cells; others are refused with what would serve."""
    frame = people(12000, 8)
    frame.to_csv(tmp_path / "a.csv", index=False)
    planned = Survey(
        plan_survey(
            SurveySpec("s", _specs(planned), epsilon=planned.plan.epsilon, carry=("sex",), **_design(planned))
        ).plan
    )
    privatize(planned.plan, tmp_path / "a.csv", tmp_path / "r.csv", Simulated(2))
    read = Respondents.read(planned.plan, tmp_path / "r.csv", names=["sex"])
    truth = pd.crosstab(frame["drug"], frame["smokes"], normalize=True).to_numpy()
    if any({"drug", "smokes"} <= {one.name for one in q.answers} for q in planned.plan.questions):
        made = read.two_way("drug", "smokes")
        assert np.abs(made.proportions - truth).max() < 4.5 * made.joint.standard_errors.max()
        assert made.independence().p_value < 1e-6
    else:
        with pytest.raises(InvalidInput, match='together = \\[\\["drug", "smokes"\\]\\]'):
            read.two_way("drug", "smokes")
    by_sex = read.two_way("sex", "drug")
    assert np.abs(by_sex.proportions - pd.crosstab(frame["sex"], frame["drug"], normalize=True).to_numpy()).max() < 0.05
    assert set(read.compare("sex")[1]) == set(SHARES)


def _specs(planned: Survey) -> tuple[QuestionSpec, ...]:
    return tuple(QuestionSpec(name, planned.plan.part(name).categories) for name in SHARES)


def _design(planned: Survey) -> dict[str, object]:
    names = [q.name for q in planned.plan.questions]
    if not planned.plan.booklets:
        return {"everyone": ("party",)}
    return {"together": (("drug", "smokes"),)} if "drug + smokes" in names and len(names) == 2 else {}


def test_weights_and_clusters_count(tmp_path: Path) -> None:
    """With a design of the sample the estimate is the weighted one, and clusters enter the variance."""
    frame = people(4000, 9)
    planned = survey(2.5, carry=("w", "c"), sample=SampleSpec(weights="w", clusters="c"))
    frame.to_csv(tmp_path / "a.csv", index=False)
    privatize(planned.plan, tmp_path / "a.csv", tmp_path / "r.csv", Simulated(2))
    found, _ = planned.findings(tmp_path / "r.csv")
    truth = np.average(frame["drug"] == "yes", weights=frame["w"])
    one = found["drug"].whole
    assert abs(one.values[1] - truth) < 4.5 * one.standard_errors[1]
    weights = frame.groupby("c")["w"].sum()
    assert 200 < one.degrees < 399 * (weights**2).sum() ** 2 / (weights**4).sum() / len(weights) * 1.02
    rows = read_rows(planned.plan, tmp_path / "r.csv", ["w", "c"])
    assert rows.n == 4000


def test_missing_answers_in_a_booklet() -> None:
    """Left out: empty for those who were asked and did not answer; a category of its own: estimated like an answer."""
    left = QuestionSpec("a", YES_NO, reading=Reading(missing_answers="left out"))
    own = QuestionSpec("b", (*YES_NO, "none"), missing="none", reading=Reading(missing_answers="category"))
    planned = Survey(plan_survey(SurveySpec("s", (left, own), epsilon=1.0)).plan)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.choice(["no", "yes", None], 5000, p=[0.5, 0.3, 0.2]) for name in "ab"})
    table = planned.privatize(frame, Simulated(3)).to_pandas()
    asked = table["booklet"].astype(str) == "a"
    assert 0.1 < table.loc[asked, "a"].isna().mean() < 0.3
    assert table.loc[~asked, "b"].notna().all()


def test_booklets_are_drawn_by_their_probabilities() -> None:
    """A word below 2^64 p_1 draws the first booklet, and so on: exactly the fractions of the plan, to one word."""
    planned = survey(1.0)
    steps = [int(step) for step in booklet_steps(planned.plan)]
    ends = np.diff([0, *steps, 2**64])
    for question, width in zip(planned.plan.booklets, ends, strict=True):
        assert abs(int(width) - question.probability * 2**64) <= 1


@pytest.mark.full
@pytest.mark.skipif(not EXPERIMENTS.is_dir(), reason="the experiments are not beside the tests")
def test_the_experiments_on_booklets_run() -> None:
    """Their short forms: intervals of every setting cover mostly, and booklets have the smaller errors."""
    coverage = runpy.run_path(str(EXPERIMENTS / "coverage" / "booklets.py"))
    for name, (spec, n) in coverage["SETTINGS"].items():
        assert coverage["covered"](name, spec, n, 4, np.random.default_rng(1)).mean() > 0.6
    anes = runpy.run_path(str(EXPERIMENTS / "anes" / "booklets.py"))
    frame = anes["answers"]()
    assert frame.shape == (944, 10)
    asked = tuple(QuestionSpec(name, YES_NO) for name in frame.columns)
    split, booklets = (
        anes["error"](Survey(plan_survey(SurveySpec("s", asked, epsilon=1.0, design=way)).plan), frame, 3)
        for way in ("split", "booklets")
    )
    assert booklets < split


def test_a_refused_regression_names_plans_that_allow_it(tmp_path: Path) -> None:
    """The error for questions that nobody is asked together names plans, each of which allows the regression."""
    frame = people(8000, 5)
    frame.to_csv(tmp_path / "a.csv", index=False)
    more = r" in \[budget\] of survey.toml, then ldpopt survey plan survey.toml"
    plans = {
        "booklets": survey(1.0),
        "report": survey(2.5, together=(("drug", "smokes"),)),
        "everyone": survey(6.0, everyone=("drug", "smokes")),
    }
    for name, planned in plans.items():
        privatize(planned.plan, tmp_path / "a.csv", tmp_path / f"{name}.csv", Simulated(2))
        read = Respondents.read(planned.plan, tmp_path / f"{name}.csv")
        if name == "booklets":
            with pytest.raises(InvalidInput, match=r'formula: .*together = \[\["drug", "smokes"\]\]' + more):
                read.logit("smokes ~ drug")
            with pytest.raises(InvalidInput, match=r'everyone = \["drug", "party", "smokes"\]' + more):
                read.linear("smokes ~ drug + party")
        else:
            found = read.logit("smokes ~ drug")
            assert found.method == "moments"
            assert abs(found.values[1] - np.log(0.6 / 0.4 / (0.2 / 0.8))) < 0.5
            if name == "everyone":
                assert read.logit_by_likelihood("smokes ~ drug").method == "likelihood"
                continue
            with pytest.raises(InvalidInput, match="likelihood: expected questions with a report each"):
                read.logit_by_likelihood("smokes ~ drug")


def test_the_ids_of_respondents_are_absorbed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to find duplicates and once for all words, whatever the booklets: those asked one keep their states."""
    planned, counted = survey(1.0, respondent="id"), []
    create_key(tmp_path / "key")
    absorb = WordsOf._absorb
    monkeypatch.setattr(WordsOf, "_absorb", lambda self, *rest: (counted.append(len(rest[1])), absorb(self, *rest))[1])
    planned.privatize(people(300, 2), Memoized(tmp_path / "key"))
    assert sum(counted) == 2 * 300
