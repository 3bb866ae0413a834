"""Stored reports become tables and files like those that `privatize` writes, without ids and days."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sized
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa
from ldpopt.files.atomic import digest, folder_aside, replace_text
from ldpopt_survey.collect.commit import write_reports
from ldpopt_survey.collect.manifest import (
    FOLDER,
    Manifest,
    add_fingerprints,
    fingerprint_rows,
    folder_content,
    with_manifest,
)
from ldpopt_survey.plan.plan import BOOKLET, Plan
from ldpopt_survey.server.databases import database
from ldpopt_survey.server.store import Rows, Store
from ldpopt_survey.server.submission import CODE

BATCH_ROWS = 1 << 16
MODE = "collected"
"""The mode of collected reports, in the place of a source of randomness such as "fresh"."""


def stored_batches(plan: Plan, store: Store, parts: dict[str, list[str]]) -> Iterator[Any]:
    """Read all reports of the round at one moment, as record batches.

    parts : receives the fingerprints of the rows by day. The fingerprint of a report is a hash of its id, that of
    several reports the sum. They show whether two exports, or an export and the database, hold the same reports.

    Raises `InvalidInput` for a report that `plan` does not know.
    """
    labels = [pa.array(question.reports, pa.string()) for question in plan.questions]
    names = pa.array([question.name for question in plan.booklets], pa.string())
    first = 2 * bool(plan.booklets)
    public_start = first + len(plan.everyone)
    width = public_start + len(plan.public)
    public = {open_question.name: pa.array(open_question.texts, pa.string()) for open_question in plan.public}
    for rows in store.rows(BATCH_ROWS):
        if any(len(codes) != CODE.itemsize * width for _, _, codes in rows):
            raise InvalidInput(f"database: each respondent must have {width} reports, and one has another number")
        codes = np.frombuffer(b"".join(codes for _, _, codes in rows), CODE).reshape(len(rows), width)
        columns = {}
        if plan.booklets:
            columns[BOOKLET] = _column(codes[:, 0], names, BOOKLET, np.int32)
        everyone, booklets = iter(codes[:, first:public_start].T), iter(range(len(names)))
        for question, report_labels in zip(plan.questions, labels, strict=True):
            if question.probability == 1:
                columns[question.name] = _column(next(everyone), report_labels, question.name, _kind(report_labels))
            else:
                is_booklet = codes[:, 0] == next(booklets)
                booklet_reports = np.where(is_booklet, codes[:, 1], 0)
                columns[question.name] = _column(
                    booklet_reports, report_labels, question.name, _kind(report_labels), ~is_booklet
                )
        for (name, answers), positions in zip(public.items(), codes[:, public_start:].T, strict=True):
            columns[name] = _column(positions, answers, name, np.int32)
        for day, part in _parts(plan, rows).items():
            parts.setdefault(day, []).append(part)
        yield pa.record_batch(columns)


def _column(codes: Any, labels: Any, name: str, kind: Any, empty: Any = None) -> Any:
    """Positions (n,) among labels as an arrow dictionary array, null where `empty`."""
    if codes.max() >= len(labels):
        raise InvalidInput(f"reports of {name!r}: a report is not one of the {len(labels)} of the plan")
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(kind), mask=empty), labels)


def _kind(labels: Sized) -> Any:
    """The integers of the positions of reports, as `privatize` writes them."""
    return np.int8 if len(labels) < 1 << 7 else np.int32


def parts_of(parts: dict[str, list[str]]) -> list[str]:
    """Return the fingerprint of each day's reports, in the order of the days."""
    return [add_fingerprints(parts[day]) for day in sorted(parts)]


def _parts(plan: Plan, rows: Rows) -> dict[str, str]:
    """The fingerprints of the rows of each day."""
    head = hashlib.sha256(f"ldpopt stored report {plan.checksum} ".encode())
    days: dict[str, list[bytes]] = {}
    for id, day, _ in rows:
        digest = head.copy()
        digest.update(id)
        days.setdefault(day, []).append(digest.digest()[:16])
    return {
        day: fingerprint_rows(np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)) for day, digests in days.items()
    }


FILE_ROWS = 1 << 20


def export_reports(plan: Plan, location: str | PathLike[str], output: str | PathLike[str]) -> int:
    """Write the reports of a database as Parquet files with manifests, and return their number.

    Parameters
    ----------
    plan : The plan of the round.
    location : The database, as in `database`.
    output : A new file ``*.parquet``, or a new folder with a file for every million reports, which `aggregate` can
        count on a cluster. Neither ids nor days are written.

    Returns
    -------
    int
        The number of reports.

    Raises
    ------
    InvalidInput
        For an existing path, and for a database without reports of `plan`.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, SurveySpec, aggregate, make_plan
    >>> from ldpopt_survey.server import Submission
    >>> plan = make_plan(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), {"vote": [[0.75, 0.25]] * 2})
    >>> with TemporaryDirectory() as folder:
    ...     with database(Path(folder, "reports.db"), plan, create=True) as store:
    ...         _ = store.write([Submission(bytes(16), bytes([1, 0, 0, 0]))], "2026-01-31")
    ...     export_reports(plan, Path(folder, "reports.db"), Path(folder, "reports.parquet"))
    ...     aggregate(plan, Path(folder, "reports.parquet")) == aggregate(plan, Path(folder, "reports.db"))
    1
    True
    """
    path = Path(output)
    if os.path.lexists(path):
        raise invalid("reports", "a path that is not taken", str(path))
    if not path.absolute().parent.is_dir():
        raise invalid("reports", "a folder that exists", str(path.parent))
    with database(location, plan) as store:
        days: dict[str, list[str]] = {}
        batches = stored_batches(plan, store, days)
        if path.suffix == ".parquet":
            return _write(plan, list(batches), days, path).rows
        if path.suffix:
            raise invalid("reports", "a file *.parquet, or a folder", path.name)
        try:
            return _folder(plan, batches, days, path)
        except FileExistsError:
            got = Phrase("one that was taken meanwhile")
            raise invalid("reports", "a path that is not taken", got, str(path)) from None


def _write(plan: Plan, batches: list[Any], days: dict[str, list[str]], path: Path) -> Manifest:
    """Write one file of reports with its manifest. `days` are the fingerprints of its rows by day."""
    kinds = {BOOKLET: np.int32} if plan.booklets else {}
    kinds |= {question.name: _kind(question.reports) for question in plan.questions}
    kinds |= {open_question.name: np.int32 for open_question in plan.public}
    schema = {name: pa.dictionary(pa.from_numpy_dtype(kind), pa.string()) for name, kind in kinds.items()}
    table: Any = pa.Table.from_batches(batches, pa.schema(schema)).combine_chunks()
    manifest = Manifest.from_plan(plan, MODE, table.num_rows, parts_of(days))
    write_reports(path, with_manifest(table, manifest))
    return manifest


def _folder(plan: Plan, record_batches: Iterable[Any], days: dict[str, list[str]], path: Path) -> int:
    """Write a folder with a file for every `FILE_ROWS` reports. It appears when all files are written."""
    with folder_aside(path) as work:
        work.chmod(0o700)
        files: dict[str, Manifest] = {}
        pending_batches: list[Any] = []
        batches = iter(record_batches)
        while (batch := next(batches, None)) is not None or pending_batches or not files:
            pending_batches += [] if batch is None else [batch]
            if batch is None or sum(part.num_rows for part in pending_batches) >= FILE_ROWS:
                name = f"part-{len(files):05d}.parquet"
                manifest = _write(plan, pending_batches, days, work / name)
                files[name] = Manifest.from_plan(plan, MODE, manifest.rows, manifest.parts, digest(work / name))
                pending_batches.clear()
                days.clear()
        rows = sum(manifest.rows for manifest in files.values())
        folder_total = Manifest.from_plan(
            plan, MODE, rows, [add_fingerprints(manifest.parts) for manifest in files.values()]
        )
        replace_text(work / FOLDER, folder_content(folder_total, files))
        work.chmod(0o755)
    return rows
