"""Answers in files -> reports in files, one batch at a time. An interrupted run resumes and ends with the same bytes.

Each task of a run does one piece of work in the work folder, and writes the same bytes if it runs twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import need
from ldpopt.files import strict
from ldpopt.files.atomic import hold_lock
from ldpopt_survey.collect.answers import ANSWER_SUFFIXES, batches, input_files, refuse_nested
from ldpopt_survey.collect.batch import (
    Privatizer,
    Rows,
    bucket_count,
    columns_of,
    duplicates_in_bucket,
    pack_identities,
    refuse_duplicates,
    require_columns,
)
from ldpopt_survey.collect.coding import Tally
from ldpopt_survey.collect.commit import (
    forget_note,
    publish,
    read_published_tally,
    refuse_existing,
    refuse_other_files,
    remove_replaced,
    write_reports,
)
from ldpopt_survey.collect.leaks import find_leaks, refuse_leaks, sampled_rows
from ldpopt_survey.collect.ledger import NO_ROWS, Ledger, Marks, RowMarker
from ldpopt_survey.collect.manifest import SIMULATED
from ldpopt_survey.collect.people import Numbers, distinct, marks_of
from ldpopt_survey.collect.randomness import Memoised, Randomness, default_randomness
from ldpopt_survey.collect.runner import LostWork, Runner, Threads, yield_all
from ldpopt_survey.collect.words import read_key
from ldpopt_survey.collect.workfolder import (
    BEYOND,
    DROPPED,
    KEY,
    PLAN,
    WorkFolder,
    description,
    refuse_copies,
    refuse_others,
    remove,
    remove_left_aside,
    work_of,
)
from ldpopt_survey.datafiles.pieces import names_of
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.records import dump, load


@dataclass(frozen=True)
class Job:
    """The data that a worker needs of a run: its folder and its seal, so that the folder of another run is recognised.

    plan : the checksum of the caller's plan. key_file : the caller's key file, or None for the run's own key. ledger :
        the ledger of privacy, or None for marks under the run's own key.
    """

    work: str
    seal: str
    plan: str
    key_file: str | None
    ledger: str | None = None

    @property
    def folder(self) -> WorkFolder:
        """The work folder; `InvalidInput` if it belongs to another run."""
        return WorkFolder.open(Path(self.work), self.seal)


@lru_cache(maxsize=2)
def _open_job(job: Job, _: str) -> tuple[WorkFolder, Privatizer]:
    """The work folder and the privatizer, which all tasks of one stage in a process share."""
    folder = job.folder
    plan = Plan.from_json((folder.path / PLAN).read_bytes())
    if plan.checksum != job.plan:
        raise invalid("plan", "the one that the run was called with", "another", str(folder.path / PLAN))
    key = read_key(job.key_file or folder.path / KEY)
    if key.check() != folder.state["key"]:
        raise invalid("key file", "the key that the unfinished run began with", "another", str(folder.path))
    return folder, Privatizer(plan, folder.state["mode"], key)


@lru_cache(maxsize=2)
def _secret(job: Job, _: str) -> bytes:
    """The key of the marks of a run's rows."""
    if job.ledger is not None:
        return Ledger(Path(job.ledger)).secret()
    return read_key(job.key_file or job.folder.path / KEY).derive(b"ldpopt marks")


def forget_keys() -> None:
    """Erase the cached keys of earlier tasks in this process."""
    _open_job.cache_clear()
    _secret.cache_clear()


def spill_partition(job: Job, buckets: int, index: int) -> None:
    """Write the pseudonyms of one partition's respondents, as a task of a run."""
    folder, privatizer = _open_job(job, "spill")
    if folder.sealed(folder.spill(index)) is not None and folder.sealed(folder.people(index)) is not None:
        return
    part, pseudonyms, marks = folder.partitions[index], [], []
    _require_columns(privatizer, folder, index)
    row = part.first_row
    for batch in batches(part, [str(privatizer.plan.respondent)]):
        ids = privatizer.ids(batch, row)
        pseudonyms.append(privatizer.source.identities(ids))
        marks.append(marks_of(ids, _secret(job, ""), privatizer.plan.name))
        row += batch.num_rows
    identities = np.concatenate([np.empty((0, 2), np.uint64), *pseudonyms])
    folder.write_sealed(folder.spill(index), pack_identities(identities, part.first_row, buckets))
    folder.write_sealed(folder.people(index), np.concatenate([np.empty(0, "<u8"), *marks]).astype("<u8").tobytes())


def search_bucket(job: Job, buckets: int, bucket: int) -> Rows:
    """Find the duplicate rows of one bucket, as a task of a run."""
    folder = job.folder
    paths = [folder.spill(index) for index in range(len(folder.partitions))]
    return duplicates_in_bucket(paths, bucket, buckets)


def privatize_partition(job: Job, index: int) -> int:
    """Write the reports of one partition, and then the record that they are complete."""
    folder, privatizer = _open_job(job, "privatize")
    dropped = NO_ROWS
    if privatizer.plan.respondent is not None:
        doubles, beyond = folder.rows(DROPPED), folder.rows(BEYOND)
        if doubles is None or beyond is None:
            raise invalid("privatize", "the rows to leave out", Phrase("none"), str(folder.path / DROPPED))
        dropped = np.union1d(doubles, beyond)
    part = folder.partitions[index]
    _require_columns(privatizer, folder, index)
    columns = [part_answer.column for question in privatizer.plan.questions for part_answer in question.answers]
    marking = RowMarker(privatizer.columns, list(dict.fromkeys(columns)), _secret(job, ""))
    marked = marking.passing(batches(part, privatizer.columns, columns), part.first_row, dropped)
    table, tally = privatizer.partition(marked, index, part.first_row, dropped)
    folder.write_sealed(folder.marks(index), strict.json_text(dump(marking.marks)).encode())
    write_reports(folder.part(index), table)
    folder.record(index, tally)
    return index


def find_duplicates(folder: WorkFolder, job: Job, runner: Runner) -> Rows:
    """The numbers of the rows whose respondent has an earlier row. They are found once and then kept in the folder."""
    rows, parts = folder.rows(DROPPED), folder.partitions
    if rows is None or any(folder.sealed(folder.people(index)) is None for index in range(len(parts))):
        buckets = bucket_count(sum(part.rows for part in parts))
        for _ in yield_all(runner.map(partial(spill_partition, job, buckets), range(len(parts))), len(parts)):
            pass
        duplicates: list[Any] = list(
            yield_all(runner.map(partial(search_bucket, job, buckets), range(buckets)), buckets)
        )
        rows = np.sort(np.concatenate([np.empty(0, np.int64), *duplicates]))
        folder.write_sealed(folder.path / DROPPED, rows.astype("<i8").tobytes())
    for index in range(len(folder.partitions)):
        folder.spill(index).unlink(missing_ok=True)
    return rows


def listed_columns(plan: Plan) -> list[str]:
    """The columns in whose cells a plan reads lists of entries, and that are not published as they are."""
    columns = {part.column for question in plan.questions for part in question.answers if part.reading.separator}
    return sorted(columns - set(plan.carry))


def _require_columns(privatizer: Privatizer, folder: WorkFolder, index: int) -> None:
    """`InvalidInput` unless every file of a partition has the needed columns, with plain values."""
    for path in dict.fromkeys(piece.path for piece in folder.partitions[index].pieces):
        require_columns(privatizer.columns, names_of(Path(path), privatizer.plan.file), path)
        refuse_nested(Path(path), privatizer.columns, privatizer.plan.carry, listed_columns(privatizer.plan))


def privatize(
    plan: Plan,
    answers: str | Path | Sequence[str | Path],
    reports: str | Path,
    randomness: Randomness | None = None,
    runner: Runner | None = None,
    progress: Callable[[int, int], None] | None = None,
    alike: bool = False,
    ledger: str | Path | None = None,
    leave_out: bool = False,
    force: bool = False,
) -> Tally:
    """Write a privatized report for every answer, and tally the effects of the plan's policies.

    Parameters
    ----------
    answers : a CSV or Parquet file, several, or a folder of them; only the plan's columns are read. The plan's `file`
        says how CSV is written. Rows at the end of CSV and of a workbook whose cells are all empty are nobody. Excel
        workbooks (their first sheet) and files of SPSS, Stata and SAS are read, too.
    reports : a path that is not taken, or with `force` one with earlier reports. With the ending .csv or .parquet it
        becomes one file, otherwise a folder of partitions: Parquet files if the answers are Parquet, else CSV files.
        The reports have one row for each answer row, in the same order, one column for each question, and the plan's
        carried columns. The manifest is a record of the plan, the number of rows and a checksum. It lies next to a CSV
        file (``NAME.csv.manifest.json``), in the schema of a Parquet file, and in a folder as a file of its own.
    randomness : `Fresh()` is the default for a plan without a respondent column. A plan with one requires the choice to
        be made, usually of `Memoised(key_file)`. `Simulated(rng)` is for trials, and labels the reports as simulated.
    runner : where the partitions are processed; in this thread by default.
    progress : called with (partitions done, partitions in all).
    alike : files with the same content are of different people. Otherwise a plan without respondents refuses them,
        as a second report of the same answers spends their epsilon twice. One file under two names is always refused.
    ledger : the ledger of privacy, a file that is made by the first run; the commands keep it next to the plan.
        Answers, or a stretch of them, of which other reports were drawn in the same round are refused, whatever the
        writing or the name of their file; those of other rounds are counted. Rows in another order are recognised where
        they differ enough. Without one, only the rows of this run are compared with each other. Of a plan with a
        respondent column it also knows, by keyed marks of ids, the rounds that each person answered, under all plans of
        the survey that share it. Who has other reports of this round, or would have more than the rounds or the epsilon
        they were told of, is refused, before anything is drawn.
    leave_out : leave these people out, instead of refusing all answers.
    force : replace the reports that are there, once the new ones are complete. Only reports with a manifest are
        replaced, and reports of people only by others of people. The ledger keeps the epsilon spent on the old ones.

    All reports appear at once, at the end. Until then a work folder ``.NAME.partial`` next to them holds the finished
    partitions. After a kill the same call continues from there, and ends with the same bytes. If the plan's policies
    refuse an answer, the run ends and writes nothing. Errors name rows and columns, never values.

    Raises `InvalidInput` for bad answers, a taken path, or a work folder of another plan or other answers.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
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
    files = input_files(answers, ANSWER_SUFFIXES)
    single = output.suffix in (".csv", ".parquet")
    if not output.parent.is_dir():
        raise invalid("reports", "a folder that exists", str(output.parent))
    if str(output) != str(output).encode("utf-8", "replace").decode():  # pyarrow opens no other
        raise invalid("reports", "a path in UTF-8", output.name)
    kind = output.suffix if single else files[0].suffix
    kind = "parquet" if kind == ".parquet" else "csv"
    work = work_of(output)
    lock = output.with_name(f".{output.name}.lock")
    with hold_lock(lock, "reports", "no other run that writes them"):
        remove_left_aside(work)
        run_description = description(plan, files, randomness.mode, kind) | {"leave_out": leave_out}
        tally = read_published_tally(output, run_description)
        if tally is None:
            if force:
                refuse_other_files(output, single, randomness.mode)
            else:
                refuse_existing(output)
            is_unfinished = os.path.lexists(work)
            if not is_unfinished:
                forget_note(output)  # about reports that are no longer there
            open_folder = WorkFolder.resume if is_unfinished else WorkFolder.create
            folder = open_folder(work, plan, files, randomness, run_description)
            if plan.respondent is None and not alike:
                refuse_copies(folder)
            if randomness.mode != SIMULATED:
                _refuse_leaks(plan, folder)
            path = None if ledger is None or randomness.mode == SIMULATED else Path(ledger).resolve()
            exclude_people = partial(find_excluded_rows, folder, plan, path, alike, leave_out)
            tally = _run(folder, plan, files, randomness, runner or Threads(), progress, path, exclude_people)
            if randomness.mode != SIMULATED:
                tally = _enter_in_ledger(folder, plan, tally, path, alike)
            publish(folder, plan, output, single, tally, run_description, force)
        remove_replaced(output)
        remove(work)
    forget_note(output)
    return tally


def _refuse_leaks(plan: Plan, folder: WorkFolder) -> None:
    """`InvalidInput`, and no folder, if the reports would show answers that the plan does not say they show."""
    columns = columns_of(plan)
    try:
        for path in dict.fromkeys(piece.path for part in folder.partitions for piece in part.pieces):
            require_columns(columns, names_of(Path(path), plan.file), path)
            refuse_nested(Path(path), columns, plan.carry, listed_columns(plan))
        refuse_leaks(find_leaks(plan, sampled_rows(folder.partitions, columns)), plan.revealed)
    except InvalidInput:
        remove(folder.path)
        raise


def find_excluded_rows(folder: WorkFolder, plan: Plan, ledger: Path | None, alike: bool, leave_out: bool) -> None:
    """Settle, once and before anything is drawn, which rows are left out since their people may not be reported.

    `InvalidInput` if there are any and they are not to be left out, or nobody else is left.
    """
    if folder.rows(BEYOND) is not None:
        return
    rows = NO_ROWS
    if ledger is not None:
        people, places = np.unique(_people(folder), return_inverse=True)
        verdict = Ledger(ledger).standing(plan, _words(folder, plan), people, alike)
        if not leave_out or verdict.why.all():
            verdict.refuse(plan, ledger)
        numbers = [np.arange(part.first_row, part.first_row + part.rows) for part in folder.partitions]
        rows = np.concatenate(numbers)[verdict.why[places] != 0]
    folder.write_sealed(folder.path / BEYOND, rows.astype("<i8").tobytes())


def _people(folder: WorkFolder) -> Numbers:
    """The marks of the respondents of all rows."""
    parts = [folder.sealed(folder.people(index)) for index in range(len(folder.partitions))]
    if None in parts:
        raise LostWork("the marks of respondents are not as they were written; the same call does them again")
    return np.frombuffer(b"".join(filter(None, parts)), "<u8")


def _words(folder: WorkFolder, plan: Plan) -> str:
    """The source of the words of a run."""
    memoised = folder.state["mode"] == Memoised.mode
    return f"{folder.state['key']} {plan.checksum if memoised else folder.state['run']}"


def _enter_in_ledger(folder: WorkFolder, plan: Plan, tally: Tally, ledger: Path | None, alike: bool) -> Tally:
    """The tally with what the ledger knows of the rounds of answers and people, after they were entered into it.

    `InvalidInput`, and no folder, for answers that come twice, or that were reported before in this round.
    """
    marks = Marks()
    for index in range(len(folder.partitions)):
        content = folder.sealed(folder.marks(index))
        if content is None:
            raise LostWork(f"part {index + 1} is not as it was written; the same call does it again")
        part_marks = load(Marks, strict.json_value(content, "marks"), "marks")
        marks = marks + part_marks if marks.rows else part_marks
    doubles, beyond = (folder.rows(name) for name in (DROPPED, BEYOND))
    people = None
    if doubles is not None and beyond is not None:
        left_out = len(np.setdiff1d(beyond, doubles))
        tally = replace(tally, left_out=left_out, duplicates=tally.duplicates - left_out)
        all_people = _people(folder)
        people = distinct(all_people)
        if len(beyond):
            people = people[~np.isin(people, all_people[beyond - folder.partitions[0].first_row])]
    try:
        if marks.repeats and not alike and folder.state["mode"] != Memoised.mode:
            expected = "every person's answers once (or alike=True, --alike, if they are other people's)"
            raise invalid("answers", expected, Phrase("stretches of rows that come again"))
        if ledger is not None:
            other, verdict = Ledger(ledger).enter(plan, _words(folder, plan), marks, alike, people)
            tally = replace(tally, other_rounds=other)
            tally = tally if verdict is None else replace(tally, rounds=verdict.rounds, gone=verdict.gone)
    except InvalidInput:
        remove(folder.path)
        raise
    return tally


def _run(
    folder: WorkFolder,
    plan: Plan,
    files: list[Path],
    randomness: Randomness,
    runner: Runner,
    progress: Callable[[int, int], None] | None,
    ledger: Path | None,
    exclude_people: Callable[[], None],
) -> Tally:
    """Run the pending partitions and return the tally of all partitions.

    exclude_people : called before anything is drawn, to find the rows to leave out.

    The work folder is removed if an answer or a person is refused.
    """
    key_file = str(Path(randomness.key_file).resolve()) if isinstance(randomness, Memoised) else None
    if ledger is not None:
        Ledger(ledger).secret()  # made before workers read it
    job = Job(str(folder.path), folder.seal, plan.checksum, key_file, None if ledger is None else str(ledger))
    part_count = len(folder.partitions)
    try:
        if plan.respondent is not None:
            refuse_duplicates(plan, find_duplicates(folder, job, runner))
            exclude_people()
        pending_parts = folder.todo()
        parts_done = part_count - len(pending_parts)
        for _ in yield_all(runner.map(partial(privatize_partition, job), pending_parts), len(pending_parts)):
            parts_done += 1
            if progress is not None:
                progress(parts_done, part_count)
        refuse_others(description(plan, files, randomness.mode, folder.state["kind"]), folder.state, folder.path)
    except InvalidInput:
        remove(folder.path)
        raise
    finally:
        forget_keys()
    if damaged := folder.todo():
        raise LostWork(
            f"{len(damaged)} of {part_count} parts are not as they were written; the same call does them again"
        )
    return Tally.total(folder.tallies(), plan)
