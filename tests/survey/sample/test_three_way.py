"""Tables of three: against the estimate that the product channel gives, layer by layer, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ldpopt.channel import Channel
from ldpopt.cli import app
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    Condition,
    QuestionSpec,
    Respondents,
    SampleDesign,
    SampledReports,
    SampleSpec,
    Simulated,
    SurveySpec,
    ThreeWayTable,
    estimate,
    make_plan,
    privatize,
)
from ldpopt_survey.plan.reading import Reading

FLIP = np.array([[0.9, 0.1], [0.15, 0.85]])
THREE = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
N = 6000
JOINT = np.array([[[0.20, 0.02], [0.05, 0.10], [0.05, 0.08]], [[0.02, 0.15], [0.08, 0.05], [0.10, 0.10]]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two private questions and a third, a weight, a village and a sex that the answers depend on."""
    made: Path = tmp_path_factory.mktemp("three")
    rng = np.random.default_rng(31)
    cell = rng.choice(12, N, p=JOINT.ravel())
    frame = pd.DataFrame({
        "a": np.array(["no", "yes"])[cell // 6], "b": np.array(list("xyz"))[cell // 2 % 3],
        "c": np.where(rng.random(N) < 0.2, "", np.where(rng.random(N) < 0.3 + 0.4 * (cell % 2), "yes", "no")),
        "sex": np.array(["f", "m"])[cell % 2], "w": rng.uniform(1, 2, N).round(3), "village": rng.integers(0, 60, N),
    })  # fmt: skip
    reading = Reading(missing_answers="left out")
    questions = QuestionSpec("a", ("no", "yes")), QuestionSpec("b", tuple("xyz"))
    third = QuestionSpec("c", ("no", "yes"), reading=reading)
    plan = make_plan(
        SurveySpec("demo", (*questions, third), carry=("sex", "w", "village")), {"a": FLIP, "b": THREE, "c": FLIP}
    )
    (made / "plan.json").write_text(plan.to_json(), "utf-8")
    frame.to_csv(made / "answers.csv", index=False)
    privatize(plan, made / "answers.csv", made / "reports.csv", Simulated(rng))
    return made


def people(folder: Path, asked: Analysis | None = None) -> Respondents:
    from ldpopt_survey.plan.plan import Plan

    plan = Plan.from_json((folder / "plan.json").read_text("utf-8"))
    return Respondents.read(plan, folder / "reports.csv", asked, ["a", "b", "c", "sex", "w", "village"])


@pytest.mark.parametrize("names", [("a", "b", "sex"), ("sex", "b", "a"), ("b", "sex", "a")])
def test_cells_are_those_of_the_product_channel(folder, names):
    """Two private answers and a public column, in any order: the estimate of all cells by `SampledReports`."""
    spec = SampleSpec(weights="w", clusters="village")
    made = people(folder, Analysis(spec))
    table = made.three_way(*names)
    assert isinstance(table, ThreeWayTable)
    frame = pd.read_csv(folder / "reports.csv", dtype=str)
    codes = {
        "a": frame.a.map({label: at for at, label in enumerate(made.plan.question("a").reports)}).to_numpy(int),
        "b": frame.b.map({label: at for at, label in enumerate(made.plan.question("b").reports)}).to_numpy(int),
        "sex": frame.sex.map({"f": 0, "m": 1}).to_numpy(int),
    }
    channels = {"a": Channel(FLIP), "b": Channel(THREE), "sex": Channel(np.eye(2))}
    sizes = [channels[name].shape[0] for name in names]
    channel = channels[names[0]].product(channels[names[1]]).product(channels[names[2]])
    at = (codes[names[0]] * sizes[1] + codes[names[1]]) * sizes[2] + codes[names[2]]
    design = SampleDesign(frame.w.astype(float), clusters=frame.village)
    want = estimate(SampledReports(at, channel, design), channel)
    assert np.allclose(table.joint.values, want.values, atol=1e-9)
    assert np.allclose(table.joint.standard_errors, want.standard_errors, rtol=1e-8)
    truth = JOINT.transpose([{"a": 0, "b": 1, "sex": 2}[name] for name in names])
    assert table.shape == truth.shape
    assert (np.abs(table.proportions - truth) < 5 * table.joint.standard_errors.reshape(truth.shape)).all()


def test_layers_and_all_layers_together(folder):
    """The layers' shares, the table in each, and their sum, which is the two-way table."""
    made = people(folder)
    table = made.three_way("a", "b", "sex")
    two = made.two_way("a", "b")
    assert np.allclose(table.collapsed().proportions, two.proportions, atol=1e-9)
    assert np.allclose(table.collapsed().joint.standard_errors, two.joint.standard_errors, rtol=1e-6)
    assert np.allclose(table.layers.values, made.two_way("sex", "a").rows.values, atol=1e-9)
    for label, place in (("f", 0), ("m", 1)):
        layer = table.layer(label)
        assert np.isclose(layer.proportions.sum(), 1)
        truth = JOINT[:, :, place] / JOINT[:, :, place].sum()
        assert (np.abs(layer.joint.values - truth.ravel()) < 5 * layer.joint.standard_errors).all()
        only = people(folder, Analysis(where=()))
        assert only.n == N
        assert layer.independence().p_value < 1e-6
    assert "ThreeWayTable(2 x 3 x 2" in repr(table)


def test_the_test_in_a_layer_is_that_of_its_people(folder):
    """The test of independence within a public value is that of the two-way table under that condition."""
    tests = people(folder).independence_by("a", "b", "sex")
    assert set(tests) == {"f", "m"}
    for label, test in tests.items():
        alone = people(folder, Analysis(where=(Condition.parse(f"sex = {label}"),))).two_way("a", "b").independence()
        assert test == alone
    clustered = people(folder, Analysis(SampleSpec(clusters="sex"))).independence_by("a", "b", "sex")
    assert all(isinstance(test, str) for test in clustered.values())  # one unit each, and no degrees of freedom


def test_three_private_answers(folder):
    """All three private: shares near the truth, and those who left one out are left out with `answered`."""
    whole = people(folder).three_way("a", "b", "c")
    assert whole.shape[:2] == (2, 3)
    assert np.isclose(whole.joint.values.sum(), 1)
    answered = people(folder, Analysis(answered=True)).three_way("a", "b", "c")
    assert np.isclose(answered.joint.values.sum(), 1)
    assert answered.shape == (2, 3, 2)


def test_invalid_three_way_tables_are_refused(folder):
    """Names twice, no question, unknown columns, too many cells."""
    made = people(folder)
    for names in (("a", "b", "a"), ("sex", "village", "w"), ("a", "b", "nothing")):
        with pytest.raises(InvalidInput):
            made.three_way(*names)
    with pytest.raises(InvalidInput, match="layer"):
        made.three_way("a", "b", "sex").layer("x")


@pytest.mark.parametrize("percent", ["all", "row", "column", "layer"])
def test_the_command_prints_every_cell(folder, percent, monkeypatch):
    """Twelve rows, a test in each layer; shares sum to 1 in what they are of."""
    monkeypatch.chdir(folder)
    command = ["survey", "table", "plan.json", "reports.csv", "a", "b", "--layer", "sex", "--percent", percent]
    said = CliRunner().invoke(app, [*command, "--format", "csv"])
    assert said.exit_code == 0, said.output
    from io import StringIO

    table = pd.read_csv(StringIO(said.stdout), comment="#").dropna(subset=["share"])
    within = {"all": [], "row": ["sex", "a"], "column": ["sex", "b"], "layer": ["sex"]}[percent]
    sums = table.groupby(within).share.sum() if within else table.share.sum()
    assert len(table) == 12
    assert np.allclose(sums, 1)
    text = CliRunner().invoke(app, command)
    assert text.stdout.count("Test of independence") == 2
    private = CliRunner().invoke(app, ["survey", "table", "plan.json", "reports.csv", "a", "sex", "--layer", "b"])
    assert private.stdout.count("independence") == 0
    wrong = CliRunner().invoke(app, ["survey", "table", "plan.json", "reports.csv", "a", "b", "--percent", "layer"])
    assert wrong.exit_code == 2
