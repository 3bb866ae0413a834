"""JSON is read strictly and written so that it can be read back; TOML is read in linear time."""

import json
import math
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.files import strict

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


@given(VALUES)
def test_json_values_survive_a_round_trip(value):
    """Every JSON value survives, floats to the last bit."""
    assert strict.json_value(strict.json_text(value)) == value


@given(st.text() | st.binary() | st.text('{}[]",:0.e-1truefalsn '))
def test_any_text_is_a_value_or_an_error(text):
    """Arbitrary text and bytes give a value or an InvalidInput; nothing else escapes."""
    try:
        value = strict.json_value(text, "file")
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
def test_text_that_is_not_strict_json_is_refused(text, message):
    """Broken, ambiguous, non-finite, over-deep and mis-encoded JSON are errors that name the file."""
    with says(message):
        strict.json_value(text, "plan")


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}])
def test_non_finite_numbers_are_not_written(value):
    """A number that JSON does not have is refused, not written as something else."""
    with pytest.raises(ValueError, match="JSON compliant"):
        strict.json_text(value)


def test_accents_stay_readable():
    """Text is written as it is, and ends with a line end."""
    assert strict.json_text(["é"]) == '[\n "é"\n]\n'


def test_a_repeated_last_key_of_many_is_refused_quickly():
    """A key that is repeated at the very end is found by counting, not by comparing all pairs."""
    with pytest.raises(InvalidInput, match="'k0' twice"):
        strict.json_value("{" + ",".join(f'"k{i}": 1' for i in range(200_000)) + ', "k0": 1}')


LONG = ".".join("a" * 20_000)


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG} = 1",
        f"[{LONG}]",
        f"[[{LONG}]]",
        f"x = {{y = 1, {LONG} = 1}}",
        f"x = {{y = '''a'''', {LONG} = 1}}",
        f'x = {{y = """a"""", {LONG} = 1}}',
        f'x = {{y = """\\"""" , {LONG} = 1}}',
        f'x = "#" \n{LONG} = 1',
        f"x = '\"' \n{LONG} = 1",
        f"# '''\n{LONG} = 1",
        " . ".join(["'a'", '"b"', "c"] * 20) + " = 1",
        '"a.b"\t.\t' + "'#'." * 40 + "b = 1",
    ],
)
def test_long_keys_are_refused_before_they_are_parsed(text: str) -> None:
    """However a key of thousands of parts is written, and whatever strings stand before it, it is not parsed."""
    with pytest.raises(InvalidInput, match="keys of at most 32 parts"):
        strict.toml_value(text)


@pytest.mark.parametrize(
    "text",
    [
        'a.b."c.d".e = 1',
        "x = [" + "0.1, " * 200 + "]",
        f'x = "{LONG}"',
        f"x = '''{LONG}\n{LONG}'''",
        f"x = 1 # {LONG} '",
        'x = """a""" # b\n[y]\nz = 1979-05-27',
        ".".join("a" * 32) + " = 1",
        "",
    ],
)
def test_valid_toml_is_read_like_the_standard_library(text: str) -> None:
    """Dots in strings, comments and numbers are not keys; all text is read as by the standard library."""
    assert strict.toml_value(text) == tomllib.loads(text) == strict.toml_value(text.encode())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "valid TOML"),
        ("a = " + "[" * 5000, "moderate depth"),
        ("a = " + "9" * 5000, "valid TOML"),
        (b"a = '\xff'", "byte 5"),
        ("#" * (1 << 20) + "#", "at most 1048576"),
        ("a = '''", "valid TOML"),
        ("a=" + '"""\\' * 1000, "valid TOML"),
    ],
)
def test_everything_else_is_refused(text: str | bytes, said: str) -> None:
    """Bad syntax, depth, size and bytes are `InvalidInput` that names the file."""
    with pytest.raises(InvalidInput, match=f"^survey.toml: .*{said}"):
        strict.toml_value(text, "survey.toml")
