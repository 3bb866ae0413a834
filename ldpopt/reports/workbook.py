"""Excel workbooks of plain cells, which Excel, LibreOffice and pandas read. Only the standard library is used."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """The bytes of an .xlsx file with a sheet for each name. The same cells give the same bytes.

    Numbers keep all their digits, text stays text (never a formula), and None is an empty cell.

    >>> workbook({"results": [["answer", "share"], ["yes", 0.25]]})[:2]
    b'PK'
    """
    names = list(sheets)
    files = {
        "[Content_Types].xml": _types(len(names)),
        "_rels/.rels": _relations([("officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": _book(names),
        "xl/_rels/workbook.xml.rels": _relations(
            [("worksheet", f"worksheets/sheet{at}.xml") for at in range(1, len(names) + 1)]
        ),
    }
    for at, rows in enumerate(sheets.values(), 1):
        files[f"xl/worksheets/sheet{at}.xml"] = _sheet(rows)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), _HEAD + content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _types(sheets: int) -> str:
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{kind}.worksheet+xml"/>'
        for at in range(1, sheets + 1)
    )
    relations = "application/vnd.openxmlformats-package.relationships+xml"
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType="{relations}"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>{parts}</Types>'
    )


def _relations(targets: Sequence[tuple[str, str]]) -> str:
    inside = "".join(
        f'<Relationship Id="rId{at}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inside}</Relationships>'


def _book(names: Sequence[str]) -> str:
    inside = "".join(
        f'<sheet name="{escape(name, {chr(34): "&quot;"})}" sheetId="{at}" r:id="rId{at}"/>'
        for at, name in enumerate(names, 1)
    )
    return f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{inside}</sheets></workbook>'


def _sheet(rows: Sequence[Sequence[Any]]) -> str:
    inside = "".join(
        f'<row r="{at}">{"".join(_cell(value, f"{_letters(place)}{at}") for place, value in enumerate(row))}</row>'
        for at, row in enumerate(rows, 1)
    )
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{inside}</sheetData></worksheet>'


def _cell(value: Any, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return f'<c r="{where}"><v>{float(value)!r}</v></c>' if isinstance(value, float) else (
            f'<c r="{where}"><v>{value}</v></c>'
        )  # fmt: skip
    text = escape(_FORBIDDEN.sub("�", str(value)))
    return f'<c r="{where}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _letters(place: int) -> str:
    """The letters of a column: A to Z, then AA, AB, ..."""
    made = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        made = chr(65 + rest) + made
    return made
