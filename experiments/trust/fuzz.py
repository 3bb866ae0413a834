"""Feed mutated files to every loader: a million cases, none of which may end in an undocumented way.

    python experiments/trust/fuzz.py [--cases 1000000] [--first 0] [--out fuzz.csv] [--designs | --folders]

Case n is the same on every run. Every 10 000 cases the counts of what came out go into the table, and an interrupted
run goes on there. With --designs the files are those of designs alone, and one that is read and verified must claim
what is true, by arithmetic that the package has no part in. With --folders they are those of interrupted frontiers,
runs and experiments. A case that takes more than two seconds of the processor counts as a hang, and so does a block
after which the process has grown by more than 500 MB.
Ends with exit code 1 after a violation.
"""

from __future__ import annotations

import argparse
import csv
import resource
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import fuzzing
import fuzzing_designs
import fuzzing_folders

BLOCK, PATIENCE, ROOM = 10_000, 2, 500


class HangError(Exception):
    """A loader took too long."""


def _hang(*_: Any) -> None:
    raise HangError(f"more than {PATIENCE} s")


def peak() -> int:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def block(first: int, cases: int, folder: Path, special: Any = None) -> tuple[Counter[tuple[str, str]], list[str]]:
    """(how often each loader read, refused or broke; the violations)."""
    counts: Counter[tuple[str, str]] = Counter()
    violations = []
    for seed in range(first, first + cases):
        loaders = fuzzing.LATER if seed % 20 == 19 else fuzzing.LOADERS
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        loader, outcome = fuzzing.case(seed, folder, special or loaders)
        signal.setitimer(signal.ITIMER_PROF, 0)
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
    parser.add_argument("--folders", action="store_true", help="folders of interrupted work alone")
    given = parser.parse_args()
    special = fuzzing_designs.loaders() if given.designs else fuzzing_folders.loaders() if given.folders else None
    total: Counter[tuple[str, str]] = Counter()
    done = set()
    if given.out.exists():
        with given.out.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                done.add(int(row["first"]))
                total[row["loader"], row["outcome"]] += int(row["cases"])
    signal.signal(signal.SIGPROF, _hang)
    before = peak()
    with given.out.open("a", newline="", encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        writer = csv.writer(file)
        if not done:
            writer.writerow(["first", "loader", "outcome", "cases"])
        for first in range(given.first, given.first + given.cases, BLOCK):
            if first in done:
                continue
            cases = min(BLOCK, given.first + given.cases - first)
            counts, violations = block(first, cases, Path(folder), special)
            if peak() > before + ROOM:
                violations.append(f"cases {first} to {first + cases - 1}: {peak()} MB, {before} before")
                counts["memory", "violation"] += 1
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
