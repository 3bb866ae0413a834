"""Survey designs of 24 answers for several pilots: seconds and gaps, `results/survey_pilots.csv`.

    OMP_NUM_THREADS=1 python experiments/benchmarks/bench_survey_pilots.py [--answers 24] [--pilots 5]

Pilots are Dirichlet(1), with seeds 1, 2, ... Seconds are those of the processor; some minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from pathlib import Path

import numpy as np

from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.design import AOptimal, DOptimal, FisherInformation, MVOptimal

OUT = Path(__file__).resolve().parent / "results" / "survey_pilots.csv"
KEPT = {"sum of variances": AOptimal(), "log determinant": DOptimal(), "largest variance": MVOptimal()}
CASES = [
    ("largest variance", 0.5, None),
    ("largest variance", 1.0, None),
    ("sum of variances", 0.5, None),
    ("sum of variances", 1.0, None),
    ("sum of variances", 0.5, 0.33),
    ("sum of variances", 1.0, 0.33),
    ("sum of variances", 1.0, 0.6),
    ("log determinant", 1.0, 0.33),
]
"""What is kept low, epsilon, and a cap on total variation as a share of the widest, tanh(epsilon / 2)."""


def main() -> None:
    """A row for each case: the least, the middle and the most seconds, and the largest gap."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=24)
    parser.add_argument("--pilots", type=int, default=5)
    given = parser.parse_args()
    optimal_channel(FisherInformation([0.5, 0.5]), LocalDP(1.0))  # what the first design imports is not its time
    table: list[list[object]] = [
        ["kept low", "epsilon", "TV", "answers", "pilots", "least s", "middle s", "most s", "gap"]
    ]
    for kept, epsilon, share in CASES:
        eta = None if share is None else share * math.tanh(epsilon / 2)
        seconds, gaps = [], []
        for seed in range(1, given.pilots + 1):
            prior = np.random.default_rng(seed).dirichlet(np.ones(given.answers))
            start = time.process_time()
            made = optimal_channel(
                FisherInformation(prior, KEPT[kept]),
                [LocalDP(epsilon), *([] if eta is None else [TotalVariation(eta)])],
            )
            seconds.append(time.process_time() - start)
            gaps.append(made.relative_gap)
        spread = [f"{at:.2g}" for at in np.percentile(seconds, [0, 50, 100])]
        cap = "" if eta is None else f"{eta:.4f}"
        table.append([kept, epsilon, cap, given.answers, given.pilots, *spread, f"{max(gaps):.1e}"])
        print(*table[-1], sep=" | ", flush=True)
    with OUT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    main()
