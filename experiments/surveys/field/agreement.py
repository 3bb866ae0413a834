"""The client in node beside Python: the same report for every word, and the shares that the channels say.

``agreement.py words --count 1000000`` draws so many words, and those on both sides of the steps, for every question of
ten plans.
``agreement.py shares --count 10000000`` lets the client draw so many fresh reports and compares them with chi-square.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "helpers"))
from kit_plans import CLIENT, NODE, WITHOUT_NODE, drawn_by_node, node, ten_plans

from ldpopt_survey.collect.coding import Sampler
from ldpopt_survey.collect.words import ListedWords
from ldpopt_survey.kit.folder import boundary_words, public_plan

SHARES = """
import { readFileSync } from "node:fs";
const [client, file, count] = process.argv.slice(2);
const { readPlan, drawReport, randomWord } = await import(client);
const plan = readPlan(JSON.parse(readFileSync(file)));
const counts = plan.questions.map((q) => q.answers.map(() => q.reports.map(() => 0)));
const rows = plan.questions.flatMap((q, at) => q.answers.map((_, x) => [at, x]));
for (let i = 0; i < Number(count); i++) {
  const [at, x] = rows[i % rows.length];
  counts[at][x][drawReport(plan.questions[at], x, randomWord())] += 1;
}
console.log(JSON.stringify(counts));
"""


def words(count: int, seed: int) -> int:
    """Compare reports of `count` random words for each question, and of words around the steps; the differences."""
    rng, drawn = random.Random(seed), np.random.default_rng(seed)
    questions = total = edges = different = 0
    for plan in ten_plans(seed):
        answers, given = [], []
        for question in plan.questions:
            k = len(question.categories)
            around = [(x, word) for x in range(k) for word in boundary_words(question, x, rng)]
            edges += len(around)
            answers.append(np.r_[[x for x, _ in around], drawn.integers(k, size=count)].astype(np.uint16))
            found = np.array([word for _, word in around], np.uint64)
            given.append(np.r_[found, drawn.integers(1 << 64, size=count, dtype=np.uint64)])
        with tempfile.TemporaryDirectory() as folder:
            (made,) = drawn_by_node(Path(folder), [(plan, answers, given)])
        for q, question in enumerate(plan.questions):
            expected = Sampler(question.channel).reports(answers[q], ListedWords(given[q]))
            different += int((expected != made[q]).sum())
            total += len(expected)
        questions += len(plan.questions)
    print(f"{questions} questions of ten plans, {total:,} words, {edges:,} of them around steps: {different} differ")
    return different


def shares(count: int, seed: int) -> int:
    """Chi-square of `count` fresh reports, by the answers of a plan's questions; 1 if the smallest p is < 1e-4."""
    plan = ten_plans(seed)[2]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "plan.json")
        file.write_text(json.dumps(public_plan(plan)), encoding="utf-8")
        found = json.loads(node(SHARES, CLIENT, file, count))
    chances, impossible = [], 0
    for question, table in zip(plan.questions, found, strict=True):
        for row, counted in zip(question.channel.matrix, np.array(table), strict=True):
            expected = row * counted.sum()
            impossible += int(counted[row == 0].sum())
            rare = expected < 5  # of these the approximation says nothing: they count with another
            counted, expected = merged(counted, rare), merged(expected, rare)
            statistic = float(((counted - expected) ** 2 / expected).sum())
            chances.append(float(chi2.sf(statistic, len(expected) - 1)) if len(expected) > 1 else 1.0)
    least = min(1.0, min(chances) * len(chances))
    said = f"least p-value times their number {least:.3g}; {impossible} impossible reports"
    print(f"{count:,} reports of {len(chances)} answers: {said}")
    return int(least < 1e-4 or impossible > 0)


def merged(values: npt.NDArray[Any], rare: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """The entries that are not rare, the rare ones added to the first of them."""
    made = values[~rare].astype(float)
    made[0] += values[rare].sum()
    return made


def main() -> int:
    """What was asked for."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("what", choices=("words", "shares"))
    asked.add_argument("--count", type=int, default=1_000_000)
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    if NODE is None:
        print(WITHOUT_NODE)
        return 2
    begun = time.time()
    failed = (words if given.what == "words" else shares)(given.count, given.seed)
    print(f"{time.time() - begun:.0f} seconds, node {node('console.log(process.version)').strip()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
