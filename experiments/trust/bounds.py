"""How far each bound and mechanism of `bounds.compare` is from the optimum, over random problems.

    python experiments/trust/bounds.py [--problems 1000] [--seed 0] [--quick]

A problem is two laws on 2 to 10 answers (even, spiky, nearly equal, with zeros or ties), epsilon from 0.1 to 8, a cap
eta on the total variation or none, and an f-divergence. Every row is held against its certified optimum: an upper bound
below the designed channel's value, or a lower bound above the proved bound, is a fault. bounds.csv says for each row of
how many problems it speaks, how often it is the tightest (within 1e-6), how often infinite or zero, and its least,
median, ninth-decile and largest ratio to the optimum. Exit code 1 after a fault. A thousand problems take two minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from ldpopt import Divergence
from ldpopt.bounds import BoundRow, compare
from ldpopt.divergences import NAMED, FDivergence, alpha, hockey_stick, piecewise_linear
from ldpopt.errors import InvalidInput

TIGHTEST = 1e-6
OTHERS = (alpha(-0.5), alpha(0.3), alpha(3.0), hockey_stick(1.5), piecewise_linear([0.5, 2.0], [-1.0, 0.0, 1.0]))
HEADS = ("kind", "reference", "problems", "tightest", "without a ratio", "least", "median", "ninth decile", "largest")


def some_law(rng: np.random.Generator, k: int) -> np.ndarray:
    """A law: even, spiky, with zeros or with ties."""
    law = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0])))
    kind = rng.integers(4)
    if kind == 0 and k > 2:
        law[rng.integers(k)] = 0.0
    if kind == 1:
        law = np.round(law * 8) + 0.1
    return np.asarray(law / law.sum())


def problem(rng: np.random.Generator) -> tuple[Divergence, float, float | None]:
    """A question, epsilon and eta; drawn again until the question has an answer."""
    while True:
        k = int(rng.integers(2, 11))
        p0, p1 = some_law(rng, k), some_law(rng, k)
        if rng.random() < 0.3:
            p0 = p1 + (p0 - p1) * 10.0 ** rng.uniform(-4, 0)
        f: FDivergence = [*NAMED.values(), *OTHERS][rng.integers(len(NAMED) + len(OTHERS))]
        epsilon = 10.0 ** rng.uniform(-1, 0.9)
        eta = None if rng.random() < 0.3 else float(math.tanh(epsilon / 2) * rng.uniform(0.05, 1.0))
        try:
            return Divergence(f, p0, p1), epsilon, eta
        except InvalidInput:
            continue


def main() -> int:
    """Run the problems and write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--problems", type=int, default=1000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--quick", action="store_true", help="30 problems, and no file")
    options = asked.parse_args()
    rng = np.random.default_rng(options.seed)
    problems = 30 if options.quick else options.problems
    found: dict[tuple[bool, str], list[BoundRow]] = defaultdict(list)
    tightest: dict[tuple[bool, str], int] = defaultdict(int)
    faults, uncertified = 0, 0
    for _ in range(problems):
        question, epsilon, eta = problem(rng)
        rows = compare(question, epsilon, eta).rows
        uncertified += not rows[0].certified
        for row in rows:
            best = next(other.value for other in rows if other.above == row.above)
            found[row.above, row.reference].append(row)
            tightest[row.above, row.reference] += math.isclose(row.value, best, rel_tol=TIGHTEST)
            wrong = not (row.value >= row.optimum if row.above else row.value <= row.upper_bound)
            if wrong:
                faults += 1
                print("fault:", row, question.p0, question.p1)
    table = []
    for (above, reference), rows in sorted(found.items(), key=lambda item: (not item[0][0], -tightest[item[0]])):
        ratios = [row.looseness for row in rows if row.looseness is not None]
        spread = [f"{float(x):.6g}" for x in np.quantile(ratios, [0, 0.5, 0.9, 1])] if ratios else [""] * 4
        kind = "upper bound" if above else "lower bound"
        table.append((kind, reference, len(rows), tightest[above, reference], len(rows) - len(ratios), *spread))
    for row in (HEADS, *table):
        print("{:12} {:48} {:>8} {:>8} {:>7} {:>10} {:>10} {:>12} {:>10}".format(*map(str, row)))
    print(f"{problems} problems, {uncertified} uncertified, {faults} faults")
    if not options.quick:
        with (Path(__file__).with_suffix(".csv")).open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows((HEADS, *table))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
