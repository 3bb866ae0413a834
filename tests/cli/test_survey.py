"""``ldpopt survey``: from questions to a page, in files."""

import json
import stat

import numpy as np
import pytest

SURVEY = """
[survey]
name = "Smoking"
respondent = "id"
[budget]
epsilon = 2.0
[[questions]]
name = "smokes"
categories = ["no", "sometimes", "daily"]
pilot = [0.7, 0.2, 0.1]
half_width = 0.05
[[questions]]
name = "drinks"
categories = ["no", "yes"]
"""


@pytest.fixture
def written(tmp_path):
    rng = np.random.default_rng(7)
    smokes = rng.choice(["no", "sometimes", "daily"], 3000, p=[0.7, 0.2, 0.1])
    drinks = rng.choice(["no", "yes"], 3000, p=[0.4, 0.6])
    lines = [f"{i},{a},{b}" for i, (a, b) in enumerate(zip(smokes, drinks, strict=True))]
    (tmp_path / "answers.csv").write_text("id,smokes,drinks\n" + "\n".join(lines) + "\n")
    (tmp_path / "survey.toml").write_text(SURVEY)
    return tmp_path


def test_all_commands_in_turn(run, written):
    """Plan, privatize, aggregate, estimate and report end with a page; the truth lies within 5 standard errors."""
    said = run("survey", "plan", "survey.toml", "-n", 3000)
    assert said.exit_code == 0
    assert "epsilon 2" in said.stdout
    plan = json.loads((written / "plan.json").read_text())
    assert sum(question["epsilon"] for question in plan["questions"]) <= 2.0
    privatize = ("survey", "privatize", "plan.json", "answers.csv", "--key", "k", "-o")
    assert run(*privatize, "r.csv", "--new-key").exit_code == 0
    assert stat.S_IMODE((written / "k").stat().st_mode) == 0o600
    assert run(*privatize, "again.csv").exit_code == 0
    assert (written / "r.csv").read_bytes() == (written / "again.csv").read_bytes()
    assert run("survey", "aggregate", "plan.json", "r.csv", "--pair", "smokes,drinks").exit_code == 0
    found = json.loads(run("survey", "estimate", "plan.json", "counts.json", "--json").stdout)
    for name, truth in (("smokes", [0.7, 0.2, 0.1]), ("drinks", [0.4, 0.6])):
        one = found[name]
        assert np.abs(np.array(one["values"]) - truth).max() < 5 * max(one["standard_errors"])
    assert "drinks" in run("survey", "estimate", "plan.json", "r.csv").stdout
    assert run("survey", "report", "plan.json", "counts.json").exit_code == 0
    page = (written / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    for text in ("Smoking", "smokes", "Design effect", "Whatever you answer", "data:image/png;base64"):
        assert text in page
    assert "http" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "none.toml", "-o", "p.json"), "none.toml"),
        (("privatize", "plan.json", "answers.csv", "-o", "r.csv"), "key_file"),
        (("privatize", "plan.json", "answers.csv", "-o", "r.csv", "--key", "none"), "none"),
        (("privatize", "plan.json", "answers.csv", "-o", "r.csv", "--key", "k", "--simulate", "1"), "both"),
        (("aggregate", "plan.json", "answers.csv"), "reports of"),
        (("aggregate", "plan.json", "answers.csv", "--pair", "smokes"), "two questions"),
        (("estimate", "plan.json", "plan.json"), "counts"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_two(run, written, arguments, message):
    """Each refusal names its reason and writes nothing."""
    run("survey", "plan", "survey.toml")
    before = sorted(path.name for path in written.iterdir())
    said = run("survey", *arguments)
    assert said.exit_code == 2
    assert message in said.output
    assert said.output.count("\n") == 1
    assert sorted(path.name for path in written.iterdir() if not path.name.startswith(".")) == before
