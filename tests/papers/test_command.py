"""``ldpopt reproduce`` runs experiments, lists verdicts and refuses what it cannot run."""

from experiments.papers import EXPERIMENTS


def test_one_experiment(run, tmp_path):
    """A quick run writes the experiment's folder and an index page, and says the verdict."""
    result = run("reproduce", "m-lemma-1-step", "--quick")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("m-lemma-1-step: fails. At ε = 0.1")
    assert (tmp_path / "ldpopt-reproduced-quick" / "m-lemma-1-step" / "picture.png").is_file()
    assert "m-lemma-1-step" in (tmp_path / "ldpopt-reproduced-quick" / "index.html").read_text("utf-8")


def test_the_list_shows_every_verdict(run):
    """Without a run, the list shows the verdicts recorded with this version."""
    result = run("reproduce", "--list")
    assert result.exit_code == 0, result.stderr
    for name in EXPERIMENTS:
        assert name in result.stdout
    assert "not run" not in result.stdout
    assert "holds loosely" in result.stdout


def test_what_is_refused(refused, tmp_path):
    """An unknown name, none of the three ways or two of them, and a file where the folder should be."""
    assert "experiment: expected one of" in refused("reproduce", "gi-theorem-99")
    assert "expected one of NAME, --all and --list" in refused("reproduce")
    refused("reproduce", "m-lemma-1-step", "--all")
    (tmp_path / "taken").write_text("x")
    refused("reproduce", "m-lemma-1-step", "--quick", "--out", "taken")
