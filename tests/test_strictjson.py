"""JSON is read strictly and written so that it can be read back."""

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.strictjson import dumps, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


@given(VALUES)
def test_what_is_written_is_read_back(value):
    """Every JSON value survives dumps and loads, floats to the last bit."""
    assert loads(dumps(value)) == value


@given(st.text() | st.binary() | st.text('{}[]",:0.e-1truefalsn '))
def test_any_text_is_a_value_or_an_error(text):
    """Arbitrary text and bytes give a value or an InvalidInput; nothing else escapes."""
    try:
        value = loads(text, "file")
    except InvalidInput as error:
        assert str(error)
    else:
        assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "plan: expected valid JSON, got a mistake at line 1, column 1"),
        ("{", "plan: expected valid JSON, got "),
        ("[1,]", "plan: expected valid JSON, got "),
        ("1 2", "plan: expected valid JSON, got a mistake at line 1, column 3"),
        ("{'a': 1}", "plan: expected valid JSON, got "),
        ('{"a": 1, "b": 2, "a": 1}', "JSON object: expected distinct keys, got 'a' twice"),
        ('[{"x": {"a": 1, "a": 1}}]', "JSON object: expected distinct keys, got 'a' twice"),
        ("NaN", "JSON number: expected a finite double, got 'NaN'"),
        ("[-Infinity]", "JSON number: expected a finite double, got '-Infinity'"),
        ("1e999", "JSON number: expected a finite double, got '1e999'"),
        ("-1e999", "JSON number: expected a finite double, got '-1e999'"),
        ("9" * 5000, "plan: expected valid JSON, got a number of too many digits"),
        ("[" * 100_000, "plan: expected JSON of moderate depth, got deeply nested brackets"),
        (b"\xff", "plan: expected UTF-8 text, got byte 0 that is not"),
        (b'"a\xe9"', "plan: expected UTF-8 text, got byte 2 that is not"),
        ("\ufeff[]", "plan: expected valid JSON, got a mistake at line 1, column 1"),
    ],
)
def test_what_is_no_strict_json(text, message):
    """Broken, ambiguous, non-finite, over-deep and mis-encoded JSON are errors that name the file."""
    with says(message):
        loads(text, "plan")


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}])
def test_non_finite_numbers_are_not_written(value):
    """A number that JSON does not have is refused, not written as something else."""
    with pytest.raises(ValueError, match="JSON compliant"):
        dumps(value)


def test_accents_stay_readable():
    """Text is written as it is, and ends with a line end."""
    assert dumps(["é"]) == '[\n "é"\n]\n'


def test_the_last_of_many_keys_twice():
    """A key that is repeated at the very end is found by counting, not by comparing all pairs."""
    with pytest.raises(InvalidInput, match="'k0' twice"):
        loads("{" + ",".join(f'"k{i}": 1' for i in range(200_000)) + ', "k0": 1}')
