"""Collectors as processes, loads for them, and a PostgreSQL server of one's own.

Tests run short forms, `experiments/trust/collect.py` and `experiments/benchmarks/bench_collector.py` the full ones.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt_survey.server import database

SUBSETS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def habits(round_: int = 1) -> Plan:
    """A plan of three questions, the reports of one of which are lists of bits."""
    from ldpopt import Channel

    names = ("smokes", "drinks", "Sorgen über Ärzte")
    sizes = (3, 2, 2)
    questions = [QuestionSpec(name, tuple(range(k))) for name, k in zip(names, sizes, strict=True)]
    bits = Channel([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]], inputs=[0, 1], outputs=SUBSETS)
    channels = {
        names[0]: np.full((3, 3), 0.2) + 0.4 * np.eye(3),
        names[1]: [[0.75, 0.25], [0.25, 0.75]],
        names[2]: bits,
    }
    return make_plan(SurveySpec("Habits", tuple(questions), round=round_), channels, bits=16)


def body_of(plan: Plan, reports: Iterable[Any], id_: str | None = None, **more: Any) -> dict[str, Any]:
    """A submission as a device sends it, with an id of its own unless one is given."""
    named = dict(zip([question.name for question in plan.questions], reports, strict=True))
    head = {"schema": "ldpopt-submission", "version": 1, "plan": plan.checksum, "round": plan.round}
    return {**head, "id": id_ or secrets.token_hex(16), "reports": named, **more}


def random_bodies(plan: Plan, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Submissions without end."""
    while True:
        sizes = [len(question.reports) for question in plan.questions]
        yield body_of(plan, [rng.randrange(size) for size in sizes], f"{rng.getrandbits(128):032x}")


@dataclass
class Running:
    """A collector's process and port."""

    process: subprocess.Popen[str]
    port: int

    def kill(self) -> None:
        """End it as the loss of power would, for the process at least."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def collector_process(folder: Path, plan: Plan, location: str, *more: str, cores: str = "") -> Iterator[Running]:
    """``ldpopt survey collect`` on a free port, with a file ``log`` of what it says; ended at the end of the block."""
    (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    pinned = ["taskset", "-c", cores] if cores else []
    command = [sys.executable, "-m", "ldpopt", "survey", "collect", "plan.json", "--db", location, "--port", "0"]
    with open(folder / "log", "ab") as log:  # a pipe that nobody reads would stop it once it is full
        process = subprocess.Popen(
            [*pinned, *command, "--rate", "1000000", *more],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        said = process.stdout.readline()
        if "http://" not in said:
            raise AssertionError(said + (folder / "log").read_text())
        yield Running(process, int(said.split("http://")[1].split()[0].rpartition(":")[2]))
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(600)
        process.stdout.close()


def raw(body: bytes, path: str = "/submissions", kind: str = "application/json", method: str = "POST") -> bytes:
    """A request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


def encoded(body: Any) -> bytes:
    """The request that posts a submission."""
    return raw(json.dumps(body).encode())


@dataclass
class Sent:
    """What became of requests: statuses by the key of each, seconds of those that were answered."""

    statuses: dict[Any, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    lost: list[Any] = field(default_factory=list)


Requests = Iterator[tuple[Any, bytes]]
PATIENCE = 600
"""Seconds that a request may wait for its answer."""
ALONE = "alone"
"""The first part of the key of a request after which its connection is closed."""


async def send_all(port: int, requests: Requests, connections: int, stubborn: bool = False) -> Sent:
    """Send requests, (key, bytes) each, over some connections, one after the other in each.

    A request whose connection breaks before the answer, or that waits too long for it, is lost. Then its sender ends,
    or opens another if it is `stubborn`.
    """
    made = Sent()

    async def one() -> None:
        stream = None
        for key, request in requests:
            begun = time.perf_counter()
            try:
                stream = stream or await asyncio.open_connection("127.0.0.1", port)
                async with asyncio.timeout(PATIENCE):
                    status, closing = await _exchange(*stream, request)
                closing = closing or (isinstance(key, tuple) and key[0] == ALONE)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                made.lost.append(key)
                status, closing = 0, True
            if status:
                made.seconds.append(time.perf_counter() - begun)
                made.statuses[key] = status
            if closing and stream is not None:
                stream[1].close()
                stream = None
            if not status and not stubborn:
                return
        if stream is not None:
            stream[1].close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return made


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, bool]:
    """The status of the answer to a request, and whether the connection is over."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.split(b"content-length: ")[1].split(b"\r\n")[0] if b"content-length: " in head else b""
    await (reader.readexactly(int(length)) if length else reader.read())
    return int(head.split(b" ", 2)[1]), not length or b"connection: close" in head


def load(plan: Plan, port: int, seconds: float, connections: int, seed: int) -> Sent:
    """Distinct submissions for so many seconds."""
    end = time.perf_counter() + seconds
    bodies = random_bodies(plan, random.Random(seed))
    requests = ((body["id"], encoded(body)) for body in bodies)
    return asyncio.run(send_all(port, itertools.takewhile(lambda _: time.perf_counter() < end, requests), connections))


NASTY = [
    *(None, True, False, 0, 1, -1, 1.0, 2**63, 2**64, 10**40, 1e308, "", "0", "\x00", "a" * 300, "\ud800", "é"),
    *([], [0], [[]], [True], {}, {"": 0}, "0" * 32, "f" * 64, "ldpopt-submission", [0, 1], [1, 0, 0]),
]
HEADERS = [
    *("Content-Length: x", "Content-Length: -1", "Content-Length: 1, 2", "Transfer-Encoding: nonsense"),
    *("A b: c", ": c", "Content-Encoding: gzip", "Content-Type: text/html", "Content-Type: application/jsonx"),
    "Content-Type: application/json; charset=utf-16",
]
METHODS = ["GET", "PUT", "DELETE", "PATCH", "TRACE", "Q"]
KINDS = ["", "text/plain", "multipart/form-data", "application/xml", "json"]
PATHS = [
    *("/../plan.json", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/submissions/..", "/submissions/", "/Submissions"),
    *("/%00", "/reports.db", "/counts", "/..%5cplan.json", "*", "/" + "a" * 5000),
]


def accepted(plan: Plan, body: bytes) -> bool:
    """Whether a body is a submission: written down again, so that the two can be compared."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    try:
        data = json.loads(body.decode("utf-8"), object_pairs_hook=once)
        reports = data.pop("reports")
        head = {key: data.pop(key) for key in ("schema", "version", "plan", "round")}
        same = json.dumps(head) == json.dumps({"schema": "ldpopt-submission", "version": 1, "plan": plan.checksum,
                                               "round": plan.round})  # fmt: skip
        assert same
        assert re.fullmatch("[0-9a-f]{32}", data.pop("id"))
        assert re.fullmatch("[A-Za-z0-9_-]{1,128}", data.pop("invitation", "a"))
        assert not data
        assert set(reports) == {question.name for question in plan.questions}
        for question in plan.questions:
            allowed = list(range(len(question.reports))) + [
                list(x) for x in question.channel.outputs if type(x) is tuple
            ]
            assert json.dumps(reports[question.name]) in map(json.dumps, allowed)
    except (AssertionError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return True


def malformed(plan: Plan, rng: random.Random, count: int) -> Requests:
    """Requests of which none is a submission that a collector may store."""
    bodies = random_bodies(plan, rng)
    made = 0
    while made < count:
        key, request = _malformed(plan, rng, next(bodies))
        if request is not None:
            made += 1
            yield (key, made), request


def _malformed(plan: Plan, rng: random.Random, body: dict[str, Any]) -> tuple[str, bytes | None]:
    whole = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode()
    kind = rng.randrange(12)
    if kind == 0:
        return ALONE, raw(whole, kind="application/json\r\n" + rng.choice(HEADERS))
    if kind == 1:
        return ALONE, raw(b"", path=rng.choice(PATHS), method=rng.choice(METHODS))
    if kind == 2:
        return ALONE, rng.randbytes(rng.randrange(1, 200)).replace(b"\n", b"x") + b"\r\n\r\n"
    if kind == 3:
        return ALONE, raw(whole + b" " * rng.choice([5000, 70_000]))
    if kind == 4:
        return "request", raw(whole, kind=rng.choice(KINDS))
    if kind <= 7:  # bytes
        changed = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(changed) + 1)
            changed[at : at + rng.randrange(3)] = rng.choice(
                [b"", rng.randbytes(1), rng.choice(b'{}[],:"0eE.-\\').to_bytes()]
            )
        whole = bytes(changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.2 else changed)
    else:  # values
        inner = body["reports"] if rng.random() < 0.5 else body
        for _ in range(rng.randrange(1, 3)):
            key = rng.choice([*inner, "more", "invitation"])
            if rng.random() < 0.25:
                inner.pop(key, None)
            else:
                inner[key] = rng.choice(NASTY)
        whole = json.dumps(body).encode()
    return "request", None if accepted(plan, whole) else raw(whole)


def stored_reports(plan: Plan, location: str) -> dict[str, bytes]:
    """The codes of all stored reports by id; an id that is there twice is an error."""
    found: dict[str, bytes] = {}
    with database(location, plan) as store:
        for rows in store.rows(10_000):
            for id_, _, codes in rows:
                assert id_.hex() not in found
                found[id_.hex()] = bytes(codes)
    return found


def codes_of(body: dict[str, Any]) -> bytes:
    """What a submission's reports are stored as."""
    return np.array(list(body["reports"].values()), "<u4").tobytes()


def kills(plan: Plan, location: str, folder: Path, times: int, longest: float, connections: int, seed: int) -> str:
    """Kill a collector again and again under load; what is wrong with the reports at the end, or nothing.

    Every submission that was acknowledged must be there once, with its reports. Those whose answer was lost are sent
    again after the next start, as a device does, and must then be there once, too.
    """
    rng = random.Random(seed)
    bodies = random_bodies(plan, random.Random(seed + 1))
    sent: dict[str, dict[str, Any]] = {}
    acknowledged: set[str] = set()
    again: list[str] = []
    statuses: Counter[int] = Counter()

    def requests(last: bool) -> Requests:
        """What was lost before, then new ones until the collector is gone."""
        retried = again.copy()
        again.clear()
        for key in retried:
            yield key, encoded(sent[key])
        if last:
            return
        for body in bodies:
            sent[body["id"]] = body
            yield body["id"], encoded(body)

    for number in range(times + 1):
        with collector_process(folder, plan, location) as running:
            timer = threading.Timer(rng.uniform(0.05, longest), running.kill)
            if number < times:
                timer.start()
            made = asyncio.run(send_all(running.port, requests(number == times), connections))
            if number < times:
                timer.join()
        again.extend(made.lost)
        statuses.update(made.statuses.values())
        acknowledged.update(key for key, status in made.statuses.items() if status in (200, 201))
    stored = stored_reports(plan, location)
    print(f"  {len(stored)} reports, answers {dict(statuses)}", flush=True)
    if set(statuses) - {200, 201} or again:
        return f"statuses {dict(statuses)}, {len(again)} never answered"
    if missing := acknowledged - set(stored):
        return f"{len(missing)} of {len(acknowledged)} acknowledged submissions are not there"
    if added := set(stored) - acknowledged:
        return f"{len(added)} reports that nobody was told of"
    if changed := [key for key in stored if stored[key] != codes_of(sent[key])]:
        return f"{len(changed)} reports are not those that were sent"
    return ""
