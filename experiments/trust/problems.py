"""Attack `optimal_channel`: random and nasty problems against programs that share no code with the package.

    python experiments/trust/problems.py [--cases 20000] [--seed 1] [--jobs 2] [--kind "expected loss"] [--out FILE]

Every design is judged by tests/truth: no bound on the wrong side of what a feasible channel attains or of the exact
optimum, no value that the channel does not have, nothing certified beyond its tolerance or with an infinite bound,
channels feasible in high precision, `verify()` true of what is certified, and no exception but the documented ones.
Problems that no solver solves, that are refused, or that take more than `--seconds` are counted and listed.

Each case is one line of the record, JSON, so that an interrupted run goes on where it stopped. `--only 17` shows one
case and judges it here. Ends with exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import threading
import time
from collections import Counter, defaultdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

from truth.problems import KINDS, Case, of_kind, problem
from truth.trial import WRONG, trial

HERE = Path(__file__).resolve()
MEMORY = 8 * 2**30


def posed(seed: int, number: int, kind: str | None) -> Case:
    return problem(seed, number) if kind is None else of_kind(kind, seed, number)


def judged(seed: int, number: int, kind: str | None) -> dict[str, Any]:
    """The line of one case."""
    start = time.monotonic()
    case = posed(seed, number, kind)
    said = trial(case)
    line: dict[str, Any] = {"seed": seed, "number": number, "kind": case.kind, "said": said}
    if said:
        line["problem"] = case.text
    return {**line, "seconds": round(time.monotonic() - start, 2)}


def serve(pipe: Connection, kind: str | None) -> None:
    """Judge what is asked for, within bounds of memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        try:
            pipe.send(judged(*asked, kind))
        except Exception as error:
            # The truth's own failure, said as such: it is no verdict on the package.
            said = [("truth", f"{type(error).__name__}: {error}")]
            pipe.send({"seed": asked[0], "number": asked[1], "kind": "?", "said": said, "seconds": 0.0})


class Bench(threading.Thread):
    """One process that takes cases from a common list; it is ended, and a new one started, where one takes too long."""

    def __init__(self, todo: list[int], seed: int, kind: str | None, seconds: float, done: Any) -> None:
        super().__init__(daemon=True)
        self.todo, self.seed, self.kind, self.seconds, self.done = todo, seed, kind, seconds, done

    def run(self) -> None:
        process, pipe = self._served()
        while self.todo:
            try:
                number = self.todo.pop()
            except IndexError:
                break
            pipe.send((self.seed, number))
            said = "timeout"
            try:
                answered = pipe.poll(self.seconds)
                if answered:
                    self.done(pipe.recv())
                    continue
            except (EOFError, OSError):
                said = "killed"
            process.kill()
            process.join()
            case = posed(self.seed, number, self.kind)
            told = [(said, f"after {self.seconds:g} s")]
            line = {"seed": self.seed, "number": number, "kind": case.kind, "said": told, "problem": case.text}
            self.done({**line, "seconds": self.seconds})
            process, pipe = self._served()
        pipe.send(None)
        process.join()

    def _served(self) -> tuple[Any, Connection]:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=serve, args=(there, self.kind), daemon=True)
        process.start()
        there.close()
        here.recv()  # "ready": on a loaded machine the imports alone can take long
        return process, here


def summary(lines: list[dict[str, Any]], shown: int) -> int:
    """Counts by kind of problem and of what was said; the first few of each. Returns how many are wrong."""
    said: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in lines:
        kinds = {kind for kind, _ in line["said"]} or {"fine"}
        said[line["kind"]].update(kinds)
        for kind, text in line["said"]:
            examples[kind, line["kind"]].append(f"  {line['number']}: {text[:220]}")
    wrong = sum(any(kind in (*WRONG, "killed", "truth") for kind, _ in line["said"]) for line in lines)
    for kind in sorted(said):
        print(f"{kind:28s} {sum(line['kind'] == kind for line in lines):6d}", dict(sorted(said[kind].items())))
    for (kind, of), texts in sorted(examples.items()):
        print(f"{kind}, {of}: {len(texts)}", *texts[:shown], sep="\n")
    print(f"{len(lines)} problems, {wrong} with something wrong")
    return wrong


def main() -> int:
    """Judge what the record does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for one case")
    parser.add_argument("--shown", type=int, default=2, help="how many of each sort of fault are printed")
    parser.add_argument("--only", type=int, help="judge one case and show it")
    parser.add_argument("--out", type=Path, default=HERE.with_name("problems.jsonl"))
    given = parser.parse_args()
    if given.only is not None:
        line = judged(given.seed, given.only, given.kind)
        print(posed(given.seed, given.only, given.kind).text, *line["said"], sep="\n")
        return int(any(kind in WRONG for kind, _ in line["said"]))
    lines: list[dict[str, Any]] = []
    if given.out.exists():
        # A line that a kill has cut is judged again.
        whole = [
            text for text in given.out.read_text(encoding="utf-8").splitlines(keepends=True) if text.endswith("\n")
        ]
        lines = [json.loads(text) for text in whole]
        given.out.write_text("".join(whole), encoding="utf-8")
    known = {(line["seed"], line["number"]) for line in lines}
    todo = [number for number in range(given.cases) if (given.seed, number) not in known][::-1]
    lock = threading.Lock()
    with given.out.open("a", encoding="utf-8") as file:

        def done(line: dict[str, Any]) -> None:
            with lock:
                lines.append(line)
                file.write(json.dumps(line) + "\n")
                file.flush()

        benches = [Bench(todo, given.seed, given.kind, given.seconds, done) for _ in range(given.jobs)]
        for bench in benches:
            bench.start()
        for bench in benches:
            bench.join()
    wrong = summary(lines, given.shown)
    if todo:
        print(f"{len(todo)} cases were not judged: the processes that judge ended")
    return 1 if wrong or todo else 0


if __name__ == "__main__":
    sys.exit(main())
