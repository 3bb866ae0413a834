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
from ldpopt_survey.server.databases import database, display_name
from ldpopt_survey.server.decide import RoundState
from ldpopt_survey.server.store import Unavailable
from ldpopt_survey.server.web import address, is_loopback, listen, read_token, static_files

MAX_WRITE_AGE_SECONDS = 5.0
"""Seconds for which a durable write shows that another would succeed."""

MIN_FREE_BYTES = 1 << 28
"""Bytes that must be free on the disk of the database before a collector goes live."""

COMMIT_SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the seconds of a commit, as they are counted."""

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The type of metrics that Prometheus reads, in which `prometheus_client` writes them."""


class Health:
    """The counters of a collector since its start: answers by status, durations of commits, and the last durable one.

    probe : makes a durable write and returns the round's state, or raises `Unavailable`.
    """

    def __init__(self, probe: Callable[[], Awaitable[RoundState]], clock: Callable[[], float] = time.monotonic) -> None:
        self._probe, self._clock = probe, clock
        self._answers: Counter[int] = Counter()
        self._seconds, self._commits = 0.0, [0] * (len(COMMIT_SECONDS_BUCKETS) + 1)
        self._probe_task: asyncio.Task[RoundState] | None = None
        self._last_success, self._last_probe, self._closed = -math.inf, -math.inf, False

    def count_answer(self, status: int) -> None:
        """Count the answer to a submission."""
        self._answers[status] += 1

    def count_commit(self, seconds: float) -> None:
        """Count a commit that was durable after so many seconds."""
        self._seconds += seconds
        self._commits[bisect_left(COMMIT_SECONDS_BUCKETS, seconds)] += 1
        self._last_success = self._clock()

    def record_failure(self) -> None:
        """Record that a write failed, so that earlier successes prove nothing."""
        self._last_success = -math.inf

    async def ready(self) -> bool | None:
        """Return whether the round is closed, if a durable write succeeded lately; None if none did.

        It makes at most one write per second.
        """
        now = self._clock()
        if now - self._last_success >= MAX_WRITE_AGE_SECONDS or self._last_probe == -math.inf:
            if self._probe_task is None or (self._probe_task.done() and now - self._last_probe >= 1):
                self._probe_task, self._last_probe = asyncio.ensure_future(self._probe()), now
            try:
                self._closed = (await asyncio.shield(self._probe_task)).closed
            except Unavailable:
                self.record_failure()
                return None
            self._last_success = max(self._last_success, self._last_probe)
        return self._closed

    def metrics(self, waiting: int, free: int | None) -> bytes:
        """Format the numbers for Prometheus.

        waiting : the number of submissions that wait.

        free : the free bytes on the disk, or None if unknown.
        """
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(_Families(self._families(waiting, free)))
        return bytes(generate_latest(registry))

    def _families(self, waiting: int, free: int | None) -> Iterator[Any]:
        """The numbers by name. When the first of a kind was counted is not among them, as it is a time of day."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        accepted_count = self._answers[201] + self._answers[200]
        description = "Submissions stored, and identical retries."
        yield CounterMetricFamily("ldpopt_submissions_accepted", description, accepted_count)
        description = "Submissions refused, by the status of the answer."
        refused_family = CounterMetricFamily("ldpopt_submissions_refused", description, labels=["status"])
        for status, count in sorted(self._answers.items()):
            if status >= 300:
                refused_family.add_metric([str(status)], count)
        yield refused_family
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
    """Test the requirements of a collector before it goes live.

    Yields, for each, True if it holds, and a sentence about it.

    The database is created if it is missing, and a durable write is committed to it, as a submission would be.
    """

    def check_kit() -> str:
        return f"kit {kit}, {len(static_files(kit, plan.checksum))} paths of this plan" if kit is not None else "no kit"

    def check_database() -> str:
        with database(db, plan, create=True) as store:
            start = time.monotonic()
            state, free = store.probe(), store.free()
            finding = f"{display_name(db)}, a durable write in {time.monotonic() - start:.3f} s"
            if free is not None and free < MIN_FREE_BYTES:
                raise invalid("disk", f"{MIN_FREE_BYTES >> 20} MB free", Phrase(f"{free >> 20} MB"), display_name(db))
            if state.closed:
                raise invalid("round", "one that is open", Phrase("a closed one"), display_name(db))
            return finding if free is None else f"{finding}, {free / 1e9:.3g} GB free"

    def check_token() -> str:
        if token is None:
            return "no token, so nobody may ask for counts or metrics"
        return f"token in {token}, of {len(read_token(token))} signs"

    def check_address() -> str:
        with listen(host, port) as listener:
            return f"{address(host, listener)}, {'this machine alone' if is_loopback(host) else 'WITHOUT TLS'}"

    yield True, f"plan {plan.name!r}, round {plan.round}, {len(plan.answers)} questions"
    for check in (check_kit, check_database, check_token, check_address):
        try:
            yield True, check()
        except (LdpoptError, OSError) as error:
            yield False, str(error)
