"""The commands of the survey's tutorial run in order, from a raw file to a report, and print what stands below them."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ldpopt.cli import app
from ldpopt.values.labels import as_text
from ldpopt_survey import Plan, Survey
from ldpopt_survey.reports.page import workbook

pytestmark = pytest.mark.full

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "run-a-survey.md"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def test_the_commands_of_the_page_succeed(tmp_path, monkeypatch):
    """Each ends with exit code 0; the page at the end has both questions and the shares among those who answered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    text = PAGE.read_text("utf-8")
    exec(re.findall(r"^```\{testcode\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0], {})
    steps = [step for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
             for step in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]  # fmt: skip
    assert len(steps) == 5
    for command, shown in steps:
        name, *arguments = shlex.split(command)
        assert name == "ldpopt"
        made = CliRunner().invoke(app, arguments)
        assert made.exit_code == 0, made.output
        assert doctest.OutputChecker().check_output(shown, made.output, FLAGS), made.output
    page = (tmp_path / "report.html").read_text("utf-8")
    for said in ("Raucht", "täglich", "Einkommen", "Among those who answered", "no answer"):
        assert said in page
    assert "not hidden" in (tmp_path / "consent.md").read_text("utf-8")


def anes():
    """The American election study of 1996: categories as words, in a Parquet file."""
    from ldpopt.datasets import load_anes96

    data = load_anes96()
    return {name: [str(label) for label in np.array(data[name].labels)[data[name].codes]] for name in ("vote", "party")}


def marriages():
    """`fair` of statsmodels: codes 1 to 5 and numbers of years, in a CSV file with semicolons and decimal commas."""
    import statsmodels.api as sm

    fair = sm.datasets.fair.load_pandas().data[:3000]
    return {"rating": fair["rate_marriage"].astype(int).tolist(), "years": fair["yrs_married"].tolist()}


def doctors():
    """`randhie` of statsmodels, the health insurance experiment: counts of visits and yes/no, in an Excel workbook."""
    import statsmodels.api as sm

    people = sm.datasets.randhie.load_pandas().data[:3000]
    limited = np.where(people["physlm"] >= 0.5, "limited", "not").tolist()
    return {"visits": people["mdvis"].clip(upper=5).astype(int).tolist(), "health": limited}


def write(path, columns):
    """The columns in the form that the file's name asks for, with ids, and a public column that says nothing."""
    n = len(next(iter(columns.values())))
    columns = {"id": list(range(1, n + 1)), **columns, "wave": ["ab"[at % 2] for at in range(n)]}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".xlsx":
        path.write_bytes(workbook({"data": [list(columns), *map(list, zip(*columns.values(), strict=True))]}))
    else:
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        text = "\n".join(";".join(str(cell).replace(".", ",") for cell in row) for row in rows)
        path.write_text(text + "\n", encoding="cp1252")


@pytest.mark.parametrize(
    ("name", "columns"), [("anes.parquet", anes), ("marriages.csv", marriages), ("doctors.xlsx", doctors)]
)
def test_the_commands_of_the_tutorial_succeed_on_three_real_files(tmp_path, monkeypatch, name, columns):
    """By commands alone, nothing edited between: every one ends with 0, and true shares are within five errors."""
    monkeypatch.chdir(tmp_path)
    answers = columns()
    write(tmp_path / name, answers)
    asked = [part for question in answers for part in ("--question", question)]
    first, second = answers
    for command in (
        ("new", name, *asked, "--respondent", "id", "--carry", "wave", "--epsilon", "4"),
        ("plan", "survey.toml", "-n", "3000", "-o", "out/plan.json"),
        ("consent", "out/plan.json", "-o", "out/consent.md"),
        ("privatize", "out/plan.json", name, "-o", "out/reports.csv", "--key", "k", "--new-key"),
        ("estimate", "out/plan.json", "out/reports.csv", "--by", "wave"),
        ("compare", "out/plan.json", "out/reports.csv", "--by", "wave"),
        ("table", "out/plan.json", "out/reports.csv", first, "wave"),
        ("regress", "out/plan.json", "out/reports.csv", f"{first} ~ wave"),
        ("describe", "out/plan.json", "out/reports.csv", second, "--scores", "SCORES"),
        ("report", "out/plan.json", "out/reports.csv", "--by", "wave", "-o", "out/report.html"),
        ("verify", "out"),
    ):
        (tmp_path / "out").mkdir(exist_ok=True)
        plan = Plan.from_json((tmp_path / "out/plan.json").read_bytes()) if command[0] == "describe" else None
        scores = "" if plan is None else ",".join(map(str, range(len(plan.part(second).categories))))
        made = CliRunner().invoke(app, ["survey", *(scores if part == "SCORES" else part for part in command)])
        assert made.exit_code == 0, made.output
    plan = Plan.from_json((tmp_path / "out/plan.json").read_bytes())
    found, _ = Survey(plan).findings(tmp_path / "out/reports.csv")
    for question, given in answers.items():
        one, part = found[question].whole, plan.part(question)
        if part.reading.bins:
            places = np.digitize(np.array(given, float), part.reading.bins)
        else:
            places = np.array([[as_text(label) for label in part.categories].index(as_text(value)) for value in given])
        shares = np.bincount(places, minlength=len(part.categories)) / len(given)
        assert (abs(one.values - shares) < 5 * one.standard_errors).all(), question
