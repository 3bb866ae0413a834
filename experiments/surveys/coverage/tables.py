"""Coverage of every printed cell of two-way tables under random plans: writes tables.csv.

    python experiments/surveys/coverage/tables.py [plans ...]
    python experiments/surveys/coverage/tables.py --brief

By default it simulates 100 plans until each printed cell is decided, and prints a table, a line for each kind of
sample. Plans are numbers or ranges, as in `7 23-33`. The rows of a plan replace those in the file as soon as the plan
is simulated, so that an interrupted run loses one plan at most. With --brief it simulates 12 plans 300 times, which
takes seconds, and writes nothing.

Each plan has two or three questions of two to five answers, with random pilots or none, at epsilon 1 to 4: by the
default, with one joint report, with a pair that is wanted together, or split. The true answers depend on each other,
and their shares are not those of the pilot. As many respondents answer as the plan needs, 20,000 at most (1,500 with
villages or weights). Half of the plans have a simple sample; the others have a group (half of the respondents), 60
villages that differ, a group in such villages, or weights that are zero for a fifth of the respondents, whose answers
have another law.

A table is refused, or all its cells are printed. Each printed table is simulated 300 times, and then twice as often as
before until each of its cells is decided: the 99 % interval [Clopper and Pearson] of its coverage lies within 93 and
97 %, or outside them, or 19,200 surveys have been simulated. A row of the file is a table: the surveys, the average,
the lowest and the highest coverage of its cells, their intervals, and how many cells are within, outside, undecided.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    Condition,
    Counts,
    CountTable,
    QuestionSpec,
    ReportRows,
    Respondents,
    SampledReports,
    SampleSpec,
    SurveySpec,
    estimate,
    plan_survey,
)
from ldpopt_survey.estimate.groups import estimate_booklets

HERE = Path(__file__).parent
SEED, MAX_RESPONDENTS, MAX_ROWS = 20261128, 20_000, 1_500
FIRST_SURVEYS, MAX_SURVEYS = 300, 19_200
LOWEST, HIGHEST, CONFIDENCE = 0.93, 0.97, 0.99
WAYS = ("default", "joint", "together", "split")
SAMPLES = ("simple", "group", "simple", "villages", "simple", "zero weights", "simple", "villages and group")
VILLAGES = 60
FIELDS = (
    *("plan", "way", "sample", "epsilon", "table", "respondents", "cells", "surveys", "coverage"),
    *("lowest", "lowest from", "lowest to", "highest", "highest from", "highest to"),
    *("within", "outside", "undecided"),
)


def random_plan(rng, way):
    """A random description, planned one way, and the numbers of answers of its questions."""
    m = int(rng.integers(2, 4))
    sizes = rng.integers(2, 6, m) if way != "joint" else rng.integers(2, 4, m)
    questions = tuple(
        QuestionSpec(f"q{i}", tuple(range(k)), pilot=None if rng.random() < 0.2 else rng.dirichlet(np.full(k, 1.5)))
        for i, k in enumerate(sizes)
    )
    epsilon = float(rng.choice([1.0, 2.0, 3.0, 4.0]))
    more = {"joint": {"design": "joint"}, "together": {"together": (("q0", "q1"),)}, "split": {"design": "split"}}
    return plan_survey(SurveySpec("s", questions, epsilon=epsilon, **more.get(way, {}))), sizes


def random_law(rng, plan, sizes):
    """The law (sizes) of all answers: in part independent, with shares near the pilots, in part any."""
    law = np.ones(1)
    for i, k in enumerate(sizes):
        pilot = plan.part(f"q{i}").pilot
        near = 0.8 * (np.full(k, 1 / k) if pilot is None else pilot) + 0.2 * rng.dirichlet(np.ones(k))
        law = np.outer(law, near).ravel()
    return 0.6 * law + 0.4 * rng.dirichlet(np.full(len(law), 0.3))


def outcomes_of(plan, sizes):
    """All that one respondent can send: places (outcomes, questions), -1 for none, and their law given the answers."""
    cells = np.indices(sizes).reshape(len(sizes), -1)
    everyone = all(question.probability == 1 for question in plan.questions)
    laws = []
    for question in plan.questions:
        parts = [int(part.name[1:]) for part in question.answers]
        rows = np.ravel_multi_index(cells[parts], [sizes[part] for part in parts])
        laws.append(question.channel.matrix[rows])
    counts = [law.shape[1] for law in laws]
    if everyone:
        law = np.ones((cells.shape[1], 1))
        for each in laws:
            law = (law[:, :, None] * each[:, None, :]).reshape(len(law), -1)
        return np.indices(counts).reshape(len(counts), -1).T, law
    places = np.full((sum(counts), len(counts)), -1)
    for number, end in enumerate(np.cumsum(counts)):
        places[end - counts[number] : end, number] = np.arange(counts[number])
    shares = [float(question.probability) for question in plan.questions]
    return places, np.hstack([share * law for share, law in zip(shares, laws, strict=True)])


@dataclass(frozen=True, eq=False)
class Sample:
    """Respondents in blocks (b,) that are alike: a size, a law of the answers and public values for each.

    truth : the law of the answers that an analysis is about. spread : how firmly a block's law stays at `laws`, from
        survey to survey (the concentration of a Dirichlet law); inf where it is the same in all surveys.
    """

    sizes: Any
    laws: Any
    columns: dict[str, Any]
    truth: Any
    analysis: Analysis
    spread: float = np.inf


def sample_of(rng, kind, n, law, other):
    """The respondents of one kind of sample; `other` is the law of those whom the analysis is not about."""
    if kind == "simple":
        return Sample(np.array([n]), law[None], {}, law, Analysis())
    if kind == "group":
        columns = {"sex": np.array(["f", "m"], dtype=object)}
        return Sample(np.array([n - n // 2, n // 2]), np.array([law, other]), columns, law,
                      Analysis(where=(Condition.parse("sex = f"),)))  # fmt: skip
    village = np.arange(VILLAGES)
    if kind == "zero weights":
        weights = np.where(village % 5 == 0, 0.0, 0.5 + (village % 3))
        laws = np.where(weights[:, None] > 0, law, other)
        columns = {"w": weights.astype(str).astype(object)}
        return Sample(_even(n, VILLAGES), laws, columns, law, Analysis(SampleSpec(weights="w")))
    sexes = 2 if "group" in kind else 1
    sex = np.repeat(np.arange(sexes), VILLAGES)
    columns = {"village": np.tile(village, sexes).astype(str).astype(object), "sex": np.array(["f", "m"], object)[sex]}
    where = (Condition.parse("sex = f"),) if sexes > 1 else ()
    return Sample(_even(n, VILLAGES * sexes), np.where(sex[:, None] == 0, law, other), columns, law,
                  Analysis(SampleSpec(clusters="village"), where=where), 60.0)  # fmt: skip


def _even(n, blocks):
    return n // blocks + (np.arange(blocks) < n % blocks)


class Surveys:
    """All surveys of one plan and sample: each draw is the reports of everybody, as positions among the outcomes.

    One respondent of each outcome is read once, so that a survey is counts of outcomes (or, with villages and weights,
    rows of them) that go to the same functions as in `Respondents.two_way`. `check` compares the two.
    """

    def __init__(self, plan, sizes, sample, rng):
        self.plan, self.sample, self.rng = plan, sample, rng
        self.places, self.given = outcomes_of(plan, sizes)
        self.n = int(sample.sizes.sum())
        self.columns = {name: np.repeat(values, sample.sizes) for name, values in sample.columns.items()}
        everybody = self.respondents(np.zeros(self.n, dtype=int))
        self.design, self.included = everybody.design, everybody.included

    def respondents(self, outcomes):
        """The respondents (n,) with these outcomes."""
        reports = {question.name: self.places[outcomes, i] for i, question in enumerate(self.plan.questions)}
        rows = ReportRows(Counts(self.plan.checksum, self.n, {}), reports, self.columns)
        return Respondents(self.plan, rows, self.sample.analysis)

    def draw(self):
        """(blocks, outcomes) the respondents of one survey."""
        laws = self.sample.laws
        if np.isfinite(self.sample.spread):
            # In a village the law of the answers is drawn anew; gamma variables give a Dirichlet law for every row.
            laws = self.rng.standard_gamma(self.sample.spread * laws)
        law = laws @ self.given
        return self.rng.multinomial(self.sample.sizes, law / law.sum(axis=1, keepdims=True))

    def outcomes(self, counts):
        """(n,) the outcome of each respondent of one survey."""
        return np.repeat(np.tile(np.arange(counts.shape[1]), len(counts)), counts.ravel())

    def table(self, pair):
        """A function from one survey to the joint estimate of a pair; None where the table is refused."""
        names = tuple(f"q{i}" for i in pair)
        try:
            whole = self.respondents(self.outcomes(self.draw())).two_way(*names)
        except InvalidInput:
            return None
        # One respondent of each outcome, without a design.
        plain = Counts(self.plan.checksum, len(self.places), {})
        reports = {question.name: self.places[:, i] for i, question in enumerate(self.plan.questions)}
        each = Respondents(self.plan, ReportRows(plain, reports, {}), Analysis())
        if whole.joint.channel.shape[0] == 2 != len(whole.joint.values):  # from booklets
            sources, labels = self.respondents_sources(names), whole.joint.labels

            def from_booklets(counts):
                if self.design is None:
                    seen = counts[0]
                    parts = [
                        replace(source, positions=_counted(source.positions, seen, source.channel.shape[1]))
                        for source in sources
                    ]
                    return estimate_booklets(parts, labels, from_counts=True)
                outcomes = self.outcomes(counts)
                parts = [
                    replace(source, positions=np.where(self.included, source.positions[outcomes], -1))
                    for source in sources
                ]
                return estimate_booklets(parts, labels, self.design)

            return from_booklets
        channel = whole.joint.channel
        sides = [np.maximum(each.rows.reports[name], 0) for name in names]
        at = sides[0] * whole.column_channel.shape[1] + sides[1]

        def from_everyone(counts):
            if self.design is None:
                seen = _counted(at, counts[0], channel.shape[1])
                return estimate(CountTable.from_counts(seen, channel.outputs), channel)
            rows = SampledReports(at[self.outcomes(counts)], channel, self.design)
            return estimate(rows if self.included.all() else rows.where(self.included), channel)

        return from_everyone

    def respondents_sources(self, names):
        """The sources of a table in the booklets that tell of it with as many respondents as the analysis has."""
        outcomes, n = len(self.places), int(self.included.sum())
        if n < outcomes:
            raise SystemExit(f"{n} respondents cannot have each of {outcomes} outcomes once")
        everybody = self.respondents(np.arange(self.n) % outcomes)
        sources = everybody.sources(names, np.arange(self.n) < n)
        return [replace(source, positions=source.positions[:outcomes]) for source in sources]

    def check(self, pair, table):
        """Stop unless a function of `table` gives what users see, in one survey."""
        counts = self.draw()
        ours, theirs = table(counts), self.respondents(self.outcomes(counts)).two_way(*(f"q{i}" for i in pair)).joint
        for one, other in zip((ours.values, *_ends(ours)), (theirs.values, *_ends(theirs)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def _ends(made):
    limits = made.intervals()
    return limits.lower, limits.upper


def _counted(at, counts, outputs):
    return np.bincount(at[at >= 0], counts[at >= 0], outputs).astype(int)


def limits_of(hits, n):
    """The 99 % interval of a chance, from so many hits of n [Clopper and Pearson]."""
    tail = (1 - CONFIDENCE) / 2
    lower = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1), n - hits + 1), 0.0)
    return lower, np.where(hits < n, beta.ppf(1 - tail, hits + 1, np.maximum(n - hits, 1)), 1.0)


def verdicts(hits, n):
    """(cells,) 1 where the coverage is within the limits, -1 where it is outside, 0 where that is undecided."""
    lower, upper = limits_of(hits, n)
    within, outside = (lower >= LOWEST) & (upper <= HIGHEST), (upper < LOWEST) | (lower > HIGHEST)
    return within.astype(int) - outside.astype(int)


def cover(surveys, sizes, max_surveys):
    """For each pair of questions None where its table is refused, else the hits (cells,) and the number of surveys."""
    truth = surveys.sample.truth.reshape(sizes)
    truths = {
        pair: truth.sum(axis=tuple(i for i in range(len(sizes)) if i not in pair)).ravel()
        for pair in combinations(range(len(sizes)), 2)
    }
    tables = {pair: surveys.table(pair) for pair in truths}
    for pair, table in tables.items():
        if table is not None:
            surveys.check(pair, table)
    results = {pair: None if table is None else 0 for pair, table in tables.items()}
    undecided, drawn, until = [pair for pair in tables if tables[pair] is not None], 0, FIRST_SURVEYS
    while undecided and drawn < max_surveys:
        for _ in range(until - drawn):
            counts = surveys.draw()
            for pair in undecided:
                lower, upper = _ends(tables[pair](counts))
                results[pair] = results[pair] + ((lower <= truths[pair]) & (truths[pair] <= upper))
        drawn, until = until, min(2 * until, max_surveys)
        for pair in list(undecided):
            if verdicts(results[pair], drawn).all() or drawn == max_surveys:
                results[pair] = results[pair], drawn
                undecided.remove(pair)
    return results


def row_of(start, result):
    """A row of the file."""
    if result is None:
        return start | {"cells": 0}
    hits, n = result
    (lower, upper), share, verdict = limits_of(hits, n), hits / n, verdicts(hits, n)
    row = start | {"cells": len(hits), "surveys": n, "coverage": round(float(share.mean()), 4)}
    for name, cell in (("lowest", share.argmin()), ("highest", share.argmax())):
        ends = share[cell], lower[cell], upper[cell]
        row |= dict(zip((name, f"{name} from", f"{name} to"), (round(float(end), 4) for end in ends), strict=True))
    return row | {"within": int((verdict > 0).sum()), "outside": int((verdict < 0).sum()),
                  "undecided": int((verdict == 0).sum())}  # fmt: skip


def simulate(number, max_surveys):
    """The rows of one plan, by its number."""
    rng = np.random.default_rng([SEED, number])
    way, kind = WAYS[number % len(WAYS)], SAMPLES[number // len(WAYS) % len(SAMPLES)]
    planned, sizes = random_plan(rng, way)
    n = min(planned.respondents, MAX_RESPONDENTS if kind in ("simple", "group") else MAX_ROWS)
    laws = (random_law(rng, planned.plan, sizes) for _ in range(2))
    surveys = Surveys(planned.plan, sizes, sample_of(rng, kind, n, *laws), rng)
    start = {"plan": number, "way": way, "sample": kind, "epsilon": round(planned.plan.epsilon, 6)}
    return [
        row_of(start | {"table": " x ".join(f"q{i}" for i in pair), "respondents": n}, result)
        for pair, result in cover(surveys, sizes, max_surveys).items()
    ]


def read(path):
    """The rows of a file, with numbers where they are used; none without a file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {name: int(row[name] or 0) for name in ("plan", "cells", "surveys", "within", "outside", "undecided")}
        row |= {name: float(row[name] or "nan") for name in ("lowest", "highest")}
    return rows


def write(path, rows):
    """Write all rows at once: an interruption leaves the previous file."""
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n", restval="")
        writer.writeheader()
        # A refused table has nothing but its number of cells, 0.
        writer.writerows(row if row["cells"] else {name: row[name] for name in FIELDS[:7]} for row in rows)
    new.replace(path)


def main(plans=range(100), max_surveys=MAX_SURVEYS, out=HERE / "tables.csv"):
    """Simulate plans, replace their rows in the file (none for None), and print a short table of all rows."""
    rows, began = [] if out is None else read(out), time.process_time()
    for number in plans:
        rows = [row for row in rows if row["plan"] != number] + simulate(number, max_surveys)
        rows.sort(key=lambda row: row["plan"])
        if out is not None:
            write(out, rows)
    print_summary(rows, time.process_time() - began)
    return rows


def print_summary(rows, seconds):
    """Print a line a kind of sample."""
    print(f"{'sample':20s} tables refused cells within outside undecided  lowest highest  surveys")
    for kind in [*dict.fromkeys(row["sample"] for row in rows), "all"]:
        mine = [row for row in rows if kind in (row["sample"], "all")]
        printed = [row for row in mine if row["cells"]]
        total = sum((Counter({key: row[key] for key in ("cells", "within", "outside", "undecided", "surveys")})
                     for row in printed), Counter())  # fmt: skip
        lowest = min((row["lowest"] for row in printed), default=1.0)
        highest = max((row["highest"] for row in printed), default=0.0)
        line = f"{kind:20s} {len(mine):6d} {len(mine) - len(printed):7d} {total['cells']:5d} {total['within']:6d}"
        line += f" {total['outside']:7d} {total['undecided']:9d}  {lowest:6.4f}  {highest:6.4f}  {total['surveys']:7d}"
        print(line)
    print(f"{seconds:.0f} seconds of processor time")


def numbers(words):
    """The numbers that words such as 7 and 23-33 name."""
    ends = [word.partition("-") for word in words]
    return [number for first, _, last in ends for number in range(int(first), int(last or first) + 1)]


if __name__ == "__main__":
    if "--brief" in sys.argv:
        main(range(12), FIRST_SURVEYS, None)
    else:
        main(numbers(sys.argv[1:]) or range(100))
