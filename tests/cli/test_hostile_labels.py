"""Names and answers with escapes, formulas, markup and turned letters go through every survey command and `design`."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.full

HOSTILE = [
    "=cmd|'/C calc'!A0",
    "\x1b[2Jgone\x9b31m",
    "<script>alert(1)</script>",
    "@SUM(A1)",
    "a\u202egpj.exe",
    "+1`x`|[y](z)",
]
COLUMN, PUBLIC = "=q<img src=x onerror=alert(1)>|", "-p<b>"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A file of 300 people with hostile answers, and a survey over it."""
    rng = np.random.default_rng(0)
    answers, public = rng.choice(HOSTILE, 300), rng.choice(["=1+1", "<i>"], 300)
    with open(tmp_path / "people.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [(COLUMN, "vote", PUBLIC), *zip(answers, rng.choice(["no", "yes"], 300), public, strict=True)]
        )
    quoted = ", ".join('"' + "".join(f"\\u{ord(c):04x}" for c in one) + '"' for one in HOSTILE)
    name, carried = ("".join(f"\\u{ord(c):04x}" for c in one) for one in (COLUMN, PUBLIC))
    (tmp_path / "survey.toml").write_text(
        f'[survey]\nname = "{name}"\ncarry = ["{carried}"]\n[budget]\nepsilon = 6.0\ndesign = "split"\n'
        f'[[questions]]\nname = "{name}"\ncategories = [{quoted}]\n'
        '[[questions]]\nname = "vote"\ncategories = ["no", "yes"]\n'
    )
    return tmp_path


def clean(folder: Path, said: str) -> None:
    """Nothing steers a terminal; no page or form has the markup; no table has a formula."""
    assert not STEERING.search(said), STEERING.findall(said)
    for path in folder.rglob("*"):
        if path.suffix in (".html", ".md"):
            text = path.read_text("utf-8")
            assert "<script>alert" not in text
            assert "<img src=x" not in text
        if path.name in ("table.csv", "channel.csv"):
            with open(path, newline="", encoding="utf-8") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@")) and not is_number(cell)]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_hostile_labels_are_harmless_in_every_command(run, hostile):
    """Each command works, or refuses in one line; what it prints and writes is harmless."""
    reports = ("plan.json", "r.csv")
    text = (hostile / "survey.toml").read_text("utf-8")
    (hostile / "unprintable.toml").write_text(text.replace('[survey]\nname = "', '[survey]\nname = "\\u202e'))
    commands = [
        ("survey", "plan", "unprintable.toml"),
        ("survey", "plan", "survey.toml"),
        ("survey", "privatize", "plan.json", "people.csv", "-o", "r.csv"),
        ("survey", "consent", "plan.json"),
        ("survey", "aggregate", *reports),
        ("survey", "estimate", *reports),
        ("survey", "estimate", *reports, "--json"),
        ("survey", "report", *reports, "-o", "report.html"),
        ("survey", "table", *reports, COLUMN, "vote", "-o", "table.csv"),
        ("survey", "table", *reports, COLUMN, "vote"),
        ("survey", "describe", *reports, COLUMN, "-o", "table.html"),
        ("survey", "describe", *reports, COLUMN, "-o", "table.md"),
        ("survey", "compare", *reports, COLUMN, "--by", PUBLIC),
        ("survey", "export", "plan.json", "none.db"),
        ("survey", "kit", "plan.json", "-o", "kit"),
        ("survey", "verify", "."),
        ("survey", "new", "people.csv", "-o", "new.toml", "--consent", "new.md", "--name", COLUMN),
        ("design", "people.csv", "--answer", COLUMN, "--group", "vote", "--epsilon", "1", "-o", "channel.csv"),
        ("check", "channel.csv"),
        ("survey", "privatize", "plan.json", f"{COLUMN}.csv", "-o", "s.csv"),
    ]
    worked = []
    for command in commands:
        result = run(*command)
        said = result.stdout + result.stderr
        assert result.exit_code in (0, 1, 2), (command, said)
        assert "Traceback" not in said
        if result.exit_code == 2:
            assert result.stderr.startswith("ldpopt: error: "), command
            assert result.stderr.count("\n") == 1
            print(said)
        else:
            worked.append(command[:2])
        clean(hostile, said)
    assert len(worked) >= 13, worked
