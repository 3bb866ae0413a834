"""The end of a run: its reports appear all at once, nothing is overwritten, and a repeated call recognises them.

Just before the reports appear, a note beside them is written that says what they are. It stays until the rest of the
run's files are gone. A call that is repeated after a kill in between finds the note, compares the reports with it, and
returns the tally.
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ldpopt import strictjson
from ldpopt.errors import InvalidInput, invalid
from ldpopt.files import NO_FILE, digest, move_to_new, replace_private, replace_text, sync_folder
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.manifest import Manifest, sidecar
from ldpopt.survey.collect.reports import join, write_manifest
from ldpopt.survey.collect.workfolder import PARTS, WorkFolder, tally_of
from ldpopt.survey.plan.plan import Plan

NOTE, MANIFEST = "finished.json", "manifest.json"


def note_of(output: Path) -> Path:
    """Where the note about the reports at `output` is kept while the run ends."""
    return output.with_name(f".{output.name}.finished")


def published(output: Path, asked: dict[str, Any]) -> Tally | None:
    """The tally of the run that was asked for, if that run made the reports at `output`; else None.

    asked : the `description` of the run.
    """
    try:
        note = strictjson.loads(note_of(output).read_bytes(), "note")
        if note["asked"] != asked or note["files"] != _digests(output):
            return None
        return tally_of(note["tally"])
    except (*NO_FILE, InvalidInput, KeyError, TypeError):
        return None


def refuse_taken(output: Path) -> None:
    """`InvalidInput` if there is anything at `output`, even a dangling link."""
    if os.path.lexists(output):
        raise _taken(output)


def publish(folder: WorkFolder, plan: Plan, output: Path, single: bool, tally: Tally, asked: dict[str, Any]) -> None:
    """Put the finished partitions together and move them to `output`, which must not exist."""
    folder.sweep()
    mode, tallies = folder.state["mode"], folder.tallies()
    if single:
        made = folder.path / f"reports.{folder.state['kind']}"
        said = Manifest.of(plan, mode, tally.rows, [one.row_set for one in tallies])
        join(folder.parts, made, said)
    else:
        made = folder.path / PARTS
        write_manifest(made, plan, mode, folder.parts, tallies)
    refuse_taken(output)
    if single and output.suffix == ".csv":
        _publish_sidecar(folder, replace(said, sha256=digest(made)), sidecar(output))
    note = {"asked": asked, "tally": asdict(tally), "files": _digests(made)}
    replace_private(folder.path / NOTE, strictjson.dumps(note).encode())
    os.replace(folder.path / NOTE, note_of(output))
    try:
        if single:
            move_to_new(made, output)
        else:
            # A rename replaces neither a file nor a folder with contents, so nothing is lost if the name was taken
            # meanwhile.
            refuse_taken(output)
            made.rename(output)
    except (FileExistsError, NotADirectoryError):
        raise _taken(output) from None
    sync_folder(output.parent)


def _publish_sidecar(folder: WorkFolder, made: Manifest, path: Path) -> None:
    """Put the manifest where it belongs beside the reports.

    An earlier attempt may have left it there, with the same bytes.
    """
    replace_text(folder.path / MANIFEST, made.to_json())
    try:
        move_to_new(folder.path / MANIFEST, path)
        sync_folder(path.parent)
    except FileExistsError:
        if path.is_file() and path.read_bytes() == made.to_json().encode():
            return
        raise _taken(path) from None


def forget_note(output: Path) -> None:
    """Remove the note; the run is over."""
    note_of(output).unlink(missing_ok=True)


def _digests(made: Path) -> dict[str, str]:
    """The checksums of a file, or of the files in a folder by name."""
    if made.is_dir():
        return {path.name: digest(path) for path in sorted(made.iterdir())}
    return {"": digest(made)}


def _taken(output: Path) -> InvalidInput:
    return invalid("reports", "a path that is not taken", str(output))
