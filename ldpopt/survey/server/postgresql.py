"""Reports in PostgreSQL: several collectors, also on several machines, write to one database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ldpopt.errors import LdpoptError, Phrase, invalid
from ldpopt.extras import need
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.server.store import Outcome, RoundState, Rows, Summary, Unavailable, decide
from ldpopt.survey.server.submission import Submission

_LOCK = 0x6C647074  # the lock of this program's schema and, with a round's number, of the round
_WAIT = 10  # seconds for a connection

_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS ldpopt;
CREATE TABLE IF NOT EXISTS ldpopt.rounds (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, plan text NOT NULL UNIQUE, survey text NOT NULL,
    round bigint NOT NULL, closed boolean NOT NULL DEFAULT false, invited boolean NOT NULL DEFAULT false,
    drawn bigint NOT NULL DEFAULT 0, used bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS ldpopt.reports (
    round integer NOT NULL, id bytea NOT NULL CHECK (length(id) = 16), day date NOT NULL, codes bytea NOT NULL,
    PRIMARY KEY (round, id));
CREATE TABLE IF NOT EXISTS ldpopt.invitations (
    round integer NOT NULL, hash bytea NOT NULL, used boolean NOT NULL DEFAULT false, PRIMARY KEY (round, hash));
"""


class PostgresqlStore:
    """The round of `plan` in the PostgreSQL database at `url`.

    create : whether missing tables and a missing round are made; if not, they are `InvalidInput`.

    The password is better in PGPASSWORD or a password file than in the url, which the list of processes may show.
    """

    def __init__(self, url: str, plan: Plan, create: bool) -> None:
        need("psycopg")
        self._url = url
        self._db: Any = None
        with _errors():
            try:
                self._number = self._open(plan, create)
            except BaseException:
                self.close()
                raise

    def _connect(self) -> Any:
        import psycopg

        try:
            made = psycopg.connect(self._url, autocommit=True, connect_timeout=_WAIT, application_name="ldpopt")
        except psycopg.OperationalError as error:  # the message quotes names and addresses, but no password
            reason = (str(error).splitlines() or ["no answer"])[0]
            raise Unavailable(f"PostgreSQL: {reason}") from None
        try:
            if made.execute("SHOW fsync").fetchone() != ("on",):
                raise LdpoptError("the PostgreSQL server runs with fsync = off: what it acknowledges may be lost")
            made.execute("SET synchronous_commit = on")
            made.execute("SET default_transaction_isolation = 'read committed'")
            made.execute("SET client_min_messages = warning")
        except BaseException:
            made.close()
            raise
        return made

    def _connection(self) -> Any:
        """The writer's connection; a new one if the last was lost."""
        if self._db is None or self._db.closed:
            self._db = self._connect()
        return self._db

    def _open(self, plan: Plan, create: bool) -> int:
        db = self._connection()
        if create:
            with db.transaction():  # if two collectors start at once, the second waits here
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                db.execute(_SCHEMA)
                db.execute(
                    "INSERT INTO ldpopt.rounds (plan, survey, round) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    (plan.checksum, plan.name, plan.round),
                )
        there = db.execute("SELECT to_regclass('ldpopt.rounds') IS NOT NULL").fetchone()[0]
        found = there and db.execute("SELECT number FROM ldpopt.rounds WHERE plan = %s", (plan.checksum,)).fetchone()
        if not found:
            raise invalid("database", f"reports of the plan {plan.name!r}, round {plan.round}", Phrase("none"))
        return int(found[0])

    def write(self, batch: Sequence[Submission], day: str) -> list[Outcome]:
        """Decide about a batch and store its new submissions, in one transaction.

        Batches without invitations run at the same time. If two of them bring the same id, the second waits for the
        first and then finds the stored submission. Batches with invitations, and the end of a round, run alone.
        """
        ids = sorted({one.id for one in batch})
        hashes = [one.invitation for one in batch if one.invitation is not None]
        with _errors():
            db = self._connection()
            with db.transaction():
                self._lock(db, alone=bool(hashes))
                state = self._state(db)
                free = self._free(db, hashes)
                stored = self._stored(db, ids)
                made = decide(batch, stored, free, state)
                inserted = self._insert(db, made.new, day)
                if len(inserted) < len(made.new):  # another collector has stored some of them
                    stored |= self._stored(db, [one.id for one in made.new if one.id not in inserted])
                    made = decide(batch, stored, free, state)
                if made.used:
                    db.execute(
                        "UPDATE ldpopt.invitations SET used = true WHERE round = %s AND hash = ANY(%s)",
                        (self._number, made.used),
                    )
        return made.outcomes

    def _lock(self, db: Any, alone: bool) -> None:
        kind = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        db.execute(f"SELECT {kind}(%s, %s)", (_LOCK, self._number))

    def _state(self, db: Any) -> RoundState:
        found = db.execute("SELECT closed, invited FROM ldpopt.rounds WHERE number = %s", (self._number,)).fetchone()
        return RoundState(*found)

    def _stored(self, db: Any, ids: list[bytes]) -> dict[bytes, bytes]:
        select = "SELECT id, codes FROM ldpopt.reports WHERE round = %s AND id = ANY(%s)"
        return dict(db.execute(select, (self._number, ids)).fetchall())

    def _free(self, db: Any, hashes: list[bytes]) -> list[bytes]:
        if not hashes:
            return []
        select = "SELECT hash FROM ldpopt.invitations WHERE round = %s AND NOT used AND hash = ANY(%s)"
        return [row[0] for row in db.execute(select, (self._number, hashes)).fetchall()]

    def _insert(self, db: Any, new: Sequence[Submission], day: str) -> set[bytes]:
        """Store the new submissions and return the ids that no other collector has stored.

        They are stored, and so locked, in the order of the ids. So two collectors never wait for each other in a
        circle.
        """
        if not new:
            return set()
        ordered = sorted(new, key=lambda one: one.id)
        rows = db.execute(
            "INSERT INTO ldpopt.reports (round, id, day, codes) "
            "SELECT %s, new.id, %s::date, new.codes FROM unnest(%s::bytea[], %s::bytea[]) AS new (id, codes) "
            "ON CONFLICT DO NOTHING RETURNING id",
            (self._number, day, [one.id for one in ordered], [one.codes for one in ordered]),
        )
        return {row[0] for row in rows.fetchall()}

    def state(self) -> RoundState:
        """Whether the round is closed, and whether it takes invitations."""
        with _errors():
            return self._state(self._connection())

    def others(self) -> dict[str, int]:
        """The numbers of other plans' rounds, by the checksums of the plans."""
        with _errors():
            select = "SELECT plan, number FROM ldpopt.rounds WHERE number <> %s"
            return dict(self._connection().execute(select, (self._number,)).fetchall())

    def summary(self) -> Summary:
        """The numbers of reports and invitations of the round."""
        with _errors(), self._connect() as db, db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            days = db.execute(
                "SELECT day::text, count(*) FROM ldpopt.reports WHERE round = %s GROUP BY day ORDER BY day",
                (self._number,),
            ).fetchall()
            closed, drawn, used = db.execute(
                "SELECT closed, drawn, r.used + "
                "(SELECT count(*) FROM ldpopt.invitations AS i WHERE i.round = number AND i.used) "
                "FROM ldpopt.rounds AS r WHERE number = %s",
                (self._number,),
            ).fetchone()
            return Summary(closed, dict(days), drawn, used)

    def invite(self, hashes: Sequence[bytes]) -> None:
        """Add invitations."""
        with _errors():
            db = self._connection()
            with db.transaction():
                self._lock(db, alone=True)
                db.execute(
                    "INSERT INTO ldpopt.invitations (round, hash) SELECT %s, unnest(%s::bytea[])",
                    (self._number, list(hashes)),
                )
                db.execute(
                    "UPDATE ldpopt.rounds SET invited = true, drawn = drawn + %s WHERE number = %s",
                    (len(hashes), self._number),
                )

    def close_round(self) -> None:
        """Accept no more submissions. One transaction writes the rows anew, in the order of the ids."""
        with _errors():
            db = self._connection()
            with db.transaction():
                self._lock(db, alone=True)
                db.execute(
                    "UPDATE ldpopt.rounds AS r SET closed = true, used = r.used + "
                    "(SELECT count(*) FROM ldpopt.invitations AS i WHERE i.round = number AND i.used) "
                    "WHERE number = %s",
                    (self._number,),
                )
                for statement in (
                    "DELETE FROM ldpopt.invitations WHERE round = %s",
                    "CREATE TEMP TABLE again ON COMMIT DROP AS SELECT * FROM ldpopt.reports WHERE round = %s",
                    "DELETE FROM ldpopt.reports WHERE round = %s",
                ):
                    db.execute(statement, (self._number,))
                db.execute("INSERT INTO ldpopt.reports SELECT * FROM again ORDER BY id")
            for table in ("reports", "invitations"):
                db.execute(f"VACUUM (FULL, ANALYZE) ldpopt.{table}")

    def rows(self, at_once: int) -> Iterator[Rows]:
        """The round's reports at one moment, in the order of their ids."""
        with _errors(), self._connect() as db, db.transaction(), db.cursor(name="rows") as cursor:
            cursor.execute(
                "SELECT id, day::text, codes FROM ldpopt.reports WHERE round = %s ORDER BY id", (self._number,)
            )
            while found := cursor.fetchmany(at_once):
                yield found

    def close(self) -> None:
        """Close the connection to the database."""
        if self._db is not None:
            self._db.close()


@contextmanager
def _errors() -> Iterator[None]:
    """Replace PostgreSQL's errors by this package's, without messages, which may quote addresses, names or values."""
    import psycopg

    try:
        yield
    except psycopg.ProgrammingError as error:
        if error.sqlstate is not None:
            raise Unavailable(f"PostgreSQL: {type(error).__name__}") from None
        raise invalid("database", "an address such as postgresql://user@host/name", Phrase("another")) from None
    except psycopg.Error as error:
        raise Unavailable(f"PostgreSQL: {type(error).__name__}") from None
