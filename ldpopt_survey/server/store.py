"""Batches of submissions go to a database: each is stored once, and one durable commit stores many.

`Store` has all statements that SQLite and PostgreSQL share.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any, ClassVar

from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.server.decide import Outcome, RoundState, Summary, decide, drawn_mark, spent_mark
from ldpopt_survey.server.submission import Submission

Rows = list[tuple[bytes, str, bytes]]
"""Stored reports: id, day as YYYY-MM-DD, codes."""


MIN_MIXED_SUBMISSIONS = 50
"""The fewest submissions with invitations that move to the permanent tables together."""
SETTLE_INTERVAL_SECONDS = 1.0
"""The fewest seconds between two checks of the waiting submissions; under load more are mixed at a time."""


class Unavailable(LdpoptError, RuntimeError):
    """The database cannot store or read now: the disk is full, the server is gone, another program holds it."""


class Store(ABC):
    """One round in a database: the part that is the same in every dialect of SQL. Parameters are written ``?``.

    Invitations are kept separately from reports: the row of a drawn invitation never changes. The data stored with a
    report is a mark, which does not show the invitation. One commit stores a report and its mark, since a crash must
    not leave one alone. The number of the transaction, or the positions of the rows, could still link the two. So both
    first go to tables of recent rows. At least `MIN_MIXED_SUBMISSIONS` of them then move to the permanent tables, in
    one transaction and in the order of random numbers. Afterwards the tables of recent rows are rewritten.

    Only one thread at a time may call `write`, `settle`, `state`, `probe`, `other_rounds`, `invite`, `close_round` and
    `close`; `summary` and `rows` open connections of their own. All raise `Unavailable` if the database does not answer
    or is full. Then nothing of the call is stored or, if only the answer to a commit was lost, all of it.
    """

    _db: Any = None
    _number: int
    """The number of the round in the table of rounds."""
    _place: ClassVar[str] = "?"
    """How the dialect writes a parameter."""
    _many_rows: ClassVar[Mapping[str, str]] = {}
    """Options of a cursor that reads many rows piece by piece."""
    _bytes: ClassVar[str]
    """The type of a column of bytes."""
    _table_end: ClassVar[str] = ""
    """The text after the columns of a table."""
    _last_settle, _is_swept = -SETTLE_INTERVAL_SECONDS, False
    """The time of the last `settle`; True if nothing old may be left in the tables of recent rows."""

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection."""

    @abstractmethod
    def _open(self, db: Any, plan: Plan, create: bool) -> int:
        """The number of the plan's round; if `create`, missing tables and a missing round are made."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Errors of the database are replaced by `Unavailable` or `InvalidInput`, without values."""

    @abstractmethod
    def _select_where_in(self, db: Any, statement: str, values: Sequence[bytes]) -> list[Any]:
        """Execute a statement that ends in the name of a column, for the rows with one of the values in this column."""

    @abstractmethod
    def _transaction(self, exclusive: bool = True) -> AbstractContextManager[Any]:
        """Open the writer's connection for a block. All of it is committed, durably, or nothing.

        exclusive : True if no other transaction of the round may run at the same time.
        """

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Any]:
        """A connection of its own that sees the database as it was at one moment."""

    @abstractmethod
    def _insert(self, db: Any, table: str, new: Sequence[Submission], day: str) -> set[bytes]:
        """Store new submissions, and give the ids of those that no other collector has stored meanwhile."""

    @abstractmethod
    def _erase(self) -> bool:
        """Delete the round's invitations, marks and order of arrival.

        Returns True if nothing of them can be read any more.
        """

    @abstractmethod
    def _sweep(self, db: Any) -> bool:
        """Rewrite the tables of recent reports and marks. Return True if no row that left them can be read there."""

    @abstractmethod
    def _hide_reads(self, db: Any) -> None:
        """Make the rows that were looked up in the permanent tables indistinguishable from others."""

    def _begin(self, plan: Plan, create: bool) -> None:
        try:
            with self._connected() as db:
                self._number = self._open(db, plan, create)
                if create:
                    self._hide_reads(db)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """The writer's connection; a new one if the last was lost."""
        with self._errors():
            if self._db is None or getattr(self._db, "closed", False):
                self._db = self._connect()
            yield self._db

    def _run(self, db: Any, statement: str, *values: Any) -> list[Any]:
        """Execute a statement and give its rows."""
        cursor = db.execute(statement.replace("?", self._place), values)
        return [] if cursor.description is None else list(cursor.fetchall())

    def close(self) -> None:
        """Close the database."""
        if self._db is not None:
            self._db.close()

    def write(self, batch: Sequence[Submission], day: str) -> list[Outcome]:
        """Resolve a batch and store its new submissions; return after the commit is durable.

        If two batches at the same time have the same id, the second waits for the first and finds its row.
        """
        hashes = [submission.invitation for submission in batch if submission.invitation is not None]
        with self._transaction(exclusive=bool(hashes)) as db:
            state = self._state(db)
            marks = [(drawn_mark(invitation), spent_mark(invitation)) for invitation in hashes]
            drawn_marks = self._marks(db, "invitations", "hash", [mark for mark, _ in marks])
            spent_marks = self._marks(db, self._all("spent"), "mark", [mark for _, mark in marks])
            usable_invitations = [
                invitation
                for invitation, (own_drawn_mark, own_spent_mark) in zip(hashes, marks, strict=True)
                if own_drawn_mark in drawn_marks and own_spent_mark not in spent_marks
            ]
            stored_codes = self._codes_by_id(db, sorted({submission.id for submission in batch}))
            decision = decide(batch, stored_codes, usable_invitations, state)
            prefix = "recent_" if decision.used else ""
            inserted_ids = self._insert(db, f"{prefix}reports", decision.new, day)
            if len(inserted_ids) < len(decision.new):  # another collector has stored some of them
                missing_ids = [submission.id for submission in decision.new if submission.id not in inserted_ids]
                stored_codes |= self._codes_by_id(db, missing_ids)
                decision = decide(batch, stored_codes, usable_invitations, state)
            self._add(db, f"{prefix}spent", "mark", map(spent_mark, decision.used))
        if hashes and time.monotonic() - self._last_settle >= SETTLE_INTERVAL_SECONDS:
            with suppress(Unavailable):  # waiting rows are mixed later; the batch is stored
                self.settle()
        return decision.outcomes

    def settle(self) -> bool:
        """Move waiting submissions to the permanent tables in random order, if enough wait.

        Returns True if the tables of recent rows hold nothing old.
        """
        self._last_settle = time.monotonic()
        with self._transaction() as db:
            is_enough = (
                self._run(db, "SELECT count(*) FROM recent_spent WHERE round = ?", self._number)[0][0]
                >= MIN_MIXED_SUBMISSIONS
            )
            if is_enough:
                self._mix(db)
        if is_enough or not self._is_swept:
            with self._connected() as db:
                self._is_swept = False
                self._is_swept = self._sweep(db)
        return self._is_swept

    def _mix(self, db: Any) -> None:
        """Move all waiting rows to the permanent tables, in the order of ids and of marks."""
        for table, columns, key in _RECENT:
            source = f"FROM recent_{table} WHERE round = {self._number}"
            self._run(db, f"INSERT INTO {table} ({columns}) SELECT {columns} {source} ORDER BY {key}")
            self._run(db, f"DELETE {source}")

    def _all(self, table: str) -> str:
        """The rows of a table with the recent ones, to stand after FROM."""
        columns = dict((table, columns) for table, columns, _ in _RECENT)[table]
        return f"(SELECT {columns} FROM {table} UNION ALL SELECT {columns} FROM recent_{table}) AS kept"

    def _marks(self, db: Any, table: str, column: str, values: Sequence[bytes]) -> set[bytes]:
        """Those of the values that the round has in the table."""
        statement = f"SELECT {column} FROM {table} WHERE round = {self._number} AND {column}"
        return {bytes(value) for (value,) in self._select_where_in(db, statement, values)}

    def _add(self, db: Any, table: str, column: str, values: Iterable[bytes]) -> None:
        """Add values to a round's rows of a table, in their own order and not in that of arrival."""
        statement = f"INSERT INTO {table} (round, {column}) VALUES ({self._number}, {self._place})"
        if rows := [(value,) for value in sorted(values)]:
            db.cursor().executemany(statement, rows)

    def _make_tables(self, db: Any) -> None:
        """Make the tables of invitations and marks that are missing."""
        for table, column in (("invitations", "hash"), ("spent", "mark"), ("recent_spent", "mark")):
            columns = f"round integer NOT NULL, {column} {self._bytes} NOT NULL, PRIMARY KEY (round, {column})"
            self._run(db, f"CREATE TABLE IF NOT EXISTS {table} ({columns}){self._table_end}")

    def _codes_by_id(self, db: Any, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        query = f"SELECT id, codes FROM {self._all('reports')} WHERE round = {self._number} AND id"
        return dict(self._select_where_in(db, query, ids))

    def _state(self, db: Any) -> RoundState:
        ((closed, invited),) = self._run(db, "SELECT closed, invited FROM rounds WHERE number = ?", self._number)
        return RoundState(bool(closed), bool(invited))

    def state(self) -> RoundState:
        """Read from the database whether the round is closed and whether it needs invitations."""
        with self._connected() as db:
            return self._state(db)

    @abstractmethod
    def _touch(self, db: Any) -> None:
        """Write a row that changes nothing, but must reach the disk with the commit."""

    def probe(self) -> RoundState:
        """Return the round's state after a durable write that changes nothing."""
        with self._transaction(exclusive=False) as db:
            self._touch(db)
            return self._state(db)

    def free(self) -> int | None:
        """Return the free bytes on the disk of the database, if known."""
        return None

    def other_rounds(self) -> dict[str, int]:
        """Return the numbers of other plans' rounds in the database, by the plans' checksums."""
        with self._connected() as db:
            return dict(self._run(db, "SELECT plan, number FROM rounds WHERE number <> ?", self._number))

    def summary(self) -> Summary:
        """Return the numbers of reports and invitations of the round."""
        with self._snapshot() as db:
            by_day = f"SELECT {_DAY}, count(*) FROM {self._all('reports')} WHERE round = ? GROUP BY day ORDER BY day"
            days = dict(self._run(db, by_day, self._number))
            numbers = f"SELECT closed, drawn, used + {self._used} FROM rounds WHERE number = ?"
            ((closed, drawn_count, used_count),) = self._run(db, numbers, self._number)
            return Summary(bool(closed), days, drawn_count, used_count)

    def invite(self, hashes: Sequence[bytes]) -> None:
        """Add the invitations that are not there yet, all or none. From then on every submission needs one.

        `InvalidInput` for a closed round.
        """
        with self._transaction() as db:
            if self._state(db).closed:
                expected = "one that is open, since codes of a closed one are refused"
                raise invalid("round", expected, Phrase("a closed one"))
            marks = {*map(drawn_mark, hashes)}
            new = marks - self._marks(db, "invitations", "hash", sorted(marks))
            self._add(db, "invitations", "hash", new)
            statement = "UPDATE rounds SET invited = true, drawn = drawn + ? WHERE number = ?"
            self._run(db, statement, len(new), self._number)
        with suppress(Unavailable), self._connected() as db:  # they are drawn; a collector that starts does it again
            self._hide_reads(db)

    def close_round(self) -> None:
        """Close the round; keep only the number of invitations, and no order of arrival.

        Raises `Unavailable` while another program reads the database, since it could still read the erased data.
        """
        with self._transaction() as db:
            self._run(db, "UPDATE rounds SET closed = true WHERE number = ?", self._number)
        if not self._erase():
            raise Unavailable(
                "the round takes no more reports, but is not closed: another program reads the database, and "
                "would keep what joins invitations to reports; end that program, and close the round again"
            )

    @property
    def _used(self) -> str:
        return f"(SELECT count(*) FROM {self._all('spent')} WHERE kept.round = number)"

    def _delete_invitations(self, db: Any) -> None:
        self._run(db, f"UPDATE rounds SET used = used + {self._used} WHERE number = ?", self._number)
        for table in ("invitations", "spent"):
            self._run(db, f"DELETE FROM {table} WHERE round = ?", self._number)

    def rows(self, max_rows: int) -> Iterator[Rows]:
        """Read the round's reports at one moment, by id, at most `max_rows` at a time."""
        select = f"SELECT id, {_DAY}, codes FROM {self._all('reports')} WHERE round = {self._number} ORDER BY id"
        with self._snapshot() as db, closing(db.cursor(**self._many_rows)) as cursor:
            cursor.execute(select)
            while batch := cursor.fetchmany(max_rows):
                yield batch

    def _add_round(self, db: Any, plan: Plan) -> None:
        statement = "INSERT INTO rounds (plan, survey, round) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._run(db, statement, plan.checksum, plan.name, plan.round)

    def _find_round(self, db: Any, plan: Plan) -> int:
        rows = self._run(db, "SELECT number FROM rounds WHERE plan = ?", plan.checksum)
        if not rows:
            raise no_round(plan)
        return int(rows[0][0])


_DAY = "CAST(day AS text)"
_RECENT = (("reports", "round, id, day, codes", "id"), ("spent", "round, mark", "mark"))
"""The tables with a table of recent rows, with their columns and the column that orders their rows."""


def no_round(plan: Plan) -> InvalidInput:
    """Return the error for a database that holds no round of `plan`."""
    return InvalidInput(f"database: there are no reports of the plan {plan.name!r}, round {plan.round}")
