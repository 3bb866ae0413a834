"""Time of composition, beside dp_accounting when it is installed.

Run: python experiments/benchmarks/bench_composition.py
Absolute figures hold on one machine on one day: compare inside one run.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt.composition import FinitePair, Ledger, compose, k_fold

EPSILON, ETA = 0.1, 0.7 * math.tanh(0.05)


def timed(label: str, run: Callable[[], Any], repeats: int = 3) -> Any:
    best, result = math.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    print(f"{label:<66} {best * 1e3:10.2f} ms   {result}")
    return result


def dp_accounting(count: int) -> float:
    from dp_accounting.pld import privacy_loss_distribution

    pair = FinitePair.of_parameters(EPSILON, 0.0, ETA).ordered
    lower, upper = (dict(enumerate(np.log(masses))) for masses in (pair.q, pair.p))
    made = privacy_loss_distribution.from_two_probability_mass_functions(lower, upper)
    return float(made.self_compose(count).get_epsilon_for_delta(1e-6))


def main() -> None:
    for count in (10, 100, 1000, 10_000, 100_000, 1_000_000):
        timed(f"k_fold, all j at once, k = {count}", lambda k=count: k_fold(EPSILON, 0.0, ETA, k).epsilon_at(1e-6))
        timed(
            f"compose (tilted transforms), k = {count}",
            lambda k=count: compose([(EPSILON, 0.0, ETA)], k).epsilon_at(1e-6),
        )
        if importlib.util.find_spec("dp_accounting") and count <= 10_000:
            timed(f"dp_accounting, default grid, k = {count}", lambda k=count: dp_accounting(k), 1)
    channel = np.random.default_rng(0).dirichlet(np.ones(24), 24)
    timed("dominating pair of a 24 x 24 channel", lambda: FinitePair.of_channel(channel))
    timed("the same composed 1000 times, on a grid", lambda: compose([channel], 1000).approximate_dp(1e-6), 1)
    mixed = [(0.1, 0.0, 0.03)] * 500 + [(0.25, 1e-9, 0.05)] * 200 + [(0.5, 0.0, None)] * 20
    timed("720 mechanisms of three kinds on one lattice", lambda: compose(mixed).epsilon_at(1e-6))
    timed("ledger: zCDP of channel x 100 and pair x 1000", lambda: float(
        Ledger().add(channel, 100).add((EPSILON, 0.0, ETA), 1000).zcdp()
    ), 1)  # fmt: skip


if __name__ == "__main__":
    main()
