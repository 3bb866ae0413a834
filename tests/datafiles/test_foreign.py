"""Workbooks are read by a process with limits: none ends this one, fills its memory or keeps it long."""

from __future__ import annotations

import datetime
import json
import resource
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from ldpopt.datafiles.foreign import Unread, limits_of, read
from ldpopt.datafiles.pieces import names_of
from ldpopt.errors import InvalidInput


def workbook_rows(path: Path) -> list[list[object]] | None:
    """The rows of a workbook; None if it is refused."""
    try:
        (said,) = read("workbook", path)
    except Unread:
        return None
    rows: list[list[object]] = json.loads(said)
    return rows


SHEET = "xl/worksheets/sheet1.xml"


def honest(path: Path, rows: int = 3) -> Path:
    book = openpyxl.Workbook()
    book.active.append(["q", "x", "day"])
    for number in range(rows):
        book.active.append([f"word {number}", number / 2, datetime.date(2026, 1, 31)])
    book.save(path)
    return path


def changed(path: Path, change: Callable[[bytes], bytes], name: str = SHEET) -> Path:
    """The workbook at `path` with another sheet, kept under `name`."""
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    entries[name] = change(entries.pop(SHEET))
    for other in ("[Content_Types].xml", "xl/_rels/workbook.xml.rels"):
        entries[other] = entries[other].replace(SHEET.encode(), name.encode())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    return path


def with_cell(cell: bytes) -> Callable[[bytes], bytes]:
    return lambda sheet: sheet.replace(b"</sheetData>", b"<row>" + cell + b"</row></sheetData>")


CORNERS = {
    "corner": with_cell(b'<c r="XFD1048576"><v>1</v></c>'),
    "lower case": with_cell(b'<c r="xfd1048576"><v>1</v></c>'),
    "single quotes": with_cell(b"<c r='XFD1048576'><v>1</v></c>"),
    "spaces": with_cell(b'<c r = "XFD1048576"><v>1</v></c>'),
    "no references": lambda sheet: with_cell(b"<c><v>1</v></c>" * 30_000_000)(sheet),
    "unpacks to gigabytes": with_cell(b"<!--" + b" " * 400_000_000 + b"-->"),
}


@pytest.mark.parametrize("trick", CORNERS)
def test_a_workbook_that_asks_for_too_much_is_refused(tmp_path: Path, trick: str) -> None:
    """Gigabytes from kilobytes are refused in the limits of the reader, or read within them; this process goes on."""
    path = changed(honest(tmp_path / "a.xlsx"), CORNERS[trick], "xl/elsewhere.xml" if trick == "corner" else SHEET)
    memory, seconds = limits_of(path.stat().st_size)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    if trick == "unpacks to gigabytes":
        assert len(workbook_rows(path) or "refused") in (5, len("refused"))
    else:
        with pytest.raises(InvalidInput, match="save it as CSV"):
            names_of(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < memory >> 10
    assert time.process_time() - begun < seconds


def test_the_values_of_cells_come_as_they_are(tmp_path: Path) -> None:
    """Numbers are numbers, days are text, and rows without content are left out."""
    path = honest(tmp_path / "a.xlsx", 2)
    assert workbook_rows(path) == [["q", "x", "day"], ["word 0", 0.0, "2026-01-31"], ["word 1", 0.5, "2026-01-31"]]


def test_changed_bytes_are_refused_without_a_word_of_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Workbooks with some bytes exchanged are read or refused in one line, and nothing else is printed."""
    content = honest(tmp_path / "a.xlsx", 20).read_bytes()
    rng = np.random.default_rng(5)
    for _ in range(30):
        bad = bytearray(content)
        for place in rng.integers(len(bad), size=rng.integers(1, 20)):
            bad[place] = rng.integers(256)
        (tmp_path / "b.xlsx").write_bytes(bad)
        try:
            names_of(tmp_path / "b.xlsx")
        except InvalidInput as error:
            assert "word 1" not in str(error)
    assert capfd.readouterr() == ("", "")


def test_a_large_honest_workbook_is_read(tmp_path: Path) -> None:
    """The limits grow with the file."""
    rows = workbook_rows(honest(tmp_path / "a.xlsx", 20_000))
    assert rows is not None
    assert len(rows) == 20_001
