"""``ldpopt survey kit`` makes a folder, whole or not at all."""

import json
from fractions import Fraction

import pytest

from ldpopt.exact import ExactChannel
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion


@pytest.fixture
def plan(tmp_path):
    """A plan file of one question, with a column that is carried."""
    channel = ExactChannel([[3, 1], [1, 3]], bits=2, inputs=["no", "yes"])
    made = Plan("demo", (PlannedQuestion("vote", "vote", channel),), carry=("region",))
    (tmp_path / "plan.json").write_text(made.to_json(), encoding="utf-8")
    return made


def test_a_kit_is_made_and_described(run, tmp_path, plan):
    """The folder has the plan under its checksum; the command says what each question proves and what is not asked."""
    result = run("survey", "kit", "plan.json", "--out", "kit")
    assert result.exit_code == 0, result.stderr
    assert json.loads((tmp_path / "kit" / "plan.json").read_bytes())["checksum"] == plan.checksum
    assert "vote: 2 answers, epsilon 1.099, eta 0.5" in result.stdout
    assert "missing from these reports: region" in result.stdout
    before = {path.name: path.read_bytes() for path in (tmp_path / "kit").iterdir()}
    assert run("survey", "kit", "plan.json", "--out", "kit", "--force").exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "kit").iterdir()} == before


@pytest.mark.usefixtures("plan")
def test_bad_folders_collectors_and_texts_are_refused(refused, run, tmp_path):
    """A taken folder, a collector without https, texts of another survey and a plan without protection are refused."""
    assert "collector: expected an https address" in refused(
        "survey", "kit", "plan.json", "--collector", "http://example.org"
    )
    (tmp_path / "de.json").write_text('{"code": "de", "questions": {"age": {}}}', encoding="utf-8")
    assert "question: expected one of" in refused("survey", "kit", "plan.json", "--texts", "de.json")
    open_channel = ExactChannel([[4, 0], [0, 4]], bits=2, inputs=["no", "yes"])
    bare = Plan("bare", (PlannedQuestion("vote", "vote", open_channel),))
    (tmp_path / "bare.json").write_text(bare.to_json(), encoding="utf-8")
    assert "a channel that guarantees something" in refused("survey", "kit", "bare.json")
    assert run("survey", "kit", "plan.json").exit_code == 0
    assert "expected a path that does not exist yet" in refused("survey", "kit", "plan.json")


def test_a_kit_states_the_share_of_each_booklet(run, tmp_path):
    """Each booklet has the share of devices that draw it; a question for all devices has none."""
    planned = [("vote", Fraction(1)), ("car", Fraction(1, 3)), ("pet", Fraction(2, 3))]
    channel = ExactChannel([[3, 1], [1, 3]], bits=2, inputs=["no", "yes"])
    made = Plan("demo", tuple(PlannedQuestion(name, name, channel, probability=share) for name, share in planned))
    (tmp_path / "plan.json").write_text(made.to_json(), encoding="utf-8")
    told = run("survey", "kit", "plan.json").stdout
    assert "car: 2 answers, epsilon 1.099, eta 0.5, a booklet for 1/3 of the devices\n" in told
    assert "pet: 2 answers, epsilon 1.099, eta 0.5, a booklet for 2/3 of the devices\n" in told
    assert "vote: 2 answers, epsilon 1.099, eta 0.5\n" in told
