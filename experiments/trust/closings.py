"""Close rounds under adversaries, and read the raw pages afterwards: nothing joins an invitation to a report.

    python experiments/trust/closings.py [--closings 100] [--seed 1] [--only SQLite|PostgreSQL] [--quick]

Each round, in a file of SQLite and on a PostgreSQL server of its own, draws invitations, of which most are used one
after the other, each in a commit of its own, and mixed by fives. An auditor looks while the round is open, with the
database alone: no row of a drawn invitation may have changed, in value, place or transaction, nor any page of theirs in
SQLite's log. Another also holds the texts of all invitations: of those that were mixed, none may be narrowed down to
fewer than five reports, by transaction or place, nor, unless a snapshot from before keeps it, by what is left in the
log of SQLite or in PostgreSQL's tables of recent rows. Then the
round is closed, again and again until that succeeds, beside some of: a snapshot from before, a reader of the tables, a
dump, a writer that goes on, and signal 9 for the process that closes; in PostgreSQL also the planner's statistics, as
the server collects them, and as it did in databases of older versions. Afterwards the auditor reads every byte of the
files, free pages, indexes, statistics and logs: no hash, mark or text of an invitation may be there, all rows must be
of one transaction, and lie in the order of their ids. PostgreSQL's log of writes (`pg_wal`), which no program can
erase, is counted apart. Ends with exit code 1 if anything is found.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import collectors
import postgresql_server

from ldpopt_survey import Plan
from ldpopt_survey.server import (
    Outcome,
    Submission,
    Unavailable,
    database,
    databases,
    draw_invitations,
    postgresql,
)
from ldpopt_survey.server import store as stores
from ldpopt_survey.server.decide import drawn_mark, spent_mark
from ldpopt_survey.server.submission import invitation_hash

CODES = bytes([1, 0, 0, 0] * 3)
DRAWN, USED = 20, 15
DAY = "2026-01-31"
databases.LOCK_WAIT_SECONDS = postgresql._LOCK_WAIT = 1.0  # so that a refusal comes soon
stores.MIN_MIXED_SUBMISSIONS, stores.SETTLE_INTERVAL_SECONDS = 5, 0.0


class Sqlite:
    """A file, and what an auditor reads of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "reports.db"
        self.location = str(self.path)

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        reader = self.connect()
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rounds").fetchall()
        yield
        reader.close()

    reading = snapshot

    def dump(self, target: Path) -> None:
        copy = sqlite3.connect(target)
        with suppress(sqlite3.Error):
            self.connect().backup(copy, pages=1, sleep=0.001)
        copy.close()

    def drawn(self, _: int) -> object:
        """The pages in which drawn invitations lie, emptied of the log."""
        db = self.connect()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        return None

    def changed(self, _: object, marks: list[bytes], __: int) -> int:
        """Drawn invitations in the pages that were written since."""
        log = _apart(Path(f"{self.path}-wal"))
        (size,) = struct.unpack(">I", log[8:12]) if log else (4096,)
        pages = [log[start + 24 : start + 24 + size] for start in range(32, len(log), size + 24)]
        return sum(mark in page for mark in marks for page in pages)

    def narrowed(self, used: list[bytes], ids: list[bytes], _: int, alone: bool) -> int:
        """Of invitations that were used, in this order, those that can be joined to fewer than five reports."""
        content = _apart(self.path)
        count = len(_apart(Path(f"{self.path}-wal")))
        for words in (ids, list(map(spent_mark, used))):
            for batch in (
                words[start : start + stores.MIN_MIXED_SUBMISSIONS]
                for start in range(0, len(words), stores.MIN_MIXED_SUBMISSIONS)
            ):
                places = [content.find(word) for word in sorted(batch)]
                count += places not in (sorted(places), sorted(places, reverse=True))
        return count if alone else 0  # with a snapshot the log holds all

    def raw(self) -> tuple[bytes, bytes]:
        return _apart(*sorted(self.path.parent.glob("reports.db*"))), b""

    def out_of_order(self, ids: list[bytes], _: int) -> int:
        """Pairs of neighbouring ids that do not lie in their order in the file."""
        content = _apart(self.path)
        places = [content.index(id_) for id_ in sorted(ids)]
        rises = sum(a < b for a, b in itertools.pairwise(places))
        return min(rises, len(ids) - 1 - rises)


class Postgresql:
    """A server, and what an auditor reads of its files."""

    def __init__(self, server: postgresql_server.Server) -> None:
        self.location, self._data = server.url, server.folder / "data"
        self.query("CREATE EXTENSION IF NOT EXISTS pageinspect")

    def query(self, statement: str) -> list[tuple[object, ...]]:
        import psycopg

        with psycopg.connect(self.location, autocommit=True) as db:
            made = db.execute(statement)
            return [] if made.description is None else made.fetchall()

    @contextmanager
    def snapshot(self, table: str = "rounds") -> Iterator[None]:
        import psycopg

        with psycopg.connect(self.location) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute(f"SELECT count(*) FROM ldpopt.{table}")
            yield

    def reading(self) -> object:
        return self.snapshot("reports")

    def dump(self, target: Path) -> None:
        command = ["pg_dump", "--schema", "ldpopt", "--file", str(target), self.location]
        subprocess.run(command, check=False, stderr=subprocess.DEVNULL)

    def analyse(self, older: bool) -> None:
        """Collect the planner's statistics twice, as the server does by itself; `older`: as in an older database."""
        for table, column in (("invitations", "hash"), ("spent", "mark")) * 2:
            if older:
                self.query("COMMENT ON TABLE ldpopt.spent IS NULL")
                self.query(f"ALTER TABLE ldpopt.{table} ALTER {column} SET STATISTICS -1")
            self.query(f"ANALYZE ldpopt.{table}")

    def analysed(self) -> int:
        """Columns of hashes and marks of which there are statistics."""
        return len(self.query("SELECT 1 FROM pg_stats WHERE schemaname = 'ldpopt' AND attname IN ('hash', 'mark')"))

    def drawn(self, number: int) -> object:
        select = "SELECT hash, xmin::text, xmax::text, ctid::text FROM ldpopt.invitations"
        rows = self.query(f"{select} WHERE round = {number}")
        return {row[0]: (*row, self.noted("invitations", str(row[3]))) for row in rows}

    def noted(self, table: str, place: str) -> object:
        """What readers note in the head of a row (that its transaction was committed)."""
        page, line = map(int, place[1:-1].split(","))
        items = f"heap_page_items(get_raw_page('ldpopt.{table}', {page}))"
        return self.query(f"SELECT t_infomask, t_infomask2 FROM {items} WHERE lp = {line}")[0]

    def changed(self, before: object, marks: list[bytes], number: int) -> int:
        after = self.drawn(number)
        return sum(before[mark] != after[mark] for mark in marks)  # type: ignore[index]

    def narrowed(self, used: list[bytes], ids: list[bytes], number: int, alone: bool) -> int:
        """Of invitations that were used, in this order, those that can be joined to fewer than five reports."""
        rows = self.query(f"SELECT id, xmin::text FROM ldpopt.reports WHERE round = {number} ORDER BY ctid")
        marks = dict(self.query(f"SELECT mark, xmin::text FROM ldpopt.spent WHERE round = {number}"))
        groups = [[id_ for id_, written in rows if written == marks.get(spent_mark(hash_))] for hash_ in used]
        count = sum(len(group) < stores.MIN_MIXED_SUBMISSIONS or group != sorted(group) for group in groups)
        for table in ("reports", "spent"):  # a row that was looked up must look like the others
            places = self.query(f"SELECT ctid::text FROM ldpopt.{table} WHERE round = {number}")
            count += alone * (len({self.noted(table, str(place)) for (place,) in places}) - 1)
        pages = b"".join(
            self.query(f"SELECT pg_read_binary_file(pg_relation_filepath('ldpopt.recent_{one}'))")[0][0]
            for one in ("reports", "spent", "reports_pkey", "spent_pkey")
        )
        return count + alone * sum(word in pages for word in (*ids, *map(spent_mark, used)))

    def raw(self) -> tuple[bytes, bytes]:
        self.query("CHECKPOINT")
        files = [path for part in ("base", "global") for path in sorted((self._data / part).rglob("*"))]
        wal = [path for path in (self._data / "pg_wal").glob("*") if path.is_file()]
        return b"".join(_bytes(path) for path in files), b"".join(_bytes(path) for path in wal)

    def out_of_order(self, ids: list[bytes], number: int) -> int:
        rows = self.query(f"SELECT id, xmin::text FROM ldpopt.reports WHERE round = {number} ORDER BY ctid")
        found = [row[0] for row in rows]
        return sum(a > b for a, b in itertools.pairwise(found)) + len({row[1] for row in rows}) - 1


def _apart(*paths: Path) -> bytes:
    """The bytes of files of SQLite, read by another process: one that closes such a file gives up its locks on it."""
    return subprocess.run(["cat", *paths], capture_output=True).stdout


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


def close(location: str, plan: Plan, result: object) -> None:
    """The program of the process that closes."""
    try:
        with database(location, plan) as store:
            store.close_round()
        result.value = 1  # type: ignore[attr-defined]
    except Unavailable:
        result.value = 2  # type: ignore[attr-defined]


def one_closing(made: Sqlite | Postgresql, plan: Plan, rng: random.Random, counts: Counter[str], folder: Path) -> None:
    """Open a round, use invitations, audit, close it beside adversaries, and audit again."""
    with database(made.location, plan, create=True) as store:
        words = draw_invitations(plan, store, DRAWN)
        hashes = [invitation_hash(plan.checksum, word) for word in words]
        before, ids = made.drawn(store._number), [rng.randbytes(16) for _ in range(USED)]
        snapshot = made.snapshot() if rng.random() < 0.5 else None
        with ExitStack() as stack:
            if snapshot is not None:
                stack.enter_context(snapshot)
                counts["a snapshot from before"] += 1
            used = rng.sample(hashes, USED)
            for id_, hash_ in zip(ids, used, strict=True):
                assert store.write([Submission(id_, CODES, hash_)], DAY) == [Outcome.STORED]
            drawn = list(map(drawn_mark, hashes))
            counts["joined while open, with the texts"] += made.narrowed(used, ids, store._number, snapshot is None)
            counts["joined while open"] += made.changed(before, drawn, store._number)
            if isinstance(made, Postgresql) and rng.random() < 0.5:
                made.analyse(older=rng.random() < 0.6)
                counts["statistics with marks while open"] += made.analysed() > 0
                counts["an ANALYZE"] += 1
            pages = made.raw()[0]
            counts["hashes while open"] += sum(hash_ in pages for hash_ in hashes)
            _close_beside(made, plan, rng, counts, folder, stack, hashes, store)
        found, log = made.raw()
        marks = [*hashes, *map(drawn_mark, hashes), *map(spent_mark, hashes), *(word.encode() for word in words)]
        counts["hashes and marks after closing"] += sum(mark in found for mark in marks)
        counts["marks in pg_wal after closing"] += sum(mark in log for mark in marks)
        held = [id_ for rows in store.rows(100) for id_, _, _ in rows]
        counts["joins after closing"] += made.out_of_order(held, store._number)
        assert set(ids) <= set(held)
        assert store.summary().used == len(held)
    counts["closings"] += 1


def _close_beside(
    made: Sqlite | Postgresql, plan: Plan, rng: random.Random, counts: Counter[str], folder: Path, stack: ExitStack,
    hashes: list[bytes], store: object,
) -> None:  # fmt: skip
    over, threads = threading.Event(), []

    def beside(function: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=function))
        threads[-1].start()

    def write() -> None:
        for hash_ in hashes:
            if over.wait(0.005):
                return
            with suppress(Unavailable), database(made.location, plan) as other:
                other.write([Submission(random.randbytes(16), CODES, hash_)], DAY)

    if rng.random() < 0.3:
        beside(write)
        counts["a writer beside"] += 1
    if rng.random() < 0.3:
        beside(lambda: made.dump(folder / "dump"))
        counts["a dump beside"] += 1
    if rng.random() < 0.3:
        stack.enter_context(made.reading())
        counts["a reader beside"] += 1
    context, state = multiprocessing.get_context("forkserver"), 0  # threads run here
    for attempt in range(50):
        result = context.Value("i", 0)
        process = context.Process(target=close, args=(made.location, plan, result))
        process.start()
        if attempt < 2 and rng.random() < 0.4:
            process.join(rng.uniform(0, 0.08))
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
                counts["killed while closing"] += 1
        process.join()
        state = result.value
        if state == 1:
            break
        counts["refused while read"] += state == 2
        stack.close()  # the readers end
        over.set()
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    assert state == 1, "not closed after 50 attempts"


def main() -> int:
    """Close rounds on each database; exit code 1 if anything is found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--closings", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["SQLite", "PostgreSQL"], help="one of the two databases")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    multiprocessing.set_forkserver_preload(
        ["collectors", "postgresql_server", "psycopg", "ldpopt_survey.server.databases"]
    )
    closings, wrong = 2 if given.quick else given.closings, 0
    with ExitStack() as stack:
        kinds: dict[str, Callable[[Path], Sqlite | Postgresql]] = {"SQLite": Sqlite}
        if postgresql_server.programs() is not None and shutil.which("pg_dump"):
            server = stack.enter_context(postgresql_server.server())
            kinds["PostgreSQL"] = lambda _: Postgresql(server)
        for name, kind in kinds.items():
            if given.only not in (None, name):
                continue
            counts: Counter[str] = Counter()
            for number in range(closings):
                if number % 10 == 9:
                    print(f"{name}: {number} rounds", file=sys.stderr, flush=True)
                with tempfile.TemporaryDirectory() as folder:
                    rng = random.Random(given.seed * 10_000 + number)
                    one_closing(kind(Path(folder)), collectors.habits(number + 1), rng, counts, Path(folder))
            print(name, *(f"  {count:6} {what}" for what, count in counts.items()), sep="\n", flush=True)
            wrong += sum(counts[what] for what in FOUND)
    return 1 if wrong else 0


FOUND = (
    "joined while open",
    "joined while open, with the texts",
    "hashes while open",
    "hashes and marks after closing",
    "joins after closing",
)

if __name__ == "__main__":
    sys.exit(main())
