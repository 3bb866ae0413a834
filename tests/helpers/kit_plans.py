"""Plans to draw from in JavaScript and in Python: steps at the ends of 62 bits, zeros, odd names, many answers."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ldpopt.exact import ExactChannel
from ldpopt.mechanisms import randomized_response
from ldpopt_survey.kit.folder import public_plan
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, Part, PlannedQuestion, cells_of

CLIENT = Path(str(files("ldpopt_survey.kit").joinpath("static", "ldpopt-client.js")))
NODE = shutil.which("node")
WITHOUT_NODE = "node is not installed: the questionnaire's JavaScript is not run here"

NAMES = ("vote", "__proto__", "constructor", "10", "א → 🎲", 'a "quoted" name')
LABELS = ("no", "yes", 7, (0, "a"), 2.5, "ja, täglich", "__proto__", True, "toString", "<b>")

DRAW = """
import { readFileSync, writeFileSync } from "node:fs";
const [client, ...folders] = process.argv.slice(2);
const { readPlan, drawReport } = await import(client);
for (const folder of folders) {
  const plan = readPlan(JSON.parse(readFileSync(`${folder}/plan.json`)));
  const read = (name) => readFileSync(`${folder}/${name}`);
  plan.questions.forEach((question, q) => {
    const [words, answers] = [read(`words-${q}`), read(`answers-${q}`)];
    const reports = Buffer.alloc(answers.length);
    for (let i = 0; i < answers.length; i += 2) {
      const word = words.readBigUInt64LE(4 * i);
      reports.writeUInt16LE(drawReport(question, answers.readUInt16LE(i), word), i);
    }
    writeFileSync(`${folder}/reports-${q}`, reports);
  });
}
"""


def ten_plans(seed: int = 1) -> list[Plan]:
    """Ten plans of one to four questions, memoised and fresh."""
    rng = random.Random(seed)
    made = []
    for at in range(10):
        questions = []
        for name in rng.sample(NAMES, rng.randint(1, 4)):
            bits = rng.choice((62, 62, 62, 61, 53, 32, 31, 8, 3))
            k, m = rng.randint(2, 10), rng.randint(2, 12)
            channel = ExactChannel([row(rng, bits, m) for _ in range(k)], bits, rng.sample(LABELS, k))
            questions.append(PlannedQuestion(name, name, channel))
        if at == 9:
            questions.append(PlannedQuestion("district", "district", districts(300)))
        memoised = {"respondent": "id"} if at % 2 else {}
        made.append(Plan(f"Plan {at}", tuple(questions), round=at + 1, **memoised))
    return made


def row(rng: random.Random, bits: int, m: int) -> list[int]:
    """Weights that sum to 2**bits, an eighth of it on the first report; some steps stand at ends and powers of two."""
    whole = 1 << bits
    first = max(1, whole >> 3)
    marks = [whole, whole - 1, first, first + 1, whole >> 1, (whole >> 1) - 1, max(first, whole - (whole >> 31))]
    cuts = [rng.choice(marks) if rng.random() < 0.4 else rng.randint(first, whole) for _ in range(m - 1)]
    steps = [0, *sorted(cuts), whole]
    return [after - before for before, after in pairwise(steps)]


@cache
def districts(k: int) -> ExactChannel:
    """Randomized response over k answers in 62 bits."""
    other = (1 << 62) // (k + 20)
    weights = [[other] * k for _ in range(k)]
    for x in range(k):
        weights[x][x] = (1 << 62) - other * (k - 1)
    return ExactChannel(weights, 62, [f"District {x}" for x in range(k)])


Drawing = tuple[Plan, list[npt.NDArray[np.uint16]], list[npt.NDArray[np.uint64]]]
"""A plan with arrays of answers and words for each of its questions."""


def drawn_by_node(outer: Path, drawings: list[Drawing]) -> list[list[npt.NDArray[np.uint16]]]:
    """The client's reports of every question of every plan."""
    folders = [outer / f"plan-{number}" for number in range(len(drawings))]
    for folder, (plan, answers, words) in zip(folders, drawings, strict=True):
        folder.mkdir()
        (folder / "plan.json").write_text(json.dumps(public_plan(plan)), encoding="utf-8")
        for q, (chosen, given) in enumerate(zip(answers, words, strict=True)):
            (folder / f"answers-{q}").write_bytes(chosen.astype("<u2").tobytes())
            (folder / f"words-{q}").write_bytes(given.astype("<u8").tobytes())
    node(DRAW, CLIENT, *folders)
    return [
        [np.frombuffer((folder / f"reports-{q}").read_bytes(), "<u2") for q in range(len(plan.questions))]
        for folder, (plan, *_) in zip(folders, drawings, strict=True)
    ]


def node(script: str, *arguments: object) -> str:
    """What a module prints that node runs."""
    command = [str(NODE), "--input-type=module", "-", *map(str, arguments)]
    run = subprocess.run(command, input=script, capture_output=True, text=True, timeout=1200, check=False)
    if run.returncode:
        raise AssertionError(run.stderr)
    return run.stdout


def booklet_plan(respondent: str | None = None) -> Plan:
    """A plan with a question for everybody and three booklets: one question, two, and three of which one is routed."""
    drug = Part("drug", "drug", ("drug-no-zq", "drug-yes-zq"))
    often = Part(
        "how often", "often", ("often-daily-zq", "often-weekly-zq", "often-rarely-zq", NOT_APPLICABLE),
        missing="often-rarely-zq", asked_if=(("drug", ("drug-yes-zq",)),),
    )  # fmt: skip
    smokes, drinks = (Part(name, name, (f"{name}-no-zq", f"{name}-yes-zq")) for name in ("smokes", "drinks"))
    region = tuple(f"region-{i}-zq" for i in range(3))
    questions = [PlannedQuestion("region", "region", randomized_response(3, 1.0, inputs=region).exact())]
    for parts, share in (((drug, often, smokes), "1/2"), ((smokes, drinks), "1/3")):
        channel = randomized_response(len(cells_of(parts)), 2.0, inputs=cells_of(parts)).exact()
        name = " + ".join(part.name for part in parts)
        questions.append(PlannedQuestion(name, "", channel, parts=parts, probability=Fraction(share)))
    channel = randomized_response(2, 2.0, inputs=drinks.categories).exact()
    questions.append(PlannedQuestion("drinks", "drinks", channel, probability=Fraction(1, 6)))
    return Plan("Habits", tuple(questions), respondent=respondent)
