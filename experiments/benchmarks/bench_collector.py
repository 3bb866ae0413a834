"""Submissions a second that a collector stores durably, beside a bare Starlette application that inserts rows.

    python experiments/benchmarks/bench_collector.py [--seconds 8] [--rounds 3] [--connections 64]

Collector, bare applications and this load generator share two processor cores. A bare application parses the JSON of a
request, checks nothing, inserts a row into SQLite (a write-ahead log, like the collector's), and commits before it
answers: with a flush of the disk for every row, or with none at all, so that a crash of the system loses rows. All run
in turn, several times; a row of the table is the median. Two and four collectors share one file of SQLite and, where
PostgreSQL's server programs are installed, one database of it. Writes results/collector.csv.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import collectors
import postgresql_server

HERE = Path(__file__).resolve().parent
BARE = """
import json, sqlite3, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
db = sqlite3.connect("bare.db", isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = " + sys.argv[2])
db.execute("CREATE TABLE reports (id TEXT PRIMARY KEY, reports TEXT)")
async def submit(request):
    data = await request.json()
    db.execute("INSERT INTO reports VALUES (?, ?)", (data["id"], json.dumps(data["reports"])))
    return JSONResponse({"stored": True}, 201)
app = Starlette(routes=[Route("/submissions", submit, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


@contextmanager
def bare(folder: Path, synchronous: str) -> Iterator[int]:
    """A bare application on a free port."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port), synchronous], cwd=folder)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


class Sender(asyncio.Protocol):
    """One connection: a request, its answer, and the next; nothing else, so that little of the cores is its own."""

    def __init__(self, requests: Iterator[bytes], seconds: list[float], wrong: list[bytes]) -> None:
        self._requests, self._seconds, self._wrong = requests, seconds, wrong
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not data.endswith(b"}"):  # the end of every answer
            return
        self._seconds.append(time.perf_counter() - self._begun)
        if not self._answer.startswith(b"HTTP/1.1 201"):
            self._wrong.append(self._answer)
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        self._begun, self._answer = time.perf_counter(), b""
        self._transport.write(request)

    def connection_lost(self, error: Exception | None) -> None:
        self.over.set_result(None)


def measure(ports: list[int], seconds: float, connections: int) -> tuple[float, float, float]:
    """(submissions a second, median and 99th percentile of the milliseconds until each was acknowledged)."""
    bodies = collectors.random_bodies(PLAN, random.Random(time.time_ns()))
    ready = [collectors.encoded(next(bodies)) for _ in range(int(seconds * 6000))]

    async def run(number: int, requests: list[bytes]) -> tuple[float, list[float]]:
        end = time.perf_counter() + number

        def until() -> Iterator[bytes]:
            for request in requests:
                if time.perf_counter() > end:
                    return
                yield request

        found: list[float] = []
        wrong: list[bytes] = []
        shared = until()
        begun = time.perf_counter()
        senders = []
        for n in range(connections):
            made = asyncio.get_running_loop().create_connection(
                lambda: Sender(shared, found, wrong), "127.0.0.1", ports[n % len(ports)]
            )
            senders.append((await made)[1])
        await asyncio.gather(*(sender.over for sender in senders))
        assert not wrong, wrong[0]
        return time.perf_counter() - begun, found

    asyncio.run(run(1, ready[:2000]))
    taken, found = asyncio.run(run(seconds, ready[2000:]))
    median, last = np.percentile(1000 * np.array(found), [50, 99])
    return len(found) / taken, float(median), float(last)


PLAN = collectors.habits()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # of whatever is started from here, too
    rows: dict[str, list[tuple[float, float, float]]] = {}
    with ExitStack() as stack:
        url = None
        if postgresql_server.programs() is not None:
            url = stack.enter_context(postgresql_server.server()).url
        for _ in range(given.rounds):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                for kind, location in (("SQLite", "reports.db"), ("PostgreSQL", url)):
                    for count in (1, 2, 4) if location is not None else ():
                        with ExitStack() as running:
                            ports = [
                                running.enter_context(collectors.collector_process(folder, PLAN, location)).port
                                for _ in range(count)
                            ]
                            made = measure(ports, given.seconds, given.connections)
                        many = "" if count == 1 else f"{count} of them, "
                        rows.setdefault(f"collector, {many}{kind}", []).append(made)
                for synchronous, what in (("FULL", "a flush for each row"), ("OFF", "no flush, not durable")):
                    with tempfile.TemporaryDirectory(dir=name) as inner, bare(Path(inner), synchronous) as port:
                        made = measure([port], given.seconds, given.connections)
                    rows.setdefault(f"bare Starlette and SQLite, {what}", []).append(made)
    write(rows)


def write(rows: dict[str, list[tuple[float, float, float]]]) -> None:
    """The medians, with each rate as a share of every bare application's in the same round."""
    path = HERE / "results" / "collector.csv"
    bares = [name for name in rows if name.startswith("bare")]
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["what", "submissions/s", "median ms", "99th percentile ms", *(f"of {name}" for name in bares)])
        for name, made in rows.items():
            rate, median, last = np.median(np.array(made), axis=0)
            shares = [np.median([one[0] / other[0] for one, other in zip(made, rows[b], strict=True)]) for b in bares]
            table.writerow([name, f"{rate:.0f}", f"{median:.1f}", f"{last:.1f}", *(f"{share:.2f}" for share in shares)])
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
