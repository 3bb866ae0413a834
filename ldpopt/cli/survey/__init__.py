"""``ldpopt survey``: plan a survey, privatize its answers or collect reports, count them, estimate, and report."""

from __future__ import annotations

import typer

from ldpopt.cli.survey.aggregate import aggregate
from ldpopt.cli.survey.collect import collect
from ldpopt.cli.survey.compare import compare
from ldpopt.cli.survey.describe import describe
from ldpopt.cli.survey.discreet import Discreet
from ldpopt.cli.survey.estimate import estimate
from ldpopt.cli.survey.export import export
from ldpopt.cli.survey.invitations import invitations
from ldpopt.cli.survey.kit import kit
from ldpopt.cli.survey.new import new
from ldpopt.cli.survey.paper import enter, paper
from ldpopt.cli.survey.plan import plan
from ldpopt.cli.survey.privatize import privatize
from ldpopt.cli.survey.regress import regress
from ldpopt.cli.survey.report import report
from ldpopt.cli.survey.table import table
from ldpopt.cli.survey.verify import verify

app = typer.Typer(
    cls=Discreet,
    pretty_exceptions_show_locals=False,
    help="Plan a survey, privatize its answers or collect reports, and estimate from them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    new, plan, privatize, kit, paper, enter, collect, invitations, export, aggregate, estimate, table, compare, regress,
    describe, report, verify,
):  # fmt: skip
    app.command()(command)
