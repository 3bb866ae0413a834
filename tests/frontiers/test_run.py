"""Equal problems have equal checksums, in every process; different ones do not.

Whoever does the work, and however often it is interrupted, the frontier is the same to the last bit.
"""

import os
import signal
import subprocess
import sys
import time

import joblib
import networkx as nx
import numpy as np
import pytest
from design_problems import random_pair, utility
from scipy import stats

from ldpopt import ApproximateLDP, Divergence, InvalidInput, LocalDP, RenyiLDP, frontier, sweep
from ldpopt.divergences import CHI_SQUARED, KL, FDivergence
from ldpopt.frontiers.run import fingerprint

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


class Own:
    """A constraint of a user's."""

    def __init__(self, cap):
        self.cap = cap

    def bound(self):
        return self.cap


def _enclosing(level):
    return lambda t: level * (t - 1) ** 2


EQUAL = [
    lambda: (Divergence(KL, P0, P1), LocalDP(1.0)),
    lambda: [ApproximateLDP(1.0, 0.1), RenyiLDP(2.0, 0.5)],
    lambda: LocalDP(1.0, nx.path_graph(4)),
    lambda: FDivergence(_enclosing(2.0), name="own"),
    lambda: (Own(2), {"a": {1, 2, 3}}, None, True, 1j, b"x"),
    lambda: Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)),
]


@pytest.mark.parametrize("make", EQUAL)
def test_equal_values_agree(make):
    """Two values made alike have one checksum."""
    assert fingerprint(make()) == fingerprint(make())


def test_different_values_differ():
    """A bit, a label, a nesting, an edge, a piece of code, an enclosed number: each changes the checksum."""
    different = [
        Divergence(KL, P0, P1),
        Divergence(KL, P0, [0.2, 0.3 - 2**-52, 0.5 + 2**-52]),
        Divergence(CHI_SQUARED, P0, P1),
        Divergence(KL, P0, P1, inputs=("a", "b", "c")),
        Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)),
        Divergence(KL, stats.norm(0, 1), stats.norm(2, 1)),
        LocalDP(1.0),
        LocalDP(np.nextafter(1.0, 2)),
        LocalDP(1.0, nx.path_graph(4)),
        LocalDP(1.0, nx.cycle_graph(4)),
        FDivergence(_enclosing(2.0), name="own"),
        FDivergence(_enclosing(3.0), name="own"),
        Own(1),
        Own(2),
        lambda: 1,
        lambda: 2,
        ((1, 2), 3),
        ((1,), 2, 3),
        [1, 2],
        (1, 2),
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        1,
        1.0,
        "1",
    ]
    assert len({fingerprint(value) for value in different}) == len(different)


def test_a_circle_ends():
    """A value that contains itself has a checksum too."""
    circle = [1]
    circle.append(circle)
    assert len(fingerprint(circle)) == 64


def test_other_processes_agree():
    """The checksum does not depend on the process, its hash seed or the order of a set."""
    code = (
        "from ldpopt import Divergence, LocalDP; from ldpopt.divergences import KL; "
        "from ldpopt.frontiers.run import fingerprint; "
        f"print(fingerprint(Divergence(KL, {P0}, {P1}), LocalDP(1.0), {{'a', 'b', 'c'}}))"
    )
    here = fingerprint(Divergence(KL, P0, P1), LocalDP(1.0), {"a", "b", "c"})
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert run.stdout.strip() == here


EPSILONS, ETAS = [0.5, 1.5], [0.02 * i for i in range(1, 13)]
GRID = (EPSILONS, ETAS)


def slack(delta):
    return ApproximateLDP(0.7, delta)


def small():
    return utility(4, 3)


@pytest.fixture(scope="module")
def alone():
    """The tables of one process: over (epsilon, eta), over a family, and of a divergence of one's own."""
    own = FDivergence(lambda t: (t - 1) ** 4, name="fourth power")
    return {
        "grid": (small(), *GRID, frontier(small(), *GRID)),
        "family": (small(), slack, [0.05, 0.1], sweep(small(), slack, [0.05, 0.1])),
        "own": (Divergence(own, *random_pair(3, 1)), LocalDP, [0.5, 1.0],
                sweep(Divergence(own, *random_pair(3, 1)), LocalDP, [0.5, 1.0])),
    }  # fmt: skip


def repeated_call(posed, first, second, **how):
    """The same call: a frontier over numbers, or a sweep of a family."""
    return (sweep if callable(first) else frontier)(posed, first, second, **how)


@pytest.mark.full
def test_processes_change_nothing(alone):
    """Two processes give the rows of one, bit for bit, also for a divergence made of lambdas."""
    for posed, first, second, table in alone.values():
        seen = []
        made = repeated_call(posed, first, second, jobs=2, on_row=seen.append)
        assert made.rows == table.rows
        assert sorted(map(repr, seen)) == sorted(map(repr, table.rows))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dask_cluster_changes_nothing(alone, tmp_path):
    """By joblib's backend a cluster gives the rows of this process, computed there, and what it finished is kept."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    )
    with cluster, distributed.Client(cluster) as client, joblib.parallel_config("dask"):
        for name in ("grid", "family"):
            posed, *points, table = alone[name]
            assert repeated_call(posed, *points, jobs=-1, resume=tmp_path / name) == table
        loaded = client.run(lambda: [*sys.modules]).values()
        assert any("ldpopt.frontiers.run" in modules for modules in loaded)
    posed, *points, table = alone["family"]
    assert repeated_call(posed, *points, resume=tmp_path / "family") == table


SCRIPT = """
import sys, time
import numpy as np
from ldpopt import ApproximateLDP, Divergence, frontier, sweep
from ldpopt.divergences import KL
u = Divergence(KL, *np.random.default_rng(3).dirichlet(np.ones(4), 2))
{function}(u, {first}, {second}, resume=sys.argv[1], on_row=lambda row: time.sleep(0.2))
"""


@pytest.mark.full
@pytest.mark.parametrize("name", ["grid", "family"])
def test_a_killed_run_goes_on(alone, tmp_path, name):
    """After SIGKILL in mid-run, whole parts are there, and the same call gives the rows of an uninterrupted run."""
    posed, *points, table = alone[name]
    family = "lambda delta: ApproximateLDP(0.7, delta)" if name == "family" else str(points[0])
    script = SCRIPT.format(function="sweep" if name == "family" else "frontier", first=family, second=points[1])
    folder = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-P", "-c", script, str(folder)]) as run:
        while not list(folder.glob("part-*.json")):
            time.sleep(0.02)
            assert run.poll() is None
        os.kill(run.pid, signal.SIGKILL)
    done = {path: path.stat().st_mtime_ns for path in folder.glob("part-*.json")}
    assert 0 < len(done) < (4 if name == "grid" else 2)
    assert repeated_call(posed, *points, resume=folder) == table
    assert all(path.stat().st_mtime_ns == before for path, before in done.items())
    assert not list(folder.glob(".*"))


@pytest.mark.full
def test_an_interrupted_run_keeps_its_finished_parts(alone, tmp_path):
    """Ctrl-C in mid-run leaves whole parts and no other file; so it does with two processes."""
    posed, *points, table = alone["grid"]

    def interrupt(row):
        if row.epsilon == 1.5:
            raise KeyboardInterrupt

    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        with pytest.raises(KeyboardInterrupt):
            frontier(posed, *points, on_row=interrupt, resume=folder, jobs=jobs)
        names = {path.name for path in folder.iterdir()}
        assert "problem.json" in names
        assert names - {"problem.json"} <= {f"part-{i:06d}.json" for i in range(4)}
        assert frontier(posed, *points, resume=folder).rows == table.rows


def test_another_problem_is_refused(alone, tmp_path):
    """A folder goes with one problem: another utility, grid or method is refused, and nothing is written."""
    posed, *points, _ = alone["grid"]
    frontier(posed, *points, resume=tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    others = [
        (utility(4, 4), *points),
        (posed, [0.5], points[1]),
        (posed, points[0], points[1][:-1]),
        (posed, slack, [0.05]),
    ]
    for other in others:
        with pytest.raises(InvalidInput, match="folder of the same frontier"):
            repeated_call(*other, resume=tmp_path / "run")
    assert sorted(tmp_path.rglob("*")) == before


def test_other_folders_are_refused(alone, tmp_path):
    """Files, folders with other content, spoilt parts and folders in use are refused."""
    posed, *points, _ = alone["grid"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="place for a new one"):
        frontier(posed, *points, resume=tmp_path / "file")
    with pytest.raises(InvalidInput, match="empty folder"):
        frontier(posed, *points, resume=tmp_path)
    folder = tmp_path / "run"

    def once_more(_):
        frontier(posed, *points, resume=folder)

    with pytest.raises(InvalidInput, match="no other run"):
        frontier(posed, *points, on_row=once_more, resume=folder)
    part = folder / "part-000000.json"
    whole = part.read_text()
    for spoilt in ("{}", whole.replace('"eta"', '"etta"', 1), whole.replace("0.5", "0.25", 1), "[1", whole[:-5]):
        part.write_text(spoilt)
        with pytest.raises(InvalidInput, match=r"part-000000|JSON"):
            frontier(posed, *points, resume=folder)
    (folder / "problem.json").write_text("{}")
    with pytest.raises(InvalidInput, match="the header of a frontier"):
        frontier(posed, *points, resume=folder)


@pytest.mark.full
def test_the_error_of_a_failing_point_reaches_the_caller(tmp_path):
    """An error in a worker reaches the caller, and what was finished stays."""
    infinite = Divergence(CHI_SQUARED, [0.2, 0.3, 0.5], [0.5, 0.5, 0.0])

    def family(epsilon):
        return LocalDP(epsilon) if epsilon < 1 else RenyiLDP(0.5 + epsilon, epsilon)

    for jobs in (1, 2):
        with pytest.raises(InvalidInput, match="may be infinite"):
            sweep(infinite, family, [0.5, 0.7, 1.0], jobs=jobs, resume=tmp_path / str(jobs))
    assert (tmp_path / "1" / "part-000001.json").exists()


def test_workers_are_checked():
    """Jobs are counted."""
    for jobs in (0, 1.5, "2", -2):
        with pytest.raises(InvalidInput, match="jobs"):
            frontier(small(), [1.0], [0.1], jobs=jobs)


def test_progress_is_shown_on_standard_error(capsys):
    """A bar leaves standard output alone."""
    frontier(small(), [1.0], [0.1], progress=True)
    assert capsys.readouterr().out == ""
