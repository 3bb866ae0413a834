"""Privatize answers in files, one batch at a time. An interrupted run can be resumed and ends with the same bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ldpopt.errors import InvalidInput, invalid
from ldpopt.extras import need
from ldpopt.locks import held
from ldpopt.survey.collect.answers import ANSWERS, input_files
from ldpopt.survey.collect.batch import refuse_duplicates
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.commit import forget_note, publish, published, refuse_taken
from ldpopt.survey.collect.randomness.randomness import Memoised, Randomness, default_randomness
from ldpopt.survey.collect.runner import LostWork, Runner, Threads, every
from ldpopt.survey.collect.tasks import Job, PrivatizePartition, find_duplicates, forget
from ldpopt.survey.collect.workfolder import (
    WorkFolder,
    description,
    refuse_others,
    remove,
    remove_left_aside,
    work_of,
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
    answers : a CSV or Parquet file, several, or a folder of them; only the plan's columns are read. The plan's `file`
        says how CSV is written. Excel workbooks (their first sheet) and files of SPSS, Stata and SAS are read, too.
    reports : a path that is not taken. With the ending .csv or .parquet it becomes one file, otherwise a folder of
        partitions: Parquet files if the answers are Parquet, else CSV files. The reports have one row for each answer
        row, in the same order, one column for each question, and the plan's carried columns. The manifest is a record
        of the plan, the number of rows and a checksum. It lies beside a CSV file (``NAME.csv.manifest.json``), in the
        schema of a Parquet file, and in a folder as a file of its own.
    randomness : `Fresh()` is the default for a plan without a respondent column. A plan with one requires the choice to
        be made, usually of `Memoised(key_file)`. `Simulated(rng)` is for trials, and labels the reports as simulated.
    runner : where the partitions are processed; in this thread by default.
    progress : called with (partitions done, partitions in all).

    All reports appear at once, at the end. Until then a work folder ``.NAME.partial`` beside them holds the finished
    partitions. After a kill the same call continues from there, and ends with the same bytes. If the plan's policies
    refuse an answer, the run ends and writes nothing. Errors name rows and columns, never values.

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
    need("pyarrow", "cryptography")
    output = Path(reports)
    output = output.parent.resolve() / output.name
    randomness = default_randomness(plan, randomness)
    files = input_files(answers, ANSWERS)
    single = output.suffix in (".csv", ".parquet")
    if not output.parent.is_dir():
        raise invalid("reports", "a folder that exists", str(output.parent))
    kind = output.suffix if single else files[0].suffix
    kind = "parquet" if kind == ".parquet" else "csv"
    work = work_of(output)
    lock = output.with_name(f".{output.name}.lock")
    with held(lock, "reports", "no other run that writes them"):
        remove_left_aside(work)
        asked = description(plan, files, randomness.mode, kind)
        tally = published(output, asked)
        if tally is None:
            folder = _begin(work, output, plan, files, randomness, kind)
            tally = _run(folder, plan, files, randomness, runner or Threads(), progress)
            publish(folder, plan, output, single, tally, asked)
        remove(work)
    forget_note(output)
    return tally


def _begin(work: Path, output: Path, plan: Plan, files: list[Path], randomness: Randomness, kind: str) -> WorkFolder:
    refuse_taken(output)
    if os.path.lexists(work):
        return WorkFolder.resume(work, plan, files, randomness, kind)
    forget_note(output)  # about reports that are no longer there
    return WorkFolder.create(work, plan, files, randomness, kind)


def _run(
    folder: WorkFolder,
    plan: Plan,
    files: list[Path],
    randomness: Randomness,
    runner: Runner,
    progress: Callable[[int, int], None] | None,
) -> Tally:
    """Do the work that is left and return the tally of all of it.

    The work folder is removed if an answer is refused.
    """
    key_file = str(Path(randomness.key_file).resolve()) if isinstance(randomness, Memoised) else None
    job = Job(str(folder.path), folder.seal, plan.checksum, key_file)
    total = len(folder.partitions)
    try:
        if plan.respondent is not None:
            refuse_duplicates(plan, find_duplicates(folder, job, runner))
        todo = folder.todo()
        done = total - len(todo)
        for _ in every(runner.map(PrivatizePartition(job), todo), len(todo)):
            done += 1
            if progress is not None:
                progress(done, total)
        refuse_others(description(plan, files, randomness.mode, folder.state["kind"]), folder.state, folder.path)
    except InvalidInput:
        remove(folder.path)
        raise
    finally:
        forget()
    if damaged := folder.todo():
        raise LostWork(f"{len(damaged)} of {total} parts are not as they were written; the same call does them again")
    return Tally.total(folder.tallies(), plan)
