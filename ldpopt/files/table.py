"""A comma-separated file as a rectangle of cells, with line numbers for error messages."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files.atomic import PathLike
from ldpopt.files.delimited import delimiter_in_words

__all__ = ["ColumnKey", "Table", "column_shown", "is_number", "lacking_column", "parse_table", "position_of"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

ColumnKey = str | int


def is_number(cell: str) -> bool:
    """Return True if a cell is a decimal number; ``nan``, ``inf``, ``1_000`` and ``0x1`` are not."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def position_of(path: PathLike, column: ColumnKey, names: Sequence[str], width: int) -> int:
    """Find the position of a column among `width`, by its name or a position from 0."""
    if isinstance(column, str):
        if column not in names:
            raise lacking_column(str(path), column, names)
        return names.index(column)
    if isinstance(column, bool) or not isinstance(column, int) or not 0 <= column < width:
        raise invalid(str(path), f"a column name, or a position from 0 to {width - 1}", column)
    return column


def lacking_column(name: str, column: str, names: Sequence[str], where: str = "") -> InvalidInput:
    """Build the error for a missing column, with the number of existing columns.

    Their names are not shown: the first line of a file without a header holds a person's answers.
    """
    others = f"{len(names)} other{'s' * (len(names) != 1)}" if names else "no names in its first line"
    return invalid(name, f"a column {column!r}", Phrase(others), where)


def column_shown(column: ColumnKey) -> str:
    """Format a column for messages: the caller's word, or its position, never a file's header."""
    return repr(column) if isinstance(column, str) else str(column + 1)


def _kind(cell: str) -> str:
    """The type of a cell that is not a number, without its text."""
    word = cell.strip().lstrip("+-").lower()
    return word if word in ("nan", "inf", "infinity") else "text" if word else "an empty cell"


@dataclass(frozen=True)
class Table:
    """The rows of a file, all of the same length. `lines[i]` is the number of the last line of `rows[i]`."""

    path: str
    rows: tuple[list[str], ...]
    lines: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of cells in each row."""
        return len(self.rows[0])

    def names(self) -> tuple[str, ...]:
        """Return the first row as distinct column names."""
        names = tuple(cell.strip() for cell in self.rows[0])
        if len(set(names)) != len(names):
            raise invalid(self.path, "distinct column names", Phrase("one of them twice"), f"line {self.lines[0]}")
        return names

    def position(self, column: ColumnKey, names: tuple[str, ...]) -> int:
        """Find the position of a column by its name or by a position from 0."""
        return position_of(self.path, column, names, self.width)

    def number(self, row: int, column: int) -> float:
        """Return the cell as a finite number."""
        cell = self.rows[row][column]
        where = f"line {self.lines[row]}, column {column + 1}"
        if not is_number(cell):
            raise invalid(self.path, "a number", Phrase(_kind(cell)), where)  # an answer is never quoted
        value = float(cell.strip())
        if not math.isfinite(value):
            raise invalid(self.path, "a finite double", Phrase("a larger number"), where)
        return value

    def text(self, row: int, column: int) -> str:
        """Return the cell without surrounding blanks; an empty one raises `InvalidInput`."""
        cell = self.rows[row][column].strip()
        if not cell:
            where = f"line {self.lines[row]}, column {column + 1}"
            raise invalid(self.path, "a value", Phrase("an empty cell"), where)
        return cell


def parse_table(path: str, text: str, delimiter: str = ",") -> Table:
    """Parse the delimited `text` [RFC 4180] of the file at `path`, without blank lines."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            rows.append(row)
            lines.append(reader.line_num)
            if len(row) != len(rows[0]):
                raise invalid(path, f"{len(rows[0])} cells in each line", len(row), f"line {reader.line_num}")
    except csv.Error as error:
        expected = "comma-separated values" if delimiter == "," else f"values cut by {delimiter_in_words(delimiter)}"
        raise invalid(path, expected, Phrase(str(error)), f"line {reader.line_num}") from None
    if not rows:
        raise invalid(path, "a table", Phrase("blank lines"))
    return Table(path, tuple(rows), tuple(lines))
