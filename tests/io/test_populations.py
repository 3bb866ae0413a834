"""Two populations come out of their files as distributions, or a named error does."""

import csv
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.datasets import load_anes96
from ldpopt.errors import InvalidInput
from ldpopt.io import read_microdata, read_pair


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


@pytest.fixture
def put(tmp_path):
    def write(text, name="p.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


GOOD = [
    ("p.csv", "p0,p1\n0.25,0.5\n0.75,0.5\n", {}, (0, 1), ("p0", "p1")),
    ("p.csv", "p1,p0\n0.5,0.25\n0.5,0.75\n", {}, (0, 1), ("p0", "p1")),
    ("p.csv", "0.25,0.5\n0.75,0.5\n", {}, (0, 1), ("p0", "p1")),
    ("p.csv", "us,them\n0.25,0.5\n0.75,0.5\n", {}, (0, 1), ("us", "them")),
    ("p.csv", "answer,p0,p1\nno,0.25,0.5\nyes,0.75,0.5\n", {}, ("no", "yes"), ("p0", "p1")),
    ("p.csv", "answer,them,us\nno,.5,.25\nyes,.5,.75\n", {"columns": ("us", "them")}, ("no", "yes"), ("us", "them")),
    ("p.csv", ",them,us\nno,.5,.25\nyes,.5,.75\n", {"columns": (2, 1)}, ("no", "yes"), ("us", "them")),
    ("p.csv", "p0,p1,what\n.25,.5,no\n.75,.5,yes\n", {"labels": "what"}, ("no", "yes"), ("p0", "p1")),
    ("p.csv", "7,.25,.5\n8,.75,.5\n", {"columns": (1, 2)}, ("7", "8"), ("p0", "p1")),
    ("p.csv", "x,1992,1996\nno,.25,.5\nyes,.75,.5\n", {"columns": ("1992", "1996")}, ("no", "yes"), ("1992", "1996")),
    ("p.json", '{"p0": [0.25, 0.75], "p1": [0.5, 0.5]}', {}, (0, 1), ("p0", "p1")),
    ("p.txt", ' {"p0": [0.25, 0.75], "p1": [0.5, 0.5], "labels": ["no", 1]}', {}, ("no", 1), ("p0", "p1")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "options", "labels", "names"), GOOD)
def test_the_forms_a_pair_may_take(put, name, text, options, labels, names):
    """Named columns, positions, two bare columns and JSON all give the same two distributions."""
    found = read_pair(put(text, name), **options)
    assert found.p0.tolist() == [0.25, 0.75]
    assert found.p1.tolist() == [0.5, 0.5]
    assert (found.labels, found.names, found.counts) == (labels, names, None)
    assert not found.p0.flags.writeable


@pytest.mark.parametrize(
    ("name", "text"), [("p.csv", "p0,p1\n1,10\n3,10\n"), ("p.json", '{"p0": [1, 3], "p1": [10, 10]}')]
)
def test_counts_are_accepted_only_when_announced(put, name, text):
    """Counts are refused with advice, and divided by their sum when they are announced."""
    path = put(text, name)
    with says(f"{path}: p0: expected entries that sum to 1 within 1e-09 (divide counts by their sum), got 4.0"):
        read_pair(path)
    found = read_pair(path, counts=True)
    assert (found.p0.tolist(), found.p1.tolist()) == ([0.25, 0.75], [0.5, 0.5])
    assert found.counts.tolist() == [[1, 3], [10, 10]]
    assert repr(found) == "Populations('p0' and 'p1', 2 answers, 4 and 20 respondents)"


BAD_PAIRS = [
    ("p.csv", "a,b,c\n1,2,3\n", {}, "expected a column 'p0', got 3 others"),
    ("p.csv", "1,2,3\n1,2,3\n", {}, "expected a column 'p0', got no names in its first line"),
    ("p.csv", "p0,p1\n", {}, "expected a line for each answer, got column names alone"),
    ("p.csv", "p0,p0\n.5,.5\n", {}, "expected distinct column names, got one of them twice at line 1"),
    ("p.csv", "p0,p1\n0.5,NaN\n0.5,1\n", {}, "expected a number, got nan at line 2, column 2"),
    ("p.csv", "p0,p1\n0.5,\n0.5,1\n", {}, "expected a number, got an empty cell at line 2, column 2"),
    ("p.csv", "p0,p1\n-0.5,1\n1.5,0\n", {}, "p0: expected non-negative entries, got -0.5 at entry 0"),
    ("p.csv", "x,p0,p1\na,.5,.5\na,.5,.5\n", {}, "labels: expected 2 distinct labels, got 2, of which 1 differ"),
    ("p.csv", "x,p0,p1\n,.5,.5\na,.5,.5\n", {}, "expected a value, got an empty cell at line 2, column 1"),
    ("p.csv", "p0,p1\n1,1\n", {"columns": ("p0", "p0")}, "columns: expected two different ones, got ('p0', 'p0')"),
    ("p.csv", "p0,p1\n1,1\n", {"columns": ("p0",)}, "columns: expected two column names or positions, got ('p0',)"),
    ("p.csv", "p0,p1\n1,1\n", {"columns": "p0"}, "columns: expected two column names or positions, got 'p0'"),
    ("p.csv", "p0,p1\n1,1\n", {"columns": (0, 2)}, "expected a column name, or a position from 0 to 1, got 2"),
    ("p.csv", "no,3,4\nyes,5,6\n", {"columns": (1, 2), "counts": True},
     "expected column names in the first line, or numbers alone, got a number"),
    ("p.csv", "p0,p1\n0,1\n0,1\n", {"counts": True}, "p0: expected non-negative counts with a positive sum"),
    ("p.csv", "p0,p1\n-1,1\n2,1\n", {"counts": True}, "p0: expected non-negative counts with a positive sum"),
    ("p.json", '{"p0": [1]}', {}, "lists p0 and p1, and maybe labels, got other"),
    ("p.json", "[1]", {}, "populations: expected an object with the lists p0 and p1, and maybe labels, got a list"),
    ("p.json", "{}", {}, "populations: expected an object with the lists p0 and p1, and maybe labels, got nothing"),
    ("p.json", '{"p0": [1], "p1": [1], "q": 1}', {}, "maybe labels, got other entries"),
    ("p.json", '{"p0": [1], "p1": 1}', {}, "p1: expected a list, got int"),
    ("p.json", '{"p0": [1], "p1": ["1"]}', {}, "p1: expected numbers, got '1' at entry 0"),
    ("p.json", '{"p0": [1], "p1": [true]}', {}, "p1: expected numbers, got True at entry 0"),
    ("p.json", '{"p0": [1], "p1": [[1]]}', {}, "p1: expected numbers, got [1] at entry 0"),
    ("p.json", '{"p0": [1], "p1": [0.5, 0.5]}', {}, "p1: expected as many entries as p0, 1, got 2"),
    ("p.json", '{"p0": [1], "p1": [1], "labels": [null]}', {},
     "labels: expected strings or numbers, got None at entry 0"),
    ("p.json", '{"p0": [1], "p1": [1], "labels": ["a", "b"]}', {},
     "labels: expected 1 distinct labels, got 2, of which 2 differ"),
    ("p.json", '{"p0": [], "p1": []}', {}, "p0: expected at least one entry, got an empty array"),
    ("p.json", '{"p0": [1], "p0": [1], "p1": [1]}', {}, "JSON object: expected distinct keys, got 'p0' twice"),
    ("p.json", '{"p0": [1], "p1": [1]}', {"columns": (0, 1)}, "columns: expected none to choose for a JSON file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "options", "message"), BAD_PAIRS)
def test_files_that_hold_no_pair(put, name, text, options, message):
    """Every malformed pair is an error that names the file and what is wrong in it."""
    path = put(text, name)
    with says(f"{path}: ") as caught:
        read_pair(path, **options)
    assert message in str(caught.value)


def test_microdata_is_the_shipped_table(tmp_path):
    """The survey written as one line a respondent gives the same distributions as its table."""
    table = load_anes96()
    with (tmp_path / "m.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "income", "vote"])
        vote = table.labels("vote")
        pairs = zip(table["income"].codes, table["vote"].codes, strict=True)
        writer.writerows([i, income + 1, vote[v]] for i, (income, v) in enumerate(pairs))
    found = read_microdata(tmp_path / "m.csv", "income", "vote")
    p0, p1 = table.conditional("income", given="vote")
    assert found.names == ("Clinton", "Dole")
    assert found.labels == tuple(range(1, 25))
    assert np.array_equal(found.counts, table.counts("income", by="vote"))
    assert np.array_equal(found.p0, p0)
    assert np.array_equal(found.p1, p1)
    assert np.array_equal(read_microdata(tmp_path / "m.csv", 1, 2).p0, p0)


def test_answers_and_groups_are_sorted(put):
    """Text sorts as text, integers as integers, and a category that one group lacks counts zero."""
    found = read_microdata(put("a,g\nz,1\ny,1\nz,10\nx,9\nz,9\n".replace("10", "9")), "a", "g")
    assert found.labels == ("x", "y", "z")
    assert found.names == ("1", "9")
    assert found.counts.tolist() == [[0, 1, 1], [1, 0, 2]]
    found = read_microdata(put("a,g\n10,no\n9,no\n-1,yes\n"), "a", "g")
    assert found.labels == (-1, 9, 10)
    assert repr(found) == "Populations('no' and 'yes', 3 answers, 2 and 1 respondents)"


BAD_MICRODATA = [
    ("a,g\nx,1\ny,1\n", "expected exactly two groups, got 1 at column 'g'"),
    ("a,g\nx,1\ny,2\nx,3\n", "expected exactly two groups, got 3 at column 'g'"),
    (
        "a,g\n" + "".join(f"x,{i}\n" for i in range(9)),
        "two groups, got 9",
    ),
    ("a,g\nx,1\nx,2\n", "expected at least two different answers, got a single answer at column 'a'"),
    ("a,g\nx,1\n,2\n", "expected a value, got an empty cell at line 3, column 1"),
    ("a,g\nx,1\ny, \n", "expected a value, got an empty cell at line 3, column 2"),
    ("a,g\n", "expected a line for each respondent, got column names alone"),
    ("b,g\nx,1\n", "expected a column 'a', got 2 others"),
    ("a,g\nx,1\ny,2,3\n", "expected 2 cells in each line, got 3 at line 3"),
    ("a,g\na,1\ny,2\n", "expected column names in the first line, got one that is also a value"),
    ("a,g\nx,g\ny,2\n", "expected column names in the first line, got one that is also a value"),
]


@pytest.mark.parametrize(("text", "message"), BAD_MICRODATA)
def test_microdata_without_a_pair_are_refused(put, text, message):
    """One group or three, empty cells, ragged lines and missing columns are errors with the file and the line."""
    path = put(text)
    with says(f"{path}: expected") as caught:
        read_microdata(path, "a", "g")
    assert message in str(caught.value)


def test_one_column_cannot_be_both(put):
    """The answer and the group must be different columns."""
    with says("expected two different columns, got column 'a' twice"):
        read_microdata(put("a,g\nx,1\ny,2\n"), "a", 0)


@given(st.lists(st.tuples(st.sampled_from('ab,c"\n'), st.sampled_from("uv")), min_size=1, max_size=30))
def test_microdata_counts_agree_with_a_dictionary(tmp_path_factory, rows):
    """On any table of respondents, the counts are those of a dictionary, or the error is an InvalidInput."""
    path = tmp_path_factory.mktemp("m") / "m.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("answer", "group"), *rows])
    answers, groups = {row[0] for row in rows}, {row[1] for row in rows}
    if len(answers) < 2 or len(groups) < 2 or "\n" in answers:
        with says(f"{path}: expected"):
            read_microdata(path, "answer", "group")
        return
    found = read_microdata(path, "answer", "group")
    for g, name in enumerate(found.names):
        for x, label in enumerate(found.labels):
            assert found.counts[g, x] == sum(row == (label, name) for row in rows)


@given(st.text('{}[],:.01e-"\np labes', max_size=80), st.sampled_from(["csv", "json", "x"]), st.booleans())
def test_any_text_is_a_pair_or_an_error(tmp_path_factory, text, suffix, counts):
    """Arbitrary text gives two distributions or an InvalidInput that names the file; nothing else escapes."""
    path = tmp_path_factory.mktemp("f") / f"p.{suffix}"
    path.write_text(text)
    try:
        found = read_pair(path, counts=counts)
    except InvalidInput as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert abs(found.p0.sum() - 1) < 1e-12


ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
FIELDS = st.sampled_from(["p0", "p1", "labels", "x"])


@given(st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner)))
def test_any_json_is_a_pair_or_an_error(tmp_path_factory, value):
    """Arbitrary JSON values give two distributions or an InvalidInput; nothing else escapes."""
    path = tmp_path_factory.mktemp("f") / "p.json"
    path.write_text(json.dumps(value))
    try:
        found = read_pair(path)
    except InvalidInput as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert len(found.p0) == len(found.p1) == len(found.labels)
