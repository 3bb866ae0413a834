"""Every command and subcommand runs, and needs no more than what README's first command installs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cli import every_command
from typer.main import get_command

from ldpopt.cli import app

ROOT = Path(__file__).resolve().parents[2]


def test_every_command_is_among_the_steps():
    """No command is left out: the steps name all that the program has."""
    all_of_them = set(every_command.commands(get_command(app)))
    assert {("survey", "privatize"), ("demo",)} <= all_of_them
    for name in all_of_them:
        assert any(step[: len(name)] == name for step in every_command.STEPS), name


OPTIONAL = {"dask", "distributed"}
"""What a command may ask for beyond the core, and says so."""


def needed(*extras: str) -> set[str]:
    """The distributions that the project names for the library, and for some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    return {re.split(r"[<>=!~\[; ]", one)[0].lower() for one in named}


BEYOND = {
    "polars", "dask", "distributed", "statsmodels", "mpmath", "autodp", "dp_accounting", "pytest",
    "hypothesis", "qif", "sphinx", "starlette", "uvicorn", "prometheus_client", "psycopg", "sklearn",
}  # fmt: skip
"""What tests and other extras install."""

OF_SURVEYS = {"pyarrow", "cryptography", "python_calamine", "fpdf", "jinja2", "formulaic", "pandas"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("hidden", "library"),
    [
        pytest.param(BEYOND, False, marks=pytest.mark.full, id="with the extra survey"),
        pytest.param(BEYOND | OF_SURVEYS, True, id="library"),
    ],
)
def test_the_commands_import_nothing_that_is_not_installed(tmp_path, hidden, library):
    """With all hidden that an installation does not bring, every command of it still runs."""
    assert {"pyarrow", "cryptography", "jinja2"} <= needed("survey")
    assert {name.replace("_", "-") for name in OF_SURVEYS} & needed() == set()
    script = (
        "import importlib.abc, sys\n"
        "class Hidden(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in HIDDEN:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        f"HIDDEN = {hidden!r}\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "import every_command\n"
        # It takes ten seconds, and runs in tests/cli/test_demo.py and, where nothing else is installed, in .ci/run.
        "every_command.STEPS = [step for step in every_command.STEPS if step[0] != 'demo']\n"
        f"sys.exit(every_command.main({library}))\n"
    )
    path = os.pathsep.join([str(Path(every_command.__file__).parent), *filter(None, sys.path)])
    made = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert made.returncode == 0, made.stdout + made.stderr


def test_a_command_of_an_application_names_the_extra_that_it_needs(tmp_path, monkeypatch):
    """Without the packages of the extra, and where nothing is registered, `ldpopt survey` says what to install."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ldpopt.extras.find_spec", lambda name: None)
    code, said = every_command.here(("survey", "new", "people.csv"))
    assert (code, said.count("\n")) == (1, 1)
    assert "python -m pip install 'ldpopt[survey]'" in said
    monkeypatch.setattr("ldpopt.cli.outputs._registered", lambda: {})
    for command in ("survey", "studio"):
        code, said = every_command.here((command,))
        assert (code, said.count("\n")) == (1, 1)
        assert f"ldpopt {command} is not installed: python -m pip install 'ldpopt[{command}]'" in said


def test_readme_installs_the_package_alone():
    """README's first command installs no extra, so the environment of the tests above is its own."""
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert re.search(r"pip install --quiet \. ", commands[0])
    script = (ROOT / ".ci" / "run").read_text("utf-8") if (ROOT / ".ci" / "run").exists() else "every_command.py"
    assert "every_command.py" in script


@pytest.mark.parametrize("arguments", [("--dask",), ("--scheduler", "tcp://127.0.0.1:1")])
def test_a_missing_extra_is_one_line(tmp_path, monkeypatch, arguments):
    """Where Dask is not installed the line says what to install; nothing is written, no key either."""
    monkeypatch.chdir(tmp_path)
    every_command.write_inputs(tmp_path)
    assert every_command.here(("survey", "plan", "survey.toml"))[0] == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "distributed", None)
    privatize = ("survey", "privatize", "plan.json", "people.csv", "-o", "r", "--key", "k", "--new-key")
    code, said = every_command.here((*privatize, *arguments))
    assert code == 1
    assert "ldpopt[dask]" in said
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "lacking"), [((), "uvicorn"), (("--db", "postgresql://127.0.0.1:1/reports"), "psycopg")]
)
def test_a_collector_without_its_extra_is_one_line(tmp_path, monkeypatch, arguments, lacking):
    """Where the server's packages are not installed the line says what to install; nothing is written."""
    monkeypatch.chdir(tmp_path)
    every_command.write_inputs(tmp_path)
    assert every_command.here(("survey", "plan", "survey.toml"))[0] == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setattr("ldpopt.extras.find_spec", lambda name: None if name == lacking else name)
    code, said = every_command.here(("survey", "collect", "plan.json", *arguments))
    assert code == 1
    assert "ldpopt[collect]" in said
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_refused_run_leaves_no_new_key(tmp_path, monkeypatch):
    """With --new-key the same command can be given again after what was wrong is put right."""
    monkeypatch.chdir(tmp_path)
    every_command.write_inputs(tmp_path)
    assert every_command.here(("survey", "plan", "survey.toml"))[0] == 0
    privatize = ("survey", "privatize", "plan.json", "more.csv", "-o", "r.csv", "--key", "k", "--new-key")
    assert every_command.here(privatize)[0] == 2
    assert not (tmp_path / "k").exists()
    (tmp_path / "people.csv").rename(tmp_path / "more.csv")
    assert every_command.here(privatize)[0] == 0
    assert (tmp_path / "k").exists()
