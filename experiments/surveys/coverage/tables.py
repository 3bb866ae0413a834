"""Coverage of every printed cell of two-way tables under random plans: writes tables.csv.

    python experiments/surveys/coverage/tables.py [plans] [replications]
    python experiments/surveys/coverage/tables.py --brief

Each plan has two or three questions of two to five answers, with random pilots or none, at epsilon 1 to 4: by the
default, with one joint report, with a pair that is wanted together, or split. The true answers depend on each other,
and their shares are not those of the pilot. As many respondents answer as the plan needs, 20,000 at most. A table is
refused, or all its cells are printed; a row of the file has the share of 95 % intervals that cover the truth, over all
cells of a table and over the worst and the best one.
"""

from __future__ import annotations

import csv
import sys
from itertools import combinations
from pathlib import Path

import numpy as np

from ldpopt.errors import InvalidInput
from ldpopt_survey import Analysis, Counts, QuestionSpec, ReportRows, Respondents, SurveySpec, plan_survey

SEED, MOST = 20261128, 20_000
WAYS = ("default", "joint", "together", "split")


def random_plan(rng, way):
    """A random description, planned one way."""
    m = int(rng.integers(2, 4))
    sizes = rng.integers(2, 6, m) if way != "joint" else rng.integers(2, 4, m)
    asked = tuple(
        QuestionSpec(f"q{i}", tuple(range(k)), pilot=None if rng.random() < 0.2 else rng.dirichlet(np.full(k, 1.5)))
        for i, k in enumerate(sizes)
    )
    epsilon = float(rng.choice([1.0, 2.0, 3.0, 4.0]))
    more = {"joint": {"design": "joint"}, "together": {"together": (("q0", "q1"),)}, "split": {"design": "split"}}
    return plan_survey(SurveySpec("s", asked, epsilon=epsilon, **more.get(way, {}))), sizes


def truth(rng, planned, sizes):
    """The law (sizes) of all answers: in part independent, with shares near the pilots, in part any."""
    law = np.ones(1)
    for i, k in enumerate(sizes):
        pilot = planned.plan.part(f"q{i}").pilot
        near = 0.8 * (np.full(k, 1 / k) if pilot is None else pilot) + 0.2 * rng.dirichlet(np.ones(k))
        law = np.outer(law, near).ravel()
    return (0.6 * law + 0.4 * rng.dirichlet(np.full(len(law), 0.3))).reshape(sizes)


def reports(planned, p, n, rng):
    """The reports of n respondents whose answers have the law p, sorted."""
    plan, everyone = planned.plan, all(question.probability == 1 for question in planned.plan.questions)
    if everyone:
        cells = np.repeat(np.arange(p.size), rng.multinomial(n, p.ravel() / p.sum()))
        asked = [np.ones(n, dtype=bool)] * len(plan.questions)
    else:
        people = rng.multinomial(n, [float(question.probability) for question in plan.questions])
        cells = np.concatenate([np.repeat(np.arange(p.size), rng.multinomial(k, p.ravel() / p.sum())) for k in people])
        booklet = np.repeat(np.arange(len(people)), people)
        asked = [booklet == number for number in range(len(people))]
    given, found = np.unravel_index(cells, p.shape), {}
    for question, who in zip(plan.questions, asked, strict=True):
        parts = [int(part.name[1:]) for part in question.answers]
        cell = np.ravel_multi_index([given[part] for part in parts], [p.shape[part] for part in parts])
        steps = np.cumsum(question.channel.matrix, axis=1)[cell]
        found[question.name] = np.where(who, (rng.random(n)[:, None] > steps[:, :-1]).sum(axis=1), -1)
    return ReportRows(Counts(plan.checksum, n, {}), found, {})


def covered(planned, p, pair, n, replications, rng):
    """(replications, cells) whether each interval of a table covers the truth; None where the table is refused."""
    table = p.sum(axis=tuple(i for i in range(p.ndim) if f"q{i}" not in pair)).ravel()
    found = []
    for _ in range(replications):
        people = Respondents(planned.plan, reports(planned, p, n, rng), Analysis())
        try:
            limits = people.two_way(*pair).joint.intervals()
        except InvalidInput:
            return None
        found.append((limits.lower <= table) & (table <= limits.upper))
    return np.array(found)


def main(plans=100, replications=1000, out="tables.csv"):
    """Simulate and write the file."""
    made = []
    for number in range(plans):
        rng, way = np.random.default_rng([SEED, number]), WAYS[number % len(WAYS)]
        planned, sizes = random_plan(rng, way)
        n = min(planned.respondents, MOST)
        for pair in combinations([f"q{i}" for i in range(len(sizes))], 2):
            inside = covered(planned, truth(rng, planned, sizes), pair, n, replications, rng)
            row = {"plan": number, "way": way, "epsilon": planned.plan.epsilon, "table": " x ".join(pair),
                   "respondents": n, "cells": 0, "coverage": "", "least": "", "most": ""}  # fmt: skip
            if inside is not None:
                share = inside.mean(axis=0)
                row |= {"cells": len(share), "coverage": round(float(share.mean()), 4)}
                row |= {"least": round(float(share.min()), 4), "most": round(float(share.max()), 4)}
            made.append(row)
    with Path(out).open("w", newline="") as file:
        writer = csv.DictWriter(file, made[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(made)
    printed = [row for row in made if row["cells"]]
    ends = min(row["least"] for row in printed), max(row["most"] for row in printed)
    print(f"{len(made)} tables, {len(made) - len(printed)} refused; coverage of a cell {ends[0]:.3f} to {ends[1]:.3f}")
    return made


if __name__ == "__main__":
    if "--brief" in sys.argv:
        main(12, 200, "tables-brief.csv")
    else:
        main(*(int(word) for word in sys.argv[1:]))
