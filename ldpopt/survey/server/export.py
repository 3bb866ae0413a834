"""From a database to files of reports with their manifests, as `privatize` writes them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.files import digest, replace_text, sync_folder
from ldpopt.survey.collect.commit import write_reports
from ldpopt.survey.collect.manifest import FOLDER, Manifest, folder_content, total, with_manifest
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.server.location import database
from ldpopt.survey.server.reading import MODE, parts_of, stored_batches

FILE_ROWS = 1 << 20


def export_reports(plan: Plan, location: str | PathLike[str], output: str | PathLike[str]) -> int:
    """Write the reports of a database as Parquet files with manifests, and return their number.

    location : as in `database`. output : a new file ``*.parquet``, or a new folder with a file for every million
        reports, which `aggregate` can count on a cluster.

    Neither ids nor days are written. A manifest records the plan, the number of rows and which reports they are.
    `InvalidInput` for a taken path, and for a database without reports of `plan`.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt.survey import QuestionSpec, SurveySpec, aggregate, make_plan
    >>> from ldpopt.survey.server import Submission
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
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
        found = stored_batches(plan, store, days)
        if path.suffix == ".parquet":
            return _write(plan, list(found), days, path).rows
        if path.suffix:
            raise invalid("reports", "a file *.parquet, or a folder", path.name)
        return _folder(plan, found, days, path)


def _write(plan: Plan, made: list[Any], days: dict[str, list[str]], path: Path) -> Manifest:
    """Write one file of reports with its manifest. `days` are the fingerprints of its rows by day."""
    import pyarrow as pa

    schema = {question.name: _kind(question.reports) for question in plan.questions}
    table: Any = pa.Table.from_batches(made, pa.schema(schema)).combine_chunks()
    said = Manifest.of(plan, MODE, table.num_rows, parts_of(days))
    write_reports(path, with_manifest(table, said))
    return said


def _kind(labels: tuple[str, ...]) -> Any:
    import pyarrow as pa

    return pa.dictionary(pa.int8() if len(labels) < 1 << 7 else pa.int32(), pa.string())


def _folder(plan: Plan, found: Iterable[Any], days: dict[str, list[str]], path: Path) -> int:
    """Write a folder with a file for every `FILE_ROWS` reports. It appears when all files are written."""
    work = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    work.mkdir(0o700)
    try:
        files: dict[str, Manifest] = {}
        waiting: list[Any] = []

        def flush() -> None:
            name = f"part-{len(files):05d}.parquet"
            said = _write(plan, waiting, days, work / name)
            files[name] = Manifest.of(plan, MODE, said.rows, said.parts, digest(work / name))
            waiting.clear()
            days.clear()

        for one in found:
            waiting.append(one)
            if sum(batch.num_rows for batch in waiting) >= FILE_ROWS:
                flush()
        if waiting or not files:
            flush()
        rows = sum(said.rows for said in files.values())
        whole = Manifest.of(plan, MODE, rows, [total(said.parts) for said in files.values()])
        replace_text(work / FOLDER, folder_content(whole, files))
        work.chmod(0o755)
        if os.path.lexists(path):
            raise invalid("reports", "a path that is not taken", Phrase("one that was taken meanwhile"), str(path))
        work.rename(path)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    sync_folder(path.absolute().parent)
    return rows
