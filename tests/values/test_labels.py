"""Labels are distinct names, found again in lists and arrays of every kind.

What carries labels goes by them; labels that are missing, unknown or doubled are errors.
"""

import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldpopt_survey as survey
from ldpopt import (
    Channel,
    Divergence,
    ExpectedLoss,
    FisherInformation,
    LocalDP,
    MutualInformation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design import AgainstSet, PrivateSampling
from ldpopt.divergences import KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import binary, sort_partition_randomize
from ldpopt.privacy import FinitePair, mutual_information
from ldpopt.values.labels import as_text, distinct_labels, from_jsonable, index_labels, positions, to_jsonable

ATOMS = st.text(max_size=4) | st.integers(-5, 5) | st.floats(-5, 5)
LABELS = st.recursive(ATOMS, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=4)


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


@given(st.lists(LABELS, min_size=1, max_size=6, unique=True), st.data())
def test_every_label_is_found(labels, data):
    """Whatever the labels are, each is found where it stands, in lists of any mixture."""
    made = distinct_labels(labels, len(labels), "inputs")
    wanted = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=8))
    assert positions(made, [made[i] for i in wanted]).tolist() == wanted
    assert from_jsonable([to_jsonable(label) for label in made]) == made


def test_arrays_of_labels_keep_their_shape():
    """Integers, text and objects in arrays of any shape are found, in that shape."""
    assert positions((0, 1, 2), np.array([[2, 0], [1, 1]])).tolist() == [[2, 0], [1, 1]]
    assert positions((10, 20), np.array([20, 10], dtype=np.uint8)).tolist() == [1, 0]
    assert positions(("a", "bb"), np.array([["bb"], ["a"]])).tolist() == [[1], [0]]
    assert positions(("a", 1), np.array(["a", 1], dtype=object)).tolist() == [0, 1]
    assert positions(("a", "b"), [["a", "b"], ["b", "b"]]).tolist() == [[0, 1], [1, 1]]
    assert positions((0.5, 1.5), [1.5, 0.5]).tolist() == [1, 0]
    assert positions(("a",), []).shape == (0,)


def test_numpy_scalars_become_python_labels():
    """Labels given as numpy scalars or an array are stored as Python values."""
    made = distinct_labels(np.array([1, 2]), 2, "inputs")
    assert [type(label) for label in made] == [int, int]
    assert distinct_labels([np.str_("a"), np.float64(0.5), (np.int64(1), "b")], 3, "x") == ("a", 0.5, (1, "b"))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"], "inputs: expected 2 labels, got 1"),
        (["a", "b", "c"], "inputs: expected 2 labels, got 3"),
        ("ab", "inputs: expected 2 labels, got 'ab'"),
        (["a", "a"], "inputs: expected distinct labels, got 'a' twice"),
        ([1, True], "inputs: expected distinct labels, got True twice"),
        ([1, 1.0], "inputs: expected distinct labels, got 1.0 twice"),
        ([math.nan, 1], "inputs: expected finite numbers as labels, got nan"),
        ([(math.inf, 1), 1], "inputs: expected finite numbers as labels, got inf"),
        ([None, 1], "inputs: expected labels that are strings, numbers or tuples of them, got 'NoneType'"),
        ([["a"], 1], "inputs: expected labels that are strings, numbers or tuples of them, got 'list'"),
        ([b"a", "a"], "inputs: expected labels that are strings, numbers or tuples of them, got 'bytes'"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    """Too few, too many, repeated and odd labels are refused."""
    with says(message):
        distinct_labels(labels, 2, "inputs")


@pytest.mark.parametrize(
    ("answers", "got"),
    [(["a", "c"], "'c'"), ([0], "0"), (np.array(["c"]), "'c'"), ([None], "None"), ([("a", "b")], "('a', 'b')"),
     ([{}], "{}"), ([math.nan], "nan"), ("c", "'c'")],
)  # fmt: skip
def test_unknown_answers(answers, got):
    """An answer that is no input is an error that shows it and the inputs."""
    with says(f"answer: expected one of the inputs 'a', 'b', got {got}"):
        positions(("a", "b"), answers)


def test_unknown_positions_are_refused():
    """Numbers outside 0..k-1 are no answers, and long lists of inputs are shortened."""
    for wrong in (-1, 9):
        with says(f"answer: expected one of the inputs 0, 1, 2, 3, 4, 5, 6, 7, ..., got {wrong}"):
            positions(tuple(range(9)), np.array([0, wrong]))
    with says("answers: expected an array of labels, got [['a'], ['a', 'b']]"):
        positions(("a", "b"), [["a"], ["a", "b"]])


@pytest.mark.parametrize("value", [[None], [{}]])
def test_labels_in_files_are_validated(value):
    """A file's labels are strings, numbers and lists of them, to a bounded depth."""
    with says("channel file: expected labels that are strings, numbers or lists of them"):
        from_jsonable(value)
    deep = "x"
    for _ in range(25):
        deep = [deep]
    with says("channel file: expected labels that are strings, numbers or lists of them"):
        from_jsonable([deep])


def test_text_distinguishes_types_in_tuples():
    """A tuple's text is its compact JSON, so (0, "1") and (0, 1) differ."""
    assert [as_text(label) for label in ((0, "1"), (0, 1), "é", 1.5)] == ['[0,"1"]', "[0,1]", "é", "1.5"]


EAST = pd.Series(list("aaaabbbccd"))
WEST = pd.Series(list("ddddcccbba"))
P0, P1 = EAST.value_counts(normalize=True), WEST.value_counts(normalize=True)
FIRST, SECOND = [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]
Q = Channel([[0.7, 0.3], [0.4, 0.6]], ["yes", "no"], ["A", "B"])


def frame_says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


def test_shares_that_were_counted_go_by_their_labels():
    """`value_counts` sorts by size; the two populations are compared label by label all the same [GI, section VII]."""
    given, meant = Divergence(KL, P0, P1), Divergence(KL, FIRST, SECOND)
    assert given.inputs == ("a", "b", "c", "d")
    assert given.p0.tolist() == meant.p0.tolist()
    assert given.p1.tolist() == meant.p1.tolist()
    design = optimal_channel(given, [LocalDP(1.0)])
    assert design.channel.inputs == given.inputs
    assert design.value == optimal_channel(meant, [LocalDP(1.0)]).value


def test_labels_of_the_caller_set_the_order():
    """Where labels are given, what carries labels is put into their order."""
    given = Divergence(KL, P0, P1, inputs=("d", "c", "b", "a"))
    assert given.p0.tolist() == FIRST[::-1]
    assert given.p1.tolist() == SECOND[::-1]


@pytest.mark.parametrize("values", [P0.reset_index(drop=True), pl.Series(FIRST), np.array(FIRST), tuple(FIRST)])
def test_values_without_labels_are_matched_by_position(values):
    """The index that pandas gives by itself, arrays, lists and Polars columns say nothing of labels."""
    assert Divergence(KL, values, SECOND).inputs is None
    assert Divergence(KL, values, SECOND).p0.tolist() == FIRST


def test_an_array_beside_a_series_is_in_the_order_of_the_series():
    """One that carries labels names the inputs of both."""
    assert Divergence(KL, P0, SECOND).inputs == ("a", "b", "c", "d")
    assert Divergence(KL, SECOND, P0).inputs == ("a", "b", "c", "d")


def test_whole_numbers_in_another_order_are_labels():
    """An index of 2, 0, 1 names answers; only 0, 1, 2 says nothing."""
    counted = pd.Series([2, 2, 2, 0, 0, 1]).value_counts(normalize=True)
    assert list(counted.index) == [2, 0, 1]
    assert index_labels(counted, "p") == (2, 0, 1)
    assert Channel(np.eye(3)).push(counted) == pytest.approx([1 / 3, 1 / 6, 1 / 2])
    assert Channel(np.eye(2)).push(pd.Series({"yes": 0.25, "no": 0.75})).tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (P1.drop("a") / P1.drop("a").sum(), "p1: expected the labels 'a', 'b', 'c', 'd', 0 where nothing is counted"),
        (P1.rename({"a": "x"}), "p1: expected the labels 'a', 'b', 'c', 'd', got 'x'"),
        (pd.Series(SECOND, index=list("abca")), "labels of p1: expected distinct labels, got 'a' twice"),
        (pd.Series(SECOND, index=["a", "b", "c", float("nan")]), "labels of p1: expected finite numbers as labels"),
    ],
)
def test_labels_that_do_not_match_are_errors(other, message):
    """A label that is missing, unknown, doubled or no label stops the work instead of being paired with another."""
    with frame_says(message):
        Divergence(KL, P0, other)


def test_every_utility_goes_by_labels():
    """Priors, alternatives, losses and pilots carry their labels into the utility."""
    assert MutualInformation(P1).inputs == ("d", "c", "b", "a")
    assert FisherInformation(P1).inputs == ("d", "c", "b", "a")
    assert WorstOf(KL, P0, [P1]).each[0].p1.tolist() == SECOND
    frame = pd.DataFrame([SECOND[::-1], [0.25] * 4], columns=list("dcba"))
    tests = WorstOf(KL, P0, frame)
    assert [part.p1.tolist() for part in tests.each] == [SECOND, [0.25] * 4]
    assert tests.inputs == ("a", "b", "c", "d")
    assert AgainstSet(TOTAL_VARIATION, P0, P1).value(np.eye(4)) == pytest.approx(TOTAL_VARIATION(FIRST, SECOND))


def test_losses_and_samplers_name_their_rows_and_columns():
    """The index of a frame of losses names the answers, its columns the decisions; priors follow."""
    loss = pd.DataFrame([[0, 1, 2], [3, 4, 5.0]], index=["yes", "no"], columns=["x", "y", "z"])
    made = ExpectedLoss(pd.Series({"no": 0.75, "yes": 0.25}), loss)
    assert (made.inputs, made.decisions) == (("yes", "no"), ("x", "y", "z"))
    assert made.priors.tolist() == [[0.25, 0.75]]
    assert ExpectedLoss([0.25, 0.75], loss, ("no", "yes"), ("z", "x", "y")).loss.tolist() == [[5, 3, 4], [2, 0, 1]]
    held = pd.DataFrame([[0.5, 0.5], [0.25, 0.75]], index=["u", "v"], columns=["s", "t"])
    sampling = PrivateSampling(TOTAL_VARIATION, held)
    assert (sampling.inputs, sampling.answers) == (("u", "v"), ("s", "t"))


def test_a_sum_of_utilities_over_differently_ordered_answers_is_refused():
    """Two parts that name their answers differently are not added row by row."""
    one, other = Divergence(KL, P0, P1), Divergence(KL, P0, P1, inputs=("d", "c", "b", "a"))
    with frame_says("utilities: expected the same inputs in the same order in each"):
        WeightedSum([1, 1], [one, other])
    assert WeightedSum([1, 1], [one, MutualInformation([0.25] * 4)]).inputs == one.inputs


def test_a_frame_is_a_channel_with_labels():
    """Its index names the answers, its columns the reports; the way back gives the same frame."""
    frame = Q.to_pandas()
    assert Channel(frame) == Q
    pd.testing.assert_frame_equal(Channel(frame).to_pandas(), frame)
    assert Channel(frame, inputs=["no", "yes"], outputs=["B", "A"]).matrix.tolist() == [[0.6, 0.4], [0.3, 0.7]]
    assert Channel(pl.DataFrame({"A": [0.7, 0.4], "B": [0.3, 0.6]})).outputs == ("A", "B")
    assert Channel(pl.DataFrame(np.eye(2))).outputs == (0, 1)
    assert Channel(pd.DataFrame(np.eye(2))).outputs == (0, 1)
    pairs = Q.product(Q)
    assert Channel(pairs.to_pandas()) == pairs
    with frame_says("rows of channel: expected the labels 'yes', 'maybe', got 'no'"):
        Channel(frame, inputs=["yes", "maybe"])


def test_a_channel_takes_distributions_by_label():
    """Marginals, posteriors and leakage read a Series in the order of the channel's inputs."""
    p = pd.Series({"no": 0.75, "yes": 0.25})
    assert Q.push(p).tolist() == Q.push([0.25, 0.75]).tolist()
    assert Q.posterior(p).tolist() == Q.posterior([0.25, 0.75]).tolist()
    assert mutual_information(Q, p) == mutual_information(Q, [0.25, 0.75])
    with frame_says("p: expected the labels 'yes', 'no', got 'maybe'"):
        Q.push(pd.Series({"maybe": 0.5, "yes": 0.5}))


def test_mechanisms_and_divergences_go_by_labels():
    """A divergence, a pair and the mechanisms made for two populations compare label by label."""
    assert KL(P0, P1) == KL(FIRST, SECOND)
    assert FinitePair(P0, P1).outputs == ("a", "b", "c", "d")
    assert binary(P0, P1, 1.0).matrix.tolist() == binary(FIRST, SECOND, 1.0).matrix.tolist()
    assert binary(P0, P1, 1.0).inputs == ("a", "b", "c", "d")
    blocks = [[0, 1], [2, 3]]
    assert sort_partition_randomize(P0, P1, 1.0, blocks).inputs == ("a", "b", "c", "d")


def test_a_pilot_goes_by_the_categories_of_its_question():
    """A pilot that was counted is put into the order of the answers."""
    spec = survey.QuestionSpec("q", list("abcd"), pilot=P1)
    assert np.asarray(spec.pilot).tolist() == SECOND


def test_intervals_and_dates_are_labels_as_they_are_printed():
    """What `pandas.cut` makes can be counted and compared."""
    cut = pd.cut(pd.Series([1, 2, 2, 5, 8, 9]), [0, 4, 10]).value_counts(normalize=True)
    assert set(MutualInformation(cut).inputs) == {"(0, 4]", "(4, 10]"}
