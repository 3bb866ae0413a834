"""``ldpopt survey new``: from a file of any kind to reports."""

from __future__ import annotations

import pyreadstat
import pytest


@pytest.fixture
def people(tmp_path):
    """240 people in a Western European Excel's CSV: semicolons, decimal commas, cp1252."""
    rows = [
        (i, ("männlich", "weiblich")[i % 2], f"1,{60 + i % 30}", (1, 2, 2, 9)[i % 4], f"{1 + i % 3},5")
        for i in range(240)
    ]
    lines = [";".join(map(str, row)) for row in [("Nr", "Geschlecht", "Größe", "Rauchen", "Gewicht"), *rows]]
    (tmp_path / "people.csv").write_bytes("\r\n".join(lines).encode("cp1252") + b"\r\n")
    return tmp_path


PRIVATIZE = ("survey", "privatize", "plan.json", "people.csv", "-o", "r.csv", "--key", "k", "--new-key")


def test_a_raw_file_becomes_reports_by_commands_alone(run, people):
    """New, plan, privatize, estimate: nothing is edited in between."""
    said = run("survey", "new", "people.csv", "--epsilon", 4, "--name", "Größen", "--missing-code", "Rauchen=9")
    assert said.exit_code == 0, said.output
    assert "cells between semicolons, cp1252, decimal comma" in said.stdout
    assert "epsilon   respondents" in said.stdout
    text = (people / "survey.toml").read_text("utf-8")
    assert "[sample]" in text
    assert 'weights = "Gewicht"' in text
    assert "they would guess correctly 50" in (people / "consent.md").read_text("utf-8")
    assert run("survey", "plan", "survey.toml").exit_code == 0
    assert (
        run("survey", "privatize", "plan.json", "people.csv", "-o", "r.csv", "--key", "k", "--new-key").exit_code == 0
    )
    found = run("survey", "estimate", "plan.json", "r.csv")
    assert "Rauchen, among those who answered" in found.stdout
    assert "2.5" in (people / "r.csv").read_text("utf-8")
    delivery = people / "delivery"
    delivery.mkdir()
    for name in ("plan.json", "r.csv", "r.csv.manifest.json"):
        (delivery / name).write_bytes((people / name).read_bytes())
    estimates = run("survey", "estimate", "plan.json", "r.csv", "--json").stdout
    assert "among_those_who_answered" in estimates
    (delivery / "estimates.json").write_text(estimates, "utf-8")
    assert run("survey", "report", "plan.json", "r.csv", "-o", "delivery/report.html").exit_code == 0
    assert run("survey", "verify", "delivery").exit_code == 0


@pytest.mark.full
def test_empty_reports_are_disclosed(run, people):
    """With --missing left-out the estimate states that missing answers are visible."""
    assert run("survey", "new", "people.csv", "--question", "Rauchen", "--missing", "left-out", "--yes").exit_code == 0
    assert "SEEN BY EVERYBODY" in (people / "survey.toml").read_text("utf-8")
    assert run("survey", "plan", "survey.toml").exit_code == 0
    assert (
        run("survey", "privatize", "plan.json", "people.csv", "-o", "r.csv", "--key", "k", "--new-key").exit_code == 0
    )
    assert "60 of 240 reports are empty" in run("survey", "estimate", "plan.json", "r.csv").stdout
    assert run("survey", "report", "plan.json", "r.csv").exit_code == 0
    assert "60 of 240 reports are empty" in (people / "report.html").read_text("utf-8")


def test_spss_to_reports(run, tmp_path):
    """Labels and missing values of the file, with nothing said on the command line."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"q": [1.0, 2.0, 9.0] * 20})
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_value_labels={"q": {1: "Ja", 2: "Nein"}},
                         missing_ranges={"q": [9]})  # fmt: skip
    assert run("survey", "new", "a.sav", "--epsilon", 3).exit_code == 0
    assert '["Ja", "Nein", "no answer"]' in (tmp_path / "survey.toml").read_text("utf-8")
    assert run("survey", "plan", "survey.toml").exit_code == 0
    assert run("survey", "privatize", "plan.json", "a.sav", "-o", "r.parquet").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv",), "none.csv"),
        (("people.csv", "--question", "Alter"), "Alter"),
        (("people.csv", "--bins", "Größe"), "--bins"),
        (("people.csv", "--bins", "Geschlecht=3"), "bins"),
        (("people.csv", "--missing", "ignore"), "--missing"),
        (("people.csv", "--encoding", "utf-8"), "utf-8"),
        (("people.csv", "--encoding", "utf-16"), "encoding"),
        (("people.csv", "--delimiter", ":"), "delimiter"),
        (("people.csv", "--yes", "--epsilon", "-1"), "epsilon"),
        (("people.csv",), "--missing-code Rauchen=9, or --answer Rauchen=9"),
        (("people.csv", "-o", "people.csv"), "exist"),
        (("people.csv", "-o", "consent.md"), "the same"),
        (("ids.csv",), "ids"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(refused, people, arguments, message):
    """A refusal is one line with exit code 2, and writes nothing."""
    (people / "ids.csv").write_text("id\n1\n2\n3\n")
    assert message.lower() in refused("survey", "new", *arguments).lower()


@pytest.mark.parametrize(
    ("suffix", "module", "extra"), [(".sav", "pyreadstat", "ldpopt[spss]"), (".xlsx", "python_calamine", "")]
)
def test_a_reader_that_is_not_there_is_one_line(run, tmp_path, monkeypatch, suffix, module, extra):
    """It says what to install."""
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"a{suffix}").write_bytes(b"x")
    said = run("survey", "new", f"a{suffix}")
    assert said.exit_code == 1
    assert said.stderr.count("\n") == 1
    assert module in said.stderr
    assert extra in said.stderr
