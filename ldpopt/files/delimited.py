"""Delimited text to its writing: delimiter, encoding, decimal sign."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from ldpopt.errors import InvalidInput, Phrase, invalid

__all__ = ["DECIMALS", "DELIMITERS", "PLAIN", "Dialect", "delimiter_in_words", "header_rows_of", "sniff"]

DELIMITERS = (",", ";", "\t", "|")
DECIMALS = (".", ",")

HEAD_BYTES = 1 << 18
"""Number of bytes that decide the guess of the delimiter and the decimal sign."""

MAX_SNIFFED_RECORDS = 200

MAX_HEADER_ROWS = 9

_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""The marks with which files begin whose signs have two bytes each."""

_NO_TEXT = {
    b"PK\x03\x04": "a zip file, such as an .xlsx or .ods workbook; save it as .xlsx under that name, or as CSV",
    b"\xd0\xcf\x11\xe0": "an old .xls workbook; save it as .xlsx or CSV",
    b"SQLite format 3\0": "an SQLite database; export its table as CSV",
    b"PAR1": "a Parquet file; name it *.parquet",
}
"""The first bytes of files that are no text in an encoding of ASCII's family, and what they are."""
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_WITH_POINT = re.compile(r"[+-]?\d+\.\d+", re.ASCII)
_LIST_OF_CODES = re.compile(r"\d+(,\s*\d+){2,}", re.ASCII)
"""Three or more integers between commas: several answers in a cell, which no number with a decimal comma is."""


@dataclass(frozen=True)
class Dialect:
    r"""The writing of a delimited text file; by default that of [RFC 4180] in UTF-8. Anything else is `InvalidInput`.

    delimiter : one of ``,``, ``;``, tab and ``|``.
    decimal : the sign in numbers; with a comma ``3,5`` is read as ``3.5``.
    encoding : a name that Python knows. The bytes of line ends, quotes and delimiters must have no other meaning in it:
        UTF-8, every one-byte encoding of ASCII's family, the usual Chinese and Japanese ones, and UTF-16.
    header_rows : the number of rows above the first respondent; the first row has the columns' names. It is 3 in files
        of Qualtrics, and 0 in files without names, whose columns are called ``column 1``, ``column 2``, ...
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    header_rows: int = 1

    def __post_init__(self) -> None:
        if type(self.header_rows) is not int or not 0 <= self.header_rows <= MAX_HEADER_ROWS:
            raise invalid("header_rows", f"a whole number from 0 to {MAX_HEADER_ROWS}", self.header_rows)
        if self.delimiter not in DELIMITERS:
            raise invalid("delimiter", 'one of ",", ";", "\\t" and "|"', self.delimiter)
        if self.decimal not in DECIMALS:
            raise invalid("decimal", '"." or ","', self.decimal)
        codec = _python_name(self.encoding, self.delimiter) if isinstance(self.encoding, str) else ""
        if not codec:
            got = self.encoding
            raise invalid("encoding", "the name of an encoding such as utf-8, cp1252, latin-1 or cp1251", got)
        object.__setattr__(self, "encoding", codec)

    @property
    def wide(self) -> bool:
        """Return True if every sign of structure has two bytes (UTF-16)."""
        return self.encoding in _WIDE.values()

    def decoded(self, content: bytes) -> bytes:
        """Convert `content` to UTF-8; the errors of the encoding pass."""
        return content if self.encoding == "utf-8" else content.decode(self.encoding).encode()


@lru_cache(maxsize=64)
def _python_name(name: str, delimiter: str) -> str:
    """Python's name for an encoding if its structural bytes are always those of ASCII; else an empty text."""
    try:
        codec = codecs.lookup(name).name
        if codec in _WIDE.values():
            return codec
        safe = bytes(range(128)).decode(codec) == bytes(range(128)).decode("ascii")
        # After any byte, or an escape that shifts to other letters, a mark keeps its meaning. So files may be cut at
        # line # ends, and cells at delimiters.
        probes = [bytes([high]) for high in range(128, 256)] + [b"\x1b$B", b"\x1b$)C\x0e"]
        for mark in (b"\n", b"\r", b'"', delimiter.encode()):
            safe = safe and all(
                (byte + mark + b"!").decode(codec, "replace").endswith(f"{mark.decode()}!") for byte in probes
            )
    except (LookupError, ValueError, AttributeError):
        return ""
    return "" if not safe else "utf-8" if codec in ("utf-8", "utf-8-sig") else codec


PLAIN = Dialect()


def sniff(
    path: Path, delimiter: str = "", encoding: str = "", decimal: str = "", header_rows: int | None = None
) -> Dialect:
    """Find the dialect of a file, as far as the caller does not state it.

    The guess must be shown to the user. The encoding is UTF-8 if the whole file is valid UTF-8. It is UTF-16 if it
    begins with its mark or has its zero bytes, and otherwise cp1252, the Western Windows encoding. A first line
    ``sep=;`` names the delimiter. Otherwise the delimiter cuts the first 200 records into the same number of cells, at
    least two; among several it is the one with most cells. The decimal sign is a comma if numbers have one and none has
    a point. A file cut by commas never has decimal commas, and a list of three or more codes in a cell shows that the
    column's commas separate codes. Rows between the names and the first respondent are recognized in files of Qualtrics
    and SurveyMonkey (`header_rows_of`).
    """
    dialect = Dialect(delimiter or ",", encoding or _guessed_encoding(path), decimal or ".", header_rows or 0)
    if delimiter and decimal and header_rows is not None:
        return dialect
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    is_complete = len(head) < HEAD_BYTES
    text = head[: len(head) // 2 * 2 if dialect.wide else None].decode(dialect.encoding, "replace")
    text = (text if is_complete else text[: text.rfind("\n") + 1]).removeprefix("\ufeff")
    if separator_line := _SEPARATOR.match(text):
        text, delimiter = text[separator_line.end() :], delimiter or separator_line[1]
    records_by_mark = {mark: _records(text, mark) for mark in ([delimiter] if delimiter else DELIMITERS)}
    best = max(records_by_mark, key=lambda mark: _evenness(records_by_mark[mark]))
    header_count = header_rows_of(records_by_mark[best][:4]) if header_rows is None else header_rows
    records = records_by_mark[best]
    guessed_decimal = _guessed_decimal(path, records, header_count) if best != "," and not decimal else "."
    return Dialect(best, dialect.encoding, decimal or guessed_decimal, header_count)


def _guessed_decimal(path: Path, records: Sequence[Sequence[str]], header_count: int) -> str:
    """The decimal sign of the first records of a file whose cells are not cut by commas.

    A column with a list of three or more codes, ``1,2,4``, has lists, so that its ``1,2`` are two codes. The decimal
    sign is of the whole file: `InvalidInput` if another column has decimal commas.
    """
    width = max(map(len, records), default=0)
    columns = [
        [record[place].strip() for record in records[header_count:] if place < len(record)] for place in range(width)
    ]
    if any(_WITH_POINT.fullmatch(cell) for cells in columns for cell in cells):
        return "."
    with_comma = [place for place, cells in enumerate(columns) if any(map(_WITH_COMMA.fullmatch, cells))]
    of_lists = [place for place in with_comma if any(map(_LIST_OF_CODES.fullmatch, columns[place]))]
    if 0 < len(of_lists) < len(with_comma):
        numbers_place = next(place for place in with_comma if place not in of_lists)
        raise InvalidInput(
            f"{path}: column {of_lists[0] + 1} has lists of codes between commas, and column {numbers_place + 1} "
            "numbers with decimal commas. Export the lists with another separator or the numbers with a point; or "
            "pass --decimal . to read the lists, or --decimal , to read the numbers"
        )
    return "," if with_comma and not of_lists else "."


_SEPARATOR = re.compile(r"sep=([,;|\t])\r?\n", re.IGNORECASE)
"""The line above the names by which Excel is told the delimiter."""

_SECOND_HEADERS = {
    ("v1", "responseid"), ("v1", "response id"), ("responseid", "response id"), ("startdate", "start date"),
    ("respondent id", ""), ("respondent_id", ""),
}  # fmt: skip
"""The first cells of the first two rows where the second one has questions' texts: older Qualtrics, SurveyMonkey."""


def header_rows_of(records: Sequence[Sequence[str]]) -> int:
    """Return the number of header rows that the first records of a file show: 3, 2 or 1.

    Three are Qualtrics' names, texts and import ids. Two are names and texts, or names that stand twice.

    >>> header_rows_of([["Q1", "Q2"], ["Do you smoke?", "Age"], ['{"ImportId":"QID1"}', '{"ImportId":"QID2"}']])
    3
    >>> header_rows_of([["a", "b"], ["a", "b"], ["yes", "no"]]), header_rows_of([["a", "b"], ["yes", "no"]])
    (2, 1)
    """
    rows = [[str(cell).strip() for cell in record] for record in records]
    if len(rows) > 2 and sum(cell.startswith('{"ImportId"') for cell in rows[2]) * 2 > len(rows[2]):
        return 3
    if len(rows) < 2 or len(rows[0]) < 2:
        return 1
    is_repeated = rows[0] == rows[1] and len(set(rows[0])) > 1
    return 2 if is_repeated or (rows[0][0].casefold(), rows[1][0].casefold()) in _SECOND_HEADERS else 1


def _guessed_encoding(path: Path) -> str:
    """UTF-16 if its mark or its zero bytes show it, UTF-8 if the whole file is; reads it once, in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open(path, "rb") as file:
            first = file.read(256)
            if first[:2] in _WIDE:
                return _WIDE[first[:2]]
            for begin, kind in _NO_TEXT.items():
                if first.startswith(begin):
                    raise InvalidInput(f"{path}: expected text in UTF-8 or an 8-bit encoding, got {kind}")
            if wide_encoding := _wide_without_mark(first):
                return wide_encoding
            file.seek(0)
            while content := file.read(1 << 20):
                decoder.decode(content)
            decoder.decode(b"", final=True)
        return "utf-8"
    except UnicodeDecodeError:
        return "cp1252"


def _wide_without_mark(first: bytes) -> str:
    """UTF-16's variant if the first bytes are such text without its mark; otherwise an empty text.

    Text in one byte a letter has no zero byte. In UTF-16 the delimiters and quotes have one, on the side of the high
    byte, also between letters without one.
    """
    low, high = first[0::2], first[1::2]
    pair_count = len(high)
    if any(not low[place] and not high[place] for place in range(pair_count)):
        return ""
    zeros_by_encoding = {"utf-16-le": high.count(0), "utf-16-be": low[:pair_count].count(0)}
    encoding = max(zeros_by_encoding, key=lambda name: zeros_by_encoding[name])
    zeros, other_zeros = zeros_by_encoding[encoding], min(zeros_by_encoding.values())
    return encoding if 8 * zeros >= pair_count > 0 and 2 * other_zeros <= zeros else ""


def _records(text: str, delimiter: str) -> list[list[str]]:
    records: list[list[str]] = []
    with suppress(csv.Error):  # a cell too long: the reader of the whole file reports it
        records.extend(
            islice(filter(None, csv.reader(text.splitlines(keepends=True), delimiter=delimiter)), MAX_SNIFFED_RECORDS)
        )
    return records


def _evenness(records: list[list[str]]) -> tuple[float, int]:
    """The share of records as wide as the first, if that is cut at all, and its width."""
    width = len(records[0]) if records else 1
    if width < 2:
        return 0.0, 0
    return sum(len(record) == width for record in records) / len(records), width


def delimiter_in_words(delimiter: str) -> str:
    """Return the name of a delimiter."""
    return {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}.get(delimiter) or str(Phrase(delimiter))
