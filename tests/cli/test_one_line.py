"""What goes wrong outside of the program, with disks, files and packages, is one line on standard error too."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt_survey.collect.privatize import privatize_partition
from ldpopt_survey.plan.plan import make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec


@pytest.fixture
def answers(tmp_path):
    """A plan with a carried column, and answers to it."""
    spec = SurveySpec("s", (QuestionSpec("q", (0, 1, 2)),), carry=("stratum",))
    plan = make_plan(spec, {"q": (np.ones((3, 3)) + np.eye(3)) / 4})
    (tmp_path / "plan.json").write_text(plan.to_json())
    (tmp_path / "a.csv").write_text("q,stratum\n0,x\n1,y\n")
    return tmp_path / "a.csv"


@pytest.fixture
def line(run):
    """The one line that a call ends with, and its exit code."""

    def ending(*arguments):
        result = run(*arguments)
        assert isinstance(result.exception, SystemExit), result.exception
        said = result.stderr.strip()
        assert said.startswith("ldpopt: error: ")
        assert "\n" not in said
        assert "SECRET" not in said
        return said.removeprefix("ldpopt: error: "), result.exit_code

    return ending


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("verify other.json", 'an object with "schema": "ldpopt-design", got \'ldpopt-plan\''),
        ("verify broken.json", "valid JSON"),
        ("survey estimate broken.json r.csv", "valid JSON"),
        ("survey estimate plan.json other.json", 'an object with "format": "ldpopt-counts", got \'ldpopt-plan\''),
        ("survey plan folder/survey.toml --out p.json", "a readable file"),
    ],
)
@pytest.mark.usefixtures("answers")
def test_a_file_of_another_kind_is_named(line, call, said):
    """With what it is, where it is one of the package's; a path is named once."""
    Path("other.json").write_bytes(Path("plan.json").read_bytes())
    Path("broken.json").write_text("{")
    message, code = line(*call.split())
    (path,) = (word for word in call.split() if word.startswith(("other", "broken", "folder")))
    assert message.startswith(f"{path}: ")
    assert message.count(path) == 1
    assert said in message
    assert code == 2


def test_survey_alone_shows_its_commands(run):
    """As `ldpopt survey --help`, without an error that says nothing."""
    result = run("survey")
    assert "privatize" in result.stdout
    assert (result.stderr, result.exit_code) == ("", 2)


def privatize(name="a.csv", out="r.csv"):
    return ("survey", "privatize", "plan.json", name, "--out", out)


@pytest.mark.parametrize(("number", "said"), [(errno.ENOSPC, "no space left"), (errno.EROFS, "read-only file system")])
def test_a_disk_that_is_full_or_read_only(answers, line, run, monkeypatch, number, said):
    """The system's word for it, and what is done is kept: the same command ends the work."""

    def refuse(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        message, code = line(*privatize())
    assert said in message
    assert code == 1
    assert run(*privatize()).exit_code == 0
    assert Path("r.csv").exists()


def test_a_folder_that_takes_no_files(answers, line, monkeypatch):
    """A place where nothing can be made is named."""

    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "mkdir", refuse)
    message, code = line(*privatize())
    assert "permission denied" in message
    assert str(answers.parent) in message
    assert code == 1


def test_answers_that_vanish_in_mid_run(answers, line, monkeypatch):
    """A file that is taken away while it is worked on is named."""

    def late(job, index):
        answers.unlink()
        return privatize_partition(job, index)

    monkeypatch.setattr("ldpopt_survey.collect.privatize.privatize_partition", late)
    message, code = line(*privatize())
    assert message == f"{answers}: no such file or directory"
    assert code == 1
    assert not Path("r.csv").exists()


@pytest.mark.parametrize("module", ["pyarrow", "cryptography"])
def test_a_package_that_is_missing(answers, line, monkeypatch, module):
    """The command that installs it is said before anything is begun: no work folder and no key are left."""
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    message, code = line(*privatize())
    assert f"needs the package {module}" in message
    assert message.endswith("pip install 'ldpopt[survey]'")
    assert code == 1
    assert sorted(os.listdir()) == ["a.csv", "plan.json"]


@pytest.mark.parametrize("out", ["r", "r.csv", "r.parquet"])
@pytest.mark.parametrize("where", ["q", "stratum"])
@pytest.mark.parametrize("value", [["SECRET"], {"a": "SECRET"}, b"\xffSECRET"])
def test_columns_that_hold_no_plain_values(answers, line, tmp_path, where, value, out):
    """Lists, records and bytes are refused whatever becomes of the reports, with the column named."""
    table = {"q": ["0", "1"], "stratum": ["x", "y"]} | {where: [value, value]}
    pq.write_table(pa.table(table), tmp_path / "b.parquet")
    message, code = line(*privatize("b.parquet", out))
    assert repr(where) in message
    assert code == 2
    assert sorted(os.listdir()) == ["a.csv", "b.parquet", "plan.json"]


@pytest.mark.parametrize("junk", [b"SECRET", b"PAR1SECRETPAR1", b""])
@pytest.mark.parametrize("command", ["privatize", "aggregate"])
def test_junk_in_place_of_a_parquet_file_is_refused(answers, line, tmp_path, junk, command):
    """A file that is not Parquet is refused by its name."""
    (tmp_path / "junk.parquet").write_bytes(junk)
    message, code = line("survey", command, "plan.json", "junk.parquet", "--out", "out.json")
    assert "junk.parquet" in message
    assert code == 2
