"""Reports from devices: ``ldpopt survey kit``, ``collect``, ``invitations`` and ``export``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from ldpopt.cli.options import ForceOption, argument, option
from ldpopt.cli.outputs import claim, claim_folder, progress, say, write_folder
from ldpopt.cli.survey.arguments import PlanArgument, read_plan
from ldpopt.files import create_private, read_text


def kit(
    plan: PlanArgument,
    out: Annotated[Path, option("--out", "-o", "Folder for the questionnaire.")] = Path("kit"),
    collector: Annotated[
        str,
        option("Where reports are posted, if not beside the page: https://..., without 'submissions'.", metavar="URL"),
    ] = "./",
    texts: Annotated[
        list[Path] | None,
        option("Texts of the survey in one language (JSON); may be repeated.", metavar="FILE", default=False),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Make a questionnaire that any web server can host. It sends only reports, never answers.

    ldpopt survey kit plan.json --out kit
    """
    from ldpopt.survey.kit.folder import kit_files

    claim_folder(out, force)
    made = read_plan(plan)
    files = kit_files(made, collector, [read_text(path) for path in texts or ()])
    write_folder(out, files, force)
    say(f"{len(files)} files in {out}; open {out / 'index.html'} through a web server")
    for question in made.questions:
        proof = question.channel.proof()
        claims = f"epsilon {proof.epsilon:.4g}, eta {proof.eta:.4g}"
        say(f"  {question.name}: {len(question.categories)} answers, {claims}")
    if made.carry:
        say(f"  not asked here, so missing from these reports: {', '.join(made.carry)}")
    mode = "memoised under a key of the device" if made.respondent is not None else "fresh"
    say(f"  words: {mode}; reports go to {collector}submissions")


DatabaseOption = Annotated[
    str,
    option(
        "--db",
        "A file (reports.db, sqlite:///path), or postgresql://user@host/name (the password in PGPASSWORD).",
        metavar="DATABASE",
    ),
]

EXPOSED = (
    "Every machine that reaches this address can now send reports, unencrypted: put a reverse proxy with TLS in front "
    "of it (docs/collector.md), and keep what that proxy logs in mind: it sees addresses."
)


def collect(
    plan: PlanArgument,
    db: DatabaseOption = "reports.db",
    kit: Annotated[Path | None, option("Serve the files of this folder (ldpopt survey kit).")] = None,
    host: Annotated[
        str, option("Address to listen at. Any address except loopback lets other machines send reports, unencrypted.")
    ] = "127.0.0.1",
    port: Annotated[int, option("Port to listen at; 0 chooses a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        Path | None, option("File with the token that /counts asks for; it is made if it is missing.", default=False)
    ] = None,
    origin: Annotated[
        list[str] | None, option("Another site whose pages may submit: https://...", metavar="URL")
    ] = None,
    rate: Annotated[float, option("Most submissions a second, from all senders together.", min=1)] = 2000,
    close: Annotated[bool, option("--close", "Close the plan's round in the database forever, and exit.")] = False,
) -> None:
    """Serve a questionnaire and collect the reports in a database. A report is acknowledged when it is on disk.

    No address, user agent, cookie or time of day is kept. Stop it with Ctrl-C. `aggregate`, `estimate`, `report` and
    `export` can read the database at any time. Needs ldpopt\\[collect].
    """
    from ldpopt.survey.server import collector, database, static_files
    from ldpopt.survey.server.databases import shown
    from ldpopt.survey.server.web import address, listening, loopback, serve, token_of

    made = read_plan(plan)
    what = f"{made.name!r}, round {made.round}"
    if close:
        with database(db, made) as store:
            store.close_round()
            held = store.summary()
        say(f"closed {what}, with {held.reports:,} reports, in {shown(db)}")
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
    count: Annotated[int, argument("COUNT", "Number of invitations.", min=1)],
    db: DatabaseOption = "reports.db",
    out: Annotated[Path, option("--out", "-o", "File for the invitations, one on each line.")] = Path(
        "invitations.txt"
    ),
    link: Annotated[
        str,
        option(
            "Text before each invitation, such as the link to the questionnaire up to 'invitation='.", metavar="PREFIX"
        ),
    ] = "",
) -> None:
    """Draw invitations, each for one submission. From then on every submission to the round needs one.

    The database keeps only their hashes, and not which report came with which invitation.
    """
    from ldpopt.survey.server import database, draw_invitations

    claim([out], force=False)
    made = read_plan(plan)
    with database(db, made, create=True) as store:
        drawn = draw_invitations(made, store, count)
    create_private(out, "".join(f"{link}{one}\n" for one in drawn).encode())
    say(f"{count:,} invitations in {out}; the database has only their hashes")


def export(
    plan: PlanArgument,
    db: Annotated[str, argument("DATABASE", "reports.db, sqlite:///path or postgresql://...")],
    out: Annotated[Path, option("--out", "-o", "A file *.parquet, or a folder of such files.")] = Path(
        "reports.parquet"
    ),
) -> None:
    """Write collected reports as Parquet, without ids and days, with a manifest (their plan and number)."""
    from ldpopt.survey.server import export_reports

    made = read_plan(plan)
    with progress("exporting"):
        rows = export_reports(made, db, out)
    say(f"{rows:,} reports in {out}")
