"""Two groups from files of any kind: numbers are binned or refused, and answers seen once are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.io import read_microdata, seen_once

ROWS = [("ja", "Köln"), ("nein", "Köln"), ("ja", "Ulm"), ("ja", "Ulm"), ("selten", "Ulm")]


def test_every_kind_of_file_gives_the_same_pair(tmp_path: Path) -> None:
    """Semicolons in Latin-1, tabs, Excel and Parquet hold the same answers as plain CSV."""
    lines = [("Antwort", "Ort"), *ROWS]
    (tmp_path / "a.csv").write_text("".join(",".join(row) + "\n" for row in lines), "utf-8")
    (tmp_path / "b.csv").write_bytes("".join(";".join(row) + "\r\n" for row in lines).encode("latin-1"))
    (tmp_path / "c.tsv").write_text("".join("\t".join(row) + "\n" for row in lines), "utf-8")
    book = openpyxl.Workbook()
    for row in lines:
        book.active.append(row)
    book.save(tmp_path / "d.xlsx")
    pq.write_table(pa.table({"Antwort": [a for a, _ in ROWS], "Ort": [b for _, b in ROWS]}), tmp_path / "e.parquet")
    for path in sorted(tmp_path.iterdir()):
        found = read_microdata(path, "Antwort", "Ort")
        assert (found.labels, found.names) == (("ja", "nein", "selten"), ("Köln", "Ulm"))
        assert found.counts.tolist() == [[1, 1, 0], [2, 0, 1]]
        assert seen_once(found) == ("nein", "selten")


def test_numbers_are_binned_or_refused(tmp_path: Path) -> None:
    """More than 40 different numbers are refused with what to do; bins hold each number from their lower edge on."""
    path = tmp_path / "a.csv"
    values = np.round(np.random.default_rng(1).exponential(1000, 400), 1)
    path.write_text("x,g\n" + "".join(f"{value},{at % 2}\n" for at, value in enumerate(values)))
    with pytest.raises(InvalidInput, match="cut them into bins"):
        read_microdata(path, "x", "g")
    found = read_microdata(path, "x", "g", [500, 2000])
    assert found.labels == ("under 500", "500 to under 2000", "2000 and more")
    wanted = [np.histogram(values[g::2], [0, 500, 2000, 1e9])[0].tolist() for g in (0, 1)]
    assert found.counts.tolist() == wanted
    assert read_microdata(path, "x", "g", 5).counts.sum() == 400
    for bins in ([], [2, 1], [float("nan")], 1, 1000):
        with pytest.raises(InvalidInput, match="bins"):
            read_microdata(path, "x", "g", bins)
    path.write_text("x,g\na,1\n2,2\n")
    with pytest.raises(InvalidInput, match="numbers"):
        read_microdata(path, "x", "g", [1])


def test_an_empty_cell_is_refused_with_its_row(tmp_path: Path) -> None:
    """As in plain CSV."""
    (tmp_path / "a.csv").write_text("x;g\n1;a\n;b\n")
    with pytest.raises(InvalidInput, match="line 3, column 1"):
        read_microdata(tmp_path / "a.csv", "x", "g")


@pytest.mark.parametrize("line", [b"b,y\x8aa,y", b"b\xacy", b"\xff"])
def test_a_broken_line_is_an_error_that_quotes_nothing(tmp_path, line):
    """A line of more or fewer cells in a file that is no UTF-8 ends in `InvalidInput`, without what stands in it."""
    path = tmp_path / "people.csv"
    path.write_bytes(b"vote,party\nsecret,x\n" + line + b"\nsecret,y\n")
    with pytest.raises(InvalidInput) as found:
        read_microdata(path, "vote", "party")
    said = str(found.value)
    assert str(path) in said
    assert "secret" not in said
    assert repr(line.decode("cp1252", "replace")) not in said
