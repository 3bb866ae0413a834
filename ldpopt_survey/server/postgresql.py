"""A round in PostgreSQL, which several collectors, also on several machines, can write to at once.

Erased data is gone from tables, indexes and the planner's statistics. The log of writes keeps it for a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from ldpopt.errors import InvalidInput, LdpoptError
from ldpopt.extras import need
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.server.store import Store, Unavailable, no_round
from ldpopt_survey.server.submission import Submission

_LOCK = 0x6C647074  # the lock of this program's schema and, with a round's number, of the round
_CONNECT_WAIT = 10  # seconds for a connection
_LOCK_WAIT = 10  # seconds for programs that read the tables of a round which is being closed

_POSTGRESQL_TABLES = """
CREATE SCHEMA IF NOT EXISTS ldpopt;
CREATE TABLE IF NOT EXISTS ldpopt.rounds (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, plan text NOT NULL UNIQUE, survey text NOT NULL,
    round bigint NOT NULL, closed boolean NOT NULL DEFAULT false, invited boolean NOT NULL DEFAULT false,
    drawn bigint NOT NULL DEFAULT 0, used bigint NOT NULL DEFAULT 0);
"""
_REPORTS = """
CREATE TABLE IF NOT EXISTS ldpopt.{} (
    round integer NOT NULL, id bytea NOT NULL CHECK (length(id) = 16), day date NOT NULL, codes bytea NOT NULL,
    PRIMARY KEY (round, id))
"""
_ROWS = {"invitations": "hash", "spent": "mark", "reports": "id", "recent_spent": "mark", "recent_reports": "id"}
"""The tables with rows of a round, and what their rows are ordered by."""
_NEVER_ANALYZED = "no statistics were kept of these tables"  # the comment on one that was made so, or cleared
_HAS_STATISTICS = "SELECT 1 FROM pg_stats WHERE schemaname = 'ldpopt' AND tablename = ? AND attname = ?"
_STATISTICS_FILE = "SELECT pg_relation_filenode('pg_catalog.pg_statistic')"
_NOT_ALLOWED = (
    "the round takes no more reports, but is not closed: PostgreSQL's statistics may keep hashes of invitations, which "
    "only the owner of the database or a superuser can erase; close the round again as one of them"
)
_FILES = (
    "SELECT pg_relation_filenode(oid) FROM pg_class WHERE relnamespace = 'ldpopt'::regnamespace "
    "AND relname ~ '^(invitations|(recent_|)(spent|reports))(_pkey|)$'"
)


class PostgresqlStore(Store):
    """The round of `plan` in the PostgreSQL database at `url`.

    The password is better in PGPASSWORD or a password file than in the url, which the list of processes may show.
    """

    _place = "%s"
    _bytes = "bytea"
    _many_rows: ClassVar[Mapping[str, str]] = {"name": "rows"}  # the server sends no more than is asked for

    def __init__(self, url: str, plan: Plan, create: bool) -> None:
        need("psycopg")
        self._url = url
        self._begin(plan, create)

    def _connect(self) -> Any:
        import psycopg

        try:
            connection = psycopg.connect(
                self._url, autocommit=True, connect_timeout=_CONNECT_WAIT, application_name="ldpopt"
            )
        except psycopg.OperationalError as error:  # the message quotes names and addresses, but no password
            reason = (str(error).splitlines() or ["no answer"])[0]
            raise Unavailable(f"PostgreSQL: {reason}") from None
        try:
            if connection.execute("SHOW fsync").fetchone() != ("on",):
                raise LdpoptError("the PostgreSQL server runs with fsync = off: what it acknowledges may be lost")
            connection.execute(
                "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'; "
                "SET client_min_messages = warning; SET search_path = ldpopt"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, db: Any, plan: Plan, create: bool) -> int:
        if create:
            with db.transaction():  # if two collectors start at once, the second waits here
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                (is_new,) = db.execute("SELECT to_regclass('rounds') IS NULL").fetchone()
                db.execute(_POSTGRESQL_TABLES)
                self._make_tables(db)
                if is_new:
                    db.execute(f"COMMENT ON TABLE spent IS '{_NEVER_ANALYZED}'")
                self._add_round(db, plan)
        if not db.execute("SELECT to_regclass('ldpopt.rounds') IS NOT NULL").fetchone()[0]:
            raise no_round(plan)
        return self._find_round(db, plan)

    def _make_tables(self, db: Any) -> None:
        super()._make_tables(db)
        for table in ("reports", "recent_reports"):
            db.execute(_REPORTS.format(table))
        for table, column in _ROWS.items():  # the planner's statistics would keep values that are erased
            db.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")

    def _touch(self, db: Any) -> None:
        """Log a message, which the commit flushes to the disk; it leaves no dead row."""
        db.execute("SELECT pg_logical_emit_message(true, 'ldpopt', '')")

    def _select_where_in(self, db: Any, statement: str, values: Sequence[bytes]) -> list[Any]:
        return self._run(db, f"{statement} = ANY(?)", list(values)) if values else []

    @contextmanager
    def _transaction(self, exclusive: bool = True) -> Iterator[Any]:
        lock = "pg_advisory_xact_lock" if exclusive else "pg_advisory_xact_lock_shared"
        with self._connected() as db, db.transaction():
            db.execute(f"SELECT {lock}(%s, %s)", (_LOCK, self._number))
            yield db

    @contextmanager
    def _snapshot(self) -> Iterator[Any]:
        with self._errors(), self._connect() as db, db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield db

    def _insert(self, db: Any, table: str, new: Sequence[Submission], day: str) -> set[bytes]:
        """Rows are stored, and so locked, in the order of the ids: two collectors never wait for each other."""
        if not new:
            return set()
        sorted_submissions = sorted(new, key=lambda submission: submission.id)
        insert = (
            f"INSERT INTO {table} (round, id, day, codes) "
            "SELECT ?, new.id, ?::date, new.codes FROM unnest(?::bytea[], ?::bytea[]) AS new (id, codes) "
            "ON CONFLICT DO NOTHING RETURNING id"
        )
        ids, codes = (
            [submission.id for submission in sorted_submissions],
            [submission.codes for submission in sorted_submissions],
        )
        return {id for (id,) in self._run(db, insert, self._number, day, ids, codes)}

    def _sweep(self, db: Any) -> bool:
        """The files of the tables are exchanged, unless somebody reads them now. An older snapshot finds all rows."""
        self._hide_reads(db)
        return all([_rewrite_table(db, table, ", SKIP_LOCKED") for table in ("recent_spent", "recent_reports")])

    def _hide_reads(self, db: Any) -> None:
        """The first reader of a row notes in it that its transaction was committed: here that is noted in all."""
        db.execute("VACUUM (SKIP_LOCKED, INDEX_CLEANUP off, TRUNCATE off) invitations, spent, reports")

    def _erase(self) -> bool:
        """The tables are written anew, as one transaction; no older snapshot sees the rows that they had."""
        import psycopg

        with self._transaction() as db:
            db.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}s'")
            try:
                with db.transaction():
                    db.execute(f"LOCK TABLE {', '.join(_ROWS)} IN ACCESS EXCLUSIVE MODE")
            except psycopg.errors.LockNotAvailable:
                return False
            self._mix(db)
            self._delete_invitations(db)
            old_files = {*self._run(db, _FILES)}
            for table, key in _ROWS.items():
                db.execute(f"CREATE TEMP TABLE again AS SELECT * FROM {table}")
                db.execute(f"TRUNCATE {table}")
                db.execute(f"INSERT INTO {table} SELECT * FROM again ORDER BY round, {key}")
                if self._run(db, _HAS_STATISTICS, table, key):
                    db.execute("COMMENT ON TABLE spent IS NULL")
                db.execute(f"ALTER TABLE {table} ALTER COLUMN {key} SET STATISTICS 0, ALTER {key} TYPE bytea")
                db.execute("DROP TABLE again")
            has_new_files = old_files.isdisjoint(self._run(db, _FILES))
        return has_new_files and self._erase_statistics()

    def _erase_statistics(self) -> bool:
        """Write the planner's statistics anew, if they may have held erased data.

        Changing a column's type deletes its statistics; the rows stay in their pages until the table is written anew.
        """
        import psycopg

        with self._connected() as db:
            if self._run(db, "SELECT obj_description('spent'::regclass)") == [(_NEVER_ANALYZED,)]:
                return True
            old_file = self._run(db, _STATISTICS_FILE)
            db.execute(f"SET lock_timeout = '{_LOCK_WAIT}s'")
            try:
                is_clean = _rewrite_table(db, "pg_catalog.pg_statistic")
            except psycopg.errors.LockNotAvailable:
                return False
            finally:
                db.execute("RESET lock_timeout")
            if self._run(db, _STATISTICS_FILE) == old_file:
                raise Unavailable(_NOT_ALLOWED)
            if not is_clean:
                return False
            db.execute(f"COMMENT ON TABLE spent IS '{_NEVER_ANALYZED}'")
        return True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Replace PostgreSQL's errors, without their messages, which may quote addresses, names or values."""
        import psycopg

        try:
            yield
        except psycopg.ProgrammingError as error:
            if error.sqlstate is not None:
                raise Unavailable(f"PostgreSQL: {type(error).__name__}") from None
            raise InvalidInput("database: the address must have the form postgresql://user@host/name") from None
        except psycopg.Error as error:
            raise Unavailable(f"PostgreSQL: {type(error).__name__}") from None


def _rewrite_table(db: Any, table: str, options: str = "") -> bool:
    """Write a table to a new file. Return True if no version of a row is left there for older snapshots."""
    details: list[str] = []

    def add_detail(notice: Any) -> None:  # its fields are gone afterwards
        details.append(notice.message_detail or "")

    db.add_notice_handler(add_detail)
    try:
        db.execute(f"VACUUM (FULL, VERBOSE{options}) {table}")
    finally:
        db.remove_notice_handler(add_detail)
    return re.findall("[0-9]+", "".join(details))[:1] == ["0"]  # "0 dead row versions cannot be removed yet."
