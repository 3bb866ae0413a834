"""An experiment and a folder -> parameters, rows, picture and verdict in it, and the page that lists such folders.

Finished rows survive an interruption.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from ldpopt import strictjson, stricttoml
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import read_text, write_bytes_atomically, write_text
from ldpopt.plots import picture
from ldpopt.references import cited, reference
from ldpopt.reports import page
from ldpopt.reproduce.claims import EXPERIMENTS, experiment_named
from ldpopt.reproduce.experiment import Cell, Experiment, Outcome, Parameters, Row, Table, Verdict

PARAMETERS, ROWS, PICTURE, README, VERDICT = "parameters.toml", "rows.csv", "picture.png", "README.md", "verdict.json"


def parameters_of(experiment: Experiment, folder: Path, quick: bool) -> Parameters:
    """The parameters in the folder, or those of the experiment if the folder has none yet."""
    path = folder / PARAMETERS
    if not path.exists():
        return experiment.quick if quick else experiment.full
    given = stricttoml.loads(read_text(path), str(path))
    chosen = given.get("quick", {}) if quick else {name: value for name, value in given.items() if name != "quick"}
    if not isinstance(chosen, dict) or set(chosen) != set(experiment.full):
        raise invalid(str(path), f"the parameters {', '.join(experiment.full)}", Phrase(", ".join(chosen) or "none"))
    for name, value in chosen.items():
        if not _alike(value, (experiment.full[name], experiment.quick[name])):
            raise invalid(str(path), f"{name} to be as in {experiment.full[name]}", value)
    return chosen


def _alike(value: Any, own: tuple[Any, ...]) -> bool:
    """Whether a parameter has the form of the experiment's own: lists of the same form, words, or finite numbers."""
    if isinstance(value, list):
        inner = tuple(part for one in own if isinstance(one, (list, tuple)) for part in one)
        return bool(inner) and all(_alike(part, inner) for part in value)
    if isinstance(value, (bool, str)):
        return any(isinstance(one, type(value)) for one in own)
    fits = (int, float) if isinstance(value, int) else float
    numbers = [one for one in own if not isinstance(one, bool)]
    return isinstance(value, (int, float)) and abs(value) <= 1e308 and any(isinstance(one, fits) for one in numbers)


def run(
    experiment: Experiment, folder: Path, *, quick: bool = False, each: Callable[..., None] = lambda *_: None
) -> Verdict:
    """Compute the missing rows, then judge, draw and describe. Returns the verdict.

    Rows are written after every point, so an interrupted run continues where it stopped. A point counts as done if the
    rows in the folder have its cells. Delete ``rows.csv`` to begin anew. `InvalidInput` if the quick and the full form
    would share a folder. each : called after every point.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt.reproduce import EXPERIMENTS
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
    table = compute(experiment, parameters, folder / ROWS, each)
    with _suspecting(folder / ROWS, resumed):
        verdict, drawn = experiment.judge(table), picture(experiment.draw(table))
    write_bytes_atomically(folder / PICTURE, drawn, force=True)
    write_text(folder / VERDICT, strictjson.dumps(verdict.to_dict() | {"quick": quick}), force=True)
    write_text(folder / README, _readme(experiment, verdict), force=True)
    return verdict


def compute(
    experiment: Experiment,
    parameters: Parameters,
    path: Path | None = None,
    each: Callable[..., None] = lambda *_: None,
) -> Table:
    """The rows of all points, in their order. Rows in the file at `path` are not computed again.

    parameters : as in `Experiment.full`. path : the file in which rows are kept; None to keep nothing.

    >>> from ldpopt.reproduce import EXPERIMENTS
    >>> table = compute(EXPERIMENTS["m-lemma-1-step"], {"epsilons": [0.1]})
    >>> table.column("printed").round(6), table.column("repaired")
    (array([0.02]), array([0.2]))
    """
    finished = Finished(Table.from_csv(read_text(path), str(path)) if path is not None and path.exists() else Table(()))
    rows: list[Row] = []
    for point in experiment.points(parameters):
        done = finished.at(point)
        rows += done or experiment.rows_at(point)
        if path is not None and not done:
            write_text(path, Table(tuple(rows)).to_csv(), force=True)
        each()
    table = Table(tuple(rows))
    if path is not None:
        write_text(path, table.to_csv(), force=True)
    return table


class Finished:
    """The rows of a table, indexed so that they are found quickly by some of their cells."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._by: dict[tuple[str, ...], dict[tuple[Cell, ...], list[Row]]] = {}

    def at(self, point: Row) -> list[Row]:
        """The rows with the cells of `point`."""
        names = tuple(point)
        if names not in self._by:
            self._by[names] = defaultdict(list)
            for row in self._table.rows:
                if all(name in row for name in names):
                    self._by[names][tuple(row[name] for name in names)].append(row)
        return self._by[names].get(tuple(point.values()), [])


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
    """The verdict that a run left in a folder, or None. `InvalidInput` for a file that is not a verdict."""
    path = folder / VERDICT
    if not path.exists():
        return None
    verdict = strictjson.loads(read_text(path), str(path))
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


def _readme(experiment: Experiment, verdict: Verdict) -> str:
    papers = "\n".join(f"- {reference(key)}" for key in cited(experiment.source))
    figures = "\n".join(f"| {name} | {value:.10g} |" for name, value in verdict.figures.items())
    return f"""# {experiment.name}

**Claim.** {experiment.claim}

**Source.** {experiment.source}: {experiment.subject.value}

{papers}

**Verdict: {verdict.outcome.value}.** {verdict.detail}

| number | value |
|---|---|
{figures}

![{experiment.caption}]({PICTURE})

{experiment.caption}

Computed by `ldpopt reproduce {experiment.name}` from `{PARAMETERS}`; all numbers are in `{ROWS}`. This file is
written by the run, the verdict included.
"""


def main(script: str) -> None:
    """The program of ``run.py`` in an experiment's folder: runs there, or with ``--quick`` in a temporary folder."""
    import argparse
    from tempfile import TemporaryDirectory

    folder = Path(script).resolve().parent
    experiment = experiment_named(folder.name)
    parser = argparse.ArgumentParser(description=experiment.claim)
    parser.add_argument("--quick", action="store_true", help="the short form; only the verdict is shown")
    if parser.parse_args().quick:
        with TemporaryDirectory() as away:
            verdict = run(experiment, Path(away), quick=True)
    else:
        verdict = run(experiment, folder)
    print(f"{experiment.name}: {verdict.outcome.value}. {verdict.detail}")


PLURAL = {Outcome.HOLDS: "hold", Outcome.LOOSELY: "hold loosely", Outcome.FAILS: "fail"}
COLOUR = {Outcome.HOLDS: "#00664b", Outcome.LOOSELY: "#7a5200", Outcome.FAILS: "#a62a00"}


def index_page(folder: Path) -> str:
    """The index page of `folder`, about all experiments that have run there, with the pictures from their folders.

    >>> "Of 0 claims" in index_page(Path("nowhere"))
    True
    """
    verdicts = {name: verdict for name in EXPERIMENTS if (verdict := verdict_in(folder / name)) is not None}
    counts = Counter(Outcome(verdict["outcome"]) for verdict in verdicts.values())
    said = ", ".join(f"{counts[outcome]} {PLURAL[outcome]}" for outcome in Outcome if counts[outcome])
    rows, sections = [], []
    for name, verdict in verdicts.items():
        one, outcome = EXPERIMENTS[name], verdict["outcome"]
        texts = (one.source, one.subject.value, one.caption, one.claim, verdict["detail"])
        source, subject, caption, claim, detail = map(escape, texts)
        coloured = f'<strong style="color: {COLOUR[Outcome(outcome)]}">{outcome}</strong>'
        rows.append(
            f'<tr><td><a href="#{name}">{name}</a></td><td>{source}</td><td>{subject}</td><td>{coloured}</td></tr>'
        )
        sections.append(
            f"<h2 id=\"{name}\">{name}: {coloured}</h2><p>{claim} <span class='soft'>{source}</span></p>"
            f"<p><strong>{outcome.capitalize()}.</strong> {detail}</p>"
            f'<figure><img src="{name}/{PICTURE}" alt="{caption}" style="max-height: 34rem">'
            f"<figcaption>{caption}</figcaption></figure>"
            f'<p class="soft"><a href="{name}/{ROWS}">all numbers</a>, <a href="{name}/{README}">description</a></p>'
        )
    head = "<tr><th>experiment</th><th>source</th><th>about</th><th>verdict</th></tr>"
    papers = dict.fromkeys(key for name in verdicts for key in cited(EXPERIMENTS[name].source))
    body = [
        "<h1>The papers, recomputed</h1>",
        '<p class="lead">Every claim below is computed anew and set beside exact values. It <em>holds</em>, it '
        "<em>holds loosely</em> (the bound is right but not attained; by how much is said), or it <em>fails</em>, "
        "with a counterexample. What a claim is to its paper is said too: a false <em>step of a proof</em> need not "
        f"make the statement false. Of {len(verdicts)} claims {said}.</p>",
        f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>',
        *sections,
        "<h2>Papers</h2>",
        *(f'<p class="soft">{escape(str(reference(key)))}</p>' for key in papers),
    ]
    return page("The papers, recomputed", body)
