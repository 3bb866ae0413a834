"""Reports read back from their files by pandas or Polars go into every estimator as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ldpopt_survey import (
    CountTable,
    MaximumLikelihood,
    Plan,
    QuestionSpec,
    SampleDesign,
    SampledReports,
    Simulated,
    Survey,
    SurveySpec,
    aggregate,
    estimate,
    estimate_contrasts,
    estimate_waves,
    goodness_of_fit,
    logistic_regression,
    parametric_bootstrap,
    plan_survey,
    privatize,
    tables_by_group,
    two_sample,
    two_way,
    with_constant,
)

N = 600


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path]:
    """A plan with texts and with numbers as answers and a public column, and the folder of its reports."""
    folder, rng = tmp_path_factory.mktemp("reports"), np.random.default_rng(1)
    questions = (QuestionSpec("a", ("no", "yes")), QuestionSpec("b", (1, 2, 3)))
    spec = SurveySpec("demo", questions, epsilon=6.0, carry=("g",), design="split")
    plan = plan_survey(spec).plan
    columns = {"a": rng.choice(["no", "yes"], N), "b": rng.choice([1, 2, 3], N), "g": rng.choice(["x", "y"], N)}
    pd.DataFrame(columns).to_csv(folder / "answers.csv", index=False)
    for name in ("r.csv", "r.parquet"):
        privatize(plan, folder / "answers.csv", folder / name, Simulated(np.random.default_rng(2)))
    return plan, folder


READERS: dict[str, Callable[[Path], Any]] = {
    "pandas, csv": lambda folder: pd.read_csv(folder / "r.csv"),
    "polars, csv": lambda folder: pl.read_csv(folder / "r.csv"),
    "pandas, parquet": lambda folder: pd.read_parquet(folder / "r.parquet"),
    "polars, parquet": lambda folder: pl.read_parquet(folder / "r.parquet"),
}
ESTIMATORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "estimate": lambda r, a, b: estimate(r, b),
    "estimate, question first": lambda r, a, b: estimate(b, r),
    "maximum likelihood": lambda r, a, b: estimate(r["b"], b, MaximumLikelihood()),
    "contrasts": lambda r, a, b: estimate_contrasts(r["b"], b, [1, -1, 0]),
    "counts": lambda r, a, b: CountTable.from_reports(r["b"], b),
    "groups": lambda r, a, b: tables_by_group(r["b"], b, r["g"]),
    "two-way": lambda r, a, b: two_way(r["a"], r["b"], a, b),
    "goodness of fit": lambda r, a, b: goodness_of_fit(r["b"], b, [1 / 3] * 3),
    "two samples": lambda r, a, b: two_sample(r["a"], r["a"], a),
    "logistic": lambda r, a, b: logistic_regression(r["a"], with_constant(np.arange(N)[:, None] / N), a),
    "sampled": lambda r, a, b: SampledReports.of(r, b, SampleDesign(weights=np.ones(N))),
    "waves": lambda r, a, b: estimate_waves([(r["b"], b), (r["b"], b)]),
    "bootstrap": lambda r, a, b: parametric_bootstrap(r["b"], b, np.random.default_rng(1), 20),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_reports_read_back_are_accepted_by_every_estimator(
    delivered: tuple[Plan, Path], reader: str, name: str
) -> None:
    """No estimator requires another type than the readers return."""
    plan, folder = delivered
    ESTIMATORS[name](READERS[reader](folder), plan.question("a"), plan.question("b"))


@pytest.mark.parametrize("reader", READERS)
def test_a_frame_gives_the_estimate_of_its_file(delivered: tuple[Plan, Path], reader: str) -> None:
    """The estimate from a frame is that from the file, to the last bit."""
    plan, folder = delivered
    counts = aggregate(plan, folder / "r.csv")
    for question in ("a", "b"):
        from_frame = Survey(plan).estimate(question, READERS[reader](folder))
        assert (from_frame.values == Survey(plan).estimate(question, counts[question]).values).all()
