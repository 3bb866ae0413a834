"""Seconds and certified gaps of the design engine, one line a case: python experiments/benchmarks/bench_engine.py."""

import time

import networkx as nx
import numpy as np

from ldpopt.design import (
    ApproximateLDP,
    Divergence,
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


CASES = {
    "pure, k=100": lambda: (Divergence(KL, *pair(100)), LocalDP(1.5)),
    "pure, k=1000": lambda: (Divergence(KL, *pair(1000)), LocalDP(1.5)),
    "eta, k=17": lambda: (Divergence(KL, *pair(17)), [LocalDP(1.5), TotalVariation(0.3)]),
    "eta, k=30": lambda: (Divergence(KL, *pair(30)), [LocalDP(1.5), TotalVariation(0.3)]),
    "eta, k=60": lambda: (Divergence(KL, *pair(60)), [LocalDP(1.5), TotalVariation(0.3)]),
    "(1, 0.01)-LDP, k=10": lambda: (Divergence(KL, *pair(10)), ApproximateLDP(1.0, 0.01)),
    "Rényi order 2, k=10": lambda: (Divergence(KL, *pair(10)), RenyiLDP(2.0, 0.5)),
    "path policy, k=20": lambda: (Divergence(KL, *pair(20)), LocalDP(1.0, nx.path_graph(20))),
    "distance loss on a path, k=64": lambda: (
        ExpectedLoss(np.full(64, 1 / 64), line(64)),
        LocalDP(0.5, nx.path_graph(64)),
    ),
    "mutual information, k=10": lambda: (MutualInformation(pair(10)[0]), LocalDP(1.0)),
}

if __name__ == "__main__":
    import cvxpy

    assert cvxpy.__version__  # imported first: that time is not the engine's

    for name, make in CASES.items():
        start = time.perf_counter()
        design = optimal_channel(*make())
        seconds = time.perf_counter() - start
        print(f"{name:32s} {seconds:8.2f} s  gap {design.relative_gap:.1e}  certified {design.certified}", flush=True)
