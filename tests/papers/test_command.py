"""``python -m experiments.papers`` runs experiments, lists verdicts and refuses what it cannot run."""

import pytest
from typer.testing import CliRunner

from experiments.papers import EXPERIMENTS
from experiments.papers.__main__ import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The program on a list of arguments, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


@pytest.fixture
def refused(run):
    """The error line of a program that ends with exit code 2."""

    def refuse(*arguments):
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        return result.stderr

    return refuse


def test_one_experiment_writes_its_folder_and_verdict(run, tmp_path):
    """A quick run writes the experiment's folder and an index page, and says the verdict."""
    result = run("m-lemma-1-step", "--quick")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("m-lemma-1-step: fails. At ε = 0.1")
    assert (tmp_path / "ldpopt-reproduced-quick" / "m-lemma-1-step" / "picture.png").is_file()
    assert "m-lemma-1-step" in (tmp_path / "ldpopt-reproduced-quick" / "index.html").read_text("utf-8")


def test_the_list_shows_every_verdict(run):
    """Without a run, the list shows the verdicts recorded with this version."""
    result = run("--list")
    assert result.exit_code == 0, result.stderr
    for name in EXPERIMENTS:
        assert name in result.stdout
    assert "not run" not in result.stdout
    assert "holds loosely" in result.stdout


def test_bad_names_options_and_folders_are_refused(refused, tmp_path):
    """An unknown name, zero or two of the three options, and a file in place of the folder are refused."""
    assert "experiment: expected one of" in refused("gi-theorem-99")
    assert "pass exactly one of NAME, --all and --list" in refused()
    refused("m-lemma-1-step", "--all")
    (tmp_path / "taken").write_text("x")
    refused("m-lemma-1-step", "--quick", "--out", "taken")
