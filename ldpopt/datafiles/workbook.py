"""The first sheet of an Excel workbook as a table, after it was made sure that it fits into memory."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

from ldpopt.datafiles.hidden import values_hidden
from ldpopt.errors import InvalidInput, invalid
from ldpopt.extras import need

MOST_CELLS = 10_000_000
"""Cells of the rectangle that a sheet spans; one cell in its last corner makes it 17 thousand million."""

MOST_BYTES = 1 << 29
"""Bytes of the workbook when it is unpacked: a few kilobytes can unpack to gigabytes."""

_CELL = re.compile(rb'\sr="([A-Z]{1,3})([0-9]{1,7})"')
_OVERLAP = 32


def workbook_table(path: Path) -> Any:
    """The first sheet as a pyarrow table named by its first row: columns of numbers alone as floats, others as text.

    `InvalidInput` for what is no workbook, is too large or has no names; `MissingExtra` without python-calamine.
    """
    need("python_calamine")
    values_hidden(str(path), _refuse_too_large, path)
    rows = values_hidden(str(path), _rows, path)
    if not rows:
        raise invalid("answers", "a first row with the column names", "none", str(path))
    names = [_text(cell) or f"column {at + 1}" for at, cell in enumerate(rows[0])]
    return values_hidden(str(path), _table, names, rows[1:])


def _rows(path: Path) -> list[list[Any]]:
    from python_calamine import CalamineWorkbook

    with CalamineWorkbook.from_path(path) as workbook:
        found: list[list[Any]] = workbook.get_sheet_by_index(0).to_python()
    return [row for at, row in enumerate(found) if at == 0 or any(cell != "" for cell in row)]


def _refuse_too_large(path: Path) -> None:
    if not zipfile.is_zipfile(path):
        raise invalid("answers", "an Excel workbook (.xlsx)", "another file", str(path))
    unpacked = width = height = 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            sheet = entry.filename.startswith("xl/worksheets/")
            before = b""
            with archive.open(entry) as file:
                while content := file.read(1 << 20):
                    unpacked += len(content)
                    if unpacked > MOST_BYTES:
                        raise _too_large(path)
                    for column, row in _CELL.findall(before + content) if sheet else ():
                        width, height = max(width, _number(column)), max(height, int(row))
                    before = content[-_OVERLAP:]
            if width * height > MOST_CELLS:
                raise _too_large(path)


def _too_large(path: Path) -> InvalidInput:
    expected = f"a workbook of at most {MOST_CELLS:,} cells and {MOST_BYTES >> 20} MB unpacked (save it as CSV)"
    return invalid("answers", expected, "a larger one", str(path))


def _number(column: bytes) -> int:
    number = 0
    for letter in column:
        number = 26 * number + letter - 64
    return number


def _table(names: list[str], rows: list[list[Any]]) -> Any:
    import pyarrow as pa

    columns = []
    for at in range(len(names)):
        cells = [row[at] if at < len(row) and row[at] != "" else None for row in rows]
        if all(cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool)) for cell in cells):
            columns.append(pa.array(cells, pa.float64(), from_pandas=True))
        else:
            columns.append(pa.array([None if cell is None else _text(cell) for cell in cells], pa.string()))
    return pa.Table.from_arrays(columns, names)


def _text(cell: Any) -> str:
    """A cell as its text: whole numbers without a point, days and times as ISO 8601 writes them."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
