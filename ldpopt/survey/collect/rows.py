"""Reports of single respondents with their public columns, for analyses of samples, groups and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid
from ldpopt.results import Result
from ldpopt.survey.collect.aggregate import Counts, count_batches, table_names
from ldpopt.survey.collect.answers import batches, column_names, partitions, refuse_nested
from ldpopt.survey.collect.batch import require_columns
from ldpopt.survey.collect.delivery import admit
from ldpopt.survey.plan.plan import Plan


@dataclass(frozen=True, eq=False, repr=False)
class ReportRows(Result):
    """The reports of n respondents, in the order of their files.

    counts : the counts of all these reports, by question.
    reports : for each question an array of shape (n,), the report's position among the channel's outputs, or -1 for an
        empty report (only if the question leaves missing answers out).
    columns : the public columns that were asked for, shape (n,) each; None where a value is missing.
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
    """Read the reports in files, with the public columns asked for. The files are checked as in `aggregate`.

    `InvalidInput` for a column that the reports do not have, or that is a question.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt.survey import QuestionSpec, Simulated, SurveySpec, make_plan
    >>> from ldpopt.survey.collect.privatize import privatize
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), carry=("sex",))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "answers.csv").write_text("vote,sex\\nno,f\\nyes,m\\n")
    ...     _ = privatize(plan, Path(folder, "answers.csv"), Path(folder, "out"), Simulated(np.random.default_rng(1)))
    ...     read_rows(plan, Path(folder, "out"), ["sex"]).columns["sex"].tolist()
    ['f', 'm']
    """
    found = admit(plan, reports, unlabelled)
    wanted = list(dict.fromkeys(columns))
    questions = [question.name for question in plan.questions]
    for name in wanted:
        if name in questions:
            raise invalid("column", "a public column (reports of one question do not group those of others)", name)
    for path in found.files:
        there = column_names(path)
        require_columns(questions, there, str(path))
        for name in wanted:
            if name not in there:
                shown = ", ".join(c for c in there if c not in questions) or "none"
                expected = f"one of the public columns of the reports ({shown}; carry = [...] in survey.toml adds some)"
                raise invalid("column", expected, name)
        refuse_nested(path, [*questions, *wanted], ())
    parts = partitions(found.files)
    found.require_rows(parts)
    positions: dict[str, list[Any]] = {name: [] for name in questions}
    public: dict[str, list[Any]] = {name: [] for name in wanted}
    made = count_batches([], plan, table_names(plan, ()))
    for part in parts:
        for batch in batches(part, [*questions, *wanted], questions):
            made += count_batches([batch], plan, table_names(plan, ()), 1 + made.rows)
            for question in plan.questions:
                positions[question.name].append(_at(batch.column(question.name), question.reports))
            for name in wanted:
                public[name] += batch.column(name).to_pylist()
    counts = Counts(made.plan, made.rows, made.tables, found.simulation, found.unlabelled, found.sources)
    if counts.rows == 0:
        raise invalid("reports", "at least one", Phrase("none"))
    arrays = {name: np.empty(counts.rows, dtype=object) for name in wanted}
    for name, array in arrays.items():
        array[:] = public[name]
    return ReportRows(counts, {name: np.concatenate(some) for name, some in positions.items()}, arrays)


def _at(column: Any, labels: Sequence[str]) -> npt.NDArray[np.intp]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    found = pc.fill_null(pc.index_in(pc.cast(column, pa.string()), pa.array(labels, pa.string())), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.intp)
