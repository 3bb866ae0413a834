"""``ldpopt survey``: plan a survey, privatize its answers or collect reports, count them, estimate, and report."""

from __future__ import annotations

import typer

from ldpopt.cli.outputs import Command, Discreet
from ldpopt.cli.survey.collect import aggregate, collect, enter, export, invitations, kit, paper, privatize
from ldpopt.cli.survey.estimate import compare, describe, estimate, regress, report, table, to_r, verify
from ldpopt.cli.survey.plan import consent, new, plan

app = typer.Typer(
    cls=Discreet,
    pretty_exceptions_show_locals=False,
    help="Plan a survey, privatize its answers or collect reports, and estimate from them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    new, plan, consent, privatize, kit, paper, enter, collect, invitations, export, aggregate, estimate, table,
    compare, regress, describe, report, to_r, verify,
):  # fmt: skip
    app.command(cls=Command)(command)
