"""The n-th statement of a collector's database fails, has its answer lost, or is where the process ends.

`Statements` wraps the connections that a store opens. Short forms are in `tests/survey/server/test_store.py`, all of it
in ``experiments/trust/collect.py --operations``.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from faults import NEVER, Killed

from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.server import Outcome, Submission, Unavailable, database, databases, draw_invitations
from ldpopt_survey.server.postgresql import PostgresqlStore
from ldpopt_survey.server.submission import invitation_hash

KINDS = ("before", "after", "kill")
"""A statement fails; it succeeds and its answer is lost; the process ends before it."""
CODES = bytes([1, 0, 0, 0] * 3)


class Statements:
    """Counts the statements of all connections and spoils the `moment`-th."""

    def __init__(self, kind: str, moment: int, error: type[Exception]) -> None:
        self.kind, self.moment, self._error = kind, moment, error
        self.count, self.dead, self.struck = 0, False, ""
        self.names: Counter[str] = Counter()

    def run(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if self.dead:
            raise Killed
        self.count += 1
        self.names[name] += 1
        spoilt = self.count == self.moment
        self.struck = name if spoilt else self.struck
        if spoilt and self.kind == "kill":
            self.dead = True
            raise Killed
        if spoilt and self.kind == "before":
            raise self._error("disk I/O error")
        made = function(*arguments)
        if spoilt:
            raise self._error("the answer was lost")
        return made


class Connection:
    """A connection, or a cursor of one, whose statements are counted."""

    def __init__(self, db: Any, statements: Statements) -> None:
        self._db, self._statements = db, statements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def __enter__(self) -> Connection:
        self._db.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._db.__exit__(*error)

    def execute(self, statement: str, *values: Any) -> Any:
        return self._statements.run(_named(statement), self._db.execute, statement, *values)

    def executemany(self, statement: str, *values: Any) -> Any:
        return self._statements.run(_named(statement), self._db.executemany, statement, *values)

    def cursor(self, **options: Any) -> Connection:
        return Connection(self._db.cursor(**options), self._statements)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._db)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """PostgreSQL's, which begins and commits by itself."""
        with self._db.transaction():
            yield
            if not self._statements.dead:
                self._statements.run("COMMIT (before)", lambda: None)
        if not self._statements.dead:
            self._statements.run("COMMIT (after)", lambda: None)


def _named(statement: str) -> str:
    """A statement by its beginning."""
    words = statement.split()
    many = {"SELECT": 12, "PRAGMA": 2, "UPDATE": 4, "CREATE": 6, "SET": 3, "INSERT": 3, "DELETE": 3}
    return " ".join(words[: many.get(words[0], 3)])[:70]


class Round:
    """A round as devices and its owner live it, with retries as theirs: what was acknowledged, and what is stored."""

    def __init__(self, location: str, plan: Plan) -> None:
        self.location, self.plan = location, plan
        self.kind = PostgresqlStore if location.startswith("postgresql") else databases.SqliteStore
        self.words: list[str] = []
        self.acknowledged: set[bytes] = set()

    def lived(self, statements: Statements) -> str:
        """What is wrong at the end of the round, in which one statement was spoilt."""
        opened: list[Any] = []
        connect = self.kind._connect

        def counted(store: Any) -> Any:
            db = statements.run("connect", connect, store)
            opened.append(db)
            return Connection(db, statements)

        ids = [bytes([n]) * 16 for n in range(1, 7)]
        with patch.object(self.kind, "_connect", counted):
            for step in (self._draw, *(lambda n=n: self._send(ids[n : n + 2], n) for n in (0, 2, 4)), self._close):
                for attempt in itertools.count():
                    if attempt == 5:
                        return f"{step} does not succeed"
                    try:
                        step()
                        break
                    except Unavailable:
                        continue
                    except Killed:  # a new process begins; the old one's connections are gone
                        for db in opened:
                            db.close()
                        opened.clear()
                        statements.dead = False
        with database(self.location, self.plan) as store:
            held = {bytes(id_): bytes(codes) for rows in store.rows(100) for id_, _, codes in rows}
            said = store.summary()
        if held != dict.fromkeys(ids, CODES) or self.acknowledged != set(ids):
            return f"{len(self.acknowledged)} acknowledged, {len(held)} stored"
        return "" if (said.used, said.closed) == (6, True) else f"{said.used} invitations used for 6 reports"

    def _draw(self) -> None:
        with database(self.location, self.plan, create=True) as store:
            self.words = draw_invitations(self.plan, store, 6)

    def _send(self, ids: list[bytes], start: int) -> None:
        """A collector starts, stores a batch twice (once for an answer that was lost), and is asked about itself."""
        hashes = [invitation_hash(self.plan.checksum, word) for word in self.words[start : start + 2]]
        batch = [Submission(id_, CODES, hash_) for id_, hash_ in zip(ids, hashes, strict=True)]
        with database(self.location, self.plan, create=True) as store:
            store.other_rounds()
            for _ in range(2):
                outcomes = store.write(batch, "2026-01-31")
                assert set(outcomes) <= {Outcome.STORED, Outcome.REPEATED}, outcomes
                self.acknowledged.update(ids)
            assert store.write([Submission(bytes(16), CODES, hashes[0])], "2026-01-31") == [Outcome.UNINVITED]
            store.probe()
            store.summary()

    def _close(self) -> None:
        with database(self.location, self.plan) as store:
            store.close_round()


def spoil_statements(rounds: Iterator[Round], kind: str, some: int = 1) -> Counter[str]:
    """Live a round for every `some`-th of its statements, which is spoilt; the statements that were, by name."""
    made, struck = next(rounds), Counter[str]()
    error: type[Exception] = sqlite3.OperationalError
    if made.kind is PostgresqlStore:
        import psycopg

        error = psycopg.OperationalError
    unharmed = Statements(kind, NEVER, error)
    assert made.lived(unharmed) == ""
    for moment in range(1, unharmed.count + 1, some):
        statements = Statements(kind, moment, error)
        wrong = next(rounds).lived(statements)
        assert not wrong, f"{kind} at {moment}, {statements.struck}: {wrong}"
        struck[statements.struck] += 1
    return struck
