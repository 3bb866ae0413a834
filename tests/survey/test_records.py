"""Records: what is declared is read and written back; anything else is refused, named by its key, and never quoted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.values.schema import kind, version_of
from ldpopt_survey.records import check, choice, dump, flag, key, listed, load, mapped, record, reference, text, within

SECRET = "CANARY"


@dataclass(frozen=True)
class Inner:
    """Inner.

    share : a share. words : some words.
    """

    share: float = key(within(0, 1, "[)"), default=0.0)
    words: tuple[str, ...] = key(listed(text), default=(), omit=True)

    def __post_init__(self) -> None:
        check(self, "inner")


@dataclass(frozen=True)
class Outer:
    """Outer.

    name : what it is called.
    kind (a unit), open : two that share
        one meaning.

    parts : the parts.
    """

    name: str = key(text, table="head")
    parts: tuple[Inner, ...] = key(listed(record(Inner)))
    kind: str = key(choice("a", "b"), default="a", name="sort", table="head")
    open: bool = key(flag, default=False)
    limits: Mapping[str, float] | None = key(mapped(within(0, 10)), default=None)
    own: Inner = key(record(Inner), default=Inner(), inline=True)

    def __post_init__(self) -> None:
        check(self, "outer")


FULL = {
    "head": {"name": "x", "sort": "b"}, "parts": [{"share": 0.5}, {"words": ["u", "v"]}], "open": True,
    "limits": {"low": 1}, "share": 0.25,
}  # fmt: skip


def test_declared_fields_are_read_and_written_back() -> None:
    """`load` after `dump`, also through JSON, is the identity; tables, other names and inline records included."""
    made = load(Outer, FULL, "file")
    assert (made.name, made.kind, made.open, made.own.share) == ("x", "b", True, 0.25)
    assert made.parts == (Inner(0.5), Inner(0.0, ("u", "v")))
    assert load(Outer, json.loads(json.dumps(dump(made))), "file") == made
    assert dump(made)["parts"][0] == {"share": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head": {}}, r"file \[head\] has no key 'name'"),
        ({"head": [SECRET]}, r"file \[head\]: expected a table, got a list"),
        ({"head": {"name": "x", "more": 1}}, r"file \[head\]: .* got 'more'"),
        ({"more": 1}, "file: expected only .*got 'more'"),
        ({"parts": {}}, "outer: parts: expected a list, got a table"),
        ({"parts": [{"share": 1}]}, r"inner: share: expected a number in \[0, 1\)"),
        ({"parts": [{}, SECRET]}, "outer: parts, entry 2: expected a table, got a text"),
        ({"open": SECRET}, "outer: open: expected true or false, got a text"),
        ({"head": {"name": "x", "sort": SECRET}}, r"\[head\] kind: expected \"a\" or \"b\", got another word"),
        ({"limits": {"low": True}}, "outer: limits 'low'"),
        ({"words": [SECRET + "\0"]}, "inner: words, entry 1"),
    ],
)
def test_anything_else_is_refused_by_key_and_not_quoted(change, message) -> None:
    """The message says what, expected and got, and holds no value."""
    with pytest.raises(InvalidInput, match=message) as caught:
        load(Outer, {**FULL, **change}, "file")
    assert SECRET not in str(caught.value)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_readers_give_their_own_results_again(value) -> None:
    """What a reader accepts, it accepts again unchanged; all else is `InvalidInput`."""
    for read in (text, flag, choice("a", "b"), within(0, 1), listed(text), mapped(flag), record(Inner)):
        try:
            made = read(value, "x")
        except InvalidInput:
            continue
        assert read(made, "x") == made


def test_versions() -> None:
    """Another format and another version are told apart; `True` is no version."""
    assert version_of({"format": "f", "version": 1}, "x", "f", (1,)) == 1
    for wrong in (None, [], {}, {"format": "g", "version": 1}, {"format": "f", "version": True}):
        with pytest.raises(InvalidInput, match="x: expected"):
            version_of(wrong, "x", "f", (1,))
    assert kind({1: 2}) == "a table"


def test_the_page_of_keys() -> None:
    """`reference` has a row for every key, with the meaning that the docstring gives it."""
    page = reference(Outer, {"parts": Inner})
    assert "| `sort` | text | `'a'` | two that share one meaning. |" in page
    assert page.count("| `share` | number | `0.0` | a share. |") == 2
    assert "## `[head]`\n" in page
    assert "## `[parts]`\n" in page
