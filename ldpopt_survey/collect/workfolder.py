"""The work folder of a run: all that is needed to continue after a kill and to end with the same bytes."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import NO_FILE, UNFINISHED, create_private, digest, replace_text, sync_folder
from ldpopt_survey.collect.answers import Partition, partitions
from ldpopt_survey.collect.coding import Tally
from ldpopt_survey.collect.randomness import Memoized, Randomness
from ldpopt_survey.collect.words import read_key
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.records import load

STATE, PLAN, KEY, DROPPED, BEYOND = "state.json", "plan.json", "run.key", "dropped.rows", "beyond.rows"
PARTS, RECORDS, SPILLS = "parts", "records", "identities"
PARTIAL = ".partial"  # ends the name of a work folder, after the name of the reports
ASIDE_SUFFIX = ".aside-"  # ends the name of a work folder that is being made or removed
_SEAL_DIGITS = 64  # hexadecimal digits of a SHA-256


@dataclass(frozen=True)
class WorkFolder:
    """A run in progress. Only its owner can read the folder, except `parts`; it is removed when the run ends.

    The folder holds no raw answer. It holds the bounds of the partitions, tallies, and keyed pseudonyms during the
    search for duplicates. Unless words are memoized, it also holds the run's key. Workers get the path of the folder,
    never a key.

    Another writer in the folder can only make a run take longer. Its content is used only if it fits the
    plan, the answers and the key of the caller. A finished piece of work must also have the checksum that was recorded
    when it was finished; otherwise the piece is done again, with the same bytes.

    seal : the SHA-256 of the state. It names the run in all records.
    """

    path: Path
    state: dict[str, Any]
    seal: str

    @classmethod
    def create(
        cls, path: Path, plan: Plan, files: list[Path], randomness: Randomness, run_description: dict[str, Any]
    ) -> WorkFolder:
        """Create a work folder at `path`, complete or absent, for a run with this `description`."""
        key = randomness.key()
        parts = partitions(files, plan.file, trim_empty=True)
        if sum(part.rows for part in parts) == 0:
            raise InvalidInput(f"{files[0]}: the answers have no rows; expected at least one")
        state = {
            **run_description,
            "run": secrets.token_hex(8),
            "key": key.check(),
            "partitions": [part.to_dict() for part in parts],
        }
        temporary_path = path.with_name(f"{path.name}{ASIDE_SUFFIX}{secrets.token_hex(8)}")
        temporary_path.mkdir(mode=0o700)
        try:
            for name in (PARTS, RECORDS, SPILLS):
                (temporary_path / name).mkdir()
            replace_text(temporary_path / PLAN, plan.to_json())
            if not isinstance(randomness, Memoized):
                key.save(temporary_path / KEY)
            replace_text(temporary_path / STATE, strict.json_text(state))
            temporary_path.rename(path)
        except BaseException:
            shutil.rmtree(temporary_path, ignore_errors=True)  # if the disk refuses that too, the next call removes it
            raise
        sync_folder(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, seal: str | None = None) -> WorkFolder:
        """Open the work folder at `path`; its state must have the checksum `seal` if one is given."""
        try:
            content = (path / STATE).read_bytes()
        except NO_FILE:
            raise _no_work_folder(path) from None
        actual_seal = sha256(content).hexdigest()
        if seal not in (None, actual_seal):
            raise _no_work_folder(path)
        return cls(path, strict.json_value(content, f"{path / STATE}"), actual_seal)

    @classmethod
    def resume(
        cls, path: Path, plan: Plan, files: list[Path], randomness: Randomness, run_description: dict[str, Any]
    ) -> WorkFolder:
        """Return the work folder of an unfinished run with this description.

        Raises `InvalidInput` if it is the folder of another run.

        Plan, answers and key come from the caller. The values in the folder are only compared.
        """
        folder = cls.open(path)
        if not isinstance(folder.state, dict) or not isinstance(folder.state.get("run"), str):
            raise _no_work_folder(path)
        refuse_others(run_description, folder.state, path)
        # A memoized run uses the caller's key file, any other run the key in its folder; either must be the run's first
        # key.
        key = randomness.key() if isinstance(randomness, Memoized) else read_key(path / KEY)
        parts = [part.to_dict() for part in partitions(files, plan.file, trim_empty=True)]
        refuse_others({**run_description, "key": key.check(), "partitions": parts}, folder.state, path)
        for name in (PARTS, RECORDS, SPILLS):
            (path / name).mkdir(exist_ok=True)
        replace_text(path / PLAN, plan.to_json())
        folder.sweep()
        return folder

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partitions, in order."""
        return [Partition.from_dict(part) for part in self.state["partitions"]]

    def part(self, index: int) -> Path:
        """Return the path of a partition's reports."""
        return self.path / PARTS / f"part-{index:06d}.{self.state['kind']}"

    @property
    def parts(self) -> list[Path]:
        """The paths of all partitions' reports, in order."""
        return [self.part(index) for index in range(len(self.state["partitions"]))]

    def record(self, index: int, tally: Tally) -> None:
        """Record that the reports of a partition are finished, with their checksum and tally."""
        content = {"sha256": self._digest(index), "tally": asdict(tally)}
        replace_text(self._record(index), strict.json_text(content))

    def read_record(self, index: int) -> tuple[str, Tally] | None:
        """Read the (checksum, tally) of a finished partition; None without a readable record."""
        try:
            content = strict.json_value(self._record(index).read_bytes(), "record")
            return str(content["sha256"]), tally_of(content["tally"])
        except (*NO_FILE, InvalidInput, KeyError, TypeError):
            return None

    def pending_parts(self) -> list[int]:
        """List the partitions whose reports or marks are missing or damaged."""
        return [index for index in range(len(self.state["partitions"])) if not self._finished(index)]

    def _finished(self, index: int) -> bool:
        record = self.read_record(index)
        try:
            is_intact = record is not None and record[0] == self._digest(index)
            return is_intact and self.read_sealed(self.marks(index)) is not None
        except NO_FILE:
            return False

    def tallies(self) -> list[Tally]:
        """Return the tallies of all partitions; each must be finished."""
        records = [self.read_record(index) for index in range(len(self.state["partitions"]))]
        return [record[1] for record in records if record is not None]

    def spill(self, index: int) -> Path:
        """Return the path of the pseudonyms of a partition, kept during the search for duplicates."""
        return self.path / SPILLS / f"{index:06d}"

    def write_sealed(self, path: Path, content: bytes) -> None:
        """Write a private file of the run, which `read_sealed` recognizes."""
        create_private(path, content + self._seal(path, content), force=True)

    def read_sealed(self, path: Path) -> bytes | None:
        """Read a file of `write_sealed`; None if missing, damaged, or of another path or run."""
        try:
            content = path.read_bytes()
        except NO_FILE:
            return None
        content, end = content[:-_SEAL_DIGITS], content[-_SEAL_DIGITS:]
        return content if end == self._seal(path, content) else None

    def marks(self, index: int) -> Path:
        """Return the path of the keyed marks of a partition's rows."""
        return self.path / RECORDS / f"{index:06d}.marks"

    def people(self, index: int) -> Path:
        """Return the path of the keyed marks of a partition's respondents, row by row."""
        return self.path / RECORDS / f"{index:06d}.people"

    def rows(self, name: str) -> npt.NDArray[np.int64] | None:
        """Read the numbers of rows to leave out (`DROPPED` or `BEYOND`), sorted; None if unknown."""
        content = self.read_sealed(self.path / name)
        return None if content is None or len(content) % 8 else np.frombuffer(content, "<i8").astype(np.int64)

    def sweep(self) -> None:
        """Remove the temporary files of killed attempts, and all files among the reports that are not reports."""
        for folder in (self.path, self.path / RECORDS, self.path / SPILLS):
            for stray_file in folder.glob(UNFINISHED):
                stray_file.unlink(missing_ok=True)
        report_names = {part.name for part in self.parts}
        for stray_file in list((self.path / PARTS).iterdir()):
            if stray_file.name not in report_names:
                stray_file.unlink(missing_ok=True)

    def _record(self, index: int) -> Path:
        return self.path / RECORDS / f"{index:06d}.json"

    def _digest(self, index: int) -> str:
        return digest(self.part(index), self.seal, str(index))

    def _seal(self, path: Path, content: bytes) -> bytes:
        return sha256(f"{self.seal} {path.name} ".encode() + content).hexdigest().encode()


def work_of(output: Path) -> Path:
    """Return the path of the work folder of the run that writes the reports at `output`."""
    return output.with_name(f".{output.name}{PARTIAL}")


def is_work_folder(path: Path) -> bool:
    """Return True if the name is that of a work folder, or of one being made or removed."""
    return path.name.startswith(".") and PARTIAL in path.name


def description(plan: Plan, files: list[Path], mode: str, kind: str) -> dict[str, Any]:
    """Return the values that must not change between a run and its resumption, ready for JSON.

    The answers are recognized by their content and time of change. If other answers were privatized with the words of
    an unfinished run, the two sets of reports could be compared. So a run whose answers changed is refused.
    """
    modified_ns = [path.stat().st_mtime_ns for path in files]
    return {
        "plan": plan.checksum,
        "mode": mode,
        "kind": kind,
        "files": [[str(path), digest(path), time] for path, time in zip(files, modified_ns, strict=True)],
    }


def refuse_copies(folder: WorkFolder) -> None:
    """Raise `InvalidInput`, and remove the folder, if two files with rows are identical.

    Reports of both files would spend the epsilon of the same answers twice.
    """
    paths_with_rows = {piece.path for part in folder.partitions for piece in part.pieces if piece.rows}
    first_paths: dict[str, str] = {}
    for path, content, _ in folder.state["files"]:
        if path in paths_with_rows and first_paths.setdefault(content, path) != path:
            remove(folder.path)
            expected = "files of different people (or alike=True, --alike, if two files are the same by chance)"
            raise invalid("answers", expected, Phrase(f"the same content in {first_paths[content]} and {path}"))


def refuse_others(run_description: dict[str, Any], state: dict[str, Any], path: Path) -> None:
    """Raise `InvalidInput` unless the `state` at `path` agrees with the run description."""
    for name, value in run_description.items():
        if state.get(name) != value:
            raise InvalidInput(
                f"{path}: expected the {name} that the unfinished run began with; delete this folder to start again"
            )


def remove(work: Path) -> None:
    """Remove a work folder with its key, if there is one.

    It is renamed at once, and its content is removed afterwards.
    """
    aside_path = work.with_name(f"{work.name}{ASIDE_SUFFIX}{secrets.token_hex(8)}")
    try:
        work.rename(aside_path)
    except FileNotFoundError:
        return
    _delete_folder(aside_path)


def remove_left_aside(work: Path) -> None:
    """Remove the folders that killed attempts at this run left half made or half removed. Those of other runs stay."""
    pattern = re.compile(re.escape(f"{work.name}{ASIDE_SUFFIX}") + "[0-9a-f]{16}")
    for name in os.listdir(work.parent):
        if pattern.fullmatch(name):
            _delete_folder(work.with_name(name))


def tally_of(data: Any) -> Tally:
    """Read the tally in a record; raise `InvalidInput` for anything else."""
    return load(Tally, data, "tally")


def _delete_folder(aside_path: Path) -> None:
    (aside_path / KEY).unlink(missing_ok=True)
    shutil.rmtree(aside_path)


def _no_work_folder(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} is not the work folder of an unfinished run; delete it to start again")
