"""A survey from end to end: questionnaire, simulated respondents in JavaScript, collector, estimates beside the truth.

``run.py --respondents 5000 --browsers 50`` plans the survey of ``survey.toml``, writes its kit, starts `ldpopt survey
collect`, lets node draw and send the reports of most respondents and Chromium, page by page, those of the others, and
writes ``estimates.csv`` and ``picture.png``. Needs ``ldpopt[collect]``, node, and for browsers Chromium and playwright.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from kit_plans import CLIENT, node
from kit_site import CHROMIUM, chromium, visit

from ldpopt.survey import Survey, aggregate
from ldpopt.survey.plan.plan import Plan

HERE = Path(__file__).resolve().parent

SHARES = {
    "Do you smoke?": [0.74, 0.15, 0.11],
    "Have you ever driven after drinking?": [0.77, 0.23],
    "How often did you skip a meal for want of money last month?": [0.58, 0.15, 0.12, 0.08, 0.07],
    "In which district do you live?": [0.22, 0.17, 0.16, 0.14, 0.11, 0.09, 0.07, 0.04],
}
"""What the simulated people answer."""

DEVICES = """
import { readFileSync } from "node:fs";
const [client, folder, site] = process.argv.slice(2);
const { readPlan, respond, submission, send } = await import(client);
const plan = readPlan(await (await fetch(`${site}/plan.json`)).json());
const people = JSON.parse(readFileSync(`${folder}/people.json`));
const said = { stored: 0, again: 0, later: 0 };
async function device(positions, person) {
  const key = await crypto.subtle.generateKey({ name: "AES-CBC", length: 256 }, false, ["encrypt"]);
  const answers = Object.fromEntries(plan.questions.map((one, q) => [one.name, one.answers[positions[q]]]));
  const body = submission(plan, await respond(plan, answers, { key }));
  for (let attempt = 0; attempt < 20; attempt++) {
    const { outcome, status, error } = await send(`${site}/submissions`, body);
    if (outcome === "refused") throw new Error(error);
    if (outcome === "stored") { said.stored += 1; break; }
    said.later += 1;
    await new Promise((done) => setTimeout(done, 200));
  }
  if (person % 10 === 0) { // one in ten does not hear of it, and sends the same again
    const { status } = await send(`${site}/submissions`, body);
    said.again += status === 200 ? 1 : 0;
  }
}
let next = 0;
const worker = async () => {
  while (next < people.length) {
    const person = next++;
    await device(people[person], person);
  }
};
await Promise.all(Array.from({ length: 32 }, worker));
console.log(JSON.stringify(said));
"""


def answers_of(plan: Plan, respondents: int, seed: int) -> npt.NDArray[np.int64]:
    """The positions of everybody's answers, shape (respondents, questions)."""
    rng = np.random.default_rng(seed)
    columns = [rng.choice(len(q.categories), size=respondents, p=SHARES[q.name]) for q in plan.questions]
    return np.array(columns).T


@contextmanager
def collecting(folder: Path) -> Iterator[str]:
    """The collector as a process; gives its address."""
    arguments = ["survey", "collect", "plan.json", "--db", "reports.db", "--kit", "kit", "--port", "0"]
    command = [sys.executable, "-m", "ldpopt", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r" at (http://\S+) ", line)
            if found is None:
                raise RuntimeError(f"the collector said {line!r}")
            yield found[1]
        finally:
            process.terminate()


def in_node(site: str, folder: Path, people: npt.NDArray[np.int64]) -> dict[str, int]:
    """Everybody's reports, drawn and sent by the client in node."""
    (folder / "people.json").write_text(json.dumps(people.tolist()), encoding="utf-8")
    made: dict[str, int] = json.loads(node(DEVICES, CLIENT, folder, site))
    return made


def in_browsers(site: str, people: npt.NDArray[np.int64]) -> int:
    """Everybody's visit in a browser of their own, one after the other; how many ended with thanks."""
    thanked = 0
    with chromium() as browser:
        for positions in people.tolist():
            context: Any = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-GB")
            page = context.new_page()
            visit(page, f"{site}/", positions)
            thanked += "Thank you" in page.inner_text("h1")
            context.close()
    return thanked


def estimates(plan: Plan, reports: Path, people: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """A row for each answer: the share of the people who gave it, the estimate, and its interval."""
    found, rows = Survey(plan).estimates(aggregate(plan, reports)), []
    for q, question in enumerate(plan.questions):
        made = found[question.name]
        intervals = made.intervals()
        for x, category in enumerate(question.categories):
            true = float((people[:, q] == x).mean())
            low, high = float(intervals.lower[x]), float(intervals.upper[x])
            row = {"question": question.name, "answer": category, "true": round(true, 4)}
            numbers = {"estimate": round(float(made.values[x]), 4), "low": round(low, 4), "high": round(high, 4)}
            rows.append({**row, **numbers, "covered": low <= true <= high})
    return rows


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Estimates with their intervals, and the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 6))
    at = np.arange(len(rows))[::-1]
    low, high, made = (np.array([row[name] for row in rows]) for name in ("low", "high", "estimate"))
    axes.hlines(at, low, high, color="#1f4e79", linewidth=2, label="95 % interval")
    axes.plot(made, at, "o", color="#1f4e79", markersize=5, label="estimate from reports")
    true = [row["true"] for row in rows]
    axes.plot(true, at, "x", color="#b3541e", markersize=7, mew=2, label="share of the answers")
    names = [f"{shorten(row['question'], 32, placeholder='…')}  {row['answer']}" for row in rows]
    axes.set_yticks(at, names)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("share")
    axes.set_xlim(left=min(0.0, low.min() - 0.01))
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> int:
    """Run all of it; 1 if a report is lost or there twice."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--respondents", type=int, default=5000)
    asked.add_argument("--browsers", type=int, default=50)
    asked.add_argument("--seed", type=int, default=15)
    asked.add_argument("--out", type=Path, default=HERE)
    given = asked.parse_args()
    if CHROMIUM is None and given.browsers:
        print("no Chromium is installed: node draws for everybody")
    browsers = 0 if CHROMIUM is None else given.browsers
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for arguments in (["plan", str(HERE / "survey.toml"), "-n", str(given.respondents)], ["kit", "plan.json"]):
            subprocess.run([sys.executable, "-m", "ldpopt", "survey", *arguments], cwd=folder, check=True)
        plan = Plan.from_json((folder / "plan.json").read_bytes())
        people = answers_of(plan, given.respondents, given.seed)
        with collecting(folder) as site:
            begun = time.time()
            thanked = in_browsers(site, people[:browsers])
            middle = time.time()
            said = in_node(site, folder, people[browsers:])
            ended = time.time()
        rows = estimates(plan, folder / "reports.db", people)
        stored = aggregate(plan, folder / "reports.db").rows
    with (given.out / "estimates.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    picture(rows, given.out / "picture.png")
    covered = sum(row["covered"] for row in rows)
    print(f"{thanked} of {browsers} visits in Chromium ended with thanks, in {middle - begun:.0f} s")
    print(f"{said['stored']} devices in node, {said['again']} of them sent twice, in {ended - middle:.0f} s")
    print(f"{stored} of {given.respondents} respondents stored; {covered} of {len(rows)} intervals hold the share")
    return int(not (stored == given.respondents and thanked == browsers))


if __name__ == "__main__":
    sys.exit(main())
