"""The two populations that a design tells apart, from a table of probabilities or of counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt import strictjson
from ldpopt.channel import Label
from ldpopt.distribution import Array, distribution, finite_array, from_counts
from ldpopt.errors import Phrase, invalid
from ldpopt.files import PathLike, read_text
from ldpopt.io.table import ColumnKey, Table, is_number, naming, parse_table
from ldpopt.results import Result


@dataclass(frozen=True, eq=False)
class Populations(Result):
    """The distributions of two groups over the k answers to one question.

    labels : the k answers. p0, p1 : their distributions in the two groups, read-only, shape (k,).
    names : the names of the groups. counts : the numbers of respondents, shape (2, k), if p0 and p1 come from counts.

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
    """P0 and P1 from a CSV file, or from JSON ``{"p0": [...], "p1": [...], "labels": [...]}``.

    columns : the two columns of a CSV file, by name or by position from 0. By default they are the columns named p0 and
        p1, or both columns of a file that has two.
    labels : the column with the names of the answers; by default the first one, if it is neither p0 nor p1.
    counts : whether to accept counts (or weights) and divide them by their sum. Otherwise a column that does not sum to
        1 within `tolerances.ROW_SUM` is refused.

    A first line that has only numbers is data, not names. `InvalidInput` names the file, the line and the cell.

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
            values, found, names = _pair_from_json(text)
        else:
            values, found, names = _pair_from_csv(parse_table(str(path), text), columns, labels)
        made = tuple(range(len(values[0]))) if found is None else tuple(found)
        if len(set(made)) != len(made) or len(made) != len(values[0]):
            raise invalid("labels", f"{len(values[0])} distinct labels", made)
        if counts:
            p0, p1 = (from_counts(v, name) for v, name in zip(values, names, strict=True))
            table = np.stack([finite_array(v, name, 1) for v, name in zip(values, names, strict=True)])
            table.setflags(write=False)
            return Populations(made, p0, p1, names, table)
        return Populations(made, distribution(values[0], names[0]), distribution(values[1], names[1]), names)


def _pair_from_json(text: str) -> tuple[list[Any], list[Label] | None, tuple[str, str]]:
    data = strictjson.loads(text, "populations")
    if not isinstance(data, dict) or set(data) - {"p0", "p1", "labels"} or not {"p0", "p1"} <= set(data):
        got = ", ".join(data) if isinstance(data, dict) else type(data).__name__
        raise invalid("populations", "an object with the lists p0 and p1, and maybe labels", Phrase(got or "nothing"))
    for name, value in data.items():
        if not isinstance(value, list):
            raise invalid(name, "a list", Phrase(type(value).__name__))
        kinds = (str, int, float) if name == "labels" else (int, float)
        for at, entry in enumerate(value):
            if isinstance(entry, bool) or not isinstance(entry, kinds):
                expected = "strings or numbers" if name == "labels" else "numbers"
                raise invalid(name, expected, entry, f"entry {at}")
    if len(data["p0"]) != len(data["p1"]):
        raise invalid("p1", f"as many entries as p0, {len(data['p0'])}", len(data["p1"]))
    return [data["p0"], data["p1"]], data.get("labels"), ("p0", "p1")


def _pair_from_csv(
    table: Table, columns: tuple[ColumnKey, ColumnKey] | None, labels: ColumnKey | None
) -> tuple[list[Any], list[Label] | None, tuple[str, str]]:
    named = not all(is_number(cell) for cell in table.rows[0])
    names = table.names() if named else ()
    if columns is None:
        columns = ("p0", "p1") if table.width != 2 or {"p0", "p1"} <= set(names) else (0, 1)
    if not isinstance(columns, (tuple, list)) or len(columns) != 2:
        raise invalid("columns", "two column names or positions", columns)
    first, second = (table.position(column, names) for column in columns)
    if first == second:
        raise invalid("columns", "two different ones", columns)
    for column, at in zip(columns, (first, second), strict=True):
        if named and not isinstance(column, str) and is_number(table.rows[0][at]):
            # If this line were taken for names, an answer would be dropped silently.
            raise invalid(table.path, "column names in the first line, or numbers alone", table.rows[0][at])
    start = 1 if named else 0
    rows = range(start, len(table.rows))
    if not rows:
        raise invalid(table.path, "a line for each answer", Phrase("column names alone"))
    values = [[table.number(row, column) for row in rows] for column in (first, second)]
    if labels is None and 0 in (first, second):
        found: list[Label] | None = None
    else:
        at = 0 if labels is None else table.position(labels, names)
        found = [table.text(row, at) for row in rows]
    titles = (names[first], names[second]) if named else ("p0", "p1")
    return values, found, titles
