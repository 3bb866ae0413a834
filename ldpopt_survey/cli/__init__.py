"""Plan a survey, privatize its answers or collect reports, and estimate from them.

This is ``ldpopt survey``.
"""

from __future__ import annotations

import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from ldpopt.cli import USAGE_ERROR, Command, ShortHelp, from_arrow
from ldpopt.errors import LdpoptError
from ldpopt.extras import need
from ldpopt_survey.cli.collect import aggregate, collect, enter, export, invitations, kit, paper, privatize
from ldpopt_survey.cli.estimate import compare, describe, estimate, regress, report, table, to_r, verify
from ldpopt_survey.cli.plan import consent, new, plan

REQUIRED_MODULES = ("pyarrow", "cryptography", "python_calamine", "fpdf", "jinja2")
"""The modules of the extra `survey`, which some of these commands need."""


class SurveyCommands(ShortHelp, TyperGroup):
    """The survey commands. For an unexpected error they print its type and place, without its message.

    A library may quote a value in its message, and a traceback with local variables shows a whole batch.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        need(*REQUIRED_MODULES, extra="survey")
        try:
            return super().invoke(ctx)
        except (LdpoptError, OSError, MemoryError, ModuleNotFoundError, USAGE_ERROR, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if from_arrow(error):
                raise
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            message = f"unexpected {type(error).__name__} in {place} (not shown, since it may quote answers)"
        # Raised outside the except block, so that the first error is not the context of this one.
        raise LdpoptError(message)


app = typer.Typer(
    cls=SurveyCommands,
    pretty_exceptions_show_locals=False,
    help=(__doc__ or "").split("\n\n")[0],
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    new, plan, consent, privatize, kit, paper, enter, collect, invitations, export, aggregate, estimate, table,
    compare, regress, describe, report, to_r, verify,
):  # fmt: skip
    app.command(cls=Command)(command)
