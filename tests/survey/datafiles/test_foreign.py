"""Files of other programs are read by processes with limits: none ends this one, fills its memory or keeps it long."""

from __future__ import annotations

import datetime
import json
import os
import resource
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.files.delimited import PLAIN
from ldpopt_survey.datafiles import foreign
from ldpopt_survey.datafiles.foreign import UnreadableFile, limits_of, read
from ldpopt_survey.datafiles.pieces import batches_of, names_of, ranges_of


def workbook_rows(path: Path) -> list[list[object]] | None:
    """The rows of a workbook; None if it is refused."""
    try:
        (said,) = read("workbook", path)
    except UnreadableFile:
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
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
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
    "no references": lambda sheet: with_cell(b"<c><v>1</v></c>" * 10_000_000)(sheet),
    "unpacks to gigabytes": lambda sheet: with_cell(b"<!--" + b" " * 300_000_000 + b"-->")(sheet),
}


@pytest.mark.full(but=1)
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
    """The limits grow with the file: it has more cells than are read of any small one."""
    cells = np.random.default_rng(1).integers(10**6, size=(15_000, 20)).astype("S6").tolist()
    row = b"<row>" + b"<c><v>%b</v></c>" * 20 + b"</row>"

    def filled(sheet: bytes) -> bytes:
        return sheet.replace(b"</sheetData>", b"".join(row % tuple(one) for one in cells) + b"</sheetData>")

    rows = workbook_rows(changed(honest(tmp_path / "a.xlsx", 0), filled))
    assert rows is not None
    assert len(rows) == 15_001
    assert sum(map(len, rows)) > 300_000


def parquet(path: Path, rows: int) -> Path:
    pq.write_table(pa.table({"q": np.arange(rows), "t": ["word"] * rows}), path, row_group_size=1000)
    return path


def rows_of(path: Path) -> int:
    return sum(
        batch.num_rows
        for start, stop, rows in ranges_of(path, 1000, 1 << 20)
        for batch in batches_of(str(path), start, stop, rows, names_of(path), PLAIN, 100)
    )


@pytest.mark.full
def test_one_process_reads_many_files_and_one_that_died_is_replaced(tmp_path: Path) -> None:
    """A file that is refused does not end the process; where it was killed, or is left in the middle, another reads."""
    path = parquet(tmp_path / "a.parquet", 3000)
    assert rows_of(path) == 3000
    reader = foreign._IDLE[-1]
    (tmp_path / "bad.parquet").write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InvalidInput, match="well-formed"):
        names_of(tmp_path / "bad.parquet")
    assert foreign._IDLE[-1] is reader
    reader._process.kill()
    reader._process.wait()
    assert rows_of(path) == 3000
    replaced = foreign._IDLE[-1]
    assert replaced is not reader
    unfinished = batches_of(str(path), 0, 3, 3000, ["q"], PLAIN, 10)
    next(unfinished)
    unfinished.close()
    assert not replaced.is_alive()
    assert rows_of(path) == 3000


def test_a_process_that_a_file_left_larger_reads_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workbooks are read by one process after the other, or by the same one, where it gave back what it took."""
    book = honest(tmp_path / "a.xlsx", 20)
    workbook_rows(book)
    reader = foreign._IDLE[-1]
    workbook_rows(book)
    assert foreign._IDLE[-1] is reader
    program = Path(foreign.__file__).read_text(encoding="utf-8")
    assert program.count("MAX_GROWTH = 64 << 20\n") == 1
    (tmp_path / "program.py").write_text(program.replace("= 64 << 20", "= -1 << 30"), encoding="utf-8")
    monkeypatch.setattr(foreign, "__file__", str(tmp_path / "program.py"))
    foreign._end_all()
    for _ in range(2):
        assert len(workbook_rows(book) or []) == 21
        assert foreign._IDLE == []


def test_a_process_that_is_used_again_reads_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that has moved to another folder names its files from there."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        parquet(Path("a.parquet"), 300)
        assert rows_of(Path("a.parquet")) == 300


def test_a_parquet_file_in_the_limits_of_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks for more memory or time than a file of its size may is refused, and a missing file is missing."""
    path = parquet(tmp_path / "a.parquet", 3000)
    monkeypatch.setattr(foreign, "limits_of", lambda size, cells=0: (1 << 20, 2))
    foreign._end_all()
    with pytest.raises(InvalidInput):
        rows_of(path)
    monkeypatch.undo()
    monkeypatch.setattr("ldpopt_survey.datafiles.pieces.MAX_ROWS_PER_BYTE", 0)
    with pytest.raises(InvalidInput, match="more rows than the 0 that fit in a file of its size"):
        rows_of(path)
    with pytest.raises(FileNotFoundError):
        names_of(tmp_path / "none.parquet")


def test_a_forked_process_has_readers_of_its_own(tmp_path: Path) -> None:
    """Two processes never read the answers to each other's requests."""
    path = parquet(tmp_path / "a.parquet", 3000)
    rows_of(path)
    number = os.fork()
    if number == 0:
        os._exit(int(rows_of(path) != 3000 or foreign._IDLE == foreign._OF_THE_PARENT))
    assert rows_of(path) == 3000
    assert os.waitpid(number, 0)[1] == 0
