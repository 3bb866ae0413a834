"""A survey from end to end: questionnaire, simulated respondents in JavaScript, collector, estimates beside the truth.

``run.py --respondents 5000 --browsers 50`` plans the survey of ``survey.toml``, writes its kit, starts `ldpopt survey
collect`, lets node draw and send the reports of most respondents and Chromium, page by page, those of the others, and
writes ``estimates.csv`` and ``picture.png``. Needs ``ldpopt[collect]``, node, and for browsers Chromium and playwright.

``run.py --survey questionnaire.json --respondents 2000 --browsers 20 --page`` does the same for a plan with booklets,
of which each device is asked one. All devices that are not visited page by page draw and send in one Chromium page.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "helpers"))
from kit_plans import CLIENT, node
from kit_site import CHROMIUM, answer_all, begin, chromium, press

from ldpopt_survey import Plan, Survey, aggregate
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, Part

HERE = Path(__file__).resolve().parent

SHARES = {
    "Do you smoke?": [0.74, 0.15, 0.11],
    "Have you ever driven after drinking?": [0.77, 0.23],
    "How often did you skip a meal for want of money last month?": [0.58, 0.15, 0.12, 0.08, 0.07],
    "In which district do you live?": [0.22, 0.17, 0.16, 0.14, 0.11, 0.09, 0.07, 0.04],
    "Where do you live?": [0.55, 0.3, 0.15],
    "Have you ever taken drugs?": [0.7, 0.3],
    "How often?": [0.4, 0.6],
    "Do you drink?": [0.35, 0.65],
}
"""What the simulated people answer; of two answers, the first shares are taken."""

DEVICES = """async ({ client, site, people, keys }) => {
  const { readPlan, drawBooklet, askedOf, respond, submission, send } = await import(client);
  const plan = readPlan(await (await fetch(`${site}/plan.json`)).json());
  const said = { stored: 0, again: 0, later: 0, asked: 0 };
  async function device(person, number) {
    const secret = Uint8Array.from(keys[number].match(/../g), (pair) => parseInt(pair, 16));
    const key = plan.randomness === "fresh" ? null
      : await crypto.subtle.importKey("raw", secret, "AES-CBC", false, ["encrypt"]);
    const booklet = await drawBooklet(plan, key); // before any question is asked
    const asked = askedOf(plan, booklet).flatMap((one) => one.parts ?? one).map(({ name }) => name);
    const answers = Object.fromEntries(asked.filter((name) => name in person).map((name) => [name, person[name]]));
    said.asked += Object.keys(answers).length;
    const body = submission(plan, await respond(plan, answers, { key, booklet }));
    for (let attempt = 0; attempt < 20; attempt++) {
      const { outcome, status, error } = await send(`${site}/submissions`, body);
      if (outcome === "refused") throw new Error(error);
      if (outcome === "stored") { said.stored += 1; break; }
      said.later += 1;
      await new Promise((done) => setTimeout(done, 200));
    }
    if (number % 10 === 0) { // one in ten does not hear of it, and sends the same again
      const { status } = await send(`${site}/submissions`, body);
      said.again += status === 200 ? 1 : 0;
    }
  }
  let next = 0;
  const worker = async () => {
    while (next < people.length) {
      const number = next++;
      await device(people[number], number);
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return said;
}"""
"""A function of JavaScript: everybody's device draws its booklet, if there are some, and its reports, and sends."""

IN_NODE = """
import { readFileSync } from "node:fs";
const [client, folder, site] = process.argv.slice(2);
const { people, keys } = JSON.parse(readFileSync(`${folder}/people.json`));
console.log(JSON.stringify(await (DEVICES)({ client, site, people, keys })));
"""

MOST = 4.0
"""The most standard errors between an estimate and the share of the answers."""

People = list[dict[str, str]]


def answers_of(plan: Plan, respondents: int, seed: int) -> People:
    """Everybody's answers by question; a question that does not concern somebody has none."""
    rng, people = np.random.default_rng(seed), [dict[str, str]() for _ in range(respondents)]
    for name, one in {one.name: one for question in plan.questions for one in question.answers}.items():
        answers = one.asked if isinstance(one, Part) else one.categories
        shares = SHARES[name] if len(SHARES[name]) == len(answers) else [SHARES[name][0], 1 - SHARES[name][0]]
        for person, at in zip(people, rng.choice(len(answers), size=respondents, p=shares), strict=True):
            if not isinstance(one, Part) or all(person.get(other) in among for other, among in one.asked_if):
                person[name] = str(answers[at])
    return people


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


def in_node(site: str, folder: Path, people: People, keys: list[str]) -> dict[str, int]:
    """Everybody's reports, drawn and sent by the client in node."""
    (folder / "people.json").write_text(json.dumps({"people": people, "keys": keys}), encoding="utf-8")
    made: dict[str, int] = json.loads(node(IN_NODE.replace("DEVICES", DEVICES), CLIENT, folder, site))
    return made


def in_page(site: str, people: People, keys: list[str]) -> dict[str, int]:
    """Everybody's reports, drawn and sent by the client that the collector serves, in one page of Chromium."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{site}/")
        given = {"client": f"{site}/ldpopt-client.js", "site": site, "people": people, "keys": keys}
        made: dict[str, int] = page.evaluate(DEVICES, given)
    return made


def in_browsers(site: str, people: People) -> tuple[int, int]:
    """Everybody's visit in a browser of their own, one after the other: visits with thanks, and questions asked."""
    thanked = asked = 0
    with chromium() as browser:
        for person in people:
            context: Any = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-GB")
            page = context.new_page()
            begin(page, f"{site}/")
            press(page)
            asked += len(answer_all(page, person))
            press(page)
            thanked += "Thank you" in page.inner_text("h1")
            context.close()
    return thanked, asked


def estimates(plan: Plan, reports: Path, people: People) -> list[dict[str, Any]]:
    """A row for each answer: the share of the people who gave it, the estimate, its standard error and its interval."""
    found, rows = Survey(plan).estimates(aggregate(plan, reports)), []
    for name, made in found.items():
        intervals, errors = made.intervals(), np.sqrt(np.diag(made.covariance))
        answers = [str(label) for label in made.labels]
        for x, answer in enumerate(answers):
            true = float(np.mean([person.get(name, NOT_APPLICABLE) == answer for person in people]))
            low, high = float(intervals.lower[x]), float(intervals.upper[x])
            numbers = {
                "true": true,
                "estimate": float(made.values[x]),
                "error": float(errors[x]),
                "low": low,
                "high": high,
            }
            shown = {key: round(value, 4) for key, value in numbers.items()}
            rows.append({"question": name, "answer": answer, **shown, "covered": low <= true <= high})
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it; 1 if a report is lost or there twice, or an estimate is beyond `MOST` standard errors."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--survey", type=Path, default=HERE / "survey.toml", help="a description, or a plan (*.json)")
    asked.add_argument("--respondents", type=int, default=5000)
    asked.add_argument("--browsers", type=int, default=50)
    asked.add_argument("--page", action="store_true", help="the other devices in a page of Chromium, not in node")
    asked.add_argument("--seed", type=int, default=15)
    asked.add_argument("--out", type=Path, default=HERE)
    given = asked.parse_args(arguments)
    if CHROMIUM is None and (given.browsers or given.page):
        print("no Chromium is installed: node draws for everybody")
    browsers = 0 if CHROMIUM is None else given.browsers
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if given.survey.suffix == ".json":
            (folder / "plan.json").write_bytes(given.survey.read_bytes())
        else:
            survey_command(folder, "plan", str(given.survey.absolute()), "-n", str(given.respondents))
        survey_command(folder, "kit", "plan.json")
        plan = Plan.from_json((folder / "plan.json").read_bytes())
        people = answers_of(plan, given.respondents, given.seed)
        with collecting(folder) as site:
            begun = time.time()
            thanked, questions = in_browsers(site, people[:browsers]) if browsers else (0, 0)
            middle = time.time()
            others = people[browsers:]
            rng = random.Random(given.seed)  # keys of simulated devices may be repeated; real ones are nobody's to know
            keys = [rng.randbytes(32).hex() for _ in others]
            paged = given.page and CHROMIUM is not None
            said = in_page(site, others, keys) if paged else in_node(site, folder, others, keys)
            ended = time.time()
        rows = estimates(plan, folder / "reports.db", people)
        stored = aggregate(plan, folder / "reports.db").rows
    name = "estimates" if given.survey.stem == "survey" else given.survey.stem
    with (given.out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    picture(rows, given.out / ("picture.png" if name == "estimates" else f"{name}.png"))
    covered = sum(row["covered"] for row in rows)
    worst = max(abs(row["estimate"] - row["true"]) / row["error"] for row in rows)
    each = (questions + said["asked"]) / given.respondents
    where = "one page of Chromium" if paged else "node"
    print(f"{thanked} of {browsers} visits in Chromium ended with thanks, in {middle - begun:.0f} s")
    print(f"{said['stored']} devices in {where}, {said['again']} of them sent twice, in {ended - middle:.0f} s")
    print(f"{each:.2f} of {len(plan.answers)} questions asked of each respondent")
    print(f"{stored} of {given.respondents} respondents stored; {covered} of {len(rows)} intervals hold the share")
    print(f"the largest error is {worst:.2f} standard errors")
    return int(not (stored == given.respondents and thanked == browsers and worst <= MOST))


def survey_command(folder: Path, *arguments: str) -> None:
    """Run `ldpopt survey` in a folder."""
    subprocess.run([sys.executable, "-m", "ldpopt", "survey", *arguments], cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
