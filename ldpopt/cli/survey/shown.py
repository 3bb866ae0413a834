"""Printing tables of results on standard output, or writing them to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.console import output
from ldpopt.cli.outputs import claim, write_all

if TYPE_CHECKING:
    from ldpopt.reports.tables import ResultTable

_RESULTS = "Results"

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="text, csv, xlsx, html, md or json; by default from the name of --out, or text.",
        rich_help_panel=_RESULTS,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Write to this file instead of standard output.",
        rich_help_panel=_RESULTS,
        show_default=False,
    ),
]


def chosen(format: str | None, out: Path | None, force: bool) -> str:
    """The chosen format. An unknown format, or one that cannot be printed, is refused before the work begins."""
    from ldpopt.errors import Phrase, invalid
    from ldpopt.reports.tables import FORMATS

    if out is not None:
        claim([out], force)
    by_name = "" if out is None else out.suffix.removeprefix(".").lower()
    made = format or {"txt": "text", "": "text", "htm": "html", "markdown": "md"}.get(by_name, by_name)
    if made not in FORMATS:
        raise invalid("--format", f"one of {', '.join(FORMATS)}", Phrase(made))
    if made == "xlsx" and out is None:
        raise invalid("--format xlsx", "a file to write to (--out results.xlsx)", Phrase("none"))
    return made


def show(table: ResultTable, format: str, out: Path | None, force: bool) -> None:
    """Write the table to `out`, or print it."""
    made = table.in_format(format)
    if out is None:
        sys.stdout.write(made.decode())
        return
    write_all({out: made}, force)
    output().print(f"wrote {out}", markup=False)
