import csv
import io
import json

import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.reports.page import FORMATS, ResultTable

MADE = ResultTable(
    "Démo <表>",
    ("answer", "share", "p", "n"),
    (("=1+1", 1 / 3, 1e-9, 10), ("nö|x\\", 0.5, 0.25, 3), ("日本 & co", None, float("nan"), 4)),
    ("share",),
    ("A note.",),
)


def test_csv_json_and_excel_hold_every_digit():
    """Read back, the numbers are the same numbers, and text is text."""
    rows = list(csv.reader(io.StringIO(MADE.in_format("csv").decode())))
    assert float(rows[1][1]) == 1 / 3
    assert rows[3][:2] == ["日本 & co", ""]
    assert rows[1][0] == "'=1+1"  # a spreadsheet does not compute it
    said = json.loads(MADE.in_format("json"))
    assert said["rows"][0]["share"] == 1 / 3
    assert said["rows"][2]["p"] is None
    for engine in ("openpyxl", "calamine"):
        frame = pd.read_excel(io.BytesIO(MADE.in_format("xlsx")), engine=engine)
        assert frame["share"].iloc[0] == 1 / 3
        assert frame["answer"].tolist() == ["=1+1", "nö|x\\", "日本 & co"]


def test_displayed_numbers_are_rounded_once():
    """Text, Markdown and HTML show the same cells."""
    for name in ("text", "md", "html"):
        shown = MADE.in_format(name).decode()
        assert "33.33 %" in shown
        assert "0.0001" in shown
        assert "A note." in shown
    assert "nö\\|x\\\\" in MADE.in_format("md").decode()
    assert "&lt;表&gt;" in MADE.in_format("html").decode()
    assert "<script" not in MADE.in_format("html").decode()


def test_the_same_table_gives_the_same_bytes():
    """No format holds a time or a name of a machine."""
    for name in FORMATS:
        assert MADE.in_format(name) == MADE.in_format(name)


def test_other_formats_are_refused():
    """And rows of another length."""
    with pytest.raises(InvalidInput):
        MADE.in_format("docx")
    with pytest.raises(InvalidInput):
        ResultTable("demo", ("a", "b"), (("x",),))
