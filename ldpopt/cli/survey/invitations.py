"""``ldpopt survey invitations``: random words, each of which allows one submission to a round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output
from ldpopt.cli.outputs import claim
from ldpopt.cli.survey.collect import DatabaseOption
from ldpopt.cli.survey.files import PlanArgument, read_plan


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
