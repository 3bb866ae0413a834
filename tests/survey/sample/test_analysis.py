"""Conditions hold of whom they say, and of nobody whose value is missing.

An analysis says what it is, is read back the same, and looks at the rows that it names.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    Condition,
    QuestionSpec,
    SampleDesign,
    SampledReports,
    SampleSpec,
    Simulated,
    Survey,
    SurveySpec,
    estimate,
    make_plan,
    read_rows,
)
from ldpopt_survey.sample.spec import groups_of

TABLE = {"age": ["29", 30, 30.0, None, "", float("nan")], "città": ["Łódź", "a = b", "x", None, "", "x"]}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("age >= 30", [0, 1, 1, 0, 0, 0]),
        ("age<30", [1, 0, 0, 0, 0, 0]),
        ("age > 29.5", [0, 1, 1, 0, 0, 0]),
        ("age <= 3e1", [1, 1, 1, 0, 0, 0]),
        ("age = 30", [0, 1, 1, 0, 0, 0]),
        ("age == 30.0", [0, 1, 1, 0, 0, 0]),
        ("age != 30", [1, 0, 0, 0, 0, 0]),
        ("age =", [0, 0, 0, 1, 1, 1]),
        ("città = Łódź", [1, 0, 0, 0, 0, 0]),
        ("città = a = b", [0, 1, 0, 0, 0, 0]),
        ("città != x", [1, 1, 0, 0, 0, 0]),
    ],
)
def test_conditions(text, want):
    condition = Condition.parse(text)
    assert condition.holds(TABLE).tolist() == [bool(w) for w in want]
    assert np.array_equal(Condition.parse(str(condition)).holds(TABLE), condition.holds(TABLE))


@pytest.mark.parametrize("text", ["", "age", "> 3", "age > old", "age ~ 3", "= 3"])
def test_other_forms_are_refused(text):
    with pytest.raises(InvalidInput, match="condition"):
        Condition.parse(text)


def test_order_needs_numbers():
    with pytest.raises(InvalidInput, match="numbers, to compare by >"):
        Condition.parse("città > 3").holds(TABLE)


def test_groups_name_missing_values():
    assert groups_of(TABLE, ["age"]).tolist() == ["29", "30", "30.0", "missing", "missing", "missing"]
    assert groups_of(TABLE, ["age", "città"])[1] == "30 × a = b"


CHANNEL = [[0.75, 0.25], [0.25, 0.75]]


@pytest.fixture
def reports(tmp_path):
    """A plan, and reports in Parquet whose public columns are numbers and dictionaries, with some missing."""
    spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), carry=("w", "sex", "age"))
    plan = make_plan(spec, {"vote": CHANNEL})
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "vote": rng.choice(["no", "yes"], 500),
            "w": rng.uniform(1, 3, 500),
            "sex": pa.array(rng.choice(["f", "m"], 500)).dictionary_encode(),
            "age": pa.array([None if i % 50 == 0 else int(a) for i, a in enumerate(rng.integers(18, 80, 500))]),
        }
    )
    made = Survey(plan).privatize(table, Simulated(np.random.default_rng(2)))
    pq.write_table(made, tmp_path / "reports.parquet")
    return plan, tmp_path / "reports.parquet", made


def test_rows_of_parquet_are_those_of_the_table(reports):
    plan, path, table = reports
    rows = read_rows(plan, path, ["w", "sex", "age"])
    assert rows.n == 500
    assert rows.counts.simulation
    assert rows.reports["vote"].tolist() == [int(v) for v in table["vote"].to_pylist()]
    assert rows.columns["age"].tolist() == table["age"].to_pylist()
    made = Analysis(SampleSpec(weights="w"), ("sex",), (Condition.parse("age >= 40"),)).estimates(plan, rows)["vote"]
    inside = np.array([a is not None and a >= 40 for a in rows.columns["age"]])
    want = estimate(
        SampledReports.of(rows.reports["vote"], CHANNEL, SampleDesign(np.array(rows.columns["w"], float))).where(
            inside
        ),
        CHANNEL,
    )
    assert np.allclose(made.whole.values, want.values)
    assert np.allclose(made.whole.covariance, want.covariance)
    assert sum(one.n for one in made.groups.values()) == made.whole.n == inside.sum()
    missing = Analysis(where=(Condition.parse("age ="),)).estimates(plan, rows)["vote"]
    assert missing.whole.n == 10


def test_frames_of_a_declared_sample_are_estimated_so(tmp_path):
    """A table, a pandas frame and a file of a plan with a design give one estimate, and it is not the simple one."""
    sample = SampleSpec(weights="w", strata="s")
    spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), sample=sample)
    survey = Survey(make_plan(spec, {"vote": CHANNEL}))
    rng = np.random.default_rng(3)
    answers = {"vote": rng.choice(["no", "yes"], 300), "w": rng.uniform(1, 4, 300), "s": rng.choice(["a", "b"], 300)}
    made = survey.privatize(pa.table(answers), Simulated(np.random.default_rng(4)))
    pq.write_table(made, tmp_path / "reports.parquet")
    found = [survey.estimate("vote", one) for one in (made, made.to_pandas(), tmp_path / "reports.parquet")]
    for other in found[1:]:
        assert np.allclose(other.values, found[0].values)
        assert np.allclose(other.covariance, found[0].covariance)
    assert 200 < found[0].degrees < 298
    simple = survey.estimate("vote", made["vote"])
    assert abs(simple.values[0] - found[0].values[0]) > 1e-6
    with pytest.raises(InvalidInput, match="'s'"):
        survey.estimate("vote", made.drop_columns(["s"]))


def test_an_analysis_is_read_back():
    made = Analysis(
        SampleSpec(weights="w", margins={"sex": {"f": 1, "m": 2}}), ("sex",), (Condition.parse("a > 3"),), 0.9
    )
    again = Analysis.from_dict(made.to_dict())
    assert again.to_dict() == made.to_dict()
    assert again.columns == ("w", "sex", "a")
    assert str(made) == "weights w; known margins of sex; variance by linearization; only a > 3"
    assert str(Analysis()) == ""
    assert Analysis().is_default
    assert not made.is_default
    for wrong in (None, {}, {**made.to_dict(), "by": "sex"}, {**made.to_dict(), "more": 1}):
        with pytest.raises(InvalidInput):
            Analysis.from_dict(wrong)


def test_empty_reports_are_left_out(reports):
    """Where a report is empty the respondent stays in the design and out of the estimate."""
    plan, path, _ = reports
    rows = read_rows(plan, path, ["w"])
    some = rows.reports["vote"].copy()
    some[::5] = -1
    rows.reports["vote"] = some
    made = Analysis(SampleSpec(weights="w")).estimates(plan, rows)["vote"].whole
    assert made.n == 400
    w = np.array(rows.columns["w"], float)
    f = np.bincount(some[some >= 0], w[some >= 0]) / w[some >= 0].sum()
    assert np.allclose(made.table.frequencies, f)


def test_wrong_rows_are_refused(reports):
    plan, path, _ = reports
    with pytest.raises(InvalidInput, match="public columns"):
        read_rows(plan, path, ["region"])
    with pytest.raises(InvalidInput, match="public column"):
        read_rows(plan, path, ["vote"])
    other = make_plan(SurveySpec("other", (QuestionSpec("vote", ("no", "yes")),)), {"vote": CHANNEL})
    rows = read_rows(plan, path, ["age"])
    with pytest.raises(InvalidInput, match="plan"):
        Analysis().estimates(other, rows)
    with pytest.raises(InvalidInput, match="nobody"):
        Analysis(where=(Condition.parse("age > 99"),)).estimates(plan, rows)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        Analysis(level=1.0)
