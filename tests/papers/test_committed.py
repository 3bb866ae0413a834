"""What the repository keeps of every experiment is complete, and is what the package ships."""

import tomllib
from pathlib import Path

import pytest

from experiments.papers import EXPERIMENTS, Table, recorded
from ldpopt.files import strict

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "papers" / "records"
HERE = FOLDER.is_dir()  # the tests may run away from the repository, with the scripts they need alone


def test_recorded_verdicts_belong_to_experiments():
    """The package ships verdicts of its experiments only."""
    assert set(recorded()) == set(EXPERIMENTS)


@pytest.mark.parametrize("name", recorded() if HERE else [])
def test_the_folder_of_a_claim_is_complete(name):
    """A folder has its script, parameters of both forms, numbers, picture, description and the verdict recorded."""
    folder = FOLDER / name
    found = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert found == {"run.py", "parameters.toml", "rows.csv", "picture.png", "README.md", "verdict.json"}
    parameters = tomllib.loads((folder / "parameters.toml").read_text("utf-8"))
    assert set(parameters.pop("quick")) == set(parameters) == set(EXPERIMENTS[name].full)
    assert parameters == EXPERIMENTS[name].full
    verdict = strict.json_value((folder / "verdict.json").read_text("utf-8"))
    assert verdict.pop("quick") is False
    assert verdict == recorded()[name]
    text = (folder / "README.md").read_text("utf-8")
    assert f"**Claim.** {EXPERIMENTS[name].claim}" in text
    assert f"**Verdict: {verdict['outcome']}.** {verdict['detail']}" in text


@pytest.mark.full(but=20)
@pytest.mark.parametrize("name", recorded() if HERE else [])
def test_the_verdict_follows_from_the_committed_numbers(name):
    """Judging the rows in the folder gives the verdict in it, and a further run would have nothing to compute."""
    table = Table.from_csv((FOLDER / name / "rows.csv").read_text("utf-8"))
    assert all(table.where(**point).rows for point in EXPERIMENTS[name].points(EXPERIMENTS[name].full))
    assert strict.json_value(strict.json_text(EXPERIMENTS[name].judge(table).to_dict())) == recorded()[name]


def test_everything_is_in_the_list():
    """The records are those of the claims; the page of experiments names the four folders, and the number of claims."""
    if not HERE:
        return
    assert {path.name for path in FOLDER.iterdir()} == set(EXPERIMENTS)
    experiments = FOLDER.parents[1]
    text = (experiments / "README.md").read_text("utf-8")
    others = [path for path in experiments.iterdir() if path.name != "__pycache__"]
    assert all(f"`{path.name}`" in text for path in others if path.is_dir() or path.suffix == ".py")
    assert f"{len(EXPERIMENTS)} records" in text
