"""The stated speed targets, each with its limit: run with `python experiments/benchmarks/bench_targets.py`.

Peak memory is that of the process. Absolute figures hold on one machine on one day.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt.composition import k_fold
from ldpopt.privacy import audit, hockey_stick, local_dp, renyi, total_variation


def random_channel(k: int) -> Any:
    q = np.random.default_rng(0).dirichlet(np.ones(k), k) + 1e-4
    return q / q.sum(axis=1, keepdims=True)


def best(run: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    small, large = random_channel(24), random_channel(1000)
    large_measures: dict[str, Callable[[Any], Any]] = {
        "local_dp": local_dp,
        "total_variation": total_variation,
        "hockey_stick(0.5)": lambda q: hockey_stick(q, 0.5),
        "renyi(2)": lambda q: renyi(q, 2.0),
    }
    print(
        f"Theorem 2, all j at k = 1e5: {best(lambda: k_fold(0.1, 0.0, 0.7 * math.tanh(0.05), 10**5)):.3f} s (limit 1)"
    )
    print(f"audit of 24 x 24: {best(lambda: audit(small)):.3f} s (limit 3)")
    total = 0.0
    for name, measure in large_measures.items():
        took = best(lambda measure=measure: measure(large))
        total += took
        print(f"{name} of 1000 x 1000: {took:.3f} s")
    print(f"the four of 1000 x 1000 together: {total:.3f} s (limit 2)")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.3f} GiB (limit 1)")


if __name__ == "__main__":
    main()
