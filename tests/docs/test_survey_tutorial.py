"""The commands of the survey's tutorial run in order, from a raw file to a report, and print what stands below them."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from ldpopt.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "survey-tutorial.md"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def test_the_commands_of_the_page(tmp_path, monkeypatch):
    """Each ends with exit code 0; the page at the end has both questions and the shares among those who answered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    text = PAGE.read_text("utf-8")
    exec(re.findall(r"^```\{testcode\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0], {})
    steps = [step for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
             for step in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]  # fmt: skip
    assert len(steps) == 5
    for command, shown in steps:
        name, *arguments = shlex.split(command)
        assert name == "ldpopt"
        made = CliRunner().invoke(app, arguments)
        assert made.exit_code == 0, made.output
        assert doctest.OutputChecker().check_output(shown, made.output, FLAGS), made.output
    page = (tmp_path / "report.html").read_text("utf-8")
    for said in ("Raucht", "täglich", "Einkommen", "Among those who answered", "no answer"):
        assert said in page
    assert "not hidden" in (tmp_path / "consent.md").read_text("utf-8")
