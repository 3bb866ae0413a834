import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey.estimate.counts import CountTable, column, factor, merge, positions
from ldpopt_survey.estimate.sampled import as_table


def test_positions_invert_labels():
    """Every label is found at its position, whatever its type."""
    rng = np.random.default_rng(1)
    for outputs in ((0, 1, 2), ("no", "yes", "maybe"), (2.5, "x", ("a", 1))):
        want = rng.integers(0, 3, 50)
        reports = [outputs[y] for y in want]
        assert np.array_equal(positions(reports, outputs), want)


def test_arrow_columns_are_read_as_their_values():
    """A column of texts or numbers, of dictionaries or with gaps, whole or in chunks, is the array of its values."""
    texts, numbers = ["a", "b", "a"], [1, 2, 1]
    for values in (texts, numbers, [0.5, 2.0, 0.5], [True, False, True], ["a", None, "b"], [1, None, 2], [b"a", b"b"]):
        array = pa.array(values)
        for arrow in (array, array.dictionary_encode(), pa.chunked_array([array[:1], array[1:]])):
            assert column(arrow, "reports").tolist() == column(values, "reports").tolist() == values
    assert positions(pa.array(numbers, pa.uint8()), (1, 2)).tolist() == [0, 1, 0]
    assert len(positions(pa.array([], pa.string()), ("a", "b"))) == 0


def test_numbers_given_as_floats_match_integer_labels():
    assert positions(np.array([1.0, 0.0]), (0, 1)).tolist() == [1, 0]


def test_factor_codes_name_their_labels():
    code, names = factor(["b", "a", "b"], 3, "strata")
    assert [names[c] for c in code] == ["b", "a", "b"]
    assert factor(None, 2, "strata")[1] == [None]


def test_bad_columns_are_refused():
    with pytest.raises(InvalidInput, match="one of the outputs"):
        positions(["a", "q"], ("a", "b"))
    with pytest.raises(InvalidInput, match="one column"):
        column(np.zeros((2, 2)), "reports")
    with pytest.raises(InvalidInput, match="a label for every respondent"):
        factor([1.0, np.nan], 2, "strata")


CHANNEL = Channel([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]], outputs=["a", "b", "c"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.integers(0, 40))
def test_merge_equals_counting_everything(respondents, cut):
    """The table of a survey is the merge of the tables of its parts, in any order."""
    whole = CountTable.from_reports(respondents, CHANNEL)
    parts = [CountTable.from_reports(part, CHANNEL) for part in (respondents[:cut], respondents[cut:]) if part]
    assert merge(parts) == whole == merge(parts[::-1])
    assert hash(merge(parts)) == hash(whole)


@pytest.mark.parametrize(
    "reports",
    [
        ["a", "b", "a"],
        np.array(["a", "b", "a"]),
        np.array(["a", "b", "a"], dtype=object),
        pd.Series(["a", "b", "a"]),
        pd.Series(["a", "b", "a"], dtype="category"),
    ],
)
def test_reports_come_in_any_column(reports):
    assert CountTable.from_reports(reports, CHANNEL).totals.tolist() == [2, 1, 0]


def test_tuple_labels_stay_whole():
    product = CHANNEL.product(CHANNEL)
    table = CountTable.from_reports([("a", "b"), ("c", "c"), ("a", "b")], product)
    assert table.totals.reshape(3, 3).tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 1]]


def test_json_round_trip():
    table = CountTable.from_reports(["a", "c", "a"], CHANNEL)
    assert CountTable.from_dict(json.loads(json.dumps(table.to_dict()))) == table
    with pytest.raises(InvalidInput, match="count table"):
        CountTable.from_dict({"outputs": ["a"]})


def test_arrays_of_counts_and_of_reports_are_distinguished():
    """An array with one entry per output has counts, any other has reports, and an ambiguous one is refused."""
    q = Channel(np.full((3, 3), 1 / 3))
    assert as_table([10, 20, 30], q).totals.tolist() == [10, 20, 30]
    assert as_table([0, 2, 1, 1], q).totals.tolist() == [1, 2, 1]
    with pytest.raises(InvalidInput, match="could be either"):
        as_table([0, 1, 2], q)
    assert as_table({0: 5}, q).totals.tolist() == [5, 0, 0]
    table = CountTable.from_counts([1, 2, 3], "abc")
    assert as_table(table, CHANNEL) is table
    with pytest.raises(InvalidInput, match="the channel's outputs"):
        as_table(table, q)


def test_counts_of_a_series_go_by_its_index():
    """The result of value_counts, sorted by frequency, is read by label and not by place."""
    reports = pd.Series(["c"] * 50 + ["a"] * 20 + ["b"] * 30)
    counted = reports.value_counts()
    assert list(counted.index) == ["c", "b", "a"]
    for data in (counted, counted.rename("other"), reports):
        assert as_table(data, CHANNEL).totals.tolist() == [20, 30, 50]
    assert as_table(reports[reports != "b"].value_counts(), CHANNEL).totals.tolist() == [20, 0, 50]
    assert as_table(pd.Series([20, 30, 50]), CHANNEL).totals.tolist() == [20, 30, 50]
    named = pd.Series([0, 1, 1, 0, 1], name="count")
    assert as_table(named, Channel(np.eye(3))).totals.tolist() == [2, 3, 0]
    with pytest.raises(InvalidInput, match="labels among"):
        as_table(pd.Series([1, 2, 3], index=["x", "y", "z"]), CHANNEL)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountTable.from_counts([1, -1, 0], "abc"), "non-negative whole"),
        (lambda: CountTable.from_counts([1, 0.5, 0], "abc"), "non-negative whole"),
        (lambda: CountTable.from_counts([1, 2], "abc"), "shape"),
        (lambda: CountTable.from_counts({"z": 1}, "abc"), "labels among"),
        (lambda: CountTable.from_reports(["a", "z"], CHANNEL), "outside them at entry 1"),
        (lambda: CountTable.from_reports(["a", None], CHANNEL), "outside them at entry 1"),
        (lambda: CountTable.from_reports(pd.Series(["a", np.nan]), CHANNEL), "outside them at entry 1"),
        (lambda: CountTable.from_reports([0, 3], np.full((2, 3), 1 / 3)), "outside them at entry 1"),
        (lambda: CountTable.from_reports([["a"]], CHANNEL), "one column"),
        (lambda: merge([]), "at least one"),
        (lambda: merge([CountTable.from_counts([1], "a"), CountTable.from_counts([1], "b")]), "same outputs"),
        (lambda: CountTable.from_counts([0], "a").frequencies, "at least one report"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_tables_are_frozen():
    table = CountTable.from_counts([1, 2, 3], "abc")
    with pytest.raises(ValueError, match="read-only"):
        table.totals[0] = 5
    with pytest.raises(AttributeError):
        table.totals = None
    assert table.__eq__(3) is NotImplemented
    with pytest.raises(TypeError):
        table + 3
