"""The certified optimum against 50 local searches: python experiments/trust/engine/run.py [instances] [starts] [seed].

For each random instance, k = 3 to 5, and each of (epsilon, delta)-LDP and Rényi-LDP, the design's value is compared
with the best of `starts` convex-concave local searches, repaired and measured like a design, and with its own bound.
Writes results.csv, one row a design.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np

from ldpopt.design import ApproximateLDP, Divergence, LocalSearch, RenyiLDP, optimal_channel
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, SQUARED_HELLINGER

DIVERGENCES = (KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON)
ORDERS = (1.5, 2.0, 3.0, 4.0)


def main(instances, starts, seed):
    rng = np.random.default_rng(seed)
    behind, widest = 0.0, 0.0
    with (Path(__file__).parent / "results.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        head = ["k", "divergence", "constraint", "value", "upper_bound", "relative_gap", "best_local_search"]
        writer.writerow([*head, "behind", "seconds", "local_seconds"])
        for number in range(instances):
            k = 3 + number % 3
            f = DIVERGENCES[number % 4]
            p0, p1 = 0.98 * rng.dirichlet(np.ones(k), 2) + 0.02 / k
            constraints = (
                ApproximateLDP(float(rng.uniform(0.3, 2.0)), float(10 ** rng.uniform(-3, -1))),
                RenyiLDP(ORDERS[number % 4], float(rng.uniform(0.2, 1.0))),
            )
            for constraint in constraints:
                utility = Divergence(f, p0, p1)
                began = time.perf_counter()
                design = optimal_channel(utility, constraint)
                middle = time.perf_counter()
                search = LocalSearch(starts, np.random.default_rng([seed, number]))
                found = optimal_channel(utility, constraint, method=search, certify=False)
                seconds = middle - began, time.perf_counter() - middle
                lost = (found.value - design.value) / design.value
                behind, widest = max(behind, lost), max(widest, design.relative_gap)
                numbers = (design.value, design.upper_bound, design.relative_gap, found.value, lost, *seconds)
                writer.writerow([k, f.name, repr(constraint), *(f"{one:.12g}" for one in numbers)])
                file.flush()
    print(f"{instances} instances: a search is ahead by at most {behind:.3g} relative, the widest gap is {widest:.3g}")


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*(given + [30, 50, 1][len(given) :]))
