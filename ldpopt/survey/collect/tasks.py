"""The tasks of a run: each does one piece of work in the work folder, and writes the same bytes if it runs twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.survey.collect.answers import batches, column_names, refuse_nested
from ldpopt.survey.collect.batch import Privatizer, Rows, require_columns
from ldpopt.survey.collect.duplicates import bucket_count, duplicates_in_bucket, spilled
from ldpopt.survey.collect.randomness.secret import read_key
from ldpopt.survey.collect.reports import write_reports
from ldpopt.survey.collect.runner import Runner, every
from ldpopt.survey.collect.workfolder import DROPPED, KEY, PLAN, WorkFolder
from ldpopt.survey.plan.plan import Plan


@dataclass(frozen=True)
class Job:
    """What a worker is told about a run: its folder and its seal, so that the folder of another run is recognised.

    plan : the checksum of the caller's plan. key_file : the caller's key file, or None for the run's own key.
    """

    work: str
    seal: str
    plan: str
    key_file: str | None

    @property
    def folder(self) -> WorkFolder:
        """The work folder; `InvalidInput` if it belongs to another run."""
        return WorkFolder.open(Path(self.work), self.seal)


@lru_cache(maxsize=2)
def _ready(job: Job, _: str) -> tuple[WorkFolder, Privatizer]:
    """The work folder and the privatizer, which all tasks of one stage in a process share."""
    folder = job.folder
    plan = Plan.from_json((folder.path / PLAN).read_bytes())
    if plan.checksum != job.plan:
        raise invalid("plan", "the one that the run was called with", "another", str(folder.path / PLAN))
    key = read_key(job.key_file or folder.path / KEY)
    if key.check() != folder.state["key"]:
        raise invalid("key file", "the key that the unfinished run began with", "another", str(folder.path))
    return folder, Privatizer(plan, folder.state["mode"], key)


def forget() -> None:
    """Forget the keys of earlier tasks in this process."""
    _ready.cache_clear()


@dataclass(frozen=True)
class SpillPartition:
    """The task that writes the pseudonyms of one partition's respondents."""

    job: Job
    buckets: int

    def __call__(self, index: int) -> None:
        """Do it."""
        folder, privatizer = _ready(self.job, "spill")
        if folder.sealed(folder.spill(index)) is not None:
            return
        part, found = folder.partitions[index], []
        _require(privatizer, folder, index)
        row = part.first_row
        for batch in batches(part, [str(privatizer.plan.respondent)]):
            found.append(privatizer.source.identities(privatizer.ids(batch, row)))
            row += batch.num_rows
        identities = np.concatenate([np.empty((0, 2), np.uint64), *found])
        folder.write_sealed(folder.spill(index), spilled(identities, part.first_row, self.buckets))


@dataclass(frozen=True)
class SearchBucket:
    """The task that finds the duplicate rows of one bucket."""

    job: Job
    buckets: int

    def __call__(self, bucket: int) -> Rows:
        """The duplicate rows."""
        folder = self.job.folder
        paths = [folder.spill(index) for index in range(len(folder.partitions))]
        return duplicates_in_bucket(paths, bucket, self.buckets)


@dataclass(frozen=True)
class PrivatizePartition:
    """The task that writes the reports of one partition, and then the record that they are there."""

    job: Job

    def __call__(self, index: int) -> int:
        """Do it and give back the index."""
        folder, privatizer = _ready(self.job, "privatize")
        dropped: Rows | None = np.empty(0, np.int64) if privatizer.plan.respondent is None else folder.dropped()
        if dropped is None:
            raise invalid("privatize", "the rows to leave out", "none", str(folder.path / DROPPED))
        part = folder.partitions[index]
        _require(privatizer, folder, index)
        columns = [question.column for question in privatizer.plan.questions]
        table, tally = privatizer.partition(batches(part, privatizer.columns, columns), index, part.first_row, dropped)
        write_reports(folder.part(index), table)
        folder.record(index, tally)
        return index


def find_duplicates(folder: WorkFolder, job: Job, runner: Runner) -> Rows:
    """The numbers of the rows whose respondent has an earlier row. They are found once and then kept in the folder."""
    rows = folder.dropped()
    if rows is None:
        parts = folder.partitions
        buckets = bucket_count(sum(part.rows for part in parts))
        for _ in every(runner.map(SpillPartition(job, buckets), range(len(parts))), len(parts)):
            pass
        found: list[Any] = list(every(runner.map(SearchBucket(job, buckets), range(buckets)), buckets))
        rows = np.sort(np.concatenate([np.empty(0, np.int64), *found]))
        folder.write_sealed(folder.path / DROPPED, rows.astype("<i8").tobytes())
    for index in range(len(folder.partitions)):
        folder.spill(index).unlink(missing_ok=True)
    return rows


def _require(privatizer: Privatizer, folder: WorkFolder, index: int) -> None:
    """`InvalidInput` unless every file of a partition has the needed columns, with plain values."""
    for path in dict.fromkeys(piece.path for piece in folder.partitions[index].pieces):
        require_columns(privatizer.columns, column_names(Path(path), privatizer.plan.file), path)
        refuse_nested(Path(path), privatizer.columns, privatizer.plan.carry)
