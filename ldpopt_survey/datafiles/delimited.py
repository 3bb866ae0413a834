"""Delimited text to ranges of whole records.

Each range is parsed on its own: linear time, and memory for one range alone.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import arrow_csv, pa, pc
from ldpopt.files.delimited import PLAIN, Dialect

MAX_RECORD = 1 << 24


@dataclass(frozen=True)
class Head:
    """The part of a delimited file above its records.

    names : the columns' names, all different: of a name that stands twice both have a number, and a column without
        one is called by its place. texts : what the header rows below the names say of each column.
    begin : the byte where the records begin. content : the bytes of the first header row.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    begin: int
    content: bytes


def head(path: Path, dialect: Dialect = PLAIN) -> Head:
    """Read the header rows of a file; `InvalidInput` if there are none of that kind."""
    width, size = 1 + dialect.wide, 1 << 16
    while True:
        with open(path, "rb") as file:
            start = file.read(size)
        skipped = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
        skipped = 2 if dialect.wide and start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else skipped
        ends = (_record_ends(_signs(start[skipped:], dialect)) + 1) * width + skipped
        if len(ends) > dialect.header_rows + 1 or len(start) < size or size >= MAX_RECORD:
            break
        size *= 4
    if len(ends) and _EXCEL.fullmatch(_decoded(start[skipped : ends[0]], dialect, path).encode()):
        skipped, ends = int(ends[0]), ends[1:]
    first = start[skipped : ends[0]] if len(ends) else start[skipped:]
    if (not len(ends) and dialect.header_rows) or not _decoded(first, dialect, path).strip():
        raise InvalidInput(f"{path}: the first line must have the column names, and it is empty")
    rows = [_cells(first, dialect, path)]
    for number in range(1, dialect.header_rows):
        if number >= len(ends):
            raise invalid("header_rows", f"at most the rows of the file, {len(ends)}", dialect.header_rows, str(path))
        rows.append(_cells(start[ends[number - 1] : ends[number]], dialect, path))
    if not dialect.header_rows:
        names = distinct_names([""] * len(rows[0]))
        return Head(names, ("",) * len(names), skipped, first)
    names, texts = named_by(rows)
    return Head(names, texts, int(ends[dialect.header_rows - 1]), first)


_EXCEL = re.compile(rb"sep=[,;|\t]\r?\n?", re.IGNORECASE)


def named_by(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns' names and texts that header rows say.

    A column without a name, to the right of one with a name, has its options in the second row, as SurveyMonkey writes
    them: both are then called by the question and the option.
    """
    names = _without_quotes([cell.strip() for cell in rows[0]])
    lower_rows = [[row[place].strip() if place < len(row) else "" for place in range(len(names))] for row in rows[1:]]
    second, group = lower_rows[0] if lower_rows else [""] * len(names), ""
    for place, name in enumerate(names):
        group = name or group
        has_next_option = place + 1 < len(names) and not names[place + 1] and second[place + 1]
        if group and second[place] and (not name or has_next_option):
            names[place] = f"{group}: {second[place]}"
    texts = [next(filter(None, (row[place] for row in lower_rows)), "") for place in range(len(names))]
    question_texts = [
        "" if text.startswith('{"ImportId"') or text == name else text for name, text in zip(names, texts, strict=True)
    ]
    return distinct_names(names), tuple(question_texts)


_QUOTES = ("'", "`")
"""Marks around names that are not the quotes of delimited text, as SAS, R and SQL write them."""


def _without_quotes(names: Sequence[str]) -> list[str]:
    """Return the names without marks that stand around every one of them, and nowhere inside.

    >>> _without_quotes(["'age'", "'vote'"]), _without_quotes(["'age'", "vote"]), _without_quotes(["'a'b'"])
    (['age', 'vote'], ["'age'", 'vote'], ["'a'b'"])
    """
    named = [name for name in names if name]
    for mark in _QUOTES:
        if named and all(len(name) > 2 and name[0] == name[-1] == mark and mark not in name[1:-1] for name in named):
            return [name[1:-1].strip() for name in names]
    return list(names)


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that all differ: ``column 3`` for an empty one, ``age (1)``, ``age (2)`` for one that stands twice.

    >>> distinct_names(["id", "", "age", "age"])
    ('id', 'column 2', 'age (1)', 'age (2)')
    """
    full = [name if name.strip() else f"column {place}" for place, name in enumerate(names, 1)]
    twice, used, distinct = Counter(full), set(full), list[str]()
    places: Counter[str] = Counter()
    for name in full:
        if twice[name] > 1:
            places[name] += 1
            while (numbered := f"{name} ({places[name]})") in used:
                places[name] += 1
            used.add(numbered)
            distinct.append(numbered)
        else:
            distinct.append(name)
    return tuple(distinct)


def _decoded(content: bytes, dialect: Dialect, path: Path) -> str:
    """The text of header bytes; `InvalidInput` if it is not in the dialect's encoding."""
    try:
        return dialect.decoded(content).decode()
    except ValueError:
        encoding = "UTF-8" if dialect.encoding == "utf-8" else dialect.encoding
        raise InvalidInput(
            f"{path}: the first line, which must have the column names, is not {encoding} text"
        ) from None


def _cells(content: bytes, dialect: Dialect, path: Path) -> list[str]:
    """The cells of one header row."""
    text = _decoded(content, dialect, path).rstrip("\r\n")
    try:
        (record,) = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=dialect.delimiter)
    except (ValueError, csv.Error):
        raise InvalidInput(f"{path}: the first line cannot be read as a row of column names") from None
    return [" ".join(cell.split()) if "\n" in cell or "\r" in cell else cell for cell in record]


def record_ranges(
    path: Path, reach: int, dialect: Dialect = PLAIN, trimmed: bool = False
) -> Iterator[tuple[int, int, int]]:
    """Byte ranges of whole records, of about `reach` bytes, with the number of records in each.

    trimmed : whether rows at the end that hold delimiters and blanks alone are left out, as spreadsheets write them
        (`empty_rows_at_end`). A quoted empty cell is an answer of no letters, and such a row is a respondent.
    """
    header, width = head(path, dialect), 1 + dialect.wide
    blank_lines_count = len(header.names) == 1
    size = _used_size(path, header.begin, dialect) if trimmed and not blank_lines_count else path.stat().st_size
    reach += reach % width
    with open(path, "rb") as file:
        start = header.begin
        while start < size:
            read_bytes = reach
            while True:
                file.seek(start)
                content = file.read(min(read_bytes, size - start))
                signs = _signs(content, dialect)
                ends = _record_ends(signs)
                if start + len(content) >= size:
                    yield start, size, _count(signs, ends, blank_lines_count)
                    return
                if len(ends):
                    break
                read_bytes *= 2
                if read_bytes > reach + MAX_RECORD * 4:
                    expected = "records of moderate length (a quote may be open)"
                    raise invalid("answers", expected, Phrase("a longer one"), str(path))
            stop = int(ends[-1]) + 1
            yield start, start + width * stop, _count(signs[:stop], ends, blank_lines_count)
            start += width * stop


def _signs(content: bytes, dialect: Dialect) -> npt.NDArray[Any]:
    """The signs of structure: bytes, or in UTF-16 pairs of them."""
    if not dialect.wide:
        return np.frombuffer(content, np.uint8)
    return np.frombuffer(content[: len(content) // 2 * 2], "<u2" if dialect.encoding == "utf-16-le" else ">u2")


def _used_size(path: Path, begin: int, dialect: Dialect) -> int:
    """The bytes of a file up to the end of its last row that holds more than delimiters and blanks."""
    size, width = path.stat().st_size, 1 + dialect.wide
    empty = np.frombuffer(f"{dialect.delimiter} \t\r\n".encode(), np.uint8)
    stop = begin + (size - begin) // width * width
    with open(path, "rb") as file:
        while stop > begin:
            start = max(begin, stop - (1 << 16))
            file.seek(start)
            used = np.flatnonzero(~np.isin(_signs(file.read(stop - start), dialect), empty))
            if not len(used):
                stop = start
                continue
            place = start + width * int(used[-1])
            file.seek(place)
            while signs := file.read(1 << 16):
                if len(ends := np.flatnonzero(_signs(signs, dialect) == 0x0A)):
                    return place + width * (int(ends[0]) + 1)
                place += len(signs)
            return size
    return begin


def empty_rows_at_end(path: Path, dialect: Dialect = PLAIN) -> int:
    """Return how many rows at the end of a file hold delimiters and blanks alone; none of a file of one column."""
    header, size = head(path, dialect), path.stat().st_size
    if len(header.names) == 1:
        return 0
    start = _used_size(path, header.begin, dialect)
    return sum(bool(line.strip(b"\r\n\0")) for line in _lines_between(path, start, size)) if start < size else 0


def _lines_between(path: Path, start: int, stop: int) -> Iterator[bytes]:
    """The lines of a range without quotes, in pieces of a file."""
    rest = b""
    with open(path, "rb") as file:
        file.seek(start)
        while start < stop and (piece := file.read(min(1 << 20, stop - start))):
            start += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
    yield rest


def bytes_between(path: Path, start: int, stop: int) -> bytes:
    """Read the bytes of a range."""
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(stop - start)


def parse(
    content: bytes,
    names: Sequence[str],
    columns: Sequence[str],
    dialect: Dialect = PLAIN,
    place: Callable[[int], str] = "row {}".format,
) -> Any:
    """`columns` of records, with the names of all, as a pyarrow table of text; an empty cell is null, a quoted one not.

    place : where a row of these stands, in words for a message; the names are row 1. A record with more or fewer cells
    than names is `InvalidInput` with its number; what else is not well-formed is an error of pyarrow's or of the
    encoding's.
    """
    content = dialect.decoded(content)
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
            ragged.append((row.number + 1, row.expected_columns, row.actual_columns))
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
    if (not content.strip(b"\r\n") and len(names) > 1) or not content:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    read = arrow_csv.ReadOptions(use_threads=False, block_size=max(len(content), 1), column_names=list(names))
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
    header = head(Path(path), dialect)

    def place(row: int) -> str:
        between = _records_between(Path(path), header.begin, start, dialect)
        return f"row {row + between + dialect.header_rows - 1} of {path}" + (
            ", the names being row 1" if dialect.header_rows else ""
        )

    table = parse(bytes_between(Path(path), start, stop), header.names, columns, dialect, place)
    if table.num_rows != rows:
        raise invalid("answers", r"lines that end with \n or \r\n, and quotes around whole fields", "others", path)
    yield from table.to_batches(size)


def _records_between(path: Path, start: int, stop: int, dialect: Dialect) -> int:
    """The number of records between two places where records begin, in pieces of a file."""
    ends = open_quotes = 0
    with open(path, "rb") as file:
        file.seek(start)
        while start < stop and (piece := file.read(min(1 << 20, stop - start))):
            start += len(piece)
            signs = _signs(piece, dialect)
            ends += len(_record_ends(np.concatenate([np.full(open_quotes % 2, 0x22, signs.dtype), signs])))
            open_quotes += int(np.count_nonzero(signs == 0x22))
    return ends


def _record_ends(content: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Positions of the line ends outside quotes."""
    ends = np.flatnonzero(content == 0x0A)
    quotes = np.flatnonzero(content == 0x22)
    return ends[np.searchsorted(quotes, ends) % 2 == 0] if len(quotes) else ends


def _count(content: npt.NDArray[Any], ends: npt.NDArray[np.intp], blank_lines_count: bool) -> int:
    """Records in `content`: its lines, the last perhaps unended; blank ones count only if they hold an answer."""
    last = len(content) if len(content) and content[-1] != 0x0A else None
    ends = ends if last is None else np.append(ends, last)
    if blank_lines_count:
        return len(ends)
    lengths = np.diff(ends, prepend=-1) - 1
    returns = (lengths == 1) & (content[np.minimum(ends, len(content)) - 1] == 0x0D)
    return int(np.count_nonzero((lengths > 0) & ~returns))
