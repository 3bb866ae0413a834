"""A table of probabilities or counts, or a file with a row for each respondent, to two populations."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import Phrase, invalid
from ldpopt.extras import uninstalled
from ldpopt.files import strict
from ldpopt.files.atomic import PathLike, naming, read_text
from ldpopt.files.delimited import PLAIN, sniff
from ldpopt.files.table import ColumnKey, Table, column_shown, is_number, parse_table, position_of
from ldpopt.values.distribution import (
    MOST_CATEGORIES,
    Array,
    bin_labels,
    distribution,
    finite_array,
    from_counts,
    number,
    round_edges,
)
from ldpopt.values.results import Result
from ldpopt.values.schema import kind


@dataclass(frozen=True, eq=False)
class Populations(Result):
    """The distributions of two groups over the k answers to one question.

    - `labels` : the k answers.
    - `p0`, `p1` : their distributions in the two groups, read-only, shape (k,).
    - `names` : the names of the groups.
    - `counts` : the numbers of respondents, shape (2, k), if p0 and p1 come from counts.

    >>> Populations(("no", "yes"), np.array([0.3, 0.7]), np.array([0.6, 0.4]))
    Populations('p0' and 'p1', 2 answers)
    """

    labels: tuple[Label, ...]
    p0: Array
    p1: Array
    names: tuple[str, str] = ("p0", "p1")
    counts: npt.NDArray[np.float64] | None = None

    _heads = 1

    def _columns(self) -> dict[str, list[Any]]:
        return {"answer": list(self.labels), self.names[0]: self.p0.tolist(), self.names[1]: self.p1.tolist()}

    def __repr__(self) -> str:
        size = "" if self.counts is None else f", {self.counts[0].sum():g} and {self.counts[1].sum():g} respondents"
        return f"Populations({self.names[0]!r} and {self.names[1]!r}, {len(self.labels)} answers{size})"


def read_pair(
    path: PathLike,
    columns: tuple[ColumnKey, ColumnKey] | None = None,
    labels: ColumnKey | None = None,
    *,
    counts: bool = False,
) -> Populations:
    """Read P0 and P1 from a CSV or JSON file.

    JSON has the form ``{"p0": [...], "p1": [...], "labels": [...]}``. In CSV, a first line that has only numbers is
    data, not names.

    Parameters
    ----------
    path : The file.
    columns : The two columns of a CSV file, by name or by position from 0. By default they are the columns named p0 and
        p1, or both columns of a file that has two.
    labels : The column with the names of the answers; by default the first one, if it is neither p0 nor p1.
    counts : True accepts counts (or weights) and divides them by their sum. Otherwise a column that does not sum to 1
        within `tolerances.ROW_SUM` is rejected.

    Returns
    -------
    Populations
        The labels, and p0 and p1, shape (k,) each.

    Raises
    ------
    InvalidInput
        If the file is not such a pair; the message names the file, the line and the cell.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pair.csv"
    ...     _ = path.write_text("answer,women,men\\nyes,30,10\\nno,70,90\\n")
    ...     pair = read_pair(path, ("women", "men"), counts=True)
    >>> pair.labels, pair.p0.tolist(), pair.p1.tolist()
    (('yes', 'no'), [0.3, 0.7], [0.1, 0.9])
    """
    text = read_text(path)
    with naming(path):
        if Path(path).suffix.lower() == ".json" or (Path(path).suffix.lower() != ".csv" and text.lstrip()[:1] == "{"):
            if columns is not None or labels is not None:
                raise invalid("columns", "none to choose for a JSON file", Phrase(f"{columns}, {labels}"))
            values, answer_labels, names = _pair_from_json(text)
            column_names = names
        else:
            values, answer_labels, names, column_names = _pair_from_csv(parse_table(str(path), text), columns, labels)
        answers = tuple(range(len(values[0]))) if answer_labels is None else tuple(answer_labels)
        if len(set(answers)) != len(answers) or len(answers) != len(values[0]):
            raise invalid(
                "labels",
                f"{len(values[0])} distinct labels",
                Phrase(f"{len(answers)}, of which {len(set(answers))} differ"),
            )
        if counts:
            p0, p1 = (from_counts(v, name) for v, name in zip(values, column_names, strict=True))
            table = np.stack([finite_array(v, name, 1) for v, name in zip(values, column_names, strict=True)])
            table.setflags(write=False)
            return Populations(answers, p0, p1, names, table)
        return Populations(
            answers, distribution(values[0], column_names[0]), distribution(values[1], column_names[1]), names
        )


def _pair_from_json(text: str) -> tuple[list[Any], list[Label] | None, tuple[str, str]]:
    data = strict.json_value(text, "populations")
    if not isinstance(data, dict) or set(data) - {"p0", "p1", "labels"} or not {"p0", "p1"} <= set(data):
        got = ("other entries" if data else "nothing") if isinstance(data, dict) else kind(data)
        raise invalid("populations", "an object with the lists p0 and p1, and maybe labels", Phrase(got))
    for name, value in data.items():
        if not isinstance(value, list):
            raise invalid(name, "a list", Phrase(type(value).__name__))
        kinds = (str, int, float) if name == "labels" else (int, float)
        for index, entry in enumerate(value):
            if isinstance(entry, bool) or not isinstance(entry, kinds):
                expected = "strings or numbers" if name == "labels" else "numbers"
                raise invalid(name, expected, entry, f"entry {index}")
    if len(data["p0"]) != len(data["p1"]):
        raise invalid("p1", f"as many entries as p0, {len(data['p0'])}", len(data["p1"]))
    return [data["p0"], data["p1"]], data.get("labels"), ("p0", "p1")


def _pair_from_csv(
    table: Table, columns: tuple[ColumnKey, ColumnKey] | None, labels: ColumnKey | None
) -> tuple[list[Any], list[Label] | None, tuple[str, str], tuple[str, str]]:
    """The two columns, the labels, the names of the populations, and the names of the columns in messages."""
    has_header = not all(is_number(cell) for cell in table.rows[0])
    names = table.names() if has_header else ()
    if columns is None:
        columns = ("p0", "p1") if table.width != 2 or {"p0", "p1"} <= set(names) else (0, 1)
    if not isinstance(columns, (tuple, list)) or len(columns) != 2:
        raise invalid("columns", "two column names or positions", columns)
    first, second = (table.position(column, names) for column in columns)
    if first == second:
        raise invalid("columns", "two different ones", columns)
    for column, place in zip(columns, (first, second), strict=True):
        if has_header and not isinstance(column, str) and is_number(table.rows[0][place]):
            # If this line were taken for names, an answer would be dropped silently.
            raise invalid(table.path, "column names in the first line, or numbers alone", Phrase("a number"))
    start = 1 if has_header else 0
    rows = range(start, len(table.rows))
    if not rows:
        raise invalid(table.path, "a line for each answer", Phrase("column names alone"))
    values = [[table.number(row, column) for row in rows] for column in (first, second)]
    if labels is None and 0 in (first, second):
        answers: list[Label] | None = None
    else:
        place = 0 if labels is None else table.position(labels, names)
        answers = [table.text(row, place) for row in rows]
    titles = (names[first], names[second]) if has_header else ("p0", "p1")
    column_names = [column if isinstance(column, str) else f"column {column_shown(column)}" for column in columns]
    return values, answers, titles, (column_names[0], column_names[1])


MOST_NUMBERS = 40
"""The most different numbers that can be answers without bins."""


def read_microdata(
    path: PathLike, answer: ColumnKey, group: ColumnKey, bins: int | Sequence[float] | None = None
) -> Populations:
    """Read two groups' answers to one question from a file with one row per respondent.

    Parameters
    ----------
    path : CSV (delimiter, encoding and decimal sign are detected), an Excel workbook, Parquet, or a file of SPSS, Stata
        or SAS.
    answer, group : Column names, or positions from 0. Answers and groups are sorted, as numbers if all are integers,
        else as text. The first group is p0.
    bins : For answers that are numbers, the rising edges between bins, or the number of bins, whose edges are then
        round numbers. A number on an edge belongs to the bin above it.

    Returns
    -------
    Populations
        The labels, p0 and p1, shape (k,) each, and the counts.

    Raises
    ------
    InvalidInput
        Unless there are exactly two groups, at least two answers, and no empty cell in either column. Also for more
        than 40 different numbers without bins.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("smokes,sex\\nyes,f\\nno,f\\nno,m\\nno,m\\n")
    ...     pair = read_microdata(path, "smokes", "sex")
    >>> pair.labels, pair.p0.tolist(), pair.p1.tolist()
    (('no', 'yes'), [0.5, 0.5], [1.0, 0.0])
    """
    where = str(path)
    pairs, (answer_position, group_position) = _counted(path, answer, group)
    column_name = column_shown(answer)
    if not pairs:
        raise invalid(where, "a line for each respondent", Phrase("column names alone"))
    for name, side in ((group_position, 0), (answer_position, 1)):
        if name in {pair[side] for pair in pairs}:
            # If this line were taken for names, a respondent would be dropped silently.
            raise invalid(where, "column names in the first line", Phrase("one that is also a value"))
    groups = sorted(names := {pair[0] for pair in pairs}, key=_kind_of(names))
    if len(groups) != 2:
        raise invalid(where, "exactly two groups", len(groups), f"column {column_shown(group)}")
    texts = {pair[1] for pair in pairs}
    if bins is not None:
        pairs, answers = _binned(pairs, bins, where, column_name)
    else:
        if len(texts) > MOST_NUMBERS and all(is_number(text) for text in texts):
            bins_example = "bins=6, or bins=[1000, 2000] for edges"
            expected = f"at most {MOST_NUMBERS} different numbers (cut them into bins: {bins_example})"
            raise invalid(where, expected, Phrase(f"{len(texts)}"), f"column {column_name}")
        answers = sorted(texts, key=_kind_of(texts))
    if len(answers) < 2:
        raise invalid(where, "at least two different answers", Phrase("a single answer"), f"column {column_name}")
    counts = np.array([[pairs[group_name, other] for other in answers] for group_name in groups], dtype=np.float64)
    counts.setflags(write=False)
    labels = tuple(map(_kind_of(set(answers)), answers))
    return Populations(labels, from_counts(counts[0]), from_counts(counts[1]), (groups[0], groups[1]), counts)


def seen_once(pair: Populations) -> tuple[Any, ...]:
    """List the answers that only one respondent gave; they may be errors or identify a person.

    Parameters
    ----------
    pair : The two populations, with their counts.

    Returns
    -------
    tuple
        The labels of these answers.

    Examples
    --------
    >>> counts = np.array([[3.0, 1.0], [4.0, 0.0]])
    >>> seen_once(Populations(("no", "yess"), counts[0] / 4, counts[1] / 4, counts=counts))
    ('yess',)
    """
    return () if pair.counts is None else tuple(pair.labels[x] for x in np.flatnonzero(pair.counts.sum(axis=0) == 1))


def _binned(
    pairs: Counter[tuple[str, str]], bins: int | Sequence[float], where: str, column: str
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """The counts by bin, and the bins with at least one respondent, in order."""
    for _, text in pairs:
        if not is_number(text):
            raise invalid(where, "numbers to cut into bins", Phrase("other answers"), f"column {column}")
    if isinstance(bins, int):
        values = np.repeat([float(text) for _, text in pairs], list(pairs.values()))
        edges: Sequence[float] = round_edges(values, bins)
    else:
        edges = [number(edge, "bins") for edge in bins]
        is_rising = all(low < high for low, high in pairwise(edges))
        if not 1 <= len(edges) < MOST_CATEGORIES or not is_rising:
            raise invalid("bins", f"1 to {MOST_CATEGORIES - 1} rising edges", edges)
    if not edges:
        raise invalid(where, "numbers that can be cut into bins", Phrase("nearly all the same"), f"column {column}")
    names = bin_labels(edges, all(float(text).is_integer() for _, text in pairs))
    counts: Counter[tuple[str, str]] = Counter()
    for (group, text), count in pairs.items():
        counts[group, names[bisect_right(edges, float(text))]] += count
    occupied_names = {name for _, name in counts}
    return counts, [name for name in names if name in occupied_names]


OTHER_FORMATS = (".parquet", ".xlsx", ".xlsm", ".sav", ".zsav", ".por", ".dta", ".sas7bdat")
"""Endings of files that are no delimited text; what reads them is an entry point of the group ``ldpopt.readers``."""

_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)


def _counted(path: PathLike, answer: ColumnKey, group: ColumnKey) -> tuple[Counter[tuple[str, str]], tuple[str, str]]:
    """Respondents by (group, answer), and the names of the two columns, answer first."""
    file = Path(path)
    if file.suffix.lower() in OTHER_FORMATS:
        return _of_batches(file, answer, group)
    dialect = sniff(file) if file.is_file() else PLAIN
    table = parse_table(str(path), read_text(path, dialect.encoding), dialect.delimiter)
    names = table.names()
    answer_position, group_position = table.position(answer, names), table.position(group, names)
    if answer_position == group_position:
        raise invalid(table.path, "two different columns", Phrase(f"column {column_shown(answer)} twice"))
    rows = range(1, len(table.rows))
    pairs = Counter((table.text(row, group_position), table.text(row, answer_position)) for row in rows)
    if dialect.decimal == ",":
        pairs = Counter({(_pointed(first), _pointed(second)): count for (first, second), count in pairs.items()})
    return pairs, (names[answer_position], names[group_position])


def _pointed(text: str) -> str:
    """A number with a decimal comma as one with a point; any other text as it is."""
    return text.replace(",", ".") if _COMMA.fullmatch(text) else text


def _of_batches(path: Path, answer: ColumnKey, group: ColumnKey) -> tuple[Counter[tuple[str, str]], tuple[str, str]]:
    """The same from a file of another format, by a registered reader."""
    readers = list(entry_points(group="ldpopt.readers"))
    if not readers:
        raise uninstalled(f"{path}: the reader of *{path.suffix} files", "survey")
    selected_columns: list[str] = []

    def columns(names: Sequence[str]) -> list[str]:
        selected_columns.extend(names[position_of(path, key, names, len(names))] for key in (answer, group))
        if selected_columns[0] == selected_columns[1]:
            raise invalid(str(path), "two different columns", Phrase(f"column {column_shown(answer)} twice"))
        return selected_columns

    pairs: Counter[tuple[str, str]] = Counter()
    first_row = 2
    for batch in readers[0].load()(path, columns):
        answers, groups = ([_text(cell) for cell in cells] for cells in batch)
        for cells, name in ((groups, group), (answers, answer)):
            if "" in cells:
                where = f"row {first_row + cells.index('')}, column {column_shown(name)}"
                raise invalid(str(path), "a value", Phrase("an empty cell"), where)
        pairs.update(zip(groups, answers, strict=True))
        first_row += len(answers)
    return pairs, (selected_columns[0], selected_columns[1])


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _kind_of(texts: set[str]) -> type[int] | type[str]:
    """The type of the labels and of their sort order: integers, if all are."""
    return int if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) for text in texts) else str
