"""The design that a file declares is the design that is used, and nothing else is read from it."""

import datetime

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import Jackknife, Linearization, RescaledBootstrap, SampleDesign, SampleSpec, SurveySpec, plan_survey
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.sample.spec import Condition

SURVEY = """
[survey]
name = "demo"
carry = ["age"]
[sample]
weights = "w"
strata = "region"
lonely = "average"
variance = "bootstrap"
replications = 50
[sample.margins.sex]
f = 3
m = 5
[[questions]]
name = "vote"
categories = ["no", "yes"]
epsilon = 1.0
"""


def test_the_plan_keeps_the_declared_design():
    """From TOML to the plan's file and back: the same design, its columns carried, and another checksum without it."""
    spec = SurveySpec.from_toml(SURVEY)
    assert spec.carry == ("age", "w", "region", "sex")
    plan = plan_survey(spec).plan
    again = Plan.from_json(plan.to_json())
    assert again.checksum == plan.checksum
    assert again.sample.to_dict() == spec.sample.to_dict()
    assert again.sample.margins["sex"]["m"] == 5
    assert again.sample.method == RescaledBootstrap(50, 0)
    start, end = SURVEY.index("[sample]"), SURVEY.index("[[questions]]")
    plain = plan_survey(SurveySpec.from_toml(SURVEY[:start] + SURVEY[end:])).plan
    assert "sample" not in plain.to_json()
    assert plain.checksum != plan.checksum


def test_columns_of_text_make_the_design():
    table = {
        "w": ["1", "2.5", "3"],
        "s": ["a", "b", "a"],
        "c": [1, 2, 3],
        "N": ["7", "9", "7"],
        "r1": [1, 0, 2],
        "r2": [0, 2, 2],
    }
    made = SampleSpec(weights="w", strata="s", clusters="c", fpc="N", lonely="certainty").design(table)
    want = SampleDesign([1, 2.5, 3], ["a", "b", "a"], [1, 2, 3], [7, 9, 7])
    assert np.array_equal(made.weights, want.weights)
    assert np.array_equal(made.fractions, want.fractions)
    assert made.method == Linearization()
    given = SampleSpec(weights="w", variance="replicates", replicate_weights=("r1", "r2"), replicate_scale=0.5)
    assert given.columns == ("w", "r1", "r2")
    assert given.design(table).total_variance([1.0, 1.0, 1.0]).covariance[0, 0] == 0.5 * (
        (3 - 6.5) ** 2 + (4 - 6.5) ** 2
    )
    assert SampleSpec(variance="jackknife").method == Jackknife()
    assert SampleSpec().trivial
    assert SampleSpec().changed(weights="w", strata=None).columns == ("w",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"weight": "w"}, "only the keys bounds, clusters"),
        ({"weights": 3}, "weights: expected a printable text"),
        ({"weights": ""}, "weights: expected a printable text"),
        ({"variance": "magic"}, 'linearization" or'),
        ({"lonely": 2}, 'refuse" or'),
        ({"replications": 1}, "at least 2"),
        ({"replicate_weights": ["a"]}, "none of the three"),
        ({"variance": "replicates"}, "none of the three"),
        ({"margins": {"sex": {"f": 0.5, "m": -0.5}}}, "positive"),
        ({"margins": {"sex": {"f": 0.9, "m": 0.9}}}, "sum to 1"),
        ({"margins": {"sex": {}}}, "positive"),
        ({"margins": {"sex": 0.5}}, "table of totals"),
        ({"margins": {"sex": {"f": float("nan")}}}, "finite"),
        (["w"], "a table"),
    ],
)
def test_wrong_tables_are_refused(data, said):
    with pytest.raises(InvalidInput, match=said):
        SampleSpec.from_dict(data)


def test_a_column_that_is_not_there_or_no_number_is_named():
    with pytest.raises(InvalidInput, match="'w'"):
        SampleSpec(weights="w").design({"v": [1]})
    with pytest.raises(InvalidInput, match="row 2"):
        SampleSpec(weights="w").design({"w": ["1", "two"]})
    with pytest.raises(InvalidInput, match="raw answers"):
        SurveySpec.from_toml(SURVEY.replace('strata = "region"', 'strata = "vote"'))


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("day >= 2024-03-01", [False, True, True, True, False]),
        ("day <= 2024-03-01", [True, True, True, False, False]),  # the whole day, whatever the time
        ("day < 2024-03-01T12:00", [True, True, False, False, False]),
        ("day = 2024-03-01", [False, True, True, False, False]),
        ("day != 2024-03-01", [True, False, False, True, False]),
        ("day > '2024-03-01 12:00:00+02:00'", [False, False, True, True, False]),
    ],
)
def test_conditions_compare_dates(written, want):
    """Dates in ISO 8601, as text, as dates and as timestamps: a date is a whole day, and a time zone is respected."""
    columns = [
        ["2024-02-29", "2024-03-01", "2024-03-01T18:30", "2025-01-01", None],
        [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1, 18, 30),
         np.datetime64("2025-01-01"), ""],
    ]  # fmt: skip
    for column in columns:
        assert Condition.parse(written).holds({"day": column}).tolist() == want


def test_invalid_dates_in_conditions_are_refused():
    """Text beside dates, and numbers where a date is compared, are errors; numbers stay numbers."""
    for written, column in (("day < 2024-03-01", ["2024-01-01", "soon"]), ("day < 2024-03-01", ["7"])):
        with pytest.raises(InvalidInput, match="dates such as 2024-03-01"):
            Condition.parse(written).holds({"day": column})
    with pytest.raises(InvalidInput, match="a number or a date"):
        Condition.parse("day < 2024-13-01")
    assert Condition.parse("year >= 2024").holds({"year": ["2023", "2024"]}).tolist() == [False, True]
    assert Condition.parse("code = 20240301").holds({"code": ["2024-03-01", "20240301"]}).tolist() == [False, True]
