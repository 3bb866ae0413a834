"""Readiness is a durable write within the last seconds; the metrics are what Prometheus reads; what a check tries."""

import asyncio
import re

import pytest
from collectors import habits

from ldpopt_survey.server import Unavailable, database
from ldpopt_survey.server.decide import RoundState
from ldpopt_survey.server.health import COMMIT_SECONDS_BUCKETS, MAX_WRITE_AGE_SECONDS, Health, checks

PLAN = habits()


class Disk:
    """A database that can be filled up, with a clock; counts what was tried."""

    def __init__(self):
        self.full, self.tried, self.now = False, 0, 100.0

    async def probe(self):
        self.tried += 1
        if self.full:
            raise Unavailable("full")
        return RoundState(closed=False, invited=False)


def test_ready_is_a_durable_write_within_the_last_seconds():
    """A stored submission counts; else one write a second at most is tried, and a failed one is told at once."""

    async def run():
        disk = Disk()
        health = Health(disk.probe, lambda: disk.now)
        assert [await health.ready() for _ in range(3)] == [False] * 3
        assert disk.tried == 1
        disk.now += MAX_WRITE_AGE_SECONDS + 1
        health.count_commit(0.01)
        assert (await health.ready(), disk.tried) == (False, 1)
        disk.full = True
        health.record_failure()
        assert [await health.ready() for _ in range(5)] == [None] * 5
        assert disk.tried == 2
        disk.full, disk.now = False, disk.now + 2
        assert (await health.ready(), disk.tried) == (False, 3)
        disk.full, disk.now = True, disk.now + MAX_WRITE_AGE_SECONDS
        assert (await health.ready(), disk.tried) == (None, 4)

    asyncio.run(run())


def test_metrics_are_those_of_the_format():
    """Every line is a comment or a number with its name; buckets rise to the count [Prometheus, text format 0.0.4]."""
    health = Health(Disk().probe)
    for seconds in (0.0005, 0.004, 0.004, 3.0, 99.0):
        health.count_commit(seconds)
    for status in (201, 201, 200, 429, 503):
        health.count_answer(status)
    said = health.metrics(7, 1000).decode()
    number = re.compile(r'ldpopt_[a-z_]+(\{[a-z]+="[^"]+"\})? [0-9.e+-]+')
    assert all(line.startswith(("# HELP ", "# TYPE ")) or number.fullmatch(line) for line in said.splitlines())
    buckets = [float(line.split()[1]) for line in said.splitlines() if "_bucket" in line]
    assert buckets == sorted(buckets)
    assert (len(buckets), buckets[0], buckets[-1]) == (len(COMMIT_SECONDS_BUCKETS) + 1, 1, 5)
    assert "ldpopt_submissions_accepted_total 3.0" in said
    assert "_created" not in said  # a time of day
    assert b"disk_free" not in health.metrics(0, None)


def test_a_probe_is_a_write(tmp_path):
    """It adds to the write-ahead log and changes nothing; without a place to write it is `Unavailable`."""
    with database(tmp_path / "r.db", PLAN, create=True) as store:
        log = tmp_path / "r.db-wal"
        before = log.stat().st_size
        assert store.probe() == store.state()
        assert log.stat().st_size > before
        assert store.free() > 0
        assert store.summary().reports == 0


@pytest.mark.parametrize("broken", ["nothing", "kit", "token", "db", "closed", "port"])
def test_a_check_tries_each_thing(tmp_path, broken):
    """All of a collector's needs hold, or exactly the broken one is named and the others are tried all the same."""
    import socket

    (tmp_path / "kit").mkdir()
    if broken != "kit":
        (tmp_path / "kit" / "index.html").write_text("<!doctype html>")
    (tmp_path / "token").write_text("a-token-of-some-length")
    (tmp_path / "token").chmod(0o644 if broken == "token" else 0o600)
    path = str(tmp_path / "none" / "r.db" if broken == "db" else tmp_path / "r.db")
    if broken == "closed":
        with database(path, PLAN, create=True) as store:
            store.close_round()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1] if broken == "port" else 0
        found = list(checks(PLAN, path, tmp_path / "kit", tmp_path / "token", "127.0.0.1", port))
    names = ["nothing", "kit", "db", "token", "port"]
    expected = [name != ("db" if broken == "closed" else broken) for name in names]
    assert [holds for holds, _ in found] == ([True, *expected[1:]])
    assert len(found) == 5
