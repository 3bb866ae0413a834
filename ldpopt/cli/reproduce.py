"""``ldpopt reproduce``: the papers' results recomputed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ldpopt.cli.console import output, progress


def reproduce(
    name: Annotated[str, typer.Argument(help="Name of an experiment from --list.", show_default=False)] = "",
    every: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show the experiments with their verdicts.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points: seconds instead of minutes.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for the results, with a folder for each experiment. Finished experiments are not run again.",
            show_default="ldpopt-reproduced, or ldpopt-reproduced-quick",
        ),
    ] = None,
) -> None:
    """Recompute claims of the papers, each with numbers, a picture and a verdict, and write an index page.

    An interrupted run continues where it stopped. ldpopt reproduce gi-theorem-2 --quick
    """
    from ldpopt.errors import Phrase, invalid
    from ldpopt.files import write_text
    from ldpopt.reproduce import EXPERIMENTS, experiment_named, index_page, run

    if bool(name) + every + listed != 1:
        raise invalid("reproduce", "one of NAME, --all and --list", Phrase("several" if name or every else "none"))
    folder = Path("ldpopt-reproduced-quick" if quick else "ldpopt-reproduced") if out is None else out
    if listed:
        _show(folder)
        return
    chosen = list(EXPERIMENTS.values()) if every else [experiment_named(name)]
    if folder.exists() and not folder.is_dir():
        raise invalid(str(folder), "a folder", Phrase("something else"))
    console = output()
    for at, experiment in enumerate(chosen, start=1):
        parameters = experiment.quick if quick else experiment.full
        what = f"{at} of {len(chosen)}: {experiment.name}" if every else experiment.name
        with progress(what, len(list(experiment.points(parameters)))) as step:
            verdict = run(experiment, folder / experiment.name, quick=quick, each=step)
        console.print(f"{experiment.name}: {verdict.outcome.value}. {verdict.detail}", markup=False)
    write_text(folder / "index.html", index_page(folder), force=True)
    console.print(f"wrote {folder / 'index.html'}", markup=False)


def _show(folder: Path) -> None:
    """Print the verdicts: those in the folder, if it has some, else those recorded with this version."""
    from rich.table import Table

    from ldpopt.reproduce import EXPERIMENTS, recorded
    from ldpopt.reproduce.folder import verdict_in

    known: dict[str, Any] = recorded()
    shown = Table(title="The papers' claims against exact values", title_justify="left")
    for head in ("experiment", "verdict", "about", "source", "in what way"):
        shown.add_column(head, no_wrap=head != "in what way")
    for name, experiment in EXPERIMENTS.items():
        verdict = verdict_in(folder / name) or known.get(name) or {"outcome": "not run", "detail": experiment.claim}
        source = experiment.source.split(";")[0].strip("[]")
        shown.add_row(name, verdict["outcome"], experiment.subject.value, source, verdict["detail"])
    output().print(shown, markup=False)
