"""Questionnaires of 32 to 256 cells at uneven pilots: what `optimal_channel` finds and proves, and how long that takes.

    python experiments/surveys/questionnaires/certified.py                    # writes certified.csv; about an hour
    python experiments/surveys/questionnaires/certified.py 2x2x2x2x2x2 5x5x5  # these shapes only, nothing written
    python experiments/surveys/questionnaires/certified.py --quick            # one small shape, nothing written

Shares are drawn from Dirichlet(4, ..., 4), seed 1, as in `uneven.py`. The
aim is a gap of 1e-6 up to 64 cells and 1e-3 beyond. Exit code 1: a bound is above its value.
"""

import csv
import math
import sys
import time
from pathlib import Path

import numpy as np

from ldpopt import FisherInformation, LocalDP, Marginals, optimal_channel

SHAPES = [
    (2,) * 5, (2,) * 6, (4, 4, 4), (8, 8), (2, 4, 8), (3, 3, 7),
    (3, 3, 3, 3), (5, 5, 5), (2,) * 7, (2,) * 8, (4, 4, 4, 4), (16, 16),
]  # fmt: skip
EPSILONS = [0.5, 1.0, 2.0, 3.0]
NAMES = ["answers", "cells", "epsilon", "value", "bound", "gap", "certified", "proof", "seconds"]


def shares(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Uneven shares of each question."""
    rng = np.random.default_rng(1)
    return [rng.dirichlet(np.full(k, 4.0)) for k in shape]


def row(shape: tuple[int, ...], epsilon: float) -> list[object]:
    """What was designed, what is proved, by what, and the processor's time."""
    criterion = Marginals(shape)
    start = time.process_time()
    design = optimal_channel(FisherInformation(criterion.pilot(*shares(shape)), criterion), LocalDP(epsilon))
    took = round(time.process_time() - start, 1)
    proof = type(getattr(design.certificate, "relaxed", None)).__name__
    gap, bound = f"{design.relative_gap:.2g}", design.lower_bound
    return [
        "x".join(map(str, shape)),
        math.prod(shape),
        epsilon,
        design.value,
        bound,
        gap,
        design.certified,
        proof,
        took,
    ]


def main() -> int:
    """Print the rows, and write them."""
    quick, asked = "--quick" in sys.argv[1:], [one for one in sys.argv[1:] if not one.startswith("-")]
    shapes = [tuple(int(k) for k in one.split("x")) for one in asked] or ([(2,) * 5] if quick else SHAPES)
    rows = []
    for shape in shapes:
        for epsilon in EPSILONS:
            rows.append(row(shape, epsilon))
            print(*rows[-1], flush=True)
    if not quick and not asked:
        with Path(__file__).with_name("certified.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([NAMES, *rows])
    print(sum(bool(one[6]) for one in rows), "of", len(rows), "certified")
    return int(any(float(str(one[3])) < float(str(one[4])) * (1 - 1e-9) for one in rows))


if __name__ == "__main__":
    sys.exit(main())
