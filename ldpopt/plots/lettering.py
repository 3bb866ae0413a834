"""Labels on pictures: they are wrapped, shown literally, and set in a font that has their characters."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

LINE = 30
"""Characters on a line of a label."""

LINES = 3

_PREFERRED = ("Noto Sans", "Noto Sans CJK", "Noto", "FreeSans", "Unifont", "WenQuanYi", "Droid Sans Fallback", "Arial")


def written(label: object, limit: int = LINE, lines: int = LINES) -> str:
    """A label as text in at most `lines` lines of `limit` characters, which matplotlib shows literally.

    A dollar sign does not begin a formula. A character that no font of this machine has is written as its code point,
    such as U+4E2D, since the usual box says nothing.

    >>> written("up to $5 and more than $10, every other week", 20)
    'up to \\\\$5 and more\\nthan \\\\$10, every\\nother week'
    """
    text = "".join(c if _plain(c) or _font_with(ord(c)) else f"U+{ord(c):04X} " for c in " ".join(str(label).split()))
    parts = textwrap.wrap(text, limit) or [" "]
    if len(parts) > lines:
        parts = [*parts[: lines - 1], parts[lines - 1][: limit - 1] + "…"]
    return "\n".join(parts).replace("$", r"\$")


def in_fonts(figure: Any) -> None:
    """Give every text of a figure fonts that have its characters, if this machine has such fonts."""
    from matplotlib.text import Text

    for ax in figure.axes:  # matplotlib sets the text of tick labels when asked
        ax.get_xticklabels(), ax.get_yticklabels()
    for text in figure.findobj(Text):
        families = ["DejaVu Sans"]
        for character in sorted(set(text.get_text())):
            if _plain(character) or any(_has(family, ord(character)) for family in families):
                continue
            if (found := _font_with(ord(character))) is not None:
                families.append(found)
        if len(families) > 1:
            text.set_fontfamily(families)


def _plain(character: str) -> bool:
    """Whether matplotlib's own font has a character."""
    return character == "\n" or _has("DejaVu Sans", ord(character))


def rows_written(labels: Sequence[object]) -> tuple[list[str], float]:
    """Labels for the rows of a picture, and the height of a row, in inches, that fits the longest of them.

    With more than twelve rows, each label has one line.

    >>> rows_written(["a", "b"])
    (['a', 'b'], 0.27)
    """
    made = [written(label, 34, 1) if len(labels) > 12 else written(label) for label in labels]
    return made, 0.11 + 0.16 * max(text.count("\n") + 1 for text in made)


@cache
def _font_with(code: int) -> str | None:
    """The name of a font of this machine that has a character; plain fonts are preferred."""
    from matplotlib.font_manager import fontManager

    _list_new_fonts()
    names = sorted({entry.name for entry in fontManager.ttflist if entry.style == "normal"})

    def rank(name: str) -> tuple[int, str]:
        known = [at for at, start in enumerate(_PREFERRED) if name.startswith(start)]
        return (known[0] if known else len(_PREFERRED), name)

    return next((name for name in sorted(names, key=rank) if _has(name, code)), None)


@cache
def _list_new_fonts() -> None:
    """Add fonts that were installed after matplotlib made its list, which it keeps on the disk."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {entry.fname for entry in fontManager.ttflist}
    for path in sorted(set(findSystemFonts()) - known):
        with suppress(OSError, RuntimeError, ValueError, UnicodeError):
            fontManager.addfont(path)


def _has(family: str, code: int) -> bool:
    return code in _characters(family)


@cache
def _characters(family: str) -> frozenset[int]:
    """The characters of a font; none if it cannot be read."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        return frozenset(get_font(findfont(FontProperties(family=family), fallback_to_default=False)).get_charmap())
    except (ValueError, OSError, RuntimeError):
        return frozenset()
