"""Two populations from a file with a row for each respondent, in any format for answers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt.datafiles.bins import MOST_CATEGORIES, bin_labels, round_edges
from ldpopt.datafiles.dialect import PLAIN, sniff
from ldpopt.datafiles.pieces import DELIMITED, SUFFIXES, batches_of, names_of, ranges_of
from ldpopt.distribution import from_counts, number
from ldpopt.errors import Phrase, invalid
from ldpopt.files import PathLike
from ldpopt.io.populations import Populations
from ldpopt.io.table import ColumnKey, is_number, read_table

MOST_NUMBERS = 40
"""The most different numbers that can be answers without bins."""

_BATCH = 1 << 16


def read_microdata(
    path: PathLike, answer: ColumnKey, group: ColumnKey, bins: int | Sequence[float] | None = None
) -> Populations:
    """Two groups' answers to one question from a file with a line for each respondent and named columns.

    path : CSV (delimiter, encoding and decimal sign are found), an Excel workbook, Parquet, or a file of SPSS, Stata or
        SAS.
    answer, group : column names, or positions from 0. Answers and groups are sorted, as numbers if all are integers,
        else as text. The first group is p0.
    bins : for answers that are numbers, the rising edges between bins, or the number of bins, whose edges are then
        round numbers. A number on an edge belongs to the bin above it.

    `InvalidInput` unless there are exactly two groups, at least two answers, and no empty cell in either column. More
    than 40 different numbers without bins are `InvalidInput`, too.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("smokes,sex\\nyes,f\\nno,f\\nno,m\\nno,m\\n")
    ...     pair = read_microdata(path, "smokes", "sex")
    >>> pair.labels, pair.p0.tolist(), pair.p1.tolist()
    (('no', 'yes'), [0.5, 0.5], [1.0, 0.0])
    """
    where = str(path)
    pairs, (answered, grouped) = _counted(path, answer, group)
    if not pairs:
        raise invalid(where, "a line for each respondent", Phrase("column names alone"))
    for name, side in ((grouped, 0), (answered, 1)):
        if name in {pair[side] for pair in pairs}:
            # If this line were taken for names, a respondent would be dropped silently.
            raise invalid(where, "column names in the first line", Phrase(f"{name!r}, which is also a value"))
    groups = sorted({pair[0] for pair in pairs}, key=_order({pair[0] for pair in pairs}))
    if len(groups) != 2:
        shown = ", ".join(map(repr, groups[:5])) + (", ..." if len(groups) > 5 else "")
        raise invalid(where, "exactly two groups", Phrase(f"{len(groups)} ({shown})"), f"column {grouped!r}")
    texts = {pair[1] for pair in pairs}
    if bins is not None:
        pairs, answers = _binned(pairs, bins, where, answered)
    else:
        if len(texts) > MOST_NUMBERS and all(is_number(text) for text in texts):
            how = "bins=6, or bins=[1000, 2000] for edges"
            expected = f"at most {MOST_NUMBERS} different numbers (cut them into bins: {how})"
            raise invalid(where, expected, Phrase(f"{len(texts)}"), f"column {answered!r}")
        answers = sorted(texts, key=_order(texts))
    if len(answers) < 2:
        raise invalid(where, "at least two different answers", Phrase("one"), f"column {answered!r}")
    counts = np.array([[pairs[one, other] for other in answers] for one in groups], dtype=np.float64)
    counts.setflags(write=False)
    labels = tuple(int(text) for text in answers) if _integers(set(answers)) else tuple(answers)
    return Populations(labels, from_counts(counts[0]), from_counts(counts[1]), (groups[0], groups[1]), counts)


def seen_once(pair: Populations) -> tuple[Any, ...]:
    """The answers that only one respondent gave. They may be typing errors, or they may identify a person.

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
            raise invalid(where, "numbers to cut into bins", Phrase("other answers"), f"column {column!r}")
    if isinstance(bins, int):
        values = np.repeat([float(text) for _, text in pairs], list(pairs.values()))
        edges: Sequence[float] = round_edges(values, bins)
    else:
        edges = [number(edge, "bins") for edge in bins]
        rising = all(low < high for low, high in pairwise(edges))
        if not 1 <= len(edges) < MOST_CATEGORIES or not rising:
            raise invalid("bins", f"1 to {MOST_CATEGORIES - 1} rising edges", edges)
    if not edges:
        raise invalid(where, "numbers that can be cut into bins", Phrase("nearly all the same"), f"column {column!r}")
    names = bin_labels(edges, all(float(text).is_integer() for _, text in pairs))
    made: Counter[tuple[str, str]] = Counter()
    for (group, text), count in pairs.items():
        made[group, names[bisect_right(edges, float(text))]] += count
    held = {name for _, name in made}
    return made, [name for name in names if name in held]


def _counted(path: PathLike, answer: ColumnKey, group: ColumnKey) -> tuple[Counter[tuple[str, str]], tuple[str, str]]:
    """Respondents by (group, answer), and the names of the two columns, answer first."""
    file = Path(path)
    delimited = file.suffix.lower() in DELIMITED or file.suffix.lower() not in SUFFIXES
    dialect = sniff(file) if delimited and file.is_file() else PLAIN
    if delimited and dialect == PLAIN:
        return _of_table(path, answer, group)
    names = names_of(file, dialect)
    answered, grouped = (_column(file, names, key) for key in (answer, group))
    if answered == grouped:
        raise invalid(str(path), "two different columns", answered)
    pairs: Counter[tuple[str, str]] = Counter()
    row = 1
    for start, stop, rows in ranges_of(file, 1 << 20, 1 << 25, dialect):
        for batch in batches_of(str(file), start, stop, rows, [grouped, answered], dialect, _BATCH):
            cells = [[_text(one) for one in batch.column(at).to_pylist()] for at in range(2)]
            for side, name in ((cells[0], grouped), (cells[1], answered)):
                if "" in side:
                    at = f"row {row + side.index('')}, column {name!r}"
                    raise invalid(str(path), "a value", Phrase("an empty cell"), at)
            pairs.update(zip(*cells, strict=True))
            row += batch.num_rows
    return pairs, (answered, grouped)


def _of_table(path: PathLike, answer: ColumnKey, group: ColumnKey) -> tuple[Counter[tuple[str, str]], tuple[str, str]]:
    table = read_table(path)
    names = table.names()
    a, g = table.position(answer, names), table.position(group, names)
    if a == g:
        raise invalid(table.path, "two different columns", names[a])
    pairs = Counter((table.text(row, g), table.text(row, a)) for row in range(1, len(table.rows)))
    return pairs, (names[a], names[g])


def _column(path: Path, names: list[str], key: ColumnKey) -> str:
    if isinstance(key, str):
        if key not in names:
            shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            raise invalid(str(path), f"a column among {shown}", key)
        return key
    if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < len(names):
        raise invalid(str(path), f"a column name, or a position from 0 to {len(names) - 1}", key)
    return names[key]


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _integers(texts: set[str]) -> bool:
    return all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) for text in texts)


def _order(texts: set[str]) -> Any:
    return int if _integers(texts) else str
