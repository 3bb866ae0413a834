"""Mutated files in the folders of interrupted work: refused, or gone on from to what an undisturbed run gives."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from fuzzing import Loader

from experiments.papers import EXPERIMENTS
from experiments.papers.experiment import Table
from experiments.papers.folder import _suspecting, finished, parameters_of, verdict_in
from experiments.papers.folder import run as reproduce
from ldpopt import Divergence, LocalDP, frontier, sweep
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput
from ldpopt.files.atomic import read_text
from ldpopt.frontiers import run as frontier_run
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Memoized
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

UTILITY = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
EXPERIMENT = EXPERIMENTS["m-lemma-1-step"]
SPEC = SurveySpec("s", (QuestionSpec("q", (0, 1, 2)),), respondent="id")
PLAN: Plan = make_plan(SPEC, {"q": (np.ones((3, 3)) + np.eye(3)) / 4})


class _Stop(Exception):
    pass


@cache
def _prepared() -> Path:
    """A place with finished and interrupted work, made once; nothing in it is changed."""
    place = Path(tempfile.mkdtemp(prefix="ldpopt-fuzzing-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    _grid(place / "grid")
    _family(place / "family")
    reproduce(EXPERIMENT, place / "experiment", quick=True)
    (place / "answers").mkdir()
    for file in range(2):
        (place / "answers" / f"{file}.csv").write_text("id,q\n" + "".join(f"{file}-{i},{i % 3}\n" for i in range(4)))
    create_key(place / "key")
    _privatize(place / "whole.csv")

    def stop(done: int, total: int) -> None:
        raise _Stop

    with contextlib.suppress(_Stop):
        _privatize(place / "out.csv", stop)
    return place


def _grid(folder: Path) -> object:
    return frontier(UTILITY, [1.0], [0.2, 0.4], resume=folder).rows


def _family(folder: Path) -> object:
    return sweep(UTILITY, LocalDP, [0.5], resume=folder).rows


def _privatize(output: Path, progress: Callable[[int, int], None] | None = None) -> None:
    place = output.parent if output.name == "whole.csv" or progress else _prepared()
    privatize(PLAN, place / "answers", output, Memoized(place / "key"), progress=progress)


@contextlib.contextmanager
def _copy(source: Path, folder: Path, file: str, data: bytes) -> Iterator[Path]:
    """A copy of a folder, with other contents for one of its files."""
    made = folder / source.name
    shutil.copytree(source, made, symlinks=True)
    try:
        (made / file).write_bytes(data)
        yield made
    finally:
        shutil.rmtree(made)


def _frontier(name: str, file: str, resume: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Reading what is finished; what would be computed again is not, for the time that it takes."""

    def load(data: bytes, folder: Path) -> object:
        real = frontier_run.unordered_results
        frontier_run.unordered_results = lambda *_: (pair for pair in ())  # type: ignore[assignment]
        try:
            with _copy(_prepared() / name, folder, file, data) as made:
                return resume(made)
        finally:
            frontier_run.unordered_results = real

    return load


def _work_folder(file: str) -> Callable[[bytes, Path], object]:
    """A run goes on to the reports that it would have made, or is refused and leaves what is there."""

    def load(data: bytes, folder: Path) -> object:
        try:
            with _copy(_prepared() / ".out.csv.partial", folder, file, data):
                output = folder / "out.csv"
                try:
                    _privatize(output)
                except InvalidInput:
                    assert (folder / ".out.csv.partial").exists()
                    assert not output.exists()
                    raise
                finally:
                    (folder / ".out.csv.partial").mkdir(exist_ok=True)  # for the copy's own removal
                assert output.read_bytes() == (_prepared() / "whole.csv").read_bytes()
                output.unlink()
                output.with_name("out.csv.manifest.json").unlink()
                return True
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(folder / ".out.csv.lock")

    return load


def _experiment(file: str) -> Callable[[bytes, Path], object]:
    """Parameters, rows and verdict are read; what is finished is judged."""

    def load(data: bytes, folder: Path) -> object:
        with _copy(_prepared() / "experiment", folder, file, data) as made:
            verdict_in(made)
            parameters_of(EXPERIMENT, made, True)
            if file == "rows.csv":
                path = made / file
                table = Table.from_csv(read_text(path), str(path))
                finished(table, list(EXPERIMENT.points(EXPERIMENT.quick)))
                with _suspecting(path, True):
                    EXPERIMENT.judge(table)
            return True

    return load


def _seed(*path: str) -> tuple[bytes, ...]:
    return (Path(_prepared(), *path).read_bytes(),)


@cache
def loaders() -> tuple[Loader, ...]:
    """A loader for every file of every kind of folder."""
    made = [
        Loader(f"frontier {name} {file}", _seed(name, file), _frontier(name, file, resume), weight)
        for name, resume in (("grid", _grid), ("family", _family))
        for file, weight in (("problem.json", 2), ("part-000000.json", 6))
    ]
    work = _prepared() / ".out.csv.partial"
    files = sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file())
    made += [Loader(f"work folder {file}", _seed(work.name, file), _work_folder(file), 2) for file in files]
    experiment = ("rows.csv", "parameters.toml", "verdict.json")
    made += [Loader(f"experiment {file}", _seed("experiment", file), _experiment(file), 6) for file in experiment]
    return tuple(made)
