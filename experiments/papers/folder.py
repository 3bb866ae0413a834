"""An experiment and a folder -> parameters, rows, picture and verdict in it, and the page that lists such folders.

Finished rows survive an interruption.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.papers.claims import EXPERIMENTS, HOMES, experiment_named
from experiments.papers.experiment import Cell, Experiment, Outcome, Parameters, Row, Table, Verdict
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import read_text, write_bytes_atomically, write_text
from ldpopt.plots import picture
from ldpopt.values.references import cited, reference
from ldpopt_survey.reports.page import render

RECORDS = Path(__file__).resolve().parent / "records"
"""The folder with a folder for each claim, as recorded."""

PARAMETERS, ROWS, PICTURE, README, VERDICT = "parameters.toml", "rows.csv", "picture.png", "README.md", "verdict.json"
FILES = {"parameters": PARAMETERS, "rows": ROWS, "picture": PICTURE, "readme": README}


def parameters_of(experiment: Experiment, folder: Path, quick: bool) -> Parameters:
    """Read the parameters in the folder, or return those of the experiment."""
    path = folder / PARAMETERS
    if not path.exists():
        return experiment.quick if quick else experiment.full
    stated = strict.toml_value(read_text(path), str(path))
    chosen = stated.get("quick", {}) if quick else {name: value for name, value in stated.items() if name != "quick"}
    if not isinstance(chosen, dict) or set(chosen) != set(experiment.full):
        raise invalid(str(path), f"the parameters {', '.join(experiment.full)}", Phrase(", ".join(chosen) or "none"))
    for name, value in chosen.items():
        if not _has_same_form(value, (experiment.full[name], experiment.quick[name])):
            raise invalid(str(path), f"{name} to be as in {experiment.full[name]}", value)
    return chosen


def _has_same_form(value: Any, reference_values: tuple[Any, ...]) -> bool:
    """True if a parameter has the form of the experiment's: lists of the same form, words, or finite numbers."""
    if isinstance(value, list):
        inner = tuple(part for form in reference_values if isinstance(form, (list, tuple)) for part in form)
        return bool(inner) and all(_has_same_form(part, inner) for part in value)
    if isinstance(value, (bool, str)):
        return any(isinstance(form, type(value)) for form in reference_values)
    fits = (int, float) if isinstance(value, int) else float
    numbers = [form for form in reference_values if not isinstance(form, bool)]
    return isinstance(value, (int, float)) and abs(value) <= 1e308 and any(isinstance(form, fits) for form in numbers)


def run(
    experiment: Experiment, folder: Path, *, quick: bool = False, report_point: Callable[..., None] = lambda *_: None
) -> Verdict:
    """Compute the missing rows, then judge, draw and describe. Returns the verdict.

    Rows are written after every point, so an interrupted run continues where it stopped. A point counts as done if the
    rows in the folder have its cells. Delete ``rows.csv`` to begin anew. `InvalidInput` if the quick and the full form
    would share a folder. each : called after every point.

    >>> from tempfile import TemporaryDirectory
    >>> from experiments.papers import EXPERIMENTS
    >>> with TemporaryDirectory() as folder:
    ...     run(EXPERIMENTS["m-lemma-1-step"], Path(folder, "step"), quick=True).outcome.value
    'fails'
    """
    left = verdict_in(folder)
    if left is not None and left["quick"] is not quick:
        form = "quick" if left["quick"] else "full"
        raise invalid(str(folder), "a folder for the same form of the experiment", Phrase(f"one of its {form} form"))
    folder.mkdir(parents=True, exist_ok=True)
    parameters = parameters_of(experiment, folder, quick)
    if not (folder / PARAMETERS).exists():
        write_text(folder / PARAMETERS, _toml(experiment))
    resumed = (folder / ROWS).exists()
    table = compute(experiment, parameters, folder / ROWS, report_point)
    with _suspecting(folder / ROWS, resumed):
        verdict, figure = experiment.judge(table), picture(experiment.draw(table))
    write_bytes_atomically(folder / PICTURE, figure, force=True)
    write_text(folder / VERDICT, strict.json_text(verdict.to_dict() | {"quick": quick}), force=True)
    readme = render("README.md.code", "experiments.papers", experiment=experiment, verdict=verdict,
                    papers=map(reference, cited(experiment.source)), files=FILES,
                    code=f"{HOMES[experiment.name].replace('.', '/')}.py")  # fmt: skip
    write_text(folder / README, readme, force=True)
    return verdict


def compute(
    experiment: Experiment,
    parameters: Parameters,
    path: Path | None = None,
    report_point: Callable[..., None] = lambda *_: None,
) -> Table:
    """Compute the rows of all points, in their order; stored rows are not computed again.

    parameters : as in `Experiment.full`.
    path : the file of stored rows; None to store nothing.

    >>> from experiments.papers import EXPERIMENTS
    >>> table = compute(EXPERIMENTS["m-lemma-1-step"], {"epsilon": [0.1]})
    >>> table.column("printed").round(6), table.column("repaired")
    (array([0.02]), array([0.2]))
    """
    points = list(experiment.points(parameters))
    stored = Table.from_csv(read_text(path), str(path)) if path is not None and path.exists() else Table(())
    rows: list[Row] = []
    for point, stored_rows in zip(points, finished(stored, points), strict=True):
        rows += stored_rows or experiment.rows_at(point)
        if path is not None and not stored_rows:
            write_text(path, Table(tuple(rows)).to_csv(), force=True)
        report_point()
    table = Table(tuple(rows))
    if path is not None:
        write_text(path, table.to_csv(), force=True)
    return table


def finished(table: Table, points: list[Row]) -> list[list[Row]]:
    """List the rows of the table with the cells of each point."""
    kinds: dict[tuple[str, ...], dict[tuple[Cell, ...], list[Row]]] = {
        tuple(point): defaultdict(list) for point in points
    }
    for row in table.rows:
        for names, by in kinds.items():
            if all(name in row for name in names):
                by[tuple(row[name] for name in names)].append(row)
    return [kinds[tuple(point)].get(tuple(point.values()), []) for point in points]


@contextmanager
def _suspecting(path: Path, resumed: bool) -> Iterator[None]:
    """Turn errors on rows that were read from a file into an `InvalidInput` that names the file."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        if not resumed or isinstance(error, InvalidInput):
            raise
        expected = "the rows of this experiment (without the file, they are computed again)"
        raise invalid(str(path), expected, Phrase(f"others ({type(error).__name__})")) from error


def verdict_in(folder: Path) -> dict[str, Any] | None:
    """Read the verdict of a run in a folder, or return None."""
    path = folder / VERDICT
    if not path.exists():
        return None
    verdict = strict.json_value(read_text(path), str(path))
    kinds = {"outcome": str, "detail": str, "figures": dict, "quick": bool}
    fits = isinstance(verdict, dict) and all(isinstance(verdict.get(name), kind) for name, kind in kinds.items())
    if not fits or verdict["outcome"] not in [outcome.value for outcome in Outcome]:
        raise invalid(str(path), "a verdict with outcome, detail, figures and quick", Phrase("something else"))
    return dict(verdict)


def _toml(experiment: Experiment) -> str:
    def lines(parameters: Parameters) -> str:
        named = {n if re.fullmatch("[A-Za-z0-9_-]+", n) else json.dumps(n): v for n, v in parameters.items()}
        return "".join(f"{name} = {json.dumps(value).replace('Infinity', 'inf')}\n" for name, value in named.items())

    return f"{lines(experiment.full)}\n[quick]\n{lines(experiment.quick)}"


def main(script: str) -> None:
    """Run ``run.py`` in an experiment's folder, or with ``--quick`` in a temporary folder."""
    import argparse
    from tempfile import TemporaryDirectory

    folder = Path(script).resolve().parent
    experiment = experiment_named(folder.name)
    parser = argparse.ArgumentParser(description=experiment.claim)
    parser.add_argument("--quick", action="store_true", help="the short form; only the verdict is shown")
    if parser.parse_args().quick:
        with TemporaryDirectory() as temporary:
            verdict = run(experiment, Path(temporary), quick=True)
    else:
        verdict = run(experiment, folder)
    print(f"{experiment.name}: {verdict.outcome.value}. {verdict.detail}")


CLAUSES = {
    "holds": ("holds", "hold"), "holds loosely": ("holds loosely", "hold loosely"), "fails": ("fails", "fail"),
    "vacuous": ("is vacuous", "are vacuous"),
}  # fmt: skip
"""The verb of one claim and that of several, by outcome."""
COLOURS = {"holds": "#00664b", "holds loosely": "#7a5200", "fails": "#a62a00", "vacuous": "#4b4b8f"}


def index_page(folder: Path, page_folder: Path | None = None) -> str:
    """Build the index page of all experiments that have run in `folder`, with their figures.

    page_folder : the folder of the page, by default `folder` itself.

    >>> "Of 0 claims" in index_page(Path("nowhere"))
    True
    """
    claim_verdicts = ((claim, verdict_in(folder / claim.name)) for claim in EXPERIMENTS.values())
    verdicts = [(claim, verdict) for claim, verdict in claim_verdicts if verdict is not None]
    counts = Counter(verdict["outcome"] for _, verdict in verdicts)
    return render(
        "index.html", "experiments.papers", title="The papers, recomputed", verdicts=verdicts, colours=COLOURS,
        place="" if page_folder is None else f"{folder.relative_to(page_folder).as_posix()}/".removeprefix("./"),
        counts=", ".join(f"{counts[outcome]} {verbs[counts[outcome] > 1]}" for outcome, verbs in CLAUSES.items()
                         if counts[outcome]),
        papers=dict.fromkeys(reference(key) for claim, _ in verdicts for key in cited(claim.source)), files=FILES,
    )  # fmt: skip
