"""Recompute claims of the papers, from the root of the repository: ``python -m experiments.papers gi-theorem-5``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from experiments.papers.claims import EXPERIMENTS, HOMES, RECORDED, experiment_named, recorded
from experiments.papers.folder import RECORDS, index_page, run, verdict_in
from ldpopt.cli import FOLDER, ProgramCommand, options, progress, refuse_stream, say
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import write_text


@options("""
    name: [NAME] | Name of an experiment from --list.
    all_experiments: --all | Run every experiment.
    listed: --list | Show the experiments with their verdicts.
    record: --record | Run in experiments/papers/records, and record the verdict for --list.
    quick: --quick | Fewer points: seconds instead of minutes.
    out: --out -o | Folder for the results, with a folder for each experiment. Finished experiments are not run again.
      [default: ldpopt-reproduced, or ldpopt-reproduced-quick]
    """)
def reproduce(
    name: str = "", all_experiments: bool = False, listed: bool = False, record: bool = False, quick: bool = False,
    out: Path | None = None,
) -> None:  # fmt: skip
    """Recompute claims of the papers, each with numbers, a picture and a verdict, and write an index page.

    An interrupted run continues where it stopped. python -m experiments.papers gi-theorem-2 --quick
    """
    if bool(name) + all_experiments + listed != 1:
        raise InvalidInput("pass exactly one of NAME, --all and --list")
    if record and (quick or out is not None or listed):
        raise InvalidInput("--record cannot be combined with --quick, --out or --list")
    folder = RECORDS if record else Path("ldpopt-reproduced-quick" if quick else "ldpopt-reproduced")
    folder = folder if out is None else out
    refuse_stream(folder, FOLDER)
    if listed:
        _show(folder)
        return
    chosen = list(EXPERIMENTS.values()) if all_experiments else [experiment_named(name)]
    if folder.exists() and not folder.is_dir():
        raise invalid(str(folder), "a folder", Phrase("something else"))
    verdicts: dict[str, Any] = recorded()
    for number, experiment in enumerate(chosen, start=1):
        parameters = experiment.quick if quick else experiment.full
        title = f"{number} of {len(chosen)}: {experiment.name}" if all_experiments else experiment.name
        with progress(title, len(list(experiment.points(parameters)))) as step:
            verdict = run(experiment, folder / experiment.name, quick=quick, report_point=step)
        verdicts[experiment.name] = verdict.to_dict()
        say(f"{experiment.name}: {verdict.outcome.value}. {verdict.detail}")
    index = folder.parent / "index.html" if record else folder / "index.html"
    write_text(index, index_page(folder, index.parent), force=True)
    say(f"wrote {index}")
    if record:
        in_order = {
            name_in_order: verdicts[name_in_order] for name_in_order in EXPERIMENTS if name_in_order in verdicts
        }
        write_text(RECORDED, strict.json_text(in_order), force=True)


def _show(folder: Path) -> None:
    """Print the verdicts in the folder, or else the recorded ones, and where the code of each claim stands."""
    from rich.table import Table

    verdicts: dict[str, Any] = recorded()
    table = Table(title="The papers' claims against exact values", title_justify="left")
    for head in ("experiment", "verdict", "about", "source", "code", "in what way"):
        table.add_column(head, no_wrap=head != "in what way")
    for name, experiment in EXPERIMENTS.items():
        verdict = verdict_in(folder / name) or verdicts.get(name) or {"outcome": "not run", "detail": experiment.claim}
        source = experiment.source.split(";")[0].strip("[]")
        code = f"claims/{HOMES[name].rpartition('.')[2]}.py"
        table.add_row(name, verdict["outcome"], experiment.subject.value, source, code, verdict["detail"])
    say(table)


app = typer.Typer(pretty_exceptions_show_locals=False)
app.command(cls=ProgramCommand)(reproduce)


if __name__ == "__main__":
    sys.exit(app(standalone_mode=False, prog_name="python -m experiments.papers"))
