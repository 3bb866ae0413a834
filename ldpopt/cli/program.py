"""The program `app`: its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.check import check, verify
from ldpopt.cli.design import design, frontier
from ldpopt.cli.groups import Program
from ldpopt.cli.pages import demo, reproduce, studio
from ldpopt.cli.survey import app as survey
from ldpopt.version import __version__

app = typer.Typer(
    cls=Program,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # local variables may be answers, ids and keys
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 bad input (one line on standard error, nothing written), 1 no usable answer, "
    "130 interrupted.",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"ldpopt {__version__}")
        raise typer.Exit


@app.callback()
def ldpopt(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Design, certify and measure locally private mechanisms."""


for command in (demo, design, verify, check, frontier, reproduce, studio):
    app.command()(command)
app.add_typer(survey, name="survey")
