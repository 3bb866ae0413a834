"""What stands around the answers in a file: marks around names, and empty rows at the end."""

import re
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from typer.testing import CliRunner

from ldpopt.cli import app
from ldpopt.files.delimited import PLAIN, Dialect
from ldpopt_survey import QuestionSpec, Simulated, SurveySpec, aggregate, make_plan, privatize
from ldpopt_survey.datafiles.columns import profile
from ldpopt_survey.datafiles.pieces import empty_rows_at_end
from ldpopt_survey.plan.reading import Reading

ROWS = ["yes,1", "no,2", "yes,"] * 20


def written(path: Path, names: str, rows: list[str], end: str = "\n", encoding: str = "utf-8") -> Path:
    path.write_bytes("".join(f"{row}{end}" for row in [names, *rows]).encode(encoding))
    return path


@pytest.mark.parametrize(
    ("names", "wanted"),
    [("'vote','age'", ("vote", "age")), ("`vote`,`age`", ("vote", "age")), (" 'vote' , 'age' ", ("vote", "age")),
     ("'vote','it''s'", ("'vote'", "'it''s'")), ("'vote',age", ("'vote'", "age")), ("'90s,age'", ("'90s", "age'")),
     ("'vote',`age`", ("'vote'", "`age`")), ("'',age", ("''", "age"))],
)  # fmt: skip
def test_marks_around_all_names_are_no_part_of_them(tmp_path: Path, names: str, wanted: tuple[str, str]) -> None:
    """They are taken off where they stand around every name, in all commands; else they are letters."""
    path = written(tmp_path / "a.csv", names, ROWS)
    assert tuple(column.name for column in profile(path).columns) == wanted
    plan = make_plan(SurveySpec("s", (QuestionSpec(wanted[0], ("no", "yes")),)), {wanted[0]: np.eye(2) * 0.5 + 0.25})
    assert privatize(plan, path, tmp_path / "r.csv", Simulated(1)).rows == len(ROWS)


TAILS = {
    "none": ([], 0),
    "delimiters": ([",", ","], 2),
    "blanks and delimiters": ([" , \t"] * 3, 3),
    "an empty line": (["", ","], 1),
    "quoted": (['"",""'], 0),
    "one in the middle": ([",", "no,1"], 0),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", TAILS)
def test_empty_rows_at_the_end_are_nobody_and_counted(tmp_path: Path, tail: str, end: str, encoding: str) -> None:
    """They are left out everywhere, by the number that is said; a quoted empty cell is somebody's answer."""
    rows, empty = TAILS[tail]
    path = written(tmp_path / "a.csv", "vote,age", ROWS + rows, end, encoding)
    dialect = PLAIN if encoding == "utf-8" else Dialect(encoding="utf-16-le")
    assert empty_rows_at_end(path, dialect) == empty
    found = profile(path)
    people = len(ROWS) + sum(bool(row) for row in rows) - empty
    assert (found.rows, found.empty_rows) == (people, empty)


def test_a_single_column_has_no_empty_rows_at_its_end(tmp_path: Path) -> None:
    """An empty line is all that a person without an answer has there."""
    path = written(tmp_path / "a.csv", "vote", ["yes", "no", "", ""])
    assert empty_rows_at_end(path) == 0
    assert profile(path).rows == 4


def test_workbooks_have_the_same_rule(tmp_path: Path) -> None:
    """Formatted cells below the answers, of blanks, are nobody."""
    book = openpyxl.Workbook()
    for row in (["vote", "age"], *([["yes", 1], ["no", 2]] * 20), [None, " "], [" ", ""]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    found = profile(tmp_path / "a.xlsx")
    assert (found.rows, found.empty_rows) == (40, 2)
    plan = make_plan(SurveySpec("s", (QuestionSpec("vote", ("no", "yes")),)), {"vote": np.eye(2) * 0.5 + 0.25})
    assert privatize(plan, tmp_path / "a.xlsx", tmp_path / "r.csv", Simulated(1)).rows == 40
    assert aggregate(plan, tmp_path / "r.csv").rows == 40


def test_the_commands_report_empty_rows(tmp_path: Path, monkeypatch) -> None:
    """`survey new` and `survey privatize` print how many rows they leave out; the reports have the others."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.csv", "vote,age", ROWS + [","] * 2)
    spec = SurveySpec("s", (QuestionSpec("vote", ("no", "yes"), reading=Reading(missing_answers="left out")),))
    Path("plan.json").write_text(make_plan(spec, {"vote": np.eye(2) * 0.5 + 0.25}).to_json())
    made = CliRunner().invoke(app, ["survey", "new", "a.csv", "--question", "vote", "--yes"])
    assert made.exit_code == 0, made.output
    assert re.search("60 rows.*\n.*2 empty rows at the end: nobody, and left out", made.output)
    done = CliRunner().invoke(app, ["survey", "privatize", "plan.json", "a.csv", "-o", "r.csv", "--simulate", "1"])
    assert done.exit_code == 0, done.output
    assert "60 reports" in done.output
    assert "2 empty rows at the end of files: nobody, and left out" in done.output
    again = ["survey", "privatize", "plan.json", "a.csv", "-o", "r.csv", "--simulate", "2"]
    refused = CliRunner().invoke(app, again)
    assert refused.exit_code != 0
    assert "--force" in refused.output
    assert CliRunner().invoke(app, [*again, "--force"]).exit_code == 0
