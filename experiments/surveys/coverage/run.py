"""Coverage of the 95 % confidence intervals over simulated surveys: writes coverage.csv beside this file.

    python experiments/surveys/coverage/run.py [surveys]

Every row is one channel, one truth and one number of respondents: how often the intervals of a share cover it, over all
answers, and over the answer of which they do so least and most. Each survey is estimated by the call a user makes.
Surveys with the same counts are estimated once. Weighted samples have weights of their own in every survey.
"""

from __future__ import annotations

import csv
import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np

from ldpopt.channel import Channel
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import CountTable, SampleDesign, SampledReports, Wald, estimate

SEED = 20261123
SIZES, EPSILONS = (20, 50, 200, 1000), (0.5, 1.0, 3.0, 6.0)
WEIGHTS = {"weights of 0.5 to 2": 0.0, "lognormal weights, sigma 1": 1.0, "lognormal weights, sigma 1.5": 1.5}


def subset_selection(k, epsilon, size):
    """More outputs than inputs, so that the left inverse is estimated too."""
    subsets = list(combinations(range(k), size))
    raw = np.where([[x in subset for subset in subsets] for x in range(k)], np.exp(epsilon), 1.0)
    return Channel(raw / raw.sum(axis=1, keepdims=True))


def neighbours(k, epsilon):
    """A square channel whose reports are near the answer: loadings of many sizes."""
    raw = np.exp(-epsilon * np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1))
    return Channel(raw / raw.sum(axis=1, keepdims=True))


CHANNELS = {
    **{f"randomized response, {k} answers": lambda e, k=k: randomized_response(k, e) for k in (2, 3, 6, 10)},
    "near ones, 4 answers": lambda e: neighbours(4, e),
    "sets of 2 of 4 answers": lambda e: subset_selection(4, e, 2),
    "sets of 3 of 6 answers": lambda e: subset_selection(6, e, 3),
    "sets of 2 of 8 answers": lambda e: subset_selection(8, e, 2),
}


def truths(k):
    """Even shares, falling ones, and one answer beside answers of 1 % each."""
    falling, rare = 1 / np.arange(1, k + 1) ** 2.0, np.full(k, 0.01)
    rare[0] = 1 - rare[1:].sum()
    return {"even": np.full(k, 1 / k), "falling": falling / falling.sum(), "rare": rare}


def simple(channel, p, n, surveys, rng):
    """By survey and answer, whether the default interval covers, and whether Wald's does."""
    rows, times = np.unique(rng.multinomial(n, channel.push(p), size=surveys), axis=0, return_counts=True)
    found = [estimate(CountTable.from_counts(row, channel.outputs), channel) for row in rows]
    hits = ([one.intervals(method).contains(p) for one in found] for method in (None, Wald()))
    return [np.repeat(np.array(each), times, axis=0) for each in hits]


def weighted(channel, p, n, surveys, rng, sigma):
    """The same for respondents with weights, which hang on nothing."""
    hits = ([], [])
    for _ in range(surveys):
        y = channel.sample_indices(rng.choice(len(p), n, p=p), rng)
        weights = np.exp(sigma * rng.normal(size=n)) if sigma else rng.uniform(0.5, 2, n)
        made = estimate(SampledReports(y, channel, SampleDesign(weights=weights)), channel)
        for each, method in zip(hits, (None, Wald()), strict=True):
            each.append(made.intervals(method).contains(p))
    return [np.array(each) for each in hits]


def settings(sizes):
    """What is simulated: names, and a function of the generator."""
    for (name, made), epsilon, n in product(CHANNELS.items(), EPSILONS, sizes):
        channel = made(epsilon)
        for truth, p in truths(len(channel.inputs)).items():
            yield ("simple", name, epsilon, truth, n), simple, (channel, p, n)
    for (sample, sigma), n in product(WEIGHTS.items(), sizes):
        for name, epsilon in (("randomized response, 3 answers", 1.0), ("sets of 2 of 4 answers", 3.0)):
            channel = CHANNELS[name](epsilon)
            for truth, p in truths(len(channel.inputs)).items():
                yield (sample, name, epsilon, truth, n), weighted, (channel, p, n, sigma)


def main(surveys: int = 2000, sizes: tuple[int, ...] = SIZES) -> list[dict[str, object]]:
    """Compute every setting, write the table, and say how many settings are outside 93.5 to 97 %."""
    table = []
    for index, (names, run, (channel, p, n, *more)) in enumerate(settings(sizes)):
        default, wald = run(channel, p, n, surveys, np.random.default_rng([SEED, index]), *more)
        each = default.mean(axis=0)
        measured = {"mean": each.mean(), "least": each.min(), "most": each.max()}
        measured |= {"Wald, mean": wald.mean(), "Wald, least": wald.mean(axis=0).min()}
        row = dict(zip(("sample", "channel", "epsilon", "truth", "n"), names, strict=True))
        table.append(row | {what: f"{100 * share:.2f}" for what, share in measured.items()})
    for n in sizes:
        for sample in ("simple", *WEIGHTS):
            rows = [row for row in table if row["n"] == n and row["sample"] == sample]
            mean, least, most = ([float(row[what]) for row in rows] for what in ("mean", "least", "most"))
            low, high = (100 * np.mean([x < 93.5 for x in least]), 100 * np.mean([x > 97 for x in most]))
            print(f"n = {n}, {sample}: {len(rows)} settings, mean {min(mean)} to {max(mean)}, of an answer "
                  f"{min(least)} to {max(most)}; below 93.5 in {low:.0f} %, above 97 in {high:.0f} %")  # fmt: skip
    return table


if __name__ == "__main__":
    rows = main(*map(int, sys.argv[1:]))
    with Path(__file__).with_name("coverage.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
