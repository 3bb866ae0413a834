"""Coverage of 95 % intervals under plans with booklets: writes booklets.csv.

    python experiments/surveys/coverage/booklets.py [replications]

Three questions (yes/no, yes/no, three answers; the first two depend on each other) are asked of fresh respondents in
every replication. Booklets hold one question (epsilon 1), overlapping pairs (epsilon 2.5), or a pair whose two-way
table is wanted (epsilon 1.5); the sample is simple, or of weighted clusters; missing answers have a category of their
own. Each row has the share of intervals that cover the truth, over all categories and over the worst one.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from ldpopt_survey import (
    Analysis,
    Counts,
    QuestionSpec,
    Reading,
    ReportRows,
    Respondents,
    SampleSpec,
    SurveySpec,
    plan_survey,
)

SEED = 20261122
YES_NO = ("no", "yes")
PARTY = np.array([0.5, 0.3, 0.2])
JOINT = np.array([[0.56, 0.14], [0.12, 0.18]])  # drug by smokes
NO_ANSWER = 0.15
QUESTIONS = (QuestionSpec("drug", YES_NO), QuestionSpec("smokes", YES_NO), QuestionSpec("party", ("x", "y", "z")))
CLUSTERED = SampleSpec(weights="w", clusters="c")
MISSING = Reading(missing_answers="category")
WITH_MISSING = tuple(
    QuestionSpec(one.name, (*one.categories, "none"), missing="none", reading=MISSING) for one in QUESTIONS
)
SETTINGS = {
    "one question": (SurveySpec("s", QUESTIONS, epsilon=1.0), 2000),
    "pairs that overlap": (SurveySpec("s", QUESTIONS, epsilon=2.5), 1000),
    "a pair's table": (SurveySpec("s", QUESTIONS, epsilon=1.5, together=(("drug", "smokes"),)), 2000),
    "weighted clusters": (SurveySpec("s", QUESTIONS, epsilon=2.5, sample=CLUSTERED), 2000),
    "missing answers": (SurveySpec("s", WITH_MISSING, epsilon=2.5), 2000),
}


def answers(spec, n, rng):
    """The answers of n respondents as positions, and their public columns."""
    columns = {}
    joint = JOINT
    if spec.sample is not None:
        clusters = np.arange(n) // 10
        columns = {"w": rng.uniform(0.5, 2.0, n), "c": clusters}
        # Every cluster leans to one answer; leanings are even on average.
        lean = rng.choice([-0.5, 0.5], clusters[-1] + 1)[clusters]
        cells = np.clip(JOINT.ravel()[None] * (1 + lean[:, None] * np.array([-1, 1, 1, 0])), 0, None)
        cells[:, 3] = 1 - cells[:, :3].sum(axis=1)
        at = (rng.random(n)[:, None] > np.cumsum(cells, axis=1)[:, :-1]).sum(axis=1)
    else:
        at = rng.choice(4, n, p=joint.ravel())
    given = {"drug": at // 2, "smokes": at % 2, "party": rng.choice(3, n, p=PARTY)}
    if spec.questions[0].missing is not None:
        for question in spec.questions:
            none = len(question.categories) - 1
            given[question.name] = np.where(rng.random(n) < NO_ANSWER, none, given[question.name])
    return given, columns


def rows(plan, given, columns, n, rng):
    """The reports of the respondents, each of the booklet that chance gives them."""
    shares = [float(question.probability) for question in plan.booklets]
    drawn = rng.choice(len(shares), n, p=shares) if shares else np.zeros(n, dtype=int)
    reports = {}
    for question in plan.questions:
        asked = drawn == plan.booklets.index(question) if question.probability < 1 else np.ones(n, dtype=bool)
        sizes = [len(part.categories) for part in question.answers]
        cell = np.ravel_multi_index([given[part.name] for part in question.answers], sizes)
        steps = np.cumsum(question.channel.matrix, axis=1)[cell]
        report = (rng.random(n)[:, None] > steps[:, :-1]).sum(axis=1)
        reports[question.name] = np.where(asked, report, -1)
    tables = {
        (q.name,): np.bincount(reports[q.name][reports[q.name] >= 0], minlength=len(q.reports)) for q in plan.questions
    }
    public = {name: np.array(column.tolist(), dtype=object) for name, column in columns.items()}
    return ReportRows(Counts(plan.checksum, n, tables), reports, public)


def truth(spec, name):
    """The shares of a question's categories."""
    shares = {"drug": JOINT.sum(axis=1), "smokes": JOINT.sum(axis=0), "party": PARTY}[name]
    return shares if spec.questions[0].missing is None else np.append((1 - NO_ANSWER) * shares, NO_ANSWER)


def covered(name, spec, n, replications, rng):
    """(replications, intervals) whether each interval covers the truth."""
    plan, found = plan_survey(spec).plan, []
    for _ in range(replications):
        read = rows(plan, *answers(spec, n, rng), n, rng)
        analysis = Analysis(spec.sample or SampleSpec())
        if name == "a pair's table":
            joint = Respondents(plan, read, analysis).two_way("drug", "smokes").joint
            estimates = [(joint.intervals(), JOINT.ravel())]
        else:
            made = analysis.estimates(plan, read)
            estimates = [(one.whole.intervals(), truth(spec, question)) for question, one in made.items()]
        found.append(np.concatenate([(one.lower <= p) & (p <= one.upper) for one, p in estimates]))
    return np.array(found)


def main(replications=2000):
    """Compute every setting and write the table."""
    made = []
    for at, (name, (spec, n)) in enumerate(SETTINGS.items()):
        inside = covered(name, spec, n, replications, np.random.default_rng([SEED, at])).mean(axis=0)
        made.append({"setting": name, "respondents": n, "replications": replications,
                     "coverage": round(float(inside.mean()), 4), "worst": round(float(inside.min()), 4)})  # fmt: skip
        print(*made[-1].values(), flush=True)
    with (Path(__file__).parent / "booklets.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, made[0])
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
