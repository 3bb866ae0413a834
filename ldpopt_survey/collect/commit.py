"""Publish finished partitions atomically as one file or folder of reports, and recognize a repeated call.

A file of reports is either there and complete, manifest included, or absent. Just before the reports appear, a note
next to them is written that identifies them. It stays until the rest of the run's files are gone. A call that is
repeated after a kill in between finds the note, compares the reports with it, and returns the tally.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import arrow_csv, pa, pq
from ldpopt.files import strict
from ldpopt.files.atomic import NO_FILE, aside, create_private, digest, move_to_new, replace_text, sync_folder
from ldpopt_survey.collect.answers import values_hidden
from ldpopt_survey.collect.coding import Tally
from ldpopt_survey.collect.manifest import (
    FOLDER,
    SIDECAR,
    SIMULATED,
    Manifest,
    folder_content,
    folder_manifest,
    read_manifest,
    sidecar,
    with_manifest,
)
from ldpopt_survey.collect.workfolder import PARTS, WorkFolder, tally_of
from ldpopt_survey.plan.plan import Plan


def write_reports(path: Path, table: Any) -> None:
    """Write one partition's reports, a pyarrow table with its manifest, as Parquet or CSV."""
    with aside(path) as temporary_path:
        values_hidden(str(path), _write, path.suffix, table, temporary_path)


def _write(suffix: str, table: Any, path: Path) -> None:
    if suffix == ".parquet":
        pq.write_table(table, path, compression="zstd", row_group_size=1 << 20, write_page_checksum=True)
        return
    # The CSV writer accepts neither dictionaries nor string views.
    views = (pa.types.is_dictionary, pa.types.is_string_view)
    columns = [c.cast(pa.large_string()) if any(v(c.type) for v in views) else c for c in table.columns]
    arrow_csv.write_csv(pa.table(columns, table.column_names), path)


def write_manifest(
    folder: Path, plan: Plan, mode: str, parts: Sequence[Path], tallies: Sequence[Tally], rounds: tuple[int, ...] = ()
) -> None:
    """Write the list of a folder's partitions with their checksums.

    This is the last file of the folder to be written.
    """
    files = {
        path.name: Manifest.from_plan(plan, mode, tally.rows, [tally.row_set], digest(path))
        for path, tally in zip(parts, tallies, strict=True)
    }
    row_sets = [tally.row_set for tally in tallies]
    folder_total = Manifest.from_plan(plan, mode, sum(tally.rows for tally in tallies), row_sets, rounds=rounds)
    replace_text(folder / FOLDER, folder_content(folder_total, files))


def join(parts: Sequence[Path], path: Path, manifest: Manifest) -> None:
    """Write all partitions as one file; if it is Parquet, its schema holds the manifest."""
    with aside(path) as temporary_path:
        if path.suffix == ".csv":
            with open(temporary_path, "wb") as out:
                for number, part in enumerate(parts):
                    with open(part, "rb") as file:
                        header = file.readline()
                        out.write(header if number == 0 else b"")
                        while content := file.read(1 << 20):
                            out.write(content)
            return
        schema = with_manifest(pq.read_schema(parts[0]).empty_table(), manifest).schema
        with pq.ParquetWriter(temporary_path, schema, compression="zstd", write_page_checksum=True) as writer:
            for part in parts:
                with pq.ParquetFile(part) as file:
                    for group in range(file.num_row_groups):
                        writer.write_table(file.read_row_group(group))


NOTE, MANIFEST = "finished.json", "manifest.json"


def note_of(output: Path) -> Path:
    """Return the path of the note about the reports at `output` while the run ends."""
    return output.with_name(f".{output.name}.finished")


def read_published_tally(output: Path, run_description: dict[str, Any]) -> Tally | None:
    """Return the tally of the described run if it wrote the reports at `output`; else None.

    run_description : the `description` of the run.
    """
    try:
        note = strict.json_value(note_of(output).read_bytes(), "note")
        if note["asked"] != run_description or note["files"] != _digests(output):
            return None
        return tally_of(note["tally"])
    except (*NO_FILE, InvalidInput, KeyError, TypeError):
        return None


def refuse_existing(output: Path) -> None:
    """Raise `InvalidInput` if anything exists at `output`, even a dangling link."""
    if os.path.lexists(output):
        raise _path_exists_error(output)


def refuse_other_files(output: Path, is_single_file: bool, mode: str) -> None:
    """Raise `InvalidInput` if there is anything at `output` but reports of the same kind, which may be replaced.

    Answers, folders with other files in them and dangling links are never replaced, nor reports of people by simulated
    ones.
    """
    if not os.path.lexists(output):
        return
    expected = "a path that is not taken, or one with reports of an earlier run"
    if output.is_symlink() or is_single_file != output.is_file() or not (is_single_file or output.is_dir()):
        raise invalid("reports", expected, Phrase("something else"), str(output))
    if is_single_file:
        manifest = read_manifest(output)
    else:
        manifests = folder_manifest(output) or {}
        manifest = manifests.get(FOLDER)
        names = {path.name.removesuffix(SIDECAR) for path in output.iterdir()}
        if manifest is not None and (others := sorted(names - set(manifests))):
            raise invalid("reports", "a folder with nothing but reports", Phrase(others[0]), str(output))
    if manifest is None:
        raise invalid("reports", expected, Phrase("a file without a manifest"), str(output))
    if mode == SIMULATED and not manifest.simulation:
        expected = "a path without reports of people, which simulated ones do not replace"
        raise invalid("reports", expected, Phrase("such reports"), str(output))


def _path_of_earlier(output: Path) -> Path:
    """Return where the earlier reports of a folder lie until the new ones are there."""
    return output.with_name(f".{output.name}.replaced")


def remove_replaced(output: Path) -> None:
    """Remove the earlier reports of a folder that was replaced."""
    if os.path.lexists(_path_of_earlier(output)):
        shutil.rmtree(_path_of_earlier(output))


def publish(
    folder: WorkFolder,
    plan: Plan,
    output: Path,
    is_single_file: bool,
    tally: Tally,
    run_description: dict[str, Any],
    force: bool = False,
) -> None:
    """Move the finished partitions to `output`, which must not exist unless `force`.

    With `force` the note is written first, so that a call that is repeated after a kill in between recognizes its
    reports.
    """
    folder.sweep()
    mode, tallies = folder.state["mode"], folder.tallies()
    if is_single_file:
        source = folder.path / f"reports.{folder.state['kind']}"
        manifest = Manifest.from_plan(plan, mode, tally.rows, [part.row_set for part in tallies], rounds=tally.rounds)
        join(folder.parts, source, manifest)
    else:
        source = folder.path / PARTS
        write_manifest(source, plan, mode, folder.parts, tallies, tally.rounds)
    if force:
        refuse_other_files(output, is_single_file, mode)
    else:
        refuse_existing(output)
    if is_single_file and output.suffix == ".csv":
        _publish_sidecar(folder, replace(manifest, sha256=digest(source)), sidecar(output), force)
    note = {"asked": run_description, "tally": asdict(tally), "files": _digests(source)}
    create_private(folder.path / NOTE, strict.json_text(note).encode(), force=True)
    os.replace(folder.path / NOTE, note_of(output))
    try:
        if is_single_file and force:
            os.replace(source, output)
        elif is_single_file:
            move_to_new(source, output)
        else:
            # A rename replaces neither a file nor a folder with contents, so nothing is lost if the name was taken
            # meanwhile.
            if force and os.path.lexists(output):
                remove_replaced(output)
                output.rename(_path_of_earlier(output))
            refuse_existing(output)
            source.rename(output)
    except (FileExistsError, NotADirectoryError):
        raise _path_exists_error(output) from None
    sync_folder(output.parent)


def _publish_sidecar(folder: WorkFolder, manifest: Manifest, path: Path, force: bool) -> None:
    """Put the manifest next to the reports.

    An earlier attempt may have left it there, with the same bytes.
    """
    replace_text(folder.path / MANIFEST, manifest.to_json())
    if force:
        os.replace(folder.path / MANIFEST, path)
        return
    try:
        move_to_new(folder.path / MANIFEST, path)
        sync_folder(path.parent)
    except FileExistsError:
        if path.is_file() and path.read_bytes() == manifest.to_json().encode():
            return
        raise _path_exists_error(path) from None


def forget_note(output: Path) -> None:
    """Remove the note; the run is over."""
    note_of(output).unlink(missing_ok=True)


def _digests(output: Path) -> dict[str, str]:
    """The checksums of a file, or of the files in a folder by name."""
    if output.is_dir():
        return {path.name: digest(path) for path in sorted(output.iterdir())}
    return {"": digest(output)}


def _path_exists_error(output: Path) -> InvalidInput:
    return invalid("reports", "a path that is not taken (--force, force=True, replaces earlier reports)", str(output))
