"""Designs under smooth constraints and with given outputs: certified gaps and processor seconds, `results/smooth.csv`.

    python experiments/benchmarks/bench_smooth.py [--only WORDS]

KL between two random distributions (Dirichlet, seeded by k). Processor time of one thread, each design once; about five
minutes on one core. `--only` takes the rows whose first column contains the words, and writes nothing.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.design import (
    ApproximateLDP,
    ConcentratedLDP,
    Divergence,
    Invariant,
    MutualInformation,
    Outputs,
    RenyiLDP,
    TradeOff,
)
from ldpopt.divergences import KL
from ldpopt.privacy import TradeOffCurve

OUT = Path(__file__).resolve().parent / "results" / "smooth.csv"
SCALES = (1e-4, 1e-3, 0.01, 0.1, 1.0, 5.0, 10.0, 20.0)


def pair(k: int) -> Any:
    """Two random distributions on k answers."""
    return np.random.default_rng(k).dirichlet(np.ones(k), 2)


def problems() -> Iterator[tuple[str, Any, list[Any]]]:
    """A name, a utility and constraints for every row."""
    for k in (8, 12, 16, 24, 40):
        yield f"Renyi(2, 0.5), k = {k}", Divergence(KL, *pair(k)), [RenyiLDP(2.0, 0.5)]
    for order in (2.0, 8.0):
        for epsilon in SCALES:
            yield f"Renyi({order:g}, {epsilon:g}), k = 8", Divergence(KL, *pair(8)), [RenyiLDP(order, epsilon)]
    for k in (8, 16):
        yield f"zCDP(0.5), k = {k}", Divergence(KL, *pair(k)), [ConcentratedLDP(0.5)]
    yield "zCDP(3) and TV(0.6), k = 8", Divergence(KL, *pair(8)), [ConcentratedLDP(3.0), TotalVariation(0.6)]
    yield "Renyi(2, 0.5) and LDP(1), k = 8", Divergence(KL, *pair(8)), [RenyiLDP(2.0, 0.5), LocalDP(1.0)]
    yield "Renyi(4, 0.5) and TV(0.2), k = 8", Divergence(KL, *pair(8)), [RenyiLDP(4.0, 0.5), TotalVariation(0.2)]
    curve = TradeOffCurve.of_pair([0.6, 0.25, 0.1, 0.05], [0.05, 0.1, 0.25, 0.6])
    for k in (8, 16):
        yield f"trade-off curve of 4 points, k = {k}", Divergence(KL, *pair(k)), [TradeOff(curve)]
    for m in (2, 4, 6, 8):
        caps = [ApproximateLDP(1.0, 0.05), Outputs(m)]
        yield f"(1, 0.05)-LDP, {m} outputs, k = 6", Divergence(KL, *pair(6)), caps
    for m in (4, 6, 8):
        yield f"TV(0.5), {m} outputs, k = 6", Divergence(KL, *pair(6)), [TotalVariation(0.5), Outputs(m)]
    for epsilon in (1.0, 2.0):
        p = np.random.default_rng(55).dirichlet(np.ones(5))
        yield f"LDP({epsilon:g}), invariant, k = 5", Divergence(KL, *pair(5)), [LocalDP(epsilon), Invariant(p)]
    for m in (2, 3):
        yield f"information, LDP(1), {m} outputs, k = 6", MutualInformation(pair(6)[0]), [LocalDP(1.0), Outputs(m)]


def main() -> None:
    """A row for every problem, written as they come."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != "1" for name in threads):  # they count when the libraries are loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | threads)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    # What the first designs import is not the next one's time.
    optimal_channel(Divergence(KL, *pair(3)), [ApproximateLDP(1.0, 0.01), Outputs(2)])
    found = [["problem", "value", "relative gap", "certified", "processor seconds", "method"]]
    for name, utility, constraints in problems():
        if only not in name:
            continue
        start = time.process_time()
        design = optimal_channel(utility, constraints)
        seconds = time.process_time() - start
        row = [name, f"{design.value:.10g}", f"{design.relative_gap:.1e}", str(design.certified), f"{seconds:.1f}"]
        found.append([*row, design.method])
        print(*found[-1], sep=" | ", flush=True)
        if not only:
            with OUT.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(found)


if __name__ == "__main__":
    main()
