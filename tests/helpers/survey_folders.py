"""Survey folders, changed at random -> promises that are wrong, of which there must be none.

Each folder has answers, a plan, reports and a consent form. One or two changes are made to it (a skip pattern, a copy
of an answer, a sorted file, ids in another writing, a form of another plan, a file named twice, ...), and it is known
what follows from each. A promise is wrong if `privatize` draws reports although something tells an answer, or a second
report of the same people; if a respondent is counted twice; or if `verify` accepts a form that the plan does not keep.
A change that spoils nothing must be let through.

`experiments/trust/folders.py` runs a thousand of them.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ldpopt.errors import InvalidInput
from ldpopt_survey import Reading, SurveySpec, make_plan
from ldpopt_survey.collect.ledger import ledger_of
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Fresh, Memoized
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.reports.delivery import verify_delivery
from ldpopt_survey.reports.promises import consent_paragraph

Rows = list[dict[str, str]]
REFUSED, KEPT = "refused", "kept"


@dataclass
class Folder:
    """A survey's folder before anything was drawn: its rows, its description, and what must come of it."""

    path: Path
    rng: np.random.Generator
    rows: Rows
    spec: SurveySpec
    expected: str = KEPT
    again: Rows | None = None
    forms: list[Callable[[str, Plan], str]] = field(default_factory=list)
    form_holds: bool | None = True
    said: list[str] = field(default_factory=list)


def honest(path: Path, rng: np.random.Generator) -> Folder:
    """A folder in which every promise holds: 150 to 400 people with independent answers."""
    n = int(rng.integers(150, 400))
    share = rng.uniform(0.25, 0.75)
    rows = [
        {"drug": drug, "party": party, "type": kind, "region": region, "id": str(number)}
        for drug, party, kind, region, number in zip(
            np.where(rng.random(n) < share, "yes", "no"), rng.choice(list("abc"), n), rng.choice(["x", "y"], n),
            rng.choice(list("NESW"), n), rng.permutation(100_000)[:n] + 1, strict=True,
        )
    ]  # fmt: skip
    asked = (
        QuestionSpec("drug", ("no", "yes")),
        QuestionSpec("party", tuple("abc")),
        QuestionSpec("type", ("x", "y"), reading=Reading(missing_answers="left out")),
    )
    return Folder(
        path, rng, rows, SurveySpec("s", asked, carry=("region",), respondent="id" if rng.random() < 0.5 else None)
    )


def route(folder: Folder) -> None:
    """The type is asked after one answer alone."""
    noise = folder.rng.choice([0.0, 0.03])
    for row in folder.rows:
        if row["drug"] == "no" and folder.rng.random() >= noise:
            row["type"] = ""
    folder.expected = REFUSED


def random_blanks(folder: Folder) -> None:
    """Some do not answer, whatever they would."""
    for row in folder.rows:
        if folder.rng.random() < 0.3:
            row["type"] = ""


def copy(folder: Folder) -> None:
    """A carried column says the answer in other words."""
    other, noise = folder.rng.choice(["drug", "party"]), folder.rng.choice([0.0, 0.02])
    words = dict(zip(("no", "yes", "a", "b", "c"), folder.rng.permutation(["p", "q", "r", "s", "t"]), strict=True))
    for row in folder.rows:
        row["copy"] = str(folder.rng.choice(list("pqrst"))) if folder.rng.random() < noise else str(words[row[other]])
    folder.spec = replace(folder.spec, carry=(*folder.spec.carry, "copy"))
    folder.expected = REFUSED


def public(folder: Folder) -> None:
    """One more carried column, drawn without the answers."""
    for row in folder.rows:
        row["more"] = str(folder.rng.choice(list("pq")))
    folder.spec = replace(folder.spec, carry=(*folder.spec.carry, "more"))


def single(folder: Folder) -> None:
    """A carried column that nobody shares."""
    for row in folder.rows:
        row["weight"] = f"{folder.rng.lognormal():.9f}"
    folder.spec = replace(folder.spec, carry=(*folder.spec.carry, "weight"))
    folder.expected = REFUSED


def sort_rows(folder: Folder) -> None:
    """The file is sorted by an answer."""
    by = folder.rng.choice(["drug", "party"])
    folder.rows.sort(key=lambda row: (row[by], folder.rng.random()))
    folder.expected = REFUSED


def sort_ids(folder: Folder) -> None:
    """Numbers were given by answer."""
    order = sorted(range(len(folder.rows)), key=lambda at: (folder.rows[at]["drug"], folder.rng.random()))
    for number, at in enumerate(order):
        folder.rows[at]["id"] = str(1000 + number)
    if folder.spec.respondent:
        folder.expected = REFUSED


def id_writing(folder: Folder) -> None:
    """Some appear a second time, with their number in another writing."""
    ways = [lambda one: f"{one}.0", lambda one: f"000{one}", lambda one: f" {one}"]
    chosen = folder.rng.permutation(len(folder.rows))[:5]
    folder.rows += [folder.rows[at] | {"id": ways[int(folder.rng.integers(3))](folder.rows[at]["id"])} for at in chosen]
    if folder.spec.respondent:
        folder.expected = REFUSED


def twice_in_a_file(folder: Folder) -> None:
    """Everybody stands in the file twice."""
    folder.rows += [dict(row) for row in folder.rows]
    folder.expected = REFUSED


def a_second_time(folder: Folder) -> None:
    """The same people are privatized again, whole or in part, in other columns or with newcomers."""
    if folder.spec.respondent:
        return
    part = folder.rows[int(folder.rng.integers(0, len(folder.rows) // 3)) :]
    newcomers = honest(folder.path, folder.rng).rows if folder.rng.random() < 0.5 else []
    folder.again = [*newcomers, *part]


def stale_epsilon(folder: Folder) -> None:
    """The form promises less than another plan says."""
    folder.forms.insert(0, lambda text, plan: consent_paragraph(_plan(replace(folder.spec, round=2), 0.2)))
    folder.form_holds = False


def edited(folder: Folder) -> None:
    """A number of the form is changed by hand."""
    folder.forms.append(lambda text, plan: text.replace("at most", "at most a bit more than", 1))
    folder.form_holds = None if folder.form_holds else False


def annotated(folder: Folder) -> None:
    """The form gets the lines that it asks for."""
    folder.forms.append(lambda text, plan: text + "\nThe university asks, for a study of health.\n")


CHANGES = [route, random_blanks, copy, public, single, sort_rows, sort_ids, id_writing, twice_in_a_file, a_second_time,
           stale_epsilon, edited, annotated]  # fmt: skip


def _plan(spec: SurveySpec, lean: float = 0.6) -> Plan:
    def channel(question: QuestionSpec) -> np.ndarray:
        k = len(question.categories)
        return np.eye(k) * lean + (1 - lean) / k

    return make_plan(spec, channel)


def _write(path: Path, rows: Rows) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="p")
        table.writeheader()
        table.writerows(rows)
    return path


def judge(folder: Folder) -> list[str]:
    """The wrong promises of a folder, and refusals of what is right."""
    plan, found = _plan(folder.spec), []
    private, delivery = folder.path / "private", folder.path / "delivery"
    private.mkdir()
    delivery.mkdir()
    (delivery / "plan.json").write_text(plan.to_json())
    text = consent_paragraph(plan)
    for change in folder.forms:
        text = change(text, plan)
    (delivery / "consent.md").write_text(text)
    ledger = ledger_of(private / "plan.json")
    randomness = Fresh()
    if folder.spec.respondent:
        create_key(private / "key")
        randomness = Memoized(private / "key")
    answers = _write(private / "a.csv", folder.rows)
    try:
        tally = privatize(plan, answers, delivery / "r.csv", randomness, ledger=ledger)
        if folder.expected == REFUSED:
            found.append("reports were drawn although something tells answers, or people stand there twice")
        if tally.rows != len(folder.rows):
            found.append("another number of reports than of people")
    except InvalidInput as error:
        if folder.expected == KEPT:
            found.append(f"refused without reason: {error}")
        if any(value in str(error) for row in folder.rows[:50] for value in (row["id"],) if len(value) > 4):
            found.append("the message holds an id")
        return found
    if folder.again is not None:
        try:
            privatize(plan, _write(private / "b.csv", folder.again), private / "again.csv", randomness, ledger=ledger)
            found.append("a second report of the same people")
        except InvalidInput:
            pass
    forms = [one for one in verify_delivery(delivery).findings if one.name == "consent.md"]
    if len(forms) != 1 or forms[0].holds is not folder.form_holds:
        found.append(f"the form was judged {forms[0].holds if forms else None}, and is {folder.form_holds}")
    return found


def run(folders: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often each change was made, and what was wrong, with the seed of the folder."""
    made, wrong = Counter[str](), []
    for number in range(folders):
        rng = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as name:
            folder = honest(Path(name), rng)
            for change in rng.choice(np.array(CHANGES, dtype=object), int(rng.integers(0, 3)), replace=False):
                change(folder)
                folder.said.append(change.__name__)
            made.update(folder.said or ["nothing"])
            wrong += [f"{seed} {number} ({', '.join(folder.said)}): {one}" for one in judge(folder)]
            shutil.rmtree(folder.path, ignore_errors=True)
            folder.path.mkdir(exist_ok=True)
    return made, wrong
