"""``ldpopt demo`` makes one folder, whole or not at all."""

from functools import cache

import pytest

import ldpopt.demo

RUN = ldpopt.demo.run


@cache
def content():
    """What the short demonstration below makes, and how often it said how far it was."""
    steps = []
    return RUN(lambda *_: steps.append(1)), len(steps)


@pytest.fixture
def quick(monkeypatch):
    """A demonstration of one question, one epsilon and few curves, made once: the same code on less."""
    monkeypatch.setattr(ldpopt.demo, "QUESTIONS", {"party": "Party identification"})
    monkeypatch.setattr(ldpopt.demo, "DEMO_EPSILONS", (2.0,))
    monkeypatch.setattr(ldpopt.demo, "CURVE_EPSILONS", (2.0,))
    monkeypatch.setattr(ldpopt.demo, "MAP_EPSILONS", (2.0,))

    def run(step):
        made, steps = content()
        for _ in range(steps):
            step()
        return made

    monkeypatch.setattr(ldpopt.demo, "run", run)


@pytest.mark.full
@pytest.mark.usefixtures("quick")
def test_a_folder_is_made_and_named(run, tmp_path):
    """The demonstration names its folder, which has the report, pictures, tables and channels; a second one is new."""
    result = run("demo")
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "ldpopt-demo"
    assert "ldpopt-demo/report.html" in result.stdout
    assert "Party identification: Clinton against Dole" in result.stdout
    kinds = {path.suffix for path in folder.iterdir()}
    assert kinds == {".html", ".png", ".csv", ".json"}
    again = run("demo")
    assert "ldpopt-demo-2/report.html" in again.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ldpopt-demo", "ldpopt-demo-2"]
    assert run("check", folder / "party-epsilon-2-eta-0.4.json").exit_code == 0


@pytest.mark.usefixtures("quick")
def test_an_existing_folder_is_refused_unless_forced(run, refused, tmp_path):
    """A folder named by the user and already there is refused; with --force it is written into."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("precious")
    assert "mine: expected a path that does not exist yet" in refused("demo", "--out", "mine")
    assert run("demo", "--out", "mine", "--force").exit_code == 0
    assert (folder / "notes.txt").read_text() == "precious"
    assert (folder / "report.html").is_file()


def test_impossible_folders_are_refused(refused, tmp_path):
    """A folder inside one that does not exist, or in place of a file, is refused before any work."""
    (tmp_path / "file").write_text("precious")
    assert "expected a path in a folder that exists" in refused("demo", "--out", "nowhere/demo")
    assert "an existing one" in refused("demo", "--out", "file")
    assert "got a folder" not in refused("demo", "--out", "file", "--force")
