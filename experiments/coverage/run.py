"""Coverage of the confidence intervals over simulated surveys: writes coverage.csv beside this file.

    python experiments/coverage/run.py [replications]

Every row of the table is one setting and one method: the share of 20,000 simulated surveys whose 95 % intervals
cover the truth, the smallest and largest over the categories, and for simultaneous methods the share in which all
of them cover, at the average survey's critical value (`own_critical.py` lets each survey have its own).
"""

from __future__ import annotations

import csv
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

from ldpopt.channel import Channel
from ldpopt.survey import Bonferroni, GeneralizedLeastSquares, MaximumLikelihood, Score, Simultaneous, Wald, estimate
from ldpopt.survey.estimate.counts import CountTable
from ldpopt.survey.estimate.intervals import moments

SEED = 20241105
METHODS = (Wald(), Score(), Simultaneous(Wald()), Simultaneous(Score()), Bonferroni(Score()))


def randomized_response(k, epsilon):
    e = np.exp(epsilon)
    return Channel((np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1))


def subset_selection(k, epsilon, size):
    """More outputs than inputs, so that the left inverse is estimated too."""
    subsets = list(combinations(range(k), size))
    inside = np.array([[x in subset for subset in subsets] for x in range(k)])
    raw = np.where(inside, np.exp(epsilon), 1.0)
    return Channel(raw / raw.sum(axis=1, keepdims=True))


def flat(k):
    return np.full(k, 1 / k)


def skewed(k):
    p = 1 / np.arange(1, k + 1) ** 2.0
    return p / p.sum()


def covered(lower, upper, p):
    return (lower <= p) & (p <= upper)


def square_case(channel, p, n, replications, rng):
    """All surveys at once; the correlation of simultaneous methods is the average one."""
    loadings = GeneralizedLeastSquares().fit(channel.push(p), channel)[1]
    frequencies = rng.multinomial(n, channel.push(p), size=replications) / n
    made = moments(frequencies, loadings, None, n)
    return {method: covered(*method.limits(made), p) for method in METHODS}


def general_case(channel, p, n, replications, rng, estimator):
    """Survey by survey, through the same call a user makes."""
    counts = rng.multinomial(n, channel.push(p), size=replications)
    hits = {method: np.zeros((replications, len(p)), dtype=bool) for method in METHODS[:2]}
    for r, row in enumerate(counts):
        made = estimate(CountTable.from_counts(row, channel.outputs), channel, estimator).moments
        for method in hits:
            hits[method][r] = covered(*method.limits(made), p)
    return hits


def settings():
    for k in (2, 4, 7, 24):
        for shape in (flat, skewed):
            for n in (1000, 5000):
                for epsilon in (0.5, 1.0, 2.0):
                    yield "randomized response", randomized_response(k, epsilon), shape, n, epsilon, None
    for k, size in ((4, 2), (7, 2), (24, 2)):
        for shape in (flat, skewed):
            yield "subset selection", subset_selection(k, 1.0, size), shape, 1000, 1.0, GeneralizedLeastSquares()
    for shape in (flat, skewed):
        yield "subset selection", subset_selection(4, 1.0, 2), shape, 1000, 1.0, MaximumLikelihood()


def main(replications):
    rows = []
    streams = np.random.SeedSequence(SEED).spawn(1000)
    for at, (name, channel, shape, n, epsilon, estimator) in enumerate(settings()):
        rng, started = np.random.default_rng(streams[at]), time.perf_counter()
        k, m = channel.shape
        p = shape(k)
        if estimator is None:
            hits = square_case(channel, p, n, replications, rng)
        else:
            hits = general_case(channel, p, n, replications, rng, estimator)
        for method, hit in hits.items():
            each = hit.mean(axis=0)
            rows.append(
                {
                    "channel": name, "inputs": k, "outputs": m, "epsilon": epsilon, "truth": shape.__name__, "n": n,
                    "estimator": getattr(estimator, "name", "any (square channel)"),
                    "critical value": "own" if estimator is not None else "average", "method": method.name,
                    "replications": replications,
                    "lowest": f"{each.min():.4f}", "highest": f"{each.max():.4f}", "mean": f"{each.mean():.4f}",
                    "all": f"{hit.all(axis=1).mean():.4f}",
                }
            )  # fmt: skip
        print(f"{name} k={k} {shape.__name__} n={n} eps={epsilon}: {time.perf_counter() - started:.1f} s", flush=True)
    with open(Path(__file__).with_name("coverage.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
