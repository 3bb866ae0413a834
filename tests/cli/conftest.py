"""Run the program in an empty folder, inside this process or as a process of its own."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import chdir

import pytest
from typer.testing import CliRunner

from ldpopt.cli import app


def _runner():
    """A runner that keeps the two outputs apart, as click before 8.2 does only when told to."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The program on a list of arguments, in this process; gives typer's result."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, input=None: _runner().invoke(app, [str(one) for one in arguments], input=input)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder that is made once for the tests of a file: `begun(make)` calls ``make(folder, run)`` the first time.

    It gives a function that copies what was made to where a test works.
    """
    made = {}

    def copies(make):
        if make not in made:
            made[make] = tmp_path_factory.mktemp("begun")
            with chdir(made[make]):
                make(made[make], lambda *arguments: _runner().invoke(app, [str(one) for one in arguments]))
        return lambda place: shutil.copytree(made[make], place, dirs_exist_ok=True)

    return copies


@pytest.fixture
def spawn(tmp_path):
    """The program as a process in `tmp_path`, as a user starts it; gives a `Popen`.

    Ctrl-C reaches it also where the tests run in the background of a shell, which lets it be ignored.
    """

    def start(*arguments, **options):
        return subprocess.Popen(
            [sys.executable, "-m", "ldpopt", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **options,
        )

    return start


@pytest.fixture
def refused(run, tmp_path):
    """Check that arguments are refused as they must be: one line, exit code 2, nothing written; gives the line."""

    def check(*arguments):
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        result = run(*arguments)
        after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("ldpopt: error: ")
        assert result.stderr.count("\n") == 1
        assert after == before
        return result.stderr

    return check
