"""Fonts for any script: DejaVu, which comes with matplotlib, and fonts of this computer for other characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FAMILY = "body"

JOINED = ("ARABIC", "SYRIAC", "NKO", "HEBREW", "DEVANAGARI", "BENGALI", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM",
          "GUJARATI", "GURMUKHI", "ORIYA", "SINHALA", "KHMER", "MYANMAR", "TIBETAN", "MONGOLIAN", "THAANA")  # fmt: skip
"""Scripts whose letters change their shape beside others, or that run from right to left."""


def set_fonts(pdf: Any, texts: Iterable[str]) -> list[str]:
    """Give an `fpdf.FPDF` embedded fonts for all characters of `texts`. Returns a warning for each missing font."""
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for style, name in (("", "DejaVuSans.ttf"), ("B", "DejaVuSans-Bold.ttf")):
        pdf.add_font(FAMILY, style, folder / name)
    wanted = {c for text in texts for c in text if c.isprintable() and not c.isspace()}
    lacking = wanted - characters(str(folder / "DejaVuSans.ttf"))
    extra: list[str] = []
    for path, face in _installed() if lacking else ():
        if found := lacking & characters(path, face):
            name = f"more{len(extra)}"
            pdf.add_font(name, "", path, collection_font_number=face)
            pdf.add_font(name, "B", path, collection_font_number=face)
            extra.append(name)
            lacking -= found
        if not lacking:
            break
    if extra:
        pdf.set_fallback_fonts(extra, exact_match=False)
    return _warnings(pdf, lacking, wanted)


def _warnings(pdf: Any, lacking: set[str], wanted: set[str]) -> list[str]:
    said = []
    if lacking:
        shown = " ".join(sorted(lacking)[:12])
        said.append(f"no font on this computer has {shown}: install a Noto font for that script and print again")
    joined = sorted({script for c in wanted if (script := unicodedata.name(c, "").split(" ")[0]) in JOINED})
    if find_spec("uharfbuzz") is not None:
        pdf.set_text_shaping(use_shaping_engine=bool(joined))
    elif joined:
        names = ", ".join(script.capitalize() for script in joined)
        said.append(f"{names} needs its letters joined and ordered: python -m pip install 'ldpopt[paper]'")
    return said


@cache
def characters(path: str, face: int = 0) -> frozenset[str]:
    """The characters that a font file can draw; none if the file is not a usable font."""
    from fontTools.ttLib import TTFont, TTLibError

    try:
        with TTFont(path, fontNumber=face, lazy=True) as font:
            return frozenset(map(chr, font.getBestCmap() or {}))
    except (OSError, TTLibError, ValueError):
        return frozenset()


def _installed() -> list[tuple[str, int]]:
    """Upright fonts of this computer, with Noto and sans-serif fonts first; without fonts that draw only boxes."""
    from matplotlib import font_manager

    fonts = [Path(one) for one in font_manager.findSystemFonts()]
    upright = [
        one for one in fonts if not any(word in one.stem for word in ("Bold", "Italic", "Oblique", "LastResort"))
    ]

    def order(path: Path) -> tuple[bool, bool, bool, str]:
        return ("Noto" not in path.name, "Sans" not in path.name, "UI" in path.name, path.name)

    return [(str(path), 0) for path in sorted(upright, key=order) if path.suffix.lower() in (".ttf", ".otf", ".ttc")]
