"""Look for understated guarantees after shuffling and for false lower ends: every data set of a few people, enumerated.

    python experiments/trust/shuffling.py [--cases 5000] [--seed 0]

Random channels of 2 to 4 answers and 2 to 4 reports (uneven, sparse, nearly equal rows, scales down to e^-40, textbook
ones), 2 to 6 people, an epsilon between 0 and the local one. The truth is the largest hockey stick over all data sets
that differ in one answer, of histograms convolved report by report; no line is shared with the package. Ends with exit
code 1 if `delta_at` or `epsilon_at` does not enclose it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time

import numpy as np

from ldpopt.composition import shuffled

ROUNDING = 1e-11


def random_channel(rng: np.random.Generator) -> np.ndarray:
    k, m = rng.integers(2, 5, 2)
    kind = rng.integers(6)
    if kind == 0:
        rows = rng.dirichlet(np.full(m, rng.choice([0.3, 1.0, 5.0])), k)
    elif kind == 1:
        rows = rng.dirichlet(np.ones(m)) * (1 + 10.0 ** rng.uniform(-9, -1) * rng.standard_normal((k, m)))
    elif kind == 2:
        rows = np.exp(-40 * rng.random((k, m)) ** 3)
    elif kind == 3:
        rows = rng.dirichlet(np.ones(m), k) * (rng.random((k, m)) < 0.7) + np.eye(k, m) * 0.1 + 1e-3 * (m > k)
    else:
        grown = math.exp(rng.uniform(0.05, 4))
        rows = np.where(rng.random((k, m)) < 0.5, grown, 1.0) if kind == 4 else np.where(np.eye(k, m) > 0, grown, 1.0)
    rows = np.abs(rows)
    rows[rows.sum(axis=1) == 0, 0] = 1.0
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def histograms(rows: list[np.ndarray], m: int) -> np.ndarray:
    """The law of the counts of all reports but the last, an array with one axis for each."""
    n = len(rows)
    law = np.zeros((n + 1,) * (m - 1))
    law[(0,) * (m - 1)] = 1.0
    for row in rows:
        grown = law * row[m - 1]
        for y in range(m - 1):
            grown += row[y] * np.roll(law, 1, axis=y)
        law = grown
    return law


def truth(matrix: np.ndarray, n: int, epsilon: float) -> float:
    k, m = matrix.shape
    growth, worst = math.exp(epsilon), 0.0
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        laws = [histograms([matrix[x] for x in (*others, mine)], m) for mine in range(k)]
        for p, q in itertools.permutations(laws, 2):
            worst = max(worst, math.fsum(np.maximum(p - growth * q, 0.0).ravel()))
    return worst


def faults(matrix: np.ndarray, n: int, epsilon: float) -> list[str]:
    made, value, found = shuffled(matrix, n), truth(matrix, n, epsilon), []
    delta = made.delta_at(epsilon)
    if not delta.lower <= value * (1 + ROUNDING) + 1e-15:
        found.append(f"lower delta {delta.lower!r} above {value!r}")
    if not delta.value >= value * (1 - ROUNDING) - 1e-15:
        found.append(f"delta {delta.value!r} below {value!r}")
    if 1e-12 < value < 1:
        if not made.epsilon_at(min(1.0, value * (1 + 1e-9))).lower <= epsilon + 1e-9:
            found.append(f"lower epsilon above {epsilon!r}")
        if not made.epsilon_at(value * (1 - 1e-6)).value >= epsilon - 1e-9:
            found.append(f"epsilon below {epsilon!r}")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    wrong, begun = 0, time.process_time()
    for case in range(given.cases):
        rng = np.random.default_rng([given.seed, case])
        matrix = random_channel(rng)
        n = int(rng.integers(2, 7 if matrix.size < 10 else 5))
        logs = np.log(np.maximum(matrix, 1e-300))
        epsilon = float(min(8.0, np.ptp(logs, axis=0).max()) * rng.choice([0.0, rng.random(), rng.random() ** 3]))
        for fault in faults(matrix, n, epsilon):
            wrong += 1
            print(f"seed {given.seed}, case {case}, n = {n}, epsilon = {epsilon!r}: {fault}\n{matrix.tolist()}")
    print(f"{given.cases} cases, {wrong} wrong, {time.process_time() - begun:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
