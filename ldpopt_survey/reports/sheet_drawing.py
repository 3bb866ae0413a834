"""Elements of printed forms: fonts for any script, and a device's outcomes as a table or a wheel.

DejaVu comes with matplotlib; other characters are taken from fonts of this computer.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import distribution
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from ldpopt_survey.paper.design import PaperDevice

FAMILY = "body"

SHAPED_SCRIPTS = (
    "ARABIC", "SYRIAC", "NKO", "HEBREW", "DEVANAGARI", "BENGALI", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "GUJARATI",
    "GURMUKHI", "ORIYA", "SINHALA", "KHMER", "MYANMAR", "TIBETAN", "MONGOLIAN", "THAANA",
)  # fmt: skip
"""Scripts whose letters change their shape next to others, or that run from right to left."""


def set_fonts(pdf: Any, texts: Iterable[str]) -> list[str]:
    """Set embedded fonts of an `fpdf.FPDF` for all characters of `texts`.

    Returns a warning for each missing font.
    """
    folder = Path(str(distribution("matplotlib").locate_file("matplotlib/mpl-data/fonts/ttf")))  # without its import
    for style, name in (("", "DejaVuSans.ttf"), ("B", "DejaVuSans-Bold.ttf")):
        pdf.add_font(FAMILY, style, folder / name)
    characters_needed = {c for text in texts for c in text if c.isprintable() and not c.isspace()}
    missing = characters_needed - set(map(chr, pdf.fonts[FAMILY].cmap))
    fallback_fonts: list[str] = []
    for path, face in _installed_fonts() if missing else ():
        if covered := missing & characters(path, face):
            name = f"more{len(fallback_fonts)}"
            pdf.add_font(name, "", path, collection_font_number=face)
            pdf.add_font(name, "B", path, collection_font_number=face)
            fallback_fonts.append(name)
            missing -= covered
        if not missing:
            break
    if fallback_fonts:
        pdf.set_fallback_fonts(fallback_fonts, exact_match=False)
    return _warnings(pdf, missing, characters_needed)


def _warnings(pdf: Any, missing: set[str], characters_needed: set[str]) -> list[str]:
    warnings = []
    if missing:
        examples = " ".join(sorted(missing)[:12])
        warnings.append(f"no font on this computer has {examples}: install a Noto font for that script and print again")
    scripts = sorted(
        {script for c in characters_needed if (script := unicodedata.name(c, "").split(" ")[0]) in SHAPED_SCRIPTS}
    )
    if find_spec("uharfbuzz") is not None:
        pdf.set_text_shaping(use_shaping_engine=bool(scripts))
    elif scripts:
        names = ", ".join(script.capitalize() for script in scripts)
        warnings.append(f"{names} needs its letters joined and ordered: python -m pip install 'ldpopt[paper]'")
    return warnings


SUFFIXES, OTHER_FACES = (".ttf", ".otf", ".ttc"), ("Bold", "Italic", "Oblique", "LastResort")


@cache
def characters(path: str, face: int = 0) -> frozenset[str]:
    """List the characters that a font file can draw; none if the font is not usable."""
    from fontTools.ttLib import TTFont, TTLibError

    try:
        with TTFont(path, fontNumber=face, lazy=True) as font:
            return frozenset(map(chr, font.getBestCmap() or {}))
    except (OSError, TTLibError, ValueError):
        return frozenset()


def _installed_fonts() -> list[tuple[str, int]]:
    """Upright fonts of this computer, with Noto and sans-serif fonts first; without fonts that draw only boxes."""
    from matplotlib import font_manager

    def order(path: Path) -> tuple[bool, bool, bool, str]:
        return ("Noto" not in path.name, "Sans" not in path.name, "UI" in path.name, path.name)

    fonts = [path for path in map(Path, font_manager.findSystemFonts()) if path.suffix.lower() in SUFFIXES]
    upright_fonts = [path for path in fonts if not any(word in path.stem for word in OTHER_FACES)]
    return [(str(path), 0) for path in sorted(upright_fonts, key=order)]


TINT_RGB = (214, 228, 240)
"""The tint of examples and heads. Cards have none: those of a question must look identical from a distance."""

GREY_RGB = (110, 110, 110)

BASELINE_SHARE = 0.3
"""How far below the middle of a cell the baseline of its text is, in sizes of the font, as in `fpdf.FPDF.cell`."""


def is_plain(pdf: Any, text: str) -> bool:
    """Return True if a text has one line, whose characters are all in the current font and stand side by side.

    Then `fpdf.FPDF.text` can draw it, in a fifth of the time of `fpdf.FPDF.cell`.
    """
    is_apart = not pdf.text_shaping or (len(text) == 1 and text.isascii())
    return is_apart and text.isprintable() and pdf.current_font.cmap.keys() >= set(map(ord, text))


def width_of(pdf: Any, text: str) -> float:
    """Measure a text in mm; `fpdf.FPDF.get_string_width` takes seven times as long for a plain one."""
    if not is_plain(pdf, text):
        return float(pdf.get_string_width(text))
    _, points = pdf.current_font.get_text_width(text, pdf.font_size_pt, None)
    return float(points / pdf.k)


Box = tuple[float, float, float, float]
"""The left edge, top edge, width and height of a part of a page, in mm."""


def put(pdf: Any, text: str, box: Box, font: tuple[str, float] | None = None, align: str = "C") -> None:
    """Write text on one line in a box.

    font : the style and size, if they differ from the current ones.
    align : "L", "C" or "R".
    """
    if font is not None:
        pdf.set_font(FAMILY, *font)
    if is_plain(pdf, text):
        _put_plain(pdf, text, box, align)
    else:
        pdf.set_xy(*box[:2])
        with pdf.local_context():  # substitute fonts are dropped again afterwards
            pdf.cell(*box[2:], text, align=align)


def _put_plain(pdf: Any, text: str, box: Box, align: str) -> None:
    left, top, width, height = box
    if align == "L":
        left += pdf.c_margin
    else:
        blank = width - width_of(pdf, text)
        left += blank / 2 if align == "C" else blank - pdf.c_margin
    pdf.text(left, top + height / 2 + BASELINE_SHARE * pdf.font_size, text)


def lines_of(pdf: Any, text: str, width: float) -> list[str]:
    """Split a plain text at its spaces into lines for a box.

    The list is empty if only `fpdf.FPDF.multi_cell` can break the text.
    Words are measured once, whereas `multi_cell` measures the line again at every character.
    """
    if not is_plain(pdf, text):
        return []
    width, space = width - 2 * pdf.c_margin, width_of(pdf, " ")
    lines: list[str] = []
    room = 0.0
    for word in text.split(" "):
        word_width = width_of(pdf, word)
        if word_width > width:
            return []
        room -= space + word_width
        if room < 0:
            lines.append(word)
            room = width - word_width
        else:
            lines[-1] += f" {word}"
    return lines if lines[-1] or text == "" else lines[:-1]  # a space at the end begins no line


def write(pdf: Any, text: str, width: float, line_height: float, align: str) -> None:
    """Write a text at the current place on as many lines as it needs, and go on below it at the left margin."""
    left, top = pdf.get_x(), pdf.get_y()
    lines = lines_of(pdf, text, width)
    for number, line in enumerate(lines):
        _put_plain(pdf, line, (left, top + number * line_height, width, line_height), align)
    if lines:
        pdf.set_xy(pdf.l_margin, top + len(lines) * line_height)
    else:
        is_one_line = "\n" not in text and width_of(pdf, text) <= width - 2 * pdf.c_margin - 1
        draw = pdf.cell if is_one_line else pdf.multi_cell  # which looks for the ends of lines
        draw(width, line_height, text, align=align, new_x="LMARGIN", new_y="NEXT")


def draw_grid(pdf: Any, columns: Sequence[float], rows: Sequence[float]) -> None:
    """Draw the borders of cells, from the edges between columns and between rows, in mm."""
    width, height = columns[-1] - columns[0], rows[-1] - rows[0]
    for start, end in pairwise(columns):
        pdf.rect(start, rows[0], end - start, height)
    for start, end in pairwise(rows):
        pdf.rect(columns[0], start, width, end - start)


def draw_table(pdf: Any, device: PaperDevice, letters: Sequence[str], box: Box) -> None:
    """Draw the table of letters for all outcomes, as large as `box` (x, y, width, height) in millimetres allows."""
    x, y, width, height = box
    has_no_row_names = device.rows == ("",)
    m, n = len(device.columns), len(device.rows)
    left = 0.0 if has_no_row_names else (16.0 if len(device.rows[0]) > 1 else 12.0)
    header_height = 12.0
    side = min((width - left - 6) / m, (height - header_height) / n, 15.0)
    cell_width = min((width - left - 6) / m, side * 1.5)
    x += (width - left - cell_width * m) / 2
    y += (height - header_height - side * n) / 2
    pdf.set_text_color(*GREY_RGB)
    put(pdf, device.column_means, (x + left, y, cell_width * m, 5), ("", 8))
    if device.row_means:
        middle = (x + 2.5, y + header_height + side * n / 2)
        with pdf.rotation(90, *middle):
            # fpdf2 measures a negative x from the right edge of the page.
            pdf.text(middle[0] - pdf.get_string_width(device.row_means) / 2, middle[1] + 1, device.row_means)
    pdf.set_text_color(0)
    size = min(side * 1.5, 14.0)
    pdf.set_font(FAMILY, "B", min(size, 11.0))
    for column, name in enumerate(device.columns):
        put(pdf, name, (x + left + column * cell_width, y + 5, cell_width, header_height - 5.5))
    for row, name in enumerate(() if has_no_row_names else device.rows):
        put(pdf, name, (x + 4, y + header_height + row * side, left - 4.5, side))
    pdf.set_draw_color(120)
    pdf.set_line_width(0.2)
    pdf.set_font(FAMILY, "", size)
    columns = [x + left + column * cell_width for column in range(m + 1)]
    rows = [y + header_height + row * side for row in range(n + 1)]
    draw_grid(pdf, columns, rows)
    # Reports are named by Latin capitals, so that neither lines are broken nor letters joined.
    half_widths = {letter: width_of(pdf, letter) / 2 for letter in set(letters)}
    baseline = side / 2 + BASELINE_SHARE * pdf.font_size
    for number, letter in enumerate(letters):
        row, column = divmod(number, m)
        pdf.text(columns[column] + cell_width / 2 - half_widths[letter], rows[row] + baseline, letter)


def draw_wheel(pdf: Any, letters: Sequence[str], box: Box) -> None:
    """Draw a wheel of steps, each with its letter.

    Sectors of one letter would let cards be distinguished from a distance.
    """
    x, y, width, height = box
    radius = min(width, height) / 2 - 2
    middle = (x + width / 2, y + height / 2)
    total = len(letters)

    def point(step: float, fraction: float) -> tuple[float, float]:
        angle = 2 * math.pi * step / total - math.pi / 2
        return middle[0] + fraction * radius * math.cos(angle), middle[1] + fraction * radius * math.sin(angle)

    pdf.set_draw_color(60)
    pdf.set_line_width(0.15)
    pdf.ellipse(middle[0] - radius, middle[1] - radius, 2 * radius, 2 * radius)
    for step, letter in enumerate(letters):
        pdf.line(*point(step, 0.25), *point(step, 1.0))
        centre = point(step + 0.5, 0.93)
        put(pdf, letter, (centre[0] - 3, centre[1] - 2, 6, 4), ("B", 9 if len(letter) == 1 else 6))
    pdf.set_fill_color(0)
    pdf.ellipse(middle[0] - 0.8, middle[1] - 0.8, 1.6, 1.6, style="F")
