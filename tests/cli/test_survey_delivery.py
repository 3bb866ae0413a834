"""On the command line, too, reports belong to their plan, and a delivery is checked."""

from __future__ import annotations

import json
import shutil

import pytest

TOML = """
[survey]
name = "Habits"
[[questions]]
name = "drug"
categories = ["no", "yes"]
epsilon = {epsilon}
"""


@pytest.fixture
def delivered(begun, run, tmp_path):
    """Plans at epsilon 1 and 3, answers, and reports of the first plan."""
    return begun(delivery)(tmp_path)


def delivery(folder, run):
    for name, epsilon in (("one", 1.0), ("three", 3.0)):
        (folder / f"{name}.toml").write_text(TOML.format(epsilon=epsilon))
        assert run("survey", "plan", f"{name}.toml", "-o", f"{name}.json").exit_code == 0
    (folder / "answers.csv").write_text("drug\n" + "no\nyes\nno\nyes\nno\n" * 20)
    (folder / "raw.csv").write_text("drug\n" + "0\n1\n0\n1\n0\n" * 20)
    assert run("survey", "privatize", "one.json", "answers.csv", "-o", "r.csv").exit_code == 0
    assert run("survey", "privatize", "one.json", "answers.csv", "-o", "r.parquet", "--alike").exit_code == 0
    for name in ("r.csv", "r.csv.manifest.json"):
        shutil.copy(folder / name, folder / name.replace("r.csv", "copy.csv"))
    assert run("survey", "privatize", "one.json", "answers.csv", "-o", "s.csv", "--simulate", "1").exit_code == 0


def test_reports_that_do_not_belong_are_one_line(delivered, refused):
    """Another plan's reports, raw answers, a copy, a simulation among others: exit code 2, nothing written."""
    for arguments, message in (
        (("estimate", "three.json", "r.csv"), "another plan"),
        (("estimate", "three.json", "r.parquet"), "another plan"),
        (("report", "three.json", "r.csv"), "another plan"),
        (("aggregate", "three.json", "r.csv"), "another plan"),
        (("estimate", "one.json", "raw.csv"), "--unlabelled"),
        (("report", "one.json", "raw.csv"), "--unlabelled"),
        (("aggregate", "one.json", "raw.csv"), "--unlabelled"),
        (("aggregate", "one.json", "r.csv", "r.csv"), "every file once"),
        (("aggregate", "one.json", "r.csv", "copy.csv"), "every report once"),
        (("aggregate", "one.json", "r.csv", "s.csv"), "simulated reports cannot be combined with reports of people"),
        (("verify", "raw.csv"), "a folder"),
    ):
        assert message in refused("survey", *arguments)


def test_reports_written_by_hand(delivered, run, refused):
    """With --unlabelled they are counted; the flag is asked for again where only their counts are seen."""
    assert run("survey", "aggregate", "one.json", "raw.csv", "--unlabelled").exit_code == 0
    assert "--unlabelled" in refused("survey", "estimate", "one.json", "counts.json")
    shown = run("survey", "estimate", "one.json", "counts.json", "--unlabelled")
    assert shown.exit_code == 0
    assert "without a manifest" in shown.stdout


def test_simulated_reports_are_marked_as_simulation(delivered, run):
    """The printed text begins with the mark, the JSON has it, and the page has it in its title."""
    assert run("survey", "estimate", "one.json", "s.csv").stdout.startswith("SIMULATION")
    assert json.loads(run("survey", "estimate", "one.json", "s.csv", "--json").stdout)["drug"]["simulation"] is True
    assert "simulated" in run("survey", "aggregate", "one.json", "s.csv").stdout
    assert run("survey", "report", "one.json", "counts.json").exit_code == 0
    assert "<title>Simulation: Habits</title>" in (delivered / "report.html").read_text("utf-8")
    assert not run("survey", "estimate", "one.json", "r.csv").stdout.startswith("SIMULATION")


def test_a_changed_delivery_is_refused_by_the_name_of_its_file(delivered, run):
    """Verification exits with 0 for a whole delivery, and with 1 and the file's name for a changed one."""
    folder = delivered / "delivery"
    folder.mkdir()
    for name in ("r.csv", "r.csv.manifest.json"):
        shutil.copy(delivered / name, folder / name)
    shutil.copy(delivered / "one.json", folder / "plan.json")
    shown = run("survey", "estimate", "one.json", "r.csv", "--json")
    (folder / "estimates.json").write_text(shown.stdout, encoding="utf-8")
    made = run("survey", "verify", "delivery")
    assert made.exit_code == 0, made.output
    assert "Everything that was checked holds" in made.stdout
    assert json.loads(run("survey", "verify", "delivery", "--json").stdout)["verified"] is True
    (folder / "estimates.json").write_text(shown.stdout.replace('"n": 100', '"n": 101'), encoding="utf-8")
    made = run("survey", "verify", "delivery")
    assert made.exit_code == 1
    assert "FAILED: estimates.json" in made.stdout


def test_a_consent_form_of_another_plan_is_refused(run, delivered):
    """The form is made of the plan: beside another plan it fails, and changed promises are not confirmed."""
    folder = delivered / "form"
    folder.mkdir()
    shutil.copy(delivered / "one.json", folder / "plan.json")
    for plan, code, said in (
        ("three.json", 1, "FAILED: consent.md: consent form: expected a consent form of this plan"),
        ("one.json", 0, "ok: consent.md: what this plan promises, word for word"),
    ):
        assert run("survey", "consent", plan, "-o", "form/consent.md", "--force").exit_code == 0
        found = run("survey", "verify", "form")
        assert found.exit_code == code
        assert said in " ".join(found.stdout.split())
    text = (folder / "consent.md").read_text("utf-8")
    for changed, said in (
        (text.replace("Taking part is voluntary.", "Taking part is voluntary. Ask Ada."), "word for word"),
        (text.replace("e^1", "e^0.1"), "changed by hand"),
    ):
        (folder / "consent.md").write_text(changed, "utf-8")
        assert said in " ".join(run("survey", "verify", "form").stdout.split())
    assert "e^3" in run("survey", "consent", "three.json", "-o", "-").stdout


def test_the_shuffler_claim_of_a_consent_form_is_recomputed(run, delivered):
    """A form with another number of people, or another number than they give, is not confirmed."""
    folder = delivered / "form"
    folder.mkdir()
    shutil.copy(delivered / "one.json", folder / "plan.json")
    assert run("survey", "consent", "one.json", "-o", "form/consent.md", "--shuffled", 500).exit_code == 0
    text = (folder / "consent.md").read_text("utf-8")
    assert "at least 500 people" in text
    for changed, said in (
        (text, "word for word"),
        (text.replace("500 people", "900 people"), "changed by hand"),
        (text.replace("shuffled 500 ", "shuffled 900 "), "changed by hand"),
        (text.replace(" shuffled 500 1e-06", ""), "added by hand"),
    ):
        (folder / "consent.md").write_text(changed, "utf-8")
        assert said in " ".join(run("survey", "verify", "form").stdout.split())
