"""Answers of any column type become positions, and policies decide about the rest."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.coding import Coder, Tally
from ldpopt.survey.plan.plan import PlannedQuestion, make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec


def question(categories: tuple[Any, ...], **policies: Any) -> PlannedQuestion:
    k = len(categories)
    spec = SurveySpec("s", (QuestionSpec("q", categories, column="raw", **policies),))
    return make_plan(spec, {"q": np.full((k, k), 1 / k)}).questions[0]


def codes(categories: tuple[Any, ...], column: pa.Array, **policies: Any) -> tuple[list[int], Tally]:
    tally = Tally()
    return Coder(question(categories, **policies)).codes(column, tally, lambda at: at + 100).tolist(), tally


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["10", "-2", "3"]),
        pa.array(["10", "-2", "3"], pa.large_string()),
        pa.array([10, -2, 3], pa.int8()),
        pa.array([10.0, -2.0, 3.0]),
        pa.array([10.0, -2.0, 3.0], pa.float32()),
        pa.array(["10", "-2", "3"]).dictionary_encode(),
        pa.array([10, -2, 3]).dictionary_encode(),
    ],
)
def test_one_answer_in_every_type_of_column(column: pa.Array) -> None:
    """The numbers 10, -2, 3 are the same answers as text, integers, floats and dictionaries."""
    for categories in ((3, -2, 10), ("3", "-2", "10")):
        assert codes(categories, column)[0] == [2, 1, 0]


def test_booleans_and_tuples_have_their_text() -> None:
    """Booleans are true and false; a tuple is its compact JSON."""
    assert codes((True, False), pa.array([False, True]))[0] == [1, 0]
    assert codes((("a", 1), ("b", 2)), pa.array(['["b",2]', '["a",1]']))[0] == [1, 0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1, 7]),
        pa.array([0, 1, 2**63], pa.uint64()),
        pa.array([0.0, 1.0, 0.5]),
        pa.array([0.0, 1.0, math.inf]),
        pa.array([0.0, 1.0, 1e300]),
        pa.array(["0", "1", "01"]),
        pa.array(["0", "1", ""]),
        pa.array(["0", "1", "1 "]),
        pa.array([Decimal("0"), Decimal("1"), Decimal("2")]),
        pa.array(["0", "1", "zz"]).dictionary_encode(),
    ],
)
def test_an_answer_outside_the_categories(column: pa.Array) -> None:
    """It is refused by row and column without being shown, or mapped and counted."""
    with pytest.raises(InvalidInput, match="row 102, column 'raw'") as caught:
        codes((0, 1), column)
    assert not any(value in str(caught.value) for value in ("zz", "7", "0.5", "1e", "92233", "01", "inf"))
    found, tally = codes((0, 1), column, unknown=1)
    assert (found, tally.unknown, tally.missing) == ([0, 1, 1], {"q": 1}, {})


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, None, 1]),
        pa.array([0.0, math.nan, 1.0]),
        pa.array(["0", None, "1"]),
        pa.array(["0", None, "1"]).dictionary_encode(),
    ],
)
def test_no_answer(column: pa.Array) -> None:
    """A null or NaN is missing, not unknown: refused, or mapped and counted."""
    with pytest.raises(InvalidInput, match=r"no answer.* at row 101"):
        codes((0, 1), column, unknown=0)
    found, tally = codes((0, 1), column, missing=1)
    assert (found, tally.unknown, tally.missing) == ([0, 1, 1], {}, {"q": 1})


def test_nulls_are_missing_when_some_categories_are_text() -> None:
    """Numbers meet only the categories that are numbers; a null among them is missing, never a category."""
    found, tally = codes((0, "none"), pa.array([0, None, 5]), missing="none", unknown=0)
    assert (found, tally.unknown, tally.missing) == ([0, 1, 0], {"q": 1}, {"q": 1})


def test_tallies_add_up() -> None:
    """Sums run over all questions, those without counts included."""
    one, two = Tally(3, 1, {"a": 2}), Tally(4, 0, {"a": 1, "b": 5}, {"a": 1})
    assert one + two == Tally(7, 1, {"a": 3, "b": 5}, {"a": 1})
    plan = make_plan(SurveySpec("s", (QuestionSpec("a", (0, 1)), QuestionSpec("b", (0, 1)))), lambda _: np.eye(2))
    assert Tally.total([], plan) == Tally(0, 0, {"a": 0, "b": 0}, {"a": 0, "b": 0})
