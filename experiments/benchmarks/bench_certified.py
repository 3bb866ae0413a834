"""What is certified how fast: one row for each utility, constraint and number of answers, `results/certified.csv`.

    python experiments/benchmarks/bench_certified.py [--limit 60] [--only WORDS]

Each row runs in a process of its own with one thread, which is ended after `--limit` seconds of processor time. Priors
and hypotheses are Dirichlet(1), seeded by k. The how-to page "What is certified" shows the table. Some minutes.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent / "results" / "certified.csv"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def utilities() -> dict[str, Callable[[int], Any]]:
    """The utility of k answers by its name in the table."""
    import numpy as np

    from ldpopt import design
    from ldpopt.divergences import KL

    def laws(k: int, n: int) -> Any:
        return np.random.default_rng(k).dirichlet(np.ones(k), n)

    def fisher(criterion: Callable[[int], Any]) -> Callable[[int], Any]:
        return lambda k: design.FisherInformation(laws(k, 1)[0], criterion=criterion(k))

    return {
        "KL of two hypotheses": lambda k: design.Divergence(KL, *laws(k, 2)),
        "mutual information": lambda k: design.MutualInformation(laws(k, 1)[0]),
        "survey, sum of variances": fisher(lambda k: design.AOptimal()),
        "survey, one share": fisher(lambda k: design.COptimal(np.eye(k)[0])),
        "survey, one contrast": fisher(lambda k: design.COptimal(np.random.default_rng(1).normal(size=k))),
        "survey, log determinant": fisher(lambda k: design.DOptimal()),
        "survey, largest variance": fisher(lambda k: design.MVOptimal()),
    }


def constraints() -> dict[str, Callable[[int], list[Any]]]:
    """The constraints on k answers by their name in the table."""
    import networkx as nx

    from ldpopt import ApproximateLDP, LocalDP, TotalVariation
    from ldpopt.design import RenyiLDP

    def on(graph: Callable[[int], Any], *more: Any) -> Callable[[int], list[Any]]:
        return lambda k: [LocalDP(1.0, graph(k)), *more]

    def grid(k: int) -> Any:
        return nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, k // 4))

    def regular(k: int) -> Any:
        return nx.random_regular_graph(4, k, seed=1)

    return {
        "LDP 1": lambda k: [LocalDP(1.0)],
        "LDP 3": lambda k: [LocalDP(3.0)],
        "LDP 1, TV 0.2": lambda k: [LocalDP(1.0), TotalVariation(0.2)],
        "LDP 1, TV 0.15": lambda k: [LocalDP(1.0), TotalVariation(0.15)],
        "(1, 0.1)-LDP": lambda k: [ApproximateLDP(1.0, 0.1)],
        "(1, 0.05)-LDP, TV 0.3": lambda k: [ApproximateLDP(1.0, 0.05), TotalVariation(0.3)],
        "Rényi 0.5 of order 2": lambda k: [RenyiLDP(2.0, 0.5)],
        "path, LDP 1": on(nx.path_graph),
        "path, LDP 1, TV 0.2": on(nx.path_graph, TotalVariation(0.2)),
        "grid, LDP 1": on(grid),
        "4-regular graph, LDP 1": on(regular),
    }


KL, MI, SUM = "KL of two hypotheses", "mutual information", "survey, sum of variances"
SHARE, CONTRAST, DET, MOST = (
    "survey, one share",
    "survey, one contrast",
    "survey, log determinant",
    "survey, largest variance",
)
ROWS: list[tuple[str, str, int]] = [
    (KL, "LDP 1", 1000),
    (KL, "LDP 1, TV 0.2", 1000),
    (KL, "(1, 0.1)-LDP", 16),
    (KL, "Rényi 0.5 of order 2", 8),
    (KL, "path, LDP 1", 12),
    (KL, "path, LDP 1, TV 0.2", 12),
    (KL, "grid, LDP 1", 16),
    (KL, "4-regular graph, LDP 1", 12),
    (MI, "LDP 1", 16),
    (MI, "LDP 1", 100),
    (MI, "LDP 1, TV 0.2", 12),
    (MI, "(1, 0.1)-LDP", 6),
    (MI, "(1, 0.05)-LDP, TV 0.3", 6),
    (MI, "Rényi 0.5 of order 2", 6),
    (MI, "Rényi 0.5 of order 2", 12),
    (MI, "path, LDP 1", 12),
    (MI, "path, LDP 1, TV 0.2", 6),
    (MI, "path, LDP 1, TV 0.2", 12),
    (MI, "grid, LDP 1", 16),
    (MI, "grid, LDP 1", 20),
    (MI, "4-regular graph, LDP 1", 12),
    (MI, "4-regular graph, LDP 1", 16),
    (SUM, "LDP 1", 16),
    (SUM, "LDP 1", 24),
    (SUM, "LDP 1", 32),
    (SUM, "LDP 1", 64),
    (SUM, "LDP 1", 128),
    (SUM, "LDP 3", 24),
    (SUM, "LDP 3", 48),
    (SUM, "LDP 3", 64),
    (SUM, "LDP 1, TV 0.15", 16),
    (SUM, "LDP 1, TV 0.15", 24),
    (SUM, "path, LDP 1", 12),
    (SUM, "path, LDP 1, TV 0.2", 6),
    (SUM, "path, LDP 1, TV 0.2", 12),
    (SUM, "4-regular graph, LDP 1", 12),
    (SUM, "4-regular graph, LDP 1", 16),
    (SUM, "grid, LDP 1", 16),
    (SUM, "grid, LDP 1", 20),
    (SHARE, "LDP 1", 24),
    (SHARE, "LDP 1", 2000),
    (SHARE, "LDP 1, TV 0.2", 24),
    (CONTRAST, "LDP 1", 24),
    (CONTRAST, "LDP 1", 60),
    (CONTRAST, "LDP 1, TV 0.2", 16),
    (DET, "LDP 1", 16),
    (DET, "LDP 1", 24),
    (DET, "LDP 1, TV 0.15", 16),
    (DET, "LDP 1, TV 0.15", 24),
    (MOST, "LDP 1", 12),
    (MOST, "LDP 1", 24),
    (MOST, "LDP 1, TV 0.15", 16),
]


def measure(utility: str, constraint: str, k: int) -> None:
    """Print seconds, gap, whether certified, and the method of one row."""
    from ldpopt import LocalDP, optimal_channel
    from ldpopt.design import FisherInformation

    posed, caps = utilities()[utility](k), constraints()[constraint](k)
    optimal_channel(FisherInformation([0.5, 0.5]), LocalDP(1.0))  # what the first design imports is not its time
    start = time.process_time()
    made = optimal_channel(posed, caps)
    seconds = time.process_time() - start
    how = re.split(r", (?!delta)| over | in ", made.method)[0]
    print(f"{seconds:.2g}", f"{made.relative_gap:.1e}", "yes" if made.certified else "no", how, sep="|")


def main() -> None:
    """A row for every utility, constraint and size, written as they come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=60, help="processor seconds a row may take")
    parser.add_argument("--only", default="", help="rows whose names have these words; nothing is written")
    parser.add_argument("--row", type=int, default=-1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row >= 0:
        resource.setrlimit(resource.RLIMIT_CPU, (given.limit, given.limit + 5))
        measure(*ROWS[given.row])
        return
    environment = os.environ | dict.fromkeys(THREADS, "1")
    table: list[list[object]] = [["kept", "under", "answers", "seconds", "gap", "certified", "method"]]
    for at, (utility, constraint, k) in enumerate(ROWS):
        if given.only not in f"{utility} {constraint}":
            continue
        command = [sys.executable, __file__, "--row", str(at), "--limit", str(given.limit)]
        found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        said = found.stdout.strip().split("|") if found.returncode == 0 else [f"over {given.limit}", "", "no", ""]
        table.append([utility, constraint, k, *said])
        print(*table[-1], sep=" | ", flush=True)
    if not given.only:
        with OUT.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    main()
