"""Threads give every result once, and stop at a failure; a lost cluster is an error.

That a killed worker of a cluster changes nothing is a test of the command line (`tests/cli/test_survey.py`).
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Memoized
from ldpopt_survey.collect.runner import Dask, LostWork, Threads, dask_runner, yield_all
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec


@pytest.mark.parametrize("workers", [1, 3])
def test_every_item_once(workers: int) -> None:
    """`map` gives all results in some order, `total` their merger."""
    runner = Threads(workers)
    assert sorted(runner.map(lambda i: i * i, range(20))) == [i * i for i in range(20)]
    assert runner.total(lambda i: i, range(1, 6), lambda a, b: a * b) == 120


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_stops_the_rest(workers: int) -> None:
    """After the first failure at most the items begun are done."""
    done = []

    def work(item: int) -> None:
        done.append(item)
        if item == 3:
            raise KeyError(item)
        time.sleep(0.001)

    with pytest.raises(KeyError):
        list(Threads(workers).map(work, range(10_000)))
    assert 3 < len(done) + workers < 10_000


def test_workers_are_counted_from_one() -> None:
    """No workers do no work."""
    with pytest.raises(InvalidInput, match="workers"):
        Threads(0)


dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


def test_addresses_are_checked() -> None:
    """A scheduler is named by its address, and workers are counted from one."""
    with pytest.raises(InvalidInput, match="tcp://"), dask_runner("somewhere"):
        pass
    with pytest.raises(InvalidInput, match="workers"), dask_runner(workers=0):
        pass


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_lost_scheduler_is_an_error(tmp_path: Path) -> None:
    """When the scheduler goes in mid-run, nothing is published; the same call, elsewhere, ends with the same bytes."""
    plan = make_plan(SurveySpec("s", (QuestionSpec("q", (0, 1, 2)),), respondent="id"), {"q": np.eye(3) / 2 + 1 / 6})
    (tmp_path / "raw").mkdir()
    for file in range(12):
        raw = {"id": [f"{file}-{i}" for i in range(50)], "q": np.arange(50) % 3}
        pd.DataFrame(raw).to_parquet(tmp_path / "raw" / f"{file:02d}.parquet")
    create_key(tmp_path / "key")
    privatize(plan, tmp_path / "raw", tmp_path / "alone.csv", Memoized(tmp_path / "key"))
    impatient = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )
    with impatient, cluster, distributed.Client(cluster) as client:

        def lose(done: int, total: int) -> None:
            if done == 1:
                cluster.sync(cluster.scheduler.close)

        with pytest.raises(LostWork):
            privatize(plan, tmp_path / "raw", tmp_path / "r.csv", Memoized(tmp_path / "key"), Dask(client), lose)
        with pytest.raises(LostWork):
            Dask(client).total(len, ["a", "b"], max)
    assert not (tmp_path / "r.csv").exists()
    assert privatize(plan, tmp_path / "raw", tmp_path / "r.csv", Memoized(tmp_path / "key")).rows == 600
    assert (tmp_path / "r.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_a_map_that_ends_early_is_an_error() -> None:
    """Fewer results than items are never taken for all of them."""
    assert list(yield_all(iter([1, 2]), 2)) == [1, 2]
    with pytest.raises(LostWork, match="1 of 2"):
        list(yield_all(iter([1]), 2))
