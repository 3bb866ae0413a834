"""A tree of the project -> its sizes: lines and files by package, circles, kinds asked for, words, tests and minutes.

    python experiments/trust/sizes.py [--against COMMIT] [--minutes] [--json]

Everything is read from the source, nothing of it is imported. `--against` measures a second tree, which git lays out
in a temporary folder, beside this one. `--minutes` also runs README's test command without its installation.
Circles are strongly connected sets of modules, where an import counts wherever it stands; imports for types do not.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
KINDS = re.compile(r"isinstance\([^)]*(Ratio|HockeyStick|Moment|LocalDP|TotalVariation|Utility|Divergence)\b")
SMALL = 1e-3
"""A constant of a module up to this size, written as a power of ten, plays the part of a tolerance."""
WORDS = ("made", "found", "at", "one", "MOST", "LARGEST", "FEW", "MANY", "NEAR", "CLOSE", "ENOUGH", "STILL", "PATIENT")


PACKAGES = ("ldpopt", "ldpopt_survey", "ldpopt_studio", "ldpopt_check", "experiments/papers")


def modules(tree: Path) -> Iterator[tuple[str, str, ast.Module]]:
    """The dotted name, the text and the syntax of every module of the packages below `tree`, without records."""
    for path in sorted(path for package in PACKAGES for path in (tree / package).rglob("*.py")):
        if "records" in path.parts:
            continue
        text = path.read_text("utf-8")
        dotted = ".".join(path.relative_to(tree).with_suffix("").parts)
        yield dotted.removesuffix(".__init__"), text, ast.parse(text)


def imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules of the package that a module imports, but for types."""
    typing = {id(node) for part in ast.walk(tree) if isinstance(part, ast.If) and "TYPE_CHECKING" in ast.dump(part.test)
              for node in ast.walk(part)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typing:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module
        elif isinstance(node, ast.Import) and id(node) not in typing:
            yield from (alias.name for alias in node.names)


def bound(tree: ast.Module) -> Iterator[str]:
    """Every name that is assigned, looped over or taken as a parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def tolerances(tree: ast.Module) -> int:
    """The small constants that a module binds at its top."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value]
    flat = [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return sum(isinstance(part, ast.Constant) and isinstance(part.value, float) and 0 < part.value <= SMALL
               for part in flat)  # fmt: skip


def measured(tree: Path) -> dict[str, int | str]:
    """The figures of one tree."""
    parsed = list(modules(tree))
    known = {name for name, _, _ in parsed}
    graph = nx.DiGraph()
    for name, _, syntax in parsed:
        graph.add_edges_from((name, other) for other in imported(syntax, known) if other in known - {name, "ldpopt"})
    words = Counter(word for _, _, syntax in parsed for word in bound(syntax))
    lengths = [len(text.splitlines()) for _, text, _ in parsed]
    packages: dict[str, int | str] = {}
    for package in (name.replace("/", ".") for name in PACKAGES):
        texts = [text for name, text, _ in parsed if name == package or name.startswith(f"{package}.")]
        packages[package] = f"{sum(len(text.splitlines()) for text in texts)} lines, {len(texts)} files"
    tests = list((tree / "tests").rglob("*.py"))
    return packages | {
        "lines of all packages": sum(lengths),
        "files of all packages": len(parsed),
        "lines of the longest file": max(lengths),
        "files above 600 lines": sum(length > 600 for length in lengths),
        "circles of imports": sum(len(part) > 1 for part in nx.strongly_connected_components(graph) if part),
        "isinstance on kinds in design": sum(
            len(KINDS.findall(text)) for name, text, _ in parsed if name.startswith("ldpopt.design")
        ),
        "tolerances outside tolerances.py": sum(
            tolerances(syntax) for name, _, syntax in parsed if name != "ldpopt.numbers.tolerances"
        ),
        "names that do not say what they hold": sum(words[word] for word in WORDS),
        "words of CONTRIBUTING": len((tree / "CONTRIBUTING.md").read_text("utf-8").split()),
        "files of tests": len(tests),
        "lines of tests": sum(len(path.read_text("utf-8").splitlines()) for path in tests),
    }


def tested(tree: Path, minutes: bool) -> dict[str, int | str]:
    """How many tests there are and, if asked, the wall time of all of them on two processes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    collected = subprocess.run([*command, "--collect-only"], cwd=tree, capture_output=True, text=True)
    count = re.search(r"(\d+) tests? collected", collected.stdout)
    figures: dict[str, int | str] = {"tests": int(count[1]) if count else collected.stdout[-200:]}
    if minutes:
        start = time.monotonic()
        last = subprocess.run([*command, "-n", "2"], cwd=tree, capture_output=True, text=True).stdout.splitlines()[-1]
        figures["minutes of README's test command"] = f"{(time.monotonic() - start) / 60:.1f} ({last.strip('= ')})"
    return figures


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT", help="a commit to measure beside this tree")
    parser.add_argument("--minutes", action="store_true", help="count this tree's tests, and run them")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    now = measured(ROOT)
    if given.minutes:
        now |= tested(ROOT, minutes=True)
    before: dict[str, int | str] = {}
    if given.against:
        with tempfile.TemporaryDirectory() as folder:
            there = Path(folder) / "tree"
            subprocess.run(["git", "worktree", "add", "--detach", there, given.against], cwd=ROOT, check=True,
                           capture_output=True)  # fmt: skip
            try:
                before = measured(there)
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", there], cwd=ROOT, check=True)
    if given.json:
        print(json.dumps({"now": now, "before": before}, indent=1))
        return
    for what, figure in now.items():
        print(f"{what:40} {before.get(what, ''):>24} {figure:>24}")


if __name__ == "__main__":
    main()
