"""Reports in one SQLite file: a write-ahead log that is flushed before anything is acknowledged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ldpopt.errors import Phrase, invalid
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.server.store import Outcome, RoundState, Rows, Summary, Unavailable, decide
from ldpopt.survey.server.submission import Submission

APPLICATION = 0x6C647074  # "ldpt", by which `file` and this package recognise the file
VERSION = 1
WAIT = 30.0
"""Seconds to wait for another program that holds the file."""
_AT_ONCE = 500  # parameters of a statement; old versions allow 999

# Without row numbers, rows are kept in the order of their random ids, so the order of arrival is not kept.
_SCHEMA = """
CREATE TABLE rounds (
    number INTEGER PRIMARY KEY, plan TEXT NOT NULL UNIQUE, survey TEXT NOT NULL, round INTEGER NOT NULL,
    closed INTEGER NOT NULL DEFAULT 0, invited INTEGER NOT NULL DEFAULT 0,
    drawn INTEGER NOT NULL DEFAULT 0, used INTEGER NOT NULL DEFAULT 0);
CREATE TABLE reports (
    round INTEGER NOT NULL, id BLOB NOT NULL CHECK (length(id) = 16), day TEXT NOT NULL, codes BLOB NOT NULL,
    PRIMARY KEY (round, id)) WITHOUT ROWID;
CREATE TABLE invitations (
    round INTEGER NOT NULL, hash BLOB NOT NULL, used INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (round, hash)) WITHOUT ROWID;
"""


class SqliteStore:
    """The round of `plan` in the SQLite file at `path`.

    create : whether a missing file and a missing round are made; if not, they are `InvalidInput`.
    """

    def __init__(self, path: Path, plan: Plan, create: bool) -> None:
        self._path = path
        if not create and not path.is_file():
            raise invalid("database", "a file of reports that exists", str(path))
        if create and not path.exists():
            try:  # only the owner can read the new file
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                pass
            except OSError as error:
                raise invalid("database", "a place that can be written", Phrase(error.strerror), str(path)) from None
        with _errors(path):
            self._db = self._connect()
            try:
                self._number = self._open(plan, create)
            except BaseException:
                self._db.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        made = sqlite3.connect(self._path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        for setting in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON", "secure_delete = ON"):
            made.execute(f"PRAGMA {setting}")
        made.execute("PRAGMA cache_size = -65536")
        return made

    def _open(self, plan: Plan, create: bool) -> int:
        db = self._db
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (mark != APPLICATION and tables) or (not tables and not create):
            raise invalid("database", "one that `ldpopt survey collect` made", Phrase("another"), str(self._path))
        if create:
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise invalid("database", "a file system that allows a write-ahead log", Phrase("another"))
            with _transaction(db):
                if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    for statement in _SCHEMA.split(";")[:-1]:
                        db.execute(statement)
                    db.execute(f"PRAGMA application_id = {APPLICATION}")
                    db.execute(f"PRAGMA user_version = {VERSION}")
                db.execute(
                    "INSERT INTO rounds (plan, survey, round) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    (plan.checksum, plan.name, plan.round),
                )
        if db.execute("PRAGMA user_version").fetchone() != (VERSION,):
            raise invalid("database", f"version {VERSION}", Phrase("another version"), str(self._path))
        found = db.execute("SELECT number FROM rounds WHERE plan = ?", (plan.checksum,)).fetchone()
        if found is None:
            raise invalid("database", f"reports of the plan {plan.name!r}, round {plan.round}", Phrase("none"))
        return int(found[0])

    def write(self, batch: Sequence[Submission], day: str) -> list[Outcome]:
        """Decide about a batch and store its new submissions, in one transaction."""
        db, number = self._db, self._number
        with _errors(self._path), _transaction(db):
            ids = [one.id for one in batch]
            hashes = [one.invitation for one in batch if one.invitation is not None]
            found = self._among("SELECT id, codes FROM reports WHERE round = ? AND id IN", ids)
            stored = {row[0]: row[1] for row in found}
            free = self._among("SELECT hash FROM invitations WHERE round = ? AND used = 0 AND hash IN", hashes)
            made = decide(batch, stored, (row[0] for row in free), self._state())
            db.executemany(
                "INSERT INTO reports (round, id, day, codes) VALUES (?, ?, ?, ?)",
                [(number, one.id, day, one.codes) for one in made.new],
            )
            db.executemany(
                "UPDATE invitations SET used = 1 WHERE round = ? AND hash = ?", [(number, hash) for hash in made.used]
            )
        return made.outcomes

    def _among(self, select: str, values: Sequence[bytes]) -> list[tuple[bytes, ...]]:
        found: list[tuple[bytes, ...]] = []
        for start in range(0, len(values), _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            found += self._db.execute(f"{select} ({marks})", (self._number, *some)).fetchall()
        return found

    def state(self) -> RoundState:
        """Whether the round is closed, and whether it takes invitations."""
        with _errors(self._path):
            return self._state()

    def _state(self) -> RoundState:
        found = self._db.execute("SELECT closed, invited FROM rounds WHERE number = ?", (self._number,)).fetchone()
        return RoundState(bool(found[0]), bool(found[1]))

    def others(self) -> dict[str, int]:
        """The numbers of other plans' rounds, by the checksums of the plans."""
        with _errors(self._path):
            found = self._db.execute("SELECT plan, number FROM rounds WHERE number <> ?", (self._number,))
            return {str(plan): int(number) for plan, number in found}

    def summary(self) -> Summary:
        """The numbers of reports and invitations of the round."""
        with _errors(self._path), closing(self._connect()) as db:
            db.execute("BEGIN")
            days = db.execute("SELECT day, count(*) FROM reports WHERE round = ? GROUP BY day", (self._number,))
            by_day = {str(day): int(rows) for day, rows in days}
            closed, drawn, used = db.execute(
                "SELECT closed, drawn, used + "
                "(SELECT count(*) FROM invitations AS i WHERE i.round = number AND i.used) "
                "FROM rounds WHERE number = ?",
                (self._number,),
            ).fetchone()
            return Summary(bool(closed), by_day, int(drawn), int(used))

    def invite(self, hashes: Sequence[bytes]) -> None:
        """Add invitations."""
        with _errors(self._path), _transaction(self._db):
            rows = [(self._number, hash) for hash in hashes]
            self._db.executemany("INSERT INTO invitations (round, hash) VALUES (?, ?)", rows)
            self._db.execute(
                "UPDATE rounds SET invited = 1, drawn = drawn + ? WHERE number = ?", (len(rows), self._number)
            )

    def close_round(self) -> None:
        """Accept no more submissions. The file is written anew, in the order of the ids, and its log is emptied."""
        db = self._db
        with _errors(self._path):
            with _transaction(db):
                db.execute(
                    "UPDATE rounds SET closed = 1, "
                    "used = used + (SELECT count(*) FROM invitations AS i WHERE i.round = number AND i.used) "
                    "WHERE number = ?",
                    (self._number,),
                )
                db.execute("DELETE FROM invitations WHERE round = ?", (self._number,))
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def rows(self, at_once: int) -> Iterator[Rows]:
        """The round's reports at one moment, in the order of their ids."""
        with _errors(self._path), closing(self._connect()) as db:
            db.execute("BEGIN")
            cursor = db.execute("SELECT id, day, codes FROM reports WHERE round = ? ORDER BY id", (self._number,))
            while found := cursor.fetchmany(at_once):
                yield found

    def close(self) -> None:
        """Close the file, after its log is merged into it."""
        self._db.close()


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit all of the block or nothing. Other programs write before or after it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Replace SQLite's errors by this package's. SQLite's messages name tables and constraints, never values."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) is sqlite3.DatabaseError:  # not a database at all, or a damaged one
            raise invalid("database", "a file of SQLite that is whole", Phrase(str(error)), str(path)) from None
        raise Unavailable(f"{path}: {error}") from None
