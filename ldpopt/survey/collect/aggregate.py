"""Counting reports: tables that add up, which is all that estimation needs of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt import strictjson
from ldpopt.errors import invalid
from ldpopt.survey.collect.answers import Partition, batches, column_names, input_files, partitions, refuse_nested
from ldpopt.survey.collect.batch import require_columns
from ldpopt.survey.collect.commit import check_rows
from ldpopt.survey.collect.reports import check_reports
from ldpopt.survey.collect.runner import Runner, Threads
from ldpopt.survey.plan.plan import Plan

Table = npt.NDArray[np.int64]
Names = tuple[str, ...]

FORMAT = "ldpopt-counts"
VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Reports counted by question, and by pairs of questions where asked.

    plan : checksum of the plan. rows : number of respondents.
    tables : by the names of one or two questions, counts in the order of their channels' outputs.

    Counts of disjoint reports under one plan add up: ``a + b``.
    """

    plan: str
    rows: int
    tables: dict[Names, Table]

    def __getitem__(self, names: str | Names) -> Table:
        key = (names,) if isinstance(names, str) else tuple(names)
        if key not in self.tables:
            raise invalid("counts", f"one of {sorted(self.tables)}", key)
        return self.tables[key]

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        if self.plan != other.plan or set(self.tables) != set(other.tables):
            raise invalid("counts", "tables of one plan and the same questions", "others")
        merged = {names: table + other.tables[names] for names, table in self.tables.items()}
        return Counts(self.plan, self.rows + other.rows, merged)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        same = (self.plan, self.rows, set(self.tables)) == (other.plan, other.rows, set(other.tables))
        return same and all(np.array_equal(table, other.tables[names]) for names, table in self.tables.items())

    def __repr__(self) -> str:
        return f"Counts({self.rows} respondents, tables of {', '.join(' x '.join(names) for names in self.tables)})"

    def to_json(self) -> str:
        """The counts as JSON text (schema ``ldpopt-counts``, version 1)."""
        tables = [{"questions": list(names), "counts": table.tolist()} for names, table in self.tables.items()]
        content = {"format": FORMAT, "version": VERSION, "plan": self.plan, "rows": self.rows, "tables": tables}
        return strictjson.dumps(content)

    @classmethod
    def from_json(cls, content: str | bytes, plan: Plan) -> Counts:
        """The counts written by `to_json`, which must be of `plan`; else `InvalidInput`."""
        data = strictjson.loads(content, "counts")
        fields = {"format", "version", "plan", "rows", "tables"}
        if not isinstance(data, dict) or set(data) != fields or data["format"] != FORMAT or data["version"] != VERSION:
            raise invalid("counts", f'an object with "format": "{FORMAT}", version {VERSION}', type(data).__name__)
        if data["plan"] != plan.checksum:
            raise invalid("counts", "those of the plan", "another plan's")
        if not isinstance(data["tables"], list):
            raise invalid("counts", "a list of tables", type(data["tables"]).__name__)
        tables = dict(_table(table, data["rows"], plan) for table in data["tables"])
        return cls(data["plan"], data["rows"], tables)


def aggregate(
    reports: str | Path | Sequence[str | Path],
    plan: Plan,
    pairs: Iterable[tuple[str, str]] = (),
    runner: Runner | None = None,
) -> Counts:
    """Count the reports in files, by question and for `pairs` of questions.

    reports : as `privatize` wrote them. Reports that are missing or that the plan does not know, partitions
        that their manifest misses, and reports of another plan are `InvalidInput`.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from ldpopt.survey import QuestionSpec, Simulated, SurveySpec, make_plan
    >>> from ldpopt.survey.collect.privatize import privatize
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "answers.csv").write_text("vote\\n" + "no\\n" * 60 + "yes\\n" * 40)
    ...     _ = privatize(plan, Path(folder, "answers.csv"), Path(folder, "out"), Simulated(np.random.default_rng(1)))
    ...     counts = aggregate(Path(folder, "out"), plan)
    >>> int(counts["vote"].sum())
    100
    """
    given = Path(reports) if isinstance(reports, (str, Path)) else None
    files = input_files(reports)
    check_reports(files, given, plan)
    names = table_names(plan, pairs)
    for path in files:
        require_columns([question.name for question in plan.questions], column_names(path), str(path))
        refuse_nested(path, [question.name for question in plan.questions], ())
    parts = partitions(files)
    task = CountPartition(plan.to_json(), names)
    counts = (runner or Threads()).total(task, parts, add) if parts else count_batches([], plan, names)
    check_rows(given, counts.rows)
    return counts


def add(first: Counts, second: Counts) -> Counts:
    """The counts of both."""
    return first + second


def table_names(plan: Plan, pairs: Iterable[tuple[str, str]]) -> tuple[Names, ...]:
    """One table for each question, then the pairs."""
    for pair in (asked := [tuple(pair) for pair in pairs]):
        if len(pair) != 2 or pair[0] == pair[1]:
            raise invalid("pairs", "two different questions in each", pair)
        for name in pair:
            plan.question(name)
    return (*((question.name,) for question in plan.questions), *asked)


@dataclass(frozen=True)
class CountPartition:
    """The task that counts one partition of reports."""

    plan: str
    names: tuple[Names, ...]

    def __call__(self, part: Partition) -> Counts:
        """The counts of the partition."""
        plan = Plan.from_json(self.plan)
        columns = [question.name for question in plan.questions]
        return count_batches(batches(part, columns, columns), plan, self.names, part.first_row)


def count_batches(found: Iterable[Any], plan: Plan, names: Iterable[Names], row: int = 1) -> Counts:
    """The counts of pyarrow record batches of reports, the first being row number `row`."""
    import pyarrow as pa

    labels = {question.name: pa.array(question.reports, pa.string()) for question in plan.questions}
    tables = {key: np.zeros([len(labels[name]) for name in key], np.int64) for key in names}
    rows = 0
    for batch in found:
        codes = {name: _positions(batch.column(name), labels[name], name, row + rows) for name in labels}
        for key, table in tables.items():
            flat = np.ravel_multi_index([codes[name] for name in key], table.shape)
            table += np.bincount(flat, minlength=table.size).reshape(table.shape)
        rows += batch.num_rows
    return Counts(plan.checksum, rows, tables)


def _positions(column: Any, labels: Any, name: str, row: int) -> npt.NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        found = pc.index_in(pc.cast(column.dictionary, pa.string()), labels).take(column.indices)
    else:
        found = pc.index_in(pc.cast(column, pa.string()), labels)
    if found.null_count:
        at = row + pc.index(pc.is_null(found), True).as_py()
        raise invalid(f"reports of {name!r}", f"one of the {len(labels)} of the plan", "another", f"row {at}")
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _table(data: Any, rows: Any, plan: Plan) -> tuple[Names, Table]:
    if not isinstance(data, dict) or set(data) != {"questions", "counts"} or not isinstance(data["questions"], list):
        raise invalid("counts", "tables with questions and counts", type(data).__name__)
    names = tuple(data["questions"])
    if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise invalid("counts", "tables of one question or two", names)
    shape = tuple(len(plan.question(name).reports) for name in names)
    flat = [data["counts"]] if len(names) == 1 else data["counts"]
    if not isinstance(flat, list) or not all(isinstance(line, list) for line in flat):
        raise invalid("counts", "lists of counts", type(data["counts"]).__name__)
    whole = [value for line in flat for value in line]
    if [len(line) for line in flat] != [shape[-1]] * (1 if len(names) == 1 else shape[0]):
        raise invalid("counts", f"a table of shape {shape}", "another shape", " x ".join(names))
    if not all(type(value) is int and 0 <= value < 1 << 62 for value in [rows, *whole]) or sum(whole) != rows:
        raise invalid("counts", "non-negative integers that sum to the rows", "others", " x ".join(names))
    return names, np.array(whole, np.int64).reshape(shape)
