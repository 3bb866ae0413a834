"""`survey new`, `survey plan` and `survey paper` against the import of cvxpy, whole processes, in one run.

    OMP_NUM_THREADS=1 python experiments/benchmarks/bench_survey_commands.py [--only WORD] [--out FILE]

Each is to take at most three times the processor time (user and system) of ``python -c "import cvxpy"``, which is
measured before every fifth command. The unit of a command is the least of the two measurements before it and of the two
after it, since a machine may be a third slower for minutes. Plans have up to six questions of up to ten answers. Pilots
are even, uneven (Dirichlet) and extreme (one answer of 94 %). Writes `results/survey_commands.csv`, with the
respondents that are printed, so that two runs show whether a plan has changed.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent / "results" / "survey_commands.csv"
PROMISED = 3.0
PER_UNIT = 5
"""So many commands are measured between two imports of cvxpy."""
LIMIT = 180.0
"""Seconds after which a command is ended, and its row says so."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Modules are compiled once, as for users, and not in each process."""

SIZES = {
    "1 of 10": [10],
    "2, 2": [2, 2],
    "3, 5": [3, 5],
    "2, 3, 4, 2": [2, 3, 4, 2],
    "4, 4, 4": [4, 4, 4],
    "6 of 2": [2] * 6,
    "6 of 5": [5] * 6,
    "6 of 10": [10] * 6,
    "10, 8, 6, 4, 3, 2": [10, 8, 6, 4, 3, 2],
}
BUDGETS = {
    "epsilon 0.5": "epsilon = 0.5",
    "epsilon 1": "epsilon = 1.0",
    "epsilon 2": "epsilon = 2.0",
    "epsilon 4": "epsilon = 4.0",
    "eta": "epsilon = 2.0\neta = 0.4",
    "delta": "epsilon = 2.0\ndelta = 1e-6",
    "eta and delta": "epsilon = 2.0\neta = 0.4\ndelta = 1e-6",
    "split": 'epsilon = 2.0\ndesign = "split"',
    "split, eta": 'epsilon = 2.0\neta = 0.4\ndesign = "split"',
    "split, eta and delta": 'epsilon = 2.0\neta = 0.4\ndelta = 1e-6\ndesign = "split"',
    "one at random": 'epsilon = 2.0\ndesign = "one question"',
}
PILOTS = ("even", "uneven", "extreme")


def pilot(kind: str, answers: int, seed: int) -> list[float]:
    """The shares of the answers to a question."""
    if kind == "even":
        return [1 / answers] * answers
    if kind == "uneven":
        return [float(p) for p in np.random.default_rng(seed).dirichlet(np.ones(answers)) * 0.95 + 0.05 / answers]
    return [0.94, *[0.06 / (answers - 1)] * (answers - 1)]


def question(name: str, shares: list[float], more: str = "") -> str:
    """The table of a question."""
    answers = [f"a{number}" for number in range(len(shares))]
    return f'[[questions]]\nname = "{name}"\ncategories = {answers}\npilot = {shares}\n{more}\n'.replace("'", '"')


def described(budget: str, questions: list[str], more: str = "") -> str:
    """A survey.toml."""
    return "\n".join(['[survey]\nname = "bench"', f"[budget]\n{budget}\n{more}", *questions])


def surveys() -> Iterator[tuple[str, str]]:
    """The name and the survey.toml of every case."""
    for size, counts in SIZES.items():
        for label, budget in BUDGETS.items():
            if len(counts) == 1 and label.startswith(("split", "one")):
                continue
            for kind in PILOTS:
                shares = [pilot(kind, count, seed) for seed, count in enumerate(counts)]
                asked = [question(f"q{number}", each) for number, each in enumerate(shares)]
                yield f"{size}; {label}; {kind}", described(budget, asked)
    for label in ("epsilon 1", "epsilon 2", "eta", "delta"):
        for kind in PILOTS:
            power = [
                question(f"q{n}", pilot(kind, k, n), f"alternative = {pilot('uneven', k, n + 9)}\npower = 0.9")
                for n, k in enumerate([4, 10, 3])
            ]
            yield f"power 4, 10, 3; {label}; {kind}", described(BUDGETS[label], power)
            for counts in ([2, 5, 10], [6, 9, 10]):
                skips = [question("q0", pilot(kind, counts[0], 0))]
                skips += [question("q1", pilot(kind, counts[1], 1), 'asked_if = { q0 = ["a0"] }')]
                skips += [question("q2", pilot(kind, counts[2], 2), 'asked_if = { q1 = ["a1", "a2"] }')]
                yield f"skips {counts}; {label}; {kind}", described(BUDGETS[label], skips)
                skips += [question("q3", pilot(kind, 4, 3)), question("q4", pilot(kind, 3, 4))]
                yield f"skips {counts} and 4, 3; {label}; {kind}", described(BUDGETS[label], skips)
            wanted = [question(f"q{n}", pilot(kind, k, n)) for n, k in enumerate([3, 4, 2])]
            pairs = 'together = [["q0", "q1"]]'
            yield f"together 3, 4, 2; {label}; {kind}", described(BUDGETS[label], wanted, pairs)
            yield f"everyone 3, 4, 2; {label}; {kind}", described(BUDGETS[label], wanted, 'everyone = ["q0"]')
        boxes = '[[questions]]\nname = "boxes"\ntype = "any of"\nanswers = ["x", "y", "z", "u"]\n'
        number = '[[questions]]\nname = "age"\ntype = "number"\nlow = 0\nhigh = 100\n'
        yield (
            f"any of, number, choice; {label}",
            described(BUDGETS[label], [boxes, number, question("q", pilot("uneven", 5, 3))]),
        )


def table(folder: Path, counts: list[int], skips: bool, rows: int = 3000) -> Path:
    """A CSV file of answers, where those who did not give the first answer to a question skip the later ones."""
    generator = np.random.default_rng(sum(counts))
    columns = [generator.choice(k, rows, p=pilot("uneven", k, n)) for n, k in enumerate(counts)]
    path, asked = folder / "people.csv", np.ones(rows, dtype=bool)
    cells = []
    for column in columns:
        cells.append([f"a{answer}" if there else "" for answer, there in zip(column, asked, strict=True)])
        asked = asked & (column == 0) if skips else asked
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(f"q{number}" for number in range(len(counts)))
        writer.writerows(zip(*cells, strict=True))
    return path


def processor(command: list[str], folder: Path) -> tuple[float, str]:
    """Processor seconds, user and system, of a whole process, and what it printed."""
    with (folder / "printed").open("w+") as file:
        limited = ["timeout", f"{LIMIT:g}", *command]
        process = subprocess.Popen(limited, stdout=file, stderr=file, cwd=folder, env=ENVIRONMENT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        file.seek(0)
        printed = file.read()
    return used.ru_utime + used.ru_stime, printed if process.returncode == 0 else f"FAILED {printed[-300:]}"


def main() -> None:
    """A row for each command; the slowest are printed last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="regular expression that the name of a case contains")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--commands", default="new,plan,paper")
    asked = parser.parse_args()
    commands = asked.commands.split(",")
    units, rows = [], list[list[object]]()

    def unit_of(number: int) -> float:
        return min(units[max(number // PER_UNIT - 1, 0) : number // PER_UNIT + 3])

    def measured(name: str, command: str, words: list[str], folder: Path) -> bool:
        if len(rows) % PER_UNIT == 0:
            units.append(processor([sys.executable, "-c", "import cvxpy"], folder)[0])
        seconds, printed = processor([sys.executable, "-m", "ldpopt", "survey", *words], folder)
        people = "; ".join(re.findall(r"[\d,]+ respondents, each|respondents [\d.]+|[\d.]+ % more", printed)[:6])
        if printed.startswith("FAILED"):
            people = " ".join(printed.split())[:200]
        rows.append([name, command, seconds, people])
        print(f"{name} | {command} | {seconds:.2f} | {seconds / unit_of(len(rows) - 1):.2f} | {people}", flush=True)
        return not printed.startswith("FAILED")

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        processor([sys.executable, "-c", "import cvxpy"], folder)  # compiled once
        for name, text in surveys():
            if re.search(asked.only, name) and "plan" in commands:
                (folder / "survey.toml").write_text(text)
                planned = measured(name, "plan", ["plan", "survey.toml", "--force"], folder)
                if planned and "paper" in commands:
                    paper = ["paper", "plan.json", "--device", "two-d10", "--force"]
                    measured(name, "paper", paper, folder)
        for size, counts in {**SIZES, "6, 9, 18": [6, 9, 18]}.items():
            for skips in (False, True) if len(counts) > 1 else (False,):
                name = f"file of {size}{', with skips' if skips else ''}"
                if re.search(asked.only, name) and "new" in commands:
                    path = table(folder, counts, skips)
                    measured(name, "new", ["new", path.name, "--force", "--yes"], folder)
    times = [float(str(row[2])) / unit_of(number) for number, row in enumerate(rows)]
    with asked.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["case", "command", "processor seconds", "times the import of cvxpy", "printed"])
        for (name, command, seconds, people), ratio in zip(rows, times, strict=True):
            writer.writerow([name, command, f"{float(str(seconds)):.2f}", f"{ratio:.2f}", people])
    slow = sorted((pair for pair in zip(times, rows, strict=True) if pair[0] > PROMISED), key=lambda pair: -pair[0])
    print(f"import cvxpy: {min(units):.2f} to {max(units):.2f} s")
    print(f"{len(slow)} of {len(rows)} commands take more than {PROMISED:g} times as long")
    for ratio, (name, command, seconds, _) in slow[:40]:
        print(f"  {name} | {command} | {seconds:.2f} s | {ratio:.1f}")


if __name__ == "__main__":
    main()
