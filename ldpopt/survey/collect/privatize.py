"""Privatize answers in files: streaming, resumable, and the same bytes however often it is interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from ldpopt.errors import InvalidInput, invalid
from ldpopt.files import sync_folder
from ldpopt.survey.collect.answers import input_files
from ldpopt.survey.collect.batch import refuse_duplicates
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.randomness.randomness import Memoised, Randomness, Simulated, default_randomness
from ldpopt.survey.collect.reports import join, write_manifest
from ldpopt.survey.collect.runner import Runner, Threads
from ldpopt.survey.collect.workfolder import (
    AWAY,
    PARTS,
    PrivatizePartition,
    WorkFolder,
    description,
    find_duplicates,
    locked,
)
from ldpopt.survey.plan.plan import Plan


def privatize(
    plan: Plan,
    answers: str | Path | Sequence[str | Path],
    reports: str | Path,
    randomness: Randomness | None = None,
    runner: Runner | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tally:
    """Write a privatized report for every answer, and tally what the plan's policies did.

    Parameters
    ----------
    answers : a CSV or Parquet file, several, or a folder of them; only the plan's columns are read.
    reports : a path that is not taken. With the ending .csv or .parquet it becomes one file, otherwise a folder
        of partitions of the answers' kind with a manifest. One column for each question, in the order of the
        answers' rows, and the plan's carried columns.
    randomness : `Fresh()` (the default without a respondent column), `Memoised(key_file)` (asked for with one),
        or `Simulated(rng)`, which is labelled in the reports.
    runner : who does the partitions; this thread by default.
    progress : called with (partitions done, partitions in all).

    The reports appear at once, when all are done. Until then a work folder ``.NAME.partial`` beside them holds
    finished partitions; after a kill, the same call goes on from there and ends with the same bytes. An answer
    that the plan's policies refuse ends the run with nothing written. Errors name rows and columns, never values.

    Raises `InvalidInput` for bad answers, a taken path, or a work folder of another plan or other answers.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt.survey import QuestionSpec, SurveySpec, make_plan
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "answers.csv").write_text("vote\\nno\\nyes\\n")
    ...     tally = privatize(plan, Path(folder, "answers.csv"), Path(folder, "reports.csv"))
    ...     Path(folder, "reports.csv").exists(), tally.unknown
    (True, {'vote': 0})
    """
    output = Path(reports)
    output = output.parent.resolve() / output.name
    randomness = default_randomness(plan, randomness)
    files = input_files(answers)
    single = output.suffix in (".csv", ".parquet")
    if output.suffix == ".csv" and isinstance(randomness, Simulated):
        raise invalid("simulated reports", "a folder or a Parquet file, which can be labelled", output.name)
    if not output.parent.is_dir():
        raise invalid("reports", "a folder that exists", str(output.parent))
    kind = (output.suffix if single else files[0].suffix).removeprefix(".")
    work = output.with_name(f".{output.name}.partial")
    with locked(output.with_name(f".{output.name}.lock")):
        for left in output.parent.glob(f"{work.name}{AWAY}*"):
            shutil.rmtree(left)
        folder = _begin(work, output, plan, files, randomness, kind)
        if not (output.exists() and (single or not (work / PARTS).exists())):
            try:
                _run(folder, plan, runner or Threads(), progress)
                _unchanged(folder, plan, files, randomness, kind)
            except InvalidInput:
                folder.remove()
                raise
            _finish(folder, plan, output, single)
        tally = Tally.total(folder.tallies(), plan)
        folder.remove()
    return tally


def _begin(work: Path, output: Path, plan: Plan, files: list[Path], randomness: Randomness, kind: str) -> WorkFolder:
    if not work.exists():
        if output.exists():
            raise invalid("reports", "a path that is not taken", str(output))
        return WorkFolder.create(work, plan, files, randomness, kind)
    folder = WorkFolder.open(work)
    _unchanged(folder, plan, files, randomness, kind)
    if isinstance(randomness, Memoised) and randomness.key().check() != folder.state["key"]:
        raise invalid("key file", "the key that the unfinished run began with", "another", str(work))
    folder.sweep()
    return folder


def _unchanged(folder: WorkFolder, plan: Plan, files: list[Path], randomness: Randomness, kind: str) -> None:
    for name, value in description(plan, files, randomness.mode, kind).items():
        if folder.state.get(name) != value:
            expected = f"the {name} that the unfinished run began with (or delete its work folder)"
            raise invalid("privatize", expected, "another", str(folder.path))


def _run(folder: WorkFolder, plan: Plan, runner: Runner, progress: Callable[[int, int], None] | None) -> None:
    if plan.respondent is not None:
        refuse_duplicates(plan, find_duplicates(folder, plan, runner))
    todo = folder.todo
    total = len(folder.partitions)
    done = total - len(todo)
    for _ in runner.map(PrivatizePartition(str(folder.path), f"privatize {folder.state['run']}"), todo):
        done += 1
        if progress is not None:
            progress(done, total)


def _finish(folder: WorkFolder, plan: Plan, output: Path, single: bool) -> None:
    folder.sweep()
    parts = [folder.part(index) for index in range(len(folder.partitions))]
    if single:
        join(parts, output)
        return
    if output.exists():
        raise invalid("reports", "a path that is not taken", str(output))
    rows = sum(tally.rows for tally in folder.tallies())
    write_manifest(folder.path / PARTS, plan, folder.state["mode"], [part.name for part in parts], rows)
    (folder.path / PARTS).rename(output)
    sync_folder(output.parent)
