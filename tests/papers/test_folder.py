"""Folders of experiments: resumable, described by the run, read with care."""

import dataclasses
import json

import pytest

from experiments.papers import EXPERIMENTS, index_page, run
from experiments.papers.experiment import Axis, grid
from ldpopt.errors import InvalidInput

NAME = "m-lemma-1-step"


def counting(experiment, fail_at=None):
    """The experiment, and the list of points it measures; stops at a point if told to."""
    seen = []

    def measure(**point):
        if fail_at is not None and len(seen) == fail_at:
            raise KeyboardInterrupt
        seen.append(point)
        return experiment.measure(**point)

    return dataclasses.replace(experiment, measure=measure), seen


def test_a_run_leaves_parameters_rows_picture_verdict_and_description(tmp_path):
    """Everything of a run is in the folder, and the README says claim, source and the computed verdict."""
    verdict = run(EXPERIMENTS[NAME], tmp_path / NAME, quick=True)
    found = {path.name for path in (tmp_path / NAME).iterdir()}
    assert found == {"parameters.toml", "rows.csv", "picture.png", "README.md", "verdict.json"}
    text = (tmp_path / NAME / "README.md").read_text("utf-8")
    for words in (EXPERIMENTS[NAME].claim, "[M, Lemma 1]", f"Verdict: {verdict.outcome.value}.", verdict.detail):
        assert words in text
    assert json.loads((tmp_path / NAME / "verdict.json").read_text("utf-8"))["outcome"] == "fails"
    page = index_page(tmp_path)
    assert page.count("<h2 id=") == 1
    assert "Of 1 claims 1 fails." in page
    assert f'href="{NAME}/rows.csv"' in page
    assert f'src="{NAME}/picture.png"' in page


@pytest.mark.full
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    """Rows that are done are kept: the second run measures only the rest, to the same result."""
    halted, first = counting(EXPERIMENTS[NAME], fail_at=7)
    with pytest.raises(KeyboardInterrupt):
        run(halted, tmp_path)
    resumed, second = counting(EXPERIMENTS[NAME])
    verdict = run(resumed, tmp_path)
    assert len(first) == 7
    assert len(first) + len(second) == len(EXPERIMENTS[NAME].full["epsilon"])
    again, third = counting(EXPERIMENTS[NAME])
    assert run(again, tmp_path) == verdict
    assert third == []


def test_edited_parameters_are_used_and_only_new_points_computed(tmp_path):
    """The parameters in the folder decide; a point that is new is added, one that is gone is dropped."""
    run(EXPERIMENTS[NAME], tmp_path, quick=True)
    (tmp_path / "parameters.toml").write_text("epsilon = [9.0]\n[quick]\nepsilon = [0.1, 2.0]\n")
    edited, seen = counting(EXPERIMENTS[NAME])
    run(edited, tmp_path, quick=True)
    assert seen == [{"epsilon": 2.0}]
    assert (tmp_path / "rows.csv").read_text().count("\n") == 3


@pytest.mark.parametrize("text", ["epsilon = [", "epsilons = [1.0]\n", "epsilon = [1.0]\nmore = 1\n"])
def test_bad_parameters_are_refused(tmp_path, text):
    """Parameters that are not TOML, or not the experiment's, are refused with the file's name."""
    (tmp_path / "parameters.toml").write_text(text)
    with pytest.raises(InvalidInput, match=r"parameters\.toml: expected"):
        run(EXPERIMENTS[NAME], tmp_path)


def test_the_two_forms_do_not_share_a_folder(tmp_path):
    """A quick run into the folder of a full one would drop its rows: it is refused, and nothing changes."""
    run(EXPERIMENTS[NAME], tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InvalidInput, match="expected a folder for the same form of the experiment"):
        run(EXPERIMENTS[NAME], tmp_path, quick=True)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_whose_parameters_have_any_names_goes_on(tmp_path):
    """Keys with spaces or dots are quoted in the parameters' file, so that a second run reads what the first wrote."""
    given = EXPERIMENTS[NAME]
    odd = Axis(given.quick["epsilon"], name='all "these", a = b')
    experiment = dataclasses.replace(given, points=grid(epsilon=odd))
    counted, first = counting(experiment)
    verdict = run(counted, tmp_path)
    again, second = counting(experiment)
    assert run(again, tmp_path) == verdict
    assert len(first) > 0
    assert second == []
