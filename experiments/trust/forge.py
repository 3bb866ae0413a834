"""Forge certificates: tamper with every class and every field, and see whether a false bound is ever accepted.

    python experiments/trust/forge.py [--forgeries 100000] [--seed 1] [--jobs 2] [--classes EnvelopeDual] [--out FILE]

Honest designs of small problems, nice and nasty, give certificates of every class (tests/helpers/forging/bases.py).
Each is forged: numbers replaced by others, by none, by infinite ones and by those one rounding apart; arrays cut,
turned, and of other types; parts exchanged with those of other certificates and other problems; numbers moved step by
step while the bound falls. Whole designs and design files are forged, too, and must not verify. What a forgery proves
is compared with what tests/truth knows of the problem that it is put to: nothing that is accepted may lie on the wrong
side of what a feasible channel attains, and nothing but the documented errors may be raised.

Each block of 100 forgeries is one line of the record, JSON, so that an interrupted run goes on where it stopped.
`--only EnvelopeDual 17` forges one block and shows what came of it. Ends with exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

from forging.bases import bases, designs
from forging.forgeries import BLOCK, Forger, Tally
from forging.judge import Judge, described

HERE = Path(__file__).resolve()
WRONG = ("wrong", "raised", "forger")
forger: Forger
"""Made once, and shared by the processes that are forked from this one."""


def forged(task: tuple[str, int, int]) -> dict[str, Any]:
    """The line of one block."""
    kind, seed, at = task
    start = time.monotonic()
    warnings.simplefilter("ignore")
    try:
        tally = forger.block(kind, seed, at)
    except Exception as error:
        # The forger's own failure, said as such: it is no verdict on the package.
        tally = Tally()
        tally.findings.append({"sort": "block", "said": "forger", "words": described(error), "forgery": ""})
        tally.counts["forger"] += 1
    return {
        "class": kind, "seed": seed, "block": at, "counts": dict(tally.counts), "findings": tally.findings,
        "seconds": round(time.monotonic() - start, 3),
    }  # fmt: skip


def place(finding: dict[str, str]) -> str:
    """What findings of one cause have in common."""
    words = finding["words"]
    return f"{finding['said']}, {finding['sort']}: " + (
        words.split(":")[0] + " at " + words.rsplit(" at ", 1)[-1].split(" < ")[0]
        if finding["said"] == "raised"
        else words.split(" ")[0]
    )


def summary(lines: list[dict[str, Any]], shown: int) -> int:
    """A table, a row a class, and the first few findings of each cause. Returns how many findings there are."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: Counter[str] = Counter()
    causes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in lines:
        counts[line["class"]].update(line["counts"])
        seconds[line["class"]] += line["seconds"]
        for one in line["findings"]:
            text = f"    block {line['block']}: {one['words'][:300]}\n      {one['forgery'][:300]}"
            causes[line["class"], place(one)].append(text)
    print("| class | forgeries | true all the same | refused | not judged | wrong | raised | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in sorted(counts):
        one = counts[kind]
        total = sum(one[sort] for sort in ("certificate", "climb", "design", "file"))
        said = [total, *(one[name] for name in ("proved", "refused", "unknown", "wrong", "raised"))]
        print(f"| `{kind}` | {' | '.join(map(str, said))} | {seconds[kind]:.0f} |")
    for (kind, cause), texts in sorted(causes.items()):
        print(f"{kind}: {cause}: {len(texts)}", *texts[:shown], sep="\n")
    return sum(one[name] for one in counts.values() for name in WRONG)


def read(out: Path) -> list[dict[str, Any]]:
    """The record so far; a line that a kill has cut is left out."""
    if not out.exists():
        return []
    whole = [text for text in out.read_text(encoding="utf-8").splitlines(keepends=True) if text.endswith("\n")]
    out.write_text("".join(whole), encoding="utf-8")
    return [json.loads(text) for text in whole]


def main() -> int:
    """Forge what the record does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forgeries", type=int, default=100_000, help="for each class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--classes", nargs="+", help="these alone")
    parser.add_argument("--each", type=int, default=4, help="random problems of each kind, besides the nice ones")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no block after this time")
    parser.add_argument("--shown", type=int, default=1, help="how many findings of each cause are printed")
    parser.add_argument("--only", nargs=2, metavar=("CLASS", "BLOCK"), help="forge one block and show it")
    parser.add_argument("--out", type=Path, default=HERE.with_name("forge.jsonl"))
    given = parser.parse_args()
    global forger
    judge = Judge()
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    made = bases(designs(given.each), judge)
    forger = Forger(made, judge)
    for kind, each in made.items():
        print(f"{kind}: {', '.join(base.name for base in each)}", flush=True)
    if given.only is not None:
        line = forged((given.only[0], given.seed, int(given.only[1])))
        print(json.dumps(line, indent=1))
        return int(bool(line["findings"]))
    lines = read(given.out)
    known = {(line["class"], line["seed"], line["block"]) for line in lines}
    chosen = [kind for kind in made if given.classes is None or kind in given.classes]
    todo = [(kind, given.seed, at) for at in range(-(-given.forgeries // BLOCK)) for kind in chosen]
    todo = [task for task in todo if (task[0], task[1], task[2]) not in known]
    end = time.monotonic() + given.seconds
    context = multiprocessing.get_context("fork")
    with given.out.open("a", encoding="utf-8") as file, context.Pool(given.jobs) as pool:
        for line in pool.imap_unordered(forged, todo):
            lines.append(line)
            file.write(json.dumps(line) + "\n")
            file.flush()
            if time.monotonic() > end:
                break
    wrong = summary(lines, given.shown)
    print(f"{len(lines) * BLOCK} forgeries of {len(made)} classes, {wrong} with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
