"""Files as people have them are read, and what is wrong with them is one line that quotes no value."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.files.delimited import Dialect, sniff
from ldpopt_survey.datafiles.columns import profile, to_numbers
from ldpopt_survey.datafiles.pieces import batches_of, names_of, ranges_of

ROWS = [("männlich", "1,80", 3), ("weiblich", "1,65", 4), ("divers", "", 5)]


def rows_of(path: Path, dialect: Dialect | None = None, rows: int = 1 << 20, reach: int = 1 << 25) -> list[tuple]:
    dialect = dialect or Dialect()
    names = names_of(path, dialect)
    found = []
    for start, stop, count in ranges_of(path, rows, reach, dialect):
        for batch in batches_of(str(path), start, stop, count, names, dialect, 2):
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_writing_is_found_and_read(tmp_path: Path, encoding: str, delimiter: str, end: str) -> None:
    """Delimiter, encoding and decimal comma are found, and the cells come out the same whatever they were."""
    path = tmp_path / "a.csv"
    quoted = [(a, f'"{b}"' if delimiter == "," and b else b, c) for a, b, c in ROWS]
    lines = [delimiter.join(map(str, row)) for row in [("Geschlecht", "Größe", "n"), *quoted]]
    path.write_bytes("".join(line + end for line in lines).encode(encoding))
    found = sniff(path)
    assert found == Dialect(delimiter, "cp1252" if encoding == "cp1252" else "utf-8", "." if delimiter == "," else ",")
    comma = "1,80" if delimiter == "," else "1.80"
    assert rows_of(path, found)[0] == ("männlich", comma, "3")
    assert names_of(path, found) == ["Geschlecht", "Größe", "n"]
    assert rows_of(path, found, reach=30) == rows_of(path, found)


def test_a_dialect_is_one_in_which_files_can_be_cut() -> None:
    """Encodings in which a line end may be half of a letter are refused; one-byte and UTF-8 ones are taken."""
    for name in (
        "utf-8",
        "latin-1",
        "cp1250",
        "cp1251",
        "koi8-r",
        "mac-roman",
        "cp932",
        "gb18030",
        "euc-kr",
        "utf-16-le",
        "utf-16-be",
    ):
        Dialect(encoding=name)
    for name in ("utf-16", "utf-32", "utf-7", "rot13", "base64", "cp037", "iso2022_jp", "hz", "nonsense", "", None, 3):
        with pytest.raises(InvalidInput, match="encoding"):
            Dialect(encoding=name)
    for fields in ({"delimiter": ":"}, {"delimiter": ""}, {"delimiter": []}, {"decimal": "'"}):
        with pytest.raises(InvalidInput):
            Dialect(**fields)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_in_pieces(tmp_path: Path, encoding: str) -> None:
    """Excel's "Unicode text" is UTF-16: ranges are cut at its line ends, whose bytes also stand inside of letters."""
    path = tmp_path / "a.txt"
    rows = [("größer", "1"), ("ĊĊ", "2"), ('"x\ny"', "3"), ("∢Ģ", "4")]
    text = "\ufeffa\tb\r\n" + "".join(f"{a}\t{b}\r\n" for a, b in rows)
    path.write_bytes(text.encode(encoding))
    found = sniff(path)
    assert found == Dialect("\t", encoding)
    wanted = [(a.strip('"'), b) for a, b in rows]
    assert rows_of(path, found) == wanted == rows_of(path, found, reach=11)
    assert profile(path).column("a").is_distinct


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["id,größer\r\n1,ja\r\n2,nein\r\n", "編號,一一\n1,是\n2,否\n", "a,Ā\n1,ĀĀ\n2,x\n"])
def test_utf_16_without_its_mark_is_found(tmp_path: Path, encoding: str, text: str) -> None:
    """UTF-16 without the mark is recognized; a UTF-8 file with one zero byte, or UTF-32, is not taken for it."""
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    found = sniff(tmp_path / "a.csv")
    assert found == Dialect(",", encoding)
    assert rows_of(tmp_path / "a.csv", found) == [tuple(line.split(",")) for line in text.split()[1:]]
    for content in (text.encode() + b"\0", text.encode("utf-32-le"), text.encode()):
        (tmp_path / "b.csv").write_bytes(content)
        assert not sniff(tmp_path / "b.csv").wide


def test_lists_of_codes_are_no_numbers_with_decimal_commas(tmp_path: Path) -> None:
    """A list 1,2,3 shows that commas separate entries, so 1,2 is not read as 1.2; beside decimals the user decides."""
    path = tmp_path / "a.csv"
    path.write_text("id;topics;x\n1;1,2;5\n2;1,2,3;6\n3;2;7\n4;1, 3;8\n")
    assert sniff(path).decimal == "."
    assert [row[1] for row in rows_of(path, sniff(path))] == ["1,2", "1,2,3", "2", "1, 3"]
    path.write_text("id;topics;x\n1;1,2;5,5\n2;1,2,3;6\n3;2;7\n")
    with pytest.raises(InvalidInput, match=r"column 2 has lists of codes .* column 3 numbers .*--decimal \. "):
        sniff(path)
    assert (sniff(path, decimal=".").decimal, sniff(path, decimal=",").decimal) == (".", ",")
    path.write_text("id;topics;x\n1;1,2,3;5,5\n2;2;6\n3;2;7\n")  # no cell of the lists could be a number
    assert sniff(path).decimal == ","


def test_excel(tmp_path: Path) -> None:
    """The first sheet: columns of numbers as numbers, others as text, empty cells missing."""
    book = openpyxl.Workbook()
    for row in [["q", "x", None], ["ja", 1.5, "a"], [2, 2, None], ["ß", None, True]]:
        book.active.append(row)
    book.create_sheet("other").append(["secret"])
    book.save(tmp_path / "a.xlsx")
    assert names_of(tmp_path / "a.xlsx") == ["q", "x", "column 3"]
    assert rows_of(tmp_path / "a.xlsx") == [("ja", 1.5, "a"), ("2", 2.0, None), ("ß", None, "true")]


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_spss_and_stata(tmp_path: Path, suffix: str) -> None:
    """Value labels take the place of codes, declared missing values are missing, and the wording is kept."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"q": [1.0, 2.0, 9.0, np.nan], "t": ["a", "é", "", "b"], "x": [1.5, 2, 3, 4]})
    path, labels = tmp_path / f"a{suffix}", {"q": {1: "Ja", 2: "Nein", 9: "weiß nicht"}}
    wording = ["Rauchen Sie?", "", ""]
    if suffix == ".sav":
        pyreadstat.write_sav(
            frame, str(path), column_labels=wording, variable_value_labels=labels, missing_ranges={"q": [9]}
        )
    else:
        pyreadstat.write_dta(frame, str(path), column_labels=wording, variable_value_labels=labels)
    last = None if suffix == ".sav" else "weiß nicht"
    wanted = [("Ja", "a", 1.5), ("Nein", "é", 2.0), (last, None, 3.0), (None, "b", 4.0)]
    assert rows_of(path) == wanted
    assert rows_of(path, rows=3) == wanted
    assert profile(path).column("q").wording == "Rauchen Sie?"


def test_a_profile_counts_values_and_empty_cells(tmp_path: Path) -> None:
    """Values, empty cells, numbers and words, the same from text and from Parquet."""
    columns = {
        "q": ["a", "b", None, "a"],
        "x": [1.5, 2.0, None, -9.0],
        "k": [3, 1, 2, 4],
        "l": [[1.5], [2.5], [3.5], []],
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=3)
    (tmp_path / "a.csv").write_text("q;x;k\na;1,5;3\nb;2;1\n;;2\na;-9;4\n")
    for path in (tmp_path / "a.parquet", tmp_path / "a.csv"):
        found = profile(path)
        assert found.rows == 4
        assert found.column("q").values == Counter(a=2, b=1)
        assert (found.column("q").empty, found.column("q").words) == (1, Counter(a=2, b=1))
        x = found.column("x")
        assert (x.numeric, x.empty, x.has_only_integers) == (3, 1, False)
        assert sorted(x.numbers) == [-9.0, 1.5, 2.0]
        assert found.column("k").is_distinct
        assert not found.column("q").is_distinct
    assert not profile(tmp_path / "a.parquet").column("l").has_scalars
    pq.write_table(pa.table({"l": [["a", "b"], ["b"], [], None]}), tmp_path / "a.parquet")
    assert profile(tmp_path / "a.parquet").column("l").values == {"a;b": 1, "b": 1}


@pytest.mark.parametrize(
    "suffix", [".csv", ".parquet", ".xlsx", ".sav", ".dta", ".por", ".sas7bdat", ".txt", ".doc", ""]
)
@pytest.mark.parametrize(
    "content", [b"", b"q", b"q\n", b"\n\n", b"secret" * 50, b"PK\x03\x04secret", b'"secret\n1\n', b"\0" * 99]
)
def test_junk_is_one_line_that_quotes_nothing(tmp_path: Path, suffix: str, content: bytes) -> None:
    """Whatever a file is called and holds: `InvalidInput`, in which nothing of it stands."""
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        profile(path)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None or "secret" not in str(caught.value.__context__)


def test_headers_without_rows_and_rows_of_other_widths(tmp_path: Path) -> None:
    """Only a header, a line too long, and no header: refused."""
    for content in ("a;b\n", "a;b\n1;2\n1;2;3\n", "1;2\n3;4\n", "3,5\n2,5\n"):
        (tmp_path / "a.csv").write_text(content)
        with pytest.raises(InvalidInput):
            profile(tmp_path / "a.csv")


def test_a_row_of_another_width_is_named_by_its_number(tmp_path: Path) -> None:
    """The number is that of the row in the file, for every range; the message shows no cell."""
    lines = ["a;b", *(f"secret;{at}" for at in range(50)), '"two\nlines";2', "secret;secret;secret", "1;2"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    for reach in (1 << 20, 40):
        with pytest.raises(InvalidInput, match=r"expected 2 cells .* got 3 at row 53") as caught:
            rows_of(tmp_path / "a.csv", Dialect(";"), reach=reach)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04" + bytes(50), "zip"),
        (b"SQLite format 3\0" + bytes(50), "SQLite"),
        (b"\xd0\xcf\x11\xe0\xa1", "xls"),
    ],
)
def test_binary_files_read_as_text_are_named_by_type(tmp_path: Path, content: bytes, what: str) -> None:
    """The message states the type of a spreadsheet, an archive or a database that is read as text."""
    (tmp_path / "a.csv").write_bytes(content + b"\nsecret\n")
    with pytest.raises(InvalidInput, match=what) as caught:
        sniff(tmp_path / "a.csv")
    assert "secret" not in str(caught.value)


def test_one_column_and_many(tmp_path: Path) -> None:
    """A file of one column has no delimiter to find; one of 300 is read as well."""
    (tmp_path / "one.csv").write_text("q\n1\n\n2\n")
    assert profile(tmp_path / "one.csv").column("q").empty == 1
    (tmp_path / "many.csv").write_text(";".join(f"q{i}" for i in range(300)) + "\n" + ("1;" * 299 + "2\n") * 20)
    assert len(profile(tmp_path / "many.csv").columns) == 300


@given(st.text(st.sampled_from("0123456789.,eE+-  xn"), max_size=12))
@settings(max_examples=300, deadline=None)
def test_numbers_are_those_of_python_without_its_extras(text: str) -> None:
    """A text is a number where Python's float takes it, underscores, nan and infinities aside."""
    found = to_numbers(pa.array([text])).to_pylist()[0]
    try:
        wanted = float(text)
    except ValueError:
        wanted = None
    assert found == (wanted if wanted is None or np.isfinite(wanted) else None)
