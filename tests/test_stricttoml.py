"""TOML is read in linear time, and what is wrong with it is said in one way."""

from __future__ import annotations

import tomllib

import pytest

from ldpopt import stricttoml
from ldpopt.errors import InvalidInput

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
        stricttoml.loads(text)


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
def test_what_people_write_is_read(text: str) -> None:
    """Dots in strings, comments and numbers are no keys; everything else is as the standard library reads it."""
    assert stricttoml.loads(text) == tomllib.loads(text) == stricttoml.loads(text.encode())


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
        stricttoml.loads(text, "survey.toml")
