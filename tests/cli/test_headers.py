"""A file's header is not shown by any message: without a header, its first line is somebody's answers."""

import pytest

from ldpopt.cli import app
from ldpopt.errors import InvalidInput
from ldpopt.files.table import column_shown, lacking_column
from ldpopt.io import read_microdata, read_pair
from ldpopt_studio.processes import compute_outcome

CANARY = "ZQXSECRET"
FILES = {
    "two.csv": f"{CANARY},yes\n1,2\n2,3\n",
    "three.csv": f"{CANARY},yes,{CANARY}2\nno,1,2\nmaybe,x,3\n",
    "long.csv": f"{CANARY},yes,b\n" + "".join(f"{n},{n % 3},{n}.5\n" for n in range(60)),
    "one.csv": f"{CANARY},yes,b\n1,2,3\n1,2,4\n",
    "same.csv": f"{CANARY},{CANARY}\n1,2\n",
    "pair.json": f'{{"p0": [1], "{CANARY}": [2]}}',
}
LINES = [
    *(("design", file, "--epsilon", "1") for file in FILES),
    *(("frontier", file, "--epsilon", "1") for file in FILES),
    *(("studio", file, "--no-browser") for file in FILES),
    *(("design", file, "--epsilon", "1", "--columns", "p,q") for file in FILES),
    *(("design", file, "--epsilon", "1", "--counts", "--columns", "p,q") for file in FILES),
    *(("design", file, "--epsilon", "1", "--answer", "p", "--group", "q") for file in FILES),
    *(("design", file, "--epsilon", "1", "--answer", "yes", "--group", "yes") for file in FILES),
    *(("design", file, "--epsilon", "1", "--answer", "b", "--group", "yes", "--bins", "3") for file in FILES),
    *(("survey", "privatize", "plan.json", file, "-o", "out.csv") for file in FILES if file.endswith("csv")),
    *(("survey", "aggregate", "plan.json", file, "--unlabelled") for file in FILES if file.endswith("csv")),
    *(("survey", "enter", "plan.json", file) for file in FILES if file.endswith("csv")),
    *(("survey", "invitations", "plan.json", "--frame", file) for file in FILES if file.endswith("csv")),
    *(("survey", "new", file, "--question", "b", "--carry", "p") for file in FILES if file.endswith("csv")),
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files, and a plan that fits none of them."""
    from ldpopt_survey import QuestionSpec, SurveySpec, make_plan

    plan = make_plan(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_refusal_of_a_command_shows_a_header(files, monkeypatch):
    """Whatever a command refuses of these files, it names columns as the user did, or by their place."""
    from typer.testing import CliRunner

    monkeypatch.setattr("ldpopt_survey.server.web.serve", lambda *_, **__: None)
    codes = []
    for line in LINES:
        made = CliRunner().invoke(app, list(line))
        assert made.exception is None or isinstance(made.exception, SystemExit), (line, made.exception)
        assert CANARY not in made.stderr, (line, made.stderr)
        codes.append(made.exit_code)
    assert codes.count(2) > len(LINES) // 2


def test_no_error_of_a_reader_shows_a_header(files):
    """By position and by name, of tables and of lines for each respondent."""
    tried = 0
    for name in FILES:
        for columns in (None, (0, 1), (1, 2), ("p0", "yes")):
            try:
                read_pair(name, columns)
            except InvalidInput as error:
                tried += 1
                assert CANARY not in str(error)
        for answer, group in ((0, 1), (1, 0), (2, 2), ("yes", 0), (0, "yes"), ("p", 1)):
            for bins in (None, 2):
                try:
                    read_microdata(name, answer, group, bins)
                except InvalidInput as error:
                    tried += 1
                    assert CANARY not in str(error)
    assert tried > 50


def test_no_view_of_the_studio_shows_a_header_that_it_refuses():
    """The page names the columns of a file only where one chooses among them."""
    import base64

    for name, content in FILES.items():
        data = base64.b64encode(content.encode()).decode()
        for more in ({}, {"columns": ["p", "q"]}, {"answer": "p", "group": "q"}):
            said = compute_outcome("load:view", {"name": name, "data": data, **more})
            assert CANARY not in repr({key: value for key, value in said.items() if key.startswith("error")})


def test_columns_are_named_as_the_caller_names_them():
    """A word is the caller's own, a place is counted from one."""
    assert (column_shown("age"), column_shown(0)) == ("'age'", "1")
    assert str(lacking_column("a.csv", "age", [CANARY])) == "a.csv: expected a column 'age', got 1 other"
    assert str(lacking_column("a.csv", "age", [])) == "a.csv: expected a column 'age', got no names in its first line"
