"""Checks of reports before they are counted.

They belong to the plan, are complete, unchanged and given once, and either all of them are simulated or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import digest
from ldpopt.survey.collect.answers import Partition, column_names, input_files, values_hidden
from ldpopt.survey.collect.manifest import FOLDER, Manifest, folder_manifest, in_table, sidecar, total
from ldpopt.survey.plan.plan import Plan

BY_HAND = "reports written by hand are counted with --unlabelled (unlabelled=True)"


@dataclass(frozen=True)
class Delivery:
    """Files of reports that may be counted together.

    rows : the number of rows in each file's manifest, by path; a file without a manifest has no entry.
    sources : the fingerprints of all partitions, and for a file without a manifest the beginning of its SHA-256.
    """

    files: tuple[Path, ...]
    rows: dict[str, int]
    simulation: bool
    unlabelled: bool
    sources: frozenset[str]

    def require_rows(self, parts: Iterable[Partition]) -> None:
        """`InvalidInput` unless every file has as many rows as its manifest says."""
        found = dict.fromkeys(self.rows, 0)
        for part in parts:
            for piece in part.pieces:
                if piece.path in found:
                    found[piece.path] += piece.rows
        for path, rows in found.items():
            if rows != self.rows[path]:
                raise invalid("reports", f"the {self.rows[path]} rows of their manifest", rows, path)


def admit(plan: Plan, reports: str | Path | Sequence[str | Path], unlabelled: bool = False) -> Delivery:
    """The files of `reports`, if they may be counted under `plan`; else `InvalidInput`.

    unlabelled : whether files without a manifest are accepted, too.
    """
    given = [Path(reports)] if isinstance(reports, (str, Path)) else [Path(path) for path in reports]
    if not given:
        raise invalid("reports", "at least one file", Phrase("none"))
    files = [file for path in given for file in input_files(path)]
    if len(set(files)) != len(files):
        twice = next(path for at, path in enumerate(files) if path in files[:at])
        raise invalid("reports", "every file once", Phrase("one twice"), str(twice))
    folders = [path.resolve() for path in given if path.is_dir()]
    listed = {folder: folder_manifest(folder) for folder in dict.fromkeys([*folders, *(path.parent for path in files)])}
    for folder in folders:
        _require_complete(folder, listed[folder])
    said = {path: _manifest_of(path, (listed[path.parent] or {}).get(path.name)) for path in files}
    for path, manifest in said.items():
        if manifest is None:
            _by_hand(plan, path, unlabelled)
        else:
            manifest.require(plan, str(path))
            _require_bytes(manifest, path)
    by_hand = {path: digest(path)[:32] for path, manifest in said.items() if manifest is None}
    _require_distinct(said, by_hand)
    labelled = {path: manifest for path, manifest in said.items() if manifest is not None}
    if len(kinds := {manifest.simulation for manifest in labelled.values()}) > 1:
        raise invalid("reports", "all of them simulated, or none", Phrase("some of each"))
    return Delivery(
        tuple(files),
        {str(path): manifest.rows for path, manifest in labelled.items()},
        True in kinds,
        len(labelled) < len(said),
        frozenset(part for manifest in labelled.values() for part in manifest.parts) | frozenset(by_hand.values()),
    )


def _manifest_of(path: Path, listed: Manifest | None) -> Manifest | None:
    """The manifest of a file: from its Parquet schema, from the file beside it, or from the list of its folder."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        own = in_table(values_hidden(str(path), pq.read_schema, path), str(path))
    else:
        own = Manifest.from_json(sidecar(path).read_bytes(), str(sidecar(path))) if sidecar(path).is_file() else None
    if listed is None or own is None:
        return own if listed is None else listed
    if (listed.plan, listed.simulation, listed.rows, listed.parts) != (own.plan, own.simulation, own.rows, own.parts):
        raise invalid("reports", "what the manifest of their folder says", Phrase("another file"), str(path))
    return listed


def _require_bytes(manifest: Manifest, path: Path) -> None:
    """`InvalidInput` if the file does not have the checksum in its manifest."""
    if not manifest.sha256 and path.suffix != ".parquet":
        raise invalid("manifest", "the checksum of its file", Phrase("none"), str(path))
    if manifest.sha256 and digest(path) != manifest.sha256:
        raise invalid("reports", "the bytes that their manifest is about", Phrase("others"), str(path))


def refuse_twice(first: frozenset[str], second: frozenset[str]) -> None:
    """`InvalidInput` if two sets of partitions have one in common, or hold the same rows."""
    if first & second or (first and second and total(first) == total(second)):
        raise invalid("reports", "every respondent's report once", Phrase("the same reports twice"))


def _require_complete(folder: Path, listed: Mapping[str, Manifest] | None) -> None:
    """`InvalidInput` unless a folder has exactly the files of its list, if it has a list."""
    if listed is None:
        return
    found = {path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet") and path.name[0] not in "._"}
    if found != set(listed):
        odd = sorted(found ^ set(listed))[0]
        what = "missing" if odd in listed else "added"
        raise invalid("reports", f"the files of their {FOLDER}, all of them", Phrase(f"{odd} {what}"), str(folder))


def _by_hand(plan: Plan, path: Path, unlabelled: bool) -> None:
    """`InvalidInput` for a file without a manifest, unless it is allowed and does not look like raw answers."""
    if not unlabelled:
        what = f"{sidecar(path).name} beside it" if path.suffix == ".csv" else "one in its schema"
        raise InvalidInput(f"reports: expected a manifest, {what}, got none at {path}; {BY_HAND}")
    if plan.respondent is not None and plan.respondent in column_names(path):
        raise invalid("reports", f"no column {plan.respondent!r} of respondents", Phrase("raw answers"), str(path))


def _require_distinct(said: dict[Path, Manifest | None], by_hand: dict[Path, str]) -> None:
    """`InvalidInput` if a partition is there twice, under whatever name, or two files hold the same rows."""
    seen: dict[str, Path] = {}
    for path, manifest in said.items():
        if manifest is None:
            marks = {by_hand[path]}
        elif manifest.rows == 0:
            continue
        else:
            marks = {*manifest.parts, manifest.fingerprint}
            if len(set(manifest.parts)) != len(manifest.parts):
                raise invalid("reports", "every respondent's report once", Phrase("a partition twice"), str(path))
        for mark in marks:
            if mark in seen:
                raise invalid("reports", "every report once", Phrase(f"those of {seen[mark].name} again"), str(path))
            seen[mark] = path
    # The same rows may be cut differently: then the fingerprints of a folder add up to those of another folder or file.
    folders: dict[Path, list[str]] = {}
    for path, manifest in said.items():
        if manifest is not None and manifest.rows:
            folders.setdefault(path.parent, []).extend(manifest.parts)
    for folder, parts in folders.items():
        again = seen.setdefault(total(parts), folder)
        if folder not in (again, again.parent):
            raise invalid("reports", "every report once", Phrase(f"those of {folder.name} again"), str(again))
