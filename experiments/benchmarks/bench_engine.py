"""Seconds and certified gaps of the design engine, one line a case: python experiments/benchmarks/bench_engine.py.

Seconds are those of the processor, for one thread (set OMP_NUM_THREADS=1), the certificate included. Writes
results/engine.csv. Absolute figures hold on one machine on one day.
"""

import csv
import time
from pathlib import Path

import networkx as nx
import numpy as np
from scipy import stats

from ldpopt.design import (
    ApproximateLDP,
    Divergence,
    Exchange,
    ExpectedLoss,
    LocalDP,
    MutualInformation,
    RenyiLDP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import KL


def pair(k):
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))


def line(k):
    return np.abs(np.subtract.outer(np.arange(k), np.arange(k)))


CAPPED = [LocalDP(1.5), TotalVariation(0.3)]

CASES = {
    "pure, k=100": lambda: (Divergence(KL, *pair(100)), LocalDP(1.5)),
    "pure, k=1000": lambda: (Divergence(KL, *pair(1000)), LocalDP(1.5)),
    **{f"eta, k={k}": lambda k=k: (Divergence(KL, *pair(k)), CAPPED) for k in (16, 17, 30, 60, 100, 200, 400, 2000)},
    "eta, normal(0) and normal(1)": lambda: (Divergence(KL, stats.norm(), stats.norm(1)), CAPPED),
    "(1, 0.01)-LDP, k=10": lambda: (Divergence(KL, *pair(10)), ApproximateLDP(1.0, 0.01)),
    "Rényi order 2, k=10": lambda: (Divergence(KL, *pair(10)), RenyiLDP(2.0, 0.5)),
    "path policy, k=20": lambda: (Divergence(KL, *pair(20)), LocalDP(1.0, nx.path_graph(20))),
    "distance loss on a path, k=64": lambda: (
        ExpectedLoss(np.full(64, 1 / 64), line(64)),
        LocalDP(0.5, nx.path_graph(64)),
    ),
    "mutual information, k=10": lambda: (MutualInformation(pair(10)[0]), LocalDP(1.0)),
}

METHODS = {
    "eta, k=30, exchange": ("eta, k=30", Exchange()),
}

LIMITS = {"pure, k=100": 1, "pure, k=1000": 60, "eta, k=60": 60, "Rényi order 2, k=10": 10}
"""The seconds promised."""


def main():
    optimal_channel(*CASES["mutual information, k=10"]())  # loads the solvers: that time is not the engine's
    runs = {name: (name, None) for name in CASES} | METHODS
    with (Path(__file__).parent / "results" / "engine.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["case", "seconds", "limit", "relative gap", "tolerance", "certified", "method"])
        for name, (case, method) in runs.items():
            posed = CASES[case]()
            start = time.process_time()
            design = optimal_channel(*posed, method=method)
            seconds = time.process_time() - start
            gap, limit = f"{design.relative_gap:.2g}", LIMITS.get(name, "")
            writer.writerow([name, round(seconds, 2), limit, gap, design.tolerance, design.certified, design.method])
            file.flush()
            print(f"{name:32s} {seconds:8.2f} s  gap {gap:>8s}  certified {design.certified}", flush=True)
            assert not limit or (seconds < limit and design.certified), name


if __name__ == "__main__":
    main()
