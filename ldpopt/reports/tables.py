"""Results to tables in several formats: text, CSV, Excel, HTML, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ldpopt import strictjson
from ldpopt.errors import Phrase, invalid
from ldpopt.reports.page import page, part, table

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """The bytes of an .xlsx file with a sheet for each name. The same cells give the same bytes.

    Numbers keep all their digits, text stays text (never a formula), and None is an empty cell.

    >>> workbook({"results": [["answer", "share"], ["yes", 0.25]]})[:2]
    b'PK'
    """
    targets = [f"worksheets/sheet{at}.xml" for at in range(1, len(sheets) + 1)]
    files = {
        "[Content_Types].xml": part("workbook.xml", "types", len(sheets)),
        "_rels/.rels": part("workbook.xml", "relations", "officeDocument", ["xl/workbook.xml"]),
        "xl/workbook.xml": part("workbook.xml", "book", list(sheets)),
        "xl/_rels/workbook.xml.rels": part("workbook.xml", "relations", "worksheet", targets),
    }
    for target, rows in zip(targets, sheets.values(), strict=True):
        cells = [list(_cells(row, at)) for at, row in enumerate(rows, 1)]
        files[f"xl/{target}"] = part("workbook.xml", "sheet", cells)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _cells(row: Sequence[Any], at: int) -> Iterator[tuple[str, str, str]]:
    """Where each cell of a row stands, its number with all digits, or else its text; empty cells are left out."""
    for place, value in enumerate(row):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            yield f"{_letters(place)}{at}", repr(value), ""
        elif value is not None:
            yield f"{_letters(place)}{at}", "", _FORBIDDEN.sub("�", str(value))


def _letters(place: int) -> str:
    """The letters of a column: A to Z, then AA, AB, ..."""
    made = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        made = chr(65 + rest) + made
    return made


Cell = str | int | float | None

FORMATS = ("text", "csv", "xlsx", "html", "md", "json")


@dataclass(frozen=True)
class ResultTable:
    """Rows of results under named columns, with a title and notes.

    title : the title. columns : the names of the columns. rows : cells of text, numbers, or None for an empty cell.
    shares : the columns that are shares, which are shown as percentages. notes : sentences, one a line.

    CSV, Excel and JSON hold all digits. In CSV an apostrophe stands before text that a spreadsheet would compute. Text,
    HTML and Markdown show shares in percent with two decimals, p-values with three significant digits, and other
    numbers with five.

    >>> made = ResultTable("demo", ("answer", "share"), (("yes", 0.25),), shares=("share",))
    >>> print(made.in_format("csv").decode())
    answer,share
    yes,0.25
    <BLANKLINE>
    >>> print(made.in_format("md").decode())
    # demo
    <BLANKLINE>
    | answer | share |
    |---|---:|
    | yes | 25.00 % |
    <BLANKLINE>
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
        """The bytes of the table in one of `FORMATS`; `InvalidInput` for another."""
        if name not in FORMATS:
            raise invalid("format", f"one of {', '.join(FORMATS)}", Phrase(name or "none"))
        makers: dict[str, Callable[[], str | bytes]] = {
            "text": self._text,
            "csv": self._csv,
            "xlsx": self._xlsx,
            "html": self._html,
            "md": self._markdown,
            "json": self._json,
        }
        made = makers[name]()
        return made if isinstance(made, bytes) else made.encode()

    def shown(self) -> list[list[str]]:
        """The cells as text for readers."""
        return [
            [_shown(value, name, name in self.shares) for name, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Positions of the columns that hold only numbers."""
        return tuple(
            at
            for at in range(len(self.columns))
            if all(not isinstance(row[at], str) for row in self.rows) and any(row[at] is not None for row in self.rows)
        )

    def _text(self) -> str:
        cells = [list(self.columns), *self.shown()]
        wide = [max(_width(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = [self.title, ""]
        for row in cells:
            parts = [
                " " * (wide[at] - _width(cell)) + cell if at in self.numbers else cell + " " * (wide[at] - _width(cell))
                for at, cell in enumerate(row)
            ]
            lines.append("  ".join(parts).rstrip())
        return "\n".join([*lines, *(("", *self.notes) if self.notes else ())]) + "\n"

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([list(map(_no_formula, row)) for row in (self.columns, *self.rows)])
        return out.getvalue()

    def _xlsx(self) -> bytes:
        notes = [[self.title], *[[note] for note in self.notes]]
        return workbook({"results": [list(self.columns), *[list(row) for row in self.rows]], "notes": notes})

    def _html(self) -> str:
        body = [Markup("<h1>{}</h1>").format(self.title), table(self.columns, self.shown(), numbers=self.numbers)]
        return page(self.title, [*body, *(Markup("<p>{}</p>").format(note) for note in self.notes)])

    def _markdown(self) -> str:
        def line(row: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row) + " |"

        rule = "|" + "|".join("---:" if at in self.numbers else "---" for at in range(len(self.columns))) + "|"
        parts = [f"# {self.title}", "", line(self.columns), rule, *map(line, self.shown())]
        return "\n".join([*parts, *(part for note in self.notes for part in ("", note))]) + "\n"

    def _json(self) -> str:
        rows = [{name: _plain(value) for name, value in zip(self.columns, row, strict=True)} for row in self.rows]
        return strictjson.dumps({"title": self.title, "rows": rows, "notes": list(self.notes)})


def _no_formula(value: Cell) -> Cell:
    """A cell of CSV: text that a spreadsheet would take for a formula begins with an apostrophe, which hides it there.

    >>> _no_formula("=1+1"), _no_formula("-1"), _no_formula(None)
    ("'=1+1", '-1', '')
    """
    if not isinstance(value, str):
        return "" if value is None else value
    try:
        float(value)
    except ValueError:
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
    return value


def _plain(value: Cell) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(value: Cell, name: str, share: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    if share:
        return f"{100 * value:.2f} %"
    if name == "p":
        return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.5g}"


def _width(text: str) -> int:
    """The width of a text on a terminal: two columns for wide characters, none for combining marks."""
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
