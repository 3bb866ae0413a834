"""The table for R: means of its columns are the estimates, and its weights give their standard errors."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    QuestionSpec,
    Reading,
    SampleSpec,
    Simulated,
    Survey,
    SurveySpec,
    plan_survey,
    privatize,
)
from ldpopt_survey.sample.r_bridge import for_r

N = 600
PRINTED = r"^(.+?) +(-?[\d.]+) +([\d.]+)$"
DESIGN = {"weights": "w", "strata": "s", "clusters": "c"}


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Booklets of two questions and one that everybody is asked, of which some do not answer; a stratified sample."""
    folder, rng = tmp_path_factory.mktemp("r"), np.random.default_rng(11)
    questions = (
        QuestionSpec("a `b`", ("no", "yes")),
        QuestionSpec("b", ("x", "y", 'z"')),
        QuestionSpec("all", ("no", "yes"), reading=Reading(missing_answers="left out")),
    )
    spec = SurveySpec("demo", questions, epsilon=6.0, everyone=("all",), sample=SampleSpec(**DESIGN))
    plan = plan_survey(spec).plan
    answers = {
        "a `b`": rng.choice(["no", "yes"], N),
        "b": rng.choice(["x", "y", 'z"'], N),
        "all": np.where(rng.random(N) < 0.2, None, rng.choice(["no", "yes"], N)),
        "w": rng.choice([1.0, 1.5, 3.0], N),
        "s": rng.choice(["north", "south"], N),
        "c": rng.integers(0, 40, N),
    }
    table = pa.table({name: pa.array(column.tolist()) for name, column in answers.items()})
    pq.write_table(table, folder / "p.parquet")
    privatize(plan, folder / "p.parquet", folder / "r.parquet", Simulated(rng))
    return plan, folder / "r.parquet"


def table_of(files):
    rows = list(csv.reader(io.StringIO(files["reports.csv"].decode())))
    return {name: np.array(column) for name, *column in zip(*rows, strict=True)}


def numbers(column):
    return np.array([float(cell) if cell else np.nan for cell in column])


def by_hand(values, weights, strata, clusters):
    """The mean among those with a value, and its linearised standard error over clusters within strata [SSW, 5.5]."""
    there = ~np.isnan(values)
    total = weights[there].sum()
    mean = (weights[there] * values[there]).sum() / total
    away = np.where(there, weights * (np.nan_to_num(values) - mean) / total, 0.0)
    variance = 0.0
    for stratum in np.unique(strata):
        inside = strata == stratum
        sums = np.array([away[inside & (clusters == c)].sum() for c in np.unique(clusters[inside])])
        variance += len(sums) / (len(sums) - 1) * ((sums - sums.mean()) ** 2).sum()
    return mean, np.sqrt(variance)


def test_means_of_columns_are_the_estimates(survey):
    """By the formula of `svydesign`, computed here: shares and errors are those of `Survey`, booklets included."""
    plan, path = survey
    asked = Analysis(SampleSpec(**DESIGN))
    table = table_of(for_r(plan, path, asked))
    found, _ = Survey(plan).findings(path, asked)
    assert set(found) == {"a `b`", "b", "all"}
    for name, one in found.items():
        for label, share, error in zip(one.whole.labels, one.whole.values, one.whole.standard_errors, strict=True):
            column = numbers(table[f"{name}: {label}"])
            mean, se = by_hand(column, numbers(table["weight"]), table["stratum"], table["cluster"])
            assert mean == pytest.approx(share, abs=1e-9)
            assert se == pytest.approx(error, rel=1e-6)


def test_replicate_weights_give_the_same_errors(survey):
    """sum_r c_r (t_r - t)^2 over the replicates in the file [Wolter, chapter 4], with the scales in the script."""
    plan, path = survey
    asked = Analysis(SampleSpec(**DESIGN, variance="jackknife"))
    files = for_r(plan, path, asked)
    table, found = table_of(files), Survey(plan).findings(path, asked)[0]["b"].whole
    scales = np.array(re.search(r"rscales = c\((.*?)\)", files["read.R"].decode())[1].split(", "), dtype=float)
    replicates = np.array([numbers(table[name]) for name in table if re.fullmatch("rw[0-9]+", name)])
    assert len(scales) == len(replicates)
    column = numbers(table["b: x"])
    there = ~np.isnan(column)
    means = replicates[:, there] @ column[there] / replicates[:, there].sum(axis=1)
    error = np.sqrt(scales @ (means - found.values[0]) ** 2)
    assert error == pytest.approx(found.standard_errors[0], rel=0.02)


def test_groups_and_conditions_are_left_to_r(survey):
    plan, path = survey
    with pytest.raises(InvalidInput, match="subsets are taken in R"):
        for_r(plan, path, Analysis(by=("s",)))


@pytest.mark.full
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not here")
@pytest.mark.parametrize("variance", ["linearization", "jackknife"])
def test_r_gives_the_same_estimates(survey, tmp_path, variance):
    """The script runs as it is written, and prints the estimates with their errors."""
    plan, path = survey
    if subprocess.run(["Rscript", "-e", "library(survey)"], capture_output=True, check=False).returncode:
        pytest.skip("R has no survey package")
    asked = Analysis(SampleSpec(**DESIGN, variance=variance))
    for name, content in for_r(plan, path, asked).items():
        (tmp_path / name).write_bytes(content)
    ran = subprocess.run(["Rscript", "read.R"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    printed = {name: (float(mean), float(se)) for name, mean, se in re.findall(PRINTED, ran, re.M)}
    for name, one in Survey(plan).findings(path, asked)[0].items():
        for label, share, error in zip(one.whole.labels, one.whole.values, one.whole.standard_errors, strict=True):
            assert printed[f"{name}: {label}"] == (pytest.approx(share, abs=1e-4), pytest.approx(error, rel=0.02))
