"""The name of a database leads to the store of a plan's round: a SQLite file, or PostgreSQL for several collectors.

SQLite flushes a write-ahead log before anything is acknowledged.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.server.postgresql import PostgresqlStore
from ldpopt_survey.server.store import Store, Unavailable
from ldpopt_survey.server.submission import Submission

SQLITE = "sqlite:///"
POSTGRESQL = ("postgresql://", "postgres://")
SUFFIXES = (".db", ".sqlite", ".sqlite3")


def is_database(location: str | PathLike[str]) -> bool:
    """Return True if the text names a database of reports, not a file or folder of them."""
    text = fspath(location)
    return text.startswith((SQLITE, *POSTGRESQL)) or text.endswith(SUFFIXES)


def display_name(location: str | PathLike[str]) -> str:
    """Return the location for messages, without a PostgreSQL address, which may hold a password."""
    text = fspath(location)
    return "the PostgreSQL database" if text.startswith(POSTGRESQL) else text.removeprefix(SQLITE)


@contextmanager
def database(location: str | PathLike[str], plan: Plan, create: bool = False) -> Iterator[Store]:
    """Open the round of `plan` in the database at `location`, for use in a ``with`` block.

    Parameters
    ----------
    location : The path of a file that ends in .db, .sqlite or .sqlite3, or ``sqlite:///`` and a path, or
        ``postgresql://user@host/name``. After ``sqlite:`` a relative path has three slashes, an absolute one four.
    plan : The plan of the round.
    create : True to create missing tables and a missing round; otherwise they are `InvalidInput`.

    Yields
    ------
    Store
        The round of the plan.

    Raises
    ------
    InvalidInput
        For another location.
    Unavailable
        For a database that does not answer.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
    >>> from ldpopt_survey.server import Submission
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> one = Submission(bytes(16), bytes([1, 0, 0, 0]))
    >>> with TemporaryDirectory() as folder, database(Path(folder, "reports.db"), plan, create=True) as store:
    ...     [outcome.value for outcome in store.write([one, one], "2026-01-31")], store.summary().reports
    (['stored', 'repeated'], 1)
    """
    text = fspath(location)
    if not is_database(text) or "\0" in text:
        raise InvalidInput("database: the location must be sqlite:///PATH, a file *.db, or postgresql://...")
    is_remote = text.startswith(POSTGRESQL)
    path = Path(text.removeprefix(SQLITE))
    with closing(PostgresqlStore(text, plan, create) if is_remote else SqliteStore(path, plan, create)) as store:
        yield store


APPLICATION_ID = 0x6C647074  # "ldpt"; `file` and this package recognize the file by it
VERSION = 3
LOCK_WAIT_SECONDS = 30.0
"""Seconds to wait for another program that holds the file."""
_MAX_PARAMETERS = 500  # parameters of a statement; old versions allow 999

# Without row numbers, rows are kept in the order of their random ids, so the order of arrival is not kept.
_REPORTS = """
CREATE TABLE IF NOT EXISTS {} (
    round INTEGER NOT NULL, id BLOB NOT NULL CHECK (length(id) = 16), day TEXT NOT NULL, codes BLOB NOT NULL,
    PRIMARY KEY (round, id)) WITHOUT ROWID
"""
_ROUNDS = """
CREATE TABLE rounds (
    number INTEGER PRIMARY KEY, plan TEXT NOT NULL UNIQUE, survey TEXT NOT NULL, round INTEGER NOT NULL,
    closed INTEGER NOT NULL DEFAULT 0, invited INTEGER NOT NULL DEFAULT 0,
    drawn INTEGER NOT NULL DEFAULT 0, used INTEGER NOT NULL DEFAULT 0)
"""


class SqliteStore(Store):
    """The round of `plan` in the SQLite file at `path`, whose rows are always in the order of their ids."""

    _bytes, _table_end = "BLOB", " WITHOUT ROWID"

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
        self._begin(plan, create)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=LOCK_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        for setting in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("PRAGMA cache_size = -65536")
        return connection

    def _open(self, db: Any, plan: Plan, create: bool) -> int:
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (mark != APPLICATION_ID and tables) or (not tables and not create):
            raise InvalidInput(f"{self._path} is not a database that `ldpopt survey collect` created")
        if tables and db.execute("PRAGMA user_version").fetchone() != (VERSION,):
            raise InvalidInput(f"{self._path}: the database must have version {VERSION}, and has another version")
        if create:
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise InvalidInput(f"{self._path}: the file system does not allow a write-ahead log; use a local disk")
            with self._transaction():
                if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    db.execute(_ROUNDS)
                    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    db.execute(f"PRAGMA user_version = {VERSION}")
                    self._make_tables(db)
                self._add_round(db, plan)
        return self._find_round(db, plan)

    def _make_tables(self, db: Any) -> None:
        super()._make_tables(db)
        for table in ("reports", "recent_reports"):
            db.execute(_REPORTS.format(table))

    def _select_where_in(self, db: Any, statement: str, values: Sequence[bytes]) -> list[Any]:
        rows: list[Any] = []
        for start in range(0, len(values), _MAX_PARAMETERS):
            chunk = values[start : start + _MAX_PARAMETERS]
            rows += db.execute(f"{statement} IN ({','.join('?' * len(chunk))})", chunk)
        return rows

    @contextmanager
    def _transaction(self, exclusive: bool = True) -> Iterator[Any]:
        """Every transaction is alone: other programs write before or after it."""
        with self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def _snapshot(self) -> Iterator[Any]:
        with self._errors(), closing(self._connect()) as db:
            db.execute("BEGIN")
            yield db

    def free(self) -> int:
        """Return the free bytes on the disk of the file."""
        return shutil.disk_usage(self._path.parent).free

    def _insert(self, db: Any, table: str, new: Sequence[Submission], day: str) -> set[bytes]:
        rows = sorted((self._number, submission.id, day, submission.codes) for submission in new)
        db.executemany(f"INSERT INTO {table} (round, id, day, codes) VALUES (?, ?, ?, ?)", rows)
        return {submission.id for submission in new}

    def _hide_reads(self, db: Any) -> None:
        """Reading writes nothing."""

    def _sweep(self, db: Any) -> bool:
        """Rows that leave a table are overwritten with zeros; the log is emptied, unless somebody reads from it."""
        db.execute("PRAGMA busy_timeout = 0")
        try:
            (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            db.execute(f"PRAGMA busy_timeout = {1000 * LOCK_WAIT_SECONDS:.0f}")
        return not busy

    def _erase(self) -> bool:
        with self._transaction() as db:
            self._mix(db)
            for table in ("sqlite_stat3", "sqlite_stat4"):  # samples of keys, which ANALYZE keeps if so compiled
                db.execute(f"DROP TABLE IF EXISTS {table}")
            query = "SELECT hash FROM invitations WHERE round = ?1 UNION ALL SELECT mark FROM spent WHERE round = ?1"
            erased_words = [word for (word,) in db.execute(query, (self._number,))]
            self._delete_invitations(db)
        with self._connected() as db:
            db.execute("VACUUM")  # writes the file anew
            (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()  # empties its log
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
        log = self._path.with_name(f"{self._path.name}-wal")
        is_log_empty = not log.exists() or log.stat().st_size == 0
        return not busy and not free and is_log_empty and not _holds_any(self._path, erased_words)

    def _touch(self, db: Any) -> None:
        for change in ("+", "-"):  # no page is written for an update that changes nothing
            self._run(db, f"UPDATE rounds SET drawn = drawn {change} 1 WHERE number = ?", self._number)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Replace SQLite's errors, whose messages name tables and constraints, but never values."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if type(error) is sqlite3.DatabaseError:  # not a database at all, or a damaged one
                got = Phrase(str(error))
                raise invalid("database", "a file of SQLite that is whole", got, str(self._path)) from None
            raise Unavailable(f"{self._path}: {error}") from None


def _holds_any(path: Path, words: Sequence[bytes]) -> bool:
    """Return True if a file holds one of `words`, of at least 8 bytes each; it compares their first 8."""
    starts = np.unique(np.frombuffer(b"".join(word[:8] for word in words), np.uint64))
    window = b""
    with path.open("rb") as file:
        while chunk := file.read(1 << 24):
            window = window[-7:] + chunk
            for shift in range(8):
                words_read = np.frombuffer(window, np.uint64, count=max(len(window) - shift, 0) // 8, offset=shift)
                if np.isin(words_read, starts).any():
                    return True
    return False
