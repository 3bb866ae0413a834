"""Text of others cannot steer a terminal, be a formula, or be markup; what is written is read back."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ldpopt.files.escapes import for_csv, for_json, for_markdown, for_terminal, from_csv, overrides_shown

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\x1b\x9b\u202e\u2028=+-@|<&`[]'\\"))
STEERING = {"Cc", "Cs", "Zl", "Zp"}


@given(TEXT)
def test_no_sign_steers_a_terminal(text: str) -> None:
    """Control characters but for the line's end and the tab, separators, surrogates and directions are gone."""
    said = for_terminal(text)
    left = {c for c in said if unicodedata.category(c) in STEERING or unicodedata.bidirectional(c) in
            ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")}  # fmt: skip
    assert left <= set("\n\t")


@given(TEXT)
def test_json_keeps_its_content(text: str) -> None:
    """Escapes change what is seen, and not what is read."""
    assert json.loads(for_json(json.dumps(text, ensure_ascii=False))) == text


@given(TEXT)
def test_cells_are_no_formulas_and_are_read_back(text: str) -> None:
    """A cell begins with =, +, - or @ only where it is a number; an apostrophe of one's own stays."""
    cell = for_csv(text)
    number = cell.strip() != "" and cell.lstrip("+-").replace(".", "").isdecimal()
    assert number or not cell.startswith(("=", "+", "-", "@")) or float(cell) is not None
    if not text.startswith("'"):
        assert from_csv(cell) == text


@given(TEXT)
def test_markdown_has_no_markup(text: str) -> None:
    """No tag, no end of a cell, no line of its own."""
    said = for_markdown(text)
    assert not set("<>\n\r") & set(said)
    assert all(said[at - 1] == "\\" for at, sign in enumerate(said) if sign in "|`[]*")


def test_overrides_are_seen_and_marks_of_languages_stay():
    """A label with an override would read as another one; isolates and marks are in texts from right to left."""
    assert overrides_shown("no\u202esey\u202c") == "no\\u202esey\\u202c"
    assert overrides_shown("\u2068שלום\u2069 \u200f\u061c") == "\u2068שלום\u2069 \u200f\u061c"
