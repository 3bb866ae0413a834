"""Feed mutated files to every loader: a million cases, none of which may end in an undocumented way.

    python experiments/trust/fuzz.py [--cases 1000000] [--first 0] [--out fuzz.csv] [--designs]

Case n is the same on every run. Every 10 000 cases the counts of what came out go into the table, and an interrupted
run goes on there. With --designs the files are those of designs alone, and one that is read and verified must claim
what is true, by arithmetic that the package has no part in. A case that takes more than ten seconds counts as a hang.
Ends with exit code 1 after a violation.
"""

from __future__ import annotations

import argparse
import csv
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import fuzzing
import fuzzing_designs

BLOCK, PATIENCE = 10_000, 10


class HangError(Exception):
    """A loader took too long."""


def _hang(*_: Any) -> None:
    raise HangError(f"more than {PATIENCE} s")


def block(first: int, cases: int, folder: Path, designs: bool = False) -> tuple[Counter[tuple[str, str]], list[str]]:
    """(how often each loader read, refused or broke; the violations)."""
    counts: Counter[tuple[str, str]] = Counter()
    violations = []
    for seed in range(first, first + cases):
        loaders = fuzzing.LATER if seed % 20 == 19 else fuzzing.LOADERS
        if designs:
            loaders = fuzzing_designs.loaders()
        signal.alarm(PATIENCE)
        loader, outcome = fuzzing.case(seed, folder, loaders)
        signal.alarm(0)
        if outcome not in ("read", "refused"):
            violations.append(f"case {seed}, {loader}: {outcome}")
            outcome = "violation"
        counts[loader, outcome] += 1
    return counts, violations


def main() -> int:
    """Run the blocks that the table does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("fuzz.csv"))
    parser.add_argument("--designs", action="store_true", help="design files alone")
    given = parser.parse_args()
    total: Counter[tuple[str, str]] = Counter()
    done = set()
    if given.out.exists():
        with given.out.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                done.add(int(row["first"]))
                total[row["loader"], row["outcome"]] += int(row["cases"])
    signal.signal(signal.SIGALRM, _hang)
    with given.out.open("a", newline="", encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        writer = csv.writer(file)
        if not done:
            writer.writerow(["first", "loader", "outcome", "cases"])
        for first in range(given.first, given.first + given.cases, BLOCK):
            if first in done:
                continue
            counts, violations = block(
                first, min(BLOCK, given.first + given.cases - first), Path(folder), given.designs
            )
            print(*violations, sep="\n", end="\n" * bool(violations), flush=True)
            writer.writerows([first, *key, count] for key, count in sorted(counts.items()))
            file.flush()
            total += counts
    for (loader, outcome), count in sorted(total.items()):
        print(f"{loader:20} {outcome:10} {count}")
    wrong = sum(count for (_, outcome), count in total.items() if outcome == "violation")
    print(f"{sum(total.values())} cases, {wrong} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
