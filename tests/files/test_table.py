"""A table is rectangular, its cells know their line, and anything else is a named error."""

import csv
import io
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.files.atomic import naming, read_text
from ldpopt.files.table import is_number, parse_table


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


@pytest.mark.parametrize("cell", ["0", "1.", ".5", "-0.25", "+1e-3", "1E5", " 2 ", "00.1", "1e999"])
def test_decimal_numbers_are_recognized(cell):
    """Decimal notation is a number."""
    assert is_number(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "1_000",
        "0x1p3",
        "1,5",
        "1e",
        "e5",
        ".",
        "--1",
        "1 2",
        "٣",
        "½",
        "1d5",
    ],
)
def test_other_spellings_are_no_numbers(cell):
    """Not-a-number, infinities, separators, hexadecimal and foreign digits are not numbers."""
    assert not is_number(cell)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_double_survives_a_file(value):
    """repr of any finite double is a number, read back to the same double."""
    assert parse_table("t", f"{value!r}\n").number(0, 0) == value


@given(st.lists(st.lists(st.text(string.printable + "é", max_size=8), min_size=2, max_size=2), min_size=1, max_size=6))
def test_every_csv_that_python_writes_is_read_back(rows):
    """What csv.writer writes comes back cell by cell, quotes, commas and newlines included."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    assert list(parse_table("t", out.getvalue()).rows) == rows


@given(st.text(alphabet=string.printable + "\ufeff\x00é", max_size=60))
def test_any_text_is_a_table_or_an_error_that_names_the_file(text):
    """Arbitrary text gives a rectangle or an InvalidInput that names the file; nothing else escapes."""
    try:
        table = parse_table("some.csv", text)
    except InvalidInput as error:
        assert str(error).startswith("some.csv: expected ")
    else:
        assert {len(row) for row in table.rows} == {table.width}
        assert len(table.lines) == len(table.rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1\n", "t.csv: expected 2 cells in each line, got 1 at line 2"),
        ("a,b\n\n1,2\n1,2,3\n", "t.csv: expected 2 cells in each line, got 3 at line 4"),
        ('a,b\n1,"2\n', "t.csv: expected comma-separated values, got unexpected end of data at line 2"),
        ('a,b\n1,"2"x\n', "t.csv: expected comma-separated values, got ',' expected after '\"' at line 2"),
        ("\n \n", "t.csv: expected a table, got blank lines"),
        ("a," + "b" * 200_000, "t.csv: expected comma-separated values, got field larger than field limit (131072)"),
    ],
)  # fmt: skip
def test_malformed_tables_are_refused_with_file_and_line(text, message):
    """Ragged rows, open quotes, text after a quote, blank files and huge cells are errors with file and line."""
    with says(message):
        parse_table("t.csv", text)


def test_lines_are_those_of_the_file():
    """Line numbers count blank lines and the lines inside quoted cells."""
    table = parse_table("t", 'a,b\n\n"x\ny",2\n3,4\n')
    assert table.lines == (1, 4, 5)
    with says("t: expected a number, got text at line 4, column 1"):
        table.number(1, 0)


def test_names_positions_and_cells():
    """Columns go by name or position, and what is not there is an error that lists what is."""
    table = parse_table("t", " a ,b\n 1 , \n")
    names = table.names()
    assert names == ("a", "b")
    assert (table.position("b", names), table.position(0, names)) == (1, 0)
    with says("t: expected a column 'c', got 2 others"):
        table.position("c", names)
    with says("t: expected a column 'c', got no names in its first line"):
        table.position("c", ())
    for wrong in (2, -1, True, 1.0, None):
        with says("t: expected a column name, or a position from 0 to 1, got"):
            table.position(wrong, names)
    assert table.text(1, 0) == "1"
    with says("t: expected a value, got an empty cell at line 2, column 2"):
        table.text(1, 1)
    with says("t: expected a finite double, got a larger number at line 1, column 1"):
        parse_table("t", "1e999").number(0, 0)
    with says("t: expected distinct column names, got one of them twice at line 1"):
        parse_table("t", "a,a \n1,2").names()


def test_a_table_is_read_from_a_file_with_any_line_ends(tmp_path):
    """A byte order mark and the line ends of other systems make no difference."""
    for name, raw in {"unix": b"a,b\n1,2\n", "dos": b"\xef\xbb\xbfa,b\r\n1,2\r\n", "mac": b"a,b\r1,2"}.items():
        (tmp_path / name).write_bytes(raw)
        assert parse_table(name, read_text(tmp_path / name)).rows == (["a", "b"], ["1", "2"])


def test_naming_names_a_file_once():
    """The file's name is put before an error that lacks it, and not twice."""
    for text in ("channel: bad", "t.csv: channel: bad"):
        with pytest.raises(InvalidInput, match=r"^t\.csv: channel: bad$"), naming("t.csv"):
            raise InvalidInput(text)
