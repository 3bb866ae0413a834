"""Profile the columns of files of answers in one pass, convert columns of text to numbers, and numbers to bins.

A profile is for the holder of the answers, since counts are not private.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, invalid
from ldpopt.extras import pa, pc
from ldpopt.files.delimited import PLAIN, Dialect, sniff
from ldpopt.files.table import lacking_column
from ldpopt.values.distribution import Array
from ldpopt_survey.datafiles.pieces import (
    batches_of,
    empty_rows_at_end,
    header_rows_in_workbook,
    kind_of,
    levels_of,
    names_of,
    ranges_of,
    texts_of,
    values_hidden,
)

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"


def to_numbers(column: Any) -> Any:
    """Convert a pyarrow column of numbers, or of their text, to finite float64, else null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = pc.cast(column, pa.float64(), safe=False)
    elif _is_text(column):
        texts = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
        is_number = pc.and_(pc.match_substring_regex(texts, _NUMBER), pc.less(pc.binary_length(texts), 60))
        texts = pc.utf8_ltrim(pc.if_else(is_number, texts, pa.scalar(None, pa.large_string())), "+")
        numbers = pc.cast(texts, pa.float64())
    else:
        raise invalid("bins", "a column of numbers", str(column.type))
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))


def is_one_of(column: Any, codes: Sequence[str]) -> Any:
    """Return a mask of the cells that equal one of `codes`, as trimmed text or as a number."""
    numbers = [number for number in to_numbers(pa.array(list(codes), pa.string())).to_pylist() if number is not None]
    if not _is_text(column):
        try:
            return pc.is_in(to_numbers(column), pa.array(numbers, pa.float64()))
        except ValueError:  # no numbers, such as true and false
            column = pc.cast(column, pa.large_string())
    texts = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
    is_listed = pc.is_in(texts, pa.array(list(codes), pa.large_string()))
    return pc.or_(is_listed, pc.is_in(to_numbers(texts), pa.array(numbers, pa.float64())))


def _is_text(column: Any) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_text(column.type) for is_text in texts)


MAX_DISTINCT_VALUES = 1000
"""The most different values of a column that are counted. A column with more holds free text, or numbers."""

MAX_WORDS = 100
MAX_PROFILED_COLUMNS = 5000
MAX_VALUE_LENGTH = 200
_NUMERAL = re.compile(r"\s*[+-]?\d+([.,]\d*)?\s*", re.ASCII)
_RANGE_CELLS = 4_000_000
_RANGE_BYTES = 1 << 23
_BATCH_ROWS = 1 << 16
_MAX_BATCH_SAMPLE = 2000


@dataclass
class ColumnProfile:
    """One column of a file, with the numbers of its cells that are `rows`, `empty` and `numeric`.

    - `values` : the different values as text with their counts, without empty cells; None if there are over a thousand.
    - `words` : the values of text that are not numbers, with their counts; None if there are over a hundred.
    - `has_only_integers` : True if all numbers are integers.
    - `is_distinct` : True if no counted value came twice.
    - `has_scalars` : True if the cells hold no lists, records or bytes.
    - `wording` : the question's text, if the file has it.
    - `levels` : the categories that the file declares, in order: pairs of a number, if there is one, and the label.
    """

    name: str
    rows: int = 0
    empty: int = 0
    values: Counter[str] | None = field(default_factory=Counter)
    words: Counter[str] | None = field(default_factory=Counter)
    numeric: int = 0
    has_only_integers: bool = True
    is_distinct: bool = True
    has_scalars: bool = True
    wording: str = ""
    levels: tuple[tuple[float | None, str], ...] = ()
    _samples: list[Array] = field(default_factory=list, repr=False)

    @property
    def answer_count(self) -> int:
        """The number of cells that are not empty."""
        return self.rows - self.empty

    @property
    def numbers(self) -> Array:
        """The sample of numbers."""
        return np.concatenate([np.empty(0), *self._samples])

    def add(self, column: Any) -> None:
        """Count one more batch of cells, a pyarrow array."""
        self.rows += len(column)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            self.has_scalars, self.values, self.words = False, None, None
            return
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        value_counts = pc.value_counts(column)
        self._count(value_counts.field("values"), value_counts.field("counts"))
        try:
            numbers = np.asarray(pc.drop_null(to_numbers(column)).to_numpy(zero_copy_only=False))
        except ValueError:  # days, true and false
            return
        self.numeric += len(numbers)
        self.has_only_integers = self.has_only_integers and bool((numbers == np.floor(numbers)).all())
        self._samples.append(numbers[:: -(-len(numbers) // _MAX_BATCH_SAMPLE) or 1])
        if len(self._samples) > 100:  # every second batch is enough of a long file
            self._samples = self._samples[::2]

    def _count(self, values: Any, counts: Any) -> None:
        is_empty = pc.is_null(values, nan_is_null=True)
        if not pa.types.is_floating(values.type):
            values = pc.cast(values, pa.large_string())
            is_empty = pc.or_(is_empty, pc.equal(pc.binary_length(pc.utf8_trim_whitespace(values)), 0))
        is_empty = pc.fill_null(is_empty, True)
        self.empty += pc.sum(pc.filter(counts, is_empty)).as_py() or 0
        values, counts = pc.filter(values, pc.invert(is_empty)), pc.filter(counts, pc.invert(is_empty))
        has_repeats = bool(len(counts)) and pc.max(counts).as_py() > 1
        self.is_distinct = self.is_distinct and not has_repeats
        if self.words is not None and not pa.types.is_floating(values.type):
            is_word = pc.is_null(to_numbers(values))
            self.words.update(dict(_pairs(pc.filter(values, is_word), pc.filter(counts, is_word), MAX_WORDS)))
            self.words = self.words if len(self.words) <= MAX_WORDS else None
        if self.values is None:
            return
        for text, count in _pairs(values, counts, MAX_DISTINCT_VALUES):
            self.is_distinct = self.is_distinct and text not in self.values
            self.values[text] += count
        if len(self.values) > MAX_DISTINCT_VALUES:
            self.values = None


@dataclass(frozen=True)
class FileProfile:
    """The columns of a file, its type (`pieces.kind_of`), and its dialect if it is text.

    empty_rows : the number of empty rows at the end, which are not among its rows.
    """

    path: Path
    kind: str
    dialect: Dialect
    rows: int
    columns: tuple[ColumnProfile, ...]
    empty_rows: int = 0

    def column(self, name: str) -> ColumnProfile:
        """Return the column of that name; raise `InvalidInput` if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise lacking_column("file", name, [column.name for column in self.columns], str(self.path))


def profile(
    path: str | Path, delimiter: str = "", encoding: str = "", decimal: str = "", header_rows: int | None = None
) -> FileProfile:
    """Read every column of a file once, in memory that does not grow with its rows.

    delimiter, encoding, decimal, header_rows : the format of the file, if it is not to be guessed (`Dialect`).

    Raises `InvalidInput` for a file that cannot be read, whose first line looks like answers, or that has no rows; it
    quotes no value.
    """
    path = Path(path)
    kind = kind_of(path)
    if not path.is_file():
        raise invalid("file", "one that exists", str(path))
    dialect = PLAIN
    if kind == "delimited":
        dialect = sniff(path, delimiter, encoding, decimal, header_rows)
    elif kind == "workbook":
        dialect = Dialect(header_rows=header_rows_in_workbook(path) if header_rows is None else header_rows)
    names = names_of(path, dialect)
    if not 0 < len(names) <= MAX_PROFILED_COLUMNS:
        raise invalid("file", f"1 to {MAX_PROFILED_COLUMNS} columns", len(names), str(path))
    texts, levels = texts_of(path, dialect), levels_of(path)
    columns = [
        ColumnProfile(name, wording=" ".join((texts.get(name) or "").split()), levels=levels.get(name, ()))
        for name in names
    ]
    for start, stop, rows in ranges_of(
        path, max(1000, _RANGE_CELLS // len(names)), _RANGE_BYTES, dialect, trim_empty=True
    ):
        for batch in batches_of(str(path), start, stop, rows, names, dialect, _BATCH_ROWS):
            for index, column in enumerate(columns):
                values_hidden(f"{path}, column {column.name!r}", column.add, batch.column(index))
    rows = columns[0].rows
    if not rows:
        raise InvalidInput(f"{path}: the file has no row below the column names")
    if header_rows is None and kind in ("delimited", "workbook"):
        _require_names(path, columns, rows)
    return FileProfile(path, kind, dialect, rows, tuple(columns), empty_rows_at_end(path, dialect))


def _require_names(path: Path, columns: Sequence[ColumnProfile], rows: int) -> None:
    """`InvalidInput` if the first row looks like a respondent's answers, or stands in the file again."""
    repeat_counts = [column.values is not None and column.values.get(column.name, 0) for column in columns]
    if len(columns) > 1 and all(repeat_counts) and 20 * max(repeat_counts) < rows:
        raise InvalidInput(
            f"{path}: the row of column names stands in the file again, as in files that were joined. Delete these "
            "rows, or pass --header-rows 1 if they are answers"
        )
    looks_like_answer = [
        bool(count) or bool(_NUMERAL.fullmatch(column.name))
        for count, column in zip(repeat_counts, columns, strict=True)
    ]
    if 2 * sum(looks_like_answer) >= len(looks_like_answer):
        raise InvalidInput(
            f"{path}: the first row looks like a respondent's answers, not like column names. If there are no names, "
            "pass --header-rows 0 (columns are then called 'column 1', 'column 2', ...), otherwise --header-rows 1"
        )


def _text(value: Any) -> str:
    """A value as it is named in a plan; of a long one, its beginning."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)[:MAX_VALUE_LENGTH]


def _pairs(values: Any, counts: Any, max_values: int) -> list[tuple[str, int]]:
    """The first values as text with their counts, one more than `max_values`."""
    first, number = values[: max_values + 1].to_pylist(), counts[: max_values + 1].to_pylist()
    return [(_text(value), count) for value, count in zip(first, number, strict=True)]
