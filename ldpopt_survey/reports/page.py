"""Generate HTML pages from text, estimates and figures, and tables in text, CSV, Excel, HTML, Markdown and JSON.

A page is one file, light or dark, which loads nothing else. Pages are Jinja templates in `templates/`, which escape
every value except those whose type is markup.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from ldpopt.errors import Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.escapes import csv_text, for_csv, for_markdown, overrides_shown
from ldpopt_survey.estimate.conditional_mean import NOT_ESTIMABLE

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["embed", "page", "render", "table"]


@cache
def _templates(package: str) -> Environment:
    """The templates of a package, which may build on those of this one."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # words alone need no templates

    loaders = [PackageLoader(name) for name in dict.fromkeys((package, "ldpopt_survey.reports"))]
    environment = Environment(
        loader=ChoiceLoader([*loaders, PackageLoader("ldpopt", "data")]),  # the style of all pages
        autoescape=lambda name: not str(name).endswith(".code"),  # programs, whose values are written by `repr`
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals |= {"embed": embed, "interval_table": interval_table, "table": table}
    return environment


def render(
    template: str,
    package: str = "ldpopt_survey.reports",
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """Generate the text of a template of `package` from values and filters.

    In pages, text among the values is escaped.
    """
    _templates(package).filters.update(filters or {})
    text = _templates(package).get_template(template).render(**{"marks": ()} | values)
    return overrides_shown(text.rstrip("\n")) + "\n"


def macro(template: str, name: str, *values: Any) -> Markup:
    """Generate the markup of the macro `name` of a template; text in values is escaped."""
    markup: Markup = getattr(_templates("ldpopt_survey.reports").get_template(template).module, name)(*values)
    return markup


def page(title: str, body: Iterable[str]) -> str:
    """Generate a whole page. `title` is text; `body` is finished HTML."""
    return render("page.html", title=title, body=Markup("\n".join(body)))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", numbers: Sequence[int] = ()) -> Markup:
    """Generate a table of text cells, which are escaped.

    The columns at the positions `numbers` are aligned to the right.
    """
    return macro("parts.html", "table", head, rows, caption, numbers)


def embed(png: bytes, description: str, caption: str = "") -> Markup:
    """Render a PNG figure of 200 dots per inch as HTML, at most in its original size.

    Without bytes, only the description is shown.
    """
    width = round(int.from_bytes(png[16:20]) / 200 * 96)  # the width field of the PNG header
    source = f"data:image/png;base64,{b64encode(png).decode('ascii')}" if png else ""
    return macro("parts.html", "figure", source, width, description, caption)


def interval_table(
    labels: Sequence[str], values: Any, lower: Any, upper: Any, caption: str, percent: str, is_number: bool = False
) -> Markup:
    """Generate a table with one row per answer: name, proportion, interval and a drawing.

    The drawings have a common scale.

    is_number : True if the values are numbers and not proportions.
    """
    values, lower, upper = (np.asarray(numbers, dtype=np.float64) for numbers in (values, lower, upper))
    low, step, count = _scale(min(0.0, float(lower.min())), float(max(upper.max(), np.nan_to_num(values).max())))

    def place(share: float) -> str:
        return f"{4 + 92 * (share - low) / (step * count):.2f}%"

    rows = []
    for label, value, start, end in zip(labels, values, lower, upper, strict=True):
        cell_texts = [f"{numbers:.5g}" if is_number else f"{100 * numbers:.2f} %" for numbers in (value, start, end)]
        if math.isnan(value):
            cell_texts[0] = NOT_ESTIMABLE
        description = f"{label}: {cell_texts[0]}, from {cell_texts[1]} to {cell_texts[2]}"
        ends = {"start": place(start), "end": place(end), "at": "" if math.isnan(value) else place(value)}
        rows.append({"label": label, "shown": cell_texts, "said": description, **ends})
    shares = [low + step * number for number in range(count + 1)]
    grid = [("zero" if abs(share) < 1e-12 else "grid", place(share)) for share in shares]
    zero, tick_step = round(-low / step), max(1, math.ceil((count + 1) / 4))
    ticks = [
        (f"{round(share, 6):g}" if is_number else f"{round(100 * share, 6):g} %", place(share))
        for number, share in enumerate(shares)
        if (number - zero) % tick_step == 0
    ]
    return macro(
        "parts.html", "intervals", rows, grid, ticks, caption, percent, "number" if is_number else "proportion"
    )


def _scale(low: float, high: float) -> tuple[float, float, int]:
    """The start of a scale, its step, and the number of steps. A step is 1, 2 or 5 times a power of ten."""
    span = max(high - low, 1e-6)
    raw_step = span / 4
    power = 10.0 ** math.floor(math.log10(raw_step))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= raw_step * (1 - 1e-12))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return first * step, step, max(1, last - first)


_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """Encode an .xlsx file with a sheet for each name; equal cells give equal bytes.

    Numbers keep all their digits, text stays text (never a formula), and None is an empty cell.
    """
    targets = [f"worksheets/sheet{number}.xml" for number in range(1, len(sheets) + 1)]
    files = {
        "[Content_Types].xml": macro("workbook.xml", "types", len(sheets)),
        "_rels/.rels": macro("workbook.xml", "relations", "officeDocument", ["xl/workbook.xml"]),
        "xl/workbook.xml": macro("workbook.xml", "book", list(sheets)),
        "xl/_rels/workbook.xml.rels": macro("workbook.xml", "relations", "worksheet", targets),
    }
    for target, rows in zip(targets, sheets.values(), strict=True):
        cells = [list(_cells(row, number)) for number, row in enumerate(rows, 1)]
        files[f"xl/{target}"] = macro("workbook.xml", "sheet", cells)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _cells(row: Sequence[Any], number: int) -> Iterator[tuple[str, str, str]]:
    """The address of each cell of a row with its number (all digits) or its text; empty cells are left out."""
    for place, value in enumerate(row):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            yield f"{_letters(place)}{number}", repr(value), ""
        elif value is not None:
            yield f"{_letters(place)}{number}", "", _FORBIDDEN.sub("�", str(value))


def _letters(place: int) -> str:
    """The letters of a column: A to Z, then AA, AB, ..."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


Cell = str | int | float | None

FORMATS = ("text", "csv", "xlsx", "html", "md", "json")


@dataclass(frozen=True)
class ResultTable:
    """Rows of results under named columns, with a title and notes, one a line.

    CSV, Excel and JSON hold all digits. Text, HTML and Markdown show the columns `shares` in percent with two decimals,
    p-values with three significant digits, and other numbers with five.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shares: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise invalid("table", f"{len(self.columns)} cells in each row", len(row))

    def in_format(self, name: str) -> bytes:
        """Encode the table in one of `FORMATS`; raise `InvalidInput` for another."""
        if name not in FORMATS:
            raise invalid("format", f"one of {', '.join(FORMATS)}", Phrase(name or "none"))
        encoders: dict[str, Callable[[], str | bytes]] = {
            "text": self._text, "csv": self._csv, "xlsx": self._xlsx, "html": self._html, "md": self._markdown,
            "json": self._json,
        }  # fmt: skip
        content = encoders[name]()
        return content if isinstance(content, bytes) else content.encode()

    def format_cells(self) -> list[list[str]]:
        """Format the cells as text for readers."""
        return [
            [_cell_text(row[x], name, name in self.shares) for x, name in enumerate(self.columns)] for row in self.rows
        ]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Positions of the columns that hold only numbers."""
        kinds = [{type(cell) for cell in column} - {type(None)} for column in zip(*self.rows, strict=True)]
        return tuple(place for place, kind in enumerate(kinds) if kind and str not in kind)

    def _text(self) -> str:
        from rich.cells import cell_len  # words alone need no Rich

        cells = [list(self.columns), *self.format_cells()]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        lines = [self.title, ""]
        for row in cells:
            blanks = [" " * (width - cell_len(cell)) for width, cell in zip(widths, row, strict=True)]
            parts = [(blanks[x] + cell if x in self.numbers else cell + blanks[x]) for x, cell in enumerate(row)]
            lines.append("  ".join(parts).rstrip())
        return "\n".join([*lines, *(("", *self.notes) if self.notes else ())]) + "\n"

    def _csv(self) -> str:
        return csv_text(map(for_csv, row) for row in (self.columns, *self.rows))

    def _xlsx(self) -> bytes:
        notes = [[self.title], *[[note] for note in self.notes]]
        return workbook({"results": [list(self.columns), *[list(row) for row in self.rows]], "notes": notes})

    def _html(self) -> str:
        body = [
            Markup("<h1>{}</h1>").format(self.title),
            table(self.columns, self.format_cells(), numbers=self.numbers),
        ]
        return page(self.title, [*body, *(Markup("<p>{}</p>").format(note) for note in self.notes)])

    def _markdown(self) -> str:
        def line(row: Sequence[str]) -> str:
            return "| " + " | ".join(map(for_markdown, row)) + " |"

        rule = "|" + "|".join("---:" if place in self.numbers else "---" for place in range(len(self.columns))) + "|"
        parts = [f"# {for_markdown(self.title)}", "", line(self.columns), rule, *map(line, self.format_cells())]
        return "\n".join([*parts, *(part for note in self.notes for part in ("", for_markdown(note)))]) + "\n"

    def _json(self) -> str:
        rows = [
            {name: _finite_or_none(value) for name, value in zip(self.columns, row, strict=True)} for row in self.rows
        ]
        return strict.json_text({"title": self.title, "rows": rows, "notes": list(self.notes)})


def _finite_or_none(value: Cell) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell_text(value: Cell, name: str, is_proportion: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    if is_proportion:
        return f"{100 * value:.2f} %"
    if name == "p":
        return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.5g}"
