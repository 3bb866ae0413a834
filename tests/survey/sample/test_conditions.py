"""Conditions hold of whom they say, and of nobody whose value is missing."""

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey import Condition
from ldpopt.survey.sample.conditions import groups_of

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


def test_groups_name_what_is_missing():
    assert groups_of(TABLE, ["age"]).tolist() == ["29", "30", "30.0", "missing", "missing", "missing"]
    assert groups_of(TABLE, ["age", "città"])[1] == "30 × a = b"
