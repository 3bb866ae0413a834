"""``ldpopt survey``: from questions to a page, in files."""

import json
import os
import signal
import stat
import threading
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster

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
    for text in (
        "Smoking",
        "smokes",
        "Design effect",
        "Whatever you answer",
        "channel of this survey",
        "randomized response",
        "data:image/png;base64",
    ):
        assert text in page
    assert "http" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "none.toml", "-o", "p.json"), "none.toml"),
        (("privatize", "plan.json", "answers.csv", "-o", "r.csv"), "key_file"),
        (("privatize", "plan.json", "answers.csv", "-o", "r.csv", "--key", "none"), "none"),
        (("privatize", "plan.json", "answers.csv", "-o", "r.csv", "--key", "k", "--simulate", "1"), "both"),
        (("aggregate", "plan.json", "answers.csv"), "expected a manifest"),
        (("aggregate", "plan.json", "answers.csv", "--unlabelled"), "raw answers"),
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


PLAIN = """
[survey]
name = "Smoking"
respondent = "id"
[[questions]]
name = "smokes"
categories = ["no", "sometimes", "daily"]
epsilon = 1.0
"""


@pytest.fixture
def partitions(run, tmp_path):
    """A plan, a key, answers in twelve files, and the reports of a run without a cluster."""
    (tmp_path / "survey.toml").write_text(PLAIN)
    (tmp_path / "answers").mkdir()
    for file in range(12):
        rows = [f"{file}-{i},{('no', 'sometimes', 'daily')[i % 3]}" for i in range(400)]
        (tmp_path / "answers" / f"{file:02d}.csv").write_text("id,smokes\n" + "\n".join(rows) + "\n")
    assert run("survey", "plan", "survey.toml").exit_code == 0
    privatize = ("survey", "privatize", "plan.json", "answers", "--key", "k", "-o")
    assert run(*privatize, "alone", "--new-key").exit_code == 0
    return privatize


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_local_cluster_writes_the_same_bytes(run, partitions, tmp_path):
    """With --dask the reports are those of one process, and the page and the counts follow from them."""
    said = run(*partitions, "cluster", "--dask", "--workers", 2)
    assert said.exit_code == 0, said.output
    assert "4,800 reports" in said.stdout
    assert contents(tmp_path / "cluster") == contents(tmp_path / "alone")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_killed_under_a_scheduler_changes_nothing(run, partitions, tmp_path):
    """With --scheduler on a cluster of two workers, one killed as soon as reports appear, the bytes are the same."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill():
            while not list(tmp_path.glob(".cluster.partial/*.csv")) and not (tmp_path / "cluster").exists():
                time.sleep(0.001)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        watch = threading.Thread(target=kill)
        watch.start()
        said = run(*partitions, "cluster", "--scheduler", cluster.scheduler_address)
        watch.join()
    assert said.exit_code == 0, said.output
    assert killed
    assert contents(tmp_path / "cluster") == contents(tmp_path / "alone")
    assert not list(tmp_path.glob(".cluster*"))


def test_a_scheduler_is_an_address(run, partitions):
    """What is no address is refused in one line."""
    said = run(*partitions, "cluster", "--scheduler", "somewhere")
    assert said.exit_code == 2
    assert "tcp://" in said.output
