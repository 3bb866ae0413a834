"""How a text file of answers is written: what separates its cells, in which encoding, with which decimal sign."""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import dataclass
from pathlib import Path

from ldpopt.errors import InvalidInput, Phrase, invalid

DELIMITERS = (",", ";", "\t", "|")
DECIMALS = (".", ",")

HEAD = 1 << 18
"""Bytes from which the delimiter and the decimal sign are guessed."""

RECORDS = 200

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_WITH_POINT = re.compile(r"[+-]?\d+\.\d+", re.ASCII)


@dataclass(frozen=True)
class Dialect:
    r"""The writing of a delimited text file; by default that of [RFC 4180] in UTF-8.

    delimiter : one of ``,``, ``;``, tab and ``|``.
    encoding : a name that Python knows, of an encoding in which the bytes of line ends, quotes and delimiters stand for
        nothing else: UTF-8, every one-byte encoding of ASCII's family, and the usual Chinese and Japanese ones.
    decimal : the sign in numbers, ``.`` or ``,``; with a comma the cell ``3,5`` is read as ``3.5``.

    Anything else is `InvalidInput`.

    >>> Dialect(";", "latin-1", ",")
    Dialect(delimiter=';', encoding='iso8859-1', decimal=',')
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter not in DELIMITERS:
            raise invalid("delimiter", 'one of ",", ";", "\\t" and "|"', self.delimiter)
        if self.decimal not in DECIMALS:
            raise invalid("decimal", '"." or ","', self.decimal)
        object.__setattr__(self, "encoding", _encoding(self.encoding, self.delimiter))

    @property
    def plain(self) -> bool:
        """Whether this is the default."""
        return self == PLAIN

    def decoded(self, content: bytes) -> bytes:
        """`content` in UTF-8; the errors of the encoding pass."""
        return content if self.encoding == "utf-8" else content.decode(self.encoding).encode()


def _encoding(name: object, delimiter: str) -> str:
    """Python's name for an encoding, if its bytes of structure are ASCII's, whatever stands before them."""
    try:
        made = codecs.lookup(str(name)).name
        safe = isinstance(name, str) and bytes(range(128)).decode(made) == bytes(range(128)).decode("ascii")
        # Whatever byte comes before, or escape that shifts to other letters, a mark after it stays that mark: so files
        # may be cut at line ends, and cells at delimiters.
        before = [bytes([high]) for high in range(128, 256)] + [b"\x1b$B", b"\x1b$)C\x0e"]
        for mark in (b"\n", b"\r", b'"', delimiter.encode()):
            safe = safe and all(
                (one + mark + b"!").decode(made, "replace").endswith(f"{mark.decode()}!") for one in before
            )
    except (LookupError, ValueError, AttributeError):
        safe = False
    if not safe:
        raise invalid("encoding", "the name of an encoding such as utf-8, cp1252, latin-1 or cp1251", name)
    return "utf-8" if made in ("utf-8", "utf-8-sig") else made


PLAIN = Dialect()


def sniff(path: Path, delimiter: str = "", encoding: str = "", decimal: str = "") -> Dialect:
    """The dialect of a file, as far as it is not given; a guess, to be shown to whoever knows the file.

    A file that is UTF-8 throughout is that, any other cp1252, the Western Windows encoding. The delimiter is the one
    that cuts the first 200 records into the same number of cells, at least two; among several the one of most cells.
    The decimal sign is a comma if numbers have one and none has a point, which a file cut by commas never has.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_bytes("größe;name\\n1,80;Jürgen\\n".encode("latin-1"))
    ...     sniff(path)
    Dialect(delimiter=';', encoding='cp1252', decimal=',')
    """
    made = Dialect(delimiter or ",", encoding or _guessed_encoding(path), decimal or ".")
    if delimiter and decimal:
        return made
    with open(path, "rb") as file:
        head = file.read(HEAD)
    whole_lines = head[: head.rfind(b"\n") + 1] if len(head) == HEAD else head
    text = whole_lines.removeprefix(codecs.BOM_UTF8).decode(made.encoding, "replace")
    cut = {one: _records(text, one) for one in ([delimiter] if delimiter else DELIMITERS)}
    best = max(cut, key=lambda one: _evenness(cut[one]))
    found = decimal or ("," if best != "," and _decimal_comma(cut[best]) else ".")
    return Dialect(best, made.encoding, found)


def _guessed_encoding(path: Path) -> str:
    """UTF-8 if the whole file is; reads it once, in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open(path, "rb") as file:
            first = file.read(4)
            if first.startswith(_WIDE):
                raise InvalidInput(f"{path}: expected text in UTF-8 or an 8-bit encoding, got UTF-16; save it as UTF-8")
            file.seek(0)
            while content := file.read(1 << 20):
                decoder.decode(content)
            decoder.decode(b"", final=True)
        return "utf-8"
    except UnicodeDecodeError:
        return "cp1252"


def _records(text: str, delimiter: str) -> list[list[str]]:
    made: list[list[str]] = []
    try:
        for record in csv.reader(text.splitlines(keepends=True), delimiter=delimiter):
            if record:
                made.append(record)
            if len(made) == RECORDS:
                break
    except csv.Error:  # a cell too long: the reader of the whole file says so
        pass
    return made


def _evenness(records: list[list[str]]) -> tuple[float, int]:
    """The share of records as wide as the first, if that is cut at all, and its width."""
    width = len(records[0]) if records else 1
    if width < 2:
        return 0.0, 0
    return sum(len(record) == width for record in records) / len(records), width


def _decimal_comma(records: list[list[str]]) -> bool:
    cells = [cell.strip() for record in records[1:] for cell in record]
    return any(map(_WITH_COMMA.fullmatch, cells)) and not any(map(_WITH_POINT.fullmatch, cells))


def delimiter_in_words(delimiter: str) -> str:
    """What a delimiter is called."""
    return {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}.get(delimiter) or str(Phrase(delimiter))
