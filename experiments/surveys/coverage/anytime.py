"""Whether confidence sequences hold at all looks together, and how long they are: writes anytime.csv.

    python experiments/surveys/coverage/anytime.py [surveys]

Each simulated survey is looked at 100 times while its reports arrive. It counts as covered if the true shares were in
the sequence at every look, one answer at a time; beside it, what an interval for one look does that is read at them.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from ldpopt.mechanisms import randomized_response
from ldpopt_survey import Binomial, CountTable, SampleDesign, SampledReports, estimate
from ldpopt_survey.estimate.estimate import fixed_loadings
from ldpopt_survey.estimate.groups import Source, estimate_booklets
from ldpopt_survey.estimate.intervals import two_sided

LOOKS = 100
WARNER = randomized_response(2, 1.0)
SETTINGS = {
    "yes/no, epsilon 1": (WARNER, [0.7, 0.3], 3000),
    "yes/no, epsilon 4, rare": (randomized_response(2, 4.0), [0.98, 0.02], 1000),
    "four answers, epsilon 2": (randomized_response(4, 2.0), [0.5, 0.3, 0.15, 0.05], 3000),
}


def counted(channel, shares, n, surveys, rng):
    """By survey and answer, whether the sequence, and an interval for one look, held at all looks; their lengths."""
    truth, law = np.array(shares), channel.push(shares)
    held, fixed, ratio = [], [], []
    for _ in range(surveys):
        counts = np.cumsum(rng.multinomial(n // LOOKS, law / law.sum(), size=LOOKS), axis=0)
        first = estimate(CountTable.from_counts(counts[-1], channel.outputs), channel, anytime=True)
        plain = replace(first, bets=None)
        loadings, _ = fixed_loadings(channel)
        centre, second = counts @ loadings.T, counts @ (loadings**2).T
        size = counts.sum(axis=1)[:, None]
        spread = np.sqrt(np.maximum(second / size - (centre / size) ** 2, 1e-12) / size)
        fixed.append((np.abs(centre / size - truth) <= two_sided(0.95) * spread).all(axis=0))
        held.append(always(first.bets, counts[:, counts[-1] > 0], truth))
        ratio.append((first.intervals().width / plain.intervals(Binomial()).width).mean())
    return np.array(held), np.array(fixed), float(np.mean(ratio))


def always(bets, numbers, truth):
    """(r,) whether both gamblers stayed below 2 / alpha at every look, whose numbers of reports are (looks, U)."""
    most = np.full(len(truth), -np.inf)
    for number in numbers:
        at = replace(bets, number=number.astype(float))
        most = np.maximum(most, np.maximum(at.log_wealth(truth, 1), at.log_wealth(truth, -1)))
    return most < np.log(2 / 0.05)


def booklets(surveys, rng, n=3000):
    """Two booklets: a yes/no question alone, and with another one; the share of the first is estimated from both."""
    held, ratio = [], []
    pair = randomized_response(4, 1.0)
    contrasts = np.repeat(np.eye(2), 2, axis=1)
    for _ in range(surveys):
        answers, drawn = rng.choice(4, n, p=[0.6, 0.1, 0.1, 0.2]), rng.random(n) < 0.5
        cells, both = (drawn_from(q, x, rng) for q, x in ((WARNER, answers // 2), (pair, answers)))
        sources = [
            Source("one", WARNER, np.where(drawn, cells, -1), np.eye(2), np.full(2, 0.5)),
            Source("two", pair, np.where(drawn, -1, both), contrasts, np.full(4, 0.25)),
        ]
        found = estimate_booklets(sources, ("no", "yes"), anytime=True)
        pooled = np.where(drawn, cells, both + 2)
        looks = np.cumsum([np.bincount(part, minlength=6) for part in np.split(pooled, LOOKS)], axis=0)
        held.append(always(found.bets, looks[:, looks[-1] > 0], np.array([0.7, 0.3])))
        ratio.append((found.intervals().width / replace(found, bets=None).intervals().width).mean())
    return np.array(held), None, float(np.mean(ratio))


def weighted(surveys, rng, clusters=300, size=10):
    """Clusters of ten that lean to one answer, with weights that hang on the answer; looks after whole clusters."""
    held, ratio = [], []
    truth = np.array([0.7, 0.3 * 0.75]) / (0.7 + 0.3 * 0.75)
    for _ in range(surveys):
        yes = rng.random(clusters * size) < np.repeat(rng.choice([0.15, 0.45], clusters), size)
        weight = np.where(yes, rng.choice([0.5, 1.0], len(yes)), rng.choice([0.5, 1.5], len(yes)))
        design = SampleDesign(weights=weight, clusters=np.arange(len(yes)) // size)
        table = SampledReports(drawn_from(WARNER, yes.astype(int), rng), WARNER, design)
        found = estimate(table, WARNER, anytime=True)
        numbers = np.arange(clusters) < clusters // LOOKS * np.arange(1, LOOKS + 1)[:, None]
        held.append(always(found.bets, numbers, truth))
        ratio.append((found.intervals().width / replace(found, bets=None).intervals().width).mean())
    return np.array(held), None, float(np.mean(ratio))


def drawn_from(channel, answers, rng):
    """The report of each answer."""
    steps = np.cumsum(channel.matrix, axis=1)[answers]
    return (rng.random(len(answers))[:, None] > steps[:, :-1]).sum(axis=1)


def main(surveys: int = 2000) -> None:
    """Every setting, as a row of the table."""
    rng, made = np.random.default_rng(20261123), []
    runs = {name: lambda given=given: counted(*given, surveys, rng) for name, given in SETTINGS.items()}
    runs |= {"two booklets": lambda: booklets(surveys, rng), "weighted clusters": lambda: weighted(surveys, rng)}
    for name, run in runs.items():
        held, fixed, ratio = run()
        row = [name, surveys, *(f"{100 * x:.1f}" for x in (held.mean(), held.mean(axis=0).min()))]
        row += ["" if fixed is None else f"{100 * fixed.mean(axis=0).min():.1f}", f"{ratio:.2f}"]
        made.append(row)
        print(*row, sep=", ", flush=True)
    with Path(__file__).with_name("anytime.csv").open("w", newline="") as file:
        head = [
            "setting",
            "surveys",
            "covered at all looks, %",
            "least of an answer",
            "binomial interval at the same looks",
        ]
        csv.writer(file, lineterminator="\n").writerows([[*head, "length against one look"], *made])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
