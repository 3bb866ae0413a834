"""Read files of any type (text, workbook, Parquet, SPSS, Stata, SAS) as record batches, one range of rows at a time.

Errors of the libraries that read answers are reported without the values that they quote.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid
from ldpopt.extras import need, pa, pc
from ldpopt.files.delimited import PLAIN, Dialect, header_rows_of
from ldpopt_survey.datafiles.delimited import distinct_names, names_and_texts, range_batches, read_head, record_ranges
from ldpopt_survey.datafiles.delimited import empty_rows_at_end as empty_rows_of_text
from ldpopt_survey.datafiles.foreign import MAX_ROWS_PER_BYTE, UnreadableFile, read

__all__ = ["DELIMITED", "SUFFIXES", "batches_of", "empty_rows_at_end", "kind_of", "names_of", "ranges_of"]

T = TypeVar("T")
VALUES = "well-formed values in UTF-8"


def values_hidden(where: str, function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of the function; replace errors of libraries, whose messages may quote answers.

    The new error names `where`. Our own errors and the file system's pass.
    """
    try:
        return function(*arguments)
    except LdpoptError:
        raise
    except OSError as error:
        if error.errno is not None:  # the file system's, not arrow's word for a corrupt file
            raise
        failure = "a corrupt one"
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # Polars' own, no Exception
            raise
        failure = type(error).__name__
    # Raised out here, so that the first error is not the context of this one.
    raise invalid("answers", VALUES, Phrase(failure), where)


READERS = {".sav": "sav", ".zsav": "sav", ".por": "por", ".dta": "dta", ".sas7bdat": "sas7bdat"}


def _read(task: str, path: Path, expected: str = VALUES, **options: Any) -> Iterator[bytes]:
    """The results of the process that reads other programs' files, piece by piece; `InvalidInput` if it cannot."""
    try:
        yield from read(task, path, **options)
        return
    except UnreadableFile as error:
        failure = str(error)
    raise invalid("answers", expected, Phrase(failure), str(path))


def _statistical(path: Path, cells: int = 0, **options: Any) -> dict[str, Any]:
    """The results of the reader of SPSS, Stata and SAS: names, wordings, labels of values, rows and cells by column."""
    need("pyreadstat")
    (reply,) = _read("statistical", path, cells=cells, reader=READERS[path.suffix.lower()], **options)
    content: dict[str, Any] = json.loads(reply)
    return content


def texts_of(path: Path, dialect: Dialect = PLAIN) -> Mapping[str, str]:
    """Return the questions' texts by column, from header rows or the labels of SPSS and others.

    A file without texts has none.
    """
    kind = kind_of(path)
    if kind == "statistical":
        wordings = _statistical(path, metadataonly=True)["wordings"]
        return {name: text or "" for name, text in wordings.items()}
    if kind == "delimited":
        header = read_head(path, dialect)
        return dict(zip(header.names, header.texts, strict=True))
    return dict(zip(*_workbook(path, dialect)[:2], strict=True)) if kind == "workbook" else {}


def levels_of(path: Path) -> Mapping[str, tuple[tuple[float | None, str], ...]]:
    """Return the categories that a file declares, by column, in order.

    Each is a pair of the number, if there is one, and the label. They include categories that nobody chose, and none
    that the file declares as missing.
    """
    kind = kind_of(path)
    if kind == "parquet":
        (reply,) = _read("levels", path)
        levels = json.loads(reply)
        return {
            name: tuple((None, _cell_text(text)) for text in texts if text is not None)
            for name, texts in levels.items()
        }
    if kind != "statistical":
        return {}
    has_user_missing = READERS[path.suffix.lower()] in ("sav", "dta") and path.suffix.lower() != ".por"
    content = _statistical(path, metadataonly=True, **({"user_missing": True} if has_user_missing else {}))
    categories_by_column: dict[str, tuple[tuple[float | None, str], ...]] = {}
    for name, pairs in content["labels"].items():
        labels = _distinct_labels(dict(map(tuple, pairs)))
        has_numbers = any(not isinstance(value, str) for value in labels)  # among numbers, Stata's .a to .z are missing
        missing_ranges = content["missing"].get(name, [])
        categories = [
            (value, label)
            for value, label in labels.items()
            if isinstance(value, str) != has_numbers and not any(_is_within(value, *ends) for ends in missing_ranges)
        ]
        categories.sort(key=lambda pair: pair[0] if has_numbers else 0)
        categories_by_column[name] = tuple(
            (float(value) if has_numbers else None, label) for value, label in categories
        )
    return categories_by_column


def _is_within(value: Any, low: Any, high: Any) -> bool:
    """Return True if a value lies between two ends of its kind."""
    return isinstance(value, str) == isinstance(low, str) and bool(low <= value <= high)


def _statistical_rows(path: Path) -> int:
    """The number of rows of the file, read to its end if its head does not state it."""
    head = _statistical(path, metadataonly=True)
    if head["rows"] is not None and head["rows"] >= 0:
        return int(head["rows"])
    cells = _statistical(path, usecols=head["names"][:1])["cells"]
    return len(next(iter(cells.values()), ()))


def statistical_table(path: Path, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Any:
    """Read rows `start` to `stop` - 1 of some columns as a pyarrow table.

    Values become their labels, if the file has them (with the value, if two share one); missing ones become null.
    """
    rows = {} if stop is None else {"row_offset": start, "row_limit": max(1, stop - start)}
    content = _statistical(path, cells=len(columns) * sum(rows.values()), usecols=list(columns), **rows)
    cells, labels = content["cells"], {name: dict(map(tuple, pairs)) for name, pairs in content["labels"].items()}
    columns_to_read = ((f"column {name!r} of {path}", _column, cells[name], labels.get(name, {})) for name in columns)
    arrays = [values_hidden(*column) for column in columns_to_read]
    return pa.Table.from_arrays(arrays, list(columns))


def parquet_schema(path: Path) -> Any:
    """Read the arrow schema of a Parquet file."""
    (reply,) = _read("schema", path)
    return pa.ipc.read_schema(pa.py_buffer(reply))


def _column(cells: list[Any], labels: Mapping[Any, str] = MappingProxyType({})) -> Any:
    """A pyarrow column: numbers alone as floats, others as text, and labelled values by their labels."""
    cells = [None if cell is None or cell == "" or cell != cell else cell for cell in cells]
    numbers = all(cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool)) for cell in cells)
    if numbers and not labels:
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    distinct_labels = _distinct_labels(labels)
    texts = [None if cell is None else distinct_labels.get(cell) or _cell_text(cell) for cell in cells]
    return pa.array(texts, pa.string())


def _distinct_labels(labels: Mapping[Any, str]) -> dict[Any, str]:
    """The labels by value; with the value where two values share one."""
    label_counts = Counter(labels.values())
    return {
        value: word if label_counts[word] == 1 else f"{word} ({_cell_text(value)})" for value, word in labels.items()
    }


def _workbook(path: Path, dialect: Dialect) -> tuple[tuple[str, ...], tuple[str, ...], list[list[Any]]]:
    """The columns' names and texts in the first sheet, and the rows below the header rows."""
    need("python_calamine")
    expected = "an Excel workbook (.xlsx) that is whole and of ordinary size (or save it as CSV)"
    (reply,) = _read("workbook", path, expected)
    rows: list[list[Any]] = json.loads(reply)
    if not rows:
        raise InvalidInput(f"{path}: the first row must have the column names, and the sheet is empty")
    width = max(map(len, rows))
    header_rows = [
        [_cell_text(cell) for cell in row] + [""] * (width - len(row)) for row in rows[: dialect.header_rows]
    ]
    names, texts = names_and_texts(header_rows) if header_rows else (distinct_names([""] * width), ("",) * width)
    return names, texts, rows[dialect.header_rows :]


def _rows_in_use(rows: list[list[Any]], width: int) -> int:
    """Return how many rows end with one with a filled cell; all of them where there is a single column."""
    if width == 1:
        return len(rows)
    empty_count = next((n for n, row in enumerate(reversed(rows)) if any(map(_is_filled, row))), len(rows))
    return len(rows) - empty_count


def _is_filled(cell: Any) -> bool:
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def empty_rows_at_end(path: Path, dialect: Dialect = PLAIN) -> int:
    """Count the empty rows at the end of text or of a workbook, which are not respondents.

    Spreadsheets leave such rows. In other types of files every row is a respondent. With a single column, every row is
    one, too: an empty line is a person without an answer.
    """
    kind = kind_of(path)
    if kind == "delimited":
        return empty_rows_of_text(path, dialect)
    if kind == "workbook":
        names, _, rows = _workbook(path, dialect)
        return len(rows) - _rows_in_use(rows, len(names))
    return 0


def header_rows_in_workbook(path: Path) -> int:
    """Return the number of header rows that the first sheet shows."""
    names, _, rows = _workbook(path, Dialect(header_rows=0))
    return header_rows_of([[_cell_text(cell) for cell in row] for row in rows[:4]]) if names else 1


def workbook_table(path: Path, dialect: Dialect = PLAIN) -> Any:
    """Read the first sheet as a pyarrow table.

    Columns that hold only numbers become floats, others text.
    """
    names, _, rows = _workbook(path, dialect)
    columns = [[row[place] if place < len(row) else None for row in rows] for place in range(len(names))]
    arrays = values_hidden(str(path), lambda: [_column(cells) for cells in columns])
    return pa.Table.from_arrays(arrays, list(names))


def _cell_text(cell: Any) -> str:
    """A cell as its text: whole numbers without a point."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


DELIMITED = (".csv", ".tsv", ".txt")
WORKBOOKS = (".xlsx", ".xlsm")
STATISTICAL = tuple(READERS)
SUFFIXES = (*DELIMITED, ".parquet", *WORKBOOKS, *STATISTICAL)


def kind_of(path: Path) -> str:
    """Return the type of a file: ``delimited``, ``parquet``, ``workbook`` or ``statistical``.

    The ending of the path decides. Raises `InvalidInput` for any other ending.
    """
    suffix = path.suffix.lower()
    kinds = {"delimited": DELIMITED, "parquet": (".parquet",), "workbook": WORKBOOKS, "statistical": STATISTICAL}
    for kind, suffixes in kinds.items():
        if suffix in suffixes:
            return kind
    raise invalid("answers", f"a file named *{', *'.join(SUFFIXES)}", Phrase(suffix or "no ending"), str(path))


def names_of(path: Path, dialect: Dialect = PLAIN) -> list[str]:
    """Read the column names of one file, all distinct."""
    kind = kind_of(path)
    if kind == "delimited":
        names = list(read_head(path, dialect).names)
    elif kind == "parquet":
        names = list(parquet_schema(path).names)
    elif kind == "workbook":
        names = list(_workbook(path, dialect)[0])
    else:
        names = _statistical(path, metadataonly=True)["names"]
    if len(set(names)) != len(names):
        # Names are not shown: the first line of a file without a header is somebody's answers.
        raise InvalidInput(f"{path}: two columns have the same name; column names must be distinct")
    return names


def ranges_of(
    path: Path, rows: int, target_bytes: int, dialect: Dialect = PLAIN, trim_empty: bool = False
) -> Iterator[tuple[int, int, int]]:
    """List (start, stop, rows) of ranges of about `rows` rows or `target_bytes` bytes.

    start, stop : bytes of text, row groups of Parquet, or rows of other files.

    trim_empty : True to leave out empty rows at the end (`empty_rows_at_end`).
    """
    kind = kind_of(path)
    if kind == "delimited":
        yield from record_ranges(path, target_bytes, dialect, trim_empty)
    elif kind == "parquet":
        yield from _row_groups(path, rows)
    elif kind == "workbook":
        names, _, sheet_rows = _workbook(path, dialect)
        total = _rows_in_use(sheet_rows, len(names)) if trim_empty else len(sheet_rows)
        yield 0, total, total
    else:
        total = _statistical_rows(path)
        for start in range(0, total, rows):
            yield start, min(start + rows, total), min(rows, total - start)


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
    """Yield the record batches of a range, of at most `size` rows; all text for delimited text.

    dictionaries : columns that Parquet may give as dictionaries.

    No message quotes a cell.
    """
    match kind_of(Path(path)):
        case "delimited":
            batches = range_batches(path, start, stop, rows, columns, dialect, size)
        case "parquet":
            batches = _parquet_batches(path, start, stop, rows, columns, size, dictionaries)
        case kind:
            batches = _table_batches(path, kind == "workbook", start, stop, rows, columns, size, dialect)
    while (batch := values_hidden(path, next, batches, None)) is not None:
        yield batch


def cells_of(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[list[list[Any]]]:
    """Yield the cells of some columns, batch by batch: a list for each column.

    choose : a function that selects the columns among all names.
    """
    columns = choose(names_of(path))
    for start, stop, rows in ranges_of(path, _RANGE_ROWS, _RANGE_BYTES):
        for batch in batches_of(str(path), start, stop, rows, columns, PLAIN, _BATCH_ROWS):
            yield [batch.column(name).to_pylist() for name in columns]


_RANGE_ROWS, _RANGE_BYTES, _BATCH_ROWS = 1 << 20, 1 << 25, 1 << 16


def _table_batches(
    path: str, is_workbook: bool, start: int, stop: int, rows: int, columns: Sequence[str], size: int, dialect: Dialect
) -> Iterator[Any]:
    if is_workbook:
        table = workbook_table(Path(path), dialect).select(list(columns)).slice(start, stop - start)
    else:
        table = statistical_table(Path(path), columns, start, stop)
    if table.num_rows != rows:
        raise invalid("answers", f"the {rows} rows that the file had", table.num_rows, path)
    yield from table.to_batches(size)


def _row_groups(path: Path, max_rows: int) -> Iterator[tuple[int, int, int]]:
    (reply,) = _read("groups", path)
    groups: list[int] = json.loads(reply)
    max_rows_in_file = MAX_ROWS_PER_BYTE * path.stat().st_size
    if min(groups, default=0) < 0 or sum(groups) > max_rows_in_file:
        raise InvalidInput(
            f"{path}: the file claims more rows than the {max_rows_in_file:,} that fit in a file of its size"
        )
    start = rows = 0
    for group, count in enumerate(groups):
        rows += count
        if rows >= max_rows or group == len(groups) - 1:
            yield start, group + 1, rows
            start, rows = group + 1, 0


def _parquet_batches(
    path: str, start: int, stop: int, expected: int, columns: Sequence[str], size: int, dictionaries: Sequence[str]
) -> Iterator[Any]:
    rows, options = 0, dict[str, Any]({"start": start, "stop": stop, "size": size, "cells": expected * len(columns)})
    for piece in _read("batches", Path(path), columns=list(columns), dictionaries=list(dictionaries), **options):
        with pa.ipc.open_stream(pa.py_buffer(piece)) as stream:
            for batch in stream:
                rows += batch.num_rows
                yield _lists_as_text(batch)
    if rows != expected:
        raise invalid("answers", f"the {expected} rows that the file says it has", rows, path)


LIST_SEPARATOR = ";"
"""The text between the entries of a list column of Parquet that is read as text."""


def _lists_as_text(batch: Any) -> Any:
    """The batch with lists of texts or whole numbers as texts of their entries; other nested columns as they are."""
    if not any(is_flat_list(field.type) for field in batch.schema):
        return batch
    columns = []
    for column in batch.columns:
        if is_flat_list(column.type):
            texts = pc.cast(column, pa.list_(pa.string()))
            if pc.any(pc.match_substring(pc.list_flatten(texts), LIST_SEPARATOR)).as_py():
                raise InvalidInput(f"answers: the entries of a list must not contain {LIST_SEPARATOR!r}")
            column = pc.binary_join(texts, LIST_SEPARATOR)
        columns.append(column)
    return pa.record_batch(columns, names=batch.schema.names)


def is_flat_list(kind: Any) -> bool:
    """Return True for arrow's lists of texts or whole numbers."""
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return lists and (_is_text_type(kind.value_type) or pa.types.is_integer(kind.value_type))


def _is_text_type(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
