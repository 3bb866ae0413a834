"""The state of a collector and its counters, for its operator.

Ready means that a durable write succeeded within the last seconds: a stored submission, or else one for the purpose.
"""

from __future__ import annotations

import asyncio
import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from ldpopt.errors import LdpoptError, Phrase, invalid
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.server.databases import database, shown
from ldpopt_survey.server.decide import RoundState
from ldpopt_survey.server.store import Unavailable
from ldpopt_survey.server.web import address, listening, loopback, static_files, token_of

MAX_WRITE_AGE_SECONDS = 5.0
"""Seconds for which a durable write shows that another would succeed."""

MIN_FREE_BYTES = 1 << 28
"""Bytes that must be free on the disk of the database before a collector goes live."""

COMMIT_SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the seconds of a commit, as they are counted."""

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The type of metrics that Prometheus reads, in which `prometheus_client` writes them."""


class Health:
    """The counters of a collector since its start: answers by kind, commits by their seconds, and the last one that
    held.

    probe : makes a durable write and gives the round's state, or raises `Unavailable`.
    """

    def __init__(self, probe: Callable[[], Awaitable[RoundState]], clock: Callable[[], float] = time.monotonic) -> None:
        self._probe, self._clock = probe, clock
        self._answers: Counter[int] = Counter()
        self._seconds, self._commits = 0.0, [0] * (len(COMMIT_SECONDS_BUCKETS) + 1)
        self._asked: asyncio.Task[RoundState] | None = None
        self._held, self._tried, self._closed = -math.inf, -math.inf, False

    def answered(self, status: int) -> None:
        """Count the answer to a submission."""
        self._answers[status] += 1

    def committed(self, seconds: float) -> None:
        """Count a commit that was durable after so many seconds."""
        self._seconds += seconds
        self._commits[bisect_left(COMMIT_SECONDS_BUCKETS, seconds)] += 1
        self._held = self._clock()

    def failed(self) -> None:
        """A write failed: the earlier state shows nothing."""
        self._held = -math.inf

    async def ready(self) -> bool | None:
        """True if the round is closed, if a durable write succeeded lately; None if none did. Asked once a second."""
        now = self._clock()
        if now - self._held >= MAX_WRITE_AGE_SECONDS or self._tried == -math.inf:
            if self._asked is None or (self._asked.done() and now - self._tried >= 1):
                self._asked, self._tried = asyncio.ensure_future(self._probe()), now
            try:
                self._closed = (await asyncio.shield(self._asked)).closed
            except Unavailable:
                self.failed()
                return None
            self._held = max(self._held, self._tried)
        return self._closed

    def metrics(self, waiting: int, free: int | None) -> bytes:
        """The numbers as Prometheus reads them. waiting : submissions that wait; free : bytes on the disk, if known."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(_Families(self._families(waiting, free)))
        return bytes(generate_latest(registry))

    def _families(self, waiting: int, free: int | None) -> Iterator[Any]:
        """The numbers by name. When the first of a kind was counted is not among them, as it is a time of day."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        stored = self._answers[201] + self._answers[200]
        description = "Submissions stored, and identical retries."
        yield CounterMetricFamily("ldpopt_submissions_accepted", description, stored)
        description = "Submissions refused, by the status of the answer."
        refused = CounterMetricFamily("ldpopt_submissions_refused", description, labels=["status"])
        for status, count in sorted(self._answers.items()):
            if status >= 300:
                refused.add_metric([str(status)], count)
        yield refused
        yield GaugeMetricFamily("ldpopt_submissions_waiting", "Submissions that wait for the next commit.", waiting)
        cumulative = zip((*map(repr, COMMIT_SECONDS_BUCKETS), "+Inf"), accumulate(self._commits), strict=True)
        description = "Seconds until a commit was durable."
        yield HistogramMetricFamily("ldpopt_commit_seconds", description, list(cumulative), self._seconds)
        if free is not None:
            yield GaugeMetricFamily("ldpopt_disk_free_bytes", "Free bytes on the disk of the database.", free)


class _Families:
    """Numbers that are known already, as `prometheus_client` asks a collector for them."""

    def __init__(self, families: Iterator[Any]) -> None:
        self._families = list(families)

    def collect(self) -> list[Any]:
        """Return the families."""
        return self._families


def checks(
    plan: Plan, db: str, kit: Path | None, token: Path | None, host: str, port: int
) -> Iterator[tuple[bool, str]]:
    """The requirements of a collector before it goes live, each tried: whether it holds, and what was found.

    The database is made if it is missing, and a durable write is committed to it, as a submission would be.
    """

    def kit_files() -> str:
        return f"kit {kit}, {len(static_files(kit, plan.checksum))} paths of this plan" if kit is not None else "no kit"

    def stored() -> str:
        with database(db, plan, create=True) as store:
            start = time.monotonic()
            state, free = store.probe(), store.free()
            finding = f"{shown(db)}, a durable write in {time.monotonic() - start:.3f} s"
            if free is not None and free < MIN_FREE_BYTES:
                raise invalid("disk", f"{MIN_FREE_BYTES >> 20} MB free", Phrase(f"{free >> 20} MB"), shown(db))
            if state.closed:
                raise invalid("round", "one that is open", Phrase("a closed one"), shown(db))
            return finding if free is None else f"{finding}, {free / 1e9:.3g} GB free"

    def secret() -> str:
        if token is None:
            return "no token, so nobody may ask for counts or metrics"
        return f"token in {token}, of {len(token_of(token))} signs"

    def place() -> str:
        with listening(host, port) as listener:
            return f"{address(host, listener)}, {'this machine alone' if loopback(host) else 'WITHOUT TLS'}"

    yield True, f"plan {plan.name!r}, round {plan.round}, {len(plan.answers)} questions"
    for check in (kit_files, stored, secret, place):
        try:
            yield True, check()
        except (LdpoptError, OSError) as error:
            yield False, str(error)
