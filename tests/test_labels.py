"""Labels are distinct names, found again in lists and arrays of every kind."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.labels import as_text, distinct_labels, from_jsonable, positions, to_jsonable

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
def test_what_are_no_labels(labels, message):
    """Too few, too many, repeated and odd labels are errors."""
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


def test_unknown_positions():
    """Numbers outside 0..k-1 are no answers, and long lists of inputs are shortened."""
    for wrong in (-1, 9):
        with says(f"answer: expected one of the inputs 0, 1, 2, 3, 4, 5, 6, 7, ..., got {wrong}"):
            positions(tuple(range(9)), np.array([0, wrong]))
    with says("answers: expected an array of labels, got [['a'], ['a', 'b']]"):
        positions(("a", "b"), [["a"], ["a", "b"]])


@pytest.mark.parametrize("value", [[None], [{}]])
def test_labels_in_files(value):
    """A file's labels are strings, numbers and lists of them, to a bounded depth."""
    with says("channel file: expected labels that are strings, numbers or lists of them"):
        from_jsonable(value)
    deep = "x"
    for _ in range(25):
        deep = [deep]
    with says("channel file: expected labels that are strings, numbers or lists of them"):
        from_jsonable([deep])


def test_text_tells_types_of_tuples_apart():
    """A tuple's text is its compact JSON, so (0, "1") and (0, 1) differ."""
    assert [as_text(label) for label in ((0, "1"), (0, 1), "é", 1.5)] == ['[0,"1"]', "[0,1]", "é", "1.5"]
