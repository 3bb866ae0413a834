"""The form of an experiment: a claim of a paper, the points of its computation, and a verdict from the numbers.

A claim is declared from parts: `grid` for its points, a function of a point for its numbers, a pattern of `statements`
for its verdict, and `drawing.picture` for its picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from ldpopt.errors import invalid
from ldpopt.files.escapes import csv_text
from ldpopt.files.table import is_number, parse_table
from ldpopt.numbers.tolerances import TIE_RTOL
from ldpopt.values.distribution import Array
from ldpopt.values.results import Result

Cell: TypeAlias = float | str
Row: TypeAlias = dict[str, Any]
"""Cells by the names of their columns: numbers and words."""
Parameters: TypeAlias = Mapping[str, Any]


class Outcome(Enum):
    """The result of comparing a claim with exact values: it holds, holds loosely, fails, or is vacuous.

    A bound holds if it is attained, and holds loosely if it is right but not attained at the computed points. A claim
    is vacuous if its hypotheses contradict each other, so that it speaks of nothing.

    >>> Outcome("holds loosely")
    <Outcome.LOOSELY: 'holds loosely'>
    """

    HOLDS = "holds"
    LOOSELY = "holds loosely"
    FAILS = "fails"
    VACUOUS = "vacuous"


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
        """Convert the verdict to JSON-ready values."""
        figures = {name: value if math.isfinite(value) else str(value) for name, value in self.figures.items()}
        return {"outcome": self.outcome.value, "detail": self.detail, "figures": figures}


@dataclass(frozen=True, eq=False)
class Table(Result):
    """Rows of numbers and words. Rows may have different columns."""

    rows: tuple[Row, ...]

    def _columns(self) -> dict[str, list[Any]]:
        names = dict.fromkeys(name for row in self.rows for name in row)
        return {name: [row.get(name) for row in self.rows] for name in names}

    def where(self, **equal: Any) -> Table:
        """Select the rows with these values.

        `min` or `max` for a value takes the smallest or the largest in the remaining rows.

        >>> Table(({"k": 1, "x": 2}, {"k": 1, "x": 3}, {"k": 2, "x": 4})).where(k=1, x=max).rows
        ({'k': 1, 'x': 3},)
        """
        rows = self.rows
        for name, cell in equal.items():
            wanted_cell = cell(row[name] for row in rows if name in row) if callable(cell) and rows else cell
            rows = tuple(row for row in rows if row.get(name) == wanted_cell)
        return Table(rows)

    def having(self, keep: Callable[[Row], bool]) -> Table:
        """Select the rows that meet the condition `keep`."""
        return Table(tuple(row for row in self.rows if keep(row)))

    def column(self, name: str) -> Array:
        """Return a column of numbers, float64, from the rows that have this column."""
        return np.array([float(row[name]) for row in self.rows if name in row], dtype=np.float64)

    def ratio(self, top: str, bottom: str) -> Array:
        """Divide one column by another."""
        return self.column(top) / self.column(bottom)

    def values(self, column: str) -> Array:
        """Return a column, or ``"a / b"`` for a ratio of two."""
        top, _, bottom = column.partition(" / ")
        return self.ratio(top, bottom) if bottom else self.column(top)

    def groups(self, *names: str) -> Iterator[tuple[Any, Table]]:
        """Iterate over the rows by their values in one or several columns, in order of appearance."""
        have = [row for row in self.rows if all(name in row for name in names)]
        for cells in dict.fromkeys(tuple(row[name] for name in names) for row in have):
            yield (cells[0] if len(names) == 1 else cells), self.where(**dict(zip(names, cells, strict=True)))

    def with_column(self, name: str, values: Array) -> Table:
        """Return the table with one more number in every row."""
        return Table(tuple(row | {name: float(value)} for row, value in zip(self.rows, values, strict=True)))

    def row(self, name: str, pick: Callable[[Array], Any]) -> Row:
        """Return the row at ``pick(column)``, `np.argmax` or `np.argmin`; of ties the first."""
        having = [row for row in self.rows if name in row]
        values = self.column(name)
        best = values[int(pick(values))]
        is_tied = np.isclose(values, best, rtol=TIE_RTOL, atol=0.0, equal_nan=True)
        return having[int(is_tied.argmax())] | {name: float(best)}

    def best(self, by: str, column: str, pick: Callable[..., Any]) -> Table:
        """Select, for each value in a column, the row with the smallest or largest of another column."""
        return Table(tuple(rows.where(**{column: pick}).rows[0] for _, rows in self.groups(by)))

    def top(self, values: str | Array) -> Row:
        """Return the row with the largest of `values`, and this value as its cell ``top``."""
        return self.with_column("top", self.values(values) if isinstance(values, str) else values).row("top", np.argmax)

    def to_csv(self) -> str:
        """Convert the table to CSV text; floats with all their digits, absent cells empty."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        return csv_text([columns, *([row.get(name, "") for name in columns] for row in self.rows)])

    @classmethod
    def from_csv(cls, text: str, path: str = "rows") -> Table:
        """Read the table that `to_csv` wrote.

        Cells that are numbers, inf, -inf or nan are read as numbers. path : the name of the file in errors.
        `InvalidInput` for text that is not a table.

        >>> Table.from_csv(Table(({"a": 0.1, "b": "x"}, {"a": 2})).to_csv()).rows
        ({'a': 0.1, 'b': 'x'}, {'a': 2.0})
        """
        table = parse_table(path, text)
        names, rows = table.names(), zip(table.rows[1:], table.lines[1:], strict=True)
        cells = ({n: _cell(c, path, line) for n, c in zip(names, row, strict=True) if c} for row, line in rows)
        return cls(tuple(cells))


@dataclass(frozen=True)
class Axis:
    """The values of a cell: a parameter, by its full and its quick form, which is the same unless it is given.

    A number n stands for 0, ..., n - 1. name : of the parameter, where it is not called like the cell.
    """

    full: Any
    quick: Any = None
    name: str = ""

    @staticmethod
    def values(parameter: Any) -> Iterable[Cell]:
        """List the values of the cell."""
        return range(parameter) if isinstance(parameter, int) else parameter


class Single(Axis):
    """An axis with one value, the parameter itself."""

    @staticmethod
    def values(parameter: Any) -> Iterable[Cell]:
        """List the single value."""
        return [parameter]


@dataclass(frozen=True)
class Points:
    """A function from parameters, which are its axes, to points. After those of a sum's first come the second's."""

    rows: Callable[[Parameters], Iterable[Row]]
    axes: tuple[Axis, ...] = ()

    def __call__(self, parameters: Parameters) -> list[Row]:
        """The points as rows."""
        return list(self.rows(parameters))

    def __add__(self, other: Points) -> Points:
        return Points(lambda parameters: self(parameters) + other(parameters), self.axes + other.axes)


def grid(keep: Callable[[Row], bool] = lambda _: True, /, **axes: str | Axis | Iterable[Cell]) -> Points:
    """List all combinations of values, as points; the last axis changes fastest.

    - `axes` : for each cell its values, an `Axis`, or the name of a parameter that is the axis of another grid.
    - `keep` : the condition that a point must meet.

    >>> grid(part=["random"], k=Axis([3, 4], [3]), seed=Axis(20, 2))({"k": [3], "seed": 2})
    [{'part': 'random', 'k': 3, 'seed': 0}, {'part': 'random', 'k': 3, 'seed': 1}]
    """
    named = {cell: replace(axis, name=axis.name or cell) for cell, axis in axes.items() if isinstance(axis, Axis)}

    def values(cell: str, parameters: Parameters) -> Iterable[Cell]:
        axis = named.get(cell, axes[cell])
        if isinstance(axis, Axis):
            return axis.values(parameters[axis.name])
        return Axis.values(parameters[axis]) if isinstance(axis, str) else axis

    def rows(parameters: Parameters) -> Iterator[Row]:
        cells = product(*(values(cell, parameters) for cell in axes))
        yield from filter(keep, (dict(zip(axes, point, strict=True)) for point in cells))

    return Points(rows, tuple(named.values()))


@dataclass(frozen=True)
class Experiment:
    """A claim of a paper and its recomputation: points, exact values, a verdict and a figure.

    - `name` : the name of its folder.
    - `source` : citations; the first one is that of the claim.
    - `claim` : a sentence.
    - `points` : the points to compute, as from `grid`.
    - `measure` : a function from the cells of a point to its results, as cells or as several rows of them.
    - `judge` : the verdict from all rows.
    - `draw` : their figure, as matplotlib axes.
    - `caption` : a description of the figure.
    - `subject` : the role of the claim in the paper, such as a statement or a step of a proof.
    """

    name: str
    source: str
    claim: str
    points: Points
    measure: Callable[..., Row | Iterable[Row]]
    judge: Callable[[Table], Verdict]
    draw: Callable[[Table], Any]
    caption: str
    subject: Subject = Subject.STATEMENT

    @property
    def full(self) -> Parameters:
        """The parameters of the full form."""
        return {axis.name: axis.full for axis in self.points.axes}

    @property
    def quick(self) -> Parameters:
        """The parameters of the quick form."""
        return {axis.name: axis.full if axis.quick is None else axis.quick for axis in self.points.axes}

    def rows_at(self, point: Row) -> list[Row]:
        """Compute the rows of one point, with its cells first, and all numbers as floats."""
        measured = self.measure(**point)
        rows = (point | row for row in ([measured] if isinstance(measured, dict) else measured))
        return [{name: cell if isinstance(cell, str) else float(cell) for name, cell in row.items()} for row in rows]


def nearest(number: float) -> Callable[[Iterable[float]], float]:
    """Return the function that takes the value next to a number, for `Table.where`."""
    return lambda cells: min(cells, key=lambda cell: abs(cell - number))


def middle(cells: Iterable[float]) -> float:
    """Return the middle value, for `Table.where`."""
    return sorted(distinct := set(cells))[len(distinct) // 2]


def _cell(text: str, path: str, line: int) -> Cell:
    if text in ("inf", "-inf", "nan"):
        return float(text)
    if not is_number(text):
        return text
    value = float(text.strip())
    if not math.isfinite(value):
        raise invalid(path, "a finite double", text, f"line {line}")
    return value
