"""How often intervals of surveys cover the truth: weighted, clustered, by group, cheaters, two stages.

    python experiments/trust/coverage.py [--surveys 2000] [--seed 1] [--only NAME ...]

Every survey is drawn anew: the respondents by the design, their answers, and their reports through the channel. What
must be covered is the truth of the population (or of the model that makes it). A line gives the share of 95 % intervals
that hold it, for each quantity and of all together; the standard error of one share over 2,000 surveys is 0.5 %.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from ldpopt.channel import Channel
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt_survey import (
    Jackknife,
    RescaledBootstrap,
    SampleDesign,
    SampledReports,
    compliance_groups,
    difference,
    directed_answers,
    estimate,
    estimate_compliance,
    estimate_waves,
    rake,
    second_channel,
    tables_by_group,
    with_cheaters,
)

Rng = np.random.Generator
Hits = dict[str, bool]
Q3 = randomized_response(3, 1.5)
Q2 = randomized_response(2, 1.0)


def weighted(rng: Rng) -> Hits:
    """600 drawn one by one with chances that grow with an answer's rate; weights are their inverses."""
    size = rng.gamma(2.0, 1.0, 20_000)
    high = size > 2
    truth = np.where(high[:, None], [0.3, 0.3, 0.4], [0.7, 0.2, 0.1])
    answers = (rng.random(len(size))[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    share = np.bincount(answers, minlength=3) / len(answers)
    chance = np.clip(size / size.mean(), 0.2, 4)
    drawn = rng.choice(len(size), 600, p=chance / chance.sum())
    y = Q3.sample_indices(answers[drawn], rng)
    made = estimate(SampledReports.of(y, Q3, SampleDesign(1 / chance[drawn])), Q3)
    return {f"p{i}": bool(c) for i, c in enumerate(made.intervals().contains(share))}


def population(rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Answers, strata, villages and sexes of 4 strata of 60 villages of 40 people, with an effect of the village."""
    strata = np.repeat(np.arange(4), 2400)
    villages = np.repeat(np.arange(240), 40)
    effect = rng.normal(0, 0.12, 240)[villages]
    sex = rng.integers(0, 2, 9600)
    rate = np.clip(0.25 + 0.1 * strata + effect + 0.1 * sex, 0, 1)
    return (rng.random(9600) < rate).astype(int), strata, villages, sex


def clustered(rng: Rng, method: object = None, fpc: bool = False, draw: int = 12) -> Hits:
    """12 of 60 villages of each of 4 strata, 15 people in each; weights correct a doubled stratum."""
    answers, strata, villages, sex = population(rng)
    chosen = []
    for h in range(4):
        for v in rng.choice(np.arange(60 * h, 60 * (h + 1)), draw, replace=False):
            people = np.flatnonzero(villages == v)
            chosen.append(people if fpc else rng.choice(people, 15, replace=False))
    who = np.concatenate(chosen)
    w = np.full(len(who), 60 / draw * (1 if fpc else 40 / 15))
    y = Q2.sample_indices(answers[who], rng)
    design = SampleDesign(w, strata[who], villages[who], np.full(len(who), 60) if fpc else None)
    design = design if method is None else design.with_method(method)
    made = estimate(SampledReports.of(y, Q2, design), Q2)
    hits = {"share of yes": bool(made.intervals().contains(np.bincount(answers) / len(answers))[1])}
    groups = tables_by_group(y, Q2, sex[who], design=design)
    parts = [estimate(groups[g], Q2) for g in (0, 1)]
    truth = np.array([answers[sex == g].mean() for g in (0, 1)])
    for g, part in enumerate(parts):
        hits[f"group {g}"] = bool(part.intervals().contains([1 - truth[g], truth[g]])[1])
    hits["difference of groups"] = bool(
        difference(parts[1], parts[0]).intervals().contains([0, truth[1] - truth[0]])[1]
    )
    return hits


def census_of_villages(rng: Rng) -> Hits:
    """24 of 60 villages of each stratum, everybody in them: a finite population."""
    return clustered(rng, fpc=True, draw=24)


def jackknife(rng: Rng) -> Hits:
    """As clustered, with the variance by the jackknife."""
    return clustered(rng, Jackknife())


def bootstrap(rng: Rng) -> Hits:
    """As clustered, with the variance by 200 bootstrap replicates."""
    return clustered(rng, RescaledBootstrap(200, int(rng.integers(1 << 30))))


def raked(rng: Rng) -> Hits:
    """800 of a population, in which men answer half as often, raked to sex and stratum."""
    answers, strata, _, sex = population(rng)
    chance = np.where(sex == 1, 0.5, 1.0)
    who = rng.choice(len(answers), 800, replace=False, p=chance / chance.sum())
    known = [
        (sex[who], dict(enumerate(np.bincount(sex) / len(sex)))),
        (strata[who], dict(enumerate(np.bincount(strata) / len(strata)))),
    ]
    y = Q2.sample_indices(answers[who], rng)
    made = estimate(SampledReports.of(y, Q2, rake(SampleDesign(size=800), known)), Q2)
    return {"share of yes": bool(made.intervals().contains([1 - answers.mean(), answers.mean()])[1])}


def by_group(rng: Rng) -> Hits:
    """1,500 drawn one by one with weights, in groups of about 1,000, 400 and 100."""
    group = rng.choice(3, 1500, p=[0.67, 0.26, 0.07])
    truth = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4], [0.8, 0.15, 0.05]])
    answers = (rng.random(1500)[:, None] > truth[group].cumsum(axis=1)).sum(axis=1)
    w = rng.uniform(1, 3, 1500)
    y = Q3.sample_indices(answers, rng)
    tables = tables_by_group(y, Q3, group, design=SampleDesign(w))
    hits = {}
    for g in range(3):
        covered = estimate(tables[g], Q3).intervals().contains(truth[g])
        hits |= {f"group {g}, p{i}": bool(c) for i, c in enumerate(covered)}
    return hits


def _cheaters(rng: Rng, groups: list[tuple[int, Channel]], report: object, truth: np.ndarray) -> Hits:
    data = [(rng.multinomial(n, truth @ with_cheaters(q, report).matrix), q) for n, q in groups]
    named = [(dict(zip(q.outputs, counts, strict=True)), q) for counts, q in data]
    made = estimate_compliance(named, report)
    hits = {
        str(label): bool(c)
        for label, c in zip(made.estimate.labels, made.estimate.intervals().contains(truth), strict=True)
    }
    low, high = made.among_compliers("yes").interval()
    hits["yes among compliers"] = low <= truth[1] / (truth[0] + truth[1]) <= high
    _, honest = made.if_cheaters_have("yes")
    low, high = honest.interval()
    hits["honest (lie detector)"] = low <= truth[1] / (truth[1] + truth[2]) <= high
    low, high = made.bounds("yes")
    hits["bounds hold all yes"] = low <= truth[1] + truth[2] * 0.5 <= high
    return hits


def cheating_detection(rng: Rng) -> Hits:
    """Two groups of 750 directed to yes with 0.25 and 0.75: 60 % no, 25 % yes, 15 % cheat."""
    groups = [(750, directed_answers(0.25)), (750, directed_answers(0.75))]
    return _cheaters(rng, groups, "no", np.array([0.6, 0.25, 0.15]))


def private_groups(rng: Rng) -> Hits:
    """2,000 in the two groups of `compliance_groups` within epsilon = 2."""
    groups = [(round(2000 * share), q) for share, q in compliance_groups(2.0)]
    return _cheaters(rng, groups, "no", np.array([0.6, 0.25, 0.15]))


def two_stage(rng: Rng) -> Hits:
    """A pilot of 400, then 1,600 through the channel that suits what it estimated, within epsilon = 1."""
    truth = np.array([0.75, 0.15, 0.07, 0.03])
    first = subset_selection(4, 1.0, 1)
    pilot = rng.multinomial(400, truth @ first.matrix)
    second = second_channel(estimate(pilot, first), 1.0)
    later = rng.multinomial(1600, truth @ second.matrix)
    made = estimate_waves([(pilot, first), (later, second)])
    return {f"p{i}": bool(c) for i, c in enumerate(made.intervals().contains(truth))}


DESIGNS: dict[str, Callable[[Rng], Hits]] = {
    one.__name__: one
    for one in (
        weighted, clustered, census_of_villages, jackknife, bootstrap, raked, by_group, cheating_detection,
        private_groups, two_stage,
    )
}  # fmt: skip


def cover(name: str, surveys: int, seed: int) -> dict[str, float]:
    """The share of the surveys whose interval covers, for every quantity."""
    rng = np.random.default_rng([seed, *name.encode()])
    counted: dict[str, int] = {}
    for _ in range(surveys):
        for quantity, hit in DESIGNS[name](rng).items():
            counted[quantity] = counted.get(quantity, 0) + hit
    return {quantity: count / surveys for quantity, count in counted.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    asked = parser.parse_args()
    for name in asked.only:
        begin = time.process_time()
        found = cover(name, asked.surveys, asked.seed)
        shown = "; ".join(f"{quantity} {100 * share:.1f}" for quantity, share in found.items())
        print(f"| `{name}` | {asked.surveys} | {shown} | {time.process_time() - begin:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
