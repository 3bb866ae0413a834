"""Delimited text to its writing: delimiter, encoding, decimal sign."""

from __future__ import annotations

import codecs
import csv
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from ldpopt.errors import InvalidInput, Phrase, invalid

__all__ = ["DECIMALS", "DELIMITERS", "PLAIN", "Dialect", "delimiter_in_words", "sniff"]

DELIMITERS = (",", ";", "\t", "|")
DECIMALS = (".", ",")

HEAD_BYTES = 1 << 18
"""Bytes from which the delimiter and the decimal sign are guessed."""

RECORDS = 200

_NO_TEXT = {
    codecs.BOM_UTF16_LE: "UTF-16; save it as UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16; save it as UTF-8",
    b"PK\x03\x04": "a zip file, such as an .xlsx or .ods workbook; save it as .xlsx under that name, or as CSV",
    b"\xd0\xcf\x11\xe0": "an old .xls workbook; save it as .xlsx or CSV",
    b"SQLite format 3\0": "an SQLite database; export its table as CSV",
    b"PAR1": "a Parquet file; name it *.parquet",
}
"""The first bytes of files that are no text in an encoding of ASCII's family, and what they are."""
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_WITH_POINT = re.compile(r"[+-]?\d+\.\d+", re.ASCII)


@dataclass(frozen=True)
class Dialect:
    r"""The writing of a delimited text file; by default that of [RFC 4180] in UTF-8. Anything else is `InvalidInput`.

    delimiter : one of ``,``, ``;``, tab and ``|``. decimal : the sign in numbers; with a comma ``3,5`` is read as
        ``3.5``.
    encoding : a name that Python knows, of an encoding in which the bytes of line ends, quotes and delimiters stand for
        nothing else: UTF-8, every one-byte encoding of ASCII's family, and the usual Chinese and Japanese ones.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter not in DELIMITERS:
            raise invalid("delimiter", 'one of ",", ";", "\\t" and "|"', self.delimiter)
        if self.decimal not in DECIMALS:
            raise invalid("decimal", '"." or ","', self.decimal)
        known = _python_name(self.encoding, self.delimiter) if isinstance(self.encoding, str) else ""
        if not known:
            got = self.encoding
            raise invalid("encoding", "the name of an encoding such as utf-8, cp1252, latin-1 or cp1251", got)
        object.__setattr__(self, "encoding", known)

    def decoded(self, content: bytes) -> bytes:
        """`content` in UTF-8; the errors of the encoding pass."""
        return content if self.encoding == "utf-8" else content.decode(self.encoding).encode()


@lru_cache(maxsize=64)
def _python_name(name: str, delimiter: str) -> str:
    """Python's name for an encoding if its bytes of structure are ASCII's, whatever stands before them; or nothing."""
    try:
        codec = codecs.lookup(name).name
        safe = bytes(range(128)).decode(codec) == bytes(range(128)).decode("ascii")
        # Whatever byte comes before, or escape that shifts to other letters, a mark after it stays that mark: so files
        # may be cut at line ends, and cells at delimiters.
        before = [bytes([high]) for high in range(128, 256)] + [b"\x1b$B", b"\x1b$)C\x0e"]
        for mark in (b"\n", b"\r", b'"', delimiter.encode()):
            safe = safe and all(
                (byte + mark + b"!").decode(codec, "replace").endswith(f"{mark.decode()}!") for byte in before
            )
    except (LookupError, ValueError, AttributeError):
        return ""
    return "" if not safe else "utf-8" if codec in ("utf-8", "utf-8-sig") else codec


PLAIN = Dialect()


def sniff(path: Path, delimiter: str = "", encoding: str = "", decimal: str = "") -> Dialect:
    """The dialect of a file, as far as it is not given; a guess, to be shown to whoever knows the file.

    A file that is UTF-8 throughout is that, any other cp1252, the Western Windows encoding. The delimiter is the one
    that cuts the first 200 records into the same number of cells, at least two; among several the one of most cells.
    The decimal sign is a comma if numbers have one and none has a point, which a file cut by commas never has.
    """
    dialect = Dialect(delimiter or ",", encoding or _guessed_encoding(path), decimal or ".")
    if delimiter and decimal:
        return dialect
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    whole_lines = head[: head.rfind(b"\n") + 1] if len(head) == HEAD_BYTES else head
    text = whole_lines.removeprefix(codecs.BOM_UTF8).decode(dialect.encoding, "replace")
    cut = {mark: _records(text, mark) for mark in ([delimiter] if delimiter else DELIMITERS)}
    best = max(cut, key=lambda mark: _evenness(cut[mark]))
    cells = [cell.strip() for record in cut[best][1:] for cell in record]
    commas = best != "," and any(map(_WITH_COMMA.fullmatch, cells)) and not any(map(_WITH_POINT.fullmatch, cells))
    return Dialect(best, dialect.encoding, decimal or ("," if commas else "."))


def _guessed_encoding(path: Path) -> str:
    """UTF-8 if the whole file is; reads it once, in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open(path, "rb") as file:
            first = file.read(16)
            for begin, kind in _NO_TEXT.items():
                if first.startswith(begin):
                    raise InvalidInput(f"{path}: expected text in UTF-8 or an 8-bit encoding, got {kind}")
            file.seek(0)
            while content := file.read(1 << 20):
                decoder.decode(content)
            decoder.decode(b"", final=True)
        return "utf-8"
    except UnicodeDecodeError:
        return "cp1252"


def _records(text: str, delimiter: str) -> list[list[str]]:
    records: list[list[str]] = []
    with suppress(csv.Error):  # a cell too long: the reader of the whole file says so
        records.extend(islice(filter(None, csv.reader(text.splitlines(keepends=True), delimiter=delimiter)), RECORDS))
    return records


def _evenness(records: list[list[str]]) -> tuple[float, int]:
    """The share of records as wide as the first, if that is cut at all, and its width."""
    width = len(records[0]) if records else 1
    if width < 2:
        return 0.0, 0
    return sum(len(record) == width for record in records) / len(records), width


def delimiter_in_words(delimiter: str) -> str:
    """What a delimiter is called."""
    return {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}.get(delimiter) or str(Phrase(delimiter))
