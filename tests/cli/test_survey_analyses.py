"""``ldpopt survey table``, ``compare``, ``regress`` and ``describe``: what they print is what the library finds."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ldpopt.cli import app
from ldpopt_survey import (
    Plan,
    QuestionSpec,
    Respondents,
    Survey,
    SurveySpec,
    logit_by_moments,
    logit_regression,
    mean,
    plan_survey,
    two_way,
)
from ldpopt_survey.plan.reading import Reading

TOML = """
[survey]
name = "Alltag"
carry = ["sex", "region", "age", "w", "psu"]
[[questions]]
name = "evade"
categories = ["no", "yes"]
epsilon = 2.0
[[questions]]
name = "drug"
categories = ["never", "once", "often"]
epsilon = 2.0
[[questions]]
name = "income"
categories = ["0-9", "10-19", "20-39"]
epsilon = 2.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(401)
    path = tmp_path_factory.mktemp("analyses")
    n = 1500
    people = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "süd", "東"], n),
            "age": rng.integers(18, 80, n),
            "w": rng.uniform(0.5, 2.0, n).round(3),
            "psu": rng.integers(0, 60, n),
            "evade": rng.choice(["no", "yes"], n),
            "drug": rng.choice(["never", "once", "often"], n, p=[0.5, 0.3, 0.2]),
            "income": rng.choice(["0-9", "10-19", "20-39"], n),
        }
    )
    people.to_csv(path / "people.csv", index=False)
    (path / "survey.toml").write_text(TOML, encoding="utf-8")
    (path / "plan.json").write_text(plan_survey(SurveySpec.from_toml(TOML)).plan.to_json(), encoding="utf-8")
    for seed in ("1", "2"):
        arguments = ["plan.json", "people.csv", "-o", f"reports-{seed}.csv", "--simulate", seed]
        arguments = [str(path / one) if "." in one else one for one in arguments]
        assert CliRunner().invoke(app, ["survey", "privatize", *arguments]).exit_code == 0
    return path


def run(folder, command, *arguments, reports="reports-1.csv"):
    made = CliRunner().invoke(
        app, ["survey", command, str(folder / "plan.json"), str(folder / reports), *map(str, arguments)]
    )
    assert made.exit_code == 0, made.output
    return made.stdout


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def reports(folder):
    return pd.read_csv(folder / "reports-1.csv", dtype=str)


def channels(folder):
    plan = Survey.from_file(folder / "plan.json").plan
    return {question.name: question.report_channel for question in plan.questions}


def test_a_table_is_that_of_the_library(folder):
    """Two private answers, csv: the shares and limits of `two_way`, in every digit."""
    found, made = reports(folder), channels(folder)
    want = two_way(found["drug"], found["evade"], made["drug"], made["evade"])
    said = rows(run(folder, "table", "drug", "evade", "--format", "csv"))
    assert [(row["drug"], row["evade"]) for row in said][:2] == [("never", "no"), ("never", "yes")]
    assert np.allclose([float(row["share"]) for row in said], want.joint.values, rtol=1e-12)
    assert np.allclose([float(row["lower"]) for row in said], want.joint.intervals().lower, rtol=1e-12)
    assert f"p = {want.independence().p_value:.4g}" in run(folder, "table", "drug", "evade")


@pytest.mark.parametrize("percent", ["row", "column"])
def test_shares_within_rows_and_columns_sum_to_one(folder, percent):
    """A private answer with a public column, weighted."""
    said = rows(run(folder, "table", "drug", "region", "--percent", percent, "--weights", "w", "-f", "csv"))
    sums = pd.DataFrame(said).astype({"share": float}).groupby("drug" if percent == "row" else "region")["share"].sum()
    assert np.allclose(sums, 1.0)
    assert len(said) == 9


def test_groups_are_compared(folder):
    """Differences against a group that is named, and their test: a row for each other group and answer."""
    said = json.loads(run(folder, "compare", "evade", "--by", "region", "--against", "süd", "-f", "json"))
    assert [row["group"] for row in said["rows"]] == ["north", "north", "東", "東"]
    assert any("all groups agree" in note for note in said["notes"])
    assert said["rows"][0]["difference"] == pytest.approx(-said["rows"][1]["difference"])


def test_waves_are_compared(folder):
    """A second wave of other reports; the same reports twice are refused."""
    wave = ["--wave", folder / "plan.json", folder / "reports-2.csv"]
    assert "second wave" in run(folder, "compare", *wave)
    same = CliRunner().invoke(
        app, ["survey", "compare", *[str(folder / f) for f in ("plan.json", "reports-1.csv")], "--wave",
              *[str(folder / f) for f in ("plan.json", "reports-1.csv")]]
    )  # fmt: skip
    assert same.exit_code == 2
    assert "twice" in same.stderr


def test_a_regression_is_that_of_the_library(folder):
    """A private outcome and a private predictor: the coefficients of `logit_by_moments`, or of `logit_regression`."""
    found, made = reports(folder), channels(folder)
    data = {name: found[name] for name in ("evade", "drug", "sex")} | {"age": found["age"].astype(float)}
    private = {name: made[name] for name in ("evade", "drug")}
    for way, fit in (([], logit_by_moments), (["--likelihood"], logit_regression)):
        want = fit("evade ~ age + sex + drug", data, private)
        said = rows(run(folder, "regress", "evade ~ age + sex + drug", *way, "-f", "csv"))
        assert [row["term"] for row in said] == list(want.names)
        assert np.allclose([float(row["coefficient"]) for row in said], want.values, rtol=1e-9)
    assert "By moments: the coefficients tend to the limit of the same" in run(folder, "regress", "evade ~ drug")
    shown = run(folder, "regress", "evade ~ drug", "--likelihood")
    assert "By likelihood: the coefficients tend to the true ones if the formula is the distribution" in " ".join(
        shown.split()
    )
    assert "By moments the coefficients differ by at most" in " ".join(shown.split())


def test_regressions_follow_design_and_conditions(folder):
    """Weights, clusters and a condition together; numbers with --linear; odds ratios."""
    arguments = ["--weights", "w", "--clusters", "psu", "--where", "age > 40"]
    assert len(rows(run(folder, "regress", "drug ~ sex", *arguments, "-f", "csv"))) == 4
    linear = rows(run(folder, "regress", "income ~ sex", "--linear", *arguments, "-f", "csv"))
    assert 5 < float(linear[0]["coefficient"]) < 30
    odds = rows(run(folder, "regress", "evade ~ sex", "--odds", "-f", "csv"))
    assert all(float(row["lower"]) > 0 and "se" not in row for row in odds)


def test_a_number_is_described(folder):
    """Mean, quartiles and totals of bins; scores where answers are no numbers."""
    found, made = reports(folder), channels(folder)
    want = mean(Survey.from_file(folder / "plan.json").estimate("income", found[["income"]]))
    said = rows(run(folder, "describe", "income", "--population", "1000", "-f", "csv"))
    assert float(said[0]["estimate"]) == pytest.approx(float(want.values[0]), rel=1e-12)
    assert [row["what"] for row in said][-3:] == ["quantile 0.25", "quantile 0.5", "quantile 0.75"]
    scored = rows(run(folder, "describe", "drug", "--scores", "0,1,10", "-q", "0.5", "-f", "csv"))
    assert float(scored[0]["estimate"]) > 1
    assert made["drug"].inputs == ("never", "once", "often")


def test_bins_that_a_draft_named_are_described(tmp_path):
    """Quartiles of bins with open ends, without a mean and with a word about it; --scores gives the mean."""
    labels = ("under 30", "30 to 39", "40 and more")
    spec = SurveySpec("s", (QuestionSpec("age", labels, reading=Reading(bins=(30.0, 40.0))),), epsilon=3.0)
    (tmp_path / "plan.json").write_text(plan_survey(spec).plan.to_json(), encoding="utf-8")
    pd.DataFrame({"age": [20, 33, 36, 39] * 500}).to_csv(tmp_path / "people.csv", index=False)
    files = [str(tmp_path / name) for name in ("plan.json", "people.csv", "reports.csv")]
    reported = CliRunner().invoke(app, ["survey", "privatize", *files[:2], "-o", files[2], "--simulate", "1"])
    assert reported.exit_code == 0, reported.output
    described = CliRunner().invoke(app, ["survey", "describe", files[0], files[2], "age", "--format", "csv"])
    assert described.exit_code == 0, described.output
    quartiles = rows(described.stdout)
    assert [row["what"] for row in quartiles] == ["quantile 0.25", "quantile 0.5", "quantile 0.75"]
    assert 30 < float(quartiles[1]["estimate"]) < 36
    scored = CliRunner().invoke(
        app, ["survey", "describe", files[0], files[2], "age", "--scores", "20,36,50", "-f", "csv"]
    )
    assert abs(float(rows(scored.stdout)[0]["estimate"]) - 32) < 2


def test_a_number_that_shares_a_report_is_described(tmp_path):
    """A question of a booklet with another one has its mean over all reports that are about it."""
    numbers = [QuestionSpec(name, (1, 2)) for name in ("a", "b")]
    planned = plan_survey(SurveySpec("s", tuple(numbers), epsilon=3.0, together=(("a", "b"),))).plan
    assert any(question.parts for question in planned.questions)
    (tmp_path / "plan.json").write_text(planned.to_json(), encoding="utf-8")
    pd.DataFrame({"a": [1, 2] * 1000, "b": [1, 2] * 1000}).to_csv(tmp_path / "people.csv", index=False)
    files = [str(tmp_path / name) for name in ("plan.json", "people.csv", "reports.csv")]
    assert (
        CliRunner().invoke(app, ["survey", "privatize", *files[:2], "-o", files[2], "--simulate", "1"]).exit_code == 0
    )
    described = CliRunner().invoke(app, ["survey", "describe", files[0], files[2], "a", "--format", "csv"])
    assert described.exit_code == 0, described.output
    assert abs(float(rows(described.stdout)[0]["estimate"]) - 1.5) < 0.1


def test_every_format_is_written(folder, tmp_path):
    """By the name of the file; Excel holds the same numbers; a file that is there is kept."""
    want = rows(run(folder, "table", "drug", "evade", "-f", "csv"))
    for kind in ("csv", "xlsx", "html", "md", "json", "txt"):
        run(folder, "table", "drug", "evade", "-o", tmp_path / f"made.{kind}")
    frame = pd.read_excel(tmp_path / "made.xlsx", engine="openpyxl")
    assert np.allclose(frame["share"], [float(row["share"]) for row in want], rtol=0)
    files = [str(folder / name) for name in ("plan.json", "reports-1.csv")]
    again = CliRunner().invoke(app, ["survey", "table", *files, "drug", "evade", "-o", str(tmp_path / "made.csv")])
    assert again.exit_code == 2


@pytest.mark.full(but=6)
@pytest.mark.parametrize(
    "arguments",
    [
        ("table", "drug", "drug"), ("table", "sex", "region"), ("table", "drug", "nothing"),
        ("table", "drug", "evade", "--percent", "half"), ("table", "drug", "evade", "-f", "xlsx"),
        ("table", "drug", "evade", "-f", "docx"), ("compare",), ("compare", "--by", "drug"),
        ("compare", "nothing", "--by", "sex"), ("compare", "--by", "sex", "--against", "x"),
        ("regress", "evade"), ("regress", "evade ~ nothing"), ("regress", "income ~ sex", "--linear", "--odds"),
        ("regress", "drug ~ sex", "--linear"), ("regress", "evade ~ sex", "--reference", "maybe"), ("describe", "drug"),
        ("describe", "sex"), ("describe", "income", "-q", "2"), ("describe", "drug", "--scores", "a"),
        ("describe", "drug", "--scores", "1,2"), ("table", "drug", "evade", "--where", "age > 200"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(folder, arguments):
    """Exit code 2, one line on standard error, nothing on standard output."""
    command, *rest = arguments
    made = CliRunner().invoke(
        app, ["survey", command, str(folder / "plan.json"), str(folder / "reports-1.csv"), *rest]
    )  # fmt: skip
    assert made.exit_code == 2, made.output
    assert made.stdout == ""
    assert made.stderr.startswith("ldpopt: error:")
    assert made.stderr.count("\n") == 1


def test_a_regression_by_moments_is_that_of_the_library(folder):
    """With --moments the coefficients are those of `Respondents.logit_by_moments`; least squares takes no such word."""
    plan = Plan.from_json((folder / "plan.json").read_bytes())
    want = Respondents.read(plan, folder / "reports-1.csv").logit_by_moments("evade ~ drug")
    said = rows(run(folder, "regress", "evade ~ drug", "--moments", "-f", "csv"))
    assert np.allclose([float(row["coefficient"]) for row in said], want.values)
    for formula, ways, words in (
        ("income ~ sex", ("--linear", "--moments"), "cannot be combined with --moments"),
        ("income ~ sex", ("--linear", "--likelihood"), "cannot be combined with --moments"),
        ("evade ~ sex", ("--moments", "--likelihood"), "--moments cannot be combined with --likelihood"),
    ):
        arguments = [str(folder / "plan.json"), str(folder / "reports-1.csv"), formula, *ways]
        refused = CliRunner().invoke(app, ["survey", "regress", *arguments])
        assert refused.exit_code == 2
        assert words in refused.stderr
