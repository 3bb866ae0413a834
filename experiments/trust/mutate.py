"""Mutation check by hand: change one thing in the code that people rely on, and see whether a test notices.

    python experiments/trust/mutate.py --seed 3 --each 60 --out mutants.jsonl [--areas guarantees kernel ...]
    python experiments/trust/mutate.py --again mutants.jsonl

For each area a random sample of all its mutants is drawn, with the seed; every mutant is tried in a copy of the tree
with the tests of its own area alone. First the area's tests run once as they are, which tells which of them call which
functions; `--known` keeps that in a file, and later runs record only the test files that changed. A mutant then
meets the tests that call the function it is in (for a statement of a module or a class: any function of the file),
those of the test file of its name first, then the faster ones, until one fails or they have taken `--budget` seconds
on the unchanged code; last come the tests against results on record, whatever they take, and the examples in the
file's own docstrings. A mutant that takes four times as long,
and half a minute more, is killed too.

Changed are comparisons, arithmetic, `and` and `or`, `not`, signs, numbers, True and False, the direction of `nextafter`
and names like `min`, `up` or `lower`; or a raise, a call for its effect or an assignment that adds is left out.
Decorators and annotations are not changed.

Each line of the output is a mutant: its file, line, the statement before and after, and the test that noticed.
`--again` tries those that survived once more, with the tests as they are now. With `TMPDIR=/dev/shm`,
a file system in memory, the tests that write files take seconds instead of minutes.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CLASSES = sorted(path.parent.name for path in (ROOT / "ldpopt" / "design").glob("*/proof.py"))
PROOFS = [
    "ldpopt/design/kernel",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "ldpopt/design").glob("*/proof*.py")),
]
AREAS = {
    "guarantees": (
        ["ldpopt/privacy"],
        ["tests/privacy", *(f"tests/test_{kind}_claims.py" for kind in ("measured", "converted", "class"))],
    ),
    "kernel": (
        [*PROOFS, "ldpopt/numbers/rounding.py"],
        [
            *(f"tests/design/{folder}" for folder in CLASSES),
            "tests/design/test_own_utility.py",
            "tests/design/integers/test_method.py",
            "tests/test_rounding.py",
        ],
    ),
    "composition": (["ldpopt/composition"], ["tests/composition"]),
    "collection": (["ldpopt_survey/collect"], ["tests/survey/collect"]),
}  # fmt: skip
COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
           ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
              ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}  # fmt: skip
PAIRS = ["min max", "up down", "argmin argmax", "minimum maximum", "any all", "floor ceil", "low high", "lower upper"]
NAMES = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}


# -- the changes -------------------------------------------------------------------------------------


class Mutants:
    """Every single change of a source, as a sequence: what changed is made when it is asked for."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.nodes = list(ast.walk(self.tree))
        number = {id(node): place for place, node in enumerate(self.nodes)}
        statements: dict[int, ast.stmt] = {}
        names: dict[int, str] = {id(self.tree): ""}
        skipped: set[int] = set()
        for node in self.nodes:
            notes = [getattr(node, "annotation", None), getattr(node, "returns", None)]
            notes += getattr(node, "decorator_list", [])
            skipped |= {id(part) for note in notes if note is not None for part in ast.walk(note)}
            for child in ast.iter_child_nodes(node):
                own = child if isinstance(child, ast.stmt) else statements.get(id(node))
                if own is not None:
                    statements[id(child)] = own
                name = names[id(node)]
                if isinstance(child, ast.ClassDef):
                    name += f"{child.name}."
                elif isinstance(child, ast.FunctionDef):
                    name += f"{child.name}.<locals>."
                names[id(child)] = name
        self.changes = []
        for place, node in enumerate(self.nodes):
            for said, change, about in [] if id(node) in skipped else _changes(node):
                statement = about or statements.get(id(node))
                at = None if statement is None else number[id(statement)]
                line = getattr(about or node, "lineno", 0)
                name = names[id(node)]
                function = name.removesuffix(".<locals>.") if name.endswith(".<locals>.") else ""
                self.changes.append((line, said, change, place, at, function))

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, index: int) -> dict[str, Any]:
        line, said, change, place, at, function = self.changes[index]
        other = copy.deepcopy(self.tree)
        nodes = list(ast.walk(other))
        change(nodes[place])
        before = "" if at is None else _head(self.nodes[at])
        after = "" if at is None else "pass" if said.startswith("without") else _head(nodes[at])
        source = ast.unparse(ast.fix_missing_locations(other))
        return {"line": line, "said": said, "before": before, "after": after, "function": function, "source": source}


def _changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """(what is said, how a copy of the node is changed, the statement if it is another) for every change of a node."""

    def to(field: str, new: object) -> Any:
        return lambda target: setattr(target, field, new)

    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            new = COMPARE[type(op)]
            yield (
                f"{type(op).__name__} -> {new.__name__}",
                to("ops", [*node.ops[:place], new(), *node.ops[place + 1 :]]),
                None,
            )
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in ARITHMETIC:
        new = ARITHMETIC[type(node.op)]
        yield f"{type(node.op).__name__} -> {new.__name__}", to("op", new()), None
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} -> {other.__name__}", to("op", other()), None
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield f"{node.id} -> {NAMES[node.id]}", to("id", NAMES[node.id]), None
    elif isinstance(node, ast.Attribute) and node.attr in NAMES and isinstance(node.ctx, ast.Load):
        yield f"{node.attr} -> {NAMES[node.attr]}", to("attr", NAMES[node.attr]), None
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "-x -> +x", to("op", ast.UAdd()), None
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not x -> not not x", to("operand", ast.UnaryOp(ast.Not(), node.operand)), None
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} -> {node.value + 1}", to("value", node.value + 1), None
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{node.value} -> {not node.value}", to("value", not node.value), None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "nextafter":
        zero = isinstance(node.args[1], ast.Constant) and node.args[1].value == 0
        away = ast.Constant(math.inf) if zero else ast.UnaryOp(ast.USub(), node.args[1])
        yield "nextafter the other way", to("args", [node.args[0], away, *node.args[2:]]), None
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        for place, one in enumerate(block if isinstance(block, list) else []):
            if _can_go(one):
                yield "without it", _without(name, place), one


def _can_go(statement: ast.stmt) -> bool:
    """Whether a statement may be left out: a raise, a call for its effect, an assignment that adds."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, (ast.Constant, ast.Yield))
    return isinstance(statement, (ast.Raise, ast.AugAssign, ast.Continue, ast.Break))


def _without(name: str, place: int) -> Any:
    def change(target: ast.AST) -> None:
        block = list(getattr(target, name))
        block[place] = ast.Pass()
        setattr(target, name, block)

    return change


def _head(statement: ast.AST) -> str:
    """A statement in one line; of one that holds others, what stands before them."""
    text = ast.unparse(statement)
    if hasattr(statement, "body"):
        text = next((line for line in text.splitlines() if line[:1] != "@"), text)
    return " ".join(text.split())


EXAMPLES = "tests/test_doctests.py"
ON_RECORD = "on_record.py"
"""How the names of test files end that compare results with those on record."""


def dotted(path: str) -> str:
    """A path of the package as the name of a module."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# -- the tests ---------------------------------------------------------------------------------------


class Recorder:
    """A pytest plugin that notes which tests call which functions of the area, and how long they take."""

    def __init__(self, tree: Path, paths: list[str]) -> None:
        self.paths = paths
        self.under = tuple(str(tree / path) for path in paths)
        self.root = len(str(tree)) + 1
        self.now = ""
        self.calls: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Examples in docstrings of the area alone."""
        inside = tuple(f"{EXAMPLES}::test_examples_of_the_module_hold[{dotted(path)}" for path in self.paths)
        items[:] = [one for one in items if not one.nodeid.startswith(EXAMPLES) or one.nodeid.startswith(inside)]

    def trace(self, frame: Any, event: str, _: Any) -> None:
        """The trace function, which sees calls alone."""
        code = frame.f_code
        if code.co_filename.startswith(self.under):
            self.calls.setdefault(f"{code.co_filename[self.root :]}:{code.co_qualname}", set()).add(self.now)

    def pytest_runtest_setup(self, item: Any) -> None:
        """What is set up may serve all tests of its file."""
        self.now = item.nodeid.split("::")[0]
        sys.settrace(self.trace)
        threading.settrace(self.trace)

    def pytest_runtest_call(self, item: Any) -> None:
        """From here on it is the test's own."""
        self.now = item.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """How long it took."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


class Chosen:
    """A pytest plugin that keeps the chosen tests, in their order, and notes the first that fails."""

    def __init__(self, order: list[str]) -> None:
        self.place = {name: place for place, name in enumerate(order)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep and sort."""
        items[:] = sorted((one for one in items if one.nodeid in self.place), key=lambda one: self.place[one.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """The first failure."""
        self.failed = self.failed or (report.nodeid if report.failed else "")

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported any more."""
        self.failed = self.failed or (f"import of {report.nodeid}" if report.failed else "")


def run_pytest(tree: Path, arguments: list[str], plugin: Any, seconds: float, result: Any) -> Any:
    """What `result` makes of the exit code, from a child process that has the tree alone; None without an answer."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(False)

    def child() -> None:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(quiet, handle)
        os.chdir(tree)
        os.environ.update(PYTHONPATH=str(tree))
        sys.path[:] = [str(tree), *(path for path in sys.path if Path(path or ".").resolve() not in (ROOT, HERE))]
        sys.argv = ["pytest"]
        import pytest

        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*options, *arguments], plugins=[plugin]))
        sys.settrace(None)
        theirs.send(result(code))
        theirs.close()
        os._exit(0)

    process = context.Process(target=child)
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else None
    except EOFError:
        return ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


HERE = Path(__file__).resolve().parent


PRELOADED = """numpy scipy.optimize scipy.special scipy.stats scipy.sparse.csgraph mpmath flint networkx pytest
pyarrow.parquet pyarrow.csv cryptography.hazmat.primitives.ciphers hypothesis.strategies typer"""
"""What the tests import, which is imported once; nothing of the package."""


def copied(base: Path, tree: Path) -> None:
    """A copy of a tree."""
    ignored = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".hypothesis", "notebooks", "results")
    shutil.copytree(base, tree, ignore=ignored)


def recorded(base: Path, old: dict[str, Any], area: str) -> dict[str, Any]:
    """For each test file of an area its checksum, {test: seconds} and {function: tests}; `old` is what is known."""
    paths, tests = AREAS[area]
    files = [base / EXAMPLES]
    for path in tests:
        files += [base / path] if path.endswith(".py") else (base / path).rglob("test_*.py")
    sums = {one.relative_to(base).as_posix(): sha256(one.read_bytes()).hexdigest() for one in files}
    made = {name: old[name] for name in sums if name in old and old[name]["sum"] == sums[name]}
    if not (new := sorted(set(sums) - set(made))):
        return made
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        copied(base, tree)
        recorder = Recorder(tree, paths)
        got = run_pytest(tree, new, recorder, 3600, lambda code: (code, recorder.calls, recorder.seconds))
    if not got or got[0]:
        raise SystemExit(f"the tests of {area} fail without any change: {got[0] if got else 'no end'}")
    for name in new:
        own = {test: seconds for test, seconds in got[2].items() if test.split("::")[0] == name}
        calls = {key: [test for test in found if test.split("::")[0] == name] for key, found in got[1].items()}
        made[name] = {
            "sum": sums[name],
            "seconds": own,
            "calls": {key: sorted(found) for key, found in calls.items() if found},
        }
    return made


def tests_for(mutant: dict[str, Any], known: dict[str, Any], budget: float) -> list[tuple[str, float]]:
    """The tests that a mutant meets, in their order, and their seconds."""
    name = mutant["file"]
    wanted = f"{name}:{mutant['function']}"
    chosen = []
    for file, one in known.items():
        if file == EXAMPLES:
            continue
        calls = one["calls"].items()
        met = {
            test
            for key, tests in calls
            if key == wanted or (not mutant["function"] and key.startswith(wanted))
            for test in tests
        }
        chosen += [(test, seconds) for test, seconds in one["seconds"].items() if test in met or file in met]
    own = f"/test_{Path(name).stem}.py"
    order = sorted(chosen, key=lambda one: (own not in one[0].split("::")[0], one[1]))
    total = [0.0, *accumulate(seconds for _, seconds in order)]
    kept = [one for one, spent in zip(order, total[1:], strict=True) if spent <= budget or one is order[0]]
    return kept + [one for one in order if ON_RECORD in one[0] and one not in kept]


def _said(plugin: Chosen, code: int) -> tuple[int, str]:
    return code, plugin.failed


def tried(mutant: dict[str, Any], tree: Path, known: dict[str, Any], budget: float) -> dict[str, Any]:
    """The mutant, with the test that noticed it, empty if none did."""
    order = tests_for(mutant, known, budget)
    example = f"{EXAMPLES}::test_examples_of_the_module_hold[{dotted(mutant['file'])}]"
    alone = [(one, seconds) for one, seconds in known[EXAMPLES]["seconds"].items() if one == example]
    path = tree / mutant["file"]
    original = path.read_text("utf-8")
    start = time.monotonic()
    killer = ""
    path.write_text(mutant["source"], "utf-8")
    for tests in (order, alone):
        if not tests or killer:
            continue
        limit = 30 + 4 * sum(seconds for _, seconds in tests)
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            stale.unlink()
        plugin = Chosen([test for test, _ in tests])
        files = list(dict.fromkeys(test.split("::")[0] for test, _ in tests))
        answer = run_pytest(tree, ["-x", *files], plugin, limit, partial(_said, plugin))
        if answer is None:
            killer = f"no end after {limit:.0f} s"
        elif answer == "":
            killer = "the interpreter died"
        elif answer[0]:
            killer = answer[1] or f"exit code {answer[0]}"
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        stale.unlink()
    path.write_text(original, "utf-8")
    return {**mutant, "killer": killer, "tests": len(order), "seconds": round(time.monotonic() - start, 1)}


def worker(base: Path, queue: Any, answers: Any, known: dict[str, Any], budget: float) -> None:
    """Try mutants from a queue in a tree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        copied(base, tree)
        while (mutant := queue.get()) is not None:
            answers.put(tried(mutant, tree, known[mutant["area"]], budget))
    answers.put(None)


def sources(area: str) -> Iterator[Path]:
    """The files of an area."""
    for path in AREAS[area][0]:
        yield from [ROOT / path] if path.endswith(".py") else sorted((ROOT / path).rglob("*.py"))


def drawn(area: str, each: int, seed: int) -> list[dict[str, Any]]:
    """A random sample of an area's mutants."""
    made = {path.relative_to(ROOT).as_posix(): Mutants(path.read_text("utf-8")) for path in sources(area)}
    every = [(name, index) for name, of_file in made.items() for index in range(len(of_file))]
    print(f"{area}: {len(every)} mutants are possible", flush=True)
    chosen = random.Random(f"{seed} {area}").sample(every, min(each, len(every)))
    return [{"area": area, "file": name, **made[name][index]} for name, index in chosen]


def again(path: Path) -> list[dict[str, Any]]:
    """The mutants that survived in an earlier run and can still be made."""
    left = [one for one in map(json.loads, path.read_text("utf-8").splitlines()) if not one["killer"]]
    found = []
    for one in left:
        source = ROOT / one["file"]
        made = Mutants(source.read_text("utf-8")) if source.exists() else Mutants("")
        alike = [index for index, change in enumerate(made.changes) if change[1] == one["said"]]
        near = sorted(alike, key=lambda index: abs(made.changes[index][0] - one["line"]))
        new = next((new for new in map(made.__getitem__, near) if _same(new, one)), None)
        if new is None:
            print(f"gone: {one['file']}:{one['line']}: {one['said']}", flush=True)
        else:
            found.append({"area": one["area"], "file": one["file"], **new})
    return found


def _same(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return (new["before"], new["after"]) == (old["before"], old["after"])


def measured(
    base: Path, chosen: list[dict[str, Any]], jobs: int, budget: float, out: Path, kept: Path | None
) -> dict[str, list[int]]:
    """[killed, tried] of each area."""
    areas = sorted({one["area"] for one in chosen})
    context = multiprocessing.get_context("fork")
    old = json.loads(kept.read_text("utf-8")) if kept is not None and kept.exists() else {}
    with ThreadPoolExecutor(jobs) as pool:
        made = pool.map(lambda area: recorded(base, old.get(area, {}), area), areas)
        known = dict(zip(areas, made, strict=True))
    print("the tests are recorded", flush=True)
    if kept is not None:
        kept.write_text(json.dumps(old | known), "utf-8")
    random.Random(0).shuffle(chosen)
    queue, answers = context.Queue(), context.Queue()
    for one in [*chosen, *[None] * jobs]:
        queue.put(one)
    workers = [context.Process(target=worker, args=(base, queue, answers, known, budget)) for _ in range(jobs)]
    for one in workers:
        one.start()
    counts: dict[str, list[int]] = {area: [0, 0] for area in areas}
    ended = 0
    with out.open("w", encoding="utf-8") as file:
        while ended < jobs:
            if (got := answers.get()) is None:
                ended += 1
                continue
            counts[got["area"]][0] += bool(got["killer"])
            counts[got["area"]][1] += 1
            file.write(json.dumps({key: value for key, value in got.items() if key != "source"}) + "\n")
            file.flush()
            if not got["killer"]:
                print(f"survived: {got['file']}:{got['line']}: {got['said']} ({got['tests']} tests)", flush=True)
    return counts


def main() -> None:
    """Sample, run and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--areas", nargs="*", choices=list(AREAS), default=list(AREAS))
    parser.add_argument("--each", type=int, default=60, help="mutants of each area")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for a mutant")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--known", type=Path, help="where to keep which tests call what")
    parser.add_argument("--again", type=Path, help="the output of an earlier run")
    given = parser.parse_args()
    os.nice(5)
    for name in PRELOADED.split():
        with contextlib.suppress(ImportError):
            __import__(name)
    if given.again:
        chosen = [one for one in again(given.again) if one["area"] in given.areas]
    else:
        chosen = [one for area in given.areas for one in drawn(area, given.each, given.seed)]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        copied(ROOT, base)
        counts = measured(base, chosen, given.jobs, given.budget, given.out, given.known)
    for area, (killed, total) in counts.items():
        print(f"{area}: {killed} of {total} killed", flush=True)


if __name__ == "__main__":
    main()
