"""Coverage of the intervals of tables, comparisons, means and regressions: writes coverage.csv beside this file.

    python experiments/surveys/analyses/run.py [replications] [setting ...]

Every setting is a survey that is simulated 2,000 times from the answers on; every row says how often the nominal
95 % intervals of one kind of result held the truth, the least and the most over the results of that kind.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit

from ldpopt.channel import Channel
from ldpopt.errors import SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import (
    difference,
    estimate,
    linear_regression,
    logit_regression,
    mean,
    population_total,
    quantile,
    tables_by_group,
    two_way,
)

SEED = 20261122
Truths = dict[str, np.ndarray]
Survey = Callable[[np.random.Generator], dict[str, np.ndarray]]
"""One survey: for each kind of result, whether its intervals held the truth."""


def said(answers: np.ndarray, channel: Channel, rng: np.random.Generator) -> np.ndarray:
    return channel.sample_indices(answers, rng)


def drawn(p: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(len(p), n, p=p)


def held(intervals, truth) -> np.ndarray:
    return np.asarray(intervals.contains(truth))


def two_way_survey(n: int, epsilon: float, public: bool) -> Survey:
    """Two answers of 3 and 2 categories, related; the second private or public."""
    joint = np.array([[0.30, 0.20], [0.15, 0.15], [0.05, 0.15]])
    first = randomized_response(3, epsilon)
    second = Channel(np.eye(2)) if public else randomized_response(2, epsilon)

    def one(rng):
        cell = drawn(joint.ravel(), n, rng)
        made = two_way(said(cell // 2, first, rng), said(cell % 2, second, rng), first, second)
        free = rng.permutation(n)  # independent answers with the same margins
        null = two_way(said(cell // 2, first, rng), said(cell[free] % 2, second, rng), first, second)
        inside = {
            "joint shares": held(made.joint.intervals(), joint.ravel()),
            "margins": held(made.rows.intervals(), joint.sum(axis=1)),
            "independence not rejected at 5 %": np.array([null.independence().p_value > 0.05]),
        }
        if made.rows.values[0] > 0:
            inside["shares within a row"] = held(made.given_row(0).intervals(), joint[0] / joint[0].sum())
        return inside

    return one


def compare_survey(n: int, epsilon: float) -> Survey:
    """Two groups of unequal size, three categories."""
    shares = np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])
    channel = randomized_response(3, epsilon)

    def one(rng):
        group = (rng.random(n) < 0.3).astype(int)
        answers = np.where(group == 0, drawn(shares[0], n, rng), drawn(shares[1], n, rng))
        tables = tables_by_group(said(answers, channel, rng), channel, group)
        change = difference(*(estimate(tables[g], channel) for g in (1, 0)))
        return {"differences": held(change.intervals(), shares[1] - shares[0])}

    return one


def waves_survey(n: int, epsilon: float) -> Survey:
    """Two waves under different channels."""
    shares = np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])
    channels = randomized_response(3, epsilon), randomized_response(3, 2 * epsilon)

    def one(rng):
        found = [estimate(np.bincount(said(drawn(p, n, rng), q, rng), minlength=3), q)
                 for p, q in zip(shares, channels, strict=True)]  # fmt: skip
        return {"differences of waves": held(difference(found[1], found[0]).intervals(), shares[1] - shares[0])}

    return one


def numbers_survey(n: int, epsilon: float) -> Survey:
    """Five bins of a number."""
    p = np.array([0.1, 0.25, 0.3, 0.25, 0.1])
    labels = ["0-10", "10-20", "20-30", "30-50", "50-100"]
    channel = randomized_response(5, epsilon, inputs=labels)
    middles = np.array([5, 15, 25, 40, 75])
    edges = np.array([[0, 10], [10, 20], [20, 30], [30, 50], [50, 100.0]])
    truths = {0.5: 20 + 10 * 0.15 / 0.3, 0.25: 10 + 10 * 0.15 / 0.25, 0.9: 50.0}

    def one(rng):
        found = estimate(np.bincount(said(drawn(p, n, rng), channel, rng), minlength=5), channel)
        middle = mean(found, middles)
        held_quantiles = []
        for share, truth in truths.items():
            made = quantile(found, share, edges)
            held_quantiles.append(made.lower <= truth <= made.upper)
        return {
            "mean": held(middle.intervals(), [p @ middles]),
            "total": held(population_total(found, 10_000).intervals(), 10_000 * p),
            "quantiles 0.25, 0.5, 0.9": np.array(held_quantiles),
        }

    return one


def logistic_survey(n: int, epsilon: float, weighted: bool) -> Survey:
    """A private yes or no, explained by a number and a factor; weighted and clustered or not."""
    truth = np.array([-0.8, 0.5, 0.6])
    channel = randomized_response(2, epsilon)

    def one(rng):
        x, group = rng.normal(size=n), rng.integers(0, 2, n)
        answers = (rng.random(n) < expit(truth[0] + truth[1] * x + truth[2] * group)).astype(int)
        data = {"y": said(answers, channel, rng), "x": x, "group": np.where(group, "b", "a")}
        extra = {"weights": rng.uniform(0.5, 2.0, n), "clusters": rng.integers(0, 80, n)} if weighted else {}
        made = logit_regression("y ~ x + group", data, {"y": channel}, **extra)
        return {"coefficients": held(made.intervals(), truth)}

    return one


def multinomial_survey(n: int, epsilon: float) -> Survey:
    """Three private categories."""
    truth = np.array([[-0.3, 0.5], [-0.8, -0.4]])
    channel = randomized_response(3, epsilon)

    def one(rng):
        x = rng.normal(size=n)
        chance = np.exp(np.stack([np.zeros(n), *(a + b * x for a, b in truth)], axis=1))
        chance /= chance.sum(axis=1, keepdims=True)
        answers = (rng.random(n)[:, None] > chance.cumsum(axis=1)).sum(axis=1)
        made = logit_regression("y ~ x", {"y": said(answers, channel, rng), "x": x}, {"y": channel})
        return {"coefficients": held(made.intervals(), truth.ravel())}

    return one


def predictor_survey(n: int, epsilon: float, private_outcome: bool) -> Survey:
    """A private predictor of a yes or no, which is private, too, or not."""
    truth = np.array([-0.5, 0.4, 0.9])
    channel = randomized_response(2, epsilon)

    def one(rng):
        x = rng.normal(size=n)
        z = (rng.random(n) < expit(0.5 * x)).astype(int)
        answers = (rng.random(n) < expit(truth[0] + truth[1] * x + truth[2] * z)).astype(int)
        data = {"y": said(answers, channel, rng) if private_outcome else answers, "x": x, "z": said(z, channel, rng)}
        channels = {"z": channel, **({"y": channel} if private_outcome else {})}
        return {"coefficients": held(logit_regression("y ~ x + z", data, channels).intervals(), truth)}

    return one


def linear_survey(n: int, epsilon: float) -> Survey:
    """A number explained by a private predictor, with skewed residuals of unequal variance."""
    truth = np.array([2.0, 0.5, 1.0])
    channel = randomized_response(2, epsilon)

    def one(rng):
        x, z = rng.normal(size=n), rng.integers(0, 2, n)
        y = truth[0] + truth[1] * x + truth[2] * z + (1 + z) * (rng.exponential(size=n) - 1)
        data = {"y": y, "x": x, "z": said(z, channel, rng)}
        return {"coefficients": held(linear_regression("y ~ x + z", data, {"z": channel}).intervals(), truth)}

    return one


SETTINGS: dict[str, Survey] = {
    "two-way, both private, n 2000, epsilon 1": two_way_survey(2000, 1.0, False),
    "two-way, both private, n 1000, epsilon 2": two_way_survey(1000, 2.0, False),
    "two-way, private and public, n 1000, epsilon 1": two_way_survey(1000, 1.0, True),
    "compare groups, n 1000, epsilon 1": compare_survey(1000, 1.0),
    "compare groups, n 400, epsilon 2": compare_survey(400, 2.0),
    "compare waves, n 1000, epsilon 1 and 2": waves_survey(1000, 1.0),
    "mean, total, quantiles, n 1000, epsilon 1": numbers_survey(1000, 1.0),
    "mean, total, quantiles, n 4000, epsilon 1": numbers_survey(4000, 1.0),
    "logistic, private outcome, n 2000, epsilon 1": logistic_survey(2000, 1.0, False),
    "logistic, private outcome, n 1000, epsilon 2": logistic_survey(1000, 2.0, False),
    "logistic, weighted and clustered, n 3000, epsilon 1": logistic_survey(3000, 1.0, True),
    "multinomial, private outcome, n 3000, epsilon 2": multinomial_survey(3000, 2.0),
    "logistic, private predictor, n 2000, epsilon 2": predictor_survey(2000, 2.0, False),
    "logistic, private predictor and outcome, n 4000, epsilon 2": predictor_survey(4000, 2.0, True),
    "linear, private predictor, n 1000, epsilon 1": linear_survey(1000, 1.0),
}


def cover(name: str, replications: int) -> Iterator[tuple[str, int, float, float, float]]:
    """For each kind of result of a setting: surveys, coverage on average, least and most."""
    rng = np.random.default_rng([SEED, list(SETTINGS).index(name)])
    hits: dict[str, list[np.ndarray]] = {}
    for _ in range(replications):
        try:
            made = SETTINGS[name](rng)
        except SolverError:  # no finite maximum: the column of surveys says how many had one
            continue
        for kind, found in made.items():
            hits.setdefault(kind, []).append(found)
    for kind, found in hits.items():
        share = np.mean(found, axis=0)
        yield kind, len(found), float(share.mean()), float(share.min()), float(share.max())


def main() -> None:
    arguments = sys.argv[1:]
    replications = int(arguments[0]) if arguments else 2000
    names = [name for name in SETTINGS if not arguments[1:] or any(part in name for part in arguments[1:])]
    rows = []
    for name in names:
        began = time.perf_counter()
        for row in cover(name, replications):
            rows.append((name, *row))
            print(name, *row, flush=True)
        print(f"  {time.perf_counter() - began:.0f} s", flush=True)
    if len(names) < len(SETTINGS):
        return
    with open(Path(__file__).with_name("coverage.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["setting", "result", "surveys", "average", "least", "most"])
        writer.writerows([(*row[:3], *(f"{value:.4f}" for value in row[3:])) for row in rows])


if __name__ == "__main__":
    main()
