"""Escapes for untrusted text (labels, names of columns and files) in terminals, CSV, JSON and Markdown.

HTML templates escape every value that is not typed as markup.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["csv_text", "filled", "for_csv", "for_json", "for_markdown", "for_terminal", "from_csv", "overrides_shown"]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_OVERRIDES = re.compile("[\u202a-\u202e]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def for_terminal(text: str) -> str:
    r"""Replace characters that control a terminal, reorder letters, or have no glyph by escapes.

    >>> for_terminal("a\x1b[31m b\u202e")
    'a\\x1b[31m b\\u202e'
    """
    return _UNSEEN.sub(lambda character: character[0].encode("unicode_escape").decode(), text)


def overrides_shown(text: str) -> str:
    r"""Replace the characters that reverse the order of letters by escapes.

    Marks and isolates stay, since texts written from right to left need them.

    >>> overrides_shown("a\u202eb")
    'a\\u202eb'
    """
    return _OVERRIDES.sub(lambda character: f"\\u{ord(character[0]):04x}", text)


def for_json(text: str) -> str:
    r"""Replace such characters in JSON by escapes, with the same content.

    >>> for_json('"\x9b"')
    '"\\u009b"'
    """
    return _UNSEEN.sub(lambda character: f"\\u{ord(character[0]):04x}", text)


def for_csv(value: Any) -> Any:
    """Format a cell of CSV: an apostrophe precedes text that a spreadsheet would run as a formula.

    >>> for_csv("=1+1"), for_csv("-1.5"), for_csv(-1.5), for_csv(None)
    ("'=1+1", '-1.5', -1.5, '')
    """
    if not isinstance(value, str):
        return "" if value is None else value
    return f"'{value}" if value.startswith(_FORMULA) and not _is_number(value) else value


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Format rows of cells as CSV, one line per row."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def from_csv(cell: str) -> str:
    """Return the text of a cell that `for_csv` wrote."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def for_markdown(text: str) -> str:
    """Convert text to one line of Markdown: no part is markup or ends a table cell.

    >>> for_markdown("<b>|[x](y)")
    '&lt;b&gt;\\\\|\\\\[x\\\\](y)'
    """
    return re.sub(r"([\\|`*\[\]])", r"\\\1", escape(for_terminal(" ".join(text.split())), quote=False))


def filled(text: str, **places: object) -> str:
    """Replace the placeholders of a sentence, once.

    >>> filled("{count} of {total} {left}", count=3, total="{count}", left="")
    '3 of {count} '
    """
    return re.sub(r"\{(\w+)\}", lambda place: str(places[place[1]]), text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
