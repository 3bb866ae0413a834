"""Search for a counterexample to the eta-envelope: python experiments/envelope/run.py [instances] [seed].

For each instance the value of the envelope (sort, partition, randomize, with a public coin) is compared with that
of the pattern program. A counterexample is a channel, repaired and measured, whose value exceeds the
envelope's by more than the arithmetic explains. Writes results.csv, one row an instance.
"""

import csv
import math
import sys
from pathlib import Path

import numpy as np

from ldpopt.design import Divergence, LocalDP, Partition, PatternLP, TotalVariation, optimal_channel
from ldpopt.divergences import NAMED, alpha, hockey_stick

DIVERGENCES = [*NAMED.values(), hockey_stick(1.5), alpha(3), alpha(0.5)]


def hypotheses(rng, k):
    """Random pairs: spread out, concentrated, nearly equal, symmetric, or with ratios in a few clusters."""
    kind = rng.integers(5)
    if kind == 0:
        return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
    if kind == 1:
        p, q = rng.dirichlet(np.full(k, 0.2)), rng.dirichlet(np.full(k, 0.2))
        return (p + 1e-4) / (1 + k * 1e-4), (q + 1e-4) / (1 + k * 1e-4)
    p = rng.dirichlet(np.ones(k))
    if kind == 2:
        q = p * np.exp(0.05 * rng.normal(size=k))
    elif kind == 3:
        return p, p[::-1].copy()
    else:
        q = p * np.exp(rng.choice([-2.0, -0.1, 0.1, 1.5], k) + 1e-3 * rng.normal(size=k))
    return p, q / q.sum()


def main(instances, seed):
    rng = np.random.default_rng(seed)
    worst = 0.0
    with (Path(__file__).parent / "results.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["k", "epsilon", "eta", "divergence", "envelope", "pattern_value", "upper_bound", "violation"])
        for _ in range(instances):
            k = int(rng.integers(3, 11))
            epsilon = float(np.exp(rng.uniform(np.log(0.05), np.log(8))))
            eta = float(rng.uniform(0.05, 0.99) * math.tanh(epsilon / 2))
            f = DIVERGENCES[rng.integers(len(DIVERGENCES))]
            utility = Divergence(f, *hypotheses(rng, k))
            caps = [LocalDP(epsilon), TotalVariation(eta)]
            envelope = optimal_channel(utility, caps, method=Partition())
            pattern = optimal_channel(utility, caps, method=PatternLP(), certify=False)
            violation = (pattern.value - envelope.value) / max(envelope.value, 1e-12)
            worst = max(worst, violation)
            row = (k, epsilon, eta, f.name, envelope.value, pattern.value, envelope.upper_bound, violation)
            writer.writerow([entry if isinstance(entry, (int, str)) else f"{entry:.12g}" for entry in row])
            file.flush()
    print(f"largest relative violation {worst:.3g} in {instances} instances")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
