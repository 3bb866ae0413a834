"""Mutual information of 15 to 29 answers: certified gaps and processor seconds, `results/information.csv`.

    python experiments/benchmarks/bench_information.py

Priors are Dirichlet(1), seeded by k; epsilon is 0.5, 1 and 3. Some minutes on one core.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np

from ldpopt import LocalDP, optimal_channel
from ldpopt.design import MutualInformation

OUT = Path(__file__).resolve().parent / "results" / "information.csv"
EPSILONS = (0.5, 1.0, 3.0)
SIZES = range(15, 30)


def main() -> None:
    """A row for every size and epsilon, written as they come."""
    optimal_channel(MutualInformation([0.5, 0.3, 0.2]), LocalDP(1.0))  # what the first design imports is not its time
    with OUT.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["k", "epsilon", "value", "gap", "seconds"])
        for k in SIZES:
            prior = np.random.default_rng(k).dirichlet(np.ones(k))
            for epsilon in EPSILONS:
                start = time.process_time()
                design = optimal_channel(MutualInformation(prior), LocalDP(epsilon))
                seconds = time.process_time() - start
                row = [k, epsilon, f"{design.value:.10g}", f"{design.relative_gap:.2e}", f"{seconds:.1f}"]
                rows.writerow(row)
                file.flush()
                print(*row, flush=True)


if __name__ == "__main__":
    main()
