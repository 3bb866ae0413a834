"""The writer: many submissions a commit, and an answer to each whatever happens."""

import asyncio
import threading

import pytest

from ldpopt_survey.server import app
from ldpopt_survey.server.app import Unexpected, Writer
from ldpopt_survey.server.decide import Outcome, RoundState
from ldpopt_survey.server.store import Unavailable
from ldpopt_survey.server.submission import Refused, Submission


class Slow:
    """A store whose first commit waits to be told; it counts its batches."""

    def __init__(self, error=None):
        self.batches, self.go, self.error = [], threading.Event(), error

    def write(self, batch, day):
        self.go.wait(600)
        self.batches.append(len(batch))
        if self.error is not None:
            raise self.error
        return [Outcome.STORED] * len(batch)

    def state(self):
        return RoundState(closed=False, invited=False)


def some(count):
    return [Submission(n.to_bytes(16, "big"), b"") for n in range(count)]


async def submitted(store, count):
    made = Writer(store, lambda: "2026-01-31")
    made.start()
    tasks = [asyncio.create_task(made.submit(one)) for one in some(count)]
    await asyncio.sleep(0.05)
    store.go.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    await made.stop()
    return results


def test_waiting_submissions_share_one_commit():
    """Submissions that arrive during a commit share the next one; none is acknowledged before its own."""
    store = Slow()
    assert set(asyncio.run(submitted(store, 1000))) == {Outcome.STORED}
    assert sum(store.batches) == 1000
    assert len(store.batches) <= 4


@pytest.mark.parametrize(("error", "kind"), [(Unavailable("no room"), Unavailable), (ValueError("secret"), Unexpected)])
def test_everybody_hears_of_a_failed_commit(error, kind):
    """Each submission of the batch ends with the error; one that nobody thought of loses its message."""
    found = asyncio.run(submitted(Slow(error), 10))
    assert {type(one) for one in found} == {kind}
    assert not any("secret" in str(one) for one in found)


def test_too_many_that_wait_are_refused(monkeypatch):
    """Beyond the limit a submission is refused at once, and stored in no batch."""
    monkeypatch.setattr(app, "MAX_WAITING", 5)
    store = Slow()
    found = asyncio.run(submitted(store, 8))
    assert [type(one) for one in found] == [Outcome] * 5 + [Refused] * 3
    assert sum(store.batches) == 5
