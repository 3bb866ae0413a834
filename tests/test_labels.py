"""Labels: one form in memory, one in JSON, one in data files."""

from __future__ import annotations

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.labels import as_labels, as_text, from_json, position_of, to_json


def test_labels_survive_json() -> None:
    """Strings, numbers, booleans and nested tuples come back the same."""
    labels = ("a", 1, 2.5, False, ("b", (3, "c")))
    assert from_json([to_json(label) for label in labels], "file") == labels


def test_numpy_labels_become_plain() -> None:
    """Numpy scalars are stored as Python values and found by either."""
    made = as_labels([np.int64(3), np.str_("x"), (np.float64(0.5),)], 3, "inputs")
    assert made == (3, "x", (0.5,))
    assert type(made[0]) is int
    assert position_of(made, np.int64(3)) == 0


def test_text_tells_types_of_tuples_apart() -> None:
    """A tuple's text is its compact JSON, so (0, "1") and (0, 1) differ."""
    assert [as_text(label) for label in ((0, "1"), (0, 1), "é", 1.5)] == ['[0,"1"]', "[0,1]", "é", "1.5"]


@pytest.mark.parametrize("given", ["ab", ["a"], ["a", "a"], [1, True], [None, 1], [float("nan"), 1], [[1], 2]])
def test_bad_labels(given: object) -> None:
    """Text for a list, a wrong count, repetitions and other types are refused."""
    with pytest.raises(InvalidInput):
        as_labels(given, 2, "inputs")  # type: ignore[arg-type]


def test_bad_labels_in_json() -> None:
    """Null, objects and endless nesting are refused."""
    nested: list[object] = []
    for _ in range(50):
        nested = [nested]
    for value in (None, {"a": 1}, nested):
        with pytest.raises(InvalidInput, match="file"):
            from_json([value], "file")
    with pytest.raises(InvalidInput, match="one of the inputs"):
        position_of(("a",), "b")
