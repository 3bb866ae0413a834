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
from ldpopt_survey.collect.leaks import find_leaks, refuse_leaks, sample_rows
from ldpopt_survey.collect.ledger import NO_ROWS, Ledger, Marks, RowMarker
from ldpopt_survey.collect.manifest import SIMULATED
from ldpopt_survey.collect.people import Numbers, distinct_marks, marks_of
from ldpopt_survey.collect.randomness import Memoized, Randomness, default_randomness
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
    """The data that a worker needs of a run. The seal makes the folder of another run recognizable.

    - `work`, `seal` : the path and the seal of the work folder.
    - `plan` : the checksum of the caller's plan.
    - `key_file` : the caller's key file, or None for the run's own key.
    - `ledger` : the ledger of privacy, or None for marks under the run's own key.
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
        raise InvalidInput(f"{folder.path / PLAN} is another plan than that of the run")
    key = read_key(job.key_file or folder.path / KEY)
    if key.check() != folder.state["key"]:
        raise InvalidInput(f"{folder.path}: the key file must have the key that the unfinished run began with")
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
    if folder.read_sealed(folder.spill(index)) is not None and folder.read_sealed(folder.people(index)) is not None:
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
    dropped_rows = NO_ROWS
    if privatizer.plan.respondent is not None:
        duplicates, excluded_rows = folder.rows(DROPPED), folder.rows(BEYOND)
        if duplicates is None or excluded_rows is None:
            raise InvalidInput(
                f"{folder.path / DROPPED}: the rows to leave out are not recorded; run `ldpopt survey privatize` again"
            )
        dropped_rows = np.union1d(duplicates, excluded_rows)
    part = folder.partitions[index]
    _require_columns(privatizer, folder, index)
    columns = [part_answer.column for question in privatizer.plan.questions for part_answer in question.answers]
    row_marker = RowMarker(privatizer.columns, list(dict.fromkeys(columns)), _secret(job, ""))
    marked_batches = row_marker.mark_batches(batches(part, privatizer.columns, columns), part.first_row, dropped_rows)
    table, tally = privatizer.partition(marked_batches, index, part.first_row, dropped_rows)
    folder.write_sealed(folder.marks(index), strict.json_text(dump(row_marker.marks)).encode())
    write_reports(folder.part(index), table)
    folder.record(index, tally)
    return index


def find_duplicates(folder: WorkFolder, job: Job, runner: Runner) -> Rows:
    """Find the rows whose respondent has an earlier row, and store their numbers in the folder."""
    rows, parts = folder.rows(DROPPED), folder.partitions
    if rows is None or any(folder.read_sealed(folder.people(index)) is None for index in range(len(parts))):
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


def columns_with_lists(plan: Plan) -> list[str]:
    """List the columns whose cells hold lists of entries, except carried columns."""
    columns = {part.column for question in plan.questions for part in question.answers if part.reading.separator}
    return sorted(columns - set(plan.carry))


def _require_columns(privatizer: Privatizer, folder: WorkFolder, index: int) -> None:
    """`InvalidInput` unless every file of a partition has the needed columns, with plain values."""
    for path in dict.fromkeys(piece.path for piece in folder.partitions[index].pieces):
        require_columns(privatizer.columns, names_of(Path(path), privatizer.plan.file), path)
        refuse_nested(Path(path), privatizer.columns, privatizer.plan.carry, columns_with_lists(privatizer.plan))


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
    """Write a privatized report for every answer, and tally the use of the plan's policies.

    Parameters
    ----------
    plan : The plan.
    answers : A CSV or Parquet file, several, or a folder of them; only the plan's columns are read. The plan's `file`
        gives the format of CSV. Rows at the end of CSV and of a workbook whose cells are all empty are ignored. Excel
        workbooks (their first sheet) and files of SPSS, Stata and SAS are read, too.
    reports : A new path, or with `force` one with earlier reports. With the ending .csv or .parquet it
        becomes one file, otherwise a folder of partitions: Parquet files if the answers are Parquet, else CSV files.
        The reports have one row for each answer row, in the same order, one column for each question, and the plan's
        carried columns. The manifest is a record of the plan, the number of rows and a checksum. It lies next to a CSV
        file (``NAME.csv.manifest.json``), in the schema of a Parquet file, and in a folder as a file of its own.
    randomness : `Fresh()` is the default for a plan without a respondent column. A plan with one requires an explicit
        choice, usually `Memoized(key_file)`. `Simulated(rng)` is for trials, and labels the reports as simulated.
    runner : Where the partitions are processed; in this thread by default.
    progress : A function that is called with (completed partitions, all partitions).
    alike : True if files with the same content are of different people. Otherwise a plan without respondents refuses
    them,
        as a second report of the same answers spends their epsilon twice. One file under two names is always refused.
    ledger : The ledger of privacy, a file that the first run creates; the commands keep it next to the plan. See below.
        Without one, only the rows of this run are compared with each other.
    leave_out : True to leave out the people whom the ledger refuses, instead of refusing all answers.
    force : True to replace earlier reports, once the new ones are complete. Only reports with a manifest are
        replaced, and reports of people only by others of people. The ledger keeps the epsilon spent on the old ones.

    Returns
    -------
    Tally
        The number of reports, and the counts of the plan's policies. They are not private.

    Raises
    ------
    InvalidInput
        For bad answers, an existing path, or a work folder of another plan or other answers. Errors name rows and
        columns, never values.

    Notes
    -----
    The ledger refuses answers, or a stretch of them, that have other reports in the same round, in any format and under
    any
    file name. It counts those of other rounds. It recognizes rows in another order if they differ enough. For a plan
    with a
    respondent column it also knows, by keyed marks of ids, the rounds that each person answered, under all plans of the
    survey that share it. Before anything is drawn, it refuses a person who has other reports of this round. It also
    refuses
    one whose rounds or epsilon would exceed those of the consent form.

    All reports appear at once, at the end. Until then a work folder ``.NAME.partial`` next to them holds the finished
    partitions. After a kill the same call continues from there, and ends with the same bytes. If the plan's policies
    refuse an answer, the run ends and writes nothing.

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
    is_single_file = output.suffix in (".csv", ".parquet")
    if not output.parent.is_dir():
        raise invalid("reports", "a folder that exists", str(output.parent))
    if str(output) != str(output).encode("utf-8", "replace").decode():  # pyarrow opens no other
        raise invalid("reports", "a path in UTF-8", output.name)
    kind = output.suffix if is_single_file else files[0].suffix
    kind = "parquet" if kind == ".parquet" else "csv"
    work = work_of(output)
    lock = output.with_name(f".{output.name}.lock")
    with hold_lock(lock, "reports", "no other run that writes them"):
        remove_left_aside(work)
        run_description = description(plan, files, randomness.mode, kind) | {"leave_out": leave_out}
        tally = read_published_tally(output, run_description)
        if tally is None:
            if force:
                refuse_other_files(output, is_single_file, randomness.mode)
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
            ledger_path = None if ledger is None or randomness.mode == SIMULATED else Path(ledger).resolve()
            exclude_people = partial(find_excluded_rows, folder, plan, ledger_path, alike, leave_out)
            tally = _run(folder, plan, files, randomness, runner or Threads(), progress, ledger_path, exclude_people)
            if randomness.mode != SIMULATED:
                tally = _enter_in_ledger(folder, plan, tally, ledger_path, alike)
            publish(folder, plan, output, is_single_file, tally, run_description, force)
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
            refuse_nested(Path(path), columns, plan.carry, columns_with_lists(plan))
        refuse_leaks(find_leaks(plan, sample_rows(folder.partitions, columns)), plan.revealed)
    except InvalidInput:
        remove(folder.path)
        raise


def find_excluded_rows(
    folder: WorkFolder, plan: Plan, ledger: Path | None, different_people: bool, leave_out: bool
) -> None:
    """Find, once and before anything is drawn, the rows of people who may not be reported.

    Raises `InvalidInput` if there are such people and `leave_out` is false, or nobody else remains.
    """
    if folder.rows(BEYOND) is not None:
        return
    excluded_rows = NO_ROWS
    if ledger is not None:
        people, places = np.unique(_people(folder), return_inverse=True)
        standing = Ledger(ledger).standing(plan, _words(folder, plan), people, different_people)
        if not leave_out or standing.reasons.all():
            standing.refuse(plan, ledger)
        row_numbers = [np.arange(part.first_row, part.first_row + part.rows) for part in folder.partitions]
        excluded_rows = np.concatenate(row_numbers)[standing.reasons[places] != 0]
    folder.write_sealed(folder.path / BEYOND, excluded_rows.astype("<i8").tobytes())


def _people(folder: WorkFolder) -> Numbers:
    """The marks of the respondents of all rows."""
    parts = [folder.read_sealed(folder.people(index)) for index in range(len(folder.partitions))]
    if None in parts:
        raise LostWork("the marks of respondents are not as they were written; the same call does them again")
    return np.frombuffer(b"".join(filter(None, parts)), "<u8")


def _words(folder: WorkFolder, plan: Plan) -> str:
    """The source of the words of a run."""
    is_memoized = folder.state["mode"] == Memoized.mode
    return f"{folder.state['key']} {plan.checksum if is_memoized else folder.state['run']}"


def _enter_in_ledger(
    folder: WorkFolder, plan: Plan, tally: Tally, ledger: Path | None, different_people: bool
) -> Tally:
    """The tally with the rounds of the answers and people, after they were entered into the ledger.

    `InvalidInput`, and no folder, for answers that come twice, or that were reported before in this round.
    """
    marks = Marks()
    for index in range(len(folder.partitions)):
        content = folder.read_sealed(folder.marks(index))
        if content is None:
            raise LostWork(f"part {index + 1} is not as it was written; the same call does it again")
        part_marks = load(Marks, strict.json_value(content, "marks"), "marks")
        marks = marks + part_marks if marks.rows else part_marks
    duplicates, excluded_rows = (folder.rows(name) for name in (DROPPED, BEYOND))
    people = None
    if duplicates is not None and excluded_rows is not None:
        left_out = len(np.setdiff1d(excluded_rows, duplicates))
        tally = replace(tally, left_out=left_out, duplicates=tally.duplicates - left_out)
        all_people = _people(folder)
        people = distinct_marks(all_people)
        if len(excluded_rows):
            people = people[~np.isin(people, all_people[excluded_rows - folder.partitions[0].first_row])]
    try:
        if marks.has_repeated_rows and not different_people and folder.state["mode"] != Memoized.mode:
            expected = "every person's answers once (or alike=True, --alike, if they are other people's)"
            raise invalid("answers", expected, Phrase("stretches of rows that come again"))
        if ledger is not None:
            other_rounds, standing = Ledger(ledger).enter(plan, _words(folder, plan), marks, different_people, people)
            tally = replace(tally, other_rounds=other_rounds)
            tally = tally if standing is None else replace(tally, rounds=standing.rounds, gone=standing.absent_count)
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
    key_file = str(Path(randomness.key_file).resolve()) if isinstance(randomness, Memoized) else None
    if ledger is not None:
        Ledger(ledger).secret()  # made before workers read it
    job = Job(str(folder.path), folder.seal, plan.checksum, key_file, None if ledger is None else str(ledger))
    part_count = len(folder.partitions)
    try:
        if plan.respondent is not None:
            refuse_duplicates(plan, find_duplicates(folder, job, runner))
            exclude_people()
        pending_parts = folder.pending_parts()
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
    if damaged_parts := folder.pending_parts():
        raise LostWork(
            f"{len(damaged_parts)} of {part_count} parts are not as they were written; the same call does them again"
        )
    return Tally.total(folder.tallies(), plan)
