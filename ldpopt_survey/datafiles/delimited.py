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

MAX_RECORD_BYTES = 1 << 24


@dataclass(frozen=True)
class Head:
    """The part of a delimited file above its records.

    - `names` : the columns' names, all different. A name that occurs twice gets a number, and a column without a name
      is named by its position.
    - `texts` : for each column, the text in the header rows below the names.
    - `begin` : the byte at the start of the records.
    - `content` : the bytes of the first header row.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    begin: int
    content: bytes


def read_head(path: Path, dialect: Dialect = PLAIN) -> Head:
    """Read the header rows of a file; `InvalidInput` if there are none of that kind."""
    width, size = 1 + dialect.wide, 1 << 16
    while True:
        with open(path, "rb") as file:
            start = file.read(size)
        offset = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
        offset = 2 if dialect.wide and start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else offset
        ends = (_record_ends(_signs(start[offset:], dialect)) + 1) * width + offset
        if len(ends) > dialect.header_rows + 1 or len(start) < size or size >= MAX_RECORD_BYTES:
            break
        size *= 4
    if len(ends) and _EXCEL.fullmatch(_decoded(start[offset : ends[0]], dialect, path).encode()):
        offset, ends = int(ends[0]), ends[1:]
    first_row = start[offset : ends[0]] if len(ends) else start[offset:]
    if (not len(ends) and dialect.header_rows) or not _decoded(first_row, dialect, path).strip():
        raise InvalidInput(f"{path}: the first line must have the column names, and it is empty")
    rows = [_cells(first_row, dialect, path)]
    for number in range(1, dialect.header_rows):
        if number >= len(ends):
            raise invalid("header_rows", f"at most the rows of the file, {len(ends)}", dialect.header_rows, str(path))
        rows.append(_cells(start[ends[number - 1] : ends[number]], dialect, path))
    if not dialect.header_rows:
        names = distinct_names([""] * len(rows[0]))
        return Head(names, ("",) * len(names), offset, first_row)
    names, texts = names_and_texts(rows)
    return Head(names, texts, int(ends[dialect.header_rows - 1]), first_row)


_EXCEL = re.compile(rb"sep=[,;|\t]\r?\n?", re.IGNORECASE)


def names_and_texts(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns' names and texts in header rows.

    SurveyMonkey writes the options of a question in the second row. The question's name is above the first option only.
    Such columns are named by the question and the option.
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
    nonempty_names = [name for name in names if name]
    for mark in _QUOTES:
        if nonempty_names and all(
            len(name) > 2 and name[0] == name[-1] == mark and mark not in name[1:-1] for name in nonempty_names
        ):
            return [name[1:-1].strip() for name in names]
    return list(names)


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that all differ: ``column 3`` for an empty one, ``age (1)``, ``age (2)`` for one that stands twice.

    >>> distinct_names(["id", "", "age", "age"])
    ('id', 'column 2', 'age (1)', 'age (2)')
    """
    filled_names = [name if name.strip() else f"column {place}" for place, name in enumerate(names, 1)]
    name_counts, used_names, distinct = Counter(filled_names), set(filled_names), list[str]()
    places: Counter[str] = Counter()
    for name in filled_names:
        if name_counts[name] > 1:
            places[name] += 1
            while (numbered_name := f"{name} ({places[name]})") in used_names:
                places[name] += 1
            used_names.add(numbered_name)
            distinct.append(numbered_name)
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
    path: Path, target_bytes: int, dialect: Dialect = PLAIN, trim_empty: bool = False
) -> Iterator[tuple[int, int, int]]:
    """List byte ranges of whole records, of about `target_bytes`, with their record counts.

    trim_empty : True to leave out rows at the end that hold only delimiters and blanks, which spreadsheets write
        (`empty_rows_at_end`). A quoted empty cell is an answer of no letters, and such a row is a respondent.
    """
    header, width = read_head(path, dialect), 1 + dialect.wide
    blank_lines_count = len(header.names) == 1
    size = _used_size(path, header.begin, dialect) if trim_empty and not blank_lines_count else path.stat().st_size
    target_bytes += target_bytes % width
    with open(path, "rb") as file:
        start = header.begin
        while start < size:
            read_bytes = target_bytes
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
                if read_bytes > target_bytes + MAX_RECORD_BYTES * 4:
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
    blank_signs = np.frombuffer(f"{dialect.delimiter} \t\r\n".encode(), np.uint8)
    stop = begin + (size - begin) // width * width
    with open(path, "rb") as file:
        while stop > begin:
            start = max(begin, stop - (1 << 16))
            file.seek(start)
            used_positions = np.flatnonzero(~np.isin(_signs(file.read(stop - start), dialect), blank_signs))
            if not len(used_positions):
                stop = start
                continue
            place = start + width * int(used_positions[-1])
            file.seek(place)
            while signs := file.read(1 << 16):
                if len(ends := np.flatnonzero(_signs(signs, dialect) == 0x0A)):
                    return place + width * (int(ends[0]) + 1)
                place += len(signs)
            return size
    return begin


def empty_rows_at_end(path: Path, dialect: Dialect = PLAIN) -> int:
    """Return how many rows at the end of a file hold delimiters and blanks alone; none of a file of one column."""
    header, size = read_head(path, dialect), path.stat().st_size
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
    """Parse records to a pyarrow table of text; an empty cell is null, a quoted one not.

    names : the names of all columns.

    place : a function from the number of a row in `content` to its position for a message; the names are row 1.

    Raises `InvalidInput` with its number for a record with more or fewer cells than names. Other malformed content is
    an error of pyarrow or of the encoding.
    """
    content = dialect.decoded(content)
    convert_options = arrow_csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    ragged_rows: list[tuple[int, int, int]] = []

    def refuse(row: Any) -> str:
        if not ragged_rows:  # of the row only these numbers are kept, since its text is somebody's answers
            ragged_rows.append((row.number + 1, row.expected_columns, row.actual_columns))
        return "skip"

    is_utf8 = False
    with suppress(UnicodeDecodeError):
        is_utf8 = bool(str(content, "utf-8"))
    # A single column's empty line is an answer that is missing, not a line to skip.
    parse_options = arrow_csv.ParseOptions(
        delimiter=dialect.delimiter,
        newlines_in_values=True,
        ignore_empty_lines=len(names) > 1,
        invalid_row_handler=refuse if is_utf8 else None,  # Arrow decodes the row before it asks
    )
    if (not content.strip(b"\r\n") and len(names) > 1) or not content:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    read_options = arrow_csv.ReadOptions(use_threads=False, block_size=max(len(content), 1), column_names=list(names))
    table = arrow_csv.read_csv(
        pa.py_buffer(content), read_options=read_options, parse_options=parse_options, convert_options=convert_options
    )
    if ragged_rows:
        ragged_row, expected, got = ragged_rows[0]
        raise invalid("answers", f"{expected} cells in each row, as many as names", got, place(ragged_row))
    if dialect.decimal == ",":
        is_number = [pc.match_substring_regex(column, r"^\s*[+-]?\d+,\d+\s*$") for column in table.columns]
        point_columns = [pc.replace_substring(column, ",", ".") for column in table.columns]
        table = pa.table(list(map(pc.if_else, is_number, point_columns, table.columns)), table.column_names)
    return table


def range_batches(
    path: str, start: int, stop: int, rows: int, columns: Sequence[str], dialect: Dialect, size: int
) -> Iterator[Any]:
    """Yield the record batches of one range, of at most `size` rows each."""
    header = read_head(Path(path), dialect)

    def place(row: int) -> str:
        records_before = _records_between(Path(path), header.begin, start, dialect)
        return f"row {row + records_before + dialect.header_rows - 1} of {path}" + (
            ", the names being row 1" if dialect.header_rows else ""
        )

    table = parse(bytes_between(Path(path), start, stop), header.names, columns, dialect, place)
    if table.num_rows != rows:
        raise InvalidInput(rf"{path}: lines must end with \n or \r\n, and quotes must enclose whole fields")
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
