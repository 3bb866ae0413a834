"""Reports -> their manifest: a record of their plan, of whether they are simulated, and of which rows they hold.

A set of rows has a fingerprint, the same in any order: the sum, modulo 2**128, of one pseudorandom number for each row.
The number comes from the respondent, the plan and the survey key; if rows have no respondents, one number for each
partition comes from the key of the run. Without the key a fingerprint says nothing about the rows.

Before reports are counted, `admit` checks that they belong to the plan, are complete, unchanged and given once, and
that either all of them are simulated or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import digest
from ldpopt.values.schema import kind, version_of
from ldpopt_survey.collect.answers import Partition, input_files, refuse_same_files
from ldpopt_survey.datafiles.pieces import names_of, parquet_schema
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.records import check, dump, flag, key, listed, load, text, whole

NO_ROWS = "0" * 32
"""The fingerprint of no rows."""

_HEX = frozenset("0123456789abcdef")


def is_hex(value: object, digits: int = 32) -> bool:
    """Whether `value` is a text of `digits` hexadecimal digits: 32 for a fingerprint, 64 for a SHA-256."""
    return isinstance(value, str) and len(value) == digits and set(value) <= _HEX


def row_set(value: object, where: str) -> str:
    """Return `value` if it is a fingerprint; raise `InvalidInput` otherwise."""
    if not isinstance(value, str) or not is_hex(value):
        raise invalid("fingerprint", "32 hexadecimal digits", Phrase("something else"), where)
    return value


def _checksum(value: object, name: str) -> str:
    if not isinstance(value, str) or (value and not is_hex(value, 64)):
        raise invalid(name, "a SHA-256, 64 hexadecimal digits", Phrase(kind(value)))
    return value


def add_fingerprints(parts: Iterable[str]) -> str:
    """The fingerprint of the union of disjoint sets.

    >>> add_fingerprints(["0" * 31 + "1", "f" * 32])
    '00000000000000000000000000000000'
    """
    return f"{sum(int(part, 16) for part in parts) % (1 << 128):032x}"


def fingerprint_rows(numbers: npt.NDArray[np.uint64]) -> str:
    """The fingerprint of rows from their numbers, as little-endian words, shape (n, 2).

    >>> fingerprint_rows(np.array([[2**64 - 1, 0], [2, 7]], np.uint64))
    '00000000000000080000000000000001'
    """
    summed = 0
    for place in range(2):
        words = numbers[:, place]
        low, high = int((words & np.uint64(0xFFFFFFFF)).sum()), int((words >> np.uint64(32)).sum())
        summed += (low + (high << 32)) << (64 * place)
    return f"{summed % (1 << 128):032x}"


SIMULATED = "simulated"
"""The mode of randomness whose reports are simulated."""

FORMAT = "ldpopt-reports"
VERSION = 2
FOLDER = "_manifest.json"  # readers of data sets skip names that begin with _
SIDECAR = ".manifest.json"  # after the name of a CSV file


@dataclass(frozen=True)
class Manifest:
    """The record that accompanies a file of reports, or all files of a folder together.

    survey, round, plan, questions : name, round, checksum and question names of the plan. simulation : whether the
        answers were simulated, so that nobody was asked.
    rows : number of reports. parts : for each partition the fingerprint of its set of rows, 32 hexadecimal digits. The
        same rows (of one run, or of the same respondents under one key and plan) have the same fingerprint, in whatever
        file or order they are kept. Without the key a fingerprint says nothing about the rows. The fingerprints of
        parts add up to the fingerprint of all rows.
    sha256 : SHA-256 of the file's bytes; empty if the manifest is inside the file.
    rounds : if a ledger knew respondents' ids, how many of them had then answered one round of the survey, two, ...
    """

    survey: str = key(text)
    round: int = key(whole)
    plan: str = key(text)
    questions: tuple[str, ...] = key(listed(text))
    simulation: bool = key(flag)
    rows: int = key(whole)
    parts: tuple[str, ...] = key(listed(row_set))
    sha256: str = key(_checksum, default="", omit=True)
    rounds: tuple[int, ...] = key(listed(whole), default=(), omit=True)

    def __post_init__(self) -> None:
        check(self, "manifest")

    @classmethod
    def of(
        cls, plan: Plan, mode: str, rows: int, parts: Iterable[str], sha256: str = "", rounds: tuple[int, ...] = ()
    ) -> Manifest:
        """Return the manifest of reports under `plan`."""
        names = tuple(question.name for question in plan.questions)
        return cls(plan.name, plan.round, plan.checksum, names, mode == SIMULATED, rows, tuple(parts), sha256, rounds)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all rows."""
        return add_fingerprints(self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as JSON-ready values."""
        content = {"format": FORMAT, "version": VERSION, **dump(self)}
        last: dict[str, Any] = {name: content.pop(name) for name in ("sha256", "rounds") if name in content}
        return {**content, "fingerprint": self.fingerprint, **last}

    def to_json(self) -> str:
        """Return the manifest as JSON text (schema ``ldpopt-reports``, version 2)."""
        return strict.json_text(self.to_dict())

    @classmethod
    def from_dict(cls, data: Any, where: str) -> Manifest:
        """The manifest that `to_dict` gave; anything else is `InvalidInput` that names `where`."""
        version_of(data, f"manifest {where}", FORMAT, (VERSION,))
        record_fields = {
            name: value for name, value in data.items() if name not in ("format", "version", "fingerprint")
        }
        try:
            manifest = load(cls, record_fields, "manifest")
        except InvalidInput as error:
            raise InvalidInput(f"{error} at {where}") from None
        if manifest.fingerprint != data.get("fingerprint"):
            raise invalid("manifest", "partitions whose fingerprints add up", Phrase("others"), where)
        return manifest

    @classmethod
    def from_json(cls, content: str | bytes, where: str) -> Manifest:
        """Read a manifest that `to_json` wrote."""
        return cls.from_dict(strict.json_value(content, where), where)

    def require(self, plan: Plan, where: str) -> None:
        """Raise `InvalidInput` unless the reports are of `plan`."""
        expected = Manifest.of(plan, "", self.rows, self.parts)
        names = ("survey", "round", "plan", "questions")
        if all(getattr(self, name) == getattr(expected, name) for name in names):
            return
        if (self.survey, self.round) == (plan.name, plan.round):
            got = "those of another plan"
        else:
            got = f"those of another plan, for {self.survey!r}, round {self.round}"
        raise invalid("reports", f"those of the plan {plan.name!r}, round {plan.round}", Phrase(got), where)


def sidecar(path: Path) -> Path:
    """Return the path of the manifest of a CSV file."""
    return path.with_name(path.name + SIDECAR)


def in_table(schema: Any, where: str) -> Manifest | None:
    """Read the manifest in the metadata of a pyarrow schema; None if there is none."""
    content = (schema.metadata or {}).get(FORMAT.encode())
    return None if content is None else Manifest.from_json(content, where)


def with_manifest(table: Any, manifest: Manifest) -> Any:
    """Return the pyarrow table with the manifest in its schema, and no other metadata."""
    return table.replace_schema_metadata({FORMAT: manifest.to_json()})


def folder_manifest(folder: Path) -> Mapping[str, Manifest] | None:
    """The manifests of all files of a folder of reports, by file name, and that of the whole folder under `FOLDER`.

    It is None if the folder has no list of them, and `InvalidInput` if the folder's totals are not those of its files.
    """
    path = folder / FOLDER
    if not path.is_file():
        return None
    data = strict.json_value(path.read_bytes(), str(path))
    if not isinstance(data, dict) or not isinstance(data.get("files"), dict):
        raise invalid("manifest", "an object with files", Phrase("another"), str(path))
    files = data.pop("files")
    folder_total = Manifest.from_dict(data, str(path))
    manifests = {name: Manifest.from_dict(entry, str(path)) for name, entry in files.items()}
    if (
        sum(manifest.rows for manifest in manifests.values()) != folder_total.rows
        or add_fingerprints(part for manifest in manifests.values() for part in manifest.parts)
        != folder_total.fingerprint
        or any(
            (manifest.plan, manifest.simulation) != (folder_total.plan, folder_total.simulation)
            for manifest in manifests.values()
        )
        or not all(manifest.sha256 for manifest in manifests.values())
    ):
        raise invalid("manifest", "files that add up to the whole", Phrase("others"), str(path))
    return {**manifests, FOLDER: folder_total}


def folder_content(folder_total: Manifest, files: Mapping[str, Manifest]) -> str:
    """Return the text of a folder's list of files."""
    return strict.json_text(
        {**folder_total.to_dict(), "files": {name: manifest.to_dict() for name, manifest in files.items()}}
    )


BY_HAND = "reports written by hand are counted with --unlabelled (unlabelled=True)"


@dataclass(frozen=True)
class Delivery:
    """Files of reports that may be counted together.

    rows : the number of rows in each file's manifest, by path; a file without a manifest has no entry.
    sources : the fingerprints of all partitions, and for a file without a manifest the beginning of its SHA-256.
    rounds : how many people had answered one round, two, ..., where all manifests say it.
    """

    files: tuple[Path, ...]
    rows: dict[str, int]
    simulation: bool
    unlabelled: bool
    sources: frozenset[str]
    rounds: tuple[int, ...] = ()

    def require_rows(self, parts: Iterable[Partition]) -> None:
        """Raise `InvalidInput` unless every file has as many rows as its manifest states."""
        counted = dict.fromkeys(self.rows, 0)
        for part in parts:
            for piece in part.pieces:
                if piece.path in counted:
                    counted[piece.path] += piece.rows
        for path, rows in counted.items():
            if rows != self.rows[path]:
                raise invalid("reports", f"the {self.rows[path]} rows of their manifest", rows, path)


def admit(plan: Plan, reports: str | Path | Sequence[str | Path], unlabelled: bool = False) -> Delivery:
    """The files of `reports`, if they may be counted under `plan`; else `InvalidInput`.

    unlabelled : whether files without a manifest are accepted, too.
    """
    paths = [Path(reports)] if isinstance(reports, (str, Path)) else [Path(path) for path in reports]
    if not paths:
        raise invalid("reports", "at least one file", Phrase("none"))
    files = [file for path in paths for file in input_files(path)]
    refuse_same_files("reports", files)
    folders = [path.resolve() for path in paths if path.is_dir()]
    listed = {folder: folder_manifest(folder) for folder in dict.fromkeys([*folders, *(path.parent for path in files)])}
    for folder in folders:
        _require_complete(folder, listed[folder])
    manifests = {path: _manifest_of(path, (listed[path.parent] or {}).get(path.name)) for path in files}
    for path, manifest in manifests.items():
        if manifest is None:
            _refuse_unlabelled(plan, path, unlabelled)
        else:
            manifest.require(plan, str(path))
            _require_bytes(manifest, path)
    by_hand = {path: digest(path)[:32] for path, manifest in manifests.items() if manifest is None}
    _require_distinct(manifests, by_hand)
    labelled = {path: manifest for path, manifest in manifests.items() if manifest is not None}
    if len(kinds := {manifest.simulation for manifest in labelled.values()}) > 1:
        raise invalid("reports", "all of them simulated, or none", Phrase("some of each"))
    separate_manifests = [manifest for path, manifest in manifests.items() if path.parent.resolve() not in folders]
    return Delivery(
        tuple(files),
        {str(path): manifest.rows for path, manifest in labelled.items()},
        True in kinds,
        len(labelled) < len(manifests),
        frozenset(part for manifest in labelled.values() for part in manifest.parts) | frozenset(by_hand.values()),
        added_rounds(
            entry.rounds if entry else ()
            for entry in [*separate_manifests, *((listed[folder_path] or {}).get(FOLDER) for folder_path in folders)]
        ),
    )


def added_rounds(counts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """How many people had answered one round, two, ..., in several sets of reports; none if one does not say it.

    >>> added_rounds([(5, 2), (3,)]), added_rounds([(5, 2), ()])
    ((8, 2), ())
    """
    all_counts = list(counts)
    return tuple(map(sum, zip_longest(*all_counts, fillvalue=0))) if all(all_counts) else ()


def manifest_beside(path: Path) -> Manifest | None:
    """Return the manifest of one file of reports, in its schema or in the file beside it; None if there is none."""
    if path.suffix == ".parquet":
        return in_table(parquet_schema(path), str(path))
    return Manifest.from_json(sidecar(path).read_bytes(), str(sidecar(path))) if sidecar(path).is_file() else None


def _manifest_of(path: Path, folder_entry: Manifest | None) -> Manifest | None:
    """The manifest of a file: from its Parquet schema, from the file beside it, or from the list of its folder."""
    file_manifest = manifest_beside(path)
    if folder_entry is None or file_manifest is None:
        return file_manifest if folder_entry is None else folder_entry
    if (folder_entry.plan, folder_entry.simulation, folder_entry.rows, folder_entry.parts) != (
        file_manifest.plan,
        file_manifest.simulation,
        file_manifest.rows,
        file_manifest.parts,
    ):
        raise invalid("reports", "what the manifest of their folder says", Phrase("another file"), str(path))
    return folder_entry


def _require_bytes(manifest: Manifest, path: Path) -> None:
    """`InvalidInput` if the file does not have the checksum in its manifest."""
    if not manifest.sha256 and path.suffix != ".parquet":
        raise invalid("manifest", "the checksum of its file", Phrase("none"), str(path))
    if manifest.sha256 and digest(path) != manifest.sha256:
        raise invalid("reports", "the bytes that their manifest is about", Phrase("others"), str(path))


def refuse_repeated_reports(first: frozenset[str], second: frozenset[str]) -> None:
    """Raise `InvalidInput` if two sets of partitions overlap or hold the same rows."""
    if first & second or (first and second and add_fingerprints(first) == add_fingerprints(second)):
        raise invalid("reports", "every respondent's report once", Phrase("the same reports twice"))


def _require_complete(folder: Path, listed: Mapping[str, Manifest] | None) -> None:
    """`InvalidInput` unless a folder has exactly the files of its list, if it has a list."""
    if listed is None:
        return
    names = {path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet") and path.name[0] not in "._"}
    if differences := sorted(names ^ (set(listed) - {FOLDER})):
        file_name = differences[0]
        state = "missing" if file_name in listed else "added"
        raise invalid(
            "reports", f"the files of their {FOLDER}, all of them", Phrase(f"{file_name} {state}"), str(folder)
        )


def _refuse_unlabelled(plan: Plan, path: Path, unlabelled: bool) -> None:
    """`InvalidInput` for a file without a manifest, unless it is allowed and does not look like raw answers."""
    if not unlabelled:
        location = f"{sidecar(path).name} beside it" if path.suffix == ".csv" else "one in its schema"
        raise InvalidInput(f"reports: expected a manifest, {location}, got none at {path}; {BY_HAND}")
    if plan.respondent is not None and plan.respondent in names_of(path):
        raise invalid("reports", f"no column {plan.respondent!r} of respondents", Phrase("raw answers"), str(path))


def _require_distinct(manifests: dict[Path, Manifest | None], by_hand: dict[Path, str]) -> None:
    """`InvalidInput` if a partition is there twice, under whatever name, or two files hold the same rows."""
    first_paths: dict[str, Path] = {}
    for path, manifest in manifests.items():
        if manifest is None:
            marks = {by_hand[path]}
        elif manifest.rows == 0:
            continue
        else:
            marks = {*manifest.parts, manifest.fingerprint}
            if len(set(manifest.parts)) != len(manifest.parts):
                raise invalid("reports", "every respondent's report once", Phrase("a partition twice"), str(path))
        for mark in marks:
            if mark in first_paths:
                raise invalid(
                    "reports", "every report once", Phrase(f"those of {first_paths[mark].name} again"), str(path)
                )
            first_paths[mark] = path
    # The same rows may be cut differently: then the fingerprints of a folder add up to those of another folder or file.
    folders: dict[Path, list[str]] = {}
    for path, manifest in manifests.items():
        if manifest is not None and manifest.rows:
            folders.setdefault(path.parent, []).extend(manifest.parts)
    for folder, parts in folders.items():
        first_path = first_paths.setdefault(add_fingerprints(parts), folder)
        if folder not in (first_path, first_path.parent):
            raise invalid("reports", "every report once", Phrase(f"those of {folder.name} again"), str(first_path))
