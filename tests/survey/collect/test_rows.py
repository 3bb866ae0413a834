"""Rows of reports are what the files hold, checked as they are when they are counted."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from ldpopt.errors import InvalidInput
from ldpopt.survey import QuestionSpec, Simulated, Survey, SurveySpec, aggregate, make_plan, read_rows

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


def test_what_is_no_public_column_is_refused(written):
    """A column that is not there is named beside those that are; a question never makes groups."""
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
