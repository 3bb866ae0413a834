"""Files of reports -> their counts, all that estimation needs, or single respondents with their public columns.

The counts of separate files add up. Analyses of samples, groups and conditions need single respondents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa, pc
from ldpopt.files import strict
from ldpopt.values.results import Result
from ldpopt.values.schema import version_of
from ldpopt_survey.collect.answers import Partition, batches, partitions, refuse_nested
from ldpopt_survey.collect.batch import require_columns
from ldpopt_survey.collect.manifest import Delivery, add_rounds, admit, refuse_repeated_reports, row_set
from ldpopt_survey.collect.runner import Runner, Threads
from ldpopt_survey.datafiles.pieces import names_of
from ldpopt_survey.plan.plan import BOOKLET, Plan
from ldpopt_survey.records import dump, flag, key, listed, load, mapping, text, whole

Table = npt.NDArray[np.int64]
Names = tuple[str, ...]

FORMAT = "ldpopt-counts"
VERSION = 2


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Result):
    """Reports counted by question, and by pairs of questions on request.

    - `plan` : the checksum of the plan.
    - `rows` : the number of respondents.
    - `tables` : counts by the names of one or two questions, shape (m,) or (m1, m2), in the order of the channels'
      outputs. The empty reports of a question that leaves missing answers out are not counted.
    - `simulation` : True if the reports are marked as simulated.
    - `unlabelled` : True if some files came without a manifest (the record of the plan, the rows and the checksum that
      `privatize` writes with reports).
    - `sources` : identifiers of the reports. They are the fingerprint of each partition in its manifest (a keyed
      checksum of its respondents), or, for a file without a manifest, the beginning of its SHA-256.
    - `rounds` : the number of respondents who had answered one round of the survey, two, ..., if a ledger knew their
      ids.

    Counts of disjoint reports under one plan add up: ``a + b``. It is `InvalidInput` to add the same reports twice, or
    simulated reports to real ones.
    """

    plan: str = key(text)
    rows: int = key(whole)
    tables: dict[Names, Table] = key(
        load=lambda data, name: dict(listed(_table)(data, name)),
        dump=lambda tables: [{"questions": names, "counts": table.tolist()} for names, table in tables.items()],
    )
    simulation: bool = key(default=False, load=flag)
    unlabelled: bool = key(default=False, load=flag)
    sources: frozenset[str] = key(
        default=frozenset(), load=lambda data, name: frozenset(listed(row_set)(data, name)), dump=sorted
    )
    rounds: tuple[int, ...] = key(default=(), load=listed(whole), omit=True)

    def _columns(self) -> dict[str, list[Any]]:
        """One row for each question and each of its outputs, numbered from 0. Tables of pairs are only in `to_json`."""
        single = [(names[0], place, int(n)) for names, table in self.tables.items() if len(names) == 1
                  for place, n in enumerate(table)]  # fmt: skip
        return {name: [row[place] for row in single] for place, name in enumerate(("question", "report", "count"))}

    def __getitem__(self, names: str | Names) -> Table:
        key = (names,) if isinstance(names, str) else tuple(names)
        if key not in self.tables:
            raise invalid("counts", f"one of {sorted(self.tables)}", key)
        return self.tables[key]

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        if self.plan != other.plan or set(self.tables) != set(other.tables):
            raise InvalidInput("counts: only counts of one plan and the same questions can be added")
        if self.simulation != other.simulation:
            raise InvalidInput("counts: simulated ones, or counts of reports of people, can be added, not one of each")
        refuse_repeated_reports(self.sources, other.sources)
        merged = {names: table + other.tables[names] for names, table in self.tables.items()}
        unlabelled, sources = self.unlabelled or other.unlabelled, self.sources | other.sources
        rounds = add_rounds([self.rounds, other.rounds])
        return Counts(self.plan, self.rows + other.rows, merged, self.simulation, unlabelled, sources, rounds)

    def __repr__(self) -> str:
        population = "simulated respondents" if self.simulation else "respondents"
        return f"Counts({self.rows} {population}, tables of {', '.join(' x '.join(names) for names in self.tables)})"

    def to_json(self) -> str:
        """Write the counts as JSON text (schema ``ldpopt-counts``, version 2)."""
        return strict.json_text({"format": FORMAT, "version": VERSION, **dump(self)})

    @classmethod
    def from_json(cls, content: str | bytes, plan: Plan) -> Counts:
        """Read the counts that `to_json` wrote; raise `InvalidInput` unless they are of `plan`."""
        data = strict.json_value(content, "counts")
        version_of(data, "counts", FORMAT, (VERSION,))
        if {*data, "rounds"} != {"format", "version", *(field.name for field in fields(cls))}:
            raise invalid("counts", "the fields of this version", Phrase("others (count the reports again)"))
        if data["plan"] != plan.checksum:
            raise InvalidInput("counts: they are those of another plan")
        counts = load(cls, {name: data[name] for name in data if name not in ("format", "version")}, "counts")
        whole(counts.rows, "counts: rows")
        for names, table in counts.tables.items():
            questions = [plan.question(name) for name in names]
            if table.shape != (shape := tuple(len(question.reports) for question in questions)):
                raise InvalidInput(f"counts: the table of {' x '.join(names)} must have the shape {shape}")
            total_count = sum(map(int, table.ravel()))
            if total_count > counts.rows or (total_count < counts.rows and not any(q.may_be_empty for q in questions)):
                raise InvalidInput(f"counts: the table of {' x '.join(names)} does not sum to the rows")
        return counts


def _table(data: Any, name: str) -> tuple[Names, Table]:
    """The names and the counts of one question or two; the shape is compared with the plan later."""
    if set(mapping(data, name)) != {"questions", "counts"}:
        raise InvalidInput(f"{name}: each table must have exactly the keys 'questions' and 'counts'")
    names = listed(text)(data["questions"], name)
    if not 1 <= len(names) <= 2 or len(set(names)) != len(names):
        raise invalid(name, "tables of one question or two", names)
    lines = listed(listed(whole))([data["counts"]] if len(names) == 1 else data["counts"], name)
    if len({len(line) for line in lines}) != 1:
        raise InvalidInput(f"{name}: the rows of a table of counts must have equal lengths")
    return names, np.array(lines[0] if len(names) == 1 else lines, np.int64)


def aggregate(
    plan: Plan,
    reports: str | Path | Sequence[str | Path],
    pairs: Iterable[tuple[str, str]] = (),
    runner: Runner | None = None,
    unlabelled: bool = False,
) -> Counts:
    """Count the reports in files, by question and for `pairs` of questions.

    Parameters
    ----------
    plan : The plan of the reports.
    reports : The files that `privatize` wrote (one file, a folder, or several), or a collector's database
        (``reports.db``, ``sqlite:///...`` or ``postgresql://...``).
    pairs : Pairs of names of questions whose joint reports are counted, too.
    runner : Where the partitions are counted; in this thread by default.
    unlabelled : True to count files without a manifest, too, which were written by hand or by another program. By
        default they are `InvalidInput`, since nothing distinguishes them from raw answers or from reports of another
        plan.

    Returns
    -------
    Counts
        A table of shape (m,) for each question with m possible reports, and of shape (m1, m2) for each pair.

    Raises
    ------
    InvalidInput
        For a report that the plan does not know. For a missing report, unless its question leaves missing answers out.
        For files that do not fit their manifests: they belong to another plan, were changed, or are incomplete. For a
        file given twice, also under another name. For simulated reports together with real ones.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from ldpopt_survey import QuestionSpec, Simulated, SurveySpec, make_plan
    >>> from ldpopt_survey.collect.privatize import privatize
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "answers.csv").write_text("vote\\n" + "no\\n" * 60 + "yes\\n" * 40)
    ...     _ = privatize(plan, Path(folder, "answers.csv"), Path(folder, "out"), Simulated(np.random.default_rng(1)))
    ...     counts = aggregate(plan, Path(folder, "out"))
    >>> int(counts["vote"].sum()), counts.simulation
    (100, True)
    """
    if not isinstance(plan, Plan):
        raise invalid("plan", "a Plan", Phrase(type(plan).__name__))
    names = _table_names(plan, pairs)
    sources = [reports] if isinstance(reports, (str, Path)) else list(reports)
    from ldpopt_survey.server.databases import is_database

    databases = [source for source in sources if is_database(source)]
    if len(set(map(str, databases))) != len(databases):
        raise InvalidInput("reports: a database is given twice")
    counts = [_count_stored(plan, location, names) for location in databases]
    if files := [source for source in sources if not is_database(source)]:
        counts.append(_count(plan, admit(plan, files, unlabelled), names, runner))
    if not counts:
        raise InvalidInput("reports: no file was given; pass at least one file of reports")
    return reduce(add, counts)


def _count_stored(plan: Plan, location: str | Path, names: tuple[Names, ...]) -> Counts:
    """The counts of the reports in a database."""
    from ldpopt_survey.server.databases import database
    from ldpopt_survey.server.export import parts_of, stored_batches

    days: dict[str, list[str]] = {}
    with database(location, plan) as store:
        counts = _count_batches(stored_batches(plan, store, days), plan, names)
    return replace(counts, sources=frozenset(parts_of(days)))


def _parts(plan: Plan, delivery: Delivery, public: Sequence[str] = ()) -> list[Partition]:
    """The partitions of a delivery, whose files have the columns that are needed and the rows of their manifests."""
    needed_columns = report_columns(plan)
    for path in delivery.files:
        file_columns = names_of(path)
        require_columns(needed_columns, file_columns, str(path))
        for name in public:
            if name not in file_columns:
                available = ", ".join(c for c in file_columns if c not in needed_columns) or "none"
                expected = (
                    f"one of the public columns of the reports ({available}; carry = [...] in survey.toml adds some)"
                )
                raise invalid("column", expected, name)
        refuse_nested(path, [*needed_columns, *public], (), ())
    parts = partitions(delivery.files)
    delivery.require_rows(parts)
    return parts


def _count(plan: Plan, delivery: Delivery, names: tuple[Names, ...], runner: Runner | None) -> Counts:
    """The counts of a delivery."""
    parts = _parts(plan, delivery)
    task = partial(_count_partition, plan.to_json(), names)
    counts = (runner or Threads()).total(task, parts, add) if parts else _count_batches([], plan, names)
    if counts.rows != (rows := sum(part.rows for part in parts)):
        raise invalid("reports", f"the {rows} rows of their files", counts.rows)
    provenance = {name: getattr(delivery, name) for name in ("simulation", "unlabelled", "sources", "rounds")}
    return replace(counts, **provenance)


def _table_names(plan: Plan, pairs: Iterable[tuple[str, str]]) -> tuple[Names, ...]:
    """One table for each question, then the pairs."""
    for pair in (pair_names := [tuple(pair) for pair in pairs]):
        if len(pair) != 2 or pair[0] == pair[1]:
            raise invalid("pairs", "two different questions in each", pair)
        for name in pair:
            plan.question(name)
    return (*((question.name,) for question in plan.questions), *pair_names)


def _count_partition(plan_text: str, names: tuple[Names, ...], part: Partition) -> Counts:
    """The counts of one partition of reports: a task, which a cluster's worker may do."""
    plan = Plan.from_json(plan_text)
    columns = report_columns(plan)
    return _count_batches(batches(part, columns, columns), plan, names, part.first_row)


def _count_batches(record_batches: Iterable[Any], plan: Plan, names: Iterable[Names], row: int = 1) -> Counts:
    """The counts of pyarrow record batches of reports, the first being row number `row`."""
    tables = {
        question_names: np.zeros([len(plan.question(name).reports) for name in question_names], np.int64)
        for question_names in names
    }
    rows = 0
    for batch in record_batches:
        codes = _positions_of(batch, plan, row + rows)
        for question_names, table in tables.items():
            has_reports = np.logical_and.reduce([codes[name] >= 0 for name in question_names])
            flat_indices = np.ravel_multi_index([codes[name][has_reports] for name in question_names], table.shape)
            table += np.bincount(flat_indices, minlength=table.size).reshape(table.shape)
        rows += batch.num_rows
    return Counts(plan.checksum, rows, tables)


def report_columns(plan: Plan) -> list[str]:
    """List the columns of a file of reports: one per question, and the booklet if there are any."""
    return [*([BOOKLET] if plan.booklets else []), *(question.name for question in plan.questions)]


def _positions_of(batch: Any, plan: Plan, row: int) -> dict[str, npt.NDArray[np.intp]]:
    """The position of every report among its labels, by question; -1 for an empty report, if it allows one."""

    def positions(name: str, labels: Any, may_be_empty: bool) -> npt.NDArray[np.intp]:
        column, label_array = batch.column(name), pa.array(labels, pa.string())
        is_dictionary = pa.types.is_dictionary(column.type)
        label_indices = pc.index_in(pc.cast(column.dictionary if is_dictionary else column, pa.string()), label_array)
        label_indices = label_indices.take(column.indices) if is_dictionary else label_indices
        if may_be_empty:
            label_indices = pc.if_else(pc.is_null(column), pa.scalar(-1, label_indices.type), label_indices)
        if label_indices.null_count:
            first_unknown_row = row + pc.index(pc.is_null(label_indices), True).as_py()
            raise invalid(
                f"reports of {name!r}",
                f"one of the {len(label_array)} of the plan",
                "another",
                f"row {first_unknown_row}",
            )
        return np.asarray(label_indices.to_numpy(zero_copy_only=False), np.intp)

    codes = {
        question.name: positions(question.name, question.reports, question.may_be_empty) for question in plan.questions
    }
    if booklets := plan.booklets:
        booklet_positions = positions(BOOKLET, [question.name for question in booklets], False)
        for place, question in enumerate(booklets):
            has_report, is_booklet = codes[question.name] >= 0, booklet_positions == place
            left_out = any(part.reading.left_out for part in question.answers)
            is_misplaced = has_report & ~is_booklet if left_out else has_report != is_booklet
            if is_misplaced.any():
                misplaced_row = row + int(np.argmax(is_misplaced))
                raise InvalidInput(
                    f"reports of {question.name!r}: row {misplaced_row} must have a report if this is the row's "
                    "booklet, and must be empty otherwise"
                )
    return codes


@dataclass(frozen=True, eq=False, repr=False)
class ReportRows(Result):
    """The reports of n respondents, in the order of their files.

    - `counts` : the counts of all these reports, by question.
    - `reports` : for each question an array of shape (n,), the report's position among the channel's outputs. An empty
      report has -1; there are some only if the question leaves missing answers out.
    - `columns` : the requested public columns, shape (n,) each; None where a value is missing.
    """

    counts: Counts
    reports: dict[str, npt.NDArray[np.intp]]
    columns: dict[str, npt.NDArray[Any]]

    def _columns(self) -> dict[str, list[Any]]:
        return {name: column.tolist() for name, column in (self.reports | self.columns).items()}

    @property
    def n(self) -> int:
        """Number of respondents."""
        return self.counts.rows

    def __repr__(self) -> str:
        return f"ReportRows({self.n} respondents, public columns {', '.join(self.columns) or 'none'})"


def read_rows(
    plan: Plan, reports: str | Path | Sequence[str | Path], columns: Iterable[str] = (), unlabelled: bool = False
) -> ReportRows:
    r"""Read the reports in files, with the requested public columns.

    Parameters
    ----------
    plan : The plan of the reports.
    reports, unlabelled : As in `aggregate`, with the same checks of the files.
    columns : The names of the public columns.

    Returns
    -------
    ReportRows
        For each of n respondents, the reports and the public columns, shape (n,) each.

    Raises
    ------
    InvalidInput
        For a column that the reports do not have, or that is a question.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, Simulated, SurveySpec, make_plan
    >>> from ldpopt_survey.collect.privatize import privatize
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), carry=("sex",))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "answers.csv").write_text("vote,sex\nno,f\nyes,m\n")
    ...     _ = privatize(plan, Path(folder, "answers.csv"), Path(folder, "out"), Simulated(np.random.default_rng(1)))
    ...     read_rows(plan, Path(folder, "out"), ["sex"]).columns["sex"].tolist()
    ['f', 'm']
    """
    delivery = admit(plan, reports, unlabelled)
    public_names = list(dict.fromkeys(columns))
    needed_columns = report_columns(plan)
    for name in public_names:
        if name in needed_columns:
            options = [
                part_name.name for q in plan.questions for part_name in q.answers if q.name == name != part_name.name
            ]
            expected = f"one of {', '.join(options)}, or a public column" if options else "a public column"
            raise invalid("column", f"{expected} (reports of one question do not group those of others)", name)
    parts = _parts(plan, delivery, public_names)
    positions: dict[str, list[Any]] = {question.name: [] for question in plan.questions}
    public_values: dict[str, list[Any]] = {name: [] for name in public_names}
    rows = 0
    for part in parts:
        for batch in batches(part, [*needed_columns, *public_names], needed_columns):
            for name, codes in _positions_of(batch, plan, 1 + rows).items():
                positions[name].append(codes)
            for name in public_names:
                public_values[name] += batch.column(name).to_pylist()
            rows += batch.num_rows
    if rows == 0:
        raise InvalidInput("reports: the files have no rows; expected at least one report")
    reports_of = {name: np.concatenate(pieces) for name, pieces in positions.items()}
    tables: dict[Names, Table] = {
        (q.name,): np.bincount(reports_of[q.name][reports_of[q.name] >= 0], minlength=len(q.reports))
        for q in plan.questions
    }
    provenance = {name: getattr(delivery, name) for name in ("simulation", "unlabelled", "sources", "rounds")}
    counts = Counts(plan.checksum, rows, tables, **provenance)
    return ReportRows(counts, reports_of, {name: np.array(public_values[name], dtype=object) for name in public_names})
