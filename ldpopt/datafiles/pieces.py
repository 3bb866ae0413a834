"""Files of any kind by their ranges of rows: names, ranges, and the record batches of a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ldpopt.datafiles.delimited import distinct, header, names_in, range_batches, record_ranges
from ldpopt.datafiles.dialect import PLAIN, Dialect
from ldpopt.datafiles.hidden import values_hidden
from ldpopt.datafiles.statistical import READERS, statistical_names, statistical_rows, statistical_table
from ldpopt.datafiles.workbook import workbook_table
from ldpopt.errors import Phrase, invalid

DELIMITED = (".csv", ".tsv", ".txt")
WORKBOOKS = (".xlsx", ".xlsm")
STATISTICAL = tuple(READERS)
SUFFIXES = (*DELIMITED, ".parquet", *WORKBOOKS, *STATISTICAL)


def kind_of(path: Path) -> str:
    """``delimited``, ``parquet``, ``workbook`` or ``statistical``, by the ending; `InvalidInput` for any other."""
    suffix = path.suffix.lower()
    kinds = {"delimited": DELIMITED, "parquet": (".parquet",), "workbook": WORKBOOKS, "statistical": STATISTICAL}
    for kind, suffixes in kinds.items():
        if suffix in suffixes:
            return kind
    raise invalid("answers", f"a file named *{', *'.join(SUFFIXES)}", Phrase(suffix or "no ending"), str(path))


def names_of(path: Path, dialect: Dialect = PLAIN) -> list[str]:
    """The column names of one file, all distinct."""
    kind = kind_of(path)
    if kind == "delimited":
        names = names_in(header(path)[0], dialect)
    elif kind == "parquet":
        import pyarrow.parquet as pq

        names = values_hidden(str(path), lambda: list(pq.read_schema(path).names))
    elif kind == "workbook":
        names = list(workbook_table(path).column_names)
    else:
        names = statistical_names(path)
    return distinct(names, str(path))


def ranges_of(path: Path, rows: int, reach: int, dialect: Dialect = PLAIN) -> Iterator[tuple[int, int, int]]:
    """(start, stop, rows) of ranges of about `rows` rows or `reach` bytes: of bytes, of row groups, or of rows."""
    kind = kind_of(path)
    if kind == "delimited":
        yield from record_ranges(path, reach, dialect)
    elif kind == "parquet":
        yield from _row_groups(path, rows)
    elif kind == "workbook":
        found = workbook_table(path).num_rows
        yield 0, found, found
    else:
        found = statistical_rows(path)
        for start in range(0, found, rows):
            yield start, min(start + rows, found), min(rows, found - start)


def batches_of(
    path: str,
    start: int,
    stop: int,
    rows: int,
    columns: Sequence[str],
    dialect: Dialect,
    size: int,
    dictionaries: Sequence[str] = (),
) -> Iterator[Any]:
    """The record batches of a range, of at most `size` rows each; those of delimited text are all text.

    `dictionaries` are columns that Parquet may give as dictionaries. What a library says of a file that it cannot read
    quotes its cells, so that it is not passed on: `InvalidInput` names the file alone.
    """
    found = _batches_of(path, start, stop, rows, columns, dialect, size, dictionaries)
    while (batch := values_hidden(path, next, found, None)) is not None:
        yield batch


def _batches_of(
    path: str,
    start: int,
    stop: int,
    rows: int,
    columns: Sequence[str],
    dialect: Dialect,
    size: int,
    dictionaries: Sequence[str],
) -> Iterator[Any]:
    kind = kind_of(Path(path))
    if kind == "delimited":
        yield from range_batches(path, start, stop, rows, columns, dialect, size)
        return
    if kind == "parquet":
        yield from _parquet_batches(path, start, stop, rows, columns, size, dictionaries)
        return
    table = (
        workbook_table(Path(path)).select(list(columns))
        if kind == "workbook"
        else statistical_table(Path(path), columns, start, stop)
    )
    if table.num_rows != rows:
        raise invalid("answers", f"the {rows} rows that the file had", table.num_rows, path)
    yield from table.to_batches(size)


def _row_groups(path: Path, most: int) -> Iterator[tuple[int, int, int]]:
    import pyarrow.parquet as pq

    metadata = values_hidden(str(path), pq.read_metadata, path)
    start = rows = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= most or group == metadata.num_row_groups - 1:
            yield start, group + 1, rows
            start, rows = group + 1, 0


def _parquet_batches(
    path: str, start: int, stop: int, expected: int, columns: Sequence[str], size: int, dictionaries: Sequence[str]
) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, read_dictionary=list(dictionaries), page_checksum_verification=True) as file:
        rows = 0
        for batch in file.iter_batches(size, list(range(start, stop)), list(columns), use_threads=False):
            rows += batch.num_rows
            yield batch
    if rows != expected:
        raise invalid("answers", f"the {expected} rows that the file says it has", rows, path)
