"""A collector as a process: killed under load, fed with nonsense, and stopped.

The full forms are in `experiments/trust/collect.py`.
"""

import asyncio
import random

import pytest
from collectors import (
    PATHS,
    accepted,
    collector_process,
    encoded,
    habits,
    kills,
    malformed,
    random_bodies,
    raw,
    send_all,
    stored_reports,
)

from ldpopt_survey.server.submission import Reader, Refused

pytestmark = pytest.mark.full


def test_every_acknowledged_report_is_there_once(location, plan, tmp_path):
    """A collector that is killed under load has lost no report that it acknowledged, and none is there twice."""
    assert kills(plan, location, tmp_path, times=1, longest=0.5, connections=8, seed=plan.round) == ""


def test_nonsense_is_neither_stored_nor_an_error_of_the_program(tmp_path):
    """Malformed requests are all refused, with no status of 500 and nothing stored; good ones among them are stored.

    After a signal to end, the log of the database has gone into its file, and the reports are there.
    """
    plan = habits()
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "index.html").write_text("here")
    rng = random.Random(5)
    good = {body["id"]: body for body, _ in zip(random_bodies(plan, rng), range(20), strict=False)}
    with collector_process(tmp_path, plan, "reports.db", "--kit", "kit") as running:
        made = asyncio.run(send_all(running.port, malformed(plan, rng, 400), 16, stubborn=True))
        assert set(made.statuses.values()) <= {400, 404, 405, 413, 415, 422}
        assert len(made.statuses) + len(made.lost) == 400
        assert len(made.lost) < 40
        paths = asyncio.run(send_all(running.port, ((p, raw(b"", p, method="GET")) for p in PATHS), 1, stubborn=True))
        assert set(paths.statuses.values()) <= {400, 404}
        stored = asyncio.run(send_all(running.port, ((key, encoded(body)) for key, body in good.items()), 4))
        assert set(stored.statuses.values()) == {201}
        running.process.terminate()
        running.process.wait(600)
    assert (tmp_path / "log").read_text() == ""
    assert not (tmp_path / "reports.db-wal").exists()
    assert set(stored_reports(plan, str(tmp_path / "reports.db"))) == set(good)


def test_the_reader_and_its_description_agree():
    """Of mutated bodies exactly those are read that a second description of the format takes."""
    plan, rng = habits(), random.Random(7)
    reader = Reader(plan)
    taken = 0
    for (kind, _), request in malformed(plan, rng, 600):
        body = request.partition(b"\r\n\r\n")[2]
        if kind == "request" and not accepted(plan, body):
            with pytest.raises(Refused):
                reader.read(body)
    for body, _ in zip(random_bodies(plan, rng), range(100), strict=False):
        taken += len(reader.read(encoded(body).partition(b"\r\n\r\n")[2]).codes) == 12
        assert accepted(plan, encoded(body).partition(b"\r\n\r\n")[2])
    assert taken == 100


def test_two_collectors_on_one_database(postgresql, plan, tmp_path):
    """Submissions that go to either of two collectors, some to both, are there once."""
    bodies = [body for body, _ in zip(random_bodies(plan, random.Random(1)), range(200), strict=False)]
    with (
        collector_process(tmp_path, plan, postgresql.url) as one,
        collector_process(tmp_path, plan, postgresql.url) as two,
    ):

        async def both():
            halves = (bodies[:120], bodies[80:])
            return await asyncio.gather(
                *(send_all(running.port, ((body["id"], encoded(body)) for body in half), 8)
                  for running, half in zip((one, two), halves, strict=True))
            )  # fmt: skip

        made = asyncio.run(both())
    statuses = [status for sent in made for status in sent.statuses.values()]
    assert statuses.count(201) == 200
    assert statuses.count(200) == 40
    assert len(stored_reports(plan, postgresql.url)) == 200
