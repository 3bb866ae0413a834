"""Certified designs under a cap on total variation beside the same ones without it, as the number of answers grows.

    python experiments/benchmarks/bench_envelope.py [--out FOLDER]

KL between two random distributions (Dirichlet, seeded by k), certified by potentials, at caps in the linear part of the
envelope, at a kink and between two; then a bracket of a million answers and of two Gaussians. Processor time of one
thread, the least of a few runs that take turns. Writes envelope.csv and envelope.png, in about ten minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.append(str(Path(__file__).resolve().parents[2]))  # `experiments`, which is not installed

from experiments.papers.drawing import COLOURS, DASH_PATTERNS, finish, fit_height, frames
from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel, plots
from ldpopt.divergences import KL

HERE = Path(__file__).resolve().parent
SIZES = (17, 30, 60, 100, 200, 400, 1000, 2000, 4000, 10_000)
EPSILON = 2.0
GAIN = math.expm1(EPSILON)
CAPS = {
    "no cap": None,
    "η = 0.1, linear part": 0.1,
    "η of 5 blocks, a kink": GAIN / (GAIN + 5),
    "η = 0.7, a coin": 0.7,
}


def measured(utility: Divergence, repeat: int) -> list[tuple[str, float, Any]]:
    """(cap, least processor seconds, design) for every cap; the caps take turns."""
    least, made = dict.fromkeys(CAPS, math.inf), {}
    for _ in range(repeat):
        for name, eta in CAPS.items():
            caps = [LocalDP(EPSILON)] if eta is None else [LocalDP(EPSILON), TotalVariation(eta)]
            start = time.process_time()
            made[name] = optimal_channel(utility, caps)
            least[name] = min(least[name], time.process_time() - start)
    return [(name, least[name], made[name]) for name in CAPS]


def rows() -> list[list[Any]]:
    """One row for each problem and cap."""
    found = []
    problems: list[tuple[Any, Divergence, int]] = [
        (k, Divergence(KL, *np.random.default_rng(k).dirichlet(np.ones(k), 2)), 5 if k < 500 else 3 if k < 5000 else 2)
        for k in (*SIZES, 1_000_000)
    ]
    for what, utility, repeat in (*problems, ("Gaussians", Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)), 3)):
        pure = None
        for name, seconds, design in measured(utility, 1 if what == 1_000_000 else repeat):
            pure = pure or seconds
            gap = f"{design.relative_gap:.2g}"
            found.append([what, name, f"{seconds:.4g}", f"{seconds / pure:.3g}", gap, design.certified, design.method])
            print(*found[-1], sep=" | ", flush=True)
    return found


def draw(found: list[list[Any]]) -> Any:
    """Seconds against k, and gaps against k."""
    left, right = frames(2)
    for at, name in enumerate(CAPS):
        own = [row for row in found if row[1] == name and isinstance(row[0], int) and row[0] <= SIZES[-1]]
        k, seconds, gaps = ([float(row[i]) for row in own] for i in (0, 2, 4))
        style = {"color": COLOURS[at], "ls": DASH_PATTERNS[at], "marker": "o", "ms": 3, "label": name}
        left.plot(k, seconds, **style)
        right.plot(k, gaps, **style)
    high = float(next(row[2] for row in found if row[0] == SIZES[-1]))
    guide = np.array([1500.0, 10_000.0])
    left.plot(guide, 0.35 * high * (guide / guide[-1]) ** 2, color="0.5", lw=1, label="slope 2")
    finish(left, f"KL, ε = {EPSILON:g}: a certified design", "answers k", "processor seconds", scale="xy")
    right.axhline(1e-10, color="0.5", lw=1)
    right.text(SIZES[0], 1.15e-10, "promised: 1e-10", fontsize=7, color="0.35")
    finish(right, "Relative gap between value and proved bound", "answers k", "gap", "none", "xy", ylim=(1e-12, 3e-10))
    fit_height((left, right))
    return left


def main() -> None:
    """Measure, and write the table and the picture."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != "1" for name in threads):  # they count when the libraries are loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | threads)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    out = parser.parse_args().out
    found = rows()
    with (out / "envelope.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["answers", "cap", "processor seconds", "ratio to no cap", "relative gap", "certified", "method"]
        )
        writer.writerows(found)
    (out / "envelope.png").write_bytes(plots.picture(draw(found)))


if __name__ == "__main__":
    main()
