"""Mutation check by hand: change one operator, constant or name at a time, and see whether a test notices.

    python experiments/trust/mutate.py [--each 25] [--seed 0] [FILE=TESTS ...]

Works on a copy of the tree in a temporary folder. For each file a random sample of mutants; prints the survivors with
their lines, and the share of mutants that a test killed. A mutant that takes ten times as long as the unchanged file,
and a minute more, counts as killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {
    "ldpopt/rounding.py": "tests/test_rounding.py",
    "ldpopt/exact.py": "tests/test_exact.py tests/test_exact_rounding.py",
    "ldpopt/privacy/local_dp.py": "tests/privacy/test_local_dp.py tests/privacy/test_contract.py",
    "ldpopt/privacy/total_variation.py": "tests/privacy/test_total_variation.py tests/privacy/test_contract.py",
    "ldpopt/privacy/hockey_stick.py": "tests/privacy/test_hockey_stick.py tests/test_measured_claims.py",
    "ldpopt/privacy/approximate_dp.py": "tests/privacy/test_approximate_dp.py tests/test_measured_claims.py",
    "ldpopt/privacy/least_pair.py": "tests/privacy/test_least_pair.py tests/privacy/test_finite_pair.py",
    "ldpopt/privacy/loss.py": "tests/privacy/test_loss.py tests/privacy/test_renyi.py tests/test_measured_claims.py",
    "ldpopt/privacy/conversions/pure.py": "tests/privacy/test_conversions.py tests/test_converted_claims.py",
    "ldpopt/privacy/conversions/to_approximate.py": "tests/privacy/test_conversions.py tests/test_converted_claims.py",
    "ldpopt/privacy/conversions/concentrated.py": "tests/privacy/test_conversions.py tests/test_converted_claims.py",
    "ldpopt/privacy/group.py": "tests/privacy/test_group.py tests/test_converted_claims.py",
    "ldpopt/design/repair.py": "tests/design/test_repair.py tests/design/test_faults.py",
    "ldpopt/design/certificate.py": "tests/design/test_certificate.py tests/design/test_faults.py",
    "ldpopt/design/interval_dual.py": "tests/design/test_interval_dual.py tests/design/test_faults.py",
}
COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
           ast.Is: ast.IsNot, ast.IsNot: ast.Is}  # fmt: skip
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
NAMES = {"max": "min", "min": "max", "up": "down", "down": "up", "argmax": "argmin", "argmin": "argmax",
         "maximum": "minimum", "minimum": "maximum", "any": "all", "all": "any"}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """(line, what changed, new source) for every single change."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            other = copy.deepcopy(tree)
            target = list(ast.walk(other))[number]
            said = change(target)
            yield getattr(node, "lineno", 0), said, ast.unparse(ast.fix_missing_locations(other))


def _changes(node: ast.AST) -> Iterator:
    def swap(field: str, new: object, said: str):
        def change(target: ast.AST) -> str:
            setattr(target, field, new)
            return said

        return change

    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        new = COMPARE[type(node.ops[0])]
        yield swap("ops", [new(), *node.ops[1:]], f"{type(node.ops[0]).__name__} -> {new.__name__}")
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        new = ARITHMETIC[type(node.op)]
        yield swap("op", new(), f"{type(node.op).__name__} -> {new.__name__}")
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield swap("id", NAMES[node.id], f"{node.id} -> {NAMES[node.id]}")
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield swap("attr", NAMES[node.attr], f"{node.attr} -> {NAMES[node.attr]}")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield swap("op", ast.UAdd(), "-x -> +x")
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield swap("value", node.value + 1, f"{node.value} -> {node.value + 1}")


def failure(tree: Path, tests: str, seconds: float) -> str:
    """What the first failing test said, empty if all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no end after {seconds:.0f} s"
    return ran.stdout[-2000:] + ran.stderr[-2000:] if ran.returncode else ""


def main() -> None:
    """Sample, run and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("targets", nargs="*", metavar="FILE=TESTS")
    given = parser.parse_args()
    targets = dict(item.split("=", 1) for item in given.targets) or TARGETS
    total = dead = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".hypothesis"))
        for name, tests in targets.items():
            source = (ROOT / name).read_text("utf-8")
            start = time.monotonic()
            if reason := failure(tree, tests, 1800):
                raise SystemExit(f"{tests}: fails without any change\n{reason}")
            limit = 60 + 10 * (time.monotonic() - start)
            every = list(mutants(source))
            chosen = random.Random(given.seed).sample(every, min(given.each, len(every)))
            hit = 0
            for line, said, changed in chosen:
                (tree / name).write_text(changed, "utf-8")
                if failure(tree, tests, limit):
                    hit += 1
                else:
                    print(f"survived: {name}:{line}: {said}", flush=True)
            (tree / name).write_text(source, "utf-8")
            print(f"{name}: {hit} of {len(chosen)} killed ({len(every)} possible)", flush=True)
            total, dead = total + len(chosen), dead + hit
    print(f"{dead} of {total} mutants killed")


if __name__ == "__main__":
    main()
