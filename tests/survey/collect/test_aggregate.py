"""Counts are right, add up, and belong to one plan.

Rows of reports are what the files hold, checked as they are when they are counted.
"""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from ldpopt.errors import InvalidInput
from ldpopt_survey import Survey, read_rows
from ldpopt_survey.collect import answers
from ldpopt_survey.collect.aggregate import Counts, aggregate
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Simulated
from ldpopt_survey.collect.runner import Threads
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec


def plan(name: str = "demo") -> Plan:
    questions = (QuestionSpec("a", ("x", "y", "z")), QuestionSpec("b", (0, 1)))
    return make_plan(SurveySpec(name, questions), lambda q: np.full((len(q.categories),) * 2, 1 / len(q.categories)))


PLAN = plan()


def counted(*arguments: Any) -> Counts:
    """`aggregate` that takes files written by hand, too."""
    return aggregate(*arguments, unlabelled=True)


@pytest.fixture(params=["", ".parquet", ".csv"])
def reports(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Reports of 3000 respondents in a folder of three files, or written by hand as one CSV file."""
    rng = np.random.default_rng(0)
    if request.param == ".csv":
        frame = pd.DataFrame({"a": rng.integers(0, 3, 3000), "b": rng.integers(0, 2, 3000), "other": "secret"})
        frame.to_csv(tmp_path / "reports.csv", index=False)
        return tmp_path / "reports.csv"
    (tmp_path / "raw").mkdir()
    for file in range(3):
        raw = pd.DataFrame({"a": rng.choice(["x", "y", "z"], 1000), "b": rng.integers(0, 2, 1000)})
        raw.to_parquet(tmp_path / "raw" / f"{file}.parquet")
    privatize(PLAN, tmp_path / "raw", tmp_path / f"reports{request.param}", Simulated(rng))
    return tmp_path / f"reports{request.param}"


def test_counts_are_those_of_the_rows(reports: Path) -> None:
    """Tables of one question and of two agree with pandas, on one thread or two."""
    counts = counted(PLAN, reports, [("b", "a")])
    frame = pd.read_csv(reports) if reports.suffix == ".csv" else pd.read_parquet(reports).astype(int)
    assert counts.rows == 3000
    assert counts["a"].tolist() == frame["a"].value_counts().sort_index().tolist()
    assert counts["b", "a"].tolist() == pd.crosstab(frame["b"], frame["a"]).to_numpy().tolist()
    assert counted(PLAN, reports, [("b", "a")], Threads(2)) == counts
    assert Counts.from_json(counts.to_json(), PLAN) == counts
    assert "secret" not in counts.to_json()


def test_parts_add_up_to_the_whole(reports: Path) -> None:
    """The counts of the files of a folder sum to those of the folder."""
    files = sorted(reports.glob("*.parquet")) if reports.is_dir() else [reports]
    whole = counted(PLAN, reports)
    parts = [counted(PLAN, file) for file in files]
    assert sum(parts[1:], parts[0]) == whole
    assert len(parts) == (3 if reports.is_dir() else 1)


def test_missing_partitions_and_other_plans(tmp_path: Path) -> None:
    """A folder short of a partition, and reports that say they are of another plan, are refused."""
    raw = pd.DataFrame({"a": ["x"] * 5, "b": [0] * 5})
    (tmp_path / "raw").mkdir()
    for file in range(2):
        raw.head(5 - file).to_parquet(tmp_path / "raw" / f"{file}.parquet")
    privatize(PLAN, tmp_path / "raw", tmp_path / "reports")
    for given in (tmp_path / "reports", tmp_path / "reports" / "part-000000.parquet"):
        with pytest.raises(InvalidInput, match="another plan"):
            aggregate(plan("other"), given)
    (tmp_path / "reports" / "part-000000.parquet").unlink()
    with pytest.raises(InvalidInput, match="manifest"):
        aggregate(PLAN, tmp_path / "reports")


@pytest.mark.parametrize(("line", "where"), [("3,0", "'a'.*row 3"), (",0", "'a'.*row 3"), ("0,no", "'b'.*row 3")])
def test_reports_that_the_plan_does_not_know(tmp_path: Path, line: str, where: str) -> None:
    """A report that is missing or no output of the channel is refused by row."""
    (tmp_path / "r.csv").write_text(f"a,b\n0,0\n1,1\n{line}\n")
    with pytest.raises(InvalidInput, match=where):
        counted(PLAN, tmp_path / "r.csv")


def test_absent_columns_and_invalid_pairs_are_refused(tmp_path: Path) -> None:
    """Absent columns, invalid pairs, and sums over different plans raise `InvalidInput`."""
    (tmp_path / "r.csv").write_text("a\n0\n")
    with pytest.raises(InvalidInput, match="'b'"):
        counted(PLAN, tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text("a,b\n0,0\n")
    for pairs in ([("a", "a")], [("a", "c")], [("a", "b", "a")]):
        with pytest.raises(InvalidInput, match=r"pairs|question"):
            counted(PLAN, tmp_path / "r.csv", pairs)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="one plan"):
        _ = counted(PLAN, tmp_path / "r.csv") + aggregate(plan("other"), tmp_path / "r.csv", unlabelled=True)
    with pytest.raises(InvalidInput, match="one of"):
        _ = counted(PLAN, tmp_path / "r.csv")["c"]


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": "0" * 64},
        {"version": 1},
        {"more": 1},
        {"rows": 1.5},
        {"rows": 4},
        {"tables": {}},
        {"tables": [1]},
        {"tables": [{"questions": ["a"], "counts": [1, 2]}]},
        {"tables": [{"questions": ["a"], "counts": [1, -1, 3]}]},
        {"tables": [{"questions": ["a"], "counts": [1, True, 1]}]},
        {"tables": [{"questions": ["a"], "counts": 3}]},
        {"tables": [{"questions": ["c"], "counts": [3]}]},
        {"tables": [{"questions": [["a"]], "counts": [1, 1, 1]}]},
        {"tables": [{"questions": [], "counts": []}]},
        {"tables": [{"questions": ["a", "b"], "counts": [1, 1, 1]}]},
        {"tables": [{"questions": ["a", "b"], "counts": [[1, 1], [1, 0]]}]},
    ],
)
def test_malformed_counts(changes: dict[str, Any]) -> None:
    """A counts file that is malformed, does not sum to its rows or is another plan's is `InvalidInput`."""
    counts = Counts(PLAN.checksum, 3, {("a",): np.array([1, 1, 1])})
    with pytest.raises(InvalidInput):
        Counts.from_json(json.dumps({**json.loads(counts.to_json()), **changes}), PLAN)


class Forgetful:
    """A runner that loses the last of its parts."""

    def map(self, function: Any, items: Any) -> Any:
        """The results of the others."""
        return map(function, items[:-1])

    def total(self, function: Any, items: Any, merge: Any) -> Any:
        """The sum of the others."""
        return reduce(merge, self.map(function, items))


def test_a_part_that_a_runner_loses_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of fewer rows than the files hold are no counts."""
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("a,b\n0,1\n2,0\n" if name == "a" else "a,b\n1,1\n1,0\n")
    monkeypatch.setattr(answers, "PARTITION_ROWS", 2)
    with pytest.raises(InvalidInput, match="the 4 rows of their files, got 2"):
        aggregate(PLAN, [tmp_path / "a.csv", tmp_path / "b.csv"], runner=Forgetful(), unlabelled=True)


CHANNEL = [[0.75, 0.25], [0.25, 0.75]]


@pytest.fixture
def written(tmp_path):
    """A plan of two questions, and their reports in Parquet, with a public column that is sometimes empty."""
    questions = (QuestionSpec("vote", ("no", "yes")), QuestionSpec("drinks", ("no", "yes")))
    plan = make_plan(SurveySpec("demo", questions, carry=("age", "città")), {"vote": CHANNEL, "drinks": CHANNEL})
    rng = np.random.default_rng(1)
    answers = pa.table(
        {
            "vote": rng.choice(["no", "yes"], 200),
            "drinks": rng.choice(["no", "yes"], 200),
            "age": pa.array([None if i % 40 == 0 else i for i in range(200)]),
            "città": pa.array(rng.choice(["Łódź", "a,b"], 200)).dictionary_encode(),
        }
    )
    table = Survey(plan).privatize(answers, Simulated(np.random.default_rng(2)))
    pq.write_table(table, tmp_path / "reports.parquet")
    return plan, tmp_path, table


def test_rows_are_those_of_the_file(written):
    """Positions, public values and counts are those of the table, in its order."""
    plan, folder, table = written
    rows = read_rows(plan, folder / "reports.parquet", ["age", "città"])
    for name in ("vote", "drinks"):
        assert rows.reports[name].tolist() == [int(report) for report in table[name].to_pylist()]
    assert rows.columns["age"].tolist() == table["age"].to_pylist()
    assert rows.columns["città"].tolist() == table["città"].to_pylist()
    assert rows.counts == aggregate(plan, folder / "reports.parquet")
    assert rows.n == 200


def test_csv_holds_the_same_as_text(written):
    plan, folder, table = written
    plain = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    csv.write_csv(pa.table(plain, table.column_names), folder / "reports.csv")
    with pytest.raises(InvalidInput, match="manifest"):
        read_rows(plan, folder / "reports.csv", ["age"])
    rows = read_rows(plan, folder / "reports.csv", ["age"], unlabelled=True)
    assert rows.reports["vote"].tolist() == [int(report) for report in table["vote"].to_pylist()]
    assert rows.columns["age"].tolist() == [None if v is None else str(v) for v in table["age"].to_pylist()]


def test_an_unknown_public_column_is_refused(written):
    """The message names the public columns that exist; a question never defines groups."""
    plan, folder, _ = written
    with pytest.raises(InvalidInput, match=r"\(age, città; carry"):
        read_rows(plan, folder / "reports.parquet", ["region"])
    with pytest.raises(InvalidInput, match="public column"):
        read_rows(plan, folder / "reports.parquet", ["drinks"])
    other = make_plan(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), {"vote": CHANNEL})
    with pytest.raises(InvalidInput, match="another plan"):
        read_rows(other, folder / "reports.parquet")


def test_the_row_of_a_wrong_report_is_counted_over_all_files(tmp_path):
    """A report that the plan does not know is named by its row among those of all files."""
    plan = make_plan(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), {"vote": CHANNEL})
    for name, reports in (("a", "0\n1\n1\n"), ("b", "0\n7\n")):
        (tmp_path / f"{name}.csv").write_text(f"vote\n{reports}")
    with pytest.raises(InvalidInput, match=r"row 5$"):
        read_rows(plan, [tmp_path / "a.csv", tmp_path / "b.csv"], unlabelled=True)
