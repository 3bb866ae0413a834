"""Give the same people's answers to `privatize` twice, in ten ways: each is refused, or counted as one more round.

    python experiments/trust/duplicates.py [--times 100] [--seed 1] [--quick]

Random surveys of 300 to 3000 people and one to three questions; as many files of other people must be let through. A
memoised retry, which repeats its reports and spends nothing, must give the same bytes. Ends with exit code 1 if a
duplicate was reported unnoticed, other people were refused, or a retry differed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ldpopt.errors import InvalidInput
from ldpopt_survey import Memoized, Plan, QuestionSpec, SurveySpec, make_plan, privatize
from ldpopt_survey.collect.words import create_key

Frame = pd.DataFrame
Rng = np.random.Generator


def survey(rng: Rng, round_: int = 1, questions: int = 0, respondent: str | None = None) -> Plan:
    """A plan of some questions."""
    count = questions or int(rng.integers(1, 4))
    asked = tuple(QuestionSpec(f"q{n}", tuple(range(n + 2))) for n in range(count))
    spec = SurveySpec("s", asked, round=round_, respondent=respondent)
    return make_plan(
        spec, lambda q: (np.ones((len(q.categories),) * 2) + np.eye(len(q.categories))) / (len(q.categories) + 1)
    )


def people(plan: Plan, rng: Rng, n: int) -> Frame:
    """Answers of people, of whom one answer is commoner than others."""
    shares = [rng.dirichlet(np.full(len(question.categories), 3.0)) for question in plan.questions]
    columns = {q.name: rng.choice(len(s), n, p=s) for q, s in zip(plan.questions, shares, strict=True)}
    return Frame(columns | {"note": rng.random(n)})


def written(raw: Frame, path: Path) -> Path:
    """The file, in the format of its ending."""
    raw.to_parquet(path) if path.suffix == ".parquet" else raw.to_csv(path, index=False)
    return path


def linked(folder: Path) -> list[Path]:
    os.link(folder / "in.csv", folder / "link.csv")
    return [folder / "in.csv", folder / "link.csv"]


def folder_of_links(folder: Path) -> Path:
    (folder / "both").mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / "both" / name).symlink_to(folder / "in.csv")
    return folder / "both"


def stretch(raw: Frame, rng: Rng) -> Frame:
    start = int(rng.integers(0, len(raw) // 2))
    return raw.iloc[start : start + len(raw) // 2]


def two_changed(raw: Frame, rng: Rng) -> Frame:
    changed = raw.copy()
    changed.iloc[rng.choice(len(raw), 2, replace=False), 0] = 0
    return changed


WAYS: dict[str, Callable[[Path, Frame, Plan, Rng], Path | list[Path]]] = {
    "named twice": lambda folder, *_: [folder / "in.csv", folder / "in.csv"],
    "named ./": lambda folder, *_: [folder / "in.csv", Path(f"{folder}/./in.csv")],
    "hard link": lambda folder, *_: linked(folder),
    "folder of links": lambda folder, *_: folder_of_links(folder),
    "rows doubled": lambda folder, raw, *_: written(pd.concat([raw, raw]), folder / "b.csv"),
    "another run": lambda folder, *_: folder / "in.csv",
    "Parquet": lambda folder, raw, *_: written(raw, folder / "b.parquet"),
    "columns turned": lambda folder, raw, *_: written(raw[raw.columns[::-1]], folder / "b.csv"),
    "a half": lambda folder, raw, plan, rng: written(stretch(raw, rng), folder / "b.csv"),
    "newcomers": lambda folder, raw, plan, rng: written(pd.concat([people(plan, rng, 200), raw]), folder / "b.csv"),
    "two changed": lambda folder, raw, plan, rng: written(two_changed(raw, rng), folder / "b.csv"),
    "another round": lambda folder, *_: folder / "in.csv",
}


def duplicate(way: str, rng: Rng, folder: Path) -> str:
    """What became of one duplicate: "refused", "counted", or anything else."""
    plan = survey(rng)
    raw = people(plan, rng, int(rng.integers(300, 3000)))
    written(raw, folder / "in.csv")
    ledger = folder / "ledger"
    privatize(plan, folder / "in.csv", folder / "first.csv", ledger=ledger)
    if privatize(plan, written(people(plan, rng, 500), folder / "o.csv"), folder / "o", ledger=ledger).other_rounds:
        return "OTHER PEOPLE REFUSED"
    second = survey(rng, 2, len(plan.questions)) if way == "another round" else plan
    try:
        tally = privatize(second, WAYS[way](folder, raw, plan, rng), folder / "second.csv", ledger=ledger)
    except InvalidInput:
        return "LEFT BEHIND" if list(folder.glob("*second*")) or list(folder.glob(".*second*")) else "refused"
    return "counted" if tally.other_rounds == 1 else "UNNOTICED"


def memoised(rng: Rng, folder: Path) -> str:
    """A retry under the same key gives the same bytes; another key, or a changed answer in the same file, does not."""
    plan = survey(rng, respondent="id")
    raw = people(plan, rng, int(rng.integers(300, 1000)))
    raw["id"] = [f"p{n}" for n in rng.permutation(len(raw))]
    written(raw, folder / "in.csv")
    create_key(folder / "key")
    create_key(folder / "other")
    for name in ("a.csv", "b.csv"):
        privatize(plan, folder / "in.csv", folder / name, Memoized(folder / "key"), ledger=folder / "ledger")
    if (folder / "a.csv").read_bytes() != (folder / "b.csv").read_bytes():
        return "A RETRY DIFFERS"
    try:
        privatize(plan, folder / "in.csv", folder / "c.csv", Memoized(folder / "other"), ledger=folder / "ledger")
    except InvalidInput:
        return "repeated, and refused under another key"
    return "UNNOTICED"


def main() -> int:
    """Duplicate answers; exit code 1 if that goes unnoticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--times", type=int, default=100, help="duplicates of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    counts = Counter[str]()
    for way in (*WAYS, "memoised"):
        for number in range(2 if given.quick else given.times):
            rng = np.random.default_rng([given.seed, number, len(way)])
            with tempfile.TemporaryDirectory() as name:
                found = memoised(rng, Path(name)) if way == "memoised" else duplicate(way, rng, Path(name))
            counts[f"{way}: {found}"] += 1
    print(*(f"{count:6} {what}" for what, count in counts.items()), sep="\n")
    return 1 if any(what.rpartition(": ")[2].isupper() for what in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
