"""Partitions cover every record once, and broken files never show what they hold."""

from __future__ import annotations

import csv
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect import answers
from ldpopt_survey.collect.answers import ANSWER_SUFFIXES, batches, input_files, partitions
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.datafiles import delimited
from ldpopt_survey.datafiles.pieces import names_of
from ldpopt_survey.plan.plan import make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec


def rows_of(path: Path, columns: list[str]) -> list[dict[str, str | None]]:
    made = []
    for part in partitions([path]):
        found = [row for batch in batches(part, columns) for row in batch.to_pylist()]
        assert len(found) == part.rows
        assert part.first_row == len(made) + 1
        made += found
    return made


FIELD = st.text(st.sampled_from('ab",\n\r é'), max_size=6)


@pytest.mark.full
@given(st.lists(st.tuples(FIELD, FIELD), max_size=40), st.sampled_from(["\n", "\r\n"]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_csv_partitions_are_whole_records(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], end: str, unended: bool
) -> None:
    """Cut into the smallest partitions, a CSV file with quotes, commas and newlines reads as a whole."""
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator=end)
        writer.writerow(["x", "y"])
        writer.writerows(rows)
    if unended:
        path.write_bytes(path.read_bytes().removesuffix(end.encode()) + (b"" if rows else end.encode()))
    whole = rows_of(path, ["x", "y"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "PARTITION_BYTES", 7)
        assert rows_of(path, ["x", "y"]) == whole
    assert whole == [{"x": x, "y": y} for x, y in rows]


def test_blank_lines_and_missing_answers(tmp_path: Path) -> None:
    """An empty field is missing, a quoted empty one is text; blank lines count only in a single column."""
    (tmp_path / "two.csv").write_bytes(b'\xef\xbb\xbfx,y\r\n1,\r\n\r\n,""\r\n\r\n')
    assert rows_of(tmp_path / "two.csv", ["x", "y"]) == [{"x": "1", "y": None}, {"x": None, "y": ""}]
    (tmp_path / "one.csv").write_bytes(b"x\n1\n\n07\n")
    assert rows_of(tmp_path / "one.csv", ["x"]) == [{"x": "1"}, {"x": None}, {"x": "07"}]


def test_parquet_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups are joined up to the partition's size, and every row comes once."""
    monkeypatch.setattr(answers, "PARTITION_ROWS", 25)
    pq.write_table(pa.table({"x": range(105), "z": range(105)}), tmp_path / "a.parquet", row_group_size=10)
    parts = partitions([tmp_path / "a.parquet"])
    assert [part.rows for part in parts] == [30, 30, 30, 15]
    assert [row["x"] for row in rows_of(tmp_path / "a.parquet", ["x"])] == list(range(105))


def test_folders_and_lists(tmp_path: Path) -> None:
    """A folder gives its files of the one kind in order, hidden ones aside; rows are numbered through."""
    for name in ("b", "a"):
        (tmp_path / f"{name}.csv").write_text(f"x\n{name}\n")
    (tmp_path / ".c.csv").write_text("x\nhidden\n")
    (tmp_path / "_manifest.json").write_text("{}")
    files = input_files(tmp_path)
    assert [path.name for path in files] == ["a.csv", "b.csv"]
    assert [part.first_row for part in partitions(files)] == [1, 2]
    assert input_files([tmp_path / "b.csv"])[0].name == "b.csv"


def test_mixed_unknown_and_absent_files_are_refused(tmp_path: Path) -> None:
    """Mixed kinds, other kinds, nothing, and absent files are refused."""
    (tmp_path / "a.csv").write_text("x\n1\n")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")
    (tmp_path / "empty").mkdir()
    for given_ in (tmp_path, tmp_path / "empty", tmp_path / "a.xlsx", tmp_path / "no.csv", []):
        with pytest.raises(InvalidInput, match="reports"):
            input_files(given_)
    with pytest.raises(InvalidInput, match="answers: expected files that exist"):
        input_files(tmp_path / "no", ANSWER_SUFFIXES)


@pytest.mark.parametrize(
    "content",
    [
        b"x,y\nsecret,1,2\n",
        b"x,y\nsecret\n",
        b"x,y\nsecret\xff,1\n",
        b'x,y\nsec"ret,1\nb,2\n',
        b'x,y\n"secret,1\nb,2\n',
        b"x,y\rsecret,1\rb,2\r\n",
        b"x,y\nsecret,1\rb,2\n",
        b'x,"y\nsecret,1\n',
        b"x,\xffy\nsecret,1\n",
        b"x,y",
        b"",
    ],
)
def test_a_broken_csv_is_refused_unseen(tmp_path: Path, content: bytes) -> None:
    """The error names the file; neither its text nor anything that it chains quotes an answer."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        rows_of(path, names_of(path))
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in f"{error} {error.args}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert "secret," not in "".join(traceback.format_exception(caught.value)[-1:])


def test_a_broken_parquet_is_refused(tmp_path: Path) -> None:
    """Bytes that are no Parquet file, and one cut short, are `InvalidInput`."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": list(range(10_000))}), path)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:1000], whole[:5000] + whole[6000:]):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="well-formed"):
            rows_of(path, ["x"])


def test_an_open_quote_does_not_read_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quote that never closes ends in an error before memory does."""
    monkeypatch.setattr(answers, "PARTITION_BYTES", 64)
    monkeypatch.setattr(delimited, "MAX_RECORD_BYTES", 256)
    (tmp_path / "a.csv").write_text('x\n"' + "a\n" * 5000)
    with pytest.raises(InvalidInput, match="quote"):
        partitions([tmp_path / "a.csv"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_many_small_files_share_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Ten files are at most three partitions where there may be three, with the rows and the order that they had."""
    monkeypatch.setattr(answers, "MAX_UNSHARED_FILES", 3)
    for file in range(10):
        frame = pd.DataFrame({"a": [f"{file}-{i}" for i in range(file + 1)], "b": "x"})
        path = tmp_path / f"{file}.{kind}"
        frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    (tmp_path / f"5.{kind}").write_text('a,b\n"5-0",x\n') if kind == "csv" else None  # quotes: read by itself
    parts = partitions(input_files(tmp_path))
    assert len(parts) == 3
    assert [len(part.pieces) for part in parts] == [4, 4, 2]
    found = [value for part in parts for batch in batches(part, ["a"]) for value in batch.column("a").to_pylist()]
    assert found == [f"{f}-{i}" for f in range(10) for i in range(1 if (f, kind) == (5, "csv") else f + 1)]
    assert [part.first_row for part in parts] == [1, 11, 1 + sum(part.rows for part in parts[:2])]


def test_a_bad_file_among_many_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are read together, but what is wrong with one is said of that one."""
    monkeypatch.setattr(answers, "MAX_UNSHARED_FILES", 1)
    for file in range(5):
        (tmp_path / f"{file}.csv").write_text("a,b\n1,x\n" if file != 3 else "a,b\n1,x,SECRET\n")
    (part,) = partitions(input_files(tmp_path))
    with pytest.raises(InvalidInput, match=r"3\.csv") as caught:
        list(batches(part, ["a"]))
    assert "SECRET" not in str(caught.value)


def test_files_of_kindred_types_share_a_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A carried column that is narrow in one file and wide in the next becomes one column."""
    monkeypatch.setattr(answers, "MAX_UNSHARED_FILES", 1)
    for file, kind in enumerate(("int32", "int64")):
        pd.DataFrame({"q": [0, 1], "w": np.array([7, 8], kind)}).to_parquet(tmp_path / f"{file}.parquet")
    spec = SurveySpec("s", (QuestionSpec("q", (0, 1)),), carry=("w",))
    plan = make_plan(spec, {"q": [[0.75, 0.25], [0.25, 0.75]]})
    privatize(plan, tmp_path, tmp_path / "out")
    assert pd.read_parquet(tmp_path / "out")["w"].tolist() == [7, 8, 7, 8]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_row_without_answers_is_no_blank_line(tmp_path: Path, end: str, last: bool) -> None:
    """A line of nothing but commas, one character even, is a row; a blank line is none, ended or not."""
    path = tmp_path / "a.csv"
    lines = ["q,r", "0,1", ",", "", "1,0", ","]
    path.write_bytes((end.join(lines) + (end if last else "")).encode())
    assert sum(part.rows for part in partitions([path])) == 4
    found = [
        one for part in partitions([path]) for some in batches(part, ["q"]) for one in some.column("q").to_pylist()
    ]
    assert [str(one or "") for one in found] == ["0", "", "1", ""]
