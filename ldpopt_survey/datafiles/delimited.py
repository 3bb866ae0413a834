"""Delimited text to ranges of whole records.

Each range is parsed on its own: linear time, and memory for one range alone.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid
from ldpopt.extras import arrow_csv, pa, pc
from ldpopt.files.delimited import PLAIN, Dialect

MAX_RECORD = 1 << 24


def header(path: Path) -> tuple[bytes, int]:
    """The header line, and the byte where the records begin."""
    with open(path, "rb") as file:
        line = file.readline(MAX_RECORD)
    if not line.endswith(b"\n") or line.count(b'"') % 2 or not line.strip():
        raise invalid("answers", "a first line with the column names", Phrase("none"), str(path))
    return line.removeprefix(b"\xef\xbb\xbf"), len(line)


def names_in(content: bytes, dialect: Dialect = PLAIN, where: str = "") -> list[str]:
    """The column names in the first line of `content`, which is that of the file `where`."""
    try:
        line = dialect.decoded(content[: content.index(b"\n")]).decode().removesuffix("\r")
        return next(csv.reader([line], strict=True, delimiter=dialect.delimiter))
    except (ValueError, csv.Error):
        encoding = "UTF-8" if dialect.encoding == "utf-8" else dialect.encoding
        raise invalid("answers", f"a first line of column names in {encoding}", Phrase("another"), where) from None


def record_ranges(path: Path, reach: int, dialect: Dialect = PLAIN) -> Iterator[tuple[int, int, int]]:
    """Byte ranges of whole records, of about `reach` bytes, with the number of records in each."""
    first, begin = header(path)
    blank_lines_count = len(names_in(first, dialect)) == 1
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = begin
        while start < size:
            tried = reach
            while True:
                file.seek(start)
                content = np.frombuffer(file.read(tried), np.uint8)
                ends = _record_ends(content)
                if start + len(content) >= size:
                    yield start, size, _count(content, ends, blank_lines_count)
                    return
                if len(ends):
                    break
                tried *= 2
                if tried > reach + MAX_RECORD * 4:
                    expected = "records of moderate length (a quote may be open)"
                    raise invalid("answers", expected, Phrase("a longer one"), str(path))
            stop = int(ends[-1]) + 1
            yield start, start + stop, _count(content[:stop], ends, blank_lines_count)
            start += stop


def bytes_between(path: Path, start: int, stop: int) -> bytes:
    """The bytes of a range."""
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(stop - start)


def parse(
    content: bytes, columns: Sequence[str], dialect: Dialect = PLAIN, place: Callable[[int], str] = "row {}".format
) -> Any:
    """`columns` of a header with its records as a pyarrow table of text; an empty cell is null, a quoted one is not.

    place : where a row of these stands, in words for a message; the names are row 1. A record with more or fewer cells
    than the header is `InvalidInput` with its number; what else is not well-formed is an error of pyarrow's or of the
    encoding's.
    """
    content = dialect.decoded(content)
    plain = Dialect(dialect.delimiter)
    names = names_in(content, plain)
    convert = arrow_csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    ragged: list[tuple[int, int, int]] = []

    def refuse(row: Any) -> str:
        if not ragged:  # of the row only these numbers are kept, since its text is somebody's answers
            ragged.append((row.number, row.expected_columns, row.actual_columns))
        return "skip"

    valid = False
    with suppress(UnicodeDecodeError):
        valid = bool(str(content, "utf-8"))
    # A single column's empty line is an answer that is missing, not a line to skip.
    parse = arrow_csv.ParseOptions(
        delimiter=dialect.delimiter,
        newlines_in_values=True,
        ignore_empty_lines=len(names) > 1,
        invalid_row_handler=refuse if valid else None,  # Arrow decodes the row before it asks
    )
    read = arrow_csv.ReadOptions(use_threads=False, block_size=max(len(content), 1))
    table = arrow_csv.read_csv(pa.py_buffer(content), read_options=read, parse_options=parse, convert_options=convert)
    if ragged:
        ragged_row, expected, got = ragged[0]
        raise invalid("answers", f"{expected} cells in each row, as many as names", got, place(ragged_row))
    if dialect.decimal == ",":
        numbers = [pc.match_substring_regex(column, r"^\s*[+-]?\d+,\d+\s*$") for column in table.columns]
        with_points = [pc.replace_substring(column, ",", ".") for column in table.columns]
        table = pa.table(list(map(pc.if_else, numbers, with_points, table.columns)), table.column_names)
    return table


def range_batches(
    path: str, start: int, stop: int, rows: int, columns: Sequence[str], dialect: Dialect, size: int
) -> Iterator[Any]:
    """The record batches of one range, of at most `size` rows each."""
    first, begin = header(Path(path))
    content = first + bytes_between(Path(path), start, stop)

    def place(row: int) -> str:
        return f"row {row + _records_between(Path(path), begin, start)} of {path}, the names being row 1"

    table = parse(content, columns, dialect, place)
    if table.num_rows != rows:
        raise invalid("answers", r"lines that end with \n or \r\n, and quotes around whole fields", "others", path)
    yield from table.to_batches(size)


def _records_between(path: Path, start: int, stop: int) -> int:
    """The number of records between two places where records begin, in pieces of a file."""
    ends = open_quotes = 0
    with open(path, "rb") as file:
        file.seek(start)
        while start < stop and (piece := file.read(min(1 << 20, stop - start))):
            start += len(piece)
            content = np.frombuffer(b'"' * (open_quotes % 2) + piece, np.uint8)
            ends += len(_record_ends(content))
            open_quotes += piece.count(b'"')
    return ends


def _record_ends(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Positions of the line ends outside quotes."""
    ends = np.flatnonzero(content == 0x0A)
    quotes = np.flatnonzero(content == 0x22)
    return ends[np.searchsorted(quotes, ends) % 2 == 0] if len(quotes) else ends


def _count(content: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp], blank_lines_count: bool) -> int:
    """Records in `content`: its lines, the last perhaps unended; blank ones count only if they hold an answer."""
    last = len(content) if len(content) and content[-1] != 0x0A else None
    ends = ends if last is None else np.append(ends, last)
    if blank_lines_count:
        return len(ends)
    lengths = np.diff(ends, prepend=-1) - 1
    returns = (lengths == 1) & (content[np.minimum(ends, len(content)) - 1] == 0x0D)
    return int(np.count_nonzero((lengths > 0) & ~returns))
