"""``ldpopt demo``: the demonstration on real survey data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.outputs import claim_folder, free_folder, write_folder

if TYPE_CHECKING:
    from rich.table import Table

    from ldpopt.demo import Answered


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="New folder for the demonstration.", show_default="ldpopt-demo, or ldpopt-demo-2, ..."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder that already exists.")] = False,
) -> None:
    """Tell the voters of 1996 apart from privatized income and party: designs, proofs, pictures and a report."""
    folder = free_folder("ldpopt-demo") if out is None else out
    claim_folder(folder, force)
    with progress("designing", 1) as _:
        from ldpopt.demo import run, steps
    with progress("designing and proving", steps()) as step:
        answered, files = run(step)
    write_folder(folder, files, force)
    console = output()
    for one in answered:
        console.print(_summary(one))
    console.print(f"{len(files)} files in {folder}; start with {folder / 'report.html'}", markup=False)


def _summary(one: Answered) -> Table:
    from rich.table import Table

    from ldpopt.reports.words import verdict

    shown = Table(
        title=f"{one.title}: {one.names[0]} against {one.names[1]}, {len(one.utility.p0)} answers", title_justify="left"
    )
    for name in ("ε", "cap η", "kept (nats)"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict")
    for (epsilon, eta), design in one.designs.items():
        shown.add_row(f"{epsilon:g}", "none" if eta is None else f"{eta:g}", f"{design.value:.4g}", verdict(design))
    return shown
