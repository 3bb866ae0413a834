"""Manifests of reports: a record of their plan, of their rows, and of whether they are simulated.

A set of rows has a fingerprint, the same in any order: the sum, modulo 2**128, of one pseudorandom number for each row.
The number comes from the respondent, the plan and the survey key; if rows have no respondents, one number for each
partition comes from the key of the run. Without the key a fingerprint reveals nothing about the rows.

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
    """Return True if `value` is hexadecimal text: 32 digits of a fingerprint, 64 of a SHA-256."""
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
    """Compute the fingerprint of the union of disjoint sets.

    >>> add_fingerprints(["0" * 31 + "1", "f" * 32])
    '00000000000000000000000000000000'
    """
    return f"{sum(int(part, 16) for part in parts) % (1 << 128):032x}"


def fingerprint_rows(numbers: npt.NDArray[np.uint64]) -> str:
    """Compute the fingerprint of rows from their numbers, little-endian words, shape (n, 2).

    >>> fingerprint_rows(np.array([[2**64 - 1, 0], [2, 7]], np.uint64))
    '00000000000000080000000000000001'
    """
    total = 0
    for place in range(2):
        words = numbers[:, place]
        low, high = int((words & np.uint64(0xFFFFFFFF)).sum()), int((words >> np.uint64(32)).sum())
        total += (low + (high << 32)) << (64 * place)
    return f"{total % (1 << 128):032x}"


SIMULATED = "simulated"
"""The mode of randomness whose reports are simulated."""

FORMAT = "ldpopt-reports"
VERSION = 2
FOLDER = "_manifest.json"  # readers of data sets skip names that begin with _
SIDECAR = ".manifest.json"  # after the name of a CSV file


@dataclass(frozen=True)
class Manifest:
    """The record that accompanies a file of reports, or all files of a folder together.

    - `survey`, `round`, `plan`, `questions` : the name, round, checksum and question names of the plan.
    - `simulation` : True if the answers were simulated, so that nobody was asked.
    - `rows` : the number of reports.
    - `parts` : for each partition the fingerprint of its set of rows, 32 hexadecimal digits. The fingerprints of parts
      add up to the fingerprint of all rows.
    - `sha256` : the SHA-256 of the file's bytes; empty if the manifest is inside the file.
    - `rounds` : the number of respondents who had then answered one round of the survey, two, ..., if a ledger knew
      ids.

    The same rows (of one run, or of the same respondents under one key and plan) have the same fingerprint, in any file
    and order. Without the key a fingerprint reveals nothing about the rows.
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
    def from_plan(
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
        """Read a manifest that `to_dict` gave; raise `InvalidInput` with `where` for anything else."""
        version_of(data, f"manifest {where}", FORMAT, (VERSION,))
        record_fields = {
            name: value for name, value in data.items() if name not in ("format", "version", "fingerprint")
        }
        try:
            manifest = load(cls, record_fields, "manifest")
        except InvalidInput as error:
            raise InvalidInput(f"{error} at {where}") from None
        if manifest.fingerprint != data.get("fingerprint"):
            raise InvalidInput(f"{where}: the partitions of the manifest do not add up to its fingerprint")
        return manifest

    @classmethod
    def from_json(cls, content: str | bytes, where: str) -> Manifest:
        """Read a manifest that `to_json` wrote."""
        return cls.from_dict(strict.json_value(content, where), where)

    def require(self, plan: Plan, where: str) -> None:
        """Raise `InvalidInput` unless the reports are of `plan`."""
        expected = Manifest.from_plan(plan, "", self.rows, self.parts)
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


def manifest_in_schema(schema: Any, where: str) -> Manifest | None:
    """Read the manifest in the metadata of a pyarrow schema; None if there is none."""
    content = (schema.metadata or {}).get(FORMAT.encode())
    return None if content is None else Manifest.from_json(content, where)


def with_manifest(table: Any, manifest: Manifest) -> Any:
    """Return the pyarrow table with the manifest in its schema, and no other metadata."""
    return table.replace_schema_metadata({FORMAT: manifest.to_json()})


def folder_manifest(folder: Path) -> Mapping[str, Manifest] | None:
    """Read the manifests of a folder's files, by name, and the folder's own under `FOLDER`.

    Returns None if the folder has no list of them. Raises `InvalidInput` if the folder's totals are not those of its
    files.
    """
    path = folder / FOLDER
    if not path.is_file():
        return None
    data = strict.json_value(path.read_bytes(), str(path))
    if not isinstance(data, dict) or not isinstance(data.get("files"), dict):
        raise InvalidInput(f"{path}: a folder's manifest must be an object with a key 'files'")
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
        raise InvalidInput(f"{path}: the manifests of the files do not add up to the folder's manifest")
    return {**manifests, FOLDER: folder_total}


def folder_content(folder_total: Manifest, files: Mapping[str, Manifest]) -> str:
    """Return the text of a folder's list of files."""
    return strict.json_text(
        {**folder_total.to_dict(), "files": {name: manifest.to_dict() for name, manifest in files.items()}}
    )


UNLABELLED_HINT = "to count reports without a manifest, pass --unlabelled (unlabelled=True)"


@dataclass(frozen=True)
class Delivery:
    """Files of reports that may be counted together.

    - `rows` : the number of rows in each file's manifest, by path; a file without a manifest has no entry.
    - `sources` : the fingerprints of all partitions, and for a file without a manifest the beginning of its SHA-256.
    - `rounds` : the number of people who had answered one round, two, ...; empty unless all manifests state it.
    """

    files: tuple[Path, ...]
    rows: dict[str, int]
    simulation: bool
    unlabelled: bool
    sources: frozenset[str]
    rounds: tuple[int, ...] = ()

    def require_rows(self, parts: Iterable[Partition]) -> None:
        """Raise `InvalidInput` unless every file has as many rows as its manifest states."""
        row_counts = dict.fromkeys(self.rows, 0)
        for part in parts:
            for piece in part.pieces:
                if piece.path in row_counts:
                    row_counts[piece.path] += piece.rows
        for path, rows in row_counts.items():
            if rows != self.rows[path]:
                raise invalid("reports", f"the {self.rows[path]} rows of their manifest", rows, path)


def admit(plan: Plan, reports: str | Path | Sequence[str | Path], unlabelled: bool = False) -> Delivery:
    """List the files of `reports`; raise `InvalidInput` unless they may be counted under `plan`.

    unlabelled : True to accept files without a manifest, too.
    """
    paths = [Path(reports)] if isinstance(reports, (str, Path)) else [Path(path) for path in reports]
    if not paths:
        raise InvalidInput("reports: no file was given; pass at least one file of reports")
    files = [file for path in paths for file in input_files(path)]
    refuse_same_files("reports", files)
    folders = [path.resolve() for path in paths if path.is_dir()]
    folder_manifests = {
        folder: folder_manifest(folder) for folder in dict.fromkeys([*folders, *(path.parent for path in files)])
    }
    for folder in folders:
        _require_complete(folder, folder_manifests[folder])
    manifests = {path: _manifest_of(path, (folder_manifests[path.parent] or {}).get(path.name)) for path in files}
    for path, manifest in manifests.items():
        if manifest is None:
            _refuse_unlabelled(plan, path, unlabelled)
        else:
            manifest.require(plan, str(path))
            _require_bytes(manifest, path)
    digests = {path: digest(path)[:32] for path, manifest in manifests.items() if manifest is None}
    _require_distinct(manifests, digests)
    labelled_manifests = {path: manifest for path, manifest in manifests.items() if manifest is not None}
    if len(simulation_flags := {manifest.simulation for manifest in labelled_manifests.values()}) > 1:
        raise InvalidInput("reports: simulated reports cannot be combined with reports of people")
    separate_manifests = [manifest for path, manifest in manifests.items() if path.parent.resolve() not in folders]
    return Delivery(
        tuple(files),
        {str(path): manifest.rows for path, manifest in labelled_manifests.items()},
        True in simulation_flags,
        len(labelled_manifests) < len(manifests),
        frozenset(part for manifest in labelled_manifests.values() for part in manifest.parts)
        | frozenset(digests.values()),
        add_rounds(
            entry.rounds if entry else ()
            for entry in [
                *separate_manifests,
                *((folder_manifests[folder_path] or {}).get(FOLDER) for folder_path in folders),
            ]
        ),
    )


def add_rounds(counts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Sum the numbers of people with one round, two, ...; empty if one set does not state them.

    >>> add_rounds([(5, 2), (3,)]), add_rounds([(5, 2), ()])
    ((8, 2), ())
    """
    all_counts = list(counts)
    return tuple(map(sum, zip_longest(*all_counts, fillvalue=0))) if all(all_counts) else ()


def read_manifest(path: Path) -> Manifest | None:
    """Read the manifest of a file of reports, in it or in the file next to it; None if missing."""
    if path.suffix == ".parquet":
        return manifest_in_schema(parquet_schema(path), str(path))
    return Manifest.from_json(sidecar(path).read_bytes(), str(sidecar(path))) if sidecar(path).is_file() else None


def _manifest_of(path: Path, folder_entry: Manifest | None) -> Manifest | None:
    """The manifest of a file: from its Parquet schema, from the file next to it, or from the list of its folder."""
    file_manifest = read_manifest(path)
    if folder_entry is None or file_manifest is None:
        return file_manifest if folder_entry is None else folder_entry
    if (folder_entry.plan, folder_entry.simulation, folder_entry.rows, folder_entry.parts) != (
        file_manifest.plan,
        file_manifest.simulation,
        file_manifest.rows,
        file_manifest.parts,
    ):
        raise InvalidInput(f"{path}: the reports differ from the manifest of their folder")
    return folder_entry


def _require_bytes(manifest: Manifest, path: Path) -> None:
    """`InvalidInput` if the file does not have the checksum in its manifest."""
    if not manifest.sha256 and path.suffix != ".parquet":
        raise InvalidInput(f"{path}: its manifest has no checksum of the file")
    if manifest.sha256 and digest(path) != manifest.sha256:
        raise InvalidInput(f"{path}: the reports do not match the checksum in their manifest")


def refuse_repeated_reports(first: frozenset[str], second: frozenset[str]) -> None:
    """Raise `InvalidInput` if two sets of partitions overlap or hold the same rows."""
    if first & second or (first and second and add_fingerprints(first) == add_fingerprints(second)):
        raise invalid("reports", "every respondent's report once", Phrase("the same reports twice"))


def _require_complete(folder: Path, manifests: Mapping[str, Manifest] | None) -> None:
    """`InvalidInput` unless a folder has exactly the files of its list, if it has a list."""
    if manifests is None:
        return
    names = {path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet") and path.name[0] not in "._"}
    if differences := sorted(names ^ (set(manifests) - {FOLDER})):
        file_name = differences[0]
        state = "missing" if file_name in manifests else "added"
        raise invalid(
            "reports", f"the files of their {FOLDER}, all of them", Phrase(f"{file_name} {state}"), str(folder)
        )


def _refuse_unlabelled(plan: Plan, path: Path, unlabelled: bool) -> None:
    """`InvalidInput` for a file without a manifest, unless it is allowed and does not look like raw answers."""
    if not unlabelled:
        missing = f"manifest {sidecar(path).name} not found" if path.suffix == ".csv" else "no manifest in its schema"
        raise InvalidInput(f"{path}: {missing}; {UNLABELLED_HINT}")
    if plan.respondent is not None and plan.respondent in names_of(path):
        raise invalid("reports", f"no column {plan.respondent!r} of respondents", Phrase("raw answers"), str(path))


def _require_distinct(manifests: dict[Path, Manifest | None], digests: dict[Path, str]) -> None:
    """`InvalidInput` if a partition is there twice, under any name, or two files hold the same rows."""
    first_paths: dict[str, Path] = {}
    for path, manifest in manifests.items():
        if manifest is None:
            marks = {digests[path]}
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
