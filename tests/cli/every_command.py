"""Runs every command of the program on small files: in this process, or in an environment where nothing else is.

``python every_command.py`` runs them with the package of this Python and needs nothing but the extra `survey`, and with
``--library`` those that need no extra at all.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SURVEY = """
[survey]
name = "Habits"
respondent = "id"
carry = ["region", "w"]
[[questions]]
name = "smokes"
categories = ["no", "sometimes", "daily"]
epsilon = 1.5
[[questions]]
name = "drinks"
categories = ["no", "yes"]
epsilon = 1.5
"""

ONE_QUESTION = """
[survey]
name = "Drinks"
[[questions]]
name = "drinks"
categories = ["no", "yes"]
epsilon = 1.0
"""

P0, P1 = "0.5,0.3,0.2", "0.2,0.3,0.5"
PAIR = ("--p0", P0, "--p1", P1)

STEPS = [
    ("demo", "--out", "demo"),
    ("design", *PAIR, "--epsilon", "1", "--eta", "0.3", "--save-design", "design.json"),
    ("design", "people.csv", "--answer", "smokes", "--group", "region", "--epsilon", "1", "--out", "people.json"),
    ("verify", "design.json"),
    ("verify", "design.json", "--exact", "--json"),
    ("check", "channel.json"),
    ("check", "channel.json", "--all", "--json"),
    ("frontier", *PAIR, "--epsilon", "0.5,1", "--eta", "0.2,1"),
    ("survey", "new", "people.csv", "-o", "proposed.toml", "--epsilon", "4", "--question", "drinks"),
    ("survey", "plan", "proposed.toml", "-o", "proposed.json"),
    ("survey", "plan", "survey.toml", "-n", "200"),
    ("survey", "consent", "plan.json", "-o", "form.md"),
    ("survey", "privatize", "plan.json", "people.csv", "-o", "reports.csv", "--key", "key", "--new-key"),
    ("survey", "privatize", "plan.json", "people.csv", "-o", "reports.parquet", "--key", "key"),
    ("survey", "privatize", "plan.json", "people.csv", "-o", "simulated.csv", "--simulate", "1"),
    ("survey", "kit", "plan.json"),
    ("survey", "kit", "plan.json", "--out", "elsewhere", "--collector", "https://collect.example.org/"),
    ("survey", "aggregate", "plan.json", "reports.csv", "--pair", "smokes,drinks"),
    ("survey", "aggregate", "plan.json", "reports.parquet", "-o", "again.json", "--workers", "2"),
    ("survey", "estimate", "plan.json", "counts.json"),
    ("survey", "estimate", "plan.json", "reports.parquet", "--json"),
    ("survey", "estimate", "plan.json", "reports.csv", "--weights", "w", "--by", "region", "--variance", "jackknife"),
    ("survey", "estimate", "plan.json", "reports.csv", "--strata", "region", "--where", "w > 1"),
    ("survey", "estimate", "plan.json", "reports.csv", "--out", "estimates.xlsx"),
    ("survey", "table", "plan.json", "reports.csv", "smokes", "drinks"),
    ("survey", "table", "plan.json", "reports.parquet", "smokes", "region", "--percent", "column", "--format", "md"),
    ("survey", "compare", "plan.json", "reports.csv", "--by", "region"),
    ("survey", "regress", "plan.json", "reports.csv", "drinks ~ region"),
    ("survey", "to-r", "plan.json", "reports.csv", "-o", "r", "--variance", "bootstrap", "--replications", "20"),
    ("survey", "describe", "plan.json", "reports.csv", "drinks", "--scores", "0,1", "--population", "1000"),
    ("survey", "report", "plan.json", "reports.csv", "--by", "region", "-o", "regions.html"),
    # The server itself asks for the extra `collect` (tests/survey/server); these do without it.
    ("survey", "invitations", "plan.json", "3", "--db", "collected.db"),
    ("survey", "export", "plan.json", "collected.db", "-o", "collected.parquet"),
    ("survey", "collect", "plan.json", "--db", "collected.db", "--close"),
    ("survey", "aggregate", "plan.json", "collected.db", "-o", "collected.json"),
    ("survey", "plan", "one.toml", "-o", "one.json"),
    ("survey", "paper", "one.json", "--device", "two-dice"),
    ("survey", "paper", "one.json", "--device", "coins", "--tosses", "6", "--paper", "letter", "-o", "coins"),
    ("survey", "enter", "paper/plan.json", "codes.csv", "-o", "letters.csv"),
    ("survey", "estimate", "paper/plan.json", "letters.csv"),
    ("check", "paper/channel-1.json"),
    ("survey", "plan", "survey.toml", "--after", "plan.json", "reports.csv", "-o", "later.json"),
    ("survey", "privatize", "later.json", "people.csv", "-o", "later.csv", "--key", "key"),
    ("survey", "estimate", "later.json", "later.csv", "--wave", "plan.json", "reports.csv"),
    ("survey", "plan", "survey.toml", "-o", "delivery/plan.json"),
    ("survey", "privatize", "delivery/plan.json", "people.csv", "-o", "delivery/reports", "--key", "key"),
    ("survey", "aggregate", "delivery/plan.json", "delivery/reports", "-o", "delivery/counts.json"),
    ("survey", "report", "delivery/plan.json", "delivery/counts.json", "-o", "delivery/report.html"),
    ("survey", "verify", "delivery"),
    # It serves until it is ended and asks for the extra `studio` (tests/studio); what it takes is said without.
    ("studio", "--help"),
]
"""Arguments in an order in which each finds the files that it reads."""


def write_inputs(folder: Path) -> None:
    """The files that a user brings: a survey's questions and the answers of 200 people."""
    rng = random.Random(1)
    people = [
        ",".join((str(i), *map(rng.choice, (("no", "sometimes", "daily"), ("no", "yes"), ("east", "west"), "123"))))
        for i in range(200)
    ]
    (folder / "people.csv").write_text("id,smokes,drinks,region,w\n" + "\n".join(people) + "\n", encoding="utf-8")
    typed = [f"{i},{rng.choice('AB')}" for i in range(1, 41)]
    (folder / "codes.csv").write_text("sheet,drinks\n" + "\n".join(typed) + "\n", encoding="utf-8")
    (folder / "one.toml").write_text(ONE_QUESTION, encoding="utf-8")
    (folder / "delivery").mkdir()
    (folder / "survey.toml").write_text(SURVEY, encoding="utf-8")


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all commands of a typer group, those of its groups after the group's."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name)


def here(arguments: tuple[str, ...]) -> tuple[int, str]:
    """Exit code and output of the program in this process."""
    from typer.testing import CliRunner

    from ldpopt.cli import app

    made = CliRunner().invoke(app, list(arguments))
    return made.exit_code, made.output


APPLICATIONS = ("survey", "studio")


def steps(library: bool) -> list[tuple[str, ...]]:
    """All steps, or those that need neither an application nor a file that one writes."""
    return [step for step in STEPS if not library or (step[0] not in APPLICATIONS and "paper/" not in step[-1])]


def run_every(run: Callable[[tuple[str, ...]], tuple[int, str]], library: bool = False) -> list[str]:
    """What failed of `STEPS`, or of those of the library alone, run in the folder that is the current one."""
    failed = []
    for arguments in steps(library):
        code, said = run(arguments)
        if code:
            failed.append(f"ldpopt {' '.join(arguments)}: exit code {code}\n{said}")
    return failed


def main(library: bool = False) -> int:
    """Run all of them, or those of the library alone, in a folder that is removed afterwards; 1 if one failed."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_inputs(Path(folder))
        failed = run_every(here, library)
        os.chdir(os.path.dirname(folder))
    print("\n".join(failed) or f"{len(steps(library))} commands ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(library="--library" in sys.argv[1:]))
