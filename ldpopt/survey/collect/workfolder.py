"""The work folder of a run: what it takes to go on after a kill, and to end with the same bytes."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt import strictjson
from ldpopt.errors import invalid
from ldpopt.files import UNFINISHED, aside, replace_text, sync_folder
from ldpopt.survey.collect.answers import Partition, batches, column_names, partitions
from ldpopt.survey.collect.batch import Privatizer, Rows, require_columns
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.duplicates import bucket_count, duplicates_in_bucket, spill
from ldpopt.survey.collect.randomness.randomness import Memoised, Randomness
from ldpopt.survey.collect.randomness.secret import SecretKey, read_key
from ldpopt.survey.collect.reports import write_reports
from ldpopt.survey.plan.plan import Plan

STATE, PLAN, KEY, DROPPED = "state.json", "plan.json", "run.key", "dropped.npy"
PARTS, TALLIES, SPILLS = "parts", "tallies", "identities"
AWAY = ".aside-"  # after the name of a work folder that is being made or removed


@dataclass(frozen=True)
class WorkFolder:
    """A run in progress. Everything in it but `parts` is for its owner only, and goes when the run ends.

    It holds no raw answer: partition bounds, tallies, keyed pseudonyms while duplicates are sought, and (not
    when memoised) the run's key. Workers get its path, never a key.
    """

    path: Path
    state: dict[str, Any]

    @classmethod
    def create(cls, path: Path, plan: Plan, files: list[Path], randomness: Randomness, kind: str) -> WorkFolder:
        """A new work folder at `path`, complete or absent."""
        key = randomness.key()
        parts = partitions(files)
        if sum(part.rows for part in parts) == 0:
            raise invalid("answers", "at least one row", "none", str(files[0]))
        state = {
            **description(plan, files, randomness.mode, kind),
            "run": secrets.token_hex(8),
            "key": key.check(),
            "key_file": str(Path(randomness.key_file).resolve()) if isinstance(randomness, Memoised) else None,
            "partitions": [part.to_dict() for part in parts],
        }
        made = path.with_name(f"{path.name}{AWAY}{secrets.token_hex(8)}")
        made.mkdir(mode=0o700)
        try:
            for name in (PARTS, TALLIES, SPILLS):
                (made / name).mkdir()
            replace_text(made / PLAN, plan.to_json())
            if state["key_file"] is None:
                key.save(made / KEY)
            replace_text(made / STATE, strictjson.dumps(state))
            made.rename(path)
        except BaseException:
            shutil.rmtree(made)
            raise
        sync_folder(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> WorkFolder:
        """The work folder at `path`."""
        return cls(path, strictjson.loads((path / STATE).read_bytes(), "state of the run"))

    @property
    def partitions(self) -> list[Partition]:
        """The partitions, in order."""
        return [Partition(**part) for part in self.state["partitions"]]

    def key(self) -> SecretKey:
        """The key of the run, which must be the one that it began with."""
        key = read_key(self.state["key_file"] or self.path / KEY)
        if key.check() != self.state["key"]:
            raise invalid("key file", "the key that the unfinished run began with", "another", str(self.path))
        return key

    def plan(self) -> Plan:
        """The plan of the run."""
        return Plan.from_json((self.path / PLAN).read_bytes())

    def part(self, index: int) -> Path:
        """Where the reports of a partition go."""
        return self.path / PARTS / f"part-{index:06d}.{self.state['kind']}"

    def tally(self, index: int) -> Path:
        """Where the tally of a partition goes, before its reports."""
        return self.path / TALLIES / f"{index:06d}.json"

    def spill(self, index: int) -> Path:
        """Where the pseudonyms of a partition's respondents go, while duplicates are sought."""
        return self.path / SPILLS / f"{index:06d}"

    @property
    def todo(self) -> list[int]:
        """Partitions whose reports are not there yet."""
        return [index for index in range(len(self.state["partitions"])) if not self.part(index).exists()]

    def tallies(self) -> list[Tally]:
        """The tallies of all partitions."""
        paths = [self.tally(index) for index in range(len(self.state["partitions"]))]
        return [Tally(**strictjson.loads(path.read_bytes(), "tally")) for path in paths]

    def sweep(self) -> None:
        """Remove what killed attempts left written aside."""
        for folder in (self.path, self.path / PARTS, self.path / TALLIES, self.path / SPILLS):
            for left in folder.glob(UNFINISHED):
                left.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take the whole folder away, and forget its key; its name goes at once, its content after."""
        _ready.cache_clear()
        away = self.path.with_name(f"{self.path.name}{AWAY}{secrets.token_hex(8)}")
        self.path.rename(away)
        (away / KEY).unlink(missing_ok=True)
        shutil.rmtree(away)


def description(plan: Plan, files: list[Path], mode: str, kind: str) -> dict[str, Any]:
    """What must not change between a run and its resumption.

    The answers are recognised by size and time of change. Privatizing other answers with the words of an
    unfinished run would let the two be compared, so a run whose answers changed is refused.
    """
    stats = [path.stat() for path in files]
    return {
        "plan": plan.checksum,
        "mode": mode,
        "kind": kind,
        "files": [[str(path), s.st_size, s.st_mtime_ns] for path, s in zip(files, stats, strict=True)],
    }


@lru_cache(maxsize=2)
def _ready(work: str, _: str) -> tuple[WorkFolder, Privatizer, Rows]:
    folder = WorkFolder.open(Path(work))
    dropped = Path(work) / DROPPED
    rows = np.load(dropped, allow_pickle=False) if dropped.exists() else np.empty(0, np.int64)
    plan = folder.plan()
    files = sorted({part.path for part in folder.partitions})
    privatizer = Privatizer(plan, folder.state["mode"], folder.key())
    for path in files:
        require_columns(privatizer.columns, column_names(Path(path)), path)
    return folder, privatizer, rows


@dataclass(frozen=True)
class SpillPartition:
    """The task that writes the pseudonyms of one partition's respondents."""

    work: str
    stage: str
    buckets: int

    def __call__(self, index: int) -> None:
        """Do it; a second time gives the same bytes."""
        folder, privatizer, _ = _ready(self.work, self.stage)
        if folder.spill(index).exists():
            return
        part, found = folder.partitions[index], []
        row = part.first_row
        for batch in batches(part, [str(privatizer.plan.respondent)]):
            found.append(privatizer.source.identities(privatizer.ids(batch, row)))
            row += batch.num_rows
        identities = np.concatenate([np.empty((0, 2), np.uint64), *found])
        spill(folder.spill(index), identities, part.first_row, self.buckets)


@dataclass(frozen=True)
class SearchBucket:
    """The task that finds the duplicate rows of one bucket."""

    work: str
    buckets: int

    def __call__(self, bucket: int) -> Rows:
        """The duplicate rows."""
        paths = sorted(path for path in (Path(self.work) / SPILLS).iterdir() if not path.name.startswith("."))
        return duplicates_in_bucket(paths, bucket, self.buckets)


@dataclass(frozen=True)
class PrivatizePartition:
    """The task that writes the reports of one partition: its tally first, then the reports, each at once."""

    work: str
    stage: str

    def __call__(self, index: int) -> int:
        """Do it and give back the index; a second time gives the same bytes."""
        folder, privatizer, dropped = _ready(self.work, self.stage)
        part = folder.partitions[index]
        columns = [question.column for question in privatizer.plan.questions]
        table, tally = privatizer.partition(batches(part, privatizer.columns, columns), index, part.first_row, dropped)
        replace_text(folder.tally(index), strictjson.dumps(asdict(tally)))
        write_reports(folder.part(index), table, privatizer.plan, folder.state["mode"])
        return index


def find_duplicates(folder: WorkFolder, plan: Plan, runner: Any) -> Rows:
    """The rows of respondents who have an earlier one; found once, then kept in the folder."""
    path = folder.path / DROPPED
    if not path.exists():
        parts = folder.partitions
        buckets = bucket_count(sum(part.rows for part in parts))
        work = str(folder.path)
        for _ in runner.map(SpillPartition(work, f"spill {folder.state['run']}", buckets), range(len(parts))):
            pass
        found = list(runner.map(SearchBucket(work, buckets), range(buckets)))
        with aside(path) as written, open(written, "wb") as file:
            np.save(file, np.sort(np.concatenate([np.empty(0, np.int64), *found])), allow_pickle=False)
        for index in range(len(parts)):
            folder.spill(index).unlink()
    return np.asarray(np.load(path, allow_pickle=False), np.int64)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`; `InvalidInput` if another process does. A kill releases it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = os.fstat(handle).st_nlink == 0  # its last holder has just removed it
        except BlockingIOError:
            taken = True
        if taken:
            raise invalid("reports", "no other run that writes them", "one", str(path))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)
