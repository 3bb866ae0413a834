"""The least bound that certificates of each class can be made to prove, against the optimum of another program.

    python experiments/trust/minimise.py [--seconds S] [--seed N] [--csv FILE]

For S seconds, problems of every kind in turn: with slack, tight and zero caps, zero masses, ties, disconnected graphs,
trees of boxes, infinite ends, real answers. Listed classes are attacked by a linear program over their own list, all
others by cutting planes from honest numbers, and what is not convex by many draws (`tests/minimise`). Prints a line for
each class: how many problems there were, and the smallest bound over optimum, less one, of the package and of the
second checker where it covers the class. For errors, the smallest of one less that ratio. With `--csv` the counts of
the file are added to. Exit code 1 if a bound is below the optimum by more than 1e-9 of it.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

from minimise import attack, listed, special

FALSE = -1e-9
COLUMNS = ("class", "problems", "package", "checked", "checker")
Row = tuple[int, float, int, float]


def rounds(seed: int, late: float) -> Iterator[attack.Outcome]:
    """Outcomes of all attacks in turn, until it is late."""
    number = 0
    kinds = list(attack.makers())
    while time.monotonic() < late:
        rng = np.random.default_rng([seed, number])
        for kind in listed.LISTED:
            outcome = attack.of_lists(kind, rng)
            if outcome is not None:
                yield outcome
        for draw in (special.of_envelope, special.of_dominated, special.of_no_mass):
            for _ in range(8):
                outcome = draw(rng)
                if outcome is not None:
                    yield outcome
        for draw in (special.of_cells, special.of_pairs, special.of_respondents, special.of_pairwise):
            outcome = draw(rng) if number % 4 == 0 else None
            if outcome is not None:
                yield outcome
        yield from attack.of_problem(kinds[number % len(kinds)], rng, steps=15)
        number += 1


def main() -> int:
    """Run the attacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    table: dict[str, Row] = {}
    if asked.csv and asked.csv.exists():
        with asked.csv.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                table[row["class"]] = (
                    int(row["problems"]), float(row["package"]), int(row["checked"]), float(row["checker"] or "inf")
                )  # fmt: skip
    wrong = 0
    for outcome in rounds(asked.seed, time.monotonic() + asked.seconds):
        problems, package, checked, checker = table.get(outcome.kind, (0, math.inf, 0, math.inf))
        covered = not math.isnan(outcome.checked)
        table[outcome.kind] = (
            problems + 1, min(package, outcome.package), checked + covered,
            min(checker, outcome.checked) if covered else checker,
        )  # fmt: skip
        if outcome.package < FALSE or outcome.checked < FALSE:
            wrong += 1
            print(f"below the optimum: {outcome}", flush=True)
    rows = [(kind, *row[:3], row[3] if row[2] else "") for kind, row in sorted(table.items())]
    for kind, problems, package, checked, checker in rows:
        told = f"{checked:6d} {checker:10.2e}" if checked else "   not covered"
        print(f"{kind:22s} {problems:6d} {package:10.2e} {told}")
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
