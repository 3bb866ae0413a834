"""Whole surveys on four real data sets by commands alone: from a file that a package ships to a checked delivery."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pandas as pd
import pytest

STATSMODELS = Path(pytest.importorskip("statsmodels").__file__).parent / "datasets"

DAYS = {
    "fair": ("fair/fair.csv", ["rate_marriage", "religious"]),
    "anes96": ("anes96/anes96.csv", ["vote", "PID"]),
    "randhie": ("randhie/randhie.csv", ["hlthp", "hlthf"]),
    "modechoice": ("modechoice/modechoice.csv", ["choice", "mode"]),
}
"""The file of each data set, and two questions."""


@pytest.mark.full
@pytest.mark.parametrize("day", [*(pytest.param(day, marks=pytest.mark.full) for day in list(DAYS)[1:]), "fair"])
def test_a_day_of_real_data_ends_with_a_valid_delivery(run, tmp_path: Path, day: str, record_property) -> None:
    """Every command ends well, estimates are within five standard errors of the file's shares, and the delivery holds.

    The seconds of each command are properties of the test.
    """
    file, questions = DAYS[day]
    rows = pd.read_csv(STATSMODELS / file, sep=None, engine="python")
    rows = rows.sample(20_000, replace=len(rows) < 20_000, random_state=1)
    path = tmp_path / f"{day}.csv"
    rows.to_csv(path, index=False)  # with the names as they are: those of anes96 stand in single quotes
    rows.columns = [name.strip("'") for name in rows.columns]
    asked = [word for name in questions for word in ("--question", name)]
    delivery = tmp_path / "delivery"
    delivery.mkdir()
    commands = {
        "new": ["new", path, *asked, "--epsilon", 3, "--yes"],
        "plan": ["plan", "survey.toml", "-o", "delivery/plan.json"],
        "consent": ["consent", "delivery/plan.json", "-o", "delivery/consent.md"],
        "privatize": ["privatize", "delivery/plan.json", path, "-o", "delivery/r.csv"],
        "estimate": ["estimate", "delivery/plan.json", "delivery/r.csv", "--json"],
        "report": ["report", "delivery/plan.json", "delivery/r.csv", "-o", "delivery/report.html"],
    }
    for name, words in commands.items():
        start = time.perf_counter()
        said = run("survey", *words)
        record_property(name, round(time.perf_counter() - start, 2))
        assert said.exit_code == 0, (name, said.output)
        if name == "estimate":
            estimates = json.loads(said.stdout)
            (delivery / "estimates.json").write_text(said.stdout, "utf-8")
    assert run("survey", "verify", "delivery").exit_code == 0
    for name in questions:
        truth = rows[name].map(lambda value: f"{value:g}").value_counts(normalize=True)
        found = estimates[name]
        for label, share, error in zip(found["labels"], found["values"], found["standard_errors"], strict=True):
            assert abs(share - truth.get(str(label), 0.0)) <= 5 * error, (name, label)


def test_a_single_report_has_a_page(run, tmp_path: Path) -> None:
    """Whoever tries a collector with one submission gets a report, without a design effect."""
    (tmp_path / "survey.toml").write_text(
        '[survey]\nname = "one"\n[budget]\nepsilon = 1.0\n[[questions]]\nname = "q"\ncategories = ["n", "y"]\n'
    )
    (tmp_path / "a.csv").write_text("q\ny\n")
    for words in (["plan", "survey.toml"], ["privatize", "plan.json", "a.csv", "-o", "r.csv"],
                  ["report", "plan.json", "r.csv", "-o", "r.html"]):  # fmt: skip
        said = run("survey", *words)
        assert said.exit_code == 0, said.output
    assert "No design effect can be estimated" in (tmp_path / "r.html").read_text("utf-8")
