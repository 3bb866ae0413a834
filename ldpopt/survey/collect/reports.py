"""Writing and joining files of reports. A file is either there and complete, manifest included, or absent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ldpopt.files import aside, digest, replace_text
from ldpopt.survey.collect.answers import values_hidden
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.manifest import FOLDER, Manifest, folder_content, with_manifest
from ldpopt.survey.plan.plan import Plan


def write_reports(path: Path, table: Any) -> None:
    """Write one partition's reports, a pyarrow table with its manifest, as Parquet or CSV."""
    with aside(path) as written:
        values_hidden(str(path), _write, path.suffix, table, written)


def _write(suffix: str, table: Any, written: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    if suffix == ".parquet":
        pq.write_table(table, written, compression="zstd", row_group_size=1 << 20, write_page_checksum=True)
        return
    # The CSV writer accepts neither dictionaries nor string views.
    views = (pa.types.is_dictionary, pa.types.is_string_view)
    plain = [c.cast(pa.large_string()) if any(v(c.type) for v in views) else c for c in table.columns]
    csv.write_csv(pa.table(plain, table.column_names), written)


def write_manifest(folder: Path, plan: Plan, mode: str, parts: Sequence[Path], tallies: Sequence[Tally]) -> None:
    """Write the list of a folder's partitions with their checksums.

    This is the last file of the folder to be written.
    """
    files = {
        path.name: Manifest.of(plan, mode, tally.rows, [tally.row_set], digest(path))
        for path, tally in zip(parts, tallies, strict=True)
    }
    whole = Manifest.of(plan, mode, sum(tally.rows for tally in tallies), [tally.row_set for tally in tallies])
    replace_text(folder / FOLDER, folder_content(whole, files))


def join(parts: Sequence[Path], path: Path, made: Manifest) -> None:
    """Write all partitions as one file; if it is Parquet, its schema holds the manifest."""
    import pyarrow.parquet as pq

    with aside(path) as written:
        if path.suffix == ".csv":
            with open(written, "wb") as out:
                for number, part in enumerate(parts):
                    with open(part, "rb") as file:
                        header = file.readline()
                        out.write(header if number == 0 else b"")
                        while content := file.read(1 << 20):
                            out.write(content)
            return
        schema = with_manifest(pq.read_schema(parts[0]).empty_table(), made).schema
        with pq.ParquetWriter(written, schema, compression="zstd", write_page_checksum=True) as writer:
            for part in parts:
                with pq.ParquetFile(part) as file:
                    for group in range(file.num_row_groups):
                        writer.write_table(file.read_row_group(group))
