"""Where reports are kept: a text that names a SQLite file or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path

from ldpopt.errors import Phrase, invalid
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.server.store import Store

SQLITE = "sqlite:///"
POSTGRESQL = ("postgresql://", "postgres://")
SUFFIXES = (".db", ".sqlite", ".sqlite3")


def is_database(location: str | PathLike[str]) -> bool:
    """Whether the text names a database of reports, rather than a file or folder of them.

    >>> [is_database(one) for one in ("sqlite:///r.data", "r.db", "postgresql://host/name", "r.parquet")]
    [True, True, True, False]
    """
    text = fspath(location)
    return text.startswith((SQLITE, *POSTGRESQL)) or text.endswith(SUFFIXES)


def shown(location: str | PathLike[str]) -> str:
    """The location as messages show it. A PostgreSQL address may hold a password, so only its kind is shown.

    >>> shown("postgresql://user:secret@host/name")
    'the PostgreSQL database'
    """
    text = fspath(location)
    return "the PostgreSQL database" if text.startswith(POSTGRESQL) else text.removeprefix(SQLITE)


@contextmanager
def database(location: str | PathLike[str], plan: Plan, create: bool = False) -> Iterator[Store]:
    """Open the round of `plan` in the database at `location`, for use in a ``with`` block.

    location : ``sqlite:///`` and a path (three slashes for a relative one, four for an absolute one), the path of a
        file that ends in .db, .sqlite or .sqlite3, or ``postgresql://user@host/name``.
    create : whether missing tables and a missing round are made; if not, they are `InvalidInput`.

    Raises `InvalidInput` for another location, and `Unavailable` for a database that does not answer.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt.survey import QuestionSpec, SurveySpec, make_plan
    >>> from ldpopt.survey.server import Submission
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> one = Submission(bytes(16), bytes([1, 0, 0, 0]))
    >>> with TemporaryDirectory() as folder, database(Path(folder, "reports.db"), plan, create=True) as store:
    ...     [outcome.value for outcome in store.write([one, one], "2026-01-31")], store.summary().reports
    (['stored', 'repeated'], 1)
    """
    text = fspath(location)
    if not is_database(text) or "\0" in text:
        raise invalid("database", "sqlite:///PATH, a file *.db, or postgresql://...", Phrase("another location"))
    made: Store
    if text.startswith(POSTGRESQL):
        from ldpopt.survey.server.postgresql import PostgresqlStore

        made = PostgresqlStore(text, plan, create)
    else:
        from ldpopt.survey.server.sqlite import SqliteStore

        made = SqliteStore(Path(text.removeprefix(SQLITE)), plan, create)
    try:
        yield made
    finally:
        made.close()
