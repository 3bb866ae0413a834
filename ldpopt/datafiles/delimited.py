"""Delimited text as ranges of whole records, each parsed on its own: linear time, and memory for one range alone."""

from __future__ import annotations

import csv as standard_csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.datafiles.dialect import PLAIN, Dialect
from ldpopt.errors import InvalidInput, Phrase, invalid

LONGEST_RECORD = 1 << 24


def header(path: Path) -> tuple[bytes, int]:
    """The header line, and the byte where the records begin."""
    with open(path, "rb") as file:
        line = file.readline(LONGEST_RECORD)
    if not line.endswith(b"\n") or line.count(b'"') % 2 or not line.strip():
        raise invalid("answers", "a first line with the column names", "none", str(path))
    return line.removeprefix(b"\xef\xbb\xbf"), len(line)


def names_in(content: bytes, dialect: Dialect = PLAIN) -> list[str]:
    """The column names in the first line of `content`."""
    try:
        line = dialect.decoded(content[: content.index(b"\n")]).decode().removesuffix("\r")
        return next(standard_csv.reader([line], strict=True, delimiter=dialect.delimiter))
    except (ValueError, standard_csv.Error):
        encoding = "UTF-8" if dialect.encoding == "utf-8" else dialect.encoding
        raise InvalidInput(f"answers: the first line is not a list of column names in {encoding}") from None


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
                if tried > reach + LONGEST_RECORD * 4:
                    raise invalid("answers", "records of moderate length (a quote may be open)", "one", str(path))
            stop = int(ends[-1]) + 1
            yield start, start + stop, _count(content[:stop], ends, blank_lines_count)
            start += stop


def bytes_between(path: Path, start: int, stop: int) -> bytes:
    """The bytes of a range."""
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(stop - start)


def parse(content: bytes, columns: Sequence[str], dialect: Dialect = PLAIN) -> Any:
    """`columns` of a header with its records as a pyarrow table of text; an empty cell is null, a quoted one is not.

    Numbers with a decimal comma, in a dialect that has it, have a point in the table. What is not well-formed is an
    error of pyarrow's or of the encoding's.
    """
    import pyarrow as pa
    from pyarrow import csv

    content = dialect.decoded(content)
    plain = Dialect(dialect.delimiter)
    names = names_in(content, plain)
    convert = csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    # A single column's empty line is an answer that is missing, not a line to skip.
    parse = csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1)
    read = csv.ReadOptions(use_threads=False, block_size=max(len(content), 1))
    made = csv.read_csv(pa.py_buffer(content), read_options=read, parse_options=parse, convert_options=convert)
    return made if dialect.decimal == "." else _with_points(made)


def _with_points(table: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for column in table.columns:
        number = pc.match_substring_regex(column, r"^\s*[+-]?\d+,\d+\s*$")
        columns.append(pc.if_else(number, pc.replace_substring(column, ",", "."), column))
    return pa.table(columns, table.column_names)


def range_batches(
    path: str, start: int, stop: int, rows: int, columns: Sequence[str], dialect: Dialect, size: int
) -> Iterator[Any]:
    """The record batches of one range, of at most `size` rows each."""
    first, _ = header(Path(path))
    table = parse(first + bytes_between(Path(path), start, stop), columns, dialect)
    if table.num_rows != rows:
        raise invalid("answers", r"lines that end with \n or \r\n, and quotes around whole fields", "others", path)
    yield from table.to_batches(size)


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


def distinct(names: list[str], where: str) -> list[str]:
    """`names`, each of which stands once."""
    if len(set(names)) != len(names):
        # Names are not shown: the first line of a file without a header is somebody's answers.
        raise invalid("answers", "distinct column names", Phrase("one twice"), where)
    return names
