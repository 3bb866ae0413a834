"""Files of other programs that mean harm: none ends the process that reads them, fills its memory, or keeps it long.

    python experiments/trust/hostile.py [--workbooks 10000] [--others 2000] [--seed 1] [--quick]

Workbooks of some twenty kinds (bytes exchanged, cut, zip entries that lie about their size, unpack to gigabytes or lie
elsewhere, references in every writing, cells without one, entities, deep markup, extreme numbers and dates), then
Parquet files (bytes exchanged, footers that claim rows, nested columns), and files of SPSS and Stata. Each is read as
`ldpopt survey new` and `privatize` read it: columns' names, then all rows. It must be read, or refused in one line that
quotes no cell, by this one process, whose readers together take at most 500 MB, within 2 s of the processor a file.
Lines of up to a gigabyte are read as text. Ends with exit code 1 if anything else happens.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat

from ldpopt.errors import InvalidInput
from ldpopt.files.delimited import PLAIN, sniff
from ldpopt_survey.collect.answers import refuse_nested
from ldpopt_survey.datafiles import foreign
from ldpopt_survey.datafiles.pieces import batches_of, kind_of, names_of, ranges_of

SECONDS, MEGABYTES = 2.0, 500
CANARY = "CANARY"
SHEET = "xl/worksheets/sheet1.xml"


def workbook(rng: random.Random) -> dict[str, bytes]:
    """The entries of one of forty honest workbooks."""
    return dict(_workbook(rng.randrange(40)))


@cache
def _workbook(number: int) -> dict[str, bytes]:
    rng = random.Random(number)
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["q", "x", "day"])
    for number in range(rng.randrange(1, 30)):
        book.active.append([f"{CANARY} {number}", rng.random() * 10 ** rng.randrange(9), "2026-01-31"])
    book.save(content)
    with zipfile.ZipFile(content) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def zipped(entries: dict[str, bytes]) -> bytes:
    """The entries as a zip file."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return made.getvalue()


def spoiled(content: bytes, rng: random.Random) -> bytes:
    """Some bytes exchanged, left out or doubled."""
    bad = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        place = rng.randrange(len(bad))
        change = rng.randrange(4)
        if change == 0:
            bad[place : place + rng.randrange(9)] = b""
        elif change == 1:
            bad[place:place] = bad[place : place + rng.randrange(40)]
        elif change == 2:
            bad[place : place + 4] = rng.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80"])
        else:
            bad[place] = rng.randrange(256)
        bad = bad or bytearray(b"x")
    return bytes(bad)


NUMBERS = ["1e308", "-1e308", "1e999", "nan", "9" * 400, "-0", "2958466", "1e-320", "", "1,5", "0x10", "\u0661"]
REFERENCES = [
    'r="XFD1048576"', "r='XFD1048576'", 'r="xfd1048576"', 'r = "XFD1048576"', 'r="XFD1048577"', 'r="ZZZZZZZ9"',
    'r="A99999999999999999999"', 'r="A0"', 'r="1A"', 'r=""', "", 'x:r="XFD1048576"', 'r="&#88;FD1048576"',
]  # fmt: skip


def cells(rng: random.Random) -> bytes:
    """Rows with extreme references, numbers and types."""
    made = []
    for _ in range(rng.randrange(1, 6)):
        kind = rng.choice(
            ["", ' t="s"', ' t="str"', ' t="b"', ' t="e"', ' t="d"', ' t="inlineStr"', ' t="x"', ' s="99"']
        )
        value = rng.choice([*NUMBERS, "99999999", "-1", "2026-99-99"])
        made.append(f"<c {rng.choice(REFERENCES)}{kind}><v>{value}</v></c>")
    row = rng.choice(["<row>", '<row r="1048576">', '<row r="0">', '<row r="-5">', '<row r="99999999999">'])
    return f"{row}{''.join(made)}</row>".encode()


def hostile_workbook(rng: random.Random) -> tuple[str, bytes]:
    """(kind, content) of a workbook that means harm."""
    entries = workbook(rng)
    sheet, kind = entries[SHEET], rng.choice(KINDS)
    match kind:
        case "bytes":
            return kind, spoiled(zipped(entries), rng)
        case "cut":
            whole = zipped(entries)
            return kind, whole[: rng.randrange(len(whole))]
        case "markup":
            name = rng.choice(list(entries))
            entries[name] = spoiled(entries[name], rng)
        case "cells":
            entries[SHEET] = sheet.replace(b"</sheetData>", cells(rng) + b"</sheetData>")
        case "elsewhere":
            name = rng.choice(["xl/elsewhere.xml", "../sheet.xml", "xl/worksheets/Sheet1.XML", "/etc/passwd"])
            entries[name] = entries.pop(SHEET).replace(b"</sheetData>", cells(rng) + b"</sheetData>")
            for other in ("[Content_Types].xml", "xl/_rels/workbook.xml.rels"):
                entries[other] = entries[other].replace(SHEET.encode(), name.encode())
        case "dimension":
            size = rng.choice([b"A1:XFD1048576", b"A1:ZZZZZ99999999", b"XFD1:A1", b"", b"A1:A"])
            entries[SHEET] = sheet.replace(b"<dimension ref=", b'<dimension ref="' + size + b'" was=')
        case "shared":
            many = b"<si><t>a</t></si>" * rng.choice([1, 1000, 200_000])
            entries["xl/sharedStrings.xml"] = b'<sst count="99999999999">' + many + b"</sst>"
        case "merged":
            merged = b'<mergeCell ref="A1:XFD1048576"/>' * rng.choice([1, 100, 50_000])
            entries[SHEET] = sheet.replace(b"</sheetData>", b"</sheetData><mergeCells>" + merged + b"</mergeCells>")
        case "entities":
            names = [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)]
            head = f'<!DOCTYPE x [<!ENTITY a0 "{"a" * 99}"><!ENTITY f SYSTEM "file:///etc/passwd">{"".join(names)}]>'
            cell = b'<row><c t="str"><v>&a11;&f;</v></c></row></sheetData>'
            entries[SHEET] = head.encode() + sheet.replace(b"</sheetData>", cell)
        case "deep":
            depth = rng.choice([100, 10_000, 300_000])
            entries[SHEET] = sheet.replace(
                b"</sheetData>", b"<row><c>" + b"<x>" * depth + b"</x>" * depth + b"</sheetData>"
            )
        case "long cell":
            text = b"a" * rng.choice([40_000, 5_000_000])
            entries[SHEET] = sheet.replace(
                b"</sheetData>", b'<row><c t="str"><v>' + text + b"</v></c></row></sheetData>"
            )
        case "many":
            row = b"<row>" + b"<c><v>1</v></c>" * rng.choice([20_000, 300_000]) + b"</row>"
            entries[SHEET] = sheet.replace(b"</sheetData>", row * rng.choice([1, 5]) + b"</sheetData>")
        case "gigabytes":
            # A gigabyte of blanks, packed twice: the reader sees the outer packing alone.
            entries[SHEET] = sheet.replace(b"</sheetData>", b"<!--" + b" " * rng.choice([10**7, 10**8]) + b"-->")
        case "styles":
            style = rng.choice([b"<numFmt numFmtId='164' formatCode='" + b"y" * 10**5 + b"'/>", b"<xf/>" * 10**5])
            entries["xl/styles.xml"] = b"<styleSheet><numFmts>" + style + b"</numFmts></styleSheet>"
        case "sizes":
            whole = bytearray(zipped(entries))
            place = whole.rfind(b"PK\x01\x02", 0, rng.randrange(len(whole) // 2, len(whole)))
            field = rng.choice([8, 10, 16, 20, 24, 28, 30, 42])
            struct.pack_into("<I", whole, max(place, 0) + field, rng.choice([0, 1, 2**31 - 1, 2**32 - 1]))
            return kind, bytes(whole)
        case "another format":
            heads = [
                b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
                b"PK\x03\x04",
                b"PK\x05\x06" + bytes(18),
                b"<?xml?>",
                b"a,b\n1,2\n",
            ]
            return kind, rng.choice(heads) + rng.randbytes(rng.randrange(4000))
        case "left out":
            entries.pop(rng.choice(list(entries)))
        case "twice":
            made = io.BytesIO(zipped(entries))
            with zipfile.ZipFile(made, "a") as archive:
                archive.writestr("xl/workbook2.xml", b"<workbook/>" * 1000)
            return kind, made.getvalue() + zipped(entries)
        case "names":
            entries["xl/workbook.xml"] = entries["xl/workbook.xml"].replace(
                b"</sheets>", b'<sheet name="x" sheetId="9" r:id="rId99"/>' * rng.choice([1, 3000]) + b"</sheets>"
            )
    return kind, zipped(entries)


KINDS = [
    *("bytes", "cut", "markup", "cells", "elsewhere", "dimension", "shared", "merged", "entities", "deep", "long cell"),
    *("many", "gigabytes", "styles", "sizes", "another format", "left out", "twice", "names"),
    *("bytes", "markup", "cells", "sizes") * 6,  # of which no two are alike
]


def parquet(rng: random.Random) -> bytes:
    """A small Parquet file with text, numbers and nested columns."""
    n = rng.randrange(1, 60)
    table = pa.table(
        {
            "q": [f"{CANARY} {one % 4}" for one in range(n)],
            "x": np.arange(n) / 2,
            "l": [[1, 2]] * n,
            "s": [{"a": [{"b": CANARY}]}] * n,
        }
    )
    made = io.BytesIO()
    pq.write_table(table, made, compression=rng.choice(["none", "snappy", "zstd", "gzip"]), row_group_size=20)
    return made.getvalue()


def hostile_parquet(rng: random.Random) -> tuple[str, bytes]:
    """(kind, content) of a Parquet file that means harm."""
    kind = rng.choice(["bytes", "footer", "footer", "equal rows", "deep", "cut", "wide"])
    if kind in ("bytes", "cut", "footer"):
        whole = parquet(rng)
        (length,) = struct.unpack("<I", whole[-8:-4])
        start = len(whole) - 8 - length
        if kind == "footer":
            return kind, whole[:start] + spoiled(whole[start:-8], rng).ljust(length, b"\0")[:length] + whole[-8:]
        return kind, spoiled(whole, rng) if kind == "bytes" else whole[: rng.randrange(len(whole))]
    made = io.BytesIO()
    if kind == "equal rows":
        pq.write_table(pa.table({"q": pa.array(np.zeros(rng.choice([10**6, 10**7]), np.int8))}), made)
    elif kind == "deep":
        value: object = CANARY
        for _ in range(rng.choice([5, 50, 90])):
            value = [value]
        pq.write_table(pa.table({"q": [value]}), made)
    else:
        pq.write_table(pa.table({f"c{n}": [1] for n in range(rng.choice([100, 3000]))}), made)
    return kind, made.getvalue()


def hostile_statistics(rng: random.Random, folder: Path, suffix: str) -> tuple[str, bytes]:
    """(kind, content) of a spoiled file of SPSS or Stata."""
    import pandas as pd

    frame = pd.DataFrame({"q": [1.0, 2.0, 9.0] * 9, "t": [f"{CANARY} {n}" for n in range(27)]})
    path = folder / f"honest{suffix}"
    options = {"row_compress": rng.random() < 0.5} if suffix == ".sav" else {}
    write = pyreadstat.write_sav if suffix == ".sav" else pyreadstat.write_dta
    write(frame, str(path), variable_value_labels={"q": {1: "yes", 2: "no"}}, **options)
    content = path.read_bytes()
    head = spoiled(content[:600], rng) + content[600:] if rng.random() < 0.5 else spoiled(content, rng)
    return suffix, head


def read(path: Path) -> str:
    """Read a file to its end: "read", or "refused"; an error that is none of ours passes."""
    try:
        dialect = sniff(path) if kind_of(path) == "delimited" else PLAIN
        names = names_of(path, dialect)
        refuse_nested(path, names, (), ())
        for start, stop, rows in ranges_of(path, 1 << 20, 1 << 25, dialect):
            for _ in batches_of(str(path), start, stop, rows, names, dialect, 1 << 16):
                pass
    except InvalidInput as error:
        said = str(error)
        return "REFUSED WITH A CELL" if CANARY in said or "\n" in said else "refused"
    return "read"


def judge(path: Path, kind: str, counts: Counter[str], slowest: list[tuple[float, str]], wrong: list[str]) -> None:
    """Read one file, and count what happened."""
    begun = _processor()
    try:
        found = read(path)
        counts[f"{path.suffix} {kind}, {found}"] += 1
        if found not in ("read", "refused"):
            wrong.append(f"{path.suffix} {kind}: {found}")
    except Exception as error:
        wrong.append(f"{path.suffix} {kind}: {type(error).__name__}: {error}")
    slowest.append((_processor() - begun, f"{path.suffix} {kind}"))


def _processor() -> float:
    """Seconds of the processor of this process and of all of its readers, those that wait for another file included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    waiting = [Path(f"/proc/{one._process.pid}/stat").read_text().rsplit(")", 1)[1].split() for one in foreign._IDLE]
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in waiting)
    return time.process_time() + ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def long_lines(folder: Path, size: int) -> str:
    """What is wrong with how text is read of which one line, or one open quote, is so long."""
    for name, begin in (("line", b"q,x\na,"), ("header", b"q,"), ("quote", b'q,x\na,"'), ("cells", b"q,x\na")):
        path = folder / "long.csv"
        with open(path, "wb") as file:
            file.write(begin)
            piece = (b"," if name == "cells" else b"y\n" if name == "quote" else b"y") * (1 << 20)
            for _ in range(-(-size // len(piece))):
                file.write(piece)
        begun = time.process_time()
        found = read(path)
        if found != "refused" or time.process_time() - begun > 60:
            return f"{name}: {found} in {time.process_time() - begun:.1f} s"
    return ""


def main() -> int:
    """Read files that mean harm; exit code 1 if one does any."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workbooks", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=2000)
    parser.add_argument("--line", type=int, default=1 << 30, help="bytes of the longest line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    workbooks, others, line = (25, 25, 1 << 27) if given.quick else (given.workbooks, given.others, given.line)
    rng = random.Random(given.seed)
    makers: list[tuple[int, str, Callable[[Path], tuple[str, bytes]]]] = [
        (workbooks, ".xlsx", lambda _: hostile_workbook(rng)),
        (others, ".parquet", lambda _: hostile_parquet(rng)),
        (others // 2, ".sav", lambda folder: hostile_statistics(rng, folder, ".sav")),
        (others // 2, ".dta", lambda folder: hostile_statistics(rng, folder, ".dta")),
    ]
    counts, wrong = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, suffix, make in makers:
            slowest: list[tuple[float, str]] = []
            for _ in range(number):
                kind, content = make(folder)
                path = folder / f"hostile{suffix}"
                path.write_bytes(content)
                judge(path, kind, counts, slowest, wrong)
                if not len(slowest) % 500:
                    _said(suffix, slowest)
            slow, largest = _said(suffix, slowest)
            if suffix == ".xlsx" and (slow[0] > SECONDS + 0.2 or largest > MEGABYTES):
                wrong.append(f"{suffix}: {slow}, {largest} MB")
        if said := long_lines(folder, line):
            wrong.append(said)
        left = sorted(
            path.name for path in folder.iterdir() if "hostile" not in path.name and "honest" not in path.name
        )
        print(f"lines of {line >> 20} MB: refused; this process at most {_own()} MB; left {left[1:]}")
    print(*(f"{count:7} {what}" for what, count in sorted(counts.items())), *wrong, sep="\n")
    return 1 if wrong else 0


def _said(suffix: str, slowest: list[tuple[float, str]]) -> tuple[tuple[float, str], int]:
    """The slowest file so far, and the most memory of a reader in MB, which are printed."""
    foreign._end_all()  # the memory of those that have ended is known
    slow, largest = max(slowest, default=(0.0, "")), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(
        f"{suffix}: {len(slowest)} files, slowest {slow[0]:.2f} s ({slow[1]}), readers at most {largest} MB", flush=True
    )
    return slow, largest


def _own() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    sys.exit(main())
