"""On a Dask cluster the result is the same, and a killed worker changes nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.aggregate import aggregate
from ldpopt.survey.collect.cluster import dask_runner
from ldpopt.survey.collect.privatize import privatize
from ldpopt.survey.collect.randomness.randomness import Memoised
from ldpopt.survey.collect.randomness.secret import create_key
from ldpopt.survey.plan.plan import make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

distributed = pytest.importorskip("distributed")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    """Two workers, one killed in mid-run: the reports are the bytes of a run without Dask, and so are the counts."""
    plan = make_plan(SurveySpec("s", (QuestionSpec("q", (0, 1, 2)),), respondent="id"), {"q": np.eye(3) / 2 + 1 / 6})
    (tmp_path / "raw").mkdir()
    for file in range(12):
        raw = {"id": [f"{file}-{i}" for i in range(500)], "q": np.arange(500) % 3}
        pd.DataFrame(raw).to_parquet(tmp_path / "raw" / f"{file:02d}.parquet")
    create_key(tmp_path / "key")
    privatize(plan, tmp_path / "raw", tmp_path / "alone", Memoised(tmp_path / "key"))
    with dask_runner(workers=2) as runner:
        victim = next(iter(runner.client.run(os.getpid).values()))
        killed = []

        def kill(done: int, total: int) -> None:
            if not killed:
                killed.append(done)
                os.kill(victim, signal.SIGKILL)

        tally = privatize(plan, tmp_path / "raw", tmp_path / "cluster", Memoised(tmp_path / "key"), runner, kill)
        counts = aggregate(plan, tmp_path / "cluster", runner=runner)
    assert killed
    assert tally.rows == 6000
    names = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "cluster").iterdir())
    for name in names:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "cluster" / name).read_bytes()
    assert counts == aggregate(plan, tmp_path / "alone")


def test_addresses_are_checked() -> None:
    """A scheduler is named by its address, and workers are counted from one."""
    with pytest.raises(InvalidInput, match="tcp://"), dask_runner("somewhere"):
        pass
    with pytest.raises(InvalidInput, match="workers"), dask_runner(workers=0):
        pass
