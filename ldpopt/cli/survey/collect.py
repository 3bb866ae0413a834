"""Reports from devices: ``ldpopt survey kit``, ``collect``, ``invitations`` and ``export``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.options import ForceOption
from ldpopt.cli.outputs import claim, claim_folder, output, progress, write_folder
from ldpopt.cli.survey.arguments import PlanArgument, read_plan


def kit(
    plan: PlanArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the questionnaire.")] = Path("kit"),
    collector: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where reports are posted, if not beside the page: https://..., without 'submissions'."
        ),
    ] = "./",
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Texts of the survey in one language (JSON); may be repeated.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Make a questionnaire that any web server can host. It sends only reports, never answers.

    ldpopt survey kit plan.json --out kit
    """
    from ldpopt.files import read_text
    from ldpopt.survey.kit.folder import kit_files

    claim_folder(out, force)
    made = read_plan(plan)
    files = kit_files(made, collector, [read_text(path) for path in texts or ()])
    write_folder(out, files, force)
    console = output()
    console.print(f"{len(files)} files in {out}; open {out / 'index.html'} through a web server", markup=False)
    for question in made.questions:
        proof = question.channel.proof()
        said = f"epsilon {proof.epsilon:.4g}, eta {proof.eta:.4g}"
        console.print(f"  {question.name}: {len(question.categories)} answers, {said}", markup=False)
    if made.carry:
        console.print(f"  not asked here, so missing from these reports: {', '.join(made.carry)}", markup=False)
    mode = "memoised under a key of the device" if made.respondent is not None else "fresh"
    console.print(f"  words: {mode}; reports go to {collector}submissions", markup=False)


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


def invitations(
    plan: PlanArgument,
    count: Annotated[int, typer.Argument(metavar="COUNT", min=1, help="Number of invitations.", show_default=False)],
    db: DatabaseOption = "reports.db",
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the invitations, one on each line.")] = Path(
        "invitations.txt"
    ),
    link: Annotated[
        str,
        typer.Option(
            metavar="PREFIX",
            help="Text before each invitation, such as the link to the questionnaire up to 'invitation='.",
        ),
    ] = "",
) -> None:
    """Draw invitations, each for one submission. From then on every submission to the round needs one.

    The database keeps only their hashes, and not which report came with which invitation.
    """
    from ldpopt.files import create_private
    from ldpopt.survey.server import database, draw_invitations

    claim([out], force=False)
    made = read_plan(plan)
    with database(db, made, create=True) as store:
        drawn = draw_invitations(made, store, count)
    create_private(out, "".join(f"{link}{one}\n" for one in drawn).encode())
    output().print(f"{count:,} invitations in {out}; the database has only their hashes", markup=False)


def export(
    plan: PlanArgument,
    db: Annotated[
        str,
        typer.Argument(metavar="DATABASE", help="reports.db, sqlite:///path or postgresql://...", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A file *.parquet, or a folder of such files.")] = Path(
        "reports.parquet"
    ),
) -> None:
    """Write collected reports as Parquet, without ids and days, with a manifest (their plan and number)."""
    from ldpopt.survey.server import export_reports

    made = read_plan(plan)
    with progress("exporting"):
        rows = export_reports(made, db, out)
    output().print(f"{rows:,} reports in {out}", markup=False)
