"""``ldpopt survey collect``: a server that accepts reports and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output
from ldpopt.cli.survey.files import PlanArgument, read_plan

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="DATABASE",
        help="A file (reports.db, sqlite:///path), or postgresql://user@host/name (the password in PGPASSWORD).",
    ),
]

EXPOSED = (
    "Every machine that reaches this address can now send reports, unencrypted: put a reverse proxy with TLS in front "
    "of it (docs/collector.md), and keep what that proxy logs in mind: it sees addresses."
)


def collect(
    plan: PlanArgument,
    db: DatabaseOption = "reports.db",
    kit: Annotated[Path | None, typer.Option(help="Serve the files of this folder (ldpopt survey kit).")] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at. Any address except loopback lets other machines send reports, unencrypted."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 chooses a free one.")] = 8000,
    token: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that /counts asks for; it is made if it is missing.", show_default=False
        ),
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Another site whose pages may submit: https://...")
    ] = None,
    rate: Annotated[float, typer.Option(min=1, help="Most submissions a second, from all senders together.")] = 2000,
    close: Annotated[
        bool, typer.Option("--close", help="Close the plan's round in the database forever, and exit.")
    ] = False,
) -> None:
    """Serve a questionnaire and collect the reports in a database. A report is acknowledged when it is on disk.

    No address, user agent, cookie or time of day is kept. Stop it with Ctrl-C. `aggregate`, `estimate`, `report` and
    `export` can read the database at any time. Needs ldpopt[collect].
    """
    from ldpopt.survey.server import collector, database, static_files
    from ldpopt.survey.server.location import shown
    from ldpopt.survey.server.web import address, listening, loopback, serve, token_of

    made = read_plan(plan)
    what = f"{made.name!r}, round {made.round}"
    if close:
        with database(db, made) as store:
            store.close_round()
            held = store.summary()
        output().print(f"closed {what}, with {held.reports:,} reports, in {shown(db)}", markup=False)
        return
    from ldpopt.extras import need

    need("starlette", "uvicorn")  # checked before a database is made
    files = static_files(kit, made.checksum) if kit is not None else None
    with listening(host, port) as listener:
        secret = token_of(token) if token is not None else None
        with database(db, made, create=True) as store:
            app = collector(made, store, files, secret, tuple(origin or ()), rate)
            print(f"collecting {what} at {address(host, listener)} into {shown(db)}", flush=True)
            if store.state().closed:
                print("This round is closed: every new submission is refused.", flush=True)
            if not loopback(host):
                print(EXPOSED, file=sys.stderr, flush=True)
            serve(app, listener)
