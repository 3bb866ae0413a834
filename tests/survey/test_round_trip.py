"""What a plan, its reports and their files are goes into every estimator, in every form that they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    CountTable,
    MaximumLikelihood,
    Memoized,
    QuestionSpec,
    Survey,
    SurveySpec,
    asymptotic_covariance,
    estimate,
    estimate_contrasts,
    fisher_information,
    goodness_of_fit,
    logistic_regression,
    make_plan,
    parametric_bootstrap,
    privatize,
    tables_by_group,
    two_sample,
    two_way,
    with_constant,
)
from ldpopt_survey.collect.words import create_key

N = 3000
LABELS = ("01", "true", "NA?", "1.0")
"""Reports whose text looks like something else to whoever reads a file."""


def odd(k: int) -> np.ndarray:
    return (np.ones((k, k)) + k * np.eye(k)) / (2 * k)


@pytest.fixture(scope="module")
def survey() -> Survey:
    """Two questions and a carried column."""
    questions = (QuestionSpec("drug", ("no", "yes")), QuestionSpec("drink", ("never", "some", "daily")))
    spec = SurveySpec("habits", questions, carry=("sex",), respondent="id")
    return Survey(make_plan(spec, lambda q: odd(len(q.categories))))


@pytest.fixture(scope="module")
def answers() -> pd.DataFrame:
    """3000 respondents."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "drug": rng.choice(["no", "yes"], N, p=[0.7, 0.3]),
            "drink": rng.choice(["never", "some", "daily"], N, p=[0.3, 0.5, 0.2]),
            "sex": rng.choice(["f", "m"], N),
            "id": np.arange(N),
        }
    )


@pytest.fixture(scope="module")
def forms(survey: Survey, answers: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same reports as the package gives them and as libraries read them back."""
    folder = tmp_path_factory.mktemp("reports")
    answers.to_csv(folder / "a.csv", index=False)
    create_key(folder / "key")
    for ending in ("csv", "parquet"):
        privatize(survey.plan, folder / "a.csv", folder / f"r.{ending}", Memoized(folder / "key"))
    table = pq.read_table(folder / "r.parquet")
    return {
        "pandas.read_csv": pd.read_csv(folder / "r.csv"),
        "pandas.read_csv as text": pd.read_csv(folder / "r.csv", dtype=str),
        "polars.read_csv": pl.read_csv(folder / "r.csv"),
        "pandas.read_parquet": pd.read_parquet(folder / "r.parquet"),
        "polars.read_parquet": pl.read_parquet(folder / "r.parquet"),
        "pyarrow": table,
        "pyarrow decoded": pa.table({n: table[n].cast(pa.string()) for n in table.column_names}),
        "floats": pd.read_csv(folder / "r.csv").astype({"drug": float, "drink": float}),
    }


NAMES = [
    "pandas.read_csv",
    "pandas.read_csv as text",
    "polars.read_csv",
    "pandas.read_parquet",
    "polars.read_parquet",
    "pyarrow",
    "pyarrow decoded",
    "floats",
]


def channels(survey: Survey, question: str) -> list[Any]:
    planned = survey.plan.question(question)
    return [planned, planned.channel, planned.channel.matrix]


@pytest.mark.full(but=3)
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_accepts_every_form_of_reports(survey: Survey, forms: dict[str, Any], name: str) -> None:
    """Every estimator and test gives the same number for all forms of the reports and all forms of the channel."""
    reports, reference = forms[name], pd.DataFrame(forms["pandas.read_csv"])
    want = np.bincount(reference["drug"], minlength=2).tolist()
    x = with_constant((reference["sex"] == "f").to_numpy(float))
    results = []
    for channel in channels(survey, "drug"):
        column = reports["drug"]
        table = CountTable.from_reports(column, channel)
        assert table.totals.tolist() == want
        first, second = column[: N // 2], column[N // 2 :]
        results.append(
            [
                estimate(column, channel).values[1],
                (estimate(column, channel) if isinstance(channel, np.ndarray) else estimate(channel, column)).values[1],
                estimate(table, channel).values[1],
                estimate(column, channel, MaximumLikelihood()).values[1],
                estimate_contrasts(column, channel, [0, 1]).values[0],
                goodness_of_fit(column, channel, [0.7, 0.3]).statistic,
                two_sample(first, second, channel).statistic,
                parametric_bootstrap(column, channel, np.random.default_rng(0), 200).standard_errors[0],
                logistic_regression(column, x, channel).values[1],
                tables_by_group(column, channel, reports["sex"])["f"].totals[0],
                fisher_information(channel, [0.7, 0.3])[0, 0],
                asymptotic_covariance(channel, [0.7, 0.3])[0, 0],
            ]
        )
        both = [
            two_way(column, reports["drink"], channel, other).independence().statistic
            for other in channels(survey, "drink")
        ]
        assert np.ptp(both) < 1e-9
    assert np.ptp(np.array(results, float), axis=0).max() < 1e-9
    reference_values = Survey(survey.plan).estimate("drug", np.array(want)).values
    np.testing.assert_allclose(survey.estimate("drug", reports).values, reference_values, rtol=1e-12)
    np.testing.assert_allclose(estimate(reports, survey.plan.question("drug")).values, reference_values, rtol=1e-12)


def test_report_labels_that_look_like_numbers_or_words() -> None:
    """Labels such as 01, true and 1.0 are told apart in text; what a reader made numbers of is not guessed at."""
    channel = Channel(odd(4), outputs=LABELS)
    reports = ["01", "true", "NA?", "1.0"] * 3
    assert CountTable.from_reports(reports, channel).totals.tolist() == [3, 3, 3, 3]
    with pytest.raises(InvalidInput, match="one of the outputs"):
        CountTable.from_reports([1, 1], channel)
    both = Channel(odd(2), outputs=(1, "1"))
    assert CountTable.from_reports([1, "1", "1"], both).totals.tolist() == [1, 2]
    assert CountTable.from_reports([1.0, 1.0], Channel(odd(2), outputs=("0", "1"))).totals.tolist() == [0, 2]
    assert CountTable.from_reports([True, False], Channel(odd(2), outputs=("false", "true"))).totals.tolist() == [1, 1]


def test_two_reports_of_two_outputs_are_not_taken_for_counts(survey: Survey) -> None:
    """[0, 1] could be reports or counts, also where the outputs are the texts of files; a frame is always reports."""
    with pytest.raises(InvalidInput, match="either counts or reports"):
        survey.estimate("drug", np.array([0, 1]))
    assert survey.estimate("drug", pd.DataFrame({"drug": [0, 1]})).n == 2


def test_frames_without_the_question_are_refused(survey: Survey) -> None:
    """A table without the question's column is not searched for another; several columns are not guessed among."""
    with pytest.raises(InvalidInput, match="a column 'drug'"):
        survey.estimate("drug", pd.DataFrame({"drink": [0, 1, 1]}))
    with pytest.raises(InvalidInput, match="one column"):
        estimate(pd.DataFrame({"a": [0, 1, 1], "b": [0, 0, 0]}), odd(2))


def test_raw_answers_that_pass_as_reports_are_not_quoted(survey: Survey) -> None:
    """An answer given where a report is expected is refused by place, and not shown."""
    with pytest.raises(InvalidInput, match="entry 1") as caught:
        survey.estimate("drug", pd.DataFrame({"drug": ["0", "SECRET", "1"]}))
    assert "SECRET" not in str(caught.value)
