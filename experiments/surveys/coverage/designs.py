"""Coverage of 95 % intervals in groups, clusters, finite populations, with zero weights and dependent answers.

    python experiments/surveys/coverage/designs.py [surveys] [--brief]

Writes designs.csv beside this file, or with --brief nothing: 100 surveys of each kind, which takes half a minute. Every
survey is drawn anew: respondents, answers and reports. A row says how often an interval holds the truth, of the
population that was drawn from or of the law that makes the answers, over all surveys and answers, with the mean degrees
of freedom and the mean standard error over the standard deviation of the estimates.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import expit

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import (
    Jackknife,
    LonelyUnit,
    RescaledBootstrap,
    SampleDesign,
    SampledReports,
    Subsample,
    difference,
    estimate,
    linear_regression,
    logit_by_moments,
    logit_regression,
    two_way,
)
from ldpopt_survey.estimate.groups import Source, estimate_booklets

SEED = 20261128
Q2, Q3 = randomized_response(2, 1.0), randomized_response(3, 2.0)
Survey = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]
"""Estimates, standard errors, whether the interval holds the truth, the truth, and the degrees of freedom."""


def told(made, truth: np.ndarray) -> Survey:
    limits = made.intervals()
    hit = (limits.lower <= truth) & (truth <= limits.upper)
    return np.ravel(made.values), np.ravel(made.standard_errors), hit, np.ravel(truth), made.degrees


def villages(rng: np.random.Generator, units: int, size: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """The village of every respondent, and answers whose shares differ between villages."""
    village = np.repeat(np.arange(units), size)
    rate = expit(-0.5 + spread * rng.normal(size=units))[village]
    return village, (rng.random(len(village)) < rate).astype(int)


def rate_of(spread: float) -> float:
    """The mean of the villages' rates."""
    x, w = np.polynomial.hermite_e.hermegauss(60)
    return float(expit(-0.5 + spread * x) @ w / w.sum())


def group_of(units: int, spread: float, method=None) -> Callable[[np.random.Generator], Survey]:
    """A group in some of 30 villages of 25: a whole region of `units` villages, of a share that varies by village."""

    def survey(rng: np.random.Generator) -> Survey:
        village, answers = villages(rng, 30, 25, spread)
        inside = village < units
        design = SampleDesign(clusters=village, **({} if method is None else {"method": method}))
        made = estimate(SampledReports.of(Q2.sample_indices(answers, rng), Q2, design).where(inside), Q2)
        return told(made, np.array([1 - rate_of(spread), rate_of(spread)]))

    return survey


def groups_apart(rng: np.random.Generator) -> Survey:
    """The difference of two groups that cut through 20 villages."""
    village, answers = villages(rng, 20, 30, 0.8)
    sex = rng.integers(0, 2, len(village))
    whole = SampledReports.of(Q2.sample_indices(answers, rng), Q2, SampleDesign(clusters=village))
    parts = [estimate(whole.where(sex == group), Q2) for group in (0, 1)]
    return told(difference(*parts), np.zeros(2))


def zero_weights(share: float) -> Callable[[np.random.Generator], Survey]:
    """Weights of zero for a share of the respondents, among them whole villages; others have lognormal weights."""

    def survey(rng: np.random.Generator) -> Survey:
        village, answers = villages(rng, 40, 20, 0.6)
        counted = (rng.random(len(village)) >= share) & (village >= 40 * share / 2)
        w = np.exp(0.5 * rng.normal(size=len(village))) * counted
        design = SampleDesign(w, strata=village % 4, clusters=village, lonely=LonelyUnit.AVERAGE)
        made = estimate(SampledReports.of(Q2.sample_indices(answers, rng), Q2, design), Q2)
        return told(made, np.array([1 - rate_of(0.6), rate_of(0.6)]))

    return survey


def dependent(rng: np.random.Generator) -> Survey:
    """A table of two answers that depend on each other and on the village, 30 villages of 30."""
    village = np.repeat(np.arange(30), 30)
    joint = np.array([[0.30, 0.05, 0.05], [0.05, 0.25, 0.30]])
    laws = rng.dirichlet(40 * joint.ravel(), size=30)[village]
    cell = (rng.random(len(village))[:, None] > laws.cumsum(axis=1)).sum(axis=1).clip(0, 5)
    row, column = Q2.sample_indices(cell // 3, rng), Q3.sample_indices(cell % 3, rng)
    labels = np.array(Q2.outputs)[row], np.array(Q3.outputs)[column]
    return told(two_way(*labels, Q2, Q3, sample=SampleDesign(clusters=village)).joint, joint.ravel())


def booklets(fraction: float) -> Callable[[np.random.Generator], Survey]:
    """One question in two booklets of other channels, a share of a finite population of 1,500 asked."""
    weak = randomized_response(2, 0.6)

    def survey(rng: np.random.Generator) -> Survey:
        people = (rng.random(1500) < 0.35).astype(int)
        n = round(1500 * fraction)
        answers = people[rng.permutation(1500)[:n]]
        first = rng.permutation(n) < n // 2
        reports = np.where(first, Q2.sample_indices(answers, rng), weak.sample_indices(answers, rng))
        sources = [
            Source(str(i), channel, np.where(part, reports, -1), np.eye(2), np.array([0.5, 0.5]))
            for i, (channel, part) in enumerate(((Q2, first), (weak, ~first)))
        ]
        made = estimate_booklets(sources, ("no", "yes"), SampleDesign(size=n, fpc=np.full(n, 1500)))
        return told(made, np.array([1 - people.mean(), people.mean()]))

    return survey


PEOPLE = {}


def population(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """200 villages of 20: village, public x, private p and answer y; and the coefficients of the whole population."""
    if kind not in PEOPLE:
        rng = np.random.default_rng(SEED)
        village = np.repeat(np.arange(200), 20)
        x = (rng.normal(size=4000) + 0.5 * rng.normal(size=200)[village]).round(1)
        p = (rng.random(4000) < expit(0.5 * x)).astype(int)
        effect = 0.5 * rng.normal(size=200)[village]
        y = (rng.random(4000) < expit(-0.3 + 0.8 * x + 0.7 * p + effect)).astype(int)
        plain = {"x": x, "p": p.astype(float), "y": y}
        fit = linear_regression if kind == "linear" else logit_by_moments
        formula = "y ~ x + p" if kind != "logit, by likelihood" else "y ~ x"
        PEOPLE[kind] = village, x, p, y, fit(formula, plain, {}).values
    return PEOPLE[kind]


def regression(kind: str, units: int, method=None, finite: bool = False, group: bool = False) -> Callable[..., Survey]:
    """A regression of a private answer on a public and a private predictor, from `units` of 200 villages."""

    def survey(rng: np.random.Generator) -> Survey:
        village, x, p, y, truth = population(kind)
        drawn = rng.permutation(200)[:units]
        who = np.isin(village, drawn)
        more = {"fpc": np.full(who.sum(), 200)} if finite else {}
        more |= {} if method is None else {"method": method}
        sample = SampleDesign(clusters=village[who], **more)
        data = {"x": x[who], "y": Q2.sample_indices(y[who], rng), "p": Q2.sample_indices(p[who], rng)}
        channels = {"y": Channel(Q2.matrix, (0, 1), (0, 1)), "p": Channel(Q2.matrix, (0.0, 1.0), (0, 1))}
        if group:  # half of the villages, which stay in the design of all
            inside = np.isin(village[who], drawn[: units // 2])
            data, sample = {name: column[inside] for name, column in data.items()}, Subsample(sample, inside)
        if kind == "linear":
            return told(linear_regression("y ~ x + p", data, channels, sample=sample), truth)
        if kind == "logit, by moments":
            return told(logit_by_moments("y ~ x + p", data, channels, sample=sample), truth)
        return told(logit_regression("y ~ x", data, {"y": channels["y"]}, sample=sample), truth)

    return survey


def kinds() -> dict[str, Callable[[np.random.Generator], Survey]]:
    """All kinds of surveys by name."""
    made: dict[str, Callable[[np.random.Generator], Survey]] = {}
    for units, spread in product((1, 2, 3, 5, 10, 30), (0.0, 1.0)):
        alike = "alike" if not spread else "that differ"
        made[f"a group of {units} of 30 villages {alike}"] = group_of(units, spread)
    for name, method in (("jackknife", Jackknife()), ("bootstrap", RescaledBootstrap(200))):
        made[f"a group of 10 of 30 villages that differ, {name}"] = group_of(10, 1.0, method)
    made["the difference of two groups in 20 villages"] = groups_apart
    made |= {f"{share:.0%} of weights are 0, strata of villages": zero_weights(share) for share in (0.1, 0.5)}
    made["a table of dependent answers in 30 villages"] = dependent
    made |= {f"two booklets, {share:.0%} of a population asked": booklets(share) for share in (0.3, 0.8, 1.0)}
    for kind in ("linear", "logit, by moments", "logit, by likelihood"):
        made[f"{kind}: 40 of 200 villages"] = regression(kind, 40)
        made[f"{kind}: 120 of 200 villages, finite"] = regression(kind, 120, finite=True)
        made[f"{kind}: 200 of 200 villages, finite"] = regression(kind, 200, finite=True)
        made[f"{kind}: a group of 20 villages"] = regression(kind, 40, group=True)
        made[f"{kind}: 40 of 200 villages, jackknife"] = regression(kind, 40, Jackknife())
        made[f"{kind}: 40 of 200 villages, bootstrap"] = regression(kind, 40, RescaledBootstrap(100))
    return made


def covered(survey: Callable[[np.random.Generator], Survey], surveys: int, name: str) -> dict[str, str]:
    """A row of the table."""
    rng = np.random.default_rng([SEED, *name.encode()])
    values, errors, hits, degrees, refused = [], [], [], [], 0
    for _ in range(surveys):
        try:
            value, error, hit, truth, df = survey(rng)
        except (SolverError, InvalidInput):  # no finite coefficients, of the sample or of a replicate
            refused += 1
            continue
        values.append(value - truth)
        errors.append(error)
        hits.append(hit)
        degrees.append(df)
    share = np.mean(hits, axis=0)
    spread = np.std(values, axis=0)
    return {
        "surveys": str(surveys), "kind": name, "refused": str(refused),
        "coverage %": f"{100 * np.mean(hits):.1f}", "least %": f"{100 * share.min():.1f}",
        "degrees": "inf" if math.isinf(np.median(degrees)) else f"{np.mean(degrees):.1f}",
        "error / deviation": f"{np.mean(np.mean(errors, axis=0) / spread):.2f}",
    }  # fmt: skip


def main() -> None:
    """Simulate every kind, print the rows, and write them down unless the run is brief."""
    brief = "--brief" in sys.argv
    counts = [int(word) for word in sys.argv[1:] if word.isdigit()]
    surveys = counts[0] if counts else 60 if brief else 1000
    rows = []
    for name, survey in kinds().items():
        fewer = surveys // 4 if "jackknife" in name or "bootstrap" in name else surveys
        rows.append(covered(survey, fewer, name))
        print(", ".join(rows[-1].values()), flush=True)
    if not brief:
        with (Path(__file__).parent / "designs.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
