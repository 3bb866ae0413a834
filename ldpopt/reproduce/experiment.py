"""The form of an experiment: a claim of a paper, points at which it is computed, and a verdict from the numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from ldpopt.distribution import Array
from ldpopt.errors import invalid
from ldpopt.io.table import is_number, parse_table
from ldpopt.results import Result

Cell: TypeAlias = float | str
Row: TypeAlias = dict[str, Cell]
Parameters: TypeAlias = Mapping[str, Any]


class Outcome(Enum):
    """The result of comparing a claim with exact values: it holds, holds loosely, or fails.

    A bound holds if it is attained, and holds loosely if it is right but not attained at the computed points.

    >>> Outcome("holds loosely")
    <Outcome.LOOSELY: 'holds loosely'>
    """

    HOLDS = "holds"
    LOOSELY = "holds loosely"
    FAILS = "fails"


class Subject(Enum):
    """The role of a claim in its paper, so that a false step is not taken for a false theorem.

    >>> Subject.STEP.value
    'step of a proof'
    """

    STATEMENT = "statement"
    STEP = "step of a proof"
    REMARK = "remark in the text"
    QUESTION = "open question"


@dataclass(frozen=True, eq=False)
class Verdict(Result):
    """The outcome, a computed sentence of detail, and the numbers behind it."""

    outcome: Outcome
    detail: str
    figures: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready values."""
        figures = {name: value if math.isfinite(value) else str(value) for name, value in self.figures.items()}
        return {"outcome": self.outcome.value, "detail": self.detail, "figures": figures}


@dataclass(frozen=True, eq=False)
class Table(Result):
    """Rows of numbers and words. Rows may have different columns."""

    rows: tuple[Row, ...]

    def _columns(self) -> dict[str, list[Any]]:
        names = dict.fromkeys(name for row in self.rows for name in row)
        return {name: [row.get(name) for row in self.rows] for name in names}

    def where(self, **equal: Cell) -> Table:
        """The rows with these values."""
        return Table(tuple(row for row in self.rows if all(row.get(name) == cell for name, cell in equal.items())))

    def column(self, name: str) -> Array:
        """A column of numbers, float64, from the rows that have this column."""
        return np.array([float(row[name]) for row in self.rows if name in row], dtype=np.float64)

    def groups(self, name: str) -> Iterator[tuple[Cell, Table]]:
        """The rows by their value in a column, in order of appearance."""
        for cell in dict.fromkeys(row[name] for row in self.rows if name in row):
            yield cell, self.where(**{name: cell})

    def with_column(self, name: str, values: Array) -> Table:
        """The table with one more number in every row."""
        return Table(tuple(row | {name: float(value)} for row, value in zip(self.rows, values, strict=True)))

    def row(self, name: str, pick: Callable[[Array], Any]) -> Row:
        """The row at ``pick(column)``: ``np.argmax``, ``np.argmin``."""
        having = [row for row in self.rows if name in row]
        return having[int(pick(self.column(name)))]

    def to_csv(self) -> str:
        """The table as CSV text; floats with all their digits, absent cells empty."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([row.get(name, "") for name in columns] for row in self.rows)
        return out.getvalue()

    @classmethod
    def from_csv(cls, text: str, path: str = "rows") -> Table:
        """The table that `to_csv` wrote. Cells that are numbers, inf, -inf or nan are read as numbers.

        path : the name of the file in errors. `InvalidInput` for text that is not a table.

        >>> Table.from_csv(Table(({"a": 0.1, "b": "x"}, {"a": 2})).to_csv()).rows
        ({'a': 0.1, 'b': 'x'}, {'a': 2.0})
        """
        table = parse_table(path, text)
        names = table.names()
        where = [f"line {line}" for line in table.lines]
        rows = zip(table.rows[1:], where[1:], strict=True)
        return cls(
            tuple(
                {name: _cell(cell, path, line) for name, cell in zip(names, row, strict=True) if cell}
                for row, line in rows
            )
        )


@dataclass(frozen=True)
class Experiment:
    """A claim of a paper with what is needed to recompute it: points, exact values, a verdict and a picture.

    name : the name of its folder. claim : a sentence. source : citations; the first one is that of the claim.
    full, quick : the parameters of the full and of the quick form. points : a function from parameters to the points to
        compute, as rows.
    measure : a function from the cells of a point to its results, as cells or as several rows of them.
    judge : the verdict from all rows. draw : their picture, as matplotlib axes. caption : a description of the picture.
    subject : the role of the claim in the paper, such as a statement or a step of a proof.
    """

    name: str
    claim: str
    source: str
    full: Parameters
    quick: Parameters
    points: Callable[[Parameters], Iterable[Row]]
    measure: Callable[..., Row | list[Row]]
    judge: Callable[[Table], Verdict]
    draw: Callable[[Table], Any]
    caption: str
    subject: Subject = Subject.STATEMENT

    def rows_at(self, point: Row) -> list[Row]:
        """The rows of one point, with its own cells first. All numbers are floats, as after reading from CSV."""
        found = self.measure(**point)
        rows = (point | row for row in (found if isinstance(found, list) else [found]))
        return [{name: cell if isinstance(cell, str) else float(cell) for name, cell in row.items()} for row in rows]


def grid(**axes: Iterable[Cell]) -> list[Row]:
    """All combinations of values as rows; the last axis changes fastest.

    >>> grid(a=[1, 2], b=["x"])
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    """
    rows: list[Row] = [{}]
    for name, cells in axes.items():
        rows = [row | {name: cell} for row in rows for cell in cells]
    return rows


def outcome_of(ratios: Array, tolerance: float = 1e-6) -> Outcome:
    """The outcome for a claim that `ratios` (claimed / exact, for bounds from above) are at least 1.

    It fails if a ratio is below 1, holds if all are 1, and holds loosely otherwise.
    """
    if not len(ratios) or np.isnan(ratios).any() or ratios.min() < 1 - tolerance:
        return Outcome.FAILS
    return Outcome.HOLDS if ratios.max() <= 1 + tolerance else Outcome.LOOSELY


def agreement(errors: Array, tolerance: float) -> Outcome:
    """The outcome for a claim of equality, from absolute errors."""
    return Outcome.HOLDS if len(errors) and bool((errors <= tolerance).all()) else Outcome.FAILS


def _cell(text: str, path: str, where: str) -> Cell:
    if text in ("inf", "-inf", "nan"):
        return float(text)
    if not is_number(text):
        return text
    value = float(text.strip())
    if not math.isfinite(value):
        raise invalid(path, "a finite double", text, where)
    return value
