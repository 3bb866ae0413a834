"""What sheets are made of: words in one language, fonts for any script, and a device's outcomes as a table or a wheel.

DejaVu comes with matplotlib; other characters are taken from fonts of this computer.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.labels import Label, as_text
from ldpopt.reports.words import label_in_words
from ldpopt.survey.kit.folder import LANGUAGES, PAPER, PLACE, languages
from ldpopt.survey.paper.design import PaperDevice, Texts, filled, shipped_texts
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.plan.planned_question import NOT_APPLICABLE, PlannedQuestion


@dataclass(frozen=True, eq=False)
class SheetWords:
    """The words of a survey's sheets in one language.

    said : its sentences, by key. page : what the questionnaire's texts say of the survey and its questions.
    code : the language.
    """

    said: Texts
    page: Mapping[str, Any]
    code: str = LANGUAGES[0]

    def say(self, key: str, **places: object) -> str:
        """A sentence with its places filled; numbers have the decimal sign of the language."""
        return filled(self.said[key], **places)

    def number(self, written: str) -> str:
        """A number as the language writes it."""
        return written.replace(".", self.said["decimal"])

    def label(self, question: str, answer: Label) -> str:
        """An answer to a question, or the name of an option."""
        own = self.page.get("questions", {}).get(question, {}).get("answers", {})
        if answer == NOT_APPLICABLE:
            return str(self.page["notApplicable"])
        return str(own.get(as_text(answer), label_in_words(answer)))

    def wording(self, question: str) -> str:
        """The words in which a question is asked; empty if there are none but its name."""
        return str(self.page.get("questions", {}).get(question, {}).get("text", ""))

    def answer(self, question: PlannedQuestion, answer: Label) -> str:
        """An answer as text; several answers with commas between, and of options those that are chosen."""
        if not question.parts or not isinstance(answer, tuple):
            return self.label(question.name, answer)
        said: dict[str, list[str]] = {}
        for part, label in zip(question.parts, answer, strict=True):
            own = said.setdefault(part.option_of or part.name, [])
            if not part.option_of:
                own.append(self.label(part.name, label))
            elif label == part.categories[1]:
                own.append(self.label(part.option_of, part.name.removeprefix(f"{part.option_of}: ")))
            elif label not in part.asked:
                own[:] = [self.label(part.option_of, label)]
        return self.say("comma").join(" + ".join(own) or self.page["noneChosen"] for own in said.values())


def sheet_words(plan: Plan, language: str = LANGUAGES[0], texts: str | bytes | None = None) -> SheetWords:
    """The words of the sheets of a plan in a language of the package, or that of the survey's own texts.

    texts : JSON as `ldpopt.survey.kit.folder.languages` reads it, with sentences of the sheets under ``"paper"``. Those
        of a language that comes with the package may be left out; of any other all must be there, and are named.
    """
    if texts is None and language not in LANGUAGES:
        raise invalid("language", f"one of {', '.join(LANGUAGES)} (or texts of its own)", language)
    ((code, page),) = languages(plan, [f'{{"code": "{language}"}}' if texts is None else texts]).items()
    own, english = page.pop(PAPER, {}), shipped_texts()
    base = code.split("-")[0]
    said = {**(shipped_texts(base) if base in LANGUAGES else {}), **own}
    lacking = [f"{PAPER}: {key}" for key in english if key not in said]
    if lacking := lacking + [key for key in ("noneChosen", "notApplicable") if key not in page]:
        expected = "all sentences of printed sheets in the language, as none is shown in English"
        raise invalid(f"texts of {code!r}", expected, Phrase(f"none for {', '.join(lacking)}"))
    for key, text in said.items():
        if key not in english:
            raise invalid(f"texts of {code!r}: {PAPER}", "keys of the English sentences of sheets", key)
        places, asked = (sorted(set(PLACE.findall(one))) for one in (text, english[key]))
        if places != asked:
            raise invalid(f"texts of {code!r}: {PAPER}: {key}", f"the places {asked}", places)
    return SheetWords(said, page, code)


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
        if drawn := lacking & characters(path, face):
            name = f"more{len(extra)}"
            pdf.add_font(name, "", path, collection_font_number=face)
            pdf.add_font(name, "B", path, collection_font_number=face)
            extra.append(name)
            lacking -= drawn
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


SUFFIXES, OTHER_FACES = (".ttf", ".otf", ".ttc"), ("Bold", "Italic", "Oblique", "LastResort")


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

    def order(path: Path) -> tuple[bool, bool, bool, str]:
        return ("Noto" not in path.name, "Sans" not in path.name, "UI" in path.name, path.name)

    fonts = [path for path in map(Path, font_manager.findSystemFonts()) if path.suffix.lower() in SUFFIXES]
    upright = [path for path in fonts if not any(word in path.stem for word in OTHER_FACES)]
    return [(str(path), 0) for path in sorted(upright, key=order)]


TINT = (214, 228, 240)
"""The tint of examples and heads. Cards have none: those of a question must look alike from afar."""

GREY = (110, 110, 110)


def put(
    pdf: Any, text: str, box: tuple[float, float, float, float], font: tuple[str, float] | None = None, **more: Any
) -> None:
    """Write text into the middle of a box (x, y, width, height), in a font of another style and size if it is given."""
    if font is not None:
        pdf.set_font(FAMILY, *font)
    pdf.set_xy(*box[:2])
    pdf.cell(*box[2:], text, align="C", **more)


def draw_table(pdf: Any, device: PaperDevice, letters: Sequence[str], box: tuple[float, float, float, float]) -> None:
    """Draw the table of letters for all outcomes, as large as `box` (x, y, width, height) in millimetres allows."""
    x, y, width, height = box
    bare = device.rows == ("",)
    m, n = len(device.columns), len(device.rows)
    left = 0.0 if bare else (16.0 if len(device.rows[0]) > 1 else 12.0)
    above = 12.0
    side = min((width - left - 6) / m, (height - above) / n, 15.0)
    across = min((width - left - 6) / m, side * 1.5)
    x += (width - left - across * m) / 2
    y += (height - above - side * n) / 2
    pdf.set_text_color(*GREY)
    put(pdf, device.column_means, (x + left, y, across * m, 5), ("", 8))
    if device.row_means:
        middle = (x + 2.5, y + above + side * n / 2)
        with pdf.rotation(90, *middle):
            # fpdf2 measures a negative x from the right edge of the page.
            pdf.text(middle[0] - pdf.get_string_width(device.row_means) / 2, middle[1] + 1, device.row_means)
    pdf.set_text_color(0)
    size = min(side * 1.5, 14.0)
    pdf.set_font(FAMILY, "B", min(size, 11.0))
    for column, name in enumerate(device.columns):
        put(pdf, name, (x + left + column * across, y + 5, across, above - 5.5))
    for row, name in enumerate(() if bare else device.rows):
        put(pdf, name, (x + 4, y + above + row * side, left - 4.5, side))
    pdf.set_draw_color(120)
    pdf.set_line_width(0.2)
    pdf.set_font(FAMILY, "", size)
    for number, letter in enumerate(letters):
        row, column = divmod(number, m)
        put(pdf, letter, (x + left + column * across, y + above + row * side, across, side), border=1)


def draw_wheel(pdf: Any, letters: Sequence[str], box: tuple[float, float, float, float]) -> None:
    """Draw a wheel of steps, each with its letter: sectors of one letter would tell cards apart from afar."""
    x, y, width, height = box
    radius = min(width, height) / 2 - 2
    middle = (x + width / 2, y + height / 2)
    total = len(letters)

    def at(step: float, far: float) -> tuple[float, float]:
        angle = 2 * math.pi * step / total - math.pi / 2
        return middle[0] + far * radius * math.cos(angle), middle[1] + far * radius * math.sin(angle)

    pdf.set_draw_color(60)
    pdf.set_line_width(0.15)
    pdf.ellipse(middle[0] - radius, middle[1] - radius, 2 * radius, 2 * radius)
    for step, letter in enumerate(letters):
        pdf.line(*at(step, 0.25), *at(step, 1.0))
        centre = at(step + 0.5, 0.93)
        put(pdf, letter, (centre[0] - 3, centre[1] - 2, 6, 4), ("B", 9 if len(letter) == 1 else 6))
    pdf.set_fill_color(0)
    pdf.ellipse(middle[0] - 0.8, middle[1] - 0.8, 1.6, 1.6, style="F")
