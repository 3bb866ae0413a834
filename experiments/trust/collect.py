"""Kill collectors under load, and feed them nonsense: no acknowledged report is lost, and none is stored that is wrong.

    python experiments/trust/collect.py [--kills 20] [--malformed 100000] [--connections 32] [--seed 1]
    python experiments/trust/collect.py --operations | --files

A collector on SQLite, and one on a PostgreSQL server that is started for it, are killed (signal 9) at random moments
while submissions come over many connections. After each restart what was not answered is sent again. At the end every
submission that was acknowledged must be stored once, with the reports that it had, and nothing else. Then the same with
a PostgreSQL server that crashes (an immediate stop) under a collector that goes on. Then malformed requests, none of
which may be stored or answered with a status of 500 or more. Ends with exit code 1 if anything is wrong.

With --operations: privatizations in every form, of which every file operation fails in turn, meets a full disk, or is
where the process ends; the same call must end each with the same reports, one entry in the ledger, and nothing raw left
behind (--files does this alone). Then rounds in both databases, from the first invitation to the end, of which every
statement fails in turn, has its answer lost, or is where the process ends: devices and owners try again, and nothing
may be lost or doubled. Every operation is listed, with how often it was spoilt.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import collectors
import postgresql_server
import statements
from faults import spoil_operations


def killed(location: str, number: int, given: argparse.Namespace) -> str:
    """What is wrong after the kills of a collector on this database."""
    plan = collectors.habits(number)
    with tempfile.TemporaryDirectory() as folder:
        where = location or f"sqlite:///{folder}/reports.db"
        return collectors.kills(plan, where, Path(folder), given.kills, 3.0, given.connections, given.seed + number)


def crashed(server: postgresql_server.Server, number: int, given: argparse.Namespace) -> str:
    """What is wrong after crashes of the server, below a collector that answers 503 until it is back."""
    plan, rng = collectors.habits(number), random.Random(given.seed)
    bodies = collectors.random_bodies(plan, random.Random(given.seed + number))
    sent, acknowledged, statuses = {}, set(), Counter()
    over = threading.Event()

    def requests() -> collectors.Requests:
        waiting: list[str] = []
        while not over.is_set():
            waiting = [key for key in sent if key not in acknowledged][:100]
            for key in waiting:
                yield key, collectors.encoded(sent[key])
            for body, _ in zip(bodies, range(200), strict=False):
                sent[body["id"]] = body
                yield body["id"], collectors.encoded(body)

    def crash() -> None:
        for _ in range(given.kills):
            time.sleep(rng.uniform(0.2, 2))
            server.stop("immediate")
            time.sleep(rng.uniform(0, 0.5))
            server.start()
        over.set()

    with tempfile.TemporaryDirectory() as folder:
        with collectors.collector_process(Path(folder), plan, server.url) as running:
            thread = threading.Thread(target=crash)
            thread.start()
            while not over.is_set():
                some = ((key, request) for (key, request), _ in zip(requests(), range(1000), strict=False))
                made = asyncio.run(collectors.send_all(running.port, some, given.connections, stubborn=True))
                statuses.update(made.statuses.values())
                acknowledged.update(key for key, status in made.statuses.items() if status in (200, 201))
            thread.join()
            left = ((key, collectors.encoded(sent[key])) for key in list(sent) if key not in acknowledged)
            made = asyncio.run(collectors.send_all(running.port, left, given.connections))
            acknowledged.update(key for key, status in made.statuses.items() if status in (200, 201))
        stored = collectors.stored_reports(plan, server.url)
    print(f"  {len(stored)} reports, answers {dict(statuses)}", flush=True)
    if set(statuses) - {200, 201, 503}:
        return f"statuses {dict(statuses)}"
    if stored != {key: collectors.codes_of(sent[key]) for key in acknowledged}:
        return f"{len(acknowledged)} acknowledged, {len(stored)} stored, {len(acknowledged & set(stored))} of them both"
    return ""


def nonsense(given: argparse.Namespace) -> str:
    """What is wrong after malformed requests."""
    plan = collectors.habits()
    with tempfile.TemporaryDirectory() as folder:
        with collectors.collector_process(Path(folder), plan, "reports.db") as running:
            requests = collectors.malformed(plan, random.Random(given.seed), given.malformed)
            made = asyncio.run(collectors.send_all(running.port, requests, given.connections, stubborn=True))
        stored, log = collectors.stored_reports(plan, f"{folder}/reports.db"), Path(folder, "log").read_text("utf-8")
    answers = dict(sorted(Counter(made.statuses.values()).items()))
    print(f"  answers {answers}, connections closed without one {len(made.lost)}", flush=True)
    if stored:
        return f"{len(stored)} stored"
    if max(answers) >= 500 or min(answers) < 400:
        return f"answers {answers}"
    return "the log is not empty" if log else ""


def statements_of_rounds(some: int) -> Counter[str]:
    """How often each statement was spoilt, of which one in `some` was; an `AssertionError` says what was lost."""
    found = Counter[str]()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        numbers = itertools.count(1)
        kinds = {"SQLite": lambda number: f"sqlite:///{folder}/{number}.db"}
        if postgresql_server.programs() is not None:
            server = stack.enter_context(postgresql_server.server())
            kinds["PostgreSQL"] = lambda _: server.url
        for (name, location), kind in itertools.product(kinds.items(), statements.KINDS):
            rounds = (statements.Round(location(number), collectors.habits(number)) for number in numbers)
            for statement, count in statements.spoil_statements(rounds, kind, some).items():
                found[f"{name}: {re.sub('[0-9]+', 'N', statement)}"] += count
            print(f"{name}, {kind}: {sum(found.values())} so far, nothing lost", flush=True)
    return found


def files_of_runs(some: int) -> Counter[str]:
    """The same of the file operations of privatizations, in every form and with every kind of fault."""
    found = Counter[str]()
    pieces = ("csv", "parquet"), ("file", "folder"), ("fresh", "memoised"), ("fail", "full", "kill")
    for *form, kind in list(itertools.product(*pieces))[:: 1 if some == 1 else 11]:
        with tempfile.TemporaryDirectory() as folder:
            for name, count in spoil_operations(Path(folder), " ".join(form), kind, all_of_them=some == 1).items():
                found[f"privatize, file: {name}"] += count
        print(f"{' '.join(form)}, {kind}: {sum(found.values())} so far, nothing lost", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--malformed", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", action="store_true")
    parser.add_argument("--files", action="store_true", help="of the operations those of files alone")
    parser.add_argument("--quick", action="store_true", help="a few of the operations, and nothing else")
    given = parser.parse_args()
    if given.operations or given.files or given.quick:
        some = 23 if given.quick else 1
        found = files_of_runs(some) + (Counter() if given.files else statements_of_rounds(some))
        print(*(f"{count:6} {name}" for name, count in found.items()), sep="\n")
        print(f"{sum(found.values())} operations spoilt, {len(found)} different ones: nothing lost, nothing wrong")
        return 0
    found = {f"SQLite, {given.kills} kills": killed("", 1, given)}
    print(found, flush=True)
    found[f"{given.malformed} malformed requests"] = nonsense(given)
    print(found, flush=True)
    if postgresql_server.programs() is None:
        print(f"PostgreSQL skipped: {postgresql_server.ABSENT}")
    else:
        with postgresql_server.server() as server:
            found[f"PostgreSQL, {given.kills} kills"] = killed(server.url, 2, given)
            found[f"PostgreSQL, {given.kills} crashes of the server"] = crashed(server, 3, given)
    for name, wrong in found.items():
        print(f"{name}: {wrong or 'nothing lost, nothing wrong'}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
